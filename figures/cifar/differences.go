package cifar

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/predict"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
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

// differences compares methods with density uncertainty, image by image: those of each data set, by the paper's and by the
// released settings, with each other.
func (c comparison) differences(x *tables.Index) (report.Table, error) {
	t := report.Table{Columns: []string{"Data set", "Method", "Seeds"}}
	for _, j := range judgements {
		t.Columns = append(t.Columns, j.heading)
	}
	c.text(&t, "-differences")
	groups := c.groups(x)
	var absent []string
	for len(groups) > 0 {
		first := groups[0]
		dataset := first.imagesOf().Name
		var rivals []compared
		groups = slices.DeleteFunc(groups, func(g compared) bool {
			same := g.imagesOf().Name == dataset && g.variant.released == first.variant.released
			if same {
				rivals = append(rivals, g)
			}
			return same
		})
		list, images, without, err := contenders(rivals)
		if err == nil {
			absent = append(absent, without...)
			var rows []report.Row
			rows, err = comparedRows(dataset, list, images)
			t.Rows = append(t.Rows, rows...)
		}
		if err != nil {
			return report.Table{}, fmt.Errorf("cifar: comparing runs on %s: %w", dataset, err)
		}
	}
	if len(absent) > 0 {
		t.Notes = append(t.Notes, "Without predictions, and so not compared: "+strings.Join(absent, ", ")+".")
	}
	return t, nil
}

// contenders are the methods on a data set whose predictions are kept, density first, with the number of test images, and
// the names of the runs without predictions. Without predictions of density there are none.
func contenders(groups []compared) (found []contender, images int, absent []string, err error) {
	reference := slices.IndexFunc(groups, func(g compared) bool { return g.isReference() })
	if reference > 0 { // it comes first
		g := groups[reference]
		groups = slices.Insert(slices.Delete(groups, reference, reference+1), 0, g)
	}
	var labels []int
	compared := false // with the reference
	for i, g := range groups {
		plain := contender{g.title, map[uint64]*judgedRun{}}
		scaledRuns := contender{g.title + ", temperature scaled", map[uint64]*judgedRun{}}
		var members []*experiment.Predictions
		for _, r := range g.found {
			p, err := r.Predictions()
			if errors.Is(err, experiment.ErrNoPredictions) {
				absent = append(absent, fmt.Sprintf("%s, seed %d", g.title, r.Seed))
				continue
			}
			if err != nil {
				return nil, 0, nil, err
			}
			test, err := p.Set(TestSet)
			if err != nil {
				return nil, 0, nil, err
			}
			if labels == nil {
				labels = test.Labels
			}
			if !slices.Equal(test.Labels, labels) {
				return nil, 0, nil, fmt.Errorf("the predictions of %v are of other test images than those of the other runs", *r.Experiment)
			}
			if plain.runs[r.Seed], err = newJudgedRun(test.Probabilities, test.Width, labels); err != nil {
				return nil, 0, nil, err
			}
			probabilities, _, err := scaled(p)
			if err != nil {
				return nil, 0, nil, err
			}
			if probabilities != nil {
				if scaledRuns.runs[r.Seed], err = newJudgedRun(probabilities, test.Width, labels); err != nil {
					return nil, 0, nil, err
				}
			}
			members = append(members, p)
		}
		compared = compared || i == 0 && reference >= 0 && len(plain.runs) > 0
		for _, c := range []contender{plain, scaledRuns} {
			if len(c.runs) > 0 {
				found = append(found, c)
			}
		}
		if isPlain(g.Method) && len(members) > 1 {
			c, err := ensembleOf(members, g.variant.ending, plain.runs)
			if err != nil {
				return nil, 0, nil, err
			}
			found = append(found, c)
		}
	}
	if !compared {
		found = nil
	}
	return found, len(labels), absent, nil
}

// ensembleOf is the deep ensemble whose members are single networks, which stands beside each of these runs, by their
// seeds.
func ensembleOf(members []*experiment.Predictions, ending string, runs map[uint64]*judgedRun) (contender, error) {
	p, err := mix(members)
	if err != nil {
		return contender{}, err
	}
	run, err := newJudgedRun(p.Sets[0].Probabilities, p.Sets[0].Width, p.Sets[0].Labels)
	if err != nil {
		return contender{}, err
	}
	c := contender{fmt.Sprintf("Deep Ensemble, %d deterministic", len(members)) + ending, map[uint64]*judgedRun{}}
	for seed := range runs {
		c.runs[seed] = run
	}
	return c, nil
}

// mix are the predictions of the deep ensemble (Lakshminarayanan et al. 2017) of single networks without noise: the mean of
// their probabilities, and how far they disagree, on the test images and on those other sets whose probabilities all
// members have.
func mix(members []*experiment.Predictions) (*experiment.Predictions, error) {
	p := new(experiment.Predictions)
	for _, first := range members[0].Sets {
		var each [][]float64
		for _, member := range members {
			if s, err := member.Set(first.Set); err == nil && s.Probabilities != nil && slices.Equal(s.Labels, first.Labels) {
				each = append(each, s.Probabilities)
			}
		}
		if len(each) < len(members) || first.Set == HeldOutSet {
			continue
		}
		s := experiment.Prediction{Set: first.Set, Labels: first.Labels}
		s.Width = first.Width
		var err error
		if s.Probabilities, s.MutualInformation, err = predict.MixClasses(each, s.Width); err != nil {
			return nil, fmt.Errorf("the ensemble's predictions of %s: %w", first.Set, err)
		}
		p.Sets = append(p.Sets, s)
	}
	if len(p.Sets) == 0 || p.Sets[0].Set != TestSet {
		return nil, errors.New("the members of an ensemble have no predictions of the same test images")
	}
	return p, nil
}

// withEnsembles adds a result for each deep ensemble that can be made of the predictions of single networks: where a
// comparison has as many of them as methods.Ensemble has members, the result of that method's first seed. Its metrics are
// measured from the mean of their predictions, and its costs are those of all of them. Ensembles that were trained as such
// stay as they are.
func withEnsembles(x *tables.Index) (*tables.Index, error) {
	unwatched := x.Unwatched() // to look whether there is an ensemble is no use of a result
	for _, c := range comparisons {
		for _, v := range c.variants {
			if v.only != nil {
				continue
			}
			for _, d := range []Images{ten, hundred} {
				g := groupOf(unwatched, list(v.preset, d, methods.EnsembleMembers, methods.Deterministic))
				e := list(v.preset, d, 1, methods.Ensemble)[0]
				if _, trained := unwatched.Find(e); trained || len(g.found) < methods.EnsembleMembers {
					continue
				}
				r, err := ensembleResult(e, g)
				if err != nil {
					return nil, fmt.Errorf("cifar: %w", err)
				}
				if r != nil {
					x = x.With(*r, g.found...)
				}
			}
		}
	}
	return x, nil
}

// ensembleResult is the result of an ensemble of the runs of a group; nil where their predictions are not kept.
func ensembleResult(e experiment.Experiment, g group) (*experiment.Result, error) {
	var members []*experiment.Predictions
	var devices []string
	seconds := 0.0
	for _, r := range g.found {
		p, err := r.Predictions()
		if errors.Is(err, experiment.ErrNoPredictions) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		members, seconds = append(members, p), seconds+secondsPerEpoch(r)
		if !slices.Contains(devices, r.Device) {
			devices = append(devices, r.Device)
		}
	}
	p, err := mix(members)
	if err != nil {
		return nil, err
	}
	found, err := Scores(p)
	if err != nil {
		return nil, err
	}
	for _, cost := range []string{results.MetricParameters, results.MetricTrainingGFLOP} {
		found[cost] = floats.Sum(g.values(cost))
	}
	if found[results.MetricSecondsPerEpoch] = seconds; seconds == 0 {
		delete(found, results.MetricSecondsPerEpoch)
	}
	return &experiment.Result{ID: e.ID(), Group: e.Group(), Seed: e.Seed, Metrics: found, Device: strings.Join(devices, " and ")}, nil
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
	type test struct {
		cell     *report.Cell
		shown    metrics.Difference
		sameSign bool // of the seeds
		judgement
	}
	rows := make([]report.Row, len(list))
	var tests []test
	var tested []metrics.Difference
	for i, c := range list {
		seeds := slices.Sorted(maps.Keys(c.runs))
		shared := slices.DeleteFunc(slices.Clone(seeds), func(seed uint64) bool { return list[0].runs[seed] == nil })
		if len(shared) > 0 { // so that the difference is that of the numbers
			seeds = shared
		}
		rows[i] = report.Row{Name: titleOf(dataset), Cells: report.TextCells(c.title, strings.Trim(fmt.Sprint(seeds), "[]"))}
		rows[i].Cells = append(rows[i].Cells, make([]report.Cell, len(judgements))...)
		for k, j := range judgements {
			cell := &rows[i].Cells[2+k]
			*cell = report.TextCell(fmt.Sprintf("%.*f", j.decimals, j.factor*drawn.mean(c, k, seeds)))
			if k == placeOfECE {
				floor, err := c.floor(seeds)
				if err != nil {
					return nil, err
				}
				(*cell)[0].Text += fmt.Sprintf(" (floor %.4f)", floor)
			}
			if i == 0 || len(shared) == 0 {
				continue
			}
			d, sameSign, err := drawn.difference(c, list[0], k, shared)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.title, err)
			}
			tests = append(tests, test{cell, d, sameSign, j})
			tested = append(tested, metrics.Difference{Mean: j.sign * d.Mean, P: d.P})
		}
	}
	verdicts, err := report.Verdicts(tested, level)
	if err != nil {
		return nil, err
	}
	for i, t := range tests {
		if !t.sameSign {
			verdicts[i] = report.Undecided
		}
		*t.cell = append(*t.cell, report.CellLine{Bold: verdicts[i] == report.Better, Text: fmt.Sprintf("%+.*f [%+.*f, %+.*f], %s",
			t.decimals, t.factor*t.shown.Mean, t.decimals, t.factor*t.shown.Low, t.decimals, t.factor*t.shown.High, verdicts[i])})
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

// draws are the judgements of all runs: over all images, and over the same resamples of them.
type draws struct {
	place     map[*judgedRun]int
	values    []float64   // [runs*judgements]
	resampled [][]float64 // [replicates][runs*judgements]
}

func resampled(list []contender, n int) (*draws, error) {
	d := &draws{place: map[*judgedRun]int{}}
	var runs []*judgedRun
	for _, c := range list {
		for _, run := range c.runs {
			if _, has := d.place[run]; !has { // the run of an ensemble stands beside several seeds
				d.place[run], runs = len(runs), append(runs, run)
			}
		}
	}
	judge := func(indices []int) ([]float64, error) {
		var values []float64
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

// of is judgement k of a run among values.
func (d *draws) of(values []float64, run *judgedRun, k int) float64 {
	return values[d.place[run]*len(judgements)+k]
}

// mean is judgement k of a contender, over seeds.
func (d *draws) mean(c contender, k int, seeds []uint64) float64 {
	total := 0.0
	for _, seed := range seeds {
		total += d.of(d.values, c.runs[seed], k)
	}
	return total / float64(len(seeds))
}

// difference is that of judgement k of a contender from the reference, averaged over the seeds that both have. sameSign says
// whether it has the same sign for each of them.
func (d *draws) difference(c, reference contender, k int, seeds []uint64) (difference metrics.Difference, sameSign bool, err error) {
	of := func(values []float64, seed uint64) float64 {
		return d.of(values, c.runs[seed], k) - d.of(values, reference.runs[seed], k)
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
	sameSign = !slices.ContainsFunc(seeds[1:], func(seed uint64) bool { return of(d.values, seed)*of(d.values, seeds[0]) <= 0 })
	difference, err = metrics.BootstrapDifference(mean(d.values), spread, level)
	return difference, sameSign, err
}
