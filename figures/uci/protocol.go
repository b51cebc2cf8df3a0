// Package uci has the experiments on the UCI regression benchmarks (the paper's appendix): the protocol, in the
// version of the paper's text and in that of the authors' released code, carrying it out, and the tables and the
// picture of what came out.
//
//	lines, err := uci.Run(ctx, uci.Paper().On("yacht", "boston"), methods.Density, methods.Rank1)
//	report.ShowTable(uci.Table(lines))
package uci

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// The ways to split a data set into training and test part.
const (
	GalSplits    = "gal"    // those published with Gal and Ghahramani (2016); for Year the one that its donors fixed
	RandomSplits = "random" // seeded random 90/10 splits, as in the authors' code
	GapSplits    = "gap"    // for each input, the examples with the middle third of its values are the test part (Foong et al. 2019)
)

// Protocol says how a method is trained and evaluated on UCI: with one field for each place where the paper's text
// and the released code differ. Paper and Released fill in all of them; change what you like, and what differs from
// them becomes an option of the experiments. Run refuses data sets, splits and numbers that cannot be.
type Protocol struct {
	Fidelity string // results.Paper or results.Released, whose constructor made the protocol
	Scale    string // results.Full or results.Quick

	Datasets []string // names of Datasets, or of sets in Own
	Splits   string   // GalSplits, RandomSplits or GapSplits
	Only     []int    // these splits; nil means all
	Epochs   int      // 100 in the appendix; the released code's default is 50
	Samples  int      // Monte Carlo samples at prediction: 10

	methods.Options

	HiddenLayers    int                     `option:"hidden_layers" range:"whole" doc:"hidden layers of the networks: 2 in the text, 3 in the code"`
	Width           int                     `option:"width" range:"count" doc:"units of a hidden layer: 50, in the text 100 for Protein and Year; the code's test for these is never true"`
	EnergyOptimizer methods.EnergyOptimizer `option:"energy_optimizer" choices:"own joint" doc:"the energy models have an Adam of their own with decay 1e-5, or share the weights' SGD with decay 1e-4 and the generative objective times 0.01; the text does not say"`
	Decay           methods.Decay           `option:"decay" choices:"weights all" doc:"what the weight decay applies to"`
	PretrainEpochs  int                     `option:"pretrain_epochs" range:"whole" doc:"epochs of generative pretraining; the text has none"`

	EarlyStopping bool `option:"early_stopping" doc:"a fifth of each training part is held out, and of at most a hundred epochs the one with the lowest NLL there is kept; neither text nor code has it"`

	// Own are data of one's own, whose names Datasets may have; see OnOwn.
	Own []*datasets.Regression

	choices choices // of Tuned; nil for the others

	// Progress, if not nil, hears from Run of the part that is done, from 0 to 1, and how it goes.
	Progress func(done float64, note string)
}

// Paper is the protocol of the paper's text, with choices of this project where it is silent: generative pretraining,
// which parameters the weight decay is for, and how the energy models are trained. See also methods.PaperOptions.
func Paper() Protocol {
	return Protocol{
		Fidelity: results.Paper, Scale: results.Full, Datasets: Datasets(), Splits: GalSplits, Epochs: 100, Samples: 10,
		Options: methods.PaperOptions(), HiddenLayers: 2, EnergyOptimizer: methods.OwnAdam, Decay: methods.DecayWeights, PretrainEpochs: 10,
	}
}

// Released is the protocol of the authors' released code.
func Released() Protocol {
	p := Protocol{
		Fidelity: results.Released, Scale: results.Full, Datasets: Datasets(), Splits: RandomSplits, Epochs: 100, Samples: 10,
		Options: methods.ReleasedOptions(), HiddenLayers: 3, EnergyOptimizer: methods.JointOptimizer, Decay: methods.DecayAll, PretrainEpochs: 10,
	}
	p.MixtureFactors = methods.ZeroFactors
	return p
}

// On is the protocol for these data sets.
func (p Protocol) On(datasets ...string) Protocol {
	p.Datasets = datasets
	return p
}

// ownSplits is the number of random splits of data of one's own, as that of most UCI data sets.
const ownSplits = 20

// OnOwn is the protocol for data of one's own, such as datasets.ReadCSV reads: on 20 random splits of each, 90/10, or
// with GapSplits on those. The sets have names of their own, which no set of Datasets has, and are standardised as
// those are. Tuned has no settings for them.
func (p Protocol) OnOwn(sets ...*datasets.Regression) Protocol {
	p.Own, p.Datasets = sets, nil
	for _, set := range sets {
		p.Datasets = append(p.Datasets, set.Name)
	}
	if p.Splits != GapSplits {
		p.Splits = RandomSplits
	}
	return p
}

// ownData are sets of data of one's own.
type ownData []*datasets.Regression

// named is the set with a name, nil where there is none.
func (o ownData) named(name string) *datasets.Regression {
	if i := slices.IndexFunc(o, func(set *datasets.Regression) bool { return set.Name == name }); i >= 0 {
		return o[i]
	}
	return nil
}

// check returns an error where a set is of no use or has the name of another one.
func (o ownData) check() error {
	for i, set := range o {
		switch err := results.CheckName("data set", set.Name); {
		case err != nil:
			return fmt.Errorf("uci: data of one's own: %w; set its Name", err)
		case slices.Contains(Datasets(), set.Name) || o[:i].named(set.Name) != nil:
			return fmt.Errorf("uci: there are two data sets %q; give yours another Name", set.Name)
		}
		if err := set.Check(); err != nil {
			return fmt.Errorf("uci: data of one's own: %w", err)
		}
		if set.N < leastExamples {
			return fmt.Errorf("uci: set %q has %d examples; the splits need at least %d", set.Name, set.N, leastExamples)
		}
	}
	return nil
}

// leastExamples is what a split into two parts, and a part of the first, need.
const leastExamples = 4

// quickDatasets are small enough for a quick run. Year never is.
var quickDatasets = []string{"boston", "yacht", "energy-cooling"}

// Quick is the protocol as a small run that shows the pipeline at work: 20 epochs of the first two splits, of the
// small data sets among the protocol's and of one's own.
func (p Protocol) Quick() Protocol {
	p.Scale, p.Epochs, p.Only = results.Quick, 20, []int{0, 1}
	large := func(d string) bool { return slices.Contains(Datasets(), d) && !slices.Contains(quickDatasets, d) }
	p.Datasets = slices.DeleteFunc(slices.Clone(p.Datasets), large) // Run says what is misspelt
	return p
}

// check returns an error where the protocol asks for data sets or splits that there are not, or for nothing: Experiments
// leaves these out.
func (p Protocol) check(list methods.List) error {
	if len(list) == 0 {
		return errors.New("uci: no method was given")
	}
	if len(p.Datasets) == 0 {
		return fmt.Errorf("uci: the protocol has no data set; name some of %s with On, for a quick run of %s", strings.Join(Datasets(), ", "), strings.Join(quickDatasets, ", "))
	}
	if err := ownData(p.Own).check(); err != nil {
		return err
	}
	if err := jobs.Distinct("data set", p.Datasets); err != nil {
		return fmt.Errorf("uci: %w", err)
	}
	if err := checkSplits(p.Splits); err != nil {
		return fmt.Errorf("uci: %w", err)
	}
	most := 0
	for _, dataset := range p.Datasets {
		if err := checkDataset(dataset, p.Own); err != nil {
			return fmt.Errorf("uci: %w", err)
		}
		count := p.splitCount(dataset)
		most = max(most, count)
		if p.Only != nil && !slices.ContainsFunc(p.Only, func(split int) bool { return split >= 0 && split < count }) {
			return fmt.Errorf("uci: Only is %v, but the %s splits of %s are 0 to %d", p.Only, p.Splits, dataset, count-1)
		}
	}
	for _, split := range p.Only {
		if split < 0 || split >= most {
			return fmt.Errorf("uci: Only has the split %d, but the %s splits of %s are 0 to %d", split, p.Splits, strings.Join(p.Datasets, ", "), most-1)
		}
	}
	return p.untuned(list)
}

// checkDataset returns an error unless there is a data set of that name.
func checkDataset(name string, own ownData) error {
	if !slices.Contains(Datasets(), name) && own.named(name) == nil {
		return fmt.Errorf("there is no data set %q, want one of %s", name, strings.Join(Datasets(), ", "))
	}
	return nil
}

// checkSplits returns an error unless there is a kind of splits of that name.
func checkSplits(name string) error {
	if name != GalSplits && name != RandomSplits && name != GapSplits {
		return fmt.Errorf("splits are %q, want %s, %s or %s", name, GalSplits, RandomSplits, GapSplits)
	}
	return nil
}

// Experiments are the runs of the methods: for each data set, each method and each split, of Tuned those for which
// there is a choice. The seed of a run is its split, so that runs of one cell are independent in their initial values
// too.
func (p Protocol) Experiments(list ...methods.Method) []results.Experiment {
	var all []results.Experiment
	for _, dataset := range p.Datasets {
		for _, m := range list {
			options := make(map[choice]map[string]string) // which are the same for most splits
			for split := range p.splitCount(dataset) {
				if p.Only != nil && !slices.Contains(p.Only, split) {
					continue
				}
				e := results.Experiment{Study: results.UCI, Method: m.Name, Dataset: dataset, Splits: p.Splits, Split: split,
					Seed: uint64(split), Epochs: p.Epochs, Samples: p.Samples, Fidelity: p.Fidelity, Scale: p.Scale}
				c, has := p.choices[chosenFor{dataset, p.Splits, split, m.Name}]
				if p.choices != nil && !has {
					continue
				}
				if _, known := options[c]; !known {
					of := p
					if has {
						of = c.apply(p, m)
					}
					of.Options = m.Changed(of.Options)
					options[c] = methods.DeparturesOf(of, p.fidelity(), func(q Protocol) any { return q.resolve(e, m) })
				}
				e.Options = options[c]
				all = append(all, e)
			}
		}
	}
	return all
}

// fidelity is the protocol that the options are departures from.
func (p Protocol) fidelity() Protocol {
	if p.Fidelity == results.Released {
		return Released()
	}
	return Paper()
}

// ProtocolOf is the protocol of one experiment, with every number filled in for its method, which is one of the
// list. Its data set is one of Datasets or of own.
func ProtocolOf(e results.Experiment, list methods.List, own ...*datasets.Regression) (Protocol, methods.Method, error) {
	fail := func(err error) (Protocol, methods.Method, error) {
		return Protocol{}, methods.Method{}, fmt.Errorf("%v: %w", e, err)
	}
	if e.Study != results.UCI {
		return fail(fmt.Errorf("the study is %q, want %q", e.Study, results.UCI))
	}
	m, has := list.Named(e.Method)
	if !has {
		return fail(fmt.Errorf("there is no method %q, want one of %s", e.Method, strings.Join(list.Names(), ", ")))
	}
	if err := errors.Join(checkDataset(e.Dataset, own), checkSplits(e.Splits)); err != nil {
		return fail(err)
	}
	p := Protocol{Fidelity: e.Fidelity}.fidelity()
	p.Scale, p.Datasets, p.Splits, p.Only, p.Epochs, p.Samples = e.Scale, []string{e.Dataset}, e.Splits, []int{e.Split}, e.Epochs, e.Samples
	if err := methods.SetFor(results.UCI, &p, e.Options); err != nil {
		return fail(err)
	}
	if err := methods.RefuseUnused(p, e.Options, m, func(q Protocol) any { return q.resolve(e, m) }); err != nil {
		return fail(err)
	}
	return p.filled(e, m), m, nil
}

// resolved is all that options come to for a method: two protocols of which it is the same train the same network in
// the same way.
type resolved struct {
	layers                     nets.Layers
	optimizer                  methods.Optimizer
	rate, decay                float64
	batch, hiddenLayers, width int
	energyOptimizer            methods.EnergyOptimizer // with energies alone, and so on
	pretrainEpochs             int
	decayOf                    methods.Decay
	earlyStopping              bool
}

func (p Protocol) resolve(e results.Experiment, m methods.Method) resolved {
	p = p.filled(e, m)
	r := resolved{
		layers: m.Layers(p.Options), optimizer: p.Optimizer, rate: p.LearningRate, decay: p.WeightDecay, batch: p.BatchSize,
		hiddenLayers: p.HiddenLayers, width: p.Width, decayOf: p.Decay,
	}
	if m.HasEnergies {
		r.energyOptimizer, r.pretrainEpochs = p.EnergyOptimizer, p.PretrainEpochs
	}
	r.earlyStopping = p.EarlyStopping && m.Process == nil
	return r
}

// filled has the numbers that are the method's own or depend on the data set.
func (p Protocol) filled(e results.Experiment, m methods.Method) Protocol {
	usual := methods.Options{InitStd: 0.1, Optimizer: methods.SGD, LearningRate: 0.01, BatchSize: 128, WeightDecay: 1e-4}
	p.Options = m.Fill(methods.Setting{Study: results.UCI, Fidelity: p.Fidelity, Dataset: e.Dataset}, p.Options, usual)
	if p.Width == 0 {
		p.Width = 50
		if p.Fidelity == results.Paper && (e.Dataset == "protein" || e.Dataset == Year) {
			p.Width = 100
		}
	}
	return p
}

// OptionsTable lists every option of the protocol in both fidelities.
func OptionsTable() report.Table {
	var versions []methods.Version
	for _, p := range []Protocol{Paper(), Released()} {
		versions = append(versions, methods.Version{Protocol: p, Filled: func(m methods.Method) any { return p.filled(results.Experiment{}, m) }})
	}
	columns := []string{"option", "`paper` fidelity", "`released` fidelity", "what it is"}
	return report.PlainTable("uci-options", "", columns, methods.DescribeOptions(results.UCI, versions...))
}

// trainer is the training run.
func (p Protocol) trainer(m methods.Method) train.Trainer {
	t := train.Trainer{LogLikelihoodScale: 1, Epochs: p.Epochs, BatchSize: p.BatchSize, Schedule: train.Cosine(p.LearningRate)}
	if m.HasEnergies {
		t.PretrainEpochs = p.PretrainEpochs
	}
	sgd := func(decay float64) train.Optimizer { return train.SGD{Momentum: momentum, Decay: decay} }
	variationalDecay := 0.0
	if p.Decay == methods.DecayAll {
		variationalDecay = p.WeightDecay
	}
	generative := train.Group{Roles: []params.Role{params.Generative}, Optimizer: train.Adam{Decay: energyDecay}}
	if p.EnergyOptimizer == methods.JointOptimizer {
		t.LogLikelihoodScale = jointScale
		generative.Optimizer = sgd(p.WeightDecay)
	}
	t.PretrainGroups = []train.Group{generative}
	t.Groups = []train.Group{
		generative,
		{Roles: []params.Role{params.Weight}, Optimizer: sgd(p.WeightDecay)},
		{Roles: []params.Role{params.Variational, params.Likelihood}, Optimizer: sgd(variationalDecay)},
	}
	if p.Optimizer == methods.Adam {
		t.Groups[1].Optimizer = train.Adam{Decay: p.WeightDecay}
		// The noise variance has to fall further than Adam goes.
		t.Groups[2].Roles = []params.Role{params.Likelihood}
		t.Groups = append(t.Groups, train.Group{Roles: []params.Role{params.Variational}, Optimizer: train.Adam{Decay: variationalDecay}})
	}
	return t
}

// The numbers of the training that neither the text nor the code leaves open (appendix of the paper), or that are
// the code's where the text is silent.
const (
	momentum = 0.9
	// energyDecay is the weight decay of the energy models, an implicit
	// Gaussian prior p(omega), which the paper leaves open.
	energyDecay = 1e-5
	// jointScale multiplies the generative objective in the released code.
	jointScale = 0.01
)
