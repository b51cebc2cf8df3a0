package baselines

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats"

	"densityuncertainty/environment/backendtest"
	"densityuncertainty/environment/must"
)

// Three clusters far apart are found whatever the seed.
func TestKMeans(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	centres := [][2]float64{{0, 0}, {50, 0}, {0, 50}}
	var x []float64
	means := make([][2]float64, 3)
	for i := range 60 {
		for k := range 2 {
			v := centres[i%3][k] + rng.NormFloat64()
			x = append(x, v)
			means[i%3][k] += v / 20
		}
	}
	for seed := range uint64(5) {
		got := must.Get(kMeans(x, 2, 3, seed))(t)
		for _, want := range means {
			near := math.Inf(1)
			for k := range 3 {
				near = min(near, math.Hypot(got[2*k]-want[0], got[2*k+1]-want[1]))
			}
			if near > 1e-12 {
				t.Errorf("seed %d: no centre at %v: %v", seed, want, got)
			}
		}
	}
	// Where clusters overlap, each centre is the mean of the points that it is nearest to.
	for i := range x {
		x[i] = rng.Float64()
	}
	c := clustering{points: x, centres: must.Get(kMeans(x, 2, 5, 1))(t), width: 2, owner: make([]int, 60), distance: make([]float64, 60)}
	found := slices.Clone(c.centres)
	c.assign()
	if c.move(); !floats.EqualApprox(c.centres, found, 1e-12) {
		t.Errorf("centres %v, whose points have the means %v", found, c.centres)
	}
	// As many centres as points, some of them equal.
	if got, err := kMeans([]float64{1, 1, 2}, 1, 3, 1); err != nil || len(got) != 3 {
		t.Errorf("%v, error %v", got, err)
	}
	must.GetErr(kMeans(x, 0, 1, 1))(t, "points of 0")
	must.GetErr(kMeans(x, 7, 1, 1))(t, "points of 7")
	must.GetErr(kMeans(x, 2, 0, 1))(t, "0 centres of 60 points")
	must.GetErr(kMeans(x, 2, 61, 1))(t, "61 centres of 60 points")
	if got := must.Get(kMeans(x, 2, 60, 1))(t); len(got) != len(x) {
		t.Errorf("%d coordinates of as many centres as points", len(got))
	}
	must.Near(t, must.Get(startFrom([]float64{0, 3, 0}, 1, 2, 1))(t).LengthScale, 2, 1e-15, "the mean of the distances 3, 3 and 0")
	for says, features := range map[string][]float64{
		"1 centres of 0 points":    nil,
		"those of one input":       {7},
		"are equal":                {1, 1},
		"are equal, or closer":     {1e-170, 2e-170},
		"feature 0 of 3 is 1e+200": {1e200, -1e200, 0},
		"feature 1 of 2 is NaN":    {1, math.NaN()},
	} {
		must.GetErr(startFrom(features, 1, 1, 1))(t, says)
	}
}

// The first centre is any point, and the second another one with a probability in proportion to the square of its distance.
func TestSeedsOfKMeans(t *testing.T) {
	const runs = 6000
	points, counts := []float64{0, 1, 3}, map[[2]float64]float64{}
	rng := rand.New(rand.NewPCG(7, 7))
	for range runs {
		c := clustering{points: points, width: 1, owner: make([]int, 3), distance: make([]float64, 3)}
		c.seed(2, rng)
		counts[[2]float64(c.centres)]++
	}
	for _, a := range points {
		sum := 0.0
		for _, b := range points {
			sum += (b - a) * (b - a)
		}
		for _, b := range points {
			p := (b - a) * (b - a) / sum / 3
			must.Near(t, counts[[2]float64{a, b}], runs*p, 4*math.Sqrt(runs*p*(1-p)), "%g, then %g", a, b)
		}
	}
}

// Centres without points move to the points that are farthest from their centre, each to another one.
func TestEmptyCentres(t *testing.T) {
	c := clustering{points: []float64{0, 1, 8, 11}, width: 1, centres: make([]float64, 3), owner: []int{1, 1, 1, 1}, distance: []float64{25, 16, 9, 36}}
	if c.move(); !slices.Equal(c.centres, []float64{11, 5, 0}) {
		t.Errorf("centres %v, want the farthest point, the mean and the second farthest", c.centres)
	}
}

// A new layer norm subtracts the mean of a row and divides by its deviation, to the variance of which it adds 1e-5.
func TestLayerNorm(t *testing.T) {
	got := must.Get(model.CallOnce(backendtest.Open(t), model.NewStore(), func(s *model.Scope, g *graph.Graph) *graph.Node {
		return layerNorm(s, graph.Const(g, [][]float64{{3, 3.01}}))
	}))(t)
	z := 0.005 / math.Sqrt(0.005*0.005+1e-5)
	if y, want := must.Get(tensors.CopyFlatData[float64](got))(t), []float64{-z, z}; !floats.EqualApprox(y, want, 1e-9) {
		t.Errorf("it gives %v, want %v", y, want)
	}
}

// Squared distances are not negative, though in single precision they are differences of large numbers.
func TestSquaredDistancesAreNotNegative(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	const n, d = 200, 3
	points := make([]float32, n*d)
	for i := range points {
		points[i] = 1000 * float32(rng.NormFloat64())
	}
	squares := must.Get(graph.CallOnce(backendtest.Open(t), func(a, b *graph.Node) *graph.Node {
		return squaredDistances(graph.Reshape(a, n, d), graph.Reshape(b, n, d))
	}, points, slices.Clone(points)))(t)
	for i, row := range squares.Value().([][]float32) {
		if least := slices.Min(row); least < 0 || row[i] > 10 {
			t.Errorf("point %d: the least square is %g, that of itself %g", i, least, row[i])
		}
	}
}
