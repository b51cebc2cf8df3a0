package experiment

import (
	"cmp"
	"fmt"
	"slices"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/train"
)

// Adam is a plain recipe for networks of your own: Adam for all parameters, with a learning rate that falls to 0 along
// half a cosine. Recipe.For adapts it to a method.
func Adam(epochs, batch int, rate float64) Recipe {
	return Recipe{Samples: 1, Settings: train.Settings{Epochs: epochs, BatchSize: batch, Schedule: train.Cosine{Start: rate},
		Groups: []train.Group{{Roles: train.AllRoles(), Optimizer: train.Adam{}, Rate: 1}}}}
}

// For returns the recipe adapted to a method. If predictions of the method differ from draw to draw, Samples becomes the
// given number, and else 1. If the method has energy models, zeros of their settings are filled in: LogLikelihoodScale
// becomes 1, as in the paper, PretrainEpochs a tenth of Epochs, at least 1, and PretrainGroups the first group with the
// role params.Generative, for this role alone; without such a group it is an error. Without energy models their settings
// become zero.
func (r Recipe) For(m Method, l likelihood.Likelihood, samples int) (Recipe, error) {
	t, err := MethodTraits(m, l)
	if err != nil {
		return r, err
	}
	if r.Samples = 1; t.Noise {
		r.Samples = samples
	}
	if !t.Energies {
		r.LogLikelihoodScale, r.WeightEnergies, r.PretrainEpochs, r.PretrainGroups = 0, false, 0, nil
		return r, nil
	}
	r.LogLikelihoodScale = cmp.Or(r.LogLikelihoodScale, 1)
	r.PretrainEpochs = cmp.Or(r.PretrainEpochs, max(1, r.Epochs/10))
	if r.PretrainGroups != nil {
		return r, nil
	}
	i := slices.IndexFunc(r.Groups, func(g train.Group) bool { return slices.Contains(g.Roles, params.Generative) })
	if i < 0 {
		return r, fmt.Errorf("experiment: %s has energy models, and no group of the recipe has the role %q", m.Name, params.Generative)
	}
	alone := r.Groups[i]
	alone.Roles = []params.Role{params.Generative}
	r.PretrainGroups = []train.Group{alone}
	return r, nil
}

// Experiments lists the experiments of methods on the task by a recipe, each on every split and with the recipe adapted to
// its layers; see Recipe.For. The seed is the number of the split.
func (t Task) Experiments(recipe Recipe, samples int, methods ...Method) (Experiments, error) {
	adapted := func(_ Source, m Method) (Experiment, error) {
		r, err := recipe.For(m, t.Likelihood, samples)
		return Experiment{Task: t, Method: m, Recipe: r}, err
	}
	return Cross(adapted, []Source{t.Data}, methods...)
}

// Cross lists the experiments of all methods on all data, each on every split. The seed is the number of the split, so
// that the runs of one cell of a table have independent initial values too. Data whose Check fails, such as an unknown data
// set, are an error.
func Cross(preset Preset, data []Source, methods ...Method) (all Experiments, err error) {
	for _, source := range data {
		list, err := Grid{Preset: preset}.Experiments(source, methods...)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// A Grid says which experiments the cells of a table are of: those of a method on data, on splits and with seeds.
type Grid struct {
	Title  string // of its rows
	Preset Preset
	// List lists the experiments of a method on data whose splits differ in more than their numbers and seeds, such as those of
	// uci.Tuned. Preset, Splits, Seeds and Change are then not used.
	List func(data Source, m Method) (Experiments, error)

	Data    []Source // of its rows
	Methods []Method // that it is for; nil for all
	Splits  int      // the number of splits, from 0 on; 0 for all
	Seeds   int      // the number of seeds on each split, from 0 on; 0 for a single one, the number of the split
	// Change changes an experiment of the preset; nil for no change.
	Change func(e *Experiment)
}

// Of is Experiments for data and methods that the preset knows: it panics where Experiments returns an error.
func (g Grid) Of(data Source, methods ...Method) Experiments {
	all, err := g.Experiments(data, methods...)
	if err != nil {
		panic(err)
	}
	return all
}

// Experiments lists the experiments of methods on data, which need not be among the rows. A method that the grid is not for
// has none. What the preset refuses is an error.
func (g Grid) Experiments(data Source, methods ...Method) (all Experiments, err error) {
	if data == nil {
		return nil, fmt.Errorf("experiment: %w", checkSource(nil))
	}
	for _, m := range methods {
		if g.Methods != nil && !slices.ContainsFunc(g.Methods, m.Equal) {
			continue
		}
		if g.List != nil {
			list, err := g.List(data, m)
			if err != nil {
				return nil, err
			}
			all = append(all, list...)
			continue
		}
		e, err := g.Preset(data, m)
		if err != nil {
			return nil, err
		}
		if g.Change != nil {
			g.Change(&e)
		}
		if err := checkSource(e.Task.Data); err != nil { // not of the source, which a preset may complete
			return nil, fmt.Errorf("experiment: %w", err)
		}
		splits, seeds := data.Splits(), max(g.Seeds, 1)
		if g.Splits > 0 {
			splits = min(splits, g.Splits)
		}
		all = slices.Grow(all, splits*seeds)
		for e.Split = range splits {
			for seed := range seeds {
				if e.Seed = uint64(seed); g.Seeds == 0 {
					e.Seed = uint64(e.Split)
				}
				all = append(all, e)
			}
		}
	}
	return all, nil
}
