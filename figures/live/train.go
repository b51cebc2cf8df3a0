package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/baselines"
	"densityuncertainty/datasets"
	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/hmc"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
)

// A training is one method on the reader's points, with the protocol of Figure 1: a network with one hidden layer, inputs
// and targets standardised, full-batch Adam whose learning rate falls from 1e-3 along one half cosine. Figure 1 itself has
// width 50, starting noise 0.01, 4000 steps after 2000 of pretraining, and 1000 draws. With Labels it is the protocol of the
// project's two moons: a classifier with two hidden layers, and a learning rate from 1e-2. These have width 50, starting
// noise 0.01, 1000 steps after 500 of pretraining, and 100 draws.
type training struct {
	Method string    `json:"method"` // density, locations, mfvi, rank1, mcdropout, ensemble or hmc
	X      []float64 `json:"x"`
	Y      []float64 `json:"y"`
	// Labels are the classes, 0 or 1, of the points (X[i], Y[i]). Without Labels Y are real targets of the inputs X.
	Labels []int  `json:"labels,omitempty"`
	Seed   uint64 `json:"seed"`  // of initial values and noise
	Width  int    `json:"width"` // units of a hidden layer
	// InitStd is the posterior standard deviation at the start of density, locations, MFVI and Rank-1; the others have none.
	InitStd float64 `json:"initStd"`
	Steps   int     `json:"steps"`
	// PretrainSteps fit the energy models of density and locations before Steps; the other methods have none and skip them.
	PretrainSteps int `json:"pretrainSteps"`
	// Samples is the number of draws of the band or map, a multiple of 50.
	Samples int `json:"samples"`
	// Preview asks for 50 draws soon: after at most 240 steps and 60 of pretraining, with a learning rate that is
	// higher in proportion to the steps left out.
	Preview bool `json:"preview,omitempty"`
}

// An update tells how far a training is.
type update struct {
	Phase   string    `json:"phase"` // pretraining, training, drawing or done
	Step    int       `json:"step"`
	Steps   int       `json:"steps"` // pretraining included
	Seconds float64   `json:"seconds"`
	Band    *band     `json:"band,omitempty"` // nil when it has not changed
	Map     *pointMap `json:"map,omitempty"`  // the same of a classifier
}

// A band is the distribution of the function at the inputs X, in the units of the data: the mean, the standard deviation
// and the central 95% of the draws.
type band struct {
	X    []float64 `json:"x"`
	Mean []float64 `json:"mean"`
	Low  []float64 `json:"low"`
	High []float64 `json:"high"`
	Std  []float64 `json:"std"`
	// Functions are a few more draws at X, each of which is one function (predict.Options.Coherent); locations has none.
	Functions [][]float64 `json:"functions"`
	// Gaps are the intervals without points. Ratio is the mean standard deviation in the middle halves of the gaps over DataStd,
	// that where the data are; see meanStd. It is 0 without a gap or without any spread.
	Gaps    []interval `json:"gaps"`
	DataStd float64    `json:"dataStd"`
	Ratio   float64    `json:"ratio"`
}

const (
	learningRate    = 1e-3
	classifierRate  = 1e-2
	classes         = 2
	mapEvery        = 100 // steps of a classifier's training
	drawnOnTheWay   = 10  // for such a map
	ensembleMembers = 5
	gridEnd         = 6.0
	gridStep        = 0.05
	drawnAtOnce     = 50
	previewSteps    = 240
	previewPretrain = 60
	shownFunctions  = 5
	chains          = 4 // of HMC
	leapfrogs       = 50
)

// methods are the families of layers by name, with the settings of Figure 1.
var methods = map[string]func(initStd float64) nets.Layers{
	"density": func(s float64) nets.Layers { return dul.Density{InitStd: s, PriorStd: 1} },
	"locations": func(s float64) nets.Layers {
		return dul.Density{InitStd: s, PriorStd: 1, Energy: energy.LocationMixture{}}
	},
	// With its usual prior of 0.1, MFVI is too stiff for 50 units to bend into a cubic.
	"mfvi":      func(s float64) nets.Layers { return baselines.MFVI{InitStd: s, PriorStd: 1} },
	"rank1":     func(s float64) nets.Layers { return baselines.Rank1{InitStd: s, PriorStd: 0.1} },
	"mcdropout": func(float64) nets.Layers { return baselines.MCDropout{Rate: 0.1} },
	"ensemble":  func(float64) nets.Layers { return baselines.Deterministic{} },
	"hmc":       func(float64) nets.Layers { return hmc.Prior{Layers: baselines.Deterministic{}} },
}

// check refuses points that cannot be fitted, such as those that a reader has moved. It leaves the settings to the page, whose
// sliders have only possible ones.
func (t training) check() error {
	if methods[t.Method] == nil {
		return fmt.Errorf("live: there is no method %q; want one of %s", t.Method, strings.Join(slices.Sorted(maps.Keys(methods)), ", "))
	}
	if len(t.X) != len(t.Y) || len(t.X) < 2 {
		return fmt.Errorf("live: %d inputs and %d targets; want as many of one as of the other, and at least 2", len(t.X), len(t.Y))
	}
	if slices.Min(t.X) == slices.Max(t.X) {
		return fmt.Errorf("live: all points have the input %g; move one to the side", t.X[0])
	}
	return nil
}

// seeds are those of the method's networks, the same as in the project's runs of Figure 1.
func (t training) seeds() []uint64 {
	all := make([]uint64, 1)
	switch t.Method {
	case "ensemble":
		all = make([]uint64, ensembleMembers)
	case "hmc":
		all = make([]uint64, chains)
	}
	for member := range all {
		all[member] = nets.SeedOf(t.Seed, 0, member)
	}
	return all
}

// Run trains the method and tells observe how it goes: now and then in words, more seldom with a band or map, and in the end
// with the last one. The times of updates change no result. A request that cannot be carried out is an error before
// anything is trained; so is, on the way, a training that diverges. When ctx is cancelled, Run returns its error.
func (t training) Run(ctx context.Context, observe func(update)) (err error) {
	if err := t.check(); err != nil {
		return err
	}
	backend, err := gobackend.New("ops_sequential")
	if err != nil {
		return fmt.Errorf("live: %w", err)
	}
	defer backend.Finalize()
	r, err := t.begin(backend)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.functions.Close(), r.some.Close()) }()
	if t.Method == "hmc" {
		return r.exact(ctx, observe)
	}
	if err := r.fit(ctx, observe); err != nil {
		return err
	}
	return r.draw(ctx, observe)
}

// exact draws from the posterior by Hamiltonian Monte Carlo, with half of Steps to warm up, in each of several chains.
func (r *run) exact(ctx context.Context, observe func(update)) error {
	p, err := hmc.NewPosterior(r.model, train.Dataset{Inputs: r.inputs[0], Targets: r.targets})
	if err != nil {
		return fmt.Errorf("live: %w", err)
	}
	defer p.Close()
	start, err := p.Start(r.model)
	if err != nil {
		return fmt.Errorf("live: %w", err)
	}
	found, err := hmc.Sample(ctx, p.Density, start, hmc.Options{Warmup: r.Steps / 2, Draws: r.Steps - r.Steps/2, Leapfrogs: leapfrogs, Seed: r.Seed})
	if err != nil {
		return fmt.Errorf("live: %w", err)
	}
	draws := len(found.Draws[0])
	var all predict.Mixture
	for draw := 0; draw < draws; draw += max(1, draws*chains/r.Samples) {
		at := make([][]float64, chains)
		for chain := range at {
			at[chain] = found.Draws[chain][draw]
		}
		some, err := p.Predict(at, r.at[0].(nets.Floats))
		if err != nil {
			return fmt.Errorf("live: %w", err)
		}
		all.Mean = append(all.Mean, some.Mean...)
	}
	r.update = update{Phase: "done", Step: r.Steps, Steps: r.Steps, Seconds: time.Since(r.began).Seconds()}
	if r.update.Band, err = r.band(all, all.Mean[:shownFunctions]); err != nil {
		return err
	}
	observe(r.update)
	return nil
}

// A run is a training that has begun.
type run struct {
	training
	model         *nets.Model
	inputs, at    []nets.Inputs // the training inputs and those of the band or map, standardised, for each network
	targets       []float64
	input, target datasets.Scaler
	began         time.Time
	update        update // the last one
	rate          float64

	functions, some *predict.Predictor // of the functions shown or of a map on the way, and of some draws of the band or map
}

func (t training) begin(backend compute.Backend) (*run, error) {
	network := nets.MLP{Layers: methods[t.Method](t.InitStd), Widths: []int{t.Width}}
	var target likelihood.Likelihood = likelihood.Gaussian{}
	inputs, features, shown, rate, few := t.X, 1, grid(), learningRate, shownFunctions
	if t.Labels != nil {
		network.Widths, target = []int{t.Width, t.Width}, likelihood.Categorical{Classes: classes}
		inputs, features, rate, few = pairs(t.X, t.Y).Values, 2, classifierRate, drawnOnTheWay
		shown = slices.Concat(mapGrid(), inputs)
	}
	m, err := nets.NewReplicas(backend, network, target, t.seeds()...)
	if err != nil {
		return nil, fmt.Errorf("live: %w", err)
	}
	rows := datasets.Order(0, 0, len(t.X))
	r := &run{training: t, model: m, input: datasets.FitScaler(inputs, features, rows), target: datasets.FitScaler(t.Y, 1, rows), began: time.Now(), rate: rate}
	if t.Preview {
		r.Steps, r.PretrainSteps, r.Samples = min(t.Steps, previewSteps), min(t.PretrainSteps, previewPretrain), drawnAtOnce
		r.rate *= float64(t.Steps) / float64(r.Steps)
	}
	standardised := func(x []float64) []nets.Inputs {
		return slices.Repeat([]nets.Inputs{nets.Rows(r.input.Transform(x), features)}, m.Count())
	}
	r.inputs, r.at, r.targets = standardised(inputs), standardised(shown), r.target.Transform(t.Y)
	for p, o := range map[**predict.Predictor]predict.Options{
		&r.functions: {Samples: r.samples(few), Seed: new(uint64(1)), Coherent: t.Method != "locations"}, &r.some: {Samples: r.samples(drawnAtOnce)},
	} {
		if *p, err = predict.NewPredictor(m, o); err != nil {
			return nil, fmt.Errorf("live: %w", err)
		}
	}
	return r, nil
}

// How often a training tells how far it is.
const tellEvery = 50 * time.Millisecond

// fit trains the networks. A classifier is shown on the way, by draws that leave the noise of its training as it is.
func (r *run) fit(ctx context.Context, observe func(update)) error {
	trainer := train.Trainer{Settings: train.Settings{
		Epochs: r.Steps, BatchSize: len(r.X), Schedule: train.Cosine{Start: r.rate}, LogLikelihoodScale: 1,
		Groups: []train.Group{{Roles: train.AllRoles(), Optimizer: train.Adam{}}},
	}}
	if r.Method == "density" || r.Method == "locations" {
		trainer.PretrainEpochs, trainer.PretrainGroups = r.PretrainSteps, trainer.Groups
	}
	var told time.Time
	trainer.Progress = func(at train.Progress) {
		shows := r.Labels != nil && !at.Pretraining && at.Step%mapEvery == 0
		if !shows && time.Since(told) < tellEvery {
			return
		}
		r.update = update{Phase: "training", Step: at.Step, Steps: at.Steps, Seconds: time.Since(r.began).Seconds()}
		if at.Pretraining {
			r.update.Phase = "pretraining"
		}
		if shows {
			if found, err := r.sample(ctx, r.functions); err == nil { // else draw will say why
				r.update.Map, _ = r.mapOf(found)
			}
		}
		observe(r.update)
		told = time.Now()
	}
	sets := make([]train.Dataset, r.model.Count())
	for i, inputs := range r.inputs {
		sets[i] = train.Dataset{Inputs: inputs, Targets: r.targets}
		if r.Labels != nil {
			sets[i] = train.Dataset{Inputs: inputs, Labels: r.Labels}
		}
	}
	err := trainer.Fit(ctx, r.model, sets...)
	if errors.Is(err, train.ErrDiverged) {
		return fmt.Errorf("live: the training diverged; less starting noise or a smaller width may help: %w", err)
	}
	if err != nil {
		return fmt.Errorf("live: %w", err)
	}
	return nil
}

// grid are the inputs of bands.
func grid() (x []float64) {
	for i := range int(math.Round(2*gridEnd/gridStep)) + 1 {
		x = append(x, -gridEnd+gridStep*float64(i))
	}
	return x
}

// samples is how many draws of each network are made where so many are wanted: members of an ensemble have no noise.
func (r *run) samples(wanted int) int {
	if r.Method == "ensemble" {
		return 1
	}
	return wanted
}

// sample draws functions of all networks at the inputs of the band or map.
func (r *run) sample(ctx context.Context, p *predict.Predictor) (*predict.Prediction, error) {
	found, err := p.PredictReplicas(ctx, r.at...)
	if err != nil {
		return nil, fmt.Errorf("live: drawing functions: %w", err)
	}
	return predict.Ensemble(found...)
}

// draw makes the band or map from Samples draws, a few at a time, so that one can see it and stop it.
func (r *run) draw(ctx context.Context, observe func(update)) error {
	r.update.Phase, r.update.Step = "drawing", r.update.Steps
	var shown [][]float64
	if r.Labels == nil && r.Method != "locations" { // whose draws have noise of their own at each input
		functions, err := r.sample(ctx, r.functions)
		if err != nil {
			return err
		}
		shown = functions.Mean
	}
	var all []*predict.Prediction
	for wanted := r.samples(r.Samples) / r.samples(drawnAtOnce); len(all) < wanted; {
		some, err := r.sample(ctx, r.some)
		if err != nil {
			return err
		}
		all = append(all, some)
		mixed, err := predict.Ensemble(all...)
		if err != nil {
			return fmt.Errorf("live: %w", err)
		}
		if r.Labels != nil {
			r.update.Map, err = r.mapOf(mixed)
		} else {
			r.update.Band, err = r.band(mixed.Mixture, shown)
		}
		if err != nil {
			return err
		}
		if len(all) == wanted {
			r.update.Phase = "done"
		}
		r.update.Seconds = time.Since(r.began).Seconds()
		observe(r.update)
	}
	return nil
}

// band summarizes draws at the inputs of the grid, and shows functions.
func (r *run) band(drawn predict.Mixture, functions [][]float64) (*band, error) {
	x := grid()
	for _, function := range slices.Concat(drawn.Mean, functions) {
		if params.NotFinite(function) >= 0 {
			return nil, errors.New("live: the training diverged: the functions are not finite; less starting noise or a smaller width may help")
		}
	}
	b := &band{X: x, Functions: [][]float64{}}
	b.Mean, b.Std = drawn.Moments()
	b.Mean = r.target.Inverse(b.Mean)
	for _, function := range functions {
		b.Functions = append(b.Functions, r.target.Inverse(function))
	}
	values := make([]float64, len(drawn.Mean))
	for i := range x {
		b.Std[i] *= r.target.Std[0]
		for m, function := range drawn.Mean {
			values[m] = function[i]
		}
		slices.Sort(values)
		b.Low = append(b.Low, stat.Quantile(0.025, stat.LinInterp, values, nil))
		b.High = append(b.High, stat.Quantile(0.975, stat.LinInterp, values, nil))
	}
	b.Low, b.High = r.target.Inverse(b.Low), r.target.Inverse(b.High)
	var all interval
	b.Gaps, all = gaps(r.X)
	inGaps, atData := meanStd(x, b.Std, b.Gaps, all)
	if b.DataStd = atData; inGaps > 0 && atData > 0 {
		b.Ratio = inGaps / atData
	}
	return b, nil
}

// An interval of inputs, from its low end to its high end.
type interval [2]float64

// gaps finds where the points x leave room: every interval between neighbouring points that is at least minGap wide. It
// also returns the interval from the lowest point to the highest. All ends are rounded to a tenth, so that the data of
// Figure 1 have the gap [-2, 2] in [-4, 4].
func gaps(x []float64) (found []interval, all interval) {
	const minGap = 0.8
	sorted := slices.Sorted(slices.Values(x))
	tenth := func(v float64) float64 { return math.Round(v*10) / 10 }
	for i := range len(sorted) - 1 {
		if sorted[i+1]-sorted[i] >= minGap {
			found = append(found, interval{tenth(sorted[i]), tenth(sorted[i+1])})
		}
	}
	return found, interval{tenth(sorted[0]), tenth(sorted[len(sorted)-1])}
}

// meanStd averages the standard deviations std, at the inputs grid, in two places: in the middle half of each gap, and
// at the data, which is from the lowest point to the highest outside of gaps. For the data of Figure 1 these are [-1, 1],
// and [-4, -2] and [2, 4]. The first mean over the second is the gap ratio of the project's table. A place without inputs
// has the mean 0.
func meanStd(grid, std []float64, found []interval, all interval) (inGaps, atData float64) {
	const rounding = 1e-9 // the grid's inputs are sums
	var gap, data []float64
	for i, x := range grid {
		inData := x >= all[0]-rounding && x <= all[1]+rounding
		for _, g := range found {
			center, half := (g[0]+g[1])/2, (g[1]-g[0])/2
			distance := math.Abs(x - center)
			if distance <= half/2+rounding {
				gap = append(gap, std[i])
			}
			if distance < half-rounding {
				inData = false
			}
		}
		if inData {
			data = append(data, std[i])
		}
	}
	return average(gap), average(data)
}

// average is the mean of values, 0 of none.
func average(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return stat.Mean(values, nil)
}

// The two moons of the project's pictures: so many points with this noise, and the map from (mapLeft, mapLow) on.
const (
	moonsExamples            = 500
	moonsNoise               = 0.1
	mapLeft, mapLow, mapSide = -2.5, -2.75, 6.0
	mapPoints                = 52 // along either axis
)

// A pointMap is where a classifier is uncertain: the entropy of the predicted class, in nats.
type pointMap struct {
	Entropy []float64 `json:"entropy"` // at the points of mapGrid
	AtData  float64   `json:"atData"`  // its mean at the training points
	Far     float64   `json:"far"`     // its mean at the points of mapGrid that are at least 1 away from all training points
}

// mapGrid are the points of the map, row by row from below.
func mapGrid() (grid []float64) {
	const step = mapSide / (mapPoints - 1)
	for row := range mapPoints {
		for column := range mapPoints {
			grid = append(grid, mapLeft+step*float64(column), mapLow+step*float64(row))
		}
	}
	return grid
}

// mapOf summarizes a prediction of classes at the points of the map and at the training points. Without points far away Far
// is 0.
func (r *run) mapOf(found *predict.Prediction) (*pointMap, error) {
	entropy := metrics.Entropy(found.Probabilities, classes)
	if params.NotFinite(entropy) >= 0 {
		return nil, errors.New("live: the training diverged: the probabilities are not finite; less starting noise or a smaller width may help")
	}
	m := &pointMap{Entropy: entropy[:mapPoints*mapPoints], AtData: average(entropy[mapPoints*mapPoints:])}
	var far []float64
	grid := mapGrid()
	for i, v := range m.Entropy {
		nearest := math.Inf(1)
		for k, x := range r.X {
			nearest = min(nearest, math.Hypot(grid[2*i]-x, grid[2*i+1]-r.Y[k]))
		}
		if nearest >= 1 {
			far = append(far, v)
		}
	}
	m.Far = average(far)
	return m, nil
}
