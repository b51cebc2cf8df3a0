package uci

import (
	_ "embed"
	"slices"
	"strconv"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
	"densityuncertainty/figures/tuning"
)

// releasedCSV are measurements of the authors' code, over the random splits 0 to splits-1.
//
//go:embed released.csv
var releasedCSV []byte

// ReleasedTable compares our runs with the settings of the authors' code with measurements of the authors' code, both over the same
// splits.
func ReleasedTable(x *tables.Index) (report.Table, error) {
	s := tables.Sheet{Table: begun("uci-released", "Method", report.MarksPaper), Down: true}
	s.Columns = append(s.Columns, "n", "NLL, ours", "NLL, their code", "RMSE, ours", "RMSE, their code")
	for _, r := range tuning.Read(releasedCSV, "dataset,method,splits,nll_mean,nll_std,rmse_mean,rmse_std") {
		var numbers [5]float64
		for i := range numbers {
			var err error
			if numbers[i], err = strconv.ParseFloat(r[i+2], 64); err != nil {
				panic(err)
			}
		}
		i := slices.IndexFunc(paperMethods(), func(m experiment.Method) bool { return m.Key == r[1] })
		m := paperMethods()[i]
		runs := slices.DeleteFunc(releasedSetting(r[0]).runs(r[0], m), func(e experiment.Experiment) bool { return e.Split >= int(numbers[0]) })
		ours, error := nll.Over(runs), rmse.Over(runs)
		ours.Printed, ours.Rounded = &report.Number{Mean: numbers[1], Std: numbers[2], Decimals: 4}, true
		error.Printed, error.Rounded = &report.Number{Mean: numbers[3], Std: numbers[4], Decimals: 4}, true
		s.Add(DatasetTitle(r[0]), m.Name, tables.Words("%s", r[2]), ours, ours.Theirs(), error, error.Theirs())
	}
	return s.Make(x)
}
