package cifar

import (
	"slices"

	"densityuncertainty/figures/cifar/predictions"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/paper"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// scoreWords are the scores by which images are told from those in distribution, in words, by the endings of the
// metrics' names.
var scoreWords = map[string]string{
	predictions.ByMaxProbability: "maximum probability",
	predictions.ByEnergyOnce:     "energy of one sample",
	methods.ByEnergy:             "energy",
	methods.ByEntropy:            "entropy",
	methods.ByDempsterShafer:     "Dempster-Shafer",
	methods.ByMutualInformation:  "mutual information of label and sample",
	predictions.ByGaussian:       "Gaussian of the features",
	predictions.ByClassGaussian:  "Gaussian of each class",
}

// detectionMetric is the name of a metric of telling a set's images from those of the test set.
func detectionMetric(set, metric string) string { return "ood_" + set + "_" + metric }

// A detectionColumn is what one metric says of a classifier trained on a data set and shown images of another.
type detectionColumn struct {
	dataset, other, metric string
	published              string // the paper's name of the column; "" where it has none
	heading                string
}

var detectionColumns = []detectionColumn{
	{CIFAR10, svhnTest, "auprc", "CIFAR-10->SVHN AUPRC", "CIFAR-10 → SVHN AUPRC"},
	{CIFAR10, svhnTest, "auroc", "CIFAR-10->SVHN AUROC", "CIFAR-10 → SVHN AUROC"},
	{CIFAR100, svhnTest, "auprc", "CIFAR-100->SVHN AUPRC", "CIFAR-100 → SVHN AUPRC"},
	{CIFAR100, svhnTest, "auroc", "CIFAR-100->SVHN AUROC", "CIFAR-100 → SVHN AUROC"},
	{CIFAR10, CIFAR100, "auroc", "", "CIFAR-10 → CIFAR-100 AUROC"},
	{CIFAR100, CIFAR10, "auroc", "", "CIFAR-100 → CIFAR-10 AUROC"},
	{CIFAR10, svhnExcerpt, "auroc", "", "CIFAR-10 → first 1083 of SVHN train, AUROC"},
	{CIFAR100, svhnExcerpt, "auroc", "", "CIFAR-100 → first 1083 of SVHN train, AUROC"},
}

// processorColumns are of the protocol processor, and not compared with the paper's.
var processorColumns = []detectionColumn{
	{CIFAR10, CIFAR100, "auroc", "", "CIFAR-10 → CIFAR-100 AUROC, " + processorHeading},
	{CIFAR10, svhnExcerpt, "auroc", "", "CIFAR-10 → first 1083 of SVHN train, AUROC, " + processorHeading},
}

// detectionTable is the paper's table of out-of-distribution detection with our numbers beside it, columns of our own
// for sets that the paper does not use, and rows of further methods.
func detectionTable(lines []results.Result, further []methods.Method) (report.Table, error) {
	byID := results.ByID(lines)
	t := report.Table{Name: "ood-svhn", Columns: []string{"Method", "Score"}}
	t.Caption, t.Notes = prose.Text(t.Name, Paper(CIFAR10, ResNet14))
	for _, c := range detectionColumns {
		t.Columns = append(t.Columns, c.heading)
	}
	for _, c := range processorColumns {
		t.Columns = append(t.Columns, c.heading)
	}
	for _, row := range detectionRows(further) {
		made := report.Row{Name: row.title, Cells: report.TextCells(scoreWords[row.ending])}
		for _, c := range detectionColumns {
			ours, err := byID.SummarizeOptional(row.wanted(Paper(c.dataset, ResNet14)), detectionMetric(c.other, c.metric)+row.ending)
			if err != nil {
				return report.Table{}, err
			}
			if c.published == "" {
				row.paper = ""
			}
			made.Cells = append(made.Cells, row.compared(ours, paper.OODSVHN, measure{published: c.published, decimals: 3, judge: report.DifferenceUp}))
		}
		for _, c := range processorColumns {
			cell, err := row.processorCell(byID, Paper(c.dataset, ResNet14), methods.DecayAll, measure{metric: detectionMetric(c.other, c.metric), factor: 1, decimals: 3})
			if err != nil {
				return report.Table{}, err
			}
			made.Cells = append(made.Cells, cell)
		}
		t.Rows = append(t.Rows, made)
	}
	return t, nil
}

// detectionRows are the paper's, its method scored as the others too, and those of methods that the paper leaves out:
// by the maximum probability and by their own scores. A row's ending is that of its score.
func detectionRows(further []methods.Method) []row {
	rows := paperRows(methods.MFVI, methods.MCDropout, methods.VDropout, methods.Rank1)
	byEnergy := paperRow(methods.Density)
	byEnergy.change, byEnergy.ending = Protocol.WithHeldOut, methods.ByEnergy
	rows = append(rows, byEnergy, row{title: "Density, as the baselines", method: methods.Density})
	for _, m := range slices.Concat(singleNetworks, processes, further) {
		for _, score := range append([]string{predictions.ByMaxProbability}, m.Detects...) {
			added := addedRows(m)[0]
			added.ending = score
			if score == methods.ByEnergy || score == predictions.ByEnergyOnce {
				added.change = Protocol.WithHeldOut // the statistic's reference
			}
			rows = append(rows, added)
		}
	}
	return rows
}
