package experiment

import "slices"

// Set is a named list of experiments: what one figure or table of the paper needs.
type Set struct {
	Name        string
	Doc         string       // one line
	Experiments []Experiment // of all its scales; see At
}

// At returns the set's experiments of one scale, in catalogue order.
func (s Set) At(scale string) []Experiment {
	return Filter{Scale: scale}.Apply(s.Experiments)
}

// Filter selects experiments; a zero field selects everything.
type Filter struct {
	Methods  []string
	Datasets []string
	Splits   []int
	Seeds    []uint64
	Fidelity string
	Scale    string
}

// Apply returns the experiments that pass, in their order.
func (f Filter) Apply(all []Experiment) []Experiment {
	var kept []Experiment
	for _, e := range all {
		if (len(f.Methods) == 0 || slices.Contains(f.Methods, e.Method)) &&
			(len(f.Datasets) == 0 || slices.Contains(f.Datasets, e.Dataset)) &&
			(len(f.Splits) == 0 || slices.Contains(f.Splits, e.Split)) &&
			(len(f.Seeds) == 0 || slices.Contains(f.Seeds, e.Seed)) &&
			(f.Fidelity == "" || f.Fidelity == e.Fidelity) &&
			(f.Scale == "" || f.Scale == e.Scale) {
			kept = append(kept, e)
		}
	}
	return kept
}

// Year names the one data set with a single split.
const Year = "year"

// Datasets lists the UCI data sets in the order of the paper's tables. "energy" has the heating load
// as its target and "energy-cooling" the cooling load, which is the one in the paper's tables.
func Datasets() []string {
	return []string{"boston", "concrete", "energy", "energy-cooling", "kin8nm", "naval", "protein", "wine", "yacht", Year}
}

// SplitCount is the number of Gal's splits of a UCI data set, hence the number of runs that the
// paper's mean and standard deviation are over.
func SplitCount(dataset string) int {
	switch dataset {
	case "protein":
		return 5
	case Year:
		return 1
	}
	return 20
}

// The training lengths. The toy's are full-batch gradient steps.
const (
	uciEpochs, uciQuickEpochs = 100, 20
	toySteps, toyQuickSteps   = 4000, 800
	uciSamples, toySamples    = 10, 1000
	quickSplits               = 2
)

// Sets is the catalogue of everything that can be reproduced. An experiment that two tables need is in
// the sets of both.
func Sets() []Set { return slices.Concat(regressionSets(), imageSets()) }

func regressionSets() []Set {
	return []Set{
		{
			Name:        "figure1",
			Doc:         "Figure 1: predictive bands on one-dimensional regression with a gap, 3 seeds",
			Experiments: figure1(),
		},
		{
			Name: "uci",
			Doc:  "UCI regression tables (NLL, RMSE): the paper's text, Gal's splits",
			Experiments: uci(Paper, GalSplits, []string{Density, Rank1, VDropout, MCDropout, MFVI},
				slices.DeleteFunc(Datasets(), func(d string) bool { return d == Year })),
		},
		{
			Name:        "uci-year",
			Doc:         "UCI regression tables: the Year row alone, which is as large as all others together",
			Experiments: uci(Paper, GalSplits, []string{Density, Rank1, VDropout, MCDropout, MFVI}, []string{Year}),
		},
		{
			Name:        "uci-gp",
			Doc:         "UCI regression with methods that the paper's UCI tables leave out: SNGP, DUE, deep ensembles and a single network, on the smallest sets",
			Experiments: uci(Paper, GalSplits, ProcessMethods(), ProcessDatasets()),
		},
		{
			Name: "uci-adam",
			Doc:  "UCI regression with Adam for all methods, as SNGP and DUE have it, on the smallest sets: how much of a difference is the optimizer's",
			Experiments: withOption(uci(Paper, GalSplits, []string{MFVI, MCDropout, VDropout, Rank1, Density, Deterministic, Ensemble}, ProcessDatasets()),
				OptionOptimizer, "adam"),
		},
		{
			Name:        "distance",
			Doc:         "Distance awareness of six methods on problems that can be drawn: the cubic of Figure 1 and two moons, 3 seeds",
			Experiments: distance(),
		},
		{
			Name: "uci-released",
			Doc:  "UCI as the authors' code runs it (random splits), for comparison with that code",
			Experiments: uci(Released, RandomSplits, []string{Density, Rank1},
				[]string{"yacht", "boston", "concrete", "energy", "energy-cooling", "wine"}),
		},
	}
}

// SetByName returns the set of that name.
func SetByName(name string) (Set, bool) {
	for _, s := range Sets() {
		if s.Name == name {
			return s, true
		}
	}
	return Set{}, false
}

// Union lists the experiments of sets in their order, each once.
func Union(sets ...Set) []Experiment {
	var all []Experiment
	seen := make(map[string]bool)
	for _, s := range sets {
		for _, e := range s.Experiments {
			if id := e.ID(); !seen[id] {
				seen[id] = true
				all = append(all, e)
			}
		}
	}
	return all
}

// withOption sets an option of experiments that have none.
func withOption(all []Experiment, name, value string) []Experiment {
	for i := range all {
		all[i].Options = map[string]string{name: value}
	}
	return all
}

// ProcessMethods are the methods of the set uci-gp.
func ProcessMethods() []string { return []string{Deterministic, Ensemble, SNGP, DUE} }

// ProcessDatasets are the data sets of the set uci-gp.
func ProcessDatasets() []string {
	return []string{"boston", "concrete", "energy", "energy-cooling", "wine", "yacht"}
}

// DistanceMethods are the methods of the set distance.
func DistanceMethods() []string {
	return []string{Deterministic, MCDropout, Density, SNGP, DUE, Ensemble}
}

// The two moons are trained for epochs of one batch, like the cubic, and need fewer samples: what is drawn
// is a mean and no percentile.
const moonsEpochs, moonsQuickEpochs, moonsSamples = 1000, 100, 100

func distance() []Experiment {
	var all []Experiment
	for _, scale := range []string{Full, Quick} {
		steps, epochs := toySteps, moonsEpochs
		if scale == Quick {
			steps, epochs = toyQuickSteps, moonsQuickEpochs
		}
		for _, method := range DistanceMethods() {
			for seed := range uint64(3) {
				e := Experiment{Study: Toy, Method: method, Dataset: ToyCubic, Seed: seed, Epochs: steps,
					Samples: toySamples, Fidelity: Paper, Scale: scale}
				all = append(all, e)
				e.Dataset, e.Epochs, e.Samples = TwoMoons, epochs, moonsSamples
				all = append(all, e)
			}
		}
	}
	return all
}

func figure1() []Experiment {
	variants := []struct {
		method  string
		options map[string]string
	}{
		{MFVI, nil}, {VDropout, nil}, {Rank1, nil}, {Density, nil},
		{Density, map[string]string{OptionClip: "true"}}, {DensityRank1Mix, nil},
	}
	var all []Experiment
	for _, scale := range []string{Full, Quick} {
		steps := toySteps
		if scale == Quick {
			steps = toyQuickSteps
		}
		for _, v := range variants {
			for seed := range uint64(3) {
				all = append(all, Experiment{Study: Toy, Method: v.method, Dataset: ToyCubic, Seed: seed, Epochs: steps,
					Samples: toySamples, Fidelity: Paper, Scale: scale, Options: v.options})
			}
		}
	}
	return all
}

// quickDatasets are small enough for a quick run. Year never is.
var quickDatasets = []string{"boston", "yacht", "energy-cooling"}

// uci lists the runs of every method on every split of the data sets. The seed of a run is its
// split, so that runs of one cell are independent in their initial values too.
func uci(fidelity, splits string, methods, datasets []string) []Experiment {
	var all []Experiment
	for _, scale := range []string{Full, Quick} {
		for _, dataset := range datasets {
			epochs, count := uciEpochs, SplitCount(dataset)
			if scale == Quick {
				if !slices.Contains(quickDatasets, dataset) {
					continue
				}
				epochs, count = uciQuickEpochs, quickSplits
			}
			for _, method := range methods {
				for split := range count {
					all = append(all, Experiment{Study: UCI, Method: method, Dataset: dataset, Splits: splits, Split: split,
						Seed: uint64(split), Epochs: epochs, Samples: uciSamples, Fidelity: fidelity, Scale: scale})
				}
			}
		}
	}
	return all
}
