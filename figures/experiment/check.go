package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
)

// Check returns an error that names everything about the experiment that cannot be, as far as it is seen without
// reading data: settings that are missing, infinite, of no use or contradict each other. An Engine calls it for all
// experiments, and then looks at data and networks, before it trains any.
func (e Experiment) Check() error {
	var problems []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	add := func(err error) {
		if err != nil {
			problems = append(problems, err)
		}
	}
	t, m := e.Task, e.Method
	need(t.Data != nil, "Task.Data is nil; give a source, such as experiment.Table or experiment.Arrays")
	need(t.Network != nil, "Task.Network is nil; give one, such as nets.MLP{Widths: []int{50, 50}}")
	need(t.Likelihood != nil, "Task.Likelihood is nil; give one, such as likelihood.Gaussian{}")
	need(m.Layers != nil || m.Process != nil, "Method has neither Layers nor a Process")
	need(m.Layers == nil || m.Process == nil, "Method has Layers and a Process; a process brings its own layers, so leave Layers out")
	need(m.Members == 0 || m.Members > 1, "Method.Members is %d; leave it out for a single network, or set it to at least 2", m.Members)
	if t.Data != nil {
		if source, has := t.Data.(interface{ Check() error }); has {
			add(source.Check())
		}
		splits := t.Data.Splits()
		need(e.Split >= 0 && e.Split < splits, "Split is %d; the data have %d splits, numbered from 0", e.Split, splits)
	}
	if process, has := m.Process.(interface{ check() error }); has {
		add(process.check())
	}
	need(m.Process == nil || !e.Recipe.EarlyStopping, "Recipe.EarlyStopping is set, but a Gaussian process is finished only after training, and cannot be scored before")
	if m.Process != nil && t.Likelihood != nil {
		_, gaussian := t.Likelihood.(likelihood.Gaussian)
		need(gaussian || isClassification(t.Likelihood), "a Gaussian process is for likelihood.Gaussian or for classes, not for a %T", t.Likelihood)
	}
	if m.Process != nil && t.Network != nil {
		need(hasClosedForm(t.Network) || isClassification(t.Likelihood), "a Gaussian process predicts a regression in closed form, for which the network must be a nets.MLP or a nets.ResidualMLP; it is a %T", t.Network)
	}
	if l, has := t.Likelihood.(likelihood.Checker); has {
		add(l.Check())
	}
	add(checkArchitecture(t.Network))
	if m.Layers != nil && t.Network != nil {
		_, err := t.Network.Over(m.Layers)
		add(err)
	}
	add(e.Recipe.check())
	if _, err := e.Spec(); err != nil {
		add(errors.Unwrap(err))
	}
	return e.problem(errors.Join(problems...))
}

// problem is an error about the experiment; nil for none.
func (e Experiment) problem(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("experiment: %v: %w", e, err)
}

// checkArchitecture refuses an architecture with a family of layers of its own, which the method's would replace.
func checkArchitecture(a nets.Architecture) error {
	var layers nets.Layers
	switch a := a.(type) {
	case nets.MLP:
		layers = a.Layers
	case nets.ResidualMLP:
		if layers = a.Layers; layers == nil {
			layers = a.Head
		}
	case nets.ResidualSum:
		layers = a.Layers
	case nets.ResNet:
		if a.Layers != nil {
			layers = a.Layers
		}
	}
	if layers != nil {
		return fmt.Errorf("Task.Network has Layers of type %T; leave them out, since the Method's take their place", layers)
	}
	return nil
}

func isClassification(l likelihood.Likelihood) bool {
	_, is := l.(likelihood.Classification)
	return is
}

// inspected is what the engine knows of a group of experiments before it trains them.
type inspected struct {
	traits   Traits
	cost     float64 // of training one experiment, in examples of a small network
	images   bool
	replicas bool // whether its experiments can be replicas of one graph
}

// imageCost compares training steps: an image costs a plain ResNet-14 about 2.5 ms of a processor's time, and an example
// costs a small network, as for UCI, about 0.018 ms.
const imageCost = 140

// inspect loads the data of an experiment and builds its network, to see what is wrong with them. It trains nothing.
func (e Experiment) inspect(ctx context.Context) (inspected, error) {
	fail := func(err error) (inspected, error) { return inspected{}, e.problem(err) }
	d, err := e.load(ctx)
	if err != nil {
		return fail(err)
	}
	traits, err := traitsWith(e, d)
	if err == nil {
		err = traits.suit(e)
	}
	if err != nil {
		return fail(err)
	}
	found := inspected{traits: traits}
	found.cost = float64(e.Method.members()) * float64(d.Train.Len()) * float64(e.Recipe.Epochs+e.Recipe.PretrainEpochs)
	switch d.Train.Inputs.(type) {
	case nets.Pixels:
		found.images = true
		found.cost *= imageCost
	case nets.Floats:
		if found.replicas, err = e.takesReplicas(); err != nil {
			return fail(err)
		}
	}
	if e.Task.Probe != nil && found.replicas {
		return fail(errors.New("Task.Probe is not for networks that are trained as replicas of one graph"))
	}
	if e.Recipe.Augmentation != nil && !found.images {
		return fail(errors.New("Recipe.Augmentation is for images, and the inputs are none"))
	}
	return found, nil
}

// load loads the data of an experiment and checks them.
func (e Experiment) load(ctx context.Context) (d Data, err error) {
	defer recovered(&err)
	d, err = e.Task.Data.Load(ctx, e.Split)
	if err == nil {
		err = d.check()
	}
	if err != nil {
		return d, err
	}
	for _, set := range append([]Set{trainSet(d.Train), {"held-out", d.HeldOut}}, d.Sets...) {
		if err := suitLikelihood(e.Task.Likelihood, set); err != nil {
			return d, err
		}
	}
	if _, counts := e.Task.Likelihood.(likelihood.TargetChecker); !counts && allEqual(d.Train.Targets) {
		return d, fmt.Errorf("all %d training targets of the split are %g, so that there is nothing to learn; leave the split out, or give other data", len(d.Train.Targets), d.Train.Targets[0])
	}
	if due, is := e.Method.Process.(DUE); is && due.Inducing > d.Train.Len() {
		return d, fmt.Errorf("experiment.DUE has %d inducing points, which start among the training examples, and there are %d; set Inducing to at most that", due.Inducing, d.Train.Len())
	}
	if e.Recipe.EarlyStopping && d.HeldOut.Inputs == nil {
		return d, errors.New("Recipe.EarlyStopping needs held-out examples, and the data have none; set the HeldOut of the source")
	}
	return d, nil
}

// takesReplicas says whether networks of the experiment can be replicas of one graph. Gaussian processes draw the outputs
// of a classification in training, which replicas do not.
func (e Experiment) takesReplicas() (bool, error) {
	if e.Method.Process != nil {
		return !isClassification(e.Task.Likelihood), nil
	}
	network, err := e.Task.Network.Over(e.Method.Layers)
	return err == nil && nets.TakesReplicas(network), err
}

// allEqual says whether several values are all the same.
func allEqual(values []float64) bool {
	return len(values) > 1 && slices.Min(values) == slices.Max(values)
}

// suitLikelihood says why the answers of a set do not suit a likelihood. A set without answers suits every likelihood.
func suitLikelihood(l likelihood.Likelihood, set Set) error {
	switch l.(type) {
	case likelihood.Classification:
		if set.Targets != nil {
			return fmt.Errorf("the %s examples have Targets, where a %T needs Labels", set.Name, l)
		}
	case likelihood.Regression, likelihood.Distribution, likelihood.Quantiles:
		if set.Labels != nil {
			return fmt.Errorf("the %s examples have Labels, where a %T needs Targets", set.Name, l)
		}
	}
	if c, has := l.(likelihood.TargetChecker); has {
		for i, y := range set.Targets {
			if err := c.CheckTarget(y); err != nil {
				return fmt.Errorf("the %s example %d: %w", set.Name, i, err)
			}
		}
	}
	for i, label := range set.Labels {
		if label < 0 || isClassification(l) && label >= l.Outputs() {
			return fmt.Errorf("the %s example %d has the label %d; a %T has classes 0 to %d", set.Name, i, label, l, l.Outputs()-1)
		}
	}
	return nil
}

// suit says what of an experiment's recipe does not suit its network.
func (t Traits) suit(e Experiment) error {
	r := e.Recipe
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	for name, groups := range map[string][]Group{"Groups": r.Groups, "PretrainGroups": r.PretrainGroups} {
		trained := make([]bool, len(groups))
		for _, p := range t.Parameters {
			i := slices.IndexFunc(groups, func(g Group) bool { return g.contains(p.Name, p.Role) })
			if i >= 0 {
				trained[i] = true
			} else if name == "Groups" {
				add("parameter %s, of the role %s, is in no group of Recipe.Groups; add one, without an Optimizer if it is to stay as it is", p.Name, p.Role)
			}
		}
		for i, some := range trained {
			if !some {
				add("Recipe.%s[%d] contains no parameter, with the roles %v: the network has none, or groups before it contain them; leave the group out", name, i, groups[i].Roles)
			}
		}
	}
	generative := slices.ContainsFunc(r.Groups, func(g Group) bool {
		return g.Optimizer != nil && slices.Contains(g.Roles, params.Generative)
	})
	switch {
	case !t.Energies && (r.PretrainEpochs != 0 || r.WeightEnergies || r.LogLikelihoodScale != 0):
		add("Recipe has PretrainEpochs, WeightEnergies or a LogLikelihoodScale, but no layer of the network has an energy model")
	case t.Energies && generative && r.LogLikelihoodScale == 0:
		add("Recipe.LogLikelihoodScale is 0, so that the energy models of the layers would not be trained; it is 1 in the paper")
	}
	if r.WeightEnergies && !isClassification(e.Task.Likelihood) {
		add("Recipe.WeightEnergies weighs examples by the probabilities of their classes, and a %T has none", e.Task.Likelihood)
	}
	if !t.Noise && r.Samples != 1 {
		add("Recipe.Samples is %d, but all draws would be equal: the network has no noise, or a closed form; set it to 1", r.Samples)
	}
	return errors.Join(problems...)
}

// closedForm says whether predictions are the marginals of a Gaussian process.
func closedForm(e Experiment) bool {
	_, gaussian := e.Task.Likelihood.(likelihood.Gaussian)
	return e.Method.Process != nil && gaussian
}
