package live

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/gobackend"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
	methodsOfFigures "densityuncertainty/figures/methods"
	"densityuncertainty/figures/toy"
)

func TestGaps(t *testing.T) {
	for _, c := range []struct {
		name string
		x    []float64
		gaps []interval
		all  interval
	}{
		{"Figure 1", datasets.ToyCubic(examples, noiseStd, 0).X, []interval{{-2, 2}}, interval{-4, 4}},
		{"no gap", []float64{0.7, 0, 1.4}, nil, interval{0, 1.4}},
		{"a point in the gap makes two", []float64{-2, 0, 2}, []interval{{-2, 0}, {0, 2}}, interval{-2, 2}},
		{"ends are rounded", []float64{-1.04, 1.96, 2.04}, []interval{{-1, 2}}, interval{-1, 2}},
	} {
		found, all := gaps(c.x)
		if !reflect.DeepEqual(found, c.gaps) || all != c.all {
			t.Errorf("%s: %v in %v, want %v in %v", c.name, found, all, c.gaps, c.all)
		}
	}
}

// The standard deviation is 2 in the middle half of the gap, 1 where the data are, and 100 elsewhere.
func TestMeanStd(t *testing.T) {
	x := grid()
	std := make([]float64, len(x))
	for i, at := range x {
		switch a := math.Abs(at); {
		case a < 1.01:
			std[i] = 2
		case a > 1.99 && a < 4.01:
			std[i] = 1
		default:
			std[i] = 100
		}
	}
	if gap, data := meanStd(x, std, []interval{{-2, 2}}, interval{-4, 4}); gap != 2 || data != 1 {
		t.Errorf("%v in the gap and %v at the data, want 2 and 1", gap, data)
	}
	if gap, data := meanStd(x, std, nil, interval{-0.5, 0.5}); gap != 0 || data != 2 {
		t.Errorf("without a gap: %v and %v, want 0 and 2", gap, data)
	}
}

// figure1 is a training on the data of Figure 1, with fewer steps.
func figure1(method string, steps int) training {
	data := datasets.ToyCubic(examples, noiseStd, 0)
	return training{Method: method, X: data.X, Y: data.Y, Width: 50, InitStd: 0.01, Steps: steps, PretrainSteps: steps / 2, Samples: 100}
}

// trained runs a training and returns all its updates.
func trained(t *testing.T, r training) (all []update) {
	t.Helper()
	must.Do(t, r.Run(t.Context(), func(u update) { all = append(all, u) }))
	return all
}

func TestUpdates(t *testing.T) {
	for method := range methods {
		if method == "hmc" {
			continue
		}
		t.Run(method, func(t *testing.T) {
			updates := trained(t, figure1(method, 20))
			first, last := updates[0], updates[len(updates)-1]
			steps, begins := 20, "training"
			functions := shownFunctions
			if method == "density" || method == "locations" {
				steps, begins = 30, "pretraining"
			}
			if method == "locations" {
				functions = 0
			}
			if first.Phase != begins || first.Step != 1 {
				t.Errorf("the first update is %+v; want step 1 of %s", first, begins)
			}
			if last.Phase != "done" || last.Step != steps || last.Steps != steps {
				t.Errorf("the last update is %+v; want all %d steps done", last, steps)
			}
			b := last.Band
			if b == nil || len(b.X) != 241 {
				t.Fatalf("the last band is %+v; want 241 inputs", b)
			}
			if b.Functions == nil || len(b.Functions) != functions {
				t.Fatalf("the last band has %d functions, want %d", len(b.Functions), functions)
			}
			for _, function := range b.Functions { // no jumps, as independent noise at each input would make
				for i := range len(b.X) - 2 {
					if bend := math.Abs(function[i] - 2*function[i+1] + function[i+2]); bend > 0.5*slices.Max(b.Std) {
						t.Errorf("at %g a function bends by %g, and its standard deviation is at most %g", b.X[i+1], bend, slices.Max(b.Std))
					}
				}
			}
			for i, x := range b.X {
				if !(b.Low[i] <= b.High[i] && b.Std[i] > 0) {
					t.Fatalf("at %g: from %g to %g with standard deviation %g", x, b.Low[i], b.High[i], b.Std[i])
				}
			}
			if gap, data := meanStd(b.X, b.Std, b.Gaps, interval{-4, 4}); b.Ratio != gap/data || b.DataStd != data || !reflect.DeepEqual(b.Gaps, []interval{{-2, 2}}) {
				t.Errorf("gaps %v: ratio %g of %g and %g", b.Gaps, b.Ratio, gap, data)
			}
			for _, u := range updates {
				must.Get(json.Marshal(u))(t)
			}
		})
	}
}

// The exact posterior knows less where there are no data.
func TestExact(t *testing.T) {
	updates := trained(t, figure1("hmc", 80))
	if last := updates[len(updates)-1]; last.Phase != "done" || !(last.Band.Ratio > 1) {
		t.Errorf("%s with the gap ratio %g", last.Phase, last.Band.Ratio)
	}
}

func TestPresets(t *testing.T) {
	for preset, want := range map[string]struct{ points, gaps int }{"": {100, 1}, "gap": {100, 1}, "side": {47, 0}, "thin": {106, 0}, "outlier": {101, 2}, "moons": {500, 0}} {
		d := must.Get(points{Preset: preset}.data())(t)
		if found, _ := gaps(d.X); len(d.X) != want.points || len(d.Y) != want.points || len(found) != want.gaps {
			t.Errorf("%q: %d points with the gaps %v", preset, len(d.X), found)
		}
	}
}

// What Figure 1 shows, after a fifth of its steps and in a preview of all: density layers are less certain in the gap,
// MFVI is more certain.
func TestGapRatio(t *testing.T) {
	for method, above := range map[string]bool{"density": true, "mfvi": false} {
		preview := figure1(method, 4000)
		preview.Preview = true
		for _, training := range []training{figure1(method, 800), preview} {
			updates := trained(t, training)
			last := updates[len(updates)-1]
			if above != (last.Band.Ratio > 1) || training.Preview && last.Steps > previewSteps+previewPretrain {
				t.Errorf("%s has the gap ratio %g after %d steps; above 1: want %v", method, last.Band.Ratio, last.Steps, above)
			}
		}
	}
}

// moons is a training on two moons, with the points and settings of the project's pictures.
func moons(t *testing.T, method string) training {
	data := must.Get(points{Preset: "moons"}.data())(t)
	return training{Method: method, X: data.X, Y: data.Y, Labels: data.Labels, Width: 50, InitStd: 0.01, Steps: 1000, PretrainSteps: 500, Samples: 100}
}

// The live page has the inputs, network and learning rate of package toy.
func TestMoonsAsInThePictures(t *testing.T) {
	backend := must.Get(gobackend.New("ops_sequential"))(t)
	defer backend.Finalize()
	r := must.Get(moons(t, "mfvi").begin(backend))(t)
	data := must.Get(toy.Moons{Seeds: 1}.Load(t.Context(), 0))(t)
	shown := r.at[0].(nets.Floats).Values
	if !reflect.DeepEqual(data.Train.Inputs, r.inputs[0]) || !slices.Equal(data.Train.Labels, r.Labels) || !slices.Equal(shown, data.Sets[0].Inputs.(nets.Floats).Values[:len(shown)]) {
		t.Error("the inputs are others")
	}
	e := must.Get(toy.Paper(toy.Moons{Seeds: 1}, methodsOfFigures.MFVI))(t)
	if e.Recipe.Epochs != r.Steps || e.Recipe.Schedule != (train.Cosine{Start: r.rate}) || !reflect.DeepEqual(e.Task.Network.(nets.MLP).Widths, []int{50, 50}) {
		t.Errorf("%d steps by %v of %+v", e.Recipe.Epochs, e.Recipe.Schedule, e.Task.Network)
	}
}

// A classifier is certain at the points and uncertain somewhere between the classes, and is shown on the way.
func TestMoons(t *testing.T) {
	for method := range methods {
		if method == "hmc" {
			continue
		}
		t.Run(method, func(t *testing.T) {
			training := moons(t, method)
			training.Preview = true
			updates := trained(t, training)
			last, shown := updates[len(updates)-1], 0
			for _, u := range updates {
				if u.Phase == "training" && u.Map != nil {
					shown++
				}
			}
			if m := last.Map; last.Phase != "done" || shown < 2 || len(m.Entropy) != mapPoints*mapPoints || m.AtData > 0.3 || m.Far > 0.3 || slices.Max(m.Entropy) < 0.6 || slices.Max(m.Entropy) > math.Ln2+1e-9 {
				t.Errorf("%s after %d maps: entropy %g at the points, %g far away, at most %g", last.Phase, shown, m.AtData, m.Far, slices.Max(m.Entropy))
			}
		})
	}
}

func TestStop(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	count := 0
	err := figure1("density", 100000).Run(ctx, func(update) {
		if count++; count == 2 {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) || count != 2 {
		t.Errorf("after %d updates: %v; want 2 and %v", count, err, context.Canceled)
	}
}

func TestRefused(t *testing.T) {
	good := figure1("mfvi", 1)
	for want, change := range map[string]func(*training){
		`no method "other"`:           func(r *training) { r.Method = "other" },
		"1 inputs and 1 targets":      func(r *training) { r.X, r.Y = []float64{1}, []float64{1} },
		"100 inputs and 2 targets":    func(r *training) { r.Y = []float64{1, 2} },
		"all points have the input 3": func(r *training) { r.X, r.Y = []float64{3, 3}, []float64{0, 1} },
	} {
		r := good
		change(&r)
		must.Err(t, r.Run(t.Context(), func(update) { t.Errorf("%s: it was trained", want) }), want)
	}
}

// cloud is correlated points around zero.
func cloud(n int) (x, y []float64) {
	random := rand.New(rand.NewPCG(1, 2))
	for range n {
		a, b := random.NormFloat64(), random.NormFloat64()
		x, y = append(x, 1.5*a), append(y, 0.6*a+0.5*b)
	}
	return x, y
}

// The maximum-likelihood covariance of a Gaussian with mean zero is the mean of h h^T.
func TestLayerFit(t *testing.T) {
	x, y := cloud(50)
	l := layer{X: x, Y: y, Gamma: 0.2, Beta: 0.03, Side: 5, Extent: 2}
	found := must.Get(l.Fit(t.Context()))(t)
	var a, b, c float64
	for i := range x {
		a, b, c = a+x[i]*x[i]/50, b+x[i]*y[i]/50, c+y[i]*y[i]/50
	}
	det := a*c - b*b
	want := [3]float64{c / det, -b / det, a / det}
	for i := range want {
		must.Near(t, found.Precision[i], want[i], 1e-3*math.Abs(want[i]), "entry %d of the precision", i)
	}
	if len(found.Std) != 25 {
		t.Fatalf("%d standard deviations, want 25", len(found.Std))
	}
	p := found.Precision
	for i, sd := range found.Std {
		h1, h2 := float64(i%5)-2, float64(i/5)-2
		energy := (p[0]*h1*h1 + 2*p[1]*h1*h2 + p[2]*h2*h2) / 2
		want := math.Sqrt(0.2*energy + 0.03)
		must.Near(t, sd, want, 1e-5*want, "the standard deviation at (%g, %g)", h1, h2)
	}
}

// The map says what the layer does: the variance of its draws is gamma E + beta.
func TestLayerDraws(t *testing.T) {
	backend := must.Get(gobackend.New("ops_sequential"))(t)
	defer backend.Finalize()
	x, y := cloud(50)
	l := layer{X: x, Y: y, Side: 5, Extent: 2}
	m := must.Get(l.fit(t.Context(), backend))(t)
	l.Gamma, l.Beta = 1e-6, 1e-6 // those that dul.Density starts with
	found := must.Get(l.maps(t.Context(), m))(t)
	const draws = 4000
	drawn := must.Get(predict.Sample(t.Context(), m, l.inputs(), predict.Options{Samples: draws}))(t)
	_, std := drawn.Moments()
	for i, sd := range std {
		ratio := sd * sd / (found.Std[i] * found.Std[i])
		must.Near(t, (ratio-1)*math.Sqrt(draws/2), 0, 4.5, "input %d: the z-score of the standard deviation %g, want %g", i, sd, found.Std[i])
	}
}

func TestServe(t *testing.T) {
	for _, c := range []struct{ request, fails string }{
		{`{"points": {"seed": 0}}`, ""},
		{`{"layer": {"x": [1, 0], "y": [0, 1], "gamma": 1, "beta": 0, "side": 2, "extent": 1}}`, ""},
		{`{"train": {"method": "mfvi", "x": [0, 1], "y": [0, 1], "width": 1, "initStd": 0.1, "steps": 1, "samples": 50}}`, ""},
		{`{"points": {"preset": "ring"}}`, `no preset "ring"`},
		{`{}`, "asks for nothing"},
		{`{"layer": {}}`, "0 first and 0 second inputs"},
		{`{"points": {"sed": 1}}`, `unknown field "sed"`},
		{`{"train": {"method": "x"}}`, `no method "x"`},
		{`points`, "reading the request"},
	} {
		var replies []any
		err := Serve(t.Context(), []byte(c.request), func(reply any) { replies = append(replies, reply) })
		if c.fails == "" && (err != nil || len(replies) == 0) || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails) || len(replies) > 0) {
			t.Errorf("%s: %d replies, %v; want the error %q", c.request, len(replies), err, c.fails)
		}
		if strings.Contains(c.request, "seed") && err == nil {
			if d := replies[0].(dataset); !slices.Equal(d.X, datasets.ToyCubic(examples, noiseStd, 0).X) {
				t.Error("the points are not those of Figure 1")
			}
		}
	}
}
