package uci

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

//go:embed released.csv
var releasedCSV string

// reference is one measurement of the authors' code.
type reference struct {
	Dataset, Method string
	Splits          int // random splits 0 to Splits-1
	NLL, RMSE       report.Number
}

// referenceDecimals are the decimals of the file.
const referenceDecimals = 4

// decodeReferences reads the measurements, in the order of the file.
func decodeReferences(content string) ([]reference, error) {
	r := csv.NewReader(strings.NewReader(content))
	r.Comment = '#'
	records, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("uci: released.csv: %w", err)
	}
	if len(records) == 0 || strings.Join(records[0], ",") != "dataset,method,splits,nll_mean,nll_std,rmse_mean,rmse_std" {
		return nil, fmt.Errorf("uci: released.csv: unexpected heading")
	}
	var list []reference
	for _, record := range records[1:] {
		numbers := make([]float64, 5)
		for i := range numbers {
			if numbers[i], err = strconv.ParseFloat(record[i+2], 64); err != nil {
				return nil, fmt.Errorf("uci: released.csv: %s of %s, %s: %w", records[0][i+2], record[0], record[1], err)
			}
		}
		list = append(list, reference{Dataset: record[0], Method: record[1], Splits: int(numbers[0]),
			NLL:  report.Number{Mean: numbers[1], Std: numbers[2], Decimals: referenceDecimals},
			RMSE: report.Number{Mean: numbers[3], Std: numbers[4], Decimals: referenceDecimals}})
	}
	return list, nil
}

// ReleasedTable compares our runs with the settings of the authors' code with measurements of the authors' code, both over the same
// splits.
func ReleasedTable(x *tables.Index) (report.Table, error) {
	s := tables.Sheet{Table: begun("uci-released", "Method", report.MarksPaper), Down: true}
	s.Columns = append(s.Columns, "n", "NLL, ours", "NLL, their code", "RMSE, ours", "RMSE, their code")
	references, err := decodeReferences(releasedCSV)
	if err != nil {
		return s.Table, err
	}
	for _, ref := range references {
		i := slices.IndexFunc(paperMethods(), func(m experiment.Method) bool { return m.Key == ref.Method })
		if i < 0 {
			return s.Table, fmt.Errorf("uci: released.csv: there is no method %q", ref.Method)
		}
		m := paperMethods()[i]
		runs := slices.DeleteFunc(releasedSetting(ref.Dataset).runs(ref.Dataset, m), func(e experiment.Experiment) bool { return e.Split >= ref.Splits })
		ours, error := nll.Over(runs), rmse.Over(runs)
		ours.Printed, error.Printed, ours.Rounded, error.Rounded = &ref.NLL, &ref.RMSE, true, true
		s.Add(DatasetTitle(ref.Dataset), m.Name, tables.Words("%d", ref.Splits), ours, ours.Theirs(), error, error.Theirs())
	}
	return s.Make(x)
}
