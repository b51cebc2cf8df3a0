// Package toy has the experiments that can be drawn: one-dimensional regression with a gap in the inputs, which is
// the paper's Figure 1, and two moons, a classification in the plane that the paper does not have. The paper states
// neither the number of examples nor the noise nor the training; the protocol's are the settings under which its
// figure comes out.
//
//	lines, err := toy.Run(ctx, toy.Cubic(), methods.Density, methods.MFVI)
//	report.ShowFigure(toy.Pictures(lines))
package toy

import (
	"errors"
	"fmt"
	"strings"

	"densityuncertainty/dul/nets"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// The problems, by their names in result lines.
const (
	CubicName = "toy-cubic" // y = x^3 + noise with a gap in the inputs
	MoonsName = "two-moons" // two classes in the plane, interleaved half circles
)

// Protocol says how a method is trained on a problem that can be drawn. Cubic and Moons fill in all fields; change
// what you like, and what differs from them becomes an option of the experiments.
type Protocol struct {
	Problem string   // CubicName or MoonsName
	Scale   string   // results.Full or results.Quick
	Steps   int      // full-batch gradient steps
	Samples int      // predictive draws
	Seeds   []uint64 // of data, initial values and noise

	methods.Options

	HiddenLayers  int `option:"hidden_layers" range:"whole" doc:"hidden layers of the network: one for the cubic, two for the moons"`
	Width         int `option:"width" range:"count" doc:"units of a hidden layer"`
	PretrainSteps int `option:"pretrain_steps" range:"count" doc:"steps of generative pretraining of methods with energy models, half as many as steps if not given, 1 for next to none; the text has none, and without it the energies are not close enough to their maximum-likelihood fit for the gap to show"`

	// Progress, if not nil, hears from Run of the part that is done, from 0 to 1, and how it goes.
	Progress func(done float64, note string)
}

// Cubic is the protocol of Figure 1: 4000 steps of Adam on all 100 examples, with a learning rate that falls from 1e-3 along
// one half cosine, three seeds.
func Cubic() Protocol {
	return Protocol{
		Problem: CubicName, Scale: results.Full, Steps: 4000, Samples: 1000, Seeds: []uint64{0, 1, 2},
		Options: methods.PaperOptions(), HiddenLayers: 1, Width: 50,
	}
}

// Moons is the protocol of two moons: 1000 steps of Adam from 1e-2 on all 500 examples, else as Cubic. It
// needs fewer draws than the cubic, since what is drawn is a mean and no percentile.
func Moons() Protocol {
	p := Cubic()
	p.Problem, p.Steps, p.Samples, p.HiddenLayers = MoonsName, 1000, 100, 2
	return p
}

// Quick is the protocol as a small run that shows the pipeline at work.
func (p Protocol) Quick() Protocol {
	p.Scale, p.Steps = results.Quick, 800
	if p.Problem == MoonsName {
		p.Steps = 100
	}
	return p
}

// Experiments are the runs of the methods: for each method, each seed.
func (p Protocol) Experiments(list ...methods.Method) []results.Experiment {
	var all []results.Experiment
	for _, m := range list {
		of := p
		of.Options = m.Changed(p.Options)
		for _, seed := range p.Seeds {
			e := results.Experiment{Study: results.Toy, Method: m.Name, Dataset: p.Problem, Seed: seed, Epochs: p.Steps,
				Samples: p.Samples, Fidelity: results.Paper, Scale: p.Scale}
			e.Options = methods.DeparturesOf(of, p.usual(), func(q Protocol) any { return q.resolve(e, m) })
			all = append(all, e)
		}
	}
	return all
}

// usual is the protocol that the options are departures from.
func (p Protocol) usual() Protocol {
	if p.Problem == MoonsName {
		return Moons()
	}
	return Cubic()
}

// errReleased is why there is no released fidelity of the study.
var errReleased = errors.New("the authors' released code has no toy experiment, so there are no released settings; ask for the fidelity paper, and set single options")

// ProtocolOf is the protocol of one experiment, with every number filled in for its method, which is one of the
// list.
func ProtocolOf(e results.Experiment, list methods.List) (Protocol, methods.Method, error) {
	fail := func(err error) (Protocol, methods.Method, error) {
		return Protocol{}, methods.Method{}, fmt.Errorf("%v: %w", e, err)
	}
	m, has := list.Named(e.Method)
	switch {
	case e.Study != results.Toy:
		return fail(fmt.Errorf("the study is %q, want %q", e.Study, results.Toy))
	case !has:
		return fail(fmt.Errorf("there is no method %q, want one of %s", e.Method, strings.Join(list.Names(), ", ")))
	case e.Dataset != CubicName && e.Dataset != MoonsName:
		return fail(fmt.Errorf("there is no problem %q, want %s or %s", e.Dataset, CubicName, MoonsName))
	case e.Fidelity != results.Paper:
		return fail(errReleased)
	}
	p := Protocol{Problem: e.Dataset}.usual()
	p.Scale, p.Steps, p.Samples, p.Seeds = e.Scale, e.Epochs, e.Samples, []uint64{e.Seed}
	if err := methods.SetFor(results.Toy, &p, e.Options); err != nil {
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
	layers              nets.Layers
	rate                float64
	hiddenLayers, width int
	pretrainSteps       int  // with energies alone
	generativeWeights   bool // with energies and classes alone
}

func (p Protocol) resolve(e results.Experiment, m methods.Method) resolved {
	p = p.filled(e, m)
	r := resolved{layers: m.Layers(p.Options), rate: p.LearningRate, hiddenLayers: p.HiddenLayers, width: p.Width}
	if m.HasEnergies {
		r.pretrainSteps, r.generativeWeights = p.PretrainSteps, p.GenerativeWeights && p.Problem == MoonsName
	}
	return r
}

// filled has the numbers that are the method's own or depend on the problem.
func (p Protocol) filled(e results.Experiment, m methods.Method) Protocol {
	usual := methods.Options{InitStd: 0.01, LearningRate: 1e-3}
	if p.Problem == MoonsName {
		usual.LearningRate = 1e-2
	}
	p.Options = m.Fill(methods.Setting{Study: results.Toy, Fidelity: results.Paper, Dataset: e.Dataset}, p.Options, usual)
	if p.PretrainSteps == 0 {
		p.PretrainSteps = p.Steps / 2
	}
	return p
}

// OptionsTable lists every option of the protocol for both problems. There is no released fidelity.
func OptionsTable() report.Table {
	var versions []methods.Version
	for _, p := range []Protocol{Cubic(), Moons()} {
		versions = append(versions, methods.Version{Protocol: p, Filled: func(m methods.Method) any { return p.filled(results.Experiment{Dataset: p.Problem}, m) }})
	}
	columns := []string{"option", "cubic", "two moons", "what it is"}
	return report.PlainTable("toy-options", "", columns, methods.DescribeOptions(results.Toy, versions...))
}
