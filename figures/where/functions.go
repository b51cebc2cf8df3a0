package where

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
	"densityuncertainty/figures/toy"
	"densityuncertainty/figures/uci"
)

// The metrics of joint predictions, in nats for each target: of functions, and of independent draws, whose joint likelihood
// is the product of the marginal ones. Those of the cubic's gap begin with gapPrefix.
const metricJoint, metricMarginal, gapPrefix = "joint_nll", "marginal_nll", "gap_"

// functionSamples, dyadSize and dyadCount are the number of functions, and the size and number of groups for each split.
const functionSamples, dyadSize, dyadCount = 1000, 10, 200

// cubicSeeds is the number of data sets of the cubic.
const cubicSeeds = 20

// A jointProblem is a row of functionTable. Draws are functions.
type jointProblem struct {
	experiment.Grid
	data   experiment.Source
	prefix string // of its metrics
}

func jointProblems() []jointProblem {
	of := func(title string, preset experiment.Preset, data experiment.Source, metric experiment.Metric, prefix string) jointProblem {
		return jointProblem{experiment.Grid{Title: title, Preset: preset, Change: func(e *experiment.Experiment) {
			e.Preset, e.Recipe.Coherent, e.Recipe.SharedNoise, e.Task.Metrics = "where.Functions", true, false, []experiment.Metric{metric}
			drawing(functionSamples)(e)
		}}, data, prefix}
	}
	cubic := toy.Cubic{Seeds: cubicSeeds}
	all := []jointProblem{of("Cubic", toy.Paper, cubic, cubicJoint, ""), of("Cubic, in the gap", toy.Paper, cubic, cubicJoint, gapPrefix)}
	for _, dataset := range uci.SmallDatasets() {
		all = append(all, of(uci.DatasetTitle(dataset), uci.Paper, uci.Data{Name: dataset}, neighboursJoint, ""))
	}
	return all
}

// joint measures groups of a set's inputs, with a target for each time that an input is in one.
func joint(found map[string]float64, prefix string, s *experiment.Prediction, groups [][]int, unit float64, target func(input int) float64) {
	var targets []float64
	var places []int
	at := slices.Concat(groups...)
	for k, i := range at {
		targets, places = append(targets, target(i)), append(places, k)
	}
	take := func(all [][]float64) [][]float64 {
		taken := make([][]float64, len(all))
		for m, values := range all {
			for _, i := range at {
				taken[m] = append(taken[m], values[i])
			}
		}
		return taken
	}
	mean, variance := take(s.Mean), take(s.Variances())
	for metric, size := range map[string]int{metricJoint: dyadSize, metricMarginal: 1} {
		found[prefix+metric] = metrics.JointNLL(targets, mean, variance, slices.Collect(slices.Chunk(places, size)), unit)
	}
}

// cubicJoint measures dyads of grid points where the data are and between them, |x| <= 4, and of those in the gap, |x| < 2.
// Each of a dyad's inputs has a target of its own.
func cubicJoint(p *experiment.Predictions) (map[string]float64, error) {
	s, err := p.Set("grid")
	if err != nil {
		return nil, err
	}
	found, random := map[string]float64{}, rand.New(rand.NewPCG(uint64(p.Split), 1))
	for _, place := range []struct {
		prefix string
		end    float64
	}{{"", 4.001}, {gapPrefix, 1.999}} {
		var inside []int
		for i, x := range toy.Grid() {
			if math.Abs(x) < place.end {
				inside = append(inside, i)
			}
		}
		dyads := metrics.Dyads(len(inside), dyadSize, dyadCount, uint64(p.Split))
		for _, dyad := range dyads {
			for k, i := range dyad {
				dyad[k] = inside[i]
			}
		}
		joint(found, place.prefix, s, dyads, p.Unit, func(i int) float64 {
			x := toy.Grid()[i]
			return (x*x*x + toy.CubicNoise*random.NormFloat64() - p.Zero) / p.Unit
		})
	}
	return found, nil
}

// neighboursJoint measures dyads of test inputs, each with a single target: the k-th time that an anchor is drawn, its k-th
// nearest input takes its place.
func neighboursJoint(p *experiment.Predictions) (map[string]float64, error) {
	s, err := p.Set("test")
	if err != nil {
		return nil, err
	}
	data, err := p.Data(context.Background())
	if err != nil {
		return nil, err
	}
	found := map[string]float64{}
	joint(found, "", s, neighbours(data.Sets[0].Inputs.(nets.Floats), uint64(p.Split)), p.Unit, func(i int) float64 { return s.Targets[i] })
	return found, nil
}

// neighbours are dyads of inputs with neighbours for anchors that are drawn again, no input twice.
func neighbours(x nets.Floats, seed uint64) [][]int {
	groups := metrics.Dyads(x.Len(), dyadSize, dyadCount, seed)
	inputs := slices.Collect(slices.Chunk(x.Values, x.Size()))
	for _, group := range groups {
		taken := map[int]bool{}
		for t, anchor := range group {
			nearest := -1
			for i, input := range inputs {
				if !taken[i] && (nearest < 0 || floats.Distance(input, inputs[anchor], 2) < floats.Distance(inputs[nearest], inputs[anchor], 2)) {
					nearest = i
				}
			}
			group[t], taken[nearest] = nearest, true
		}
	}
	return groups
}

// The groups of rows of functionTable.
const groupJoint, groupGain = "joint NLL of functions", "functions minus independent draws"

// functionTable answers question 3: the joint negative log-likelihood of functions of each method, what it is more than with
// independent draws of the same network, and for density layers whether the difference is significant.
func functionTable(x *tables.Index) (report.Table, error) {
	return functionSheet(slices.Concat(compared, methods.AfterTraining(functionSamples))).Make(x)
}

// functionFigure draws the gains of density layers beside those of their mean-energy control, which are not tested.
func functionFigure(x *tables.Index) (report.Table, error) {
	s := functionSheet(compared[:2])
	for _, row := range s.Rows {
		if control, tested := row.Cells[1].(tables.Tested); tested {
			control.Family, control.NoVerdict = "control", false
			row.Cells[1] = control
		}
	}
	t, err := s.Make(x)
	for _, row := range t.Rows {
		row.Cells[1].Verdict = ""
	}
	return t, err
}

func functionSheet(list []experiment.Method) tables.Sheet {
	s := tables.Sheet{Table: prose.Table("where-functions", map[string]int{"Targets": dyadSize, "Draws": functionSamples})}
	s.Columns, s.Legend = []string{"Data"}, "▲ better, ▽ worse than independent draws, significant at 5% for the six UCI sets together, and for the cubic's rows. No mark: not significant, or not tested."
	for _, m := range list {
		s.Columns = append(s.Columns, m.Name)
	}
	var gains []tables.Row
	for _, p := range jointProblems() {
		var cells []tables.Cell
		gain := tables.Row{Group: groupGain, Name: p.Title}
		for _, m := range list {
			mean := tables.Number{Name: p.prefix + metricJoint, Decimals: 3}.Over(p.Of(p.data, m))
			tested := mean.Against(mean.Of)
			tested.Other.Name, tested.Shown = p.prefix+metricMarginal, true
			tested.Family, tested.NoVerdict = fmt.Sprintf("%T", p.data), !m.Equal(methods.Density) // UCI or the cubic
			mean.Best = "lowest"
			cells, gain.Cells = append(cells, mean), append(gain.Cells, tested)
		}
		s.Add(groupJoint, p.Title, cells...)
		gains = append(gains, gain)
	}
	s.Rows = append(s.Rows, gains...)
	return s
}
