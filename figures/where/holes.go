package where

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"

	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
	"densityuncertainty/figures/uci"
)

// holeDatasets are the data sets of question 11. The two loads of Energy are one set of inputs.
var holeDatasets = append(uci.SmallDatasets(), "kin8nm", "protein")

// holeGrids are the settings of question 11.
var holeGrids = gapGrids[1:]

// holeSeeds is the number of seeds of each hole of a data set.
func holeSeeds(dataset string) int {
	switch dataset {
	case "kin8nm":
		return 5
	case "protein":
		return 3
	}
	return 10
}

// places and placesMean are the methods of question 13, which it compares with methods.Density.
var places, placesMean = locationMixture("density-locations", "Density, location mixture", false), locationMixture("density-locations-mean", "Density, location mixture, mean energy", true)

func locationMixture(key, name string, mean bool) experiment.Method {
	return experiment.Method{Key: key, Name: name, Layers: dul.Density{Energy: energy.LocationMixture{Components: 16}, MeanEnergy: mean}}
}

// lowHoles are the numbers of the holes of a data set to which one Gaussian gives less than average energy.
func lowHoles(dataset string) (all []int) {
	for k, h := range (uci.Data{Name: dataset, Kind: uci.Hole}).Measured() {
		if h.Energy < 1 {
			all = append(all, k)
		}
	}
	return all
}

// placesRuns are the experiments of question 13 on the low holes.
func placesRuns() (all experiment.Experiments) {
	for _, dataset := range holeDatasets {
		for _, m := range []experiment.Method{places, placesMean} {
			all = append(all, runs(holeGrids[1], uci.Data{Name: dataset, Kind: uci.Hole}, m).OnSplits(lowHoles(dataset)...)...)
		}
	}
	return all
}

// correlations are the rank correlations of differences with a measure, of each set.
func correlations(sets [][]measuredSplit, measure func(m measuredSplit) float64) (list []float64) {
	for _, set := range sets {
		list = append(list, metrics.Spearman(valuesOf(set, measure), valuesOf(set, difference)))
	}
	return list
}

// permutations are drawn for a p, and leastSets of the sets must have the sign of the mean that is decided.
const permutations, leastSets = 10000, 5

// together is the mean of the sets' rank correlations, with its bootstrap interval over sets, and the two-sided p of permutations of
// the differences within each set. It is 1 if fewer than leastSets have the sign of the mean.
func together(sets [][]measuredSplit, measure func(m measuredSplit) float64) (d metrics.Difference) {
	of := correlations(sets, measure)
	d.Mean = stat.Mean(of, nil)
	d.Low, d.High = metrics.Bootstrap([]int{len(of)}, bootstrapDraws, bootstrapSeed, tables.Confidence, metrics.MeanAt(of))
	if agree := lower(of); d.Mean < 0 && agree < leastSets || d.Mean >= 0 && len(of)-agree < leastSets {
		d.P = 1
		return d
	}
	random, shuffled, farther := rand.New(rand.NewPCG(bootstrapSeed, 0)), []float64(nil), 1
	var measured, differences [][]float64 // ranks, which a permutation keeps
	for _, set := range sets {
		measured, differences = append(measured, metrics.Midranks(valuesOf(set, measure))), append(differences, metrics.Midranks(valuesOf(set, difference)))
	}
	for range permutations {
		for i, ranks := range differences {
			shuffled = append(shuffled[:0], ranks...)
			random.Shuffle(len(ranks), func(a, b int) { shuffled[a], shuffled[b] = shuffled[b], shuffled[a] })
			of[i] = stat.Correlation(measured[i], shuffled, nil)
		}
		if math.Abs(stat.Mean(of, nil)) >= math.Abs(d.Mean)-1e-12 {
			farther++
		}
	}
	d.P = float64(farther) / (permutations + 1)
	return d
}

// holesTable answers question 11: for each setting and set of inputs the rank correlations, over its holes, of differences with the
// holes' distance and energy, their means (tested for the difference to the mean energy) and the medians.
func holesTable(x *tables.Index) (report.Table, error) {
	s := tables.Sheet{Table: prose.Table("where-holes", map[string]int{"Permutations": permutations, "Least": leastSets}), Down: true}
	s.Legend = "▲ density gains with it, ▽ it loses, significant at 5% for the four tests together. No mark: not significant, or not tested."
	return holesAgainst(x, s, []holeComparison{{"NLL less mean energy", methods.DensityMean, false}, {"NLL less constant", methods.DensityConstant, false}, {"NLL less MC dropout", methods.MCDropout, false}, {"width over mean energy", methods.DensityMean, true}})
}

// holeMethodsTable is the same against methods that were added after question 11 was answered, which are not tested.
func holeMethodsTable(x *tables.Index) (report.Table, error) {
	s := tables.Sheet{Table: prose.Table("where-holes-methods", nil), Down: true}
	return holesAgainst(x, s, []holeComparison{{"NLL less Laplace", methods.Laplace, false}, {"NLL less SWAG", methods.SWAG, false}})
}

// A holeComparison is density layers against another method, by the test NLL or by their widths.
type holeComparison struct {
	title  string
	of     experiment.Method
	widths bool
}

// holesAgainst has three columns for each comparison: the median, and the rank correlations with distance and energy. Widths have
// no median.
func holesAgainst(x *tables.Index, s tables.Sheet, compared []holeComparison) (report.Table, error) {
	s.Columns = []string{"Data set"}
	measures := []struct {
		title string
		of    func(m measuredSplit) float64
	}{{"distance", distance}, {"energy", gaussianEnergy}}
	for _, c := range compared {
		if !c.widths {
			s.Columns = append(s.Columns, c.title)
		}
		for _, measure := range measures {
			s.Columns = append(s.Columns, c.title+", "+measure.title)
		}
	}
	var names []string
	for _, dataset := range holeDatasets {
		if name := uci.DatasetTitle(dataset); dataset == heating {
			names = append(names, bothLoads)
		} else if dataset != cooling {
			names = append(names, name)
		}
	}
	for _, setting := range holeGrids {
		rows := make([][]tables.Cell, len(names)+1)
		for _, c := range compared {
			of := comparison{setting, uci.Hole, methods.Density, c.of, c.widths}
			sets := of.ofInputs(x, holeDatasets...)
			missing := slices.ContainsFunc(sets, func(set []measuredSplit) bool { return len(set) < 3 })
			add := func(format string, ofSets []float64, all tables.Cell) {
				for i, value := range ofSets {
					cell := tables.Words(format, value)
					if len(sets[i]) < 3 {
						cell = tables.Done{NotRun: true}
					}
					rows[i] = append(rows[i], cell)
				}
				if missing {
					all = tables.Done{NotRun: true}
				}
				rows[len(names)] = append(rows[len(names)], all)
			}
			if !c.widths {
				var medians []float64
				for _, set := range sets {
					medians = append(medians, middle(valuesOf(set, difference)))
				}
				add("%+.3f", medians, tables.Difference{Difference: overSets(sets), NoVerdict: true})
			}
			for _, measure := range measures {
				add("%+.2f", correlations(sets, measure.of), tables.Difference{Difference: together(sets, measure.of), Family: "question 11", NoVerdict: c.of.Key != methods.DensityMean.Key || c.widths})
			}
		}
		for i, name := range append(names[:len(names):len(names)], "All sets") {
			s.Add(setting.Title, name, rows[i]...)
		}
	}
	return s.Make(x)
}

// middle is the median, NaN of no values.
func middle(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	m, _, _ := metrics.MedianInterval(values, tables.Confidence, 1, 0)
	return m
}

// overSets is the median of the differences of all sets, with a bootstrap interval that draws sets.
func overSets(sets [][]measuredSplit) (d metrics.Difference) {
	of := func(counts []float64) float64 {
		var list []float64
		for i, count := range counts {
			list = append(list, slices.Repeat(valuesOf(sets[i], difference), int(count))...)
		}
		return middle(list)
	}
	d.Mean = of(slices.Repeat([]float64{1}, len(sets)))
	d.Low, d.High = metrics.Bootstrap([]int{len(sets)}, bootstrapDraws, bootstrapSeed, tables.Confidence, of)
	return d
}

// placesTable answers question 13 b: on the low holes the differences of the location mixture to LDL and to its own mean energy.
func placesTable(x *tables.Index) (report.Table, error) {
	s := tables.Sheet{Table: prose.Table("where-holes-places", nil), Down: true}
	s.Columns = []string{"Method", "NLL less density", "Lower", "NLL less its mean energy", "Lower ", "Wider than its mean energy"}
	for _, of := range [][2]experiment.Method{{places, placesMean}, {methods.Density, methods.DensityMean}} {
		var cells []tables.Cell
		add := func(control experiment.Method, widths bool) {
			sets := comparison{holeGrids[1], uci.Hole, of[0], control, widths}.ofInputs(x, holeDatasets...)
			for i, set := range sets {
				sets[i] = slices.DeleteFunc(set, func(m measuredSplit) bool { return m.Energy >= 1 })
			}
			all := valuesOf(slices.Concat(sets...), difference)
			share := tables.Words("%d of %d", lower(all), len(all))
			switch {
			case slices.ContainsFunc(sets, func(set []measuredSplit) bool { return len(set) == 0 }):
				cells = append(cells, tables.Done{NotRun: true})
				if !widths {
					cells = append(cells, tables.Done{NotRun: true})
				}
			case widths:
				cells = append(cells, tables.Words("%d of %d", len(all)-lower(all), len(all)))
			default:
				cells = append(cells, tables.Difference{Difference: overSets(sets), NoVerdict: true}, share)
			}
		}
		if of[0].Equal(methods.Density) {
			cells = append(cells, tables.Words("–"), tables.Words("–"))
		} else {
			add(methods.Density, false)
		}
		add(of[1], false)
		add(of[1], true)
		s.Add("", of[0].Name, cells...)
	}
	return s.Make(x)
}
