package experiment_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"densityuncertainty/baselines"
	"densityuncertainty/datasets"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/trained"
)

// A network's file answers the cells of a row of the test part what was predicted in training.
func TestTableOfCategories(t *testing.T) {
	var rows [][]string
	file := filepath.Join(t.TempDir(), "mine.csv")
	text := "y,wood,age\n"
	for i := range 40 {
		row := []string{[]string{"oak", "ash", ""}[i%3], fmt.Sprint(1000 + i*i)}
		if i%6 == 5 {
			row[1] = "NA"
		}
		rows = append(rows, row)
		text += fmt.Sprintf("%d,%s,%s\n", i%5, row[0], row[1])
	}
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	set := must.Get(datasets.CSV{Target: "y", Categories: []string{"wood"}, FillMissing: true}.Read(file))(t)
	e := small(baselines.Deterministic{})
	e.Task.Data = experiment.Table{Set: set, Count: 2, HeldOut: 0.2}
	folder := t.TempDir()
	found := must.Get(experiment.Engine{Networks: folder}.Run(t.Context(), e))(t)
	d, said := must.Get(e.Task.Data.Load(t.Context(), 0))(t), setOf(t, found[0], "test")
	for _, inputs := range []nets.Inputs{d.Train.Inputs, d.HeldOut.Inputs, d.Sets[0].Inputs} {
		x := inputs.(nets.Floats)
		for i := range x.Len() { // the mean of what is standardised is 0
			if row := x.Values[5*i:][:5]; row[4] > 0 {
				must.Near(t, row[3], 0, 1e-12, "a missing number")
			}
		}
	}
	o := must.Get(trained.Open(filepath.Join(folder, e.NetworkFile(0)), nets.MLP{Layers: baselines.Deterministic{}, Widths: []int{4}}, likelihood.Gaussian{}))(t)
	for i, row := range datasets.RandomSplits(set.N, 1)[0].Test {
		a, b := must.Get(o.PredictCells(t.Context(), rows[row]...))(t), must.Get(o.Predict(t.Context(), set.Row(row)))(t)
		if mean := said.Mean[0][i]*d.Unit + d.Zero; !scalar.EqualWithinAbs(a.Mean, mean, 1e-5) || a.Mean != b.Mean {
			t.Errorf("the answers to %q are %v and %v, want %v", rows[row], a, b, mean)
		}
	}
	must.GetErr(o.PredictCells(t.Context(), "elm", "old"))(t, `the row ["elm" "old"]`, `there is no category "elm"`, "column 2: age: ")
	for _, row := range [][]float64{{1, 1, 0, 1000, 0}, {0, 0, 0, 1000, 0}, {1, 0.5, 0, 1000, 0}, {1, 0, 0, math.NaN(), 0}, {1, 0, 0, 1000, 1}, {1, 0, 0, 1000, 0.5}} {
		if _, err := o.Predict(t.Context(), row); err == nil || !strings.Contains(err.Error(), "must be 1") && !strings.Contains(err.Error(), "in the column for what is missing") {
			t.Errorf("%v: the error is %v", row, err)
		}
	}
	if a, b := must.Get(o.PredictCells(t.Context(), " oak", "1000 "))(t), must.Get(o.PredictCells(t.Context(), "oak", "1000"))(t); a.Mean != b.Mean {
		t.Errorf("blanks around cells make %v of %v", a, b)
	}

	// What the training rows do not show is refused before training, and by the network's file.
	var ash []int
	for i, row := range rows {
		if row[0] == "ash" {
			ash = append(ash, i)
		}
	}
	others := slices.DeleteFunc(datasets.Order(0, 0, 40), func(i int) bool { return slices.Contains(ash, i) })
	engine := experiment.Engine{Networks: folder, Progress: func(_ float64, note string) { t.Errorf("it is trained: %s", note) }}
	e.Task.Data = experiment.Table{Set: set, Parts: []datasets.Split{{Train: others, Test: ash}}}
	must.GetErr(engine.Run(context.Background(), e))(t, `row 1 (from 0) of "mine": datasets: wood=ash, and no training row is like this`)
	e.Task.Data = experiment.Table{Set: set, Parts: []datasets.Split{{Train: others[2:], Test: others[:2]}, {Train: others, Test: ash}}}
	second := e
	second.Split = 1
	must.GetErr(engine.Run(context.Background(), e, second))(t, "split 1: row 1 (from 0)")
	must.Get(experiment.Engine{Networks: folder}.Run(t.Context(), e))(t)
	o = must.Get(trained.Open(filepath.Join(folder, e.NetworkFile(0)), nets.MLP{Layers: baselines.Deterministic{}, Widths: []int{4}}, likelihood.Gaussian{}))(t)
	must.GetErr(o.PredictCells(t.Context(), "ash", "1000"))(t, "wood=ash, and no training row")
}
