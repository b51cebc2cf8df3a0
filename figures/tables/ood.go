package tables

import (
	"fmt"
	"math"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/paper"
	"densityuncertainty/figures/results"
)

// OODSVHN is the paper's table of out-of-distribution detection with our numbers beside it, and columns
// of our own for sets that the paper does not use.
func OODSVHN(lines []results.Result) (Table, error) {
	set, ok := experiment.SetByName("ood-svhn")
	if !ok {
		return Table{}, fmt.Errorf("tables: the catalogue has no set ood-svhn")
	}
	byID := index(lines)
	t := Table{
		Name: "ood-svhn",
		Caption: "Out-of-distribution detection with ResNet-14: area under the precision-recall curve, by the trapezoidal rule, and under the ROC curve; " +
			"the images that are out of distribution are the positive ones, and both test sets are used whole. " +
			"Ours: mean ± standard deviation over n seeds; " + imageSettings(set.At(experiment.Full)[0]) + ". " +
			"Energy: the squared distance of the energy of the last convolution's input from its mean over 5,000 training images that are held out, so these models are trained on 45,000. " +
			posteriorRemark(set.At(experiment.Full)[0]) +
			"Paper: its mean ± standard deviation over 3 seeds. " + unitOfImageDifference,
		Columns: []string{"Method", "Score",
			"CIFAR-10 → SVHN AUPRC", "CIFAR-10 → SVHN AUROC", "CIFAR-100 → SVHN AUPRC", "CIFAR-100 → SVHN AUROC",
			"CIFAR-10 → CIFAR-100 AUROC", "CIFAR-100 → CIFAR-10 AUROC", "CIFAR-10 → first 1083 of SVHN train, AUROC", "CIFAR-100 → first 1083 of SVHN train, AUROC"},
		Notes: []string{
			"The columns of SVHN need its official test part, test_32x32.mat, in the folder of data when the experiments run. Those that were run without it, with --without-svhn, say \"not measured\".",
			"\"First 1083 of SVHN train\" are the first 1,083 images of the training part. They are not the paper's set, and neighbours among them often are digits of one house number.",
		},
	}
	for _, row := range fiveRows[:4] {
		if err := t.addOOD(byID, set, row, false, "", "maximum probability"); err != nil {
			return Table{}, err
		}
	}
	density := fiveRows[4]
	if err := t.addOOD(byID, set, density, true, "_energy", "energy"); err != nil {
		return Table{}, err
	}
	return t, t.addOOD(byID, set, imageRow{"Density, as the baselines", density.method, ""}, false, "", "maximum probability")
}

// addOOD adds the row of a method, scored by the predictions' score with that ending.
func (t *Table) addOOD(byID lookup, set experiment.Set, row imageRow, heldOut bool, ending, score string) error {
	cells := []Cell{text(score)}
	for _, column := range []struct{ dataset, other, metric, published string }{
		{experiment.CIFAR10, "svhn", "auprc", "CIFAR-10->SVHN AUPRC"},
		{experiment.CIFAR10, "svhn", "auroc", "CIFAR-10->SVHN AUROC"},
		{experiment.CIFAR100, "svhn", "auprc", "CIFAR-100->SVHN AUPRC"},
		{experiment.CIFAR100, "svhn", "auroc", "CIFAR-100->SVHN AUROC"},
		{experiment.CIFAR10, experiment.CIFAR100, "auroc", ""},
		{experiment.CIFAR100, experiment.CIFAR10, "auroc", ""},
		{experiment.CIFAR10, "svhn-first1083", "auroc", ""},
		{experiment.CIFAR100, "svhn-first1083", "auroc", ""},
	} {
		var wanted []experiment.Experiment
		for _, e := range row.among(experiment.Filter{Datasets: []string{column.dataset}}.Apply(set.Experiments)) {
			if e.Scale != experiment.Full || (e.HeldOut > 0) == heldOut {
				wanted = append(wanted, e)
			}
		}
		ours, err := byID.average(wanted, "ood_"+column.other+"_"+column.metric+ending, true)
		if err != nil {
			return err
		}
		if column.published == "" {
			cells = append(cells, ours.lines(3))
			continue
		}
		theirs, _ := publishedIn(paper.OODSVHN, row.title, column.published)
		if math.IsNaN(theirs.Mean) {
			cells = append(cells, ours.lines(3))
			continue
		}
		cells = append(cells, compareBy(DifferenceUp, ours, theirs, "paper", 3))
	}
	t.Rows = append(t.Rows, Row{Name: row.title, Cells: cells})
	return nil
}
