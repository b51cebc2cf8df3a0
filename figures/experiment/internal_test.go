package experiment

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/results"
)

// The mutual information of an ensemble of noisy networks is that of all draws of all members.
func TestMutualInformationOfNoisyMembers(t *testing.T) {
	draws := [][]float64{{0.9, 0.1}, {0.4, 0.6}, {0.2, 0.8}, {0.5, 0.5}}
	want, information, err := predict.MixClasses(draws, 2)
	must.Do(t, err)
	var members []*Prediction
	for pair := range slices.Chunk(draws, 2) {
		p := &Prediction{Prediction: predict.Prediction{Width: 2}}
		p.Probabilities, p.MutualInformation, err = predict.MixClasses(pair, 2)
		must.Do(t, err)
		members = append(members, p)
	}
	all := must.Get(mixture(members))(t)
	if d := math.Abs(all.MutualInformation[0] - information[0]); d > 1e-15 || math.Abs(all.Probabilities[0]-want[0]) > 1e-15 {
		t.Errorf("the mutual information is %g, want %g; the probabilities are %v, want %v", all.MutualInformation[0], information[0], all.Probabilities, want)
	}
}

// A file holds predictions as they are. Probabilities take half the room where their logarithms are those of float32, be it
// with the largest as what the others leave to 1.
func TestPredictionsAsTheyAre(t *testing.T) {
	const n, width = 500, 3
	rows := func(log func(v float64) float64, largest func(a, b float64) float64) []float64 {
		var all []float64
		for i := range n {
			a, b := math.Exp(log(-1-float64(i)/7)), math.Exp(log(-2-float64(i)/11))
			all = append(all, a, b, largest(a, b))
		}
		return all
	}
	narrow := func(v float64) float64 { return float64(float32(v)) }
	wide := func(v float64) float64 { return v }
	for _, c := range []struct {
		name          string
		probabilities []float64
		logs          bool
	}{
		{"logarithms of float32", rows(narrow, func(a, b float64) float64 { return math.Exp(narrow(math.Log(1 - a - b))) }), true},
		{"and what is left to 1", rows(narrow, func(a, b float64) float64 { return 1 - (a + b) }), true},
		{"means over draws", rows(wide, func(a, b float64) float64 { return 1 - (a + b) }), false},
	} {
		p := Predictions{Experiment: "x", Unit: 1, probed: true, Sets: []Prediction{{Set: "test", Extra: map[string][]float64{"entropy": {0.5}}}}}
		p.Sets[0].Prediction = predict.Prediction{Width: width, Probabilities: c.probabilities, LastConvolution: -1, Energies: []predict.LayerEnergy{{Layer: "stem", Mean: []float64{1, 2}}}}
		content := must.Get(p.encode())(t)
		if back := must.Get(decodePredictions(content))(t); !reflect.DeepEqual(*back, p) {
			t.Errorf("%s: the predictions that were read are %+v", c.name, back)
		}
		if _, is := logsOf(c.probabilities, width); is != c.logs {
			t.Errorf("%s: kept as logarithms: %t", c.name, is)
		}
	}
}

// A set that was predicted before counts for the networks that predicted it, and for no others.
func TestKeptSetsOfOtherNetworks(t *testing.T) {
	set := Prediction{Set: "test", Extra: map[string][]float64{"entropy": {0.5}}}
	content := must.Get((&Predictions{Sets: []Prediction{set}}).encode())(t)
	file := filepath.Join(t.TempDir(), "set-0.json")
	must.Do(t, os.WriteFile(file, must.Get(seal(keptSet{Network: []byte("a"), Found: content}))(t), 0o600))
	if found := must.Get((&fit{}).readKeptSet(file, []byte("a")))(t); len(found) != 1 || !reflect.DeepEqual(found[0].Extra, set.Extra) {
		t.Errorf("the kept set is %+v", found)
	}
	if found := must.Get((&fit{}).readKeptSet(file, []byte("b")))(t); found != nil {
		t.Errorf("other networks get %+v", found)
	}
}

func TestColumnsOfOtherShapes(t *testing.T) {
	matrix, list := tensors.FromFlatDataAndDimensions([]float64{1, 2}, 1, 2), tensors.FromFlatDataAndDimensions([]float64{1, 2}, 2)
	for _, err := range []error{(column{name: "x", flat: new([]float64)}).set(matrix), (column{name: "x", rows: new([][]float64)}).set(list)} {
		if err == nil || !strings.Contains(err.Error(), "the tensor of x has the shape (Float64)[") {
			t.Errorf("the error is %v", err)
		}
	}
}

// The steps of an execution divide the whole batches of an epoch; a large network, of 10 million parameters, takes single steps.
func TestStepsPerExecution(t *testing.T) {
	for _, c := range []struct{ examples, rows, want int }{
		{8 * 16, 1, 4}, {8*16 + 15, 1, 4}, {10 * 16, 1, 5}, {9 * 16, 1, 3}, {7 * 16, 1, 7}, {14 * 16, 1, 7}, {22 * 16, 1, 2}, {11 * 16, 1, 4},
		{8 * 16, 1000, 4}, {8 * 16, 1001, 0},
	} {
		e := Experiment{Recipe: Recipe{BatchSize: 16}}
		f := fit{unit: unit{new(group), []*planned{{Experiment: e}}}, data: []Data{{Train: train.Dataset{Inputs: nets.Rows(make([]float64, c.examples), 1)}}}}
		f.traits.Parameters = []Parameter{{Shape: []int{c.rows, 5000}}, {Shape: []int{c.rows, 5000}}}
		if got := f.stepsPerExecution(); got != c.want {
			t.Errorf("%+v: %d steps", c, got)
		}
	}
}

// The head of a regression is Gaussian, and that of images has orthogonal frequencies.
func TestHeadsOfSNGP(t *testing.T) {
	regression := baselines.RegressionSNGP(100, randomFeatures)
	regression.LengthScale = 2 // the root of the number of inputs
	for _, c := range []struct {
		task HeadTask
		want baselines.SNGP
	}{
		{HeadTask{Examples: 100, Inputs: 4}, regression},
		{HeadTask{Examples: 100, Inputs: 4, Classes: 1, Images: true}, baselines.SNGP{Examples: 100, Orthogonal: true, LengthScale: 2}},
		{HeadTask{Examples: 100, Inputs: 4, Classes: 1}, baselines.SNGP{Examples: 100, RandomFeatures: randomFeatures, Plain: true, FeatureScale: regression.FeatureScale, LengthScale: 2}},
	} {
		if got := must.Get(SNGP{}.Head(c.task))(t).Layers; got != nets.Layers(c.want) {
			t.Errorf("%+v: the head is %+v, want %+v", c.task, got, c.want)
		}
	}
}

// A line of a later version is said to be one, whether it is of a later format or has a field that is not known.
func TestLinesOfNewerVersions(t *testing.T) {
	for name, line := range map[string]any{
		"a later format": map[string]any{"format": lineFormat + 1, "id": "x"},
		"a new field":    map[string]any{"format": lineFormat, "future": 1},
	} {
		t.Run(name, func(t *testing.T) {
			text := must.Get(seal(line))(t)
			if _, err := decodeResult(text[:len(text)-1]); !errors.Is(err, results.ErrNewer) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// Every changed bit of a line is noticed, but for one that a newline would follow.
func TestEveryBitOfALineCounts(t *testing.T) {
	r := Result{Group: "g", Metrics: map[string]float64{"nll": 1.5}, Backend: "go", Batched: 1}
	r.ID = idOf(r.Group, r.Split, r.Seed)
	line := must.Get(r.encode())(t)
	line = line[:len(line)-1]
	if got := must.Get(decodeResult(line))(t); got.Metrics["nll"] != 1.5 || got.ID != r.ID {
		t.Errorf("read back: %+v", got)
	}
	for i := range line {
		for bit := range 8 {
			line[i] ^= 1 << bit
			if _, err := decodeResult(line); err == nil {
				t.Errorf("bit %d of byte %d does not count", bit, i)
			}
			line[i] ^= 1 << bit
		}
	}
}

func TestResultsThatCannotBeKept(t *testing.T) {
	good := Result{Group: "g"}
	good.ID = idOf("g", 0, 0)
	for name, change := range map[string]func(r *Result){
		"NaN":              func(r *Result) { r.Metrics = map[string]float64{"nll": math.NaN()} },
		"another identity": func(r *Result) { r.Split = 1 },
	} {
		bad := good
		change(&bad)
		if _, err := bad.encode(); err == nil {
			t.Errorf("%s was kept", name)
		}
	}
	if _, err := good.encode(); err != nil {
		t.Error(err)
	}
}

// What a group line says of its parameters is compared by name.
func TestSameParameters(t *testing.T) {
	now := groupLine{Parameters: map[string]string{"a": "weight [1]", "b": "weight [2]"}}
	for _, c := range []struct {
		stored map[string]string
		want   string
	}{
		{nil, ""}, {map[string]string{"a": "weight [1]", "b": "weight [2]"}, ""},
		{map[string]string{"a": "weight [1]", "b": "weight [3]"}, `parameter b is "weight [2]", and in the stored results "weight [3]"`},
		{map[string]string{"a": "weight [1]", "b": "weight [2]", "c": ""}, "the network has 2 parameters, and in the stored results 3"},
	} {
		err := now.sameParameters(groupLine{Parameters: c.stored})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("the error is %v, want %q", err, c.want)
		}
	}
}
