package cifar

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// A gridKind is a search for hyperparameters.
type gridKind struct {
	table, scale string
	chose        string // heads the column of the choice
	chosen       func(results.Experiment) bool
}

var (
	papersGrid     = gridKind{"cifar-grid", results.Grid, "Paper", chosenByPaper}
	processorsGrid = gridKind{"cifar-processor-grid", results.ProcessorGrid, "Chosen", isChosen}
)

// make shows the grid search: for each method the choices, measured on held-out training images, the one with the
// lowest NLL in bold, and the one that was chosen.
func (k gridKind) make(lines []results.Result, further []methods.Method) (report.Table, error) {
	t := report.Table{
		Name:    k.table,
		Columns: []string{"Method", "Data set", "Network", "Training images", "Epochs", "Held out", "n", "NLL", "Accuracy (%)", "ECE", k.chose},
	}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	list := append(methods.All(), further...)
	groups := imageGroups(lines, k.scale, list)
	titles := groupTitles(groups, list, func(e results.Experiment) []int { return []int{e.TrainN, e.Epochs, e.HeldOut} })
	rivals := make(map[string][]int) // the rows of a method with the same training
	for i, g := range groups {
		e := g.First
		row := report.Row{Name: titles[i], Cells: report.TextCells(title(e.Dataset), title(e.Network), trainedOn(e), fmt.Sprint(e.Epochs), grouped(e.HeldOut), runCount(g))}
		cells, err := groupCells(g, measure{metric: results.MetricNLL, factor: 1, decimals: 4}, measure{metric: results.MetricAccuracy, factor: 100, decimals: 2},
			measure{metric: results.MetricECE, factor: 1, decimals: 4})
		if err != nil {
			return report.Table{}, err
		}
		chosen := "–"
		if k.chosen(e) {
			chosen = "chosen"
		}
		row.Cells = append(append(row.Cells, cells...), report.TextCell(chosen))
		t.Rows = append(t.Rows, row)
		if !math.IsNaN(meanOf(g, results.MetricNLL)) {
			e.Options = nil
			rivals[e.Group()] = append(rivals[e.Group()], i)
		}
	}
	const nllCell = 6
	for _, rows := range rivals {
		if len(rows) > 1 {
			best := slices.MinFunc(rows, func(a, b int) int {
				return cmp.Compare(meanOf(groups[a], results.MetricNLL), meanOf(groups[b], results.MetricNLL))
			})
			t.Rows[best].Cells[nllCell][0].Bold = true
		}
	}
	return t, nil
}

// chosenByPaper says whether an experiment has the choice of the paper's grid search for its method.
func chosenByPaper(e results.Experiment) bool {
	return slices.ContainsFunc(papersSearches, func(s papersSearch) bool {
		return s.method.Name == e.Method && e.Options[s.option] == s.chosen
	})
}
