package cifar

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/cifar/predictions"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// A judgement is a number by which predictions of test images are compared.
type judgement struct {
	heading  string
	factor   float64
	decimals int
	sign     float64 // -1 where higher is better
}

var judgements = []judgement{{"NLL", 1, 4, 1}, {"Brier", 1, 4, 1}, {"Accuracy (%)", 100, 2, -1}, {"ECE", 1, 4, 1}, {"AURC", 1, 4, 1}}

const (
	judgedBins  = 10  // of ECE
	floorDraws  = 200 // of its noise floor
	placeOfECE  = 3   // in judgements
	compareSeed = 1
)

// judgedRun is what one run says of the test images, ready to be resampled.
type judgedRun struct {
	nll, brier, right []float64 // of each image
	outcomes          metrics.Outcomes
	ranks             *metrics.Ranks
}

func newJudgedRun(probs []float64, classes int, labels []int) (*judgedRun, error) {
	r := new(judgedRun)
	var err error
	if r.nll, err = metrics.CategoricalNLLs(probs, classes, labels); err != nil {
		return nil, err
	}
	if r.brier, err = metrics.Briers(probs, classes, labels); err != nil {
		return nil, err
	}
	if r.outcomes, err = metrics.NewOutcomes(probs, classes, labels); err != nil {
		return nil, err
	}
	wrong := make([]bool, len(labels))
	r.right = make([]float64, len(labels))
	for i, right := range r.outcomes.Right {
		wrong[i] = !right
		if right {
			r.right[i] = 1
		}
	}
	r.ranks, err = metrics.NewRanks(r.outcomes.Confidence, wrong)
	return r, err
}

// at are the judgements over the images at indices.
func (r *judgedRun) at(indices []int) ([]float64, error) {
	values := make([]float64, 0, len(judgements))
	for _, each := range [][]float64{r.nll, r.brier, r.right} {
		mean, err := metrics.MeanAt(each)(indices)
		if err != nil {
			return nil, err
		}
		values = append(values, mean)
	}
	picked, err := r.outcomes.At(indices)
	if err != nil {
		return nil, err
	}
	ece, err := picked.ECE(judgedBins)
	if err != nil {
		return nil, err
	}
	sweep, err := r.ranks.Sweep(indices)
	if err != nil {
		return nil, err
	}
	return append(values, ece, sweep.AURC()), nil
}

// A contender is a method with its runs by their seeds.
type contender struct {
	title string
	runs  map[uint64]*judgedRun
}

// differences compares methods with density uncertainty, image by image: those of each data set and fidelity with each
// other.
func (c comparison) differences(lines []results.Result, further []methods.Method, kept report.Predictions) (report.Table, error) {
	t := report.Table{Columns: []string{"Data set", "Method", "Seeds"}}
	for _, j := range judgements {
		t.Columns = append(t.Columns, j.heading)
	}
	c.text(&t, "-differences")
	all := append(methods.All(), further...)
	groups := imageGroups(lines, c.Scale, all)
	var absent []string
	for len(groups) > 0 {
		first := groups[0].First
		var compared []results.Group
		groups = slices.DeleteFunc(groups, func(g results.Group) bool {
			same := g.First.Dataset == first.Dataset && g.First.Fidelity == first.Fidelity
			if same {
				compared = append(compared, g)
			}
			return same
		})
		list, labels, without, err := contenders(compared, all, kept)
		if err != nil {
			return report.Table{}, fmt.Errorf("cifar: comparing runs on %s: %w", first.Dataset, err)
		}
		absent = append(absent, without...)
		rows, err := comparedRows(first.Dataset, list, len(labels))
		if err != nil {
			return report.Table{}, fmt.Errorf("cifar: comparing runs on %s: %w", first.Dataset, err)
		}
		t.Rows = append(t.Rows, rows...)
	}
	if len(absent) > 0 {
		t.Notes = append(t.Notes, "Without predictions, and so not compared: "+strings.Join(absent, ", ")+".")
	}
	return t, nil
}

// contenders are the methods of groups of runs on a data set whose predictions are kept, density first, with the labels
// of the test images, and the names of the runs without predictions.
func contenders(groups []results.Group, list methods.List, kept report.Predictions) (found []contender, labels []int, absent []string, err error) {
	reference := referenceOf(groups)
	if reference > 0 { // it comes first
		g := groups[reference]
		groups = slices.Insert(slices.Delete(groups, reference, reference+1), 0, g)
	}
	compared := false // with the reference
	for i, g := range groups {
		name, option := comparedTitle(g.First, list)
		if slices.ContainsFunc(groups, func(other results.Group) bool {
			its, value := comparedTitle(other.First, list)
			return its == name && value != option
		}) {
			name += ", " + option
		}
		plain := contender{name, make(map[uint64]*judgedRun)}
		scaled := contender{name + ", temperature scaled", make(map[uint64]*judgedRun)}
		var members []*predictions.Predictions
		for _, line := range g.Lines {
			p, file, err := predictionsOf(line, kept)
			if err != nil {
				return nil, nil, nil, err
			}
			if p == nil {
				absent = append(absent, fmt.Sprintf("%s, seed %d", name, line.Experiment.Seed))
				continue
			}
			if labels == nil {
				labels = p.Labels
			}
			if !slices.Equal(p.Labels, labels) {
				return nil, nil, nil, fmt.Errorf("the predictions in %s are of other test images than those of the other runs", file)
			}
			if plain.runs[line.Experiment.Seed], err = newJudgedRun(p.Probs, p.Classes, labels); err != nil {
				return nil, nil, nil, err
			}
			probs, _, err := p.Scaled()
			if err != nil {
				return nil, nil, nil, err
			}
			if probs != nil {
				if scaled.runs[line.Experiment.Seed], err = newJudgedRun(probs, p.Classes, labels); err != nil {
					return nil, nil, nil, err
				}
			}
			members = append(members, p)
		}
		compared = compared || i == 0 && reference >= 0 && len(plain.runs) > 0
		for _, c := range []contender{plain, scaled} {
			if len(c.runs) > 0 {
				found = append(found, c)
			}
		}
		if g.First.Method == methods.Deterministic.Name && len(members) > 1 {
			c, err := ensembleOf(members, strings.TrimPrefix(name, list.Title(g.First.Method)), plain.runs)
			if err != nil {
				return nil, nil, nil, err
			}
			found = append(found, c)
		}
	}
	if !compared {
		return nil, labels, absent, nil
	}
	return found, labels, absent, nil
}

// predictionsOf reads what a run said of the images; nil where it is not kept. Those of another training of the experiment,
// whose likelihood is another than the line's, are an error.
func predictionsOf(line results.Result, kept report.Predictions) (p *predictions.Predictions, file string, err error) {
	file, has := kept(line.ID)
	if !has {
		return nil, "", nil
	}
	if p, err = predictions.ReadOf(file, line.ID); err != nil {
		return nil, "", err
	}
	nll, err := metrics.CategoricalNLL(p.Probs, p.Classes, p.Labels)
	if err != nil {
		return nil, "", fmt.Errorf("the predictions in %s: %w", file, err)
	}
	if want := line.Metrics[results.MetricNLL]; !predictions.Alike(nll, want) {
		return nil, "", fmt.Errorf("the predictions in %s have NLL %v, but the result line of %v %v: they are of another training; keep the predictions of a store beside it, or name one store only",
			file, nll, line.Experiment, want)
	}
	return p, file, nil
}

// ensembleOf is the deep ensemble whose members are single networks, which stands beside each of these runs, by their
// seeds. The variant is what follows the method's name in their title.
func ensembleOf(members []*predictions.Predictions, variant string, runs map[uint64]*judgedRun) (contender, error) {
	p, err := predictions.Ensemble(members...)
	if err != nil {
		return contender{}, err
	}
	run, err := newJudgedRun(p.Probs, p.Classes, p.Labels)
	if err != nil {
		return contender{}, err
	}
	c := contender{fmt.Sprintf("Deep Ensemble, %d deterministic", len(members)) + variant, make(map[uint64]*judgedRun)}
	for seed := range runs {
		c.runs[seed] = run
	}
	return c, nil
}

// withEnsembles adds a result for each deep ensemble that can be made of the predictions of single networks without
// noise: where a comparison has as many of them as methods.Ensemble has members, the result of that method's first seed.
// Its metrics are scored from the mean of their predictions, and its costs are those of all of them. Lines of ensembles
// that were trained as such stay as they are.
func withEnsembles(lines []results.Result, kept report.Predictions) ([]results.Result, error) {
	unwatched := results.Unwatched(lines) // to look whether there is an ensemble is no use of a line
	byID, there := results.ByID(lines), results.ByID(unwatched)
	for _, c := range comparisons {
		for _, g := range imageGroups(unwatched, c.Scale, methods.List{methods.Deterministic}) {
			if g.First.Method != methods.Deterministic.Name || len(g.Lines) < methods.EnsembleMembers {
				continue
			}
			p, err := ProtocolOf(g.First)
			if err != nil {
				return nil, err
			}
			p.Seeds = []uint64{0}
			made := results.Result{Experiment: p.Experiments(methods.Ensemble)[0]}
			if _, trained := there.Find(made.Experiment); trained {
				continue
			}
			made.ID = made.Experiment.ID()
			g.Lines = slices.SortedFunc(slices.Values(g.Lines), func(a, b results.Result) int { return cmp.Compare(a.Experiment.Seed, b.Experiment.Seed) })
			g.Lines = g.Lines[:methods.EnsembleMembers]
			if made.Metrics, made.Device, err = ensembleMetrics(g, kept); err != nil {
				return nil, fmt.Errorf("cifar: %w", err)
			}
			if made.Metrics == nil {
				continue
			}
			var members []results.Result
			for _, line := range g.Lines {
				members = append(members, byID[line.ID])
			}
			lines = append(slices.Clip(lines), made.MadeOf(members))
		}
	}
	return lines, nil
}

// ensembleMetrics are the metrics of the ensemble of the runs of a group, and the devices that these were trained on; nil
// where their predictions are not kept.
func ensembleMetrics(g results.Group, kept report.Predictions) (found map[string]float64, devices string, err error) {
	var members []*predictions.Predictions
	for _, line := range g.Lines {
		member, _, err := predictionsOf(line, kept)
		if err != nil || member == nil {
			return nil, "", err
		}
		members = append(members, member)
	}
	ensemble, err := predictions.Ensemble(members...)
	if err != nil {
		return nil, "", err
	}
	if found, err = predictions.Score(ensemble); err != nil {
		return nil, "", err
	}
	for _, cost := range []string{results.MetricParameters, results.MetricTrainingGFLOP, results.MetricSecondsPerEpoch} {
		if mean := meanOf(g, cost); !math.IsNaN(mean) {
			found[cost] = mean * methods.EnsembleMembers
		}
	}
	return found, strings.Join(distinct(g.Lines, func(line results.Result) string { return line.Device }), " and "), nil
}

// referenceOf is the place of the group that others are compared with: the paper's method with decay of all parameters
// and the value that is chosen for it or, if there is no such group, with the value of the first; -1 for none.
func referenceOf(groups []results.Group) int {
	of := func(chosen func(results.Experiment) bool) int {
		return slices.IndexFunc(groups, func(g results.Group) bool {
			return g.First.Method == methods.Density.Name && decaysAll(g.First) && chosen(g.First)
		})
	}
	if i := of(hasChosen); i >= 0 {
		return i
	}
	return of(func(results.Experiment) bool { return true })
}

// comparedRows are the rows of a data set with n test images: of the reference, which is the first, and of the others
// with their differences from it and the verdicts on these.
func comparedRows(dataset string, list []contender, n int) ([]report.Row, error) {
	if len(list) == 0 {
		return nil, nil
	}
	drawn, err := resampled(list, n)
	if err != nil {
		return nil, err
	}
	type place struct{ row, column int }
	var rows []report.Row
	var places []place
	var tested, shown []metrics.Difference
	disagree := make(map[int]bool) // tests whose seeds have different signs
	for i, c := range list {
		seeds := slices.Sorted(maps.Keys(c.runs))
		shared := slices.DeleteFunc(slices.Clone(seeds), func(seed uint64) bool { return list[0].runs[seed] == nil })
		if len(shared) > 0 { // so that the difference is that of the numbers
			seeds = shared
		}
		row := report.Row{Name: title(dataset), Cells: report.TextCells(c.title, strings.Trim(fmt.Sprint(seeds), "[]"))}
		for k, j := range judgements {
			cell := report.TextCell(fmt.Sprintf("%.*f", j.decimals, j.factor*drawn.mean(i, k, seeds)))
			if k == placeOfECE {
				floor, err := c.floor(seeds)
				if err != nil {
					return nil, err
				}
				cell[0].Text += fmt.Sprintf(" (floor %.4f)", floor)
			}
			row.Cells = append(row.Cells, cell)
			if i == 0 || len(shared) == 0 {
				continue
			}
			d, sameSign, err := drawn.difference(i, k, shared)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.title, err)
			}
			disagree[len(tested)] = !sameSign
			tested = append(tested, metrics.Difference{Mean: j.sign * d.Mean, P: d.P})
			shown, places = append(shown, d), append(places, place{i, k + 2})
		}
		rows = append(rows, row)
	}
	verdicts, err := report.Verdicts(tested, level)
	if err != nil {
		return nil, err
	}
	for i, at := range places {
		if disagree[i] {
			verdicts[i] = report.Undecided
		}
		j, d := judgements[at.column-2], shown[i]
		cell := &rows[at.row].Cells[at.column]
		*cell = append(*cell, report.CellLine{Bold: verdicts[i] == report.Better, Text: fmt.Sprintf("%+.*f [%+.*f, %+.*f], %s",
			j.decimals, j.factor*d.Mean, j.decimals, j.factor*d.Low, j.decimals, j.factor*d.High, verdicts[i])})
	}
	return rows, nil
}

// floor is the mean noise floor of ECE over runs.
func (c contender) floor(seeds []uint64) (float64, error) {
	total := 0.0
	for _, seed := range seeds {
		floor, err := c.runs[seed].outcomes.ECEFloor(judgedBins, floorDraws, compareSeed)
		if err != nil {
			return 0, fmt.Errorf("noise floor of %s: %w", c.title, err)
		}
		total += floor / float64(len(seeds))
	}
	return total, nil
}

// A runPlace is a run by its contender and seed.
type runPlace struct {
	contender int
	seed      uint64
}

// draws are the judgements of all runs: over all images, and over the same resamples of them.
type draws struct {
	place     map[runPlace]int
	values    []float64   // [runs*judgements]
	resampled [][]float64 // [replicates][runs*judgements]
}

func resampled(list []contender, n int) (*draws, error) {
	d := &draws{place: make(map[runPlace]int)}
	var runs []*judgedRun
	for i, c := range list {
		for seed, run := range c.runs {
			d.place[runPlace{i, seed}] = len(runs)
			runs = append(runs, run)
		}
	}
	judge := func(indices []int) ([]float64, error) {
		values := make([]float64, 0, len(runs)*len(judgements))
		for _, run := range runs {
			of, err := run.at(indices)
			if err != nil {
				return nil, err
			}
			values = append(values, of...)
		}
		return values, nil
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	var err error
	if d.values, err = judge(all); err != nil {
		return nil, err
	}
	d.resampled, err = metrics.Replicates([]int{n}, replicates, compareSeed, judge)
	return d, err
}

// at is the place of judgement k of a run.
func (d *draws) at(contender, k int, seed uint64) int {
	return d.place[runPlace{contender, seed}]*len(judgements) + k
}

// mean is judgement k of a contender, over seeds.
func (d *draws) mean(contender, k int, seeds []uint64) float64 {
	total := 0.0
	for _, seed := range seeds {
		total += d.values[d.at(contender, k, seed)]
	}
	return total / float64(len(seeds))
}

// difference is that of judgement k of a contender from the reference's, which is the first, averaged over the seeds
// that both have; sameSign says whether it has the same sign for each of them.
func (d *draws) difference(contender, k int, seeds []uint64) (difference metrics.Difference, sameSign bool, err error) {
	of := func(values []float64, seed uint64) float64 {
		return values[d.at(contender, k, seed)] - values[d.at(0, k, seed)]
	}
	mean := func(values []float64) float64 {
		total := 0.0
		for _, seed := range seeds {
			total += of(values, seed)
		}
		return total / float64(len(seeds))
	}
	spread := make([]float64, len(d.resampled))
	for b, values := range d.resampled {
		spread[b] = mean(values)
	}
	sameSign = true
	for _, seed := range seeds[1:] {
		sameSign = sameSign && of(d.values, seed)*of(d.values, seeds[0]) > 0
	}
	difference, err = metrics.BootstrapDifference(mean(d.values), spread, level)
	return difference, sameSign, err
}
