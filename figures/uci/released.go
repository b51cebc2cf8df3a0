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

// reference is one measurement of the authors' released code.
type reference struct {
	Dataset, Method string
	Splits          int // random splits 0 to Splits-1
	NLL, RMSE       report.Published
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
			NLL:  report.Published{Mean: numbers[1], Std: numbers[2], Decimals: referenceDecimals},
			RMSE: report.Published{Mean: numbers[3], Std: numbers[4], Decimals: referenceDecimals}})
	}
	return list, nil
}

// ReleasedTable compares our runs with the released settings with measurements of the authors' code, both over the same
// splits, and shows ours over all splits beside them.
func ReleasedTable(x *tables.Index) (report.Table, error) {
	references, err := decodeReferences(releasedCSV)
	if err != nil {
		return report.Table{}, err
	}
	t := report.Table{Name: "uci-released", Columns: []string{"Data set", "Method", "n", "NLL", "RMSE", "NLL, all splits", "RMSE, all splits"}}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	for _, ref := range references {
		i := slices.IndexFunc(paperMethods(), func(m experiment.Method) bool { return methods.NameOf(m) == ref.Method })
		if i < 0 {
			return report.Table{}, fmt.Errorf("uci: released.csv: there is no method %q", ref.Method)
		}
		m := paperMethods()[i]
		cell := releasedSetting(ref.Dataset).cellOrQuick(ref.Dataset, m)
		same := tables.Cell{Full: slices.DeleteFunc(slices.Clone(cell.Full), func(e experiment.Experiment) bool { return e.Split >= ref.Splits }), Quick: cell.Quick}
		row := report.Row{Name: DatasetTitle(ref.Dataset), Cells: report.TextCells(m.Name, strconv.Itoa(ref.Splits))}
		var all []report.Cell
		for _, of := range []struct {
			metric metric
			theirs report.Published
		}{{nll, ref.NLL}, {rmse, ref.RMSE}} {
			ours, err := x.Summarize(same, of.metric.name)
			if err != nil {
				return report.Table{}, err
			}
			whole, err := x.Summarize(tables.Cell{Full: cell.Full}, of.metric.name)
			if err != nil {
				return report.Table{}, err
			}
			row.Cells = append(row.Cells, report.Compare(report.Difference, ours, of.theirs, "theirs", 3))
			all = append(all, report.SummaryCell(whole, 3))
		}
		row.Cells = append(row.Cells, all...)
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}
