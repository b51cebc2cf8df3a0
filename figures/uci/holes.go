package uci

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"

	"gonum.org/v1/gonum/floats"

	"densityuncertainty/datasets"
	"densityuncertainty/figures/tables"
)

// holesCSV measures the splits Gap of the nine data sets and the splits Hole, those of question 11 of figures/questions.md, which were
// chosen by geometry alone. Rows of heating are also those of cooling, which has the same inputs.
//
//go:embed holes.csv
var holesCSV []byte

// holesColumns are those of holes.csv. The last four are datasets.Hole.
const holesColumns = "dataset,splits,split,shape,part,number,same,distance,beyond,energy,outside"

// A Measured split leaves a part of the rows out: about one in Part.
type Measured struct {
	// Shape says which rows. A "gap" has the middle ones of the input Number, from 0. Distances of the others are of inputs that are
	// standardised by the whole set: a "ball" has the rows nearest to the row Number, and a "slab" those in the middle along a random
	// direction with the seed Number.
	Shape        string
	Part, Number int
	// Same is the first split of those of its kind with which it shares more than 80% of the test rows, directly or by others;
	// else its own number.
	Same int
	datasets.Hole
}

// measured are the splits of holes.csv, by the name of the data set and the kind.
var measured = sync.OnceValue(func() map[string][]Measured {
	all := map[string][]Measured{}
	for _, r := range tables.ReadCSV(holesCSV, holesColumns) {
		var v [7]float64
		for i, text := range r[4:] {
			var err error
			if v[i], err = strconv.ParseFloat(text, 64); err != nil {
				panic(err)
			}
		}
		m := Measured{r[3], int(v[0]), int(v[1]), int(v[2]), datasets.Hole{Distance: v[3], Beyond: v[4], Energy: v[5], Outside: v[6]}}
		of := []string{r[0]}
		if r[0] == "energy" {
			of = append(of, "energy-cooling")
		}
		for _, name := range of {
			all[name+" "+r[1]] = append(all[name+" "+r[1]], m)
		}
	}
	return all
})

// Measured are the splits with their measures, nil unless they are Gap or Hole.
func (d Data) Measured() []Measured { return measured()[fmt.Sprintf("%s %v", d.Name, d.Kind)] }

// standardised are the inputs of a set, standardised by all of its rows.
func standardised(set *datasets.Regression) []float64 {
	all := make([]int, set.N)
	for i := range all {
		all[i] = i
	}
	return datasets.FitScaler(set.X, set.D, all).Transform(set.X)
}

// split divides the rows of a set, of which z are the standardised inputs, by a ball or a slab.
func (m Measured) split(set *datasets.Regression, z []float64) datasets.Split {
	row := func(i int) []float64 { return z[i*set.D : (i+1)*set.D] }
	direction, random := make([]float64, set.D), rand.New(rand.NewPCG(uint64(m.Number), 0))
	for j := range direction {
		direction[j] = random.NormFloat64()
	}
	values, tested := make([]float64, set.N), set.N/m.Part
	for i := range values {
		if values[i] = floats.Dot(row(i), direction); m.Shape == "ball" {
			values[i] = floats.Distance(row(i), row(m.Number), 2)
		}
	}
	if m.Shape == "ball" {
		return datasets.Between(values, 0, tested)
	}
	first := (set.N - tested) / 2
	return datasets.Between(values, first, first+tested)
}
