package tables_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/tables"
	"densityuncertainty/figures/uci"
)

const columns = "method,epochs,nll"

// What is chosen has the lowest likelihood of runs that did not diverge, the first of equals.
func TestChoose(t *testing.T) {
	lost, without := math.Inf(1), math.Inf(-1) // a run that diverged, and one that has no such metric
	for _, c := range []struct {
		name, want string // the row, or the error
		nlls       []float64
	}{
		{"lowest", "density,3,0.5000", []float64{1, 2, 0.5, 3}},
		{"first of equals", "density,2,-1.0000", []float64{1, -1, -1, 3}},
		{"one diverged", "density,4,3.0000", []float64{lost, 5, lost, 3}},
		{"all diverged", "", []float64{lost, lost, lost, lost}},
		{"one was not run", "", []float64{1, 2, 3}},
		{"none was run", "", nil},
		{"without the metric", `density: `, []float64{1, without, 3, 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var candidates []tables.Candidate
			var found []experiment.Result
			for i := range 4 {
				e := must.Get(experiment.Cross(uci.Paper, uci.On("yacht"), methods.Density))(t)[0]
				e.Recipe.Epochs = i + 1
				candidates = append(candidates, tables.Candidate{For: []string{"density"}, Hyperparameters: []string{fmt.Sprint(i + 1)}, Experiment: e})
				if i < len(c.nlls) {
					r := experiment.Result{ID: e.ID(), Diverged: c.nlls[i] == lost}
					if c.nlls[i] != without {
						r.Metrics = map[string]float64{experiment.MetricNLL: c.nlls[i]}
					}
					found = append(found, r.Of(e))
				}
			}
			file, err := tables.Choose(tables.Of(found), columns, candidates)
			if err != nil {
				if !strings.Contains(err.Error(), c.want) || c.want == "" {
					t.Error(err)
				}
				return
			}
			var got []string
			for _, row := range tables.ReadCSV(file, columns) {
				got = append(got, strings.Join(row, ","))
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
