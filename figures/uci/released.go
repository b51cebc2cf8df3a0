package tables

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/results"
)

//go:embed released.csv
var releasedCSV string

// Reference is one measurement of the authors' released code.
type Reference struct {
	Dataset, Method string
	Splits          int // random splits 0 to Splits-1
	NLL, RMSE       Published
}

// References are the measurements of the authors' released code, in the order of the file.
func References() ([]Reference, error) { return decodeReferences(releasedCSV) }

// referenceDecimals are the decimals of the file.
const referenceDecimals = 4

func decodeReferences(content string) ([]Reference, error) {
	r := csv.NewReader(strings.NewReader(content))
	r.Comment = '#'
	records, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("tables: released.csv: %w", err)
	}
	if len(records) == 0 || strings.Join(records[0], ",") != "dataset,method,splits,nll_mean,nll_std,rmse_mean,rmse_std" {
		return nil, fmt.Errorf("tables: released.csv: unexpected heading")
	}
	var list []Reference
	for _, record := range records[1:] {
		numbers := make([]float64, 5)
		for i := range numbers {
			if numbers[i], err = strconv.ParseFloat(record[i+2], 64); err != nil {
				return nil, fmt.Errorf("tables: released.csv: %s of %s, %s: %w", records[0][i+2], record[0], record[1], err)
			}
		}
		list = append(list, Reference{Dataset: record[0], Method: record[1], Splits: int(numbers[0]),
			NLL:  Published{numbers[1], numbers[2], referenceDecimals},
			RMSE: Published{numbers[3], numbers[4], referenceDecimals}})
	}
	return list, nil
}

// UCIReleased compares our runs in the released fidelity with measurements of the authors' code, each
// over the same splits.
func UCIReleased(lines []results.Result) (Table, error) {
	references, err := References()
	if err != nil {
		return Table{}, err
	}
	set, ok := experiment.SetByName("uci-released")
	if !ok {
		return Table{}, fmt.Errorf("tables: the catalogue has no set uci-released")
	}
	byID := index(lines)
	t := Table{
		Name: "uci-released",
		Caption: "Our implementation with the released settings beside the authors' own code (measured by running the authors' released code, PyTorch 1.13 CPU), " +
			"both over the same random splits: mean ± standard deviation over n splits (not the standard error of the mean); " + settings(set.At(experiment.Full)[0]) + ". " + unitOfDifference,
		Columns: []string{"Data set", "Method", "n", "NLL", "RMSE"},
		Notes: []string{
			"n is the number of splits that the authors' code was run on; ours are the same ones. The two differ in initial values, order and noise alone, which are drawn by other generators.",
		},
	}
	for _, ref := range references {
		var splits []int
		for s := range ref.Splits {
			splits = append(splits, s)
		}
		wanted := experiment.Filter{Methods: []string{ref.Method}, Datasets: []string{ref.Dataset}, Splits: splits}.Apply(set.Experiments)
		if !slices.ContainsFunc(wanted, func(e experiment.Experiment) bool { return e.Scale == experiment.Full }) {
			return Table{}, fmt.Errorf("tables: the catalogue has no run of %s on %s", ref.Method, ref.Dataset)
		}
		row := Row{Name: DatasetTitle(ref.Dataset), Cells: []Cell{text(Title(ref.Method)), text(strconv.Itoa(ref.Splits))}}
		for _, m := range []struct {
			metric string
			theirs Published
		}{{MetricNLL, ref.NLL}, {MetricRMSE, ref.RMSE}} {
			ours, err := byID.summarise(wanted, m.metric)
			if err != nil {
				return Table{}, err
			}
			row.Cells = append(row.Cells, compare(ours, m.theirs, "theirs"))
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}
