package uci

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
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
	t := begun("uci-released", "Method", report.MarksPaper)
	t.Columns = append(t.Columns, "n", "NLL, ours", "NLL, their code", "RMSE, ours", "RMSE, their code")
	references, err := decodeReferences(releasedCSV)
	if err != nil {
		return t, err
	}
	for _, ref := range references {
		i := slices.IndexFunc(paperMethods(), func(m experiment.Method) bool { return methods.NameOf(m) == ref.Method })
		if i < 0 {
			return t, fmt.Errorf("uci: released.csv: there is no method %q", ref.Method)
		}
		m := paperMethods()[i]
		cell := releasedSetting(ref.Dataset).cellOrQuick(ref.Dataset, m)
		cell.Full = slices.DeleteFunc(cell.Full, func(e experiment.Experiment) bool { return e.Split >= ref.Splits })
		row := report.Row{Group: DatasetTitle(ref.Dataset), Name: m.Name, Cells: report.TextCells(strconv.Itoa(ref.Splits))}
		for _, of := range []struct {
			metric metric
			theirs report.Number
		}{{nll, ref.NLL}, {rmse, ref.RMSE}} {
			ours, err := x.Summarize(cell, of.metric.name)
			if err != nil {
				return t, err
			}
			theirs := report.NumberCell(of.theirs.Mean, of.theirs.Std, of.theirs.Decimals)
			theirs.Theirs = true
			row.Cells = append(row.Cells, report.Compare(ours, of.theirs, 3), theirs)
		}
		t.Rows = append(t.Rows, row)
	}
	t.AlignColumns()
	return t, nil
}
