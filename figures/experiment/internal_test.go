package experiment

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
)

// A file holds predictions as they are.
func TestPredictionsAsTheyAre(t *testing.T) {
	p := Predictions{Experiment: "x", Unit: 1, Sets: []Prediction{{Set: "test", PerExample: map[string][]float64{"entropy": {0.5}}}}}
	p.Sets[0].Prediction = predict.Prediction{Width: 3, Probabilities: []float64{0.1, 0.2, 0.7, 1, 0, 0}, LastConvolution: -1, Energies: []predict.LayerEnergy{{Layer: "stem", Mean: []float64{1, 2}}}}
	var content bytes.Buffer
	must.Do(t, p.encode(&content))
	if back := must.Get(decodePredictions(content.Bytes()))(t); !reflect.DeepEqual(*back, p) {
		t.Errorf("the predictions that were read are %+v", back)
	}
	half := math.Log(0.5)
	if got := exponentials([]float64{half, rest, half - half/2, rest}, 2); !slices.Equal(got, []float64{0.5, 0.5, math.Exp(half / 2), 1 - math.Exp(half/2)}) {
		t.Errorf("the probabilities are %v", got)
	}
}

// A result comes back from its row as it was, with the metrics that are not finite and those that were not measured.
func TestRows(t *testing.T) {
	r := Result{Group: "g", Split: 3, Seed: 1 << 63, Metrics: map[string]float64{"nll": 1.0 / 3, "ece": 0, "skill": math.Inf(1)}, WallSeconds: 0.25,
		Backend: "go", Device: "a, b", Version: "v", Batched: 2, ExamplesPerSecond: 1e-7, Finished: time.Unix(1, 0).UTC()}
	r.ID = idOf(r.Group, r.Split, r.Seed)
	columns := slices.Concat(resultColumns, []string{"ece", "nll", "skill", "rmse"})
	row, run := r.row(columns, "a method, with a comma")
	back, err := result(columns, row)
	r.run = run[0]
	if err := errors.Join(err, back.ran(run)); err != nil || !reflect.DeepEqual(back, r) {
		t.Errorf("it is %+v (%v), was %+v", back, err, r)
	}
}

// Only a version that can be checked out adds to the committed results, whatever the store is named.
func TestCommittedResultsHaveAVersion(t *testing.T) {
	checkout := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(checkout, "go.mod"), []byte("module densityuncertainty\n"), 0o600))
	committed := filepath.Join(checkout, "figures", "runs")
	waiting := []*group{{list: []*entry{{}}}}
	for _, c := range []struct {
		folder, version string
		groups          []*group
		refused         bool
	}{
		{committed, "devel", waiting, true}, {committed + "/", "0123456789ab+dirty", waiting, true}, {committed, "0123456789ab", waiting, false},
		{committed, "devel", nil, false}, {filepath.Join(checkout, "out"), "devel", waiting, false},
	} {
		err := (&run{Engine: Engine{Store: &Store{Folder: c.folder}}, groups: c.groups}).checkVersion(func() string { return c.version })
		if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "commit your changes and run again, or use another store") {
			t.Errorf("%s by %s: %v", c.folder, c.version, err)
		}
	}
}

// A file is parsed again only after it has changed, in its lines or as a whole.
func TestParse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	write := func(text string) {
		must.Do(t, os.WriteFile(path+"~", []byte(strings.Join(resultColumns, ",")+text), 0o666))
		must.Do(t, os.Rename(path+"~", path))
	}
	write("\ng,m,0,1,r,2,\n")
	first := must.Get(parse(path, parsed{}))(t)
	if again := must.Get(parse(path, first))(t); len(again.results) != 1 || &again.results[0] != &first.results[0] {
		t.Errorf("the same file is parsed again: %+v", again.results)
	}
	for _, text := range []string{"\ng,m,0,7,r,2,\n", "\ng,m,0,7,r,2,\ng,m,1,7,r,2,\n"} {
		write(text)
		if now := must.Get(parse(path, first))(t); len(now.results) != strings.Count(text, "r,2") || now.results[0].Seed != 7 {
			t.Errorf("a file that has changed is not parsed again: %+v", now.results)
		}
	}
}

// What one has reserved another does not get, until it is released.
func TestReserve(t *testing.T) {
	s := &Store{Folder: t.TempDir()}
	reserve := func(list []string, want ...string) (release func()) {
		t.Helper()
		free, done, err := s.reserve(list)
		if err != nil || !slices.Equal(free, want) {
			t.Fatalf("got %v, %v; want %v", free, err, want)
		}
		return func() { t.Helper(); must.Do(t, done()) }
	}
	all := []string{"a", "b", "c"}
	first := reserve(all[1:2], "b")
	second := reserve(all, "a", "c")
	reserve(all)()
	first()
	reserve(all, "b")()
	second()
	reserve(all, all...)()
	if left := must.Get(os.ReadDir(filepath.Join(s.Folder, runningFolder)))(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Of many at once one has the reservation at any time, though files are made and removed all the while.
func TestReserveAmongMany(t *testing.T) {
	s, one := &Store{Folder: t.TempDir()}, []string{"a"}
	var having, had atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 300 {
				free, release, err := s.reserve(one)
				if err != nil {
					t.Error(err)
					return
				}
				if len(free) > 0 {
					had.Add(1)
					if n := having.Add(1); n != 1 {
						t.Errorf("%d have it", n)
					}
					having.Add(-1)
				}
				if err := release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if had.Load() < 30 { // of 2400 calls
		t.Errorf("reserved %d times", had.Load())
	}
}

// Kept curves are what FunctionQuantile and Moments said of the draws; another quantile of them panics with what to do.
func TestCurves(t *testing.T) {
	p := Prediction{Prediction: predict.Prediction{Mean: [][]float64{{1, 5}, {2, 4}, {4, 9}}, NoiseStd: [][]float64{{1, 1}, {1, 1}, {1, 1}}}}
	mean, std := p.Moments()
	low, noise := p.FunctionQuantile(0.025), p.NoiseDeviation()
	p.curves()
	keptMean, keptStd := p.Moments()
	if !reflect.DeepEqual([][]float64{mean, std, low, {noise}}, [][]float64{keptMean, keptStd, p.FunctionQuantile(0.025), {p.NoiseDeviation()}}) {
		t.Errorf("the curves are %+v", p)
	}
	must.Panic(t, func() { p.FunctionQuantile(0.1) }, "another store")
}

// curves puts the moments and some quantiles of the function into PerExample, and drops the draws.
func (p *Prediction) curves() {
	mean, std := p.Moments()
	extra := map[string][]float64{"mean": mean, "std": std}
	for _, q := range curveQuantiles {
		extra[quantileName(q)] = p.FunctionQuantile(q)
	}
	noise := slices.Repeat([]float64{p.NoiseDeviation()}, len(mean))
	p.Mean, p.Std, p.NoiseStd, p.PerExample = nil, nil, [][]float64{noise}, extra
}

// The types of this module are known by their names and fields in stored results, so that they must compute what they did:
// a digest that differs here says that the numbers of figures/runs are of other code. After a new version of GoMLX, which may
// write graphs in another way, compare numbers, and then put the new digests here.
func TestModuleComputesWhatItDid(t *testing.T) {
	table := Data{Train: train.Dataset{Inputs: nets.Rows([]float64{1, 2, 3, 4, 5, 6}, 2), Targets: []float64{1, 2, 3}}}
	images := Data{Train: train.Dataset{Inputs: nets.Pixels{Bytes: make([]byte, 2*3*8*8), Height: 8, Width: 8, Standardization: nets.Standardization{Mean: []float64{0, 0, 0}, Std: []float64{1, 1, 1}}}, Labels: []int{0, 1}}}
	for _, c := range []struct {
		name          string
		layers        nets.Layers
		table, images string
	}{
		{"plain", baselines.Deterministic{}, "d8d71ba789d30992", "01a1e879760d58fe"},
		{"MFVI", baselines.MFVI{}, "e65750c93fac413a", "80d04312c43de7be"},
		{"dropout", baselines.MCDropout{Rate: 0.1}, "955ef69451692e30", "f19f07c78a29803c"},
		{"variational dropout", baselines.VDropout{}, "47be2ef8690d44b6", "b8b3232d433c5843"},
		{"rank-1", baselines.Rank1{}, "896c32f6ef9ad367", "10e73d61deb83b8c"},
		{"density", dul.Density{InitStd: 0.1, Energy: energy.LDL{}}, "471f527fe87a73df", "8c062e0da13217ec"},
		{"detached", dul.Density{InitStd: 0.1, Energy: energy.LDL{}, Gradients: dul.Detached}, "d3fa87cc21d7004f", "23b3ada4d5678541"},
		{"mixture", dul.Density{InitStd: 0.1, Energy: energy.Rank1Mixture{Fraction: 0.5}}, "4fb7c5a230895cab", "0a7938f253cd591a"},
		{"mean energy", dul.Density{InitStd: 0.1, Energy: energy.LDL{}, MeanEnergy: true}, "748078a9e98633eb", "62b43333f5fba096"},
		{"constant", dul.Density{InitStd: 0.1, Energy: energy.Constant{}}, "e76a7ddaa4299f70", "e7b7408e835432bd"},
	} {
		e := Experiment{Task: Task{Network: nets.MLP{Widths: []int{2}}, Likelihood: likelihood.Gaussian{}}, Method: Method{Layers: c.layers}, Recipe: Recipe{Settings: train.Settings{Schedule: train.Cosine{Start: 1}}}}
		if got := must.Get(must.Get(e.graph(table))(t).Code(e.Recipe.Settings, true))(t); got != c.table {
			t.Errorf("%s: a perceptron has the digest %s, had %q", c.name, got, c.table)
		}
		e.Task.Network, e.Task.Likelihood = nets.ResNet{Blocks: []int{1, 1}, Widths: []int{2, 4}}, likelihood.Categorical{Classes: 2}
		if got := must.Get(must.Get(e.graph(images))(t).Code(e.Recipe.Settings, true))(t); got != c.images {
			t.Errorf("%s: a residual network has the digest %s, had %q", c.name, got, c.images)
		}
	}
}

// The longest begin.
func TestJobsInOrder(t *testing.T) {
	r := &run{}
	for i, cost := range []float64{2, 3, 1, 1, 3, 2} {
		one := &entry{id: fmt.Sprint(i), group: &group{cost: cost}}
		one.group.list, r.order = []*entry{one}, append(r.order, one)
		r.groups = append([]*group{one.group}, r.groups...)
	}
	var got string
	for _, j := range r.jobs() {
		got += j.first().id
	}
	if got != "415032" {
		t.Errorf("the order is %s, want 415032", got)
	}
}
