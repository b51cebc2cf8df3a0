package cifar

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/predict"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// comparedNumbers are the scores that are compared. If scaled, they are computed from crossScaled probabilities.
func comparedNumbers(scaled bool) []tables.Number {
	if scaled {
		return []tables.Number{nll, ece}
	}
	return []tables.Number{nll, brier, accuracy, ece, aurc}
}

const (
	comparedBins = 10  // of ECE
	floorDraws   = 200 // of its noise floor
	compareSeed  = 1
)

// comparedRun has the compared numbers of one run on the test images.
type comparedRun struct {
	values      []float64   // over all images, [comparedNumbers]
	resampled   [][]float64 // over resamples of the images, the same for all runs, [replicates][comparedNumbers]
	floor       float64     // the noise floor of its ECE; 0 of crossScaled ones
	temperature float64     // of its probabilities
}

// scaledEnding ends the names of the stored scores of probabilities that are crossScaled.
const scaledEnding = "_scaled"

// imageScores have what the compared numbers need of each image, instead of its probabilities.
type imageScores struct {
	nll, brier  []float64
	outcomes    metrics.Outcomes
	temperature float64 // of the probabilities
}

func newScores(probs []float64, classes int, labels []int, temperature float64) *imageScores {
	return &imageScores{metrics.CategoricalNLLs(probs, classes, labels), metrics.Briers(probs, classes, labels), metrics.NewOutcomes(probs, classes, labels), temperature}
}

// scoresAt are the scores of test images by their probabilities, crossScaled if scaled. They are nil if no temperature is
// best. With many classes the store has the scores, in PerExample, and no probabilities.
func scoresAt(test *experiment.Prediction, scaled bool) (*imageScores, error) {
	ending, probabilities, temperature := "", test.Probabilities, 1.0
	if scaled {
		ending = scaledEnding
	}
	if e := test.PerExample; test.Probabilities == nil && e["right"] != nil {
		if e["nll"+ending] == nil {
			return nil, nil
		}
		s := &imageScores{e["nll"+ending], e["brier"+ending], metrics.Outcomes{Confidence: e["confidence"+ending]}, e["temperature"+ending][0]}
		for _, right := range e["right"+ending] {
			s.outcomes.Right = append(s.outcomes.Right, right == 1)
		}
		return s, nil
	}
	if scaled {
		var err error
		if probabilities, temperature, err = crossScaled(test); probabilities == nil {
			return nil, err
		}
	}
	return newScores(probabilities, test.Width, test.Labels, temperature), nil
}

// compareRuns compares runs on the same test images.
func compareRuns(runs []*imageScores, scaled bool) ([]*comparedRun, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	ones := slices.Repeat([]float64{1}, len(runs[0].nll))
	var measures []func(counts []float64) []float64
	all, numbers := make([]*comparedRun, len(runs)), comparedNumbers(scaled)
	for r, s := range runs {
		if len(s.nll) != len(ones) {
			return nil, fmt.Errorf("%d test images are compared with %d", len(s.nll), len(ones))
		}
		right := make([]float64, len(ones))
		for i, is := range s.outcomes.Right {
			if is {
				right[i] = 1
			}
		}
		at := map[string]func(counts []float64) float64{
			nll.Name: metrics.MeanAt(s.nll), brier.Name: metrics.MeanAt(s.brier), accuracy.Name: metrics.MeanAt(right), ece.Name: s.outcomes.ECEAt(comparedBins),
			aurc.Name: s.outcomes.AURCAt(),
		}
		measure := func(counts []float64) (values []float64) {
			for _, n := range numbers {
				values = append(values, at[n.Name](counts))
			}
			return values
		}
		measures = append(measures, measure)
		if all[r] = (&comparedRun{values: measure(ones), temperature: s.temperature}); !scaled {
			all[r].floor = s.outcomes.ECEFloor(comparedBins, floorDraws, compareSeed)
		}
	}
	for _, values := range metrics.Replicates([]int{len(ones)}, replicates, compareSeed, func(counts []float64) (values []float64) {
		for _, measure := range measures {
			values = append(values, measure(counts)...)
		}
		return values
	}) {
		for r, of := range slices.Collect(slices.Chunk(values, len(numbers))) {
			all[r].resampled = append(all[r].resampled, of)
		}
	}
	return all, nil
}

// A comparedRow is a row with its runs, by their seeds.
type comparedRow struct {
	row
	runs  map[uint64]*comparedRun
	seeds []uint64      // over which its numbers are averaged
	cells []report.Cell // of the compared numbers
}

// mean is the mean of a number over the runs of the seeds; NaN if there are none.
func (c comparedRow) mean(of func(run *comparedRun) float64) float64 {
	total := 0.0
	for _, seed := range c.seeds {
		total += of(c.runs[seed])
	}
	return total / float64(len(c.seeds))
}

// difference subtracts the reference's number k from the row's. It is a mean over seeds that both have. sameSign
// says whether each seed gives the same sign.
func (c comparedRow) difference(reference comparedRow, k int, seeds []uint64) (difference metrics.Difference, sameSign bool) {
	n, first := float64(len(seeds)), c.runs[seeds[0]].values[k]-reference.runs[seeds[0]].values[k]
	mean, spread := 0.0, make([]float64, replicates)
	sameSign = true
	for i, seed := range seeds {
		ours, theirs := c.runs[seed], reference.runs[seed]
		d := ours.values[k] - theirs.values[k]
		mean += d
		sameSign = sameSign && (i == 0 || d*first > 0)
		for b := range spread {
			spread[b] += ours.resampled[b][k] - theirs.resampled[b][k]
		}
	}
	for b := range spread {
		spread[b] /= n
	}
	return metrics.BootstrapDifference(mean/n, spread, level), sameSign
}

// runsOf measures the predictions of the rows' runs, crossScaled if scaled, by the runs' IDs. Runs for which no temperature is
// best are left out. The error wraps experiment.ErrNoPredictions if predictions are not kept.
func runsOf(rows []row, scaled bool) (map[string]*comparedRun, error) {
	var ids []string
	var scores []*imageScores
	for _, r := range rows {
		for _, found := range r.found {
			p, err := found.Predictions()
			if err != nil {
				return nil, err
			}
			test, err := p.Set(TestSet)
			if err != nil {
				return nil, err
			}
			s, err := scoresAt(test, scaled)
			if err != nil {
				return nil, err
			}
			if s != nil {
				ids, scores = append(ids, found.ID), append(scores, s)
			}
		}
	}
	found, err := compareRuns(scores, scaled)
	byID := map[string]*comparedRun{}
	for i, run := range found {
		byID[ids[i]] = run
	}
	return byID, err
}

// crossScaled fits a temperature on each half of the images, those at even and those at odd places, and applies it to the
// other half. It returns the probabilities and the mean of both temperatures, or nil if no temperature is best.
func crossScaled(test *experiment.Prediction) ([]float64, float64, error) {
	var halves [2][]float64
	var labels [2][]int
	for i, label := range test.Labels {
		halves[i%2] = append(halves[i%2], test.Probabilities[i*test.Width:(i+1)*test.Width]...)
		labels[i%2] = append(labels[i%2], label)
	}
	probabilities, temperature := make([]float64, len(test.Probabilities)), 0.0
	for half := range halves {
		found, t, err := rescaled(halves[half], test.Width, halves[1-half], labels[1-half])
		if found == nil {
			return nil, 0, err
		}
		for i := range labels[half] {
			copy(probabilities[(2*i+half)*test.Width:], found[i*test.Width:(i+1)*test.Width])
		}
		temperature += t / 2
	}
	return probabilities, temperature, nil
}

// withRuns returns the rows with what runsOf measures. It leaves out a row if no temperature is best for any of its runs,
// and keeps a row if all its runs diverged.
func withRuns(x *tables.Index, rows []row, scaled bool) (all []comparedRow, err error) {
	type key struct {
		ids    string
		scaled bool
	}
	var ids []string
	for _, r := range rows {
		for _, found := range r.found {
			ids = append(ids, found.ID)
		}
	}
	runs, err := tables.Cached(x, key{strings.Join(ids, " "), scaled}, func() (map[string]*comparedRun, error) { return runsOf(rows, scaled) })
	for _, r := range rows {
		c := comparedRow{row: r, runs: map[uint64]*comparedRun{}}
		for _, found := range r.found {
			if run := runs[found.ID]; run != nil {
				c.runs[found.Seed] = run
			}
		}
		if len(c.runs) > 0 || len(r.found) == 0 {
			all = append(all, c)
		}
	}
	return all, err
}

// A comparedCell is a cell that is tested.
type comparedCell struct {
	cell     *report.Cell
	sameSign bool // of the seeds
}

// against compares rows with the reference among them by numbers; the reference comes first.
// Without a reference there are none. Verdicts come from the tests. If only one of two methods diverged, with some seed,
// the verdict is against it, without a test.
func against(family *tables.Family[comparedCell], all []comparedRow, numbers []tables.Number) (compared []comparedRow) {
	at := slices.IndexFunc(all, func(c comparedRow) bool { return c.reference && len(c.runs) > 0 })
	if at < 0 {
		return nil
	}
	reference := all[at]
	compared = slices.Insert(slices.Delete(slices.Clone(all), at, at+1), 0, reference)
	for i := range compared {
		c := &compared[i]
		if c.made { // one ensemble stands beside each run of the reference
			run := c.runs[c.found[0].Seed]
			c.runs = map[uint64]*comparedRun{}
			for seed := range reference.runs {
				c.runs[seed] = run
			}
		}
		c.seeds, c.cells = slices.Sorted(maps.Keys(c.runs)), make([]report.Cell, len(numbers))
		shared := slices.DeleteFunc(slices.Clone(c.seeds), func(seed uint64) bool { return reference.runs[seed] == nil })
		if len(shared) > 0 { // both means over the same seeds
			c.seeds = shared
		}
		for k, n := range numbers {
			cell := &c.cells[k]
			cell.Text = "diverged"
			if len(c.seeds) > 0 {
				*cell = report.Value{Mean: n.Shown(c.mean(func(run *comparedRun) float64 { return run.values[k] })), Std: math.NaN(), Decimals: n.Decimals}.Cell()
			}
			switch {
			case c.diverged() && !reference.diverged():
				cell.Verdict = report.Worse
			case reference.diverged() && !c.diverged():
				cell.Verdict = report.Better
			case i > 0 && len(shared) > 0:
				d, sameSign := c.difference(reference, k, shared)
				cell.Difference = &metrics.Difference{Mean: n.Shown(d.Mean), Low: n.Shown(d.Low), High: n.Shown(d.High), P: d.P}
				family.AddDifference(comparedCell{cell, sameSign}, *cell.Difference, n.Higher)
			}
		}
	}
	return compared
}

// processorDifferences compares methods with density uncertainty, image by image, on each data set, with the settings of the
// text and of the authors' code.
func processorDifferences(x *tables.Index) (report.Table, error) {
	columns := []string{"Method", "Seeds"}
	for _, n := range comparedNumbers(false) {
		columns = append(columns, n.Title)
	}
	return comparisonTable(x, "-differences", false, append(columns, "ECE floor"), func(c comparedRow) []report.Cell {
		floor := c.mean(func(run *comparedRun) float64 { return run.floor })
		return slices.Concat(report.TextCells(strings.Trim(fmt.Sprint(c.seeds), "[]")), c.cells, report.TextCells(number("%.4f", floor)))
	})
}

// processorTemperatures compares methods after each got a temperature.
func processorTemperatures(x *tables.Index) (report.Table, error) {
	columns := []string{"Method", "Temperature", "NLL before", "NLL after", "ECE before", "ECE after"}
	return comparisonTable(x, "-temperature", true, columns, func(c comparedRow) []report.Cell {
		temperature := c.mean(func(run *comparedRun) float64 { return run.temperature })
		before := func(metric string) report.Cell {
			var values []float64
			for _, found := range c.found {
				if slices.Contains(c.seeds, found.Seed) {
					values = append(values, found.Metrics[metric])
				}
			}
			return report.Value{Mean: stat.Mean(values, nil), Std: math.NaN(), Decimals: 4}.Cell()
		}
		return []report.Cell{
			{Text: number("%.2f", temperature)}, before(experiment.MetricNLL), c.cells[0], before(experiment.MetricECE), c.cells[1],
		}
	})
}

// comparisonTable compares methods with density uncertainty by their predictions, crossScaled if scaled. of makes a row's cells.
func comparisonTable(x *tables.Index, part string, scaled bool, columns []string, of func(c comparedRow) []report.Cell) (report.Table, error) {
	rows, x, err := comparedRows(x)
	if err != nil {
		return report.Table{}, err
	}
	var all []comparedRow
	var family tables.Family[comparedCell]
	for len(rows) > 0 {
		n := slices.IndexFunc(rows, func(r row) bool { return r.group != rows[0].group })
		if n < 0 {
			n = len(rows)
		}
		group, err := withRuns(x, rows[:n], scaled)
		if err != nil {
			return report.Table{}, fmt.Errorf("cifar: comparing runs on %s: %w", rows[0].group, err)
		}
		rows, all = rows[n:], append(all, against(&family, group, comparedNumbers(scaled))...)
	}
	for _, test := range family.Tests() {
		if test.Of.cell.Verdict = test.Verdict; !test.Of.sameSign { // the seeds disagree
			test.Of.cell.Verdict = report.NotSignificant
		}
	}
	t := comparedTable(part)
	t.Columns, t.Legend = columns, report.LegendAgainst(methods.Density.Name)
	for _, c := range all {
		t.Rows = append(t.Rows, report.Row{Group: c.group, Name: c.name, Cells: of(c)})
	}
	return t, nil
}

// mix are the predictions of the deep ensemble (Lakshminarayanan et al. 2017) of single networks without noise: the mean of
// their probabilities, and how far they disagree.
func mix(members []*experiment.Predictions) (*experiment.Predictions, error) {
	p := new(experiment.Predictions)
	for i, first := range members[0].Sets {
		if first.Set == HeldOutSet || first.Probabilities == nil {
			continue
		}
		var each []*predict.Prediction
		for _, member := range members {
			said := member.Sets[i].Prediction
			each = append(each, &predict.Prediction{Width: said.Width, Probabilities: said.Probabilities})
		}
		mixed, err := predict.Ensemble(each...)
		if err != nil {
			return nil, fmt.Errorf("the ensemble's predictions of %s: %w", first.Set, err)
		}
		p.Sets = append(p.Sets, experiment.Prediction{Set: first.Set, Labels: first.Labels, Prediction: *mixed})
	}
	return p, nil
}

// WithEnsemble adds a result for e, a deep ensemble, if e was not trained itself and methods.Ensemble.Members of the single
// networks have results. Its metrics are measured from the mean of their predictions.
func WithEnsemble(x *tables.Index, e experiment.Experiment, networks experiment.Experiments) (*tables.Index, error) {
	type key string
	members, _ := found(x, networks)
	if _, trained := x.Find(e); trained || len(members) < methods.Ensemble.Members {
		return x, nil
	}
	r, err := tables.Cached(x, key(e.ID()), func() (*experiment.Result, error) { return ensembleResult(e, members) })
	if err != nil {
		return nil, fmt.Errorf("cifar: %w", err)
	}
	return x.With(*r), nil
}

// ensembleResult is the result of an ensemble of single networks.
func ensembleResult(e experiment.Experiment, networks []experiment.Result) (*experiment.Result, error) {
	var members []*experiment.Predictions
	for _, r := range networks {
		p, err := r.Predictions()
		if err != nil {
			return nil, err
		}
		members = append(members, p)
	}
	p, err := mix(members)
	if err != nil {
		return nil, err
	}
	numbers, err := e.Measure(p)
	if err != nil {
		return nil, err
	}
	r := experiment.Result{ID: e.ID(), Group: e.Group(), Seed: e.Seed, Metrics: numbers}.With(p)
	return &r, nil
}
