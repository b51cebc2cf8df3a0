package cifar

import (
	"errors"
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
	placeOfNLL  = 0   // in judgements
	placeOfECE  = 3
	compareSeed = 1
)

// judgedRun is what one run says of the test images, ready to be resampled.
type judgedRun struct {
	nll, brier, right []float64 // of each image
	outcomes          metrics.Outcomes
	ranks             *metrics.Ranks
	temperature       float64 // of the probabilities
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

// A contender is a row with what its runs say of the test images, by their seeds.
type contender struct {
	row
	runs map[uint64]*judgedRun
}

// A saying is the probabilities of the test images that predictions are judged by, nil for none, with their temperature.
type saying func(test *experiment.Prediction) (probabilities []float64, temperature float64, err error)

// plain are the probabilities as they were predicted.
func plain(test *experiment.Prediction) ([]float64, float64, error) {
	return test.Probabilities, 1, nil
}

// crossScaled are the probabilities at the temperature that is best for the other half of the images: those at even places
// have the one of those at odd places, and the other way round. The temperature is the mean of both. There are none if no
// temperature is best.
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

// contendersOf judges the predictions of the rows' runs. absent names runs whose predictions are not kept. Rows without
// any are left out, but for those all of whose runs diverged.
func contendersOf(rows []row, say saying) (all []contender, absent []string, err error) {
	var labels []int
	for _, r := range rows {
		c := contender{r, map[uint64]*judgedRun{}}
		for _, found := range r.found {
			p, err := found.Predictions()
			if errors.Is(err, experiment.ErrNoPredictions) {
				absent = append(absent, fmt.Sprintf("%s, seed %d", r.name, found.Seed))
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			test, err := p.Set(TestSet)
			if err != nil {
				return nil, nil, err
			}
			if labels == nil {
				labels = test.Labels
			}
			if !slices.Equal(test.Labels, labels) {
				return nil, nil, fmt.Errorf("the predictions of %v are of other test images than those of the other runs", *found.Experiment)
			}
			probabilities, temperature, err := say(test)
			if err != nil {
				return nil, nil, err
			}
			if probabilities == nil {
				continue
			}
			run, err := newJudgedRun(probabilities, test.Width, labels)
			if err != nil {
				return nil, nil, err
			}
			run.temperature = temperature
			c.runs[found.Seed] = run
		}
		if len(c.runs) > 0 || len(r.found) == 0 {
			all = append(all, c)
		}
	}
	return all, absent, nil
}

// A judgedRow is a contender with the seeds over which its numbers are averaged, and its cells by their judgements.
type judgedRow struct {
	contender
	seeds []uint64
	cells []report.Cell
}

// A judgedTest is the test of a judged cell, in the units and with the sign by which lower is better.
type judgedTest struct {
	metrics.Difference
	cell     *report.Cell
	sameSign bool // of the seeds
}

// against compares contenders with the reference among them, in the judgements at some places; the reference comes first.
// Without a reference there are none. Verdicts are those of the tests. If only one of two methods diverged, with some seed,
// the verdict is against it, without a test.
func against(all []contender, places ...int) (rows []judgedRow, tests []judgedTest, err error) {
	at := slices.IndexFunc(all, func(c contender) bool { return c.reference && len(c.runs) > 0 })
	if at < 0 {
		return nil, nil, nil
	}
	reference := all[at]
	all = slices.Insert(slices.Delete(slices.Clone(all), at, at+1), 0, reference)
	for i, c := range all {
		if c.made { // one ensemble stands beside each run of the reference
			run := c.runs[c.found[0].Seed]
			all[i].runs = map[uint64]*judgedRun{}
			for seed := range reference.runs {
				all[i].runs[seed] = run
			}
		}
	}
	drawn, err := resampled(all)
	if err != nil {
		return nil, nil, err
	}
	rows = make([]judgedRow, len(all))
	for i, c := range all {
		seeds := slices.Sorted(maps.Keys(c.runs))
		shared := slices.DeleteFunc(slices.Clone(seeds), func(seed uint64) bool { return reference.runs[seed] == nil })
		if len(shared) > 0 { // so that the difference is that of the numbers
			seeds = shared
		}
		rows[i] = judgedRow{c, seeds, make([]report.Cell, len(judgements))}
		for _, k := range places {
			j, cell := judgements[k], &rows[i].cells[k]
			cell.Text = "diverged"
			if len(seeds) > 0 {
				*cell = report.NumberCell(j.factor*drawn.mean(c, k, seeds), math.NaN(), j.decimals)
			}
			switch {
			case c.diverged() && !reference.diverged():
				cell.Verdict = report.Worse
			case reference.diverged() && !c.diverged():
				cell.Verdict = report.Better
			case i > 0 && len(shared) > 0:
				d, sameSign, err := drawn.difference(c, reference, k, shared)
				if err != nil {
					return nil, nil, fmt.Errorf("%s: %w", c.name, err)
				}
				cell.Difference = &metrics.Difference{Mean: j.factor * d.Mean, Low: j.factor * d.Low, High: j.factor * d.High, P: d.P}
				tests = append(tests, judgedTest{metrics.Difference{Mean: j.sign * d.Mean, P: d.P}, cell, sameSign})
			}
		}
	}
	return rows, tests, nil
}

// decide gives the cells of tests their verdicts, of all of them together. One of which the seeds disagree is undecided.
func decide(tests []judgedTest) error {
	var differences []metrics.Difference
	for _, t := range tests {
		differences = append(differences, t.Difference)
	}
	verdicts, err := report.Verdicts(differences, level)
	for i, verdict := range verdicts {
		tests[i].cell.Verdict = verdict
		if !tests[i].sameSign {
			tests[i].cell.Verdict = report.Undecided
		}
	}
	return err
}

// mean is the mean of a number over the runs; NaN if there are none.
func (r judgedRow) mean(of func(run *judgedRun) (float64, error)) (float64, error) {
	total := 0.0
	for _, seed := range r.seeds {
		value, err := of(r.runs[seed])
		if err != nil {
			return 0, fmt.Errorf("%s: %w", r.name, err)
		}
		total += value
	}
	return total / float64(len(r.seeds)), nil
}

// Differences compares methods with density uncertainty, image by image: those of each data set, by the settings of the
// text and of the authors' code, with each other.
func (c Comparison) Differences(x *tables.Index) (report.Table, error) {
	columns := []string{"Method", "Seeds"}
	places := make([]int, len(judgements))
	for k, j := range judgements {
		places[k], columns = k, append(columns, j.heading)
	}
	return c.judged(x, "-differences", plain, append(columns, "ECE floor"), places, func(r judgedRow) ([]report.Cell, error) {
		floor, err := r.mean(func(run *judgedRun) (float64, error) {
			return run.outcomes.ECEFloor(judgedBins, floorDraws, compareSeed)
		})
		return slices.Concat(report.TextCells(strings.Trim(fmt.Sprint(r.seeds), "[]")), r.cells, report.TextCells(number("%.4f", floor))), err
	})
}

// Temperatures compares methods after each got a temperature.
func (c Comparison) Temperatures(x *tables.Index) (report.Table, error) {
	columns := []string{"Method", "Temperature", "NLL before", "NLL after", "ECE before", "ECE after"}
	return c.judged(x, "-temperature", crossScaled, columns, []int{placeOfNLL, placeOfECE}, func(r judgedRow) ([]report.Cell, error) {
		temperature, err := r.mean(func(run *judgedRun) (float64, error) { return run.temperature, nil })
		before := func(metric string) report.Cell {
			var values []float64
			for _, found := range r.found {
				if slices.Contains(r.seeds, found.Seed) {
					values = append(values, found.Metrics[metric])
				}
			}
			return report.NumberCell(stat.Mean(values, nil), math.NaN(), 4)
		}
		return []report.Cell{
			{Text: number("%.2f", temperature)}, before(results.MetricNLL), r.cells[placeOfNLL], before(results.MetricECE), r.cells[placeOfECE],
		}, err
	})
}

// judged is a table of comparisons with density uncertainty by what say makes of the predictions. of makes a row's cells.
func (c Comparison) judged(x *tables.Index, part string, say saying, columns []string, places []int, of func(r judgedRow) ([]report.Cell, error)) (report.Table, error) {
	rows, _, err := c.rows(x)
	if err != nil {
		return report.Table{}, err
	}
	var judged []judgedRow
	var tests []judgedTest
	var absent []string
	for len(rows) > 0 {
		n := slices.IndexFunc(rows, func(r row) bool { return r.group != rows[0].group })
		if n < 0 {
			n = len(rows)
		}
		var made []judgedRow
		var added []judgedTest
		all, without, err := contendersOf(rows[:n], say)
		if err == nil {
			made, added, err = against(all, places...)
		}
		if err != nil {
			return report.Table{}, fmt.Errorf("cifar: comparing runs on %s: %w", rows[0].group, err)
		}
		rows, judged, tests, absent = rows[n:], append(judged, made...), append(tests, added...), append(absent, without...)
	}
	if err := decide(tests); err != nil {
		return report.Table{}, err
	}
	t := c.start(part, absent)
	t.Columns, t.Legend = columns, report.MarksAgainst(methods.Density.Name)
	for _, r := range judged {
		cells, err := of(r)
		if err != nil {
			return report.Table{}, fmt.Errorf("cifar: %w", err)
		}
		t.Rows = append(t.Rows, report.Row{Group: r.group, Name: r.name, Cells: cells})
	}
	return t, nil
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

// withEnsembles adds a result for each deep ensemble that can be made of the predictions of single networks: where the
// comparison has as many of them as methods.Ensemble has members, the result of that method's first seed. Its metrics are
// measured from the mean of their predictions. Ensembles that were trained as such stay as they are.
func (c Comparison) withEnsembles(x *tables.Index) (*tables.Index, error) {
	unwatched := x.Unwatched() // to look whether there is an ensemble is no use of a result
	for _, v := range c.variants {
		if v.only != nil {
			continue
		}
		for _, d := range []Images{ten, hundred} {
			members, _ := found(unwatched, list(v.preset, d, methods.EnsembleMembers, methods.Deterministic))
			e := list(v.preset, d, 1, methods.Ensemble)[0]
			if _, trained := unwatched.Find(e); trained || len(members) < methods.EnsembleMembers {
				continue
			}
			r, err := ensembleResult(e, members)
			if err != nil {
				return nil, fmt.Errorf("cifar: %w", err)
			}
			if r != nil {
				x = x.With(*r, members...)
			}
		}
	}
	return x, nil
}

// ensembleResult is the result of an ensemble of single networks; nil where their predictions are not kept.
func ensembleResult(e experiment.Experiment, networks []experiment.Result) (*experiment.Result, error) {
	var members []*experiment.Predictions
	for _, r := range networks {
		p, err := r.Predictions()
		if errors.Is(err, experiment.ErrNoPredictions) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		members = append(members, p)
	}
	p, err := mix(members)
	if err != nil {
		return nil, err
	}
	numbers, err := Scores(p)
	if err != nil {
		return nil, err
	}
	r := experiment.Result{ID: e.ID(), Group: e.Group(), Seed: e.Seed, Metrics: numbers}.With(p)
	return &r, nil
}

// draws are the judgements of all runs: over all images, and over the same resamples of them.
type draws struct {
	place     map[*judgedRun]int
	values    []float64   // [runs*judgements]
	resampled [][]float64 // [replicates][runs*judgements]
}

func resampled(list []contender) (*draws, error) {
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
	n := len(runs[0].right)
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
