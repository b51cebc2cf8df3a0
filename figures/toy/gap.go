package toy

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// meanWhere is the mean of the values at those x whose distance from 0 is from low to high.
func meanWhere(x, values []float64, low, high float64) float64 {
	var inside []float64
	for i, v := range x {
		if a := math.Abs(v); a >= low && a <= high {
			inside = append(inside, values[i])
		}
	}
	return stat.Mean(inside, nil)
}

// gapRatio measures what Figure 1 shows: the mean predictive standard deviation in the middle of the gap
// without data, x in [-1, 1], over that where the data are, x in [-4, -2] and [2, 4]. Above 1 the model is
// less certain where it has seen nothing. x and std are the series of a toy result, not of a function without spread.
func gapRatio(x, std []float64) float64 { return meanWhere(x, std, 0, 1) / meanWhere(x, std, 2, 4) }

// gapCoverage is the part of the inputs in the gap, |x| < 2, where x^3 is between the curves low and high.
func gapCoverage(x, low, high []float64) float64 {
	inside, all := 0.0, 0.0
	for i, v := range x {
		if math.Abs(v) < 2 {
			all++
			if cube := v * v * v; low[i] <= cube && cube <= high[i] {
				inside++
			}
		}
	}
	return inside / all
}

// gapRow is a row of the table of gap ratios.
type gapRow struct {
	methods.Method
	picture string // what the paper's Figure 1 shows of the method
}

// gapRows are those of the runs of Figure 1.
func gapRows() []gapRow {
	return []gapRow{
		{methods.MFVI, "collapsed in the gap"},
		{methods.VDropout, "flat"},
		{methods.Rank1, "flat"},
		{methods.Density.Variant(methods.Density.Title+" (LDL)", nil), "wider in the gap"},
		{clipped(methods.Density.Title + " (LDL, energy clipped)"), "–"},
		{methods.DensityMixture, "–"},
		{methods.DensityMean.Variant(methods.Density.Title+" (LDL, mean energy)", nil), "–"},
		{methods.DensityConstant, "–"},
	}
}

// gapSeeds are the seeds of the table of gap ratios; figures show one of the protocol's.
const gapSeeds = 20

// Drawn says whether an experiment is one that figures show, and so needs its curves.
func Drawn(e results.Experiment) bool { return slices.Contains(Cubic().Seeds, e.Seed) }

// manySeeds is the protocol with the seeds of the table of gap ratios.
func manySeeds(p Protocol) Protocol {
	p.Seeds = nil
	for seed := range uint64(gapSeeds) {
		p.Seeds = append(p.Seeds, seed)
	}
	return p
}

// Tables are the tables of the study. Further methods, such as one's own, get rows in those that compare all
// methods.
func Tables(further ...methods.Method) []report.NamedTable {
	return []report.NamedTable{
		{Name: "gap-ratio", Doc: "Figure 1 in numbers: uncertainty inside the gap over that at the data", Make: func(lines []results.Result) (report.Table, error) {
			return GapRatios(lines, further...)
		}},
	}
}

// GapRatios is Figure 1 in numbers: a row for each method, further ones too, with what its uncertainty does in the gap.
func GapRatios(lines []results.Result, further ...methods.Method) (report.Table, error) {
	p := Cubic()
	t := report.Table{
		Name: "gap-ratio",
		Caption: fmt.Sprintf("Figure 1 in numbers, mean ± standard deviation over n seeds. Gap ratio: mean standard deviation of the function on [-1, 1], where there are no data, over that on [-4, -2] and [2, 4], where they are; "+
			"above 1 the model is less certain in the gap. The paper prints pictures and no numbers; flat would be about 1. Truth in the band: part of the gap, |x| < 2, where the cube of x is inside the central 95 %% of the draws. "+
			"Settings paper, as far as the text goes; %d gradient steps and %d samples are not in it. Clipping limits the energy to [0, D] with D = 1 in the hidden layer and 50 in the output layer. Two controls: with the mean energy there is as much noise on average, the same for every input; "+
			"with the constant one, D/2, it follows nothing either.", p.Steps, p.Samples),
		Columns: []string{"Method", "The paper's picture", "Gap ratio", "Seeds with a ratio above 1", "Truth in the band"},
	}
	rows := gapRows()
	for _, m := range further {
		rows = append(rows, gapRow{m, "–"})
	}
	index := results.ByID(lines)
	for _, r := range rows {
		runs := manySeeds(p).Experiments(r.Method)
		runs = append(runs, p.Quick().Experiments(r.Method)...)
		ratio, err := ratiosOf(index, runs)
		if err != nil {
			return report.Table{}, err
		}
		coverage, err := index.SummarizeOptional(runs, results.MetricGapCoverage)
		if err != nil {
			return report.Table{}, err
		}
		count := report.TextCell("–")
		if ratio.N > 0 {
			count = report.TextCell(fmt.Sprintf("%d of %d", ratio.above(), ratio.N))
		}
		t.Rows = append(t.Rows, report.Row{Name: r.Title, Cells: []report.Cell{
			report.TextCell(r.picture), report.SummaryCell(ratio.Summary, 2), count, report.SummaryCell(coverage, 2),
		}})
	}
	return t, nil
}

// gapRatios are those of some runs of a method.
type gapRatios struct {
	results.Summary
	values []float64 // one for each run of the summary
}

// above is how many of them are above 1.
func (r gapRatios) above() (n int) {
	for _, ratio := range r.values {
		if ratio > 1 {
			n++
		}
	}
	return n
}

// ratiosOf are the gap ratios of those of the runs that the summary is about.
func ratiosOf(index results.Index, runs []results.Experiment) (r gapRatios, err error) {
	if r.Summary, err = index.SummarizeOptional(runs, results.MetricGapRatio); err != nil {
		return r, err
	}
	for _, e := range (results.Filter{Scale: r.Scale}).Apply(runs) {
		line, _ := index.Find(e)
		if ratio, measured := line.Metrics[results.MetricGapRatio]; measured && !line.Diverged {
			r.values = append(r.values, ratio)
		}
	}
	return r, nil
}

// beyond is from where on the cubic's inputs are outside of its data, which end at 4.
const beyond = 5

// DistanceTable puts the pictures DistanceCubic and DistanceMoons into
// numbers, from their full-scale lines: for each method the mean
// entropy at the data of two moons and far away from them, and on the cubic the
// mean standard deviation of the function in the gap, |x| <= 1, and outside,
// |x| >= 5, over that at the data (see gapRatio). Each cell has the mean and
// the range over the seeds. Further methods have rows of their own.
func DistanceTable(lines []results.Result, further ...methods.Method) (report.Table, error) {
	t := report.Table{
		Name: "distance",
		Caption: "Mean over three seeds, and their range; settings paper. Two moons: mean entropy of the predictions in nats, at most 0.693, at the training data and at least 1 away from all of them. " +
			"Cubic: mean standard deviation of the function in the gap and beyond the ends of the data, over that at the data.",
		Columns: []string{"Method", "moons: at data", "moons: far away", "cubic: gap / data", "cubic: beyond / data"},
	}
	index := results.ByID(lines)
	for _, m := range append(DistanceMethods(), further...) {
		atData, far := seedValues(index, Moons(), m, func(line results.Result) (a, b float64, has bool) {
			return line.Metrics[results.MetricEntropyData], line.Metrics[results.MetricEntropyFar], true
		})
		gap, outside := seedValues(index, Cubic(), m, gapAndBeyond)
		row := report.Row{Name: m.Title}
		for i, values := range [][]float64{atData, far, gap, outside} {
			cell := "no spread"
			switch {
			case values == nil:
				cell = "not run"
			case slices.ContainsFunc(values, math.IsNaN):
				cell = "diverged"
			case len(values) > 0:
				decimals := 3
				if i >= 2 {
					decimals = 1
				}
				cell = fmt.Sprintf("%.*f (%.*f to %.*f)", decimals, stat.Mean(values, nil), decimals, slices.Min(values), decimals, slices.Max(values))
			}
			row.Cells = append(row.Cells, report.TextCell(cell))
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

// seedValues are two numbers of each of a method's full-scale lines that have them, NaN of one that diverged; nil where
// a line is missing.
func seedValues(index results.Index, p Protocol, m methods.Method, of func(results.Result) (a, b float64, has bool)) (as, bs []float64) {
	as, bs = []float64{}, []float64{}
	for _, e := range p.Experiments(m) {
		line, done := index.Find(e)
		switch {
		case !done:
			return nil, nil
		case line.Diverged:
			as, bs = append(as, math.NaN()), append(bs, math.NaN())
			continue
		}
		if a, b, has := of(line); has {
			as, bs = append(as, a), append(bs, b)
		}
	}
	return as, bs
}

// gapAndBeyond are the standard deviations in the gap and beyond the data over that at the data; a function without
// spread has none.
func gapAndBeyond(line results.Result) (gap, outside float64, has bool) {
	x, std := line.Series[results.SeriesX], line.Series[results.SeriesStd]
	if len(std) == 0 || len(std) != len(x) || slices.Max(std) == 0 {
		return 0, 0, false
	}
	return gapRatio(x, std), meanWhere(x, std, beyond, math.Inf(1)) / meanWhere(x, std, 2, 4), true
}
