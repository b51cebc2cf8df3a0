package tables

import (
	"math"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/paper"
	"densityuncertainty/figures/results"
)

// UCIPanel is one data set's row of a UCI table as numbers, for a picture.
type UCIPanel struct {
	Title   string
	Entries []UCIEntry // in the order of the table's columns
}

// UCIEntry is one method's numbers on one data set.
type UCIEntry struct {
	Method string
	Ours   Summary
	Paper  Published // Mean is NaN where the paper prints none
	Wanted int       // runs that the catalogue asks for at full scale
}

// UCIPanels returns the numbers of UCINLL (metric MetricNLL) or UCIRMSE (MetricRMSE).
func UCIPanels(lines []results.Result, metric string) ([]UCIPanel, error) {
	return uciPanels(lines, metric, uciColumns)
}

// uciPanels is UCIPanels with any methods.
func uciPanels(lines []results.Result, metric string, methods []string) ([]UCIPanel, error) {
	published := map[string]string{MetricNLL: paper.UCINLL, MetricRMSE: paper.UCIRMSE}[metric]
	byID := index(lines)
	var panels []UCIPanel
	for _, dataset := range tableDatasets() {
		panel := UCIPanel{Title: DatasetTitle(dataset)}
		for _, method := range methods {
			wanted := uciWanted(dataset, method)
			ours, err := byID.summarise(wanted, metric)
			if err != nil {
				return nil, err
			}
			theirs := Published{Mean: math.NaN(), Std: math.NaN()}
			if cell, ok := paper.UCICell(published, dataset, method); ok {
				theirs = Published{cell.Mean, cell.Std, cell.Decimals}
			}
			panel.Entries = append(panel.Entries, UCIEntry{Title(method), ours, theirs, len(experiment.Filter{Scale: experiment.Full}.Apply(wanted))})
		}
		panels = append(panels, panel)
	}
	return panels, nil
}
