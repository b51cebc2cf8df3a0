package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/train"
)

// A Recipe says how networks are trained and how predictions are drawn. A field that is 0 is 0: there are no defaults.
type Recipe struct {
	Epochs, BatchSize int
	Schedule          Schedule
	// Groups say how the parameters are trained. A parameter belongs to the first group that contains it. A parameter
	// in no group is an error, and so is a group without parameters.
	Groups []Group

	// PretrainEpochs are spent on the energy models alone, by PretrainGroups, before the joint training.
	PretrainEpochs int
	PretrainGroups []Group
	// LogLikelihoodScale multiplies the objective of the energy models.
	LogLikelihoodScale float64
	// WeightEnergies weighs each example's part of that objective by the uncertainty of its classes; see train.Trainer.
	WeightEnergies bool

	// EarlyStopping keeps the best of at most a hundred epochs, by the negative log-likelihood of Data.HeldOut.
	EarlyStopping bool

	// Augmentation changes training images. It cuts its windows out of images with Padding black pixels on each side.
	Augmentation train.Augmentation
	Padding      int
	// Order is the order of the examples in each epoch; nil shuffles the order of the epoch before.
	Order Order
	// BFloat16 lets convolutions multiply in bfloat16 in training.
	BFloat16 bool

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
	return Recipe{Epochs: epochs, BatchSize: batch, Schedule: Cosine{Start: rate}, Samples: 1,
		Groups: []Group{{Roles: train.AllRoles(), Optimizer: train.Adam{}, Rate: 1}}}
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
	i := slices.IndexFunc(r.Groups, func(g Group) bool { return slices.Contains(g.Roles, params.Generative) })
	if i < 0 {
		return r, fmt.Errorf("experiment: %s has energy models, and no group of the recipe has the role %q", m.Name, params.Generative)
	}
	alone := r.Groups[i]
	alone.Roles = []params.Role{params.Generative}
	r.PretrainGroups = []Group{alone}
	return r, nil
}

// A Schedule gives the learning rate of step t, from 0, of total steps.
type Schedule interface {
	Rate(t, total int) float64
}

// Constant is a learning rate that does not change.
type Constant struct{ Start float64 }

// Rate implements Schedule.
func (c Constant) Rate(int, int) float64 { return c.Start }

// Cosine is a learning rate that falls from Start to 0 along half a cosine.
type Cosine struct{ Start float64 }

// Rate implements Schedule.
func (c Cosine) Rate(t, total int) float64 { return train.Cosine(c.Start)(t, total) }

// Steps is a learning rate that begins at Start and is multiplied by Factor at each of the parts At of the training,
// from 0 to 1.
type Steps struct {
	Start, Factor float64
	At            []float64
}

// Rate implements Schedule.
func (s Steps) Rate(t, total int) float64 { return train.Steps(s.Start, s.Factor, s.At...)(t, total) }

// Check says which settings cannot be.
func (s Steps) Check() error {
	for _, part := range s.At {
		if part <= 0 || part >= 1 {
			return fmt.Errorf("Steps.At has %g; the parts of the training are between 0 and 1", part)
		}
	}
	return nil
}

// An Order gives the order of n examples in an epoch.
type Order interface {
	// Of lists each of 0 to n-1 once. It is a pure function of its arguments.
	Of(seed uint64, epoch, n int) []int
}

// A Group is a set of parameters that one optimizer trains.
type Group struct {
	Roles []params.Role
	// Only, if not empty, limits the group to parameters of these names. Except leaves parameters of these names out. A name
	// is the last part of a parameter's path, such as "bias".
	Only, Except []string
	// Optimizer trains the parameters; nil leaves them as they are.
	Optimizer train.Optimizer
	// Rate multiplies the learning rate of the schedule: usually 1, and 0 if there is no Optimizer.
	Rate float64
}

// contains says whether a parameter can belong to the group.
func (g Group) contains(name string, role params.Role) bool {
	name = path.Base(name)
	return slices.Contains(g.Roles, role) && (len(g.Only) == 0 || slices.Contains(g.Only, name)) && !slices.Contains(g.Except, name)
}

func (g Group) check() error {
	if len(g.Roles) == 0 {
		return errors.New("has no Roles, and so no parameters")
	}
	for _, role := range g.Roles {
		if !slices.Contains(train.AllRoles(), role) {
			return fmt.Errorf("has the role %q; the roles of trained parameters are %v", role, train.AllRoles())
		}
	}
	switch {
	case g.Optimizer == nil && g.Rate != 0:
		return fmt.Errorf("has no Optimizer and a Rate of %g; parameters that are not trained have a Rate of 0", g.Rate)
	case g.Optimizer != nil && !(g.Rate > 0):
		return fmt.Errorf("has a Rate of %g; give 1 to train with the schedule's own rate", g.Rate)
	}
	if err := checkItself(g.Optimizer); err != nil {
		return fmt.Errorf("has a wrong Optimizer: %w", err)
	}
	return nil
}

// check says what is wrong with the recipe, whatever the network.
func (r Recipe) check() error {
	var all problems
	need := func(ok bool, format string, args ...any) { all.need(ok, "field Recipe."+format, args...) }
	need(r.Epochs >= 1 && r.Epochs <= train.MaxEpochs, "Epochs is %d; it must be from 1 to %d", r.Epochs, int(train.MaxEpochs))
	need(r.BatchSize >= 1, "BatchSize is %d; at least 1 is needed", r.BatchSize)
	need(r.Samples >= 1, "Samples is %d; at least 1 is needed", r.Samples)
	need(r.PredictBatch >= 0, "PredictBatch is %d; it must not be negative", r.PredictBatch)
	need(!r.Coherent || !r.SharedNoise, "Coherent and SharedNoise are both set; coherent draws are drawn by a seed, so leave SharedNoise out")
	need(r.PretrainEpochs >= 0 && r.PretrainEpochs <= train.MaxEpochs, "PretrainEpochs is %d; it must be from 0 to %d", r.PretrainEpochs, int(train.MaxEpochs))
	need((r.PretrainEpochs > 0) == (len(r.PretrainGroups) > 0), "PretrainEpochs is %d, and there are %d PretrainGroups; one needs the other", r.PretrainEpochs, len(r.PretrainGroups))
	need(r.LogLikelihoodScale >= 0, "LogLikelihoodScale is %g; it must not be negative", r.LogLikelihoodScale)
	need(r.Padding >= 0, "Padding is %d; it must not be negative", r.Padding)
	need(r.Padding == 0 || r.Augmentation != nil, "Padding is %d, but there is no Augmentation to use it", r.Padding)
	need(len(r.Groups) > 0, "Groups is empty, so that nothing would be trained")
	need(r.Schedule != nil, "Schedule is nil; give one, such as experiment.Cosine{Start: 1e-3}")
	if r.Schedule != nil {
		err := checkSchedule(r.Schedule)
		all.need(err == nil, "field Recipe.Schedule: %w", err)
	}
	for name, groups := range map[string][]Group{"Groups": r.Groups, "PretrainGroups": r.PretrainGroups} {
		for i, g := range groups {
			err := g.check()
			all.need(err == nil, "group Recipe.%s[%d] %w", name, i, err)
		}
	}
	return all.err()
}

// checkSchedule asks for the rates of a training of many steps.
func checkSchedule(s Schedule) error {
	if err := checkItself(s); err != nil {
		return err
	}
	const steps = 1000
	for t := range steps {
		rate := s.Rate(t, steps)
		if !(rate >= 0) || math.IsInf(rate, 1) || t == 0 && rate == 0 {
			return fmt.Errorf("the learning rate of step %d of %d is %g; rates must be finite, not negative, and at first not 0", t, steps, rate)
		}
	}
	return nil
}

// trainer is the training that the recipe says.
func (r Recipe) trainer() train.Trainer {
	t := train.Trainer{
		Epochs: r.Epochs, BatchSize: r.BatchSize, Schedule: r.Schedule.Rate, Groups: trainerGroups(r.Groups),
		PretrainEpochs: r.PretrainEpochs, PretrainGroups: trainerGroups(r.PretrainGroups),
		LogLikelihoodScale: r.LogLikelihoodScale, WeightEnergies: r.WeightEnergies,
		Augmentation: r.Augmentation, Padding: r.Padding, BFloat16: r.BFloat16,
	}
	if r.Order != nil {
		t.Order = r.Order.Of
	}
	return t
}

// trainerGroups are the groups as package train has them.
func trainerGroups(list []Group) []train.Group {
	var all []train.Group
	for _, g := range list {
		of := train.Group{Roles: g.Roles, Optimizer: g.Optimizer, Rate: g.Rate}
		if g.Rate == 1 {
			of.Rate = 0 // which means 1, without a product in the graph
		}
		if len(g.Only)+len(g.Except) > 0 {
			of.Match = func(name string) bool { // the roles are compared by package train
				return slices.ContainsFunc(g.Roles, func(role params.Role) bool { return g.contains(name, role) })
			}
		}
		all = append(all, of)
	}
	return all
}
