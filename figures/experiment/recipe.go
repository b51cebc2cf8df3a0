package experiment

import (
	"cmp"
	"fmt"
	"slices"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/train"
)

// A Recipe says how networks are trained and how predictions are drawn. A field that is 0 is 0: there are no defaults.
type Recipe struct {
	train.Settings `experiment:"+"`

	// EarlyStopping keeps the best of at most a hundred epochs, by the negative log-likelihood of Data.HeldOut.
	EarlyStopping bool

	// Samples is the number of draws from each network. It is 1 for a network without noise.
	Samples int
	// PredictBatch is how many examples are predicted at once. 0 means all. For images 0 means 128 on the pure Go backend,
	// and 500 on any other. Noise is drawn batch by batch, so that other batches have other draws.
	PredictBatch int
	// SharedNoise draws the noise of all predicted sets from the stream that training left, one set after the other.
	// Which sets there are, and their order, then changes the draws. Without it each set has a stream of its own, made
	// from the seed and the set's name.
	SharedNoise bool
	// Coherent makes each draw one function of the input, in all sets; see predict.Options.Coherent.
	Coherent bool
	// SeedWithoutSplit starts networks from Seed alone. Without it networks of different splits have different seeds,
	// also where Seed is equal.
	SeedWithoutSplit bool
}

// Adam is a plain recipe for networks of one's own: Adam for all parameters, with a learning rate that falls to 0 along
// half a cosine. Recipe.For adapts it to a method.
func Adam(epochs, batch int, rate float64) Recipe {
	return Recipe{Samples: 1, Settings: train.Settings{Epochs: epochs, BatchSize: batch, Schedule: train.Cosine{Start: rate},
		Groups: []train.Group{{Roles: train.AllRoles(), Optimizer: train.Adam{}, Rate: 1}}}}
}

// For returns the recipe adapted to a method. If predictions of the method differ from draw to draw, Samples becomes the
// given number, and else 1. If the method has energy models, what the recipe leaves open about them is filled in:
// LogLikelihoodScale becomes 1, as in the paper. PretrainEpochs becomes a tenth of Epochs, in which the first group with
// energy models trains them alone. Without energy models all settings for them become zero.
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

// check says what is wrong with the recipe, whatever the network.
func (r Recipe) check(l likelihood.Likelihood) error {
	var all problems
	err := r.Settings.Check(l)
	all.need(err == nil, "Recipe: %w", err)
	all.need(r.Epochs >= 1, "Recipe.Epochs is %d; at least 1 is needed", r.Epochs)
	all.need(r.Samples >= 1, "Recipe.Samples is %d; at least 1 is needed", r.Samples)
	all.need(r.PredictBatch >= 0, "Recipe.PredictBatch is %d; it must not be negative", r.PredictBatch)
	all.need(!r.Coherent || !r.SharedNoise, "Recipe.Coherent and SharedNoise are both set; coherent draws are drawn by a seed, so leave SharedNoise out")
	return all.err()
}
