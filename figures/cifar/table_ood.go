package tables

import (
	"slices"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/paper"
	"densityuncertainty/figures/predictions"
	"densityuncertainty/figures/results"
)

// OODSVHN is the paper's table of out-of-distribution detection with our numbers beside it, and columns
// of our own for sets that the paper does not use.
func OODSVHN(lines []results.Result) (Table, error) {
	all, err := inSets("ood-svhn", "cifar-gp")
	if err != nil {
		return Table{}, err
	}
	byID := index(lines)
	t := Table{
		Name: "ood-svhn",
		Caption: "Out-of-distribution detection with ResNet-14: area under the precision-recall curve, by the trapezoidal rule, and under the ROC curve; " +
			"the images that are out of distribution are the positive ones, and both test sets are used whole. " +
			"Ours: mean ± standard deviation over n seeds; " + imageSettings(all[0]) + ". " +
			"Energy: the squared distance of the energy of the last convolution's input from its mean over 5,000 training images that are held out, so these models are trained on 45,000. " +
			posteriorRemark(all[0]) +
			"Paper: its mean ± standard deviation over 3 seeds. " + unitOfImageDifference,
		Columns: []string{"Method", "Score",
			"CIFAR-10 → SVHN AUPRC", "CIFAR-10 → SVHN AUROC", "CIFAR-100 → SVHN AUPRC", "CIFAR-100 → SVHN AUROC",
			"CIFAR-10 → CIFAR-100 AUROC", "CIFAR-100 → CIFAR-10 AUROC", "CIFAR-10 → first 1083 of SVHN train, AUROC", "CIFAR-100 → first 1083 of SVHN train, AUROC"},
		Notes: []string{
			"The columns of SVHN need its official test part, test_32x32.mat, in the folder of data when the experiments run. Those that were run without it, with --without-svhn, say \"not measured\".",
			"A single network, the ensemble, SNGP and DUE are not in the paper's table. Besides the maximum probability that all methods share they are scored as their authors do: SNGP by the Dempster-Shafer uncertainty of its logits, " +
				"DUE by the entropy of its predictions, an ensemble by how far its members disagree. A temperature changes the order of the maximum probabilities by little, and has no row.",
			"\"First 1083 of SVHN train\" are the first 1,083 images of the training part. They are not the paper's set, and neighbours among them often are digits of one house number.",
		},
	}
	rows := scoredBy(predictions.ByMaxProbability, "maximum probability", fiveRows[:4]...)
	density := fiveRows[4]
	asBaselines := imageRow{title: "Density, as the baselines", method: density.method}
	density.heldOut = true
	single, ensemble, sngp, due := added(experiment.Deterministic), added(experiment.Ensemble), added(experiment.SNGP), added(experiment.DUE)
	rows = slices.Concat(rows,
		scoredBy(predictions.ByEnergy, "energy", density),
		scoredBy(predictions.ByMaxProbability, "maximum probability", asBaselines, single, ensemble),
		scoredBy(predictions.ByMutualInformation, "mutual information of label and member", ensemble),
		scoredBy(predictions.ByMaxProbability, "maximum probability", sngp),
		scoredBy(predictions.ByDempsterShafer, "Dempster-Shafer", sngp),
		scoredBy(predictions.ByMaxProbability, "maximum probability", due),
		scoredBy(predictions.ByEntropy, "entropy", due))
	for _, row := range rows {
		if err := t.addOOD(byID, all, row); err != nil {
			return Table{}, err
		}
	}
	return t, nil
}

// An oodRow is a method with the score by which it tells images out of distribution.
type oodRow struct {
	imageRow
	score string
}

// scoredBy are rows with one score, by its ending in the metrics' names and in words.
func scoredBy(ending, score string, rows ...imageRow) []oodRow {
	var all []oodRow
	for _, row := range rows {
		row.ending = ending
		all = append(all, oodRow{row, score})
	}
	return all
}

// addOOD adds a row.
func (t *Table) addOOD(byID lookup, all []experiment.Experiment, row oodRow) error {
	cells := []Cell{text(row.score)}
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
		wanted := row.among(experiment.Filter{Datasets: []string{column.dataset}}.Apply(all))
		ours, err := byID.average(wanted, "ood_"+column.other+"_"+column.metric+row.ending, true)
		if err != nil {
			return err
		}
		if column.published == "" || row.paper == "" {
			cells = append(cells, ours.lines(3))
			continue
		}
		theirs, _ := publishedIn(paper.OODSVHN, row.paper, column.published)
		cells = append(cells, compareBy(DifferenceUp, ours, theirs, "paper", 3))
	}
	t.Rows = append(t.Rows, Row{Name: row.title, Cells: cells})
	return nil
}
