package cifar

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"densityuncertainty/dul"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// noiseNames are the log-variances of density layers' noise, gamma and beta, which all presets train alike.
var noiseNames = []string{"gamma_log_variance", "beta_log_variance"}

// noiseBound is the standard deviation of the noise of density layers after each epoch of an experiment on Images, if nothing but
// the KL and weight decay moves their log-variances v. By SGD with momentum m,
//
//	b <- m b + (exp(v) / prior^2 - 1) / (2 N) + decay v,    v <- v - rate b,
//
// from v = 2 log InitStd, with N training images and the rate of each step. The likelihood, which is left out, makes noise
// smaller: in all stored runs the noise is at most this. Of two priors, that of gamma and that of beta in convolutions, it takes
// the wider one. It is an error if the layers are none of dul.Density, or the optimizer of log-variances is not train.SGD.
func noiseBound(e experiment.Experiment) ([]float64, error) {
	l, is := e.Method.Layers.(dul.Density)
	d, images := e.Task.Data.(Images)
	at := slices.IndexFunc(e.Recipe.Groups, func(g train.Group) bool { return g.Contains(noiseNames[0], params.Variational) })
	if !is || !images || at < 0 {
		return nil, fmt.Errorf("cifar: a bound of the noise is for density layers on cifar.Images whose log-variances are trained; this is %v", e)
	}
	g := e.Recipe.Groups[at]
	o, is := g.Optimizer.(train.SGD)
	if !is {
		return nil, fmt.Errorf("cifar: a bound of the noise is for log-variances that train.SGD trains; this is %T", g.Optimizer)
	}
	n, prior := d.trainN(), max(l.PriorStd, l.ConvEtaPriorStd)
	steps := (n-1)/e.Recipe.BatchSize + 1
	v, momentum := 2*math.Log(l.InitStd), 0.0
	var stds []float64
	for t := range steps * e.Recipe.Epochs {
		momentum = o.Momentum*momentum + (math.Exp(v)/(prior*prior)-1)/(2*float64(n)) + o.Decay*v
		if v -= g.Rate * e.Recipe.Schedule.Rate(t, steps*e.Recipe.Epochs) * momentum; (t+1)%steps == 0 {
			stds = append(stds, math.Exp(v/2))
		}
	}
	return stds, nil
}

// A bounding is a reading of the paper's settings, with what its noise ends at, at most.
type bounding struct {
	name   string
	std    float64 // at least the bound after all epochs of both networks and data sets, to two digits; 0 if nothing is bounded
	preset func(wide bool) experiment.Preset
}

// boundings are the two readings of the text, which does not say what decays, and the authors' code. With weight decay on
// everything the noise ends near the prior, where it bounds nothing.
var boundings = []bounding{
	{"text, decay on weights alone", 0.0013, func(wide bool) experiment.Preset { return textSettings(wide).experiment }},
	{"authors' code", 0.0024, func(wide bool) experiment.Preset { return codeSettings(wide).experiment }},
	{"authors' code, from the text's start", 0.012, func(wide bool) experiment.Preset {
		return func(d experiment.Source, m experiment.Method) (experiment.Experiment, error) {
			m.Layers, _ = methods.WithNoise(m.Layers, textStart)
			return codeSettings(wide).experiment(d, m)
		}
	}},
	{"text, decay on everything", 0, func(wide bool) experiment.Preset { return textSettings(wide).withDecay(true) }},
}

// textStart is the standard deviation of the noise at the start, by the text.
const textStart = 1e-3

func textSettings(wide bool) settings {
	if wide {
		return onWide
	}
	return paper
}

// codeSettings are the settings of the authors' code. For the Wide ResNet it takes the text's rates.
func codeSettings(wide bool) settings {
	s := released
	if wide {
		s.network, s.wide = onWide.network, true
	}
	return s
}

// of is the experiment of density layers whose noise is bounded.
func (b bounding) of(wide bool, d Images) experiment.Experiment {
	return seeded(b.preset(wide), 1).Of(d, methods.Density)[0]
}

// Noise predicts by the stored density network with other noise: the standard deviations of all its layers are Std. It takes the
// place of training.
type Noise struct{ Std float64 }

// MetricMutualInformation names the mean over test images of that of label and draw, in nats.
const MetricMutualInformation = "mutual_information"

// Check implements experiment.Program.
func (n Noise) Check(e experiment.Experiment) error {
	if _, is := e.Task.Data.(Images); !is || !(n.Std >= 0) {
		return fmt.Errorf("cifar.Noise has the standard deviation %g and data of type %T; the stored network is for cifar.Images, and noise is not negative", n.Std, e.Task.Data)
	}
	return nil
}

// Run implements experiment.Program.
func (n Noise) Run(ctx context.Context, e experiment.Experiment, d experiment.Data, progress func(done float64, note string)) (*experiment.Predictions, error) {
	backend, _, err := environment.OpenFor(environment.Images)
	if err != nil {
		return nil, err
	}
	defer backend.Finalize()
	c, err := Trained(backend, methods.Density.Key)
	if err != nil {
		return nil, err
	}
	for v := range c.model.Store.IterVariables() {
		if !slices.Contains(noiseNames, path.Base(v.Path())) {
			continue
		}
		values := slices.Repeat([]float64{2 * math.Log(max(n.Std, leastNoise))}, v.Shape().Size())
		if err := v.SetValue(params.FromFloat64(v.Shape(), values)); err != nil {
			return nil, err
		}
	}
	p := new(experiment.Predictions)
	for i, set := range d.Sets {
		inputs := set.Inputs.(nets.Pixels)
		inputs.Standardization = c.standardization
		said, err := predict.Sample(ctx, c.model, inputs, predict.Options{Samples: e.Recipe.Samples, Energies: true})
		if err != nil {
			return nil, err
		}
		p.Sets = append(p.Sets, experiment.Prediction{Set: set.Name, Labels: set.Labels, Prediction: *said})
		progress(float64(i+1)/float64(len(d.Sets)), "predicted "+set.Name)
		if set.Name == TestSet {
			p.Metrics = map[string]float64{MetricMutualInformation: stat.Mean(said.MutualInformation, nil)}
		}
	}
	return p, nil
}

// leastNoise stands for none: its variance is below what float32 sees beside anything.
const leastNoise = 1e-12

// noiseLevels are the standard deviations whose effect is measured: none, the bounds, and more.
func noiseLevels() []float64 {
	return []float64{0, boundings[0].std, boundings[1].std, boundings[2].std, 0.03, 0.1}
}

// noisy is the experiment of a level of noise: the stored density network on the images that come with the program.
func noisy(std float64) experiment.Experiment {
	e := exportedExperiment(methods.Density)
	e.Method.Key, e.Method.Name = fmt.Sprintf("density-noise-%g", std), fmt.Sprintf("Density Uncertainty, noise %g", std)
	e.Method.Program, e.Task.AfterTraining, e.Preset = Noise{std}, nil, "cifar.Noise"
	e.Recipe.Samples = 10
	e.Task.Data = Images{Name: CIFAR10, Sample: true, HeldOut: sampleHeldOut, Sets: []string{TestSet, HeldOutSet, CIFAR100, SVHNExcerpt}}
	return e
}

// boundTable shows what noise of the size of the bounds does, beside none and more.
func boundTable(x *tables.Index) (report.Table, error) {
	t := prose.Table("cifar-bound", nil)
	t.Columns = []string{"At most by"}
	var rows []row
	for _, std := range noiseLevels() {
		r := row{name: "none of them", option: fmt.Sprint(std), runs: experiment.Experiments{noisy(std)}}
		if at := slices.IndexFunc(boundings, func(b bounding) bool { return b.std == std }); at >= 0 && std > 0 {
			r.name = boundings[at].name
		}
		rows = append(rows, r)
	}
	mean := func(title, name string, decimals int) column {
		return plain(tables.Number{Title: title, Name: name, Decimals: decimals})
	}
	svhn := detectionMetric(SVHNExcerpt, "auroc")
	return fill(x, t, []column{
		words("Standard deviation", func(r row) string { return r.option }), mean("Mutual information", MetricMutualInformation, 5), mean("NLL", experiment.MetricNLL, 4),
		mean("ECE", experiment.MetricECE, 4), mean("AUROC, CIFAR-100", detectionMetric(CIFAR100, "auroc"), 3), mean("AUROC, SVHN", svhn, 3), mean("AUROC, SVHN, by energy", svhn+ByEnergy, 3),
	}, rows)
}

// boundFigure draws the bounds over the epochs, and beside them the mutual information that noise of a size brings.
func boundFigure(x *tables.Index) (report.Figure, error) {
	f := report.Figure{Name: "cifar-bound", Width: vg.Points(560), Height: vg.Points(270), Caption: prose.Caption("cifar-bound picture", nil)}
	over, brings := report.New("at most, over the epochs", "epoch", "noise (deviation)"), report.New("what it brings", "noise (deviation)", "information (nats)")
	var stds, information []float64
	for _, std := range noiseLevels() {
		if r, has := x.Find(noisy(std)); has && std > 0 {
			stds, information = append(stds, std), append(information, r.Metrics[MetricMutualInformation])
		}
	}
	if len(stds) == 0 {
		return f, report.ErrNotRun
	}
	err := report.Line(brings, "", stds, information, report.Grey)
	var marks []report.Mark
	for i, b := range boundings {
		bound, boundErr := noiseBound(b.of(false, ten))
		if boundErr != nil {
			return f, boundErr
		}
		epochs, mark := make([]float64, len(bound)), report.Mark{Name: b.name, Colour: report.Palette()[i], Shape: draw.CircleGlyph{}}
		for k := range epochs {
			epochs[k] = float64(k + 1)
		}
		marks, err = append(marks, mark), errors.Join(err, report.Line(over, "", epochs, bound, mark.Colour))
		if at := slices.Index(stds, b.std); at >= 0 {
			err = errors.Join(err, report.Points(brings, "", stds[at:at+1], information[at:at+1], mark.Colour, 3))
		}
	}
	for _, axis := range []*plot.Axis{&over.Y, &brings.X, &brings.Y} {
		low, high := axis.Min, axis.Max
		report.LogAxis(axis, []float64{low, high})
		axis.Min = low
	}
	f.Panels, f.Legend = [][]*plot.Plot{{over, brings}}, report.Legend(marks...)
	return f, err
}
