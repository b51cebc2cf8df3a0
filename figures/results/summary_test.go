package results

import (
	"math"
	"strings"
	"testing"
)

// measured are lines of some with the metric v: the values in order, NaN for a line without it, infinity for a run that
// diverged. Experiments beyond the values have no line.
func measured(scale string, values ...float64) (wanted []Experiment, lines []Result) {
	wanted = Filter{Methods: []string{"density"}, Datasets: []string{"yacht"}}.Apply(some().Experiments)
	for i, e := range (Filter{Scale: scale}).Apply(wanted) {
		if i == len(values) {
			break
		}
		line := Result{ID: e.ID(), Experiment: e, Metrics: map[string]float64{"v": values[i]}}
		if math.IsNaN(values[i]) {
			line.Metrics = nil
		}
		if line.Diverged = math.IsInf(values[i], 0); line.Diverged {
			line.Metrics = nil
		}
		lines = append(lines, line)
	}
	return wanted, lines
}

func TestSummarize(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		name     string
		scale    string
		values   []float64
		optional bool
		want     Summary
		complete bool
		wantErr  string
	}{
		{"nothing", Full, nil, false, Summary{Mean: nan, Std: nan}, false, ""},
		{"all", Full, []float64{1, 2, 6}, false, Summary{Scale: Full, N: 3, Wanted: 3, Epochs: 100, Mean: 3, Std: math.Sqrt(7)}, true, ""},
		{"part", Full, []float64{1, 3}, false, Summary{Scale: Full, N: 2, Wanted: 3, Epochs: 100, Mean: 2, Std: math.Sqrt2}, false, ""},
		{"one", Full, []float64{5}, false, Summary{Scale: Full, N: 1, Wanted: 3, Epochs: 100, Mean: 5, Std: nan}, false, ""},
		{"diverged", Full, []float64{1, inf, 3}, false, Summary{Scale: Full, N: 2, Wanted: 3, Diverged: 1, Epochs: 100, Mean: 2, Std: math.Sqrt2}, false, ""},
		{"all diverged", Full, []float64{inf, inf, inf}, false, Summary{Scale: Full, Wanted: 3, Diverged: 3, Epochs: 100, Mean: nan, Std: nan}, false, ""},
		{"quick", Quick, []float64{4}, false, Summary{Scale: Quick, N: 1, Wanted: 1, Epochs: 100, Mean: 4, Std: nan}, false, ""},
		{"without the metric", Full, []float64{1, nan, 3}, false, Summary{}, false, `no metric "v"`},
		{"without an optional metric", Full, []float64{1, nan, 3}, true, Summary{Scale: Full, N: 2, Wanted: 3, Unmeasured: 1, Epochs: 100, Mean: 2, Std: math.Sqrt2}, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			wanted, lines := measured(c.scale, c.values...)
			summarize := ByID(lines).Summarize
			if c.optional {
				summarize = ByID(lines).SummarizeOptional
			}
			got, err := summarize(wanted, "v")
			if c.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), c.wantErr) {
					t.Errorf("got %v, want an error with %q", err, c.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			same := func(a, b float64) bool { return math.Abs(a-b) < 1e-12 || math.IsNaN(a) && math.IsNaN(b) }
			if !same(got.Mean, c.want.Mean) || !same(got.Std, c.want.Std) || got.Complete() != c.complete {
				t.Errorf("got %+v, complete %t; want %+v, %t", got, got.Complete(), c.want, c.complete)
			}
			if twice := got.Times(-2); !same(twice.Mean, -2*got.Mean) || !same(twice.Std, 2*got.Std) || twice.N != got.N {
				t.Errorf("minus two times it is %+v", twice)
			}
			got.Mean, got.Std, c.want.Mean, c.want.Std = 0, 0, 0, 0
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
	// Full-scale lines count alone where there are both.
	wanted, full := measured(Full, 1, 2, 6)
	_, quick := measured(Quick, 100)
	if s, err := ByID(append(quick, full...)).Summarize(wanted, "v"); err != nil || s.Scale != Full || s.Mean != 3 {
		t.Errorf("full beside quick lines: %+v, %v", s, err)
	}
}

func TestLowest(t *testing.T) {
	at := func(mean float64, n int) Summary { return Summary{Scale: Full, N: n, Wanted: 2, Mean: mean} }
	for _, c := range []struct {
		name             string
		summaries        []Summary
		lowest, complete int
	}{
		{"none", nil, -1, 0},
		{"none complete", []Summary{at(1, 1), {Scale: Quick, N: 2, Wanted: 2}}, -1, 0},
		{"among the complete", []Summary{at(3, 2), at(1, 1), at(2, 2)}, 2, 2},
		{"the first of equals", []Summary{at(3, 2), at(2, 2), at(2, 2)}, 1, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			if lowest, complete := Lowest(c.summaries); lowest != c.lowest || complete != c.complete {
				t.Errorf("got %d of %d, want %d of %d", lowest, complete, c.lowest, c.complete)
			}
		})
	}
}

func TestGroups(t *testing.T) {
	_, lines := measured(Full, 1, math.Inf(1), 3)
	other := lines[0]
	other.Experiment.Options = map[string]string{"clip": "true"}
	groups := Groups([]Result{lines[0], other, lines[1], lines[2]})
	if len(groups) != 2 || groups[0].First.ID() != lines[0].ID || len(groups[0].Lines) != 2 || groups[0].Diverged != 1 || len(groups[1].Lines) != 1 {
		t.Fatalf("got %+v", groups)
	}
	if mean, std, n, err := groups[0].MeanStd("v"); err != nil || mean != 2 || math.Abs(std-math.Sqrt2) > 1e-12 || n != 2 {
		t.Errorf("mean %v, deviation %v of %d, %v", mean, std, n, err)
	}
	if mean, _, n, err := groups[0].MeanStd("w"); err != nil || !math.IsNaN(mean) || n != 0 {
		t.Errorf("without the metric: mean %v of %d, %v", mean, n, err)
	}
}
