// Package paper holds the numbers that the paper prints: "Density Uncertainty Layers for Reliable
// Uncertainty Estimation", Yookoon Park and David M. Blei, AISTATS 2024.
package paper

import (
	_ "embed"
	"encoding/csv"
	"math"
	"strconv"
	"strings"
	"sync"

	"densityuncertainty/figures/report"
)

// The paper's tables.
const (
	UCINLL      = "uci_nll"      // negative log likelihood, rows data sets, columns methods
	UCIRMSE     = "uci_rmse"     // root mean squared error, rows data sets, columns methods
	UCIDatasets = "uci_datasets" // columns Size and Dimension

	CIFAR10ResNet14  = "cifar10_resnet14"             // rows methods, columns Accuracy (%), ECE, NLL
	CIFAR100ResNet14 = "cifar100_resnet14"            // the same
	CIFAR10WRN28     = "cifar10_wrn28"                // the same
	CIFAR100WRN28    = "cifar100_wrn28"               // the same
	Rank1Ablation    = "rank1_ablation_cifar10_wrn28" // number of mixture components
	OODSVHN          = "ood_svhn_resnet14"            // AUPRC and AUROC against SVHN
)

// Cell is one number of a table.
type Cell struct {
	Table, Row, Column string

	// Value has NaN where the paper prints no number (Note says why). Its standard deviation is over 3 seeds for images and
	// over 20 splits for UCI (5 for Protein).
	report.Value

	Note string // a remark, for example "out of memory"
}

// Lookup returns a cell by the names that the paper uses, and whether there is one.
func Lookup(table, row, column string) (Cell, bool) {
	for _, c := range cells() {
		if c.Table == table && c.Row == row && c.Column == column {
			return c, true
		}
	}
	return Cell{}, false
}

// Table returns a table's cells in the order of the paper: row by row.
func Table(name string) []Cell {
	var found []Cell
	for _, c := range cells() {
		if c.Table == name {
			found = append(found, c)
		}
	}
	return found
}

//go:embed published.csv
var published string

// cells decodes the embedded file once. The file is part of the program, so a fault in it is a
// programming error, which TestPublished would show.
var cells = sync.OnceValue(func() []Cell {
	r := csv.NewReader(strings.NewReader(published))
	r.Comment = '#'
	records, err := r.ReadAll()
	if err != nil {
		panic(err)
	}
	var decoded []Cell
	for _, record := range records[1:] { // below the names of the columns: table, row, column, mean, std, note
		c := Cell{Table: record[0], Row: record[1], Column: record[2], Value: report.Value{Mean: number(record[3]), Std: number(record[4])}}
		if record[5] != "bold" { // the paper's best
			c.Note = record[5]
		}
		if _, decimals, found := strings.Cut(record[3], "."); found {
			c.Decimals = len(decimals)
		}
		decoded = append(decoded, c)
	}
	return decoded
})

// number reads a number; NaN stands for an empty field and for NA.
func number(text string) float64 {
	if text == "" || text == "NA" {
		return math.NaN()
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return value
}
