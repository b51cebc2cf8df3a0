package predict

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// Options say how predictions are drawn.
type Options struct {
	// Samples is the number M of samples; 0 means 25, as in the paper.
	Samples int
	// BatchSize is the number of inputs that are computed at once. 0 means at most 4096; for images 128 on the pure Go
	// backend and 500 on others. With Training, 0 means all inputs if they are nets.Floats.
	BatchSize int
	// KeepOutputs keeps the outputs of all samples of a classification too, as Prediction.Outputs.
	KeepOutputs bool
	// Energies asks for the energies of the layers' inputs. It is an error if no layer has an energy model.
	Energies bool
	// Seed, if not nil, makes the noise depend only on Seed, on the model's own seeds and parameters, and on the
	// numbers of sample and input. The same call then returns the same prediction, whatever was computed before, and up
	// to rounding for every BatchSize. The noise is drawn on the host on all backends. If Seed is nil, each call
	// continues the model's stream of noise and gets other draws.
	Seed *uint64
	// SameNoise gives every input the noise of the first input, so that equal inputs have equal predictions. It needs a
	// Seed.
	SameNoise bool
	// Coherent makes each sample one function of the input: all inputs share its noise. At each single input the
	// prediction has the same distribution as without it (see dul.Density.Dense). It needs a Seed, and excludes
	// Training. It is an error for layers that have no coherent draws: layers with noise for each pixel, Gaussian
	// processes, and the settings of dul.Density that Dense names.
	Coherent bool
	// Training applies the network as in training: batch normalisation uses the statistics of the batch and updates its
	// running statistics. Use it for an untrained network.
	Training bool
	// Progress, if not nil, is called after each batch with the number of inputs that are done.
	Progress func(done, total int)
}

// check says which options cannot be.
func (o Options) check() error {
	if o.Samples < 0 || o.BatchSize < 0 {
		return fmt.Errorf("%d samples in batches of %d; neither may be negative", o.Samples, o.BatchSize)
	}
	if o.Coherent && (o.Seed == nil || o.Training) {
		return errors.New("predict.Options.Coherent needs a Seed, by which batches share their noise, and no Training, in which a prediction depends on its batch")
	}
	if o.SameNoise && o.Seed == nil {
		return errors.New("predict.Options.SameNoise needs a Seed")
	}
	return nil
}

func (o Options) withDefaults(m *nets.Model, images bool, n int) Options {
	if o.Samples == 0 {
		o.Samples = 25
	}
	if o.BatchSize == 0 && images {
		if o.BatchSize = 500; m.Host != nil {
			o.BatchSize = 128
		}
	}
	if o.BatchSize == 0 && !o.Training {
		o.BatchSize = mostRows
	}
	if o.BatchSize == 0 || o.BatchSize > n {
		o.BatchSize = n
	}
	return o
}

// mostRows is how many rows are computed at once unless Options say so: more take more memory and no less time.
const mostRows = 4096

// A Prediction holds what M samples predict at N inputs. NLL and LogDensities score it for every likelihood; Predictive
// returns the distribution of a real target.
type Prediction struct {
	// Likelihood is the model's. It decides which of the following fields are set.
	Likelihood likelihood.Likelihood

	// Outputs are the network's outputs, [M][N*Width]. For a likelihood.Classification they are its likelihood.Logits,
	// and set only with Options.KeepOutputs. They are nil for a likelihood.Regression or likelihood.Distribution.
	Outputs [][]float64
	// Width is the number of outputs for each input.
	Width int

	// Mixture is the predictive distribution for a likelihood.Regression.
	Mixture

	// Parameters are the parameters of the target's distribution, [M][N*Width], for a likelihood.Distribution that is
	// no likelihood.Regression.
	Parameters [][]float64

	// Probabilities are p(y | x) = 1/M sum_m p(y | outputs_m(x)), [N*Width], for a likelihood.Classification.
	Probabilities []float64
	// MutualInformation is the mutual information of label and sample in nats, [N]: the entropy of Probabilities minus
	// the mean entropy of the samples' probabilities.
	MutualInformation []float64

	// Energies are the energies of the layers' inputs, in the order of the layers; nil without Options.Energies.
	Energies []LayerEnergy
	// LastConvolution is the index in Energies of the last convolution that sees more than one pixel, or -1. Its energy
	// is the paper's score for inputs unlike the training data.
	LastConvolution int

	// Of a likelihood that says no more than its NLL: a copy of the model as it was, or the members of an ensemble.
	model   *nets.Model
	members []*Prediction
}

// A LayerEnergy is the energy E(h) of the input h of one layer, at N inputs of the network. For an image it is the mean
// over positions. It is not clipped.
type LayerEnergy struct {
	// Layer is the layer's scope below the network's, as in nets.LayerEnergy.
	Layer string
	Mean  []float64 // mean over the samples, [N]
}

// A Predictor makes many predictions by one model. It always uses the model's present parameters; do not train the
// model meanwhile. It compiles a graph whenever the shape of a batch differs from the previous call's, so set
// Options.BatchSize if the number of inputs varies. Several goroutines may use a Predictor: all predictions by one
// model take turns. On the pure Go backend the outputs of a single input differ from those in a batch by up to 4e-7 of
// the largest output.
type Predictor struct {
	model   *nets.Model
	options Options
	shape   string   // of the batches of the compiled graph
	sampler *sampler // nil before the first call
}

var errNoModel = errors.New("there is no model to predict by; nets.New makes one")

// NewPredictor returns a Predictor with the options. Invalid options are an error. Call Close to free the Predictor.
func NewPredictor(m *nets.Model, o Options) (*Predictor, error) {
	if m == nil {
		return nil, errNoModel
	}
	return &Predictor{model: m, options: o}, errors.Join(m.Check(), o.check())
}

// Predict returns the prediction of a model without replicas. Batch normalisation uses its running statistics, unless
// Training is set. Noise is drawn for every sample; noise of weights also for every batch, unless there is a Seed. NaN
// or infinite outputs are an error that wraps metrics.ErrValue.
func (p *Predictor) Predict(ctx context.Context, x nets.Inputs) (*Prediction, error) {
	all, err := p.PredictReplicas(ctx, x)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// PredictReplicas returns the prediction of each replica r at its own inputs x[r], which are nets.Floats. A replica
// that diverged predicts NaN without an error. A model without replicas takes one set of inputs, as Predict does.
func (p *Predictor) PredictReplicas(ctx context.Context, x ...nets.Inputs) ([]*Prediction, error) {
	all, err := p.predict(ctx, x...)
	if err == nil && p.model.Replicas == 0 {
		err = all[0].checkFinite(0)
	}
	return all, err
}

// Close frees the compiled graph. The model stays as it is.
func (p *Predictor) Close() error {
	defer p.model.Lock()()
	return p.drop()
}

// drop frees the graph.
func (p *Predictor) drop() error {
	if p.sampler == nil {
		return nil
	}
	err := p.sampler.graph.close()
	p.sampler = nil
	return err
}

// Sample makes one prediction by a model without replicas; see Predictor.Predict.
func Sample(ctx context.Context, m *nets.Model, x nets.Inputs, o Options) (found *Prediction, err error) {
	p, err := NewPredictor(m, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	return p.Predict(ctx, x)
}

// SampleReplicas makes one prediction by each replica of a model; see Predictor.PredictReplicas.
func SampleReplicas(ctx context.Context, m *nets.Model, x []nets.Inputs, o Options) (found []*Prediction, err error) {
	p, err := NewPredictor(m, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	return p.PredictReplicas(ctx, x...)
}

// checkFinite returns an error, which wraps metrics.ErrValue, if an output is NaN or infinite. first is the number of the
// first input.
func (p *Prediction) checkFinite(first int) error {
	for _, what := range []struct {
		name    string
		samples [][]float64
	}{{"mean", p.Mean}, {"deviation", p.Std}, {"noise's deviation", p.NoiseStd}, {"output", p.Outputs}, {"distribution's parameter", p.Parameters}} {
		for m, values := range what.samples {
			if at := params.NotFinite(values); at >= 0 {
				return fmt.Errorf("sample %d of the %s at input %d is %g: the training diverged, or the input is too far from the training data: %w", m, what.name, first+at/max(p.Width, 1), values[at], metrics.ErrValue)
			}
		}
	}
	return nil
}

// MixesExamples reports whether outputs for one input depend on the other inputs of its batch, as after an operation over
// the batch axis. It predicts the first inputs of x one by one and in batches of these sizes. Outputs depend if they
// differ by more than 1e-4 of the largest. coherent is Options.Coherent. A prediction that fails is an error.
func MixesExamples(ctx context.Context, m *nets.Model, x nets.Inputs, coherent bool, sizes ...int) (bool, error) {
	var alone []float64
	for i, size := range append([]int{1}, sizes...) {
		p, err := Sample(ctx, m.With(m.Network), nets.First(x, max(size, 4)), Options{Samples: 1, Seed: new(uint64), BatchSize: size, Coherent: coherent})
		if err != nil {
			return false, err
		}
		if outputs := p.Outputs[0]; i == 0 {
			alone = outputs
		} else if floats.Distance(outputs[:len(alone)], alone, math.Inf(1)) > 1e-4*floats.Norm(alone, math.Inf(1)) {
			return true, nil
		}
	}
	return false, nil
}

// NotFinite returns the first number of the prediction, or of further lists, that is NaN or has an infinite square. If
// answers is the number of inputs, row is the number's input; if answers is 0, its place in its list. If there is no such
// number, row is -1. A Gaussian so narrow that the log density of a target of order 1 is infinite counts too.
func (p *Prediction) NotFinite(answers int, further ...[]float64) (row int, value float64) {
	all := slices.Concat(p.Mean, p.Std, p.NoiseStd, p.Outputs, p.Parameters, [][]float64{p.Probabilities, p.MutualInformation}, further)
	for _, layer := range p.Energies {
		all = append(all, layer.Mean)
	}
	for m, variances := range p.Variances() {
		precisions := make([]float64, len(variances))
		for i, v := range variances {
			precisions[i] = (1 + math.Abs(p.Mean[m][i])) / math.Sqrt(v)
		}
		all = append(all, precisions)
	}
	for _, values := range all {
		i := slices.IndexFunc(values, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v*v, 0) })
		switch {
		case i < 0:
			continue
		case answers > 0:
			return i / max(1, len(values)/answers), values[i]
		}
		return i, values[i]
	}
	return -1, 0
}

// A sampler is a compiled graph, and the state of one call that uses it.
type sampler struct {
	Options
	model           *nets.Model
	graph           *repeated
	networkCopies   int // in the graph, each for one sample
	samplesPerBatch int // samples whose rows are in one batch

	inputs []nets.Inputs // of each replica
	total  int           // of the largest replica
	found  []*Prediction // of each replica

	regression   likelihood.Regression   // nil for none
	distribution likelihood.Distribution // that is no regression; nil for none
	classes      likelihood.Classification
	width        int
	layers       []nets.LayerEnergy // of the graph that was built last
}

func (p *Predictor) predict(ctx context.Context, inputs ...nets.Inputs) (found []*Prediction, err error) {
	defer p.model.Lock()()
	if len(inputs) != p.model.Count() {
		return nil, fmt.Errorf("%d sets of inputs for a model with %d replicas; give predict.SampleReplicas, or PredictReplicas, a set for each", len(inputs), p.model.Replicas)
	}
	total := 0
	for r, x := range inputs {
		if err := nets.CheckInputs(x, inputs[0]); err != nil {
			if p.model.Replicas > 0 {
				err = fmt.Errorf("replica %d: %w", r, err)
			}
			return nil, err
		}
		total = max(total, x.Len())
		one := &Prediction{Likelihood: p.model.Likelihood, LastConvolution: -1}
		if saysNoMore(one.Likelihood) {
			if one.model, err = p.model.Copy(r); err != nil {
				return nil, err
			}
		}
		found = append(found, one)
	}
	pixels, images := inputs[0].(nets.Pixels)
	o := p.options.withDefaults(p.model, images, total)
	shape := fmt.Sprint(o.BatchSize, pixels.Height, pixels.Width, pixels.Standardization)
	if x, is := inputs[0].(nets.Floats); is {
		shape = fmt.Sprint(o.BatchSize, x.Shape)
	}
	if p.sampler == nil || p.shape != shape || p.sampler.graph.stale() {
		if err := p.drop(); err != nil {
			return nil, err
		}
		s := &sampler{Options: o, model: p.model, networkCopies: 1, samplesPerBatch: 1, inputs: inputs}
		if err := s.compile(); err != nil {
			return nil, err
		}
		p.shape, p.sampler = shape, s
	}
	s := p.sampler
	s.inputs, s.total, s.found = inputs, total, found
	for done := 0; done < total; {
		count := min(s.BatchSize, total-done)
		if err := s.batch(ctx, done, count); err != nil {
			return nil, errors.Join(fmt.Errorf("predicting input %d and those after it: %w", done, err), p.drop()) // it may have been left half-way
		}
		done += count
		if s.Progress != nil {
			s.Progress(done, total)
		}
	}
	return found, nil
}

// mostCopies is how many copies of a network a graph has at most. More save the start of an execution, and take as much
// longer to compile.
const mostCopies = 5

// tiledRows is the largest number of rows of a batch that has the rows of several samples.
const tiledRows = 512

// compile prepares the graph. If the graph draws its own noise, it has copies of the network, one for each of several
// samples. With a Seed, and noise that differs between examples, several samples are rows of one batch instead, which
// is faster for few inputs.
func (p *sampler) compile() error {
	p.regression, _ = p.model.Likelihood.(likelihood.Regression)
	if p.regression == nil {
		p.distribution, _ = p.model.Likelihood.(likelihood.Distribution)
	}
	p.classes, _ = p.model.Likelihood.(likelihood.Classification)
	for k := 2; k <= mostCopies && p.model.Host == nil; k++ {
		if p.Samples%k == 0 {
			p.networkCopies = k
		}
	}
	seeded, err := p.seededNoise(p.BatchSize + 1)
	if err != nil {
		return err
	}
	if seeded != nil && !p.Coherent && !p.Training {
		other, err := p.seededNoise(p.BatchSize + 2)
		if err != nil {
			return err
		}
		for k := 2; k <= p.Samples && k*p.BatchSize <= tiledRows && seeded.PerExample(other); k++ {
			if p.Samples%k == 0 {
				p.samplesPerBatch, p.networkCopies = k, 1
				seeded.RowsPerSample(p.BatchSize)
			}
		}
	}
	p.graph, err = newRepeated(p.model, p.build, seeded, p.networkCopies, p.samplesPerBatch)
	return err
}

// seededNoise is the source of noise of Options.Seed, nil without one, which has traced a graph of more examples than any
// batch has.
func (p *sampler) seededNoise(examples int) (*stochastic.Seeded, error) {
	if p.Seed == nil {
		return nil, nil
	}
	seeds := make([]uint64, p.model.Count())
	copy(seeds, p.model.Seeds())
	seeded := stochastic.NewSeeded(*p.Seed, seeds, p.model.Replicas > 0)
	if p.SameNoise {
		seeded.SameNoise()
	}
	once := *p
	once.networkCopies = 1
	inputs := p.rows(0, 0, examples)
	err := nets.Build(p.model.Backend, p.model.Store, func(root *model.Scope, in []*graph.Node) {
		stochastic.SetNoiseSource(in[0].Graph(), seeded.Trace(examples))
		once.build(root, in[0])
	}, inputs.Shape())
	return seeded, errors.Join(err, inputs.FinalizeAll())
}

// build applies copies of the network to a batch. It returns, with
// Energies, those of all layers, [copies, ..., batch, layers], the
// log-variances of a regression, and last the network's outputs, [copies,
// ..., batch, Width].
func (p *sampler) build(root *model.Scope, x *graph.Node) []*graph.Node {
	g := x.Graph()
	root.Store().SetTraining(g, p.Training)
	params.FactsOf(g).Coherent = p.Coherent
	rows := x.Shape().Dim(len(p.model.LeadingAxes()))
	if pixels, is := p.inputs[0].(nets.Pixels); is {
		x = pixels.Standardization.Images(x, p.model.DType)
	}
	var outputs, logVariances, energies []*graph.Node
	for range p.networkCopies {
		before := len(nets.Energies(g))
		s := p.model.Scope(root.ResetVisited())
		y := p.model.Apply(s, x)
		p.model.CheckOutputs(s, y, rows)
		if p.regression != nil {
			mean, logVariance := p.regression.Moments(s, y)
			y, logVariances = mean, append(logVariances, graph.ExpandAxes(logVariance, 0))
		}
		if p.distribution != nil {
			y = p.distribution.Parameters(s, y)
		}
		if p.classes != nil {
			y = likelihood.Logits(p.classes, s, y)
		}
		p.width = y.Shape().Dim(-1)
		outputs = append(outputs, graph.ExpandAxes(y, 0))
		if p.Energies {
			if p.layers = nets.Energies(g)[before:]; len(p.layers) == 0 {
				panic(errors.New("energies were asked for, but no layer of the network has an energy model, or the network does not build its layers by nets.Positions"))
			}
			energies = append(energies, graph.ExpandAxes(sideBySide(p.layers), 0))
		}
	}
	// The Go backend fails on graphs whose last node is not an output.
	var list []*graph.Node
	for _, parts := range [][]*graph.Node{energies, logVariances, outputs} {
		if parts != nil {
			list = append(list, graph.Concatenate(parts, 0))
		}
	}
	return list
}

func sideBySide(layers []nets.LayerEnergy) *graph.Node {
	columns := make([]*graph.Node, len(layers))
	for l, layer := range layers {
		columns[l] = layer.Energy
	}
	return graph.Concatenate(columns, -1)
}

// batch predicts at inputs first to first+count-1. The last batch is filled up
// with zeros, except in training, where they would enter the statistics.
func (p *sampler) batch(ctx context.Context, first, count int) error {
	rows := p.BatchSize
	if p.Training {
		rows = count
	}
	inputs := p.rows(first, count, rows)
	replicas := make([]drawn, len(p.found))
	err := p.graph.repeat(ctx, inputs, first, p.Samples/(p.networkCopies*p.samplesPerBatch), func(out [][]float64) {
		// part is that of sample k of replica r.
		part := func(values []float64, k, r int) []float64 {
			size := len(values) / (p.networkCopies * len(replicas))
			all := values[(k/p.samplesPerBatch*len(replicas)+r)*size:][:size]
			if size == 1 { // of all samples and inputs
				return all
			}
			size /= p.samplesPerBatch
			return all[k%p.samplesPerBatch*size:][:size:size]
		}
		outputs := out[len(out)-1] // in the order of build
		for k := range p.networkCopies * p.samplesPerBatch {
			for r := range replicas {
				d := &replicas[r]
				d.outputs = append(d.outputs, part(outputs, k, r))
				if p.Energies {
					d.energies = append(d.energies, part(out[0], k, r))
				}
				if p.regression != nil {
					d.logVariances = append(d.logVariances, part(out[len(out)-2], k, r))
				}
			}
		}
	})
	if err := errors.Join(err, inputs.FinalizeAll()); err != nil {
		return err
	}
	for r, found := range p.found {
		if n := min(p.inputs[r].Len()-first, count); n > 0 {
			if err := p.add(found, replicas[r], n); err != nil {
				return err
			}
		}
	}
	return nil
}

// drawn are the samples of one replica at the inputs of a batch, each [M].
type drawn struct{ energies, logVariances, outputs [][]float64 }

// rows are the inputs of a batch as a tensor, with so many rows, repeated samplesPerBatch times.
func (p *sampler) rows(first, count, rows int) *tensors.Tensor {
	if pixels, is := p.inputs[0].(nets.Pixels); is {
		size := pixels.Size()
		padded := make([]byte, rows*size)
		copy(padded, pixels.Bytes[first*size:(first+count)*size])
		return tensors.FromFlatDataAndDimensions(slices.Repeat(padded, p.samplesPerBatch), p.samplesPerBatch*rows, pixels.Channels(), pixels.Height, pixels.Width)
	}
	shape := p.inputs[0].(nets.Floats)
	size := shape.Size()
	var all []float64
	for _, x := range p.inputs {
		padded, values := make([]float64, rows*size), x.(nets.Floats).Values
		copy(padded, values[min(first*size, len(values)):min((first+count)*size, len(values))])
		all = append(all, slices.Repeat(padded, p.samplesPerBatch)...)
	}
	dims := append(append(p.model.LeadingAxes(), p.samplesPerBatch*rows), shape.Shape...)
	return params.FromFloat64(shapes.Make(p.model.DType, dims...), all)
}

// add appends what a replica says of n further inputs.
func (p *sampler) add(to *Prediction, d drawn, n int) error {
	outputs := d.outputs
	for m := range outputs {
		outputs[m] = outputs[m][:n*p.width]
	}
	to.Width = p.width
	switch {
	case p.regression != nil:
		to.addMixture(outputs, d.logVariances, n)
	case p.distribution != nil:
		appendEach(&to.Parameters, outputs)
	case p.classes != nil:
		if err := p.addClasses(to, outputs); err != nil {
			return err
		}
	}
	if p.regression == nil && p.distribution == nil && (p.classes == nil || p.KeepOutputs) {
		appendEach(&to.Outputs, outputs)
	}
	if p.Energies {
		to.addEnergies(p.layers, d.energies, n)
	}
	return nil
}

// addClasses appends what samples of logits, [M][n*Width], say of n further inputs. Where the logits of a replica are NaN
// or infinite, so are probabilities NaN; for a model without replicas that is an error. LogProbabilities that do not sum to 1
// are an error.
func (p *sampler) addClasses(to *Prediction, logits [][]float64) error {
	first := len(to.MutualInformation)
	if p.model.Replicas == 0 {
		if err := (&Prediction{Outputs: logits, Width: p.width}).checkFinite(first); err != nil {
			return err
		}
	}
	_, softmax := p.classes.(likelihood.Categorical) // whose logits need not be logarithms of probabilities
	for _, sample := range logits {
		for i := range len(sample) / p.width {
			row := sample[i*p.width : (i+1)*p.width]
			if params.NotFinite(row) >= 0 {
				row[0] = math.NaN() // and with it the probabilities
			} else if total := floats.LogSumExp(row); !softmax && math.Abs(total) > 1e-3 {
				return fmt.Errorf("by the LogProbabilities of the likelihood of type %T, the probabilities at input %d sum to %.4g; they must sum to 1", p.classes, first+i, math.Exp(total))
			}
		}
	}
	to.Probabilities = append(to.Probabilities, metrics.MeanProbabilities(logits, p.width)...)
	to.MutualInformation = append(to.MutualInformation, metrics.MutualInformation(logits, p.width)...)
	return nil
}

// A repeated is a graph of a model that is executed again and again, each time
// with fresh noise.
type repeated struct {
	exec     *model.Exec
	store    *model.Store
	noise    *stochastic.NoiseBuffers // nil where noise is drawn in the graph
	seeded   *stochastic.Seeded       // the source of noise; nil if noise continues the model's stream
	samples  int                      // of an execution
	executed bool
	// Of the graph that was built last: whether executions differ, and the model's variables that it reads.
	noisy     bool
	variables []*model.Variable
}

// stale says whether the store no longer has one of the variables, as after a training that replaces it.
func (r *repeated) stale() bool {
	return slices.ContainsFunc(r.variables, func(v *model.Variable) bool { return r.store.GetVariable(v.Path()) != v })
}

// newRepeated prepares the graph of build, which is given the store's root scope
// and the inputs, and which applies the network networkCopies times, each time for samplesPerBatch samples.
func newRepeated(m *nets.Model, build func(root *model.Scope, x *graph.Node) []*graph.Node, seeded *stochastic.Seeded, networkCopies, samplesPerBatch int) (*repeated, error) {
	r := &repeated{store: m.Store, seeded: seeded, samples: networkCopies * samplesPerBatch}
	switch {
	case seeded != nil:
		r.noise = seeded.NewBuffers(networkCopies)
	case m.Host != nil:
		r.noise = m.Host.NewBuffers()
	}
	var err error
	r.exec, err = model.NewExec(m.Backend, m.Store, func(root *model.Scope, x *graph.Node) []*graph.Node {
		defer nets.PanicWithError("building the prediction")
		if r.noise != nil {
			stochastic.SetNoiseSource(x.Graph(), r.noise)
		}
		outputs := build(root, x)
		r.variables = nil
		for v := range m.Store.IterVariables() {
			if v.InUseByGraph(x.Graph()) {
				r.variables = append(r.variables, v)
			}
			if v.ChangedInGraph(x.Graph()) && x.Graph().GetParameterByName(v.Path()) == nil {
				panic(fmt.Errorf("the network changes variable %s, which this graph read as a constant, so that every sample would start from the same value; read it with params.Input", v.Path()))
			}
		}
		r.noisy = params.FactsOf(x.Graph()).Noise
		return outputs
	})
	if err != nil {
		return nil, fmt.Errorf("building the prediction: %w", err)
	}
	return r, nil
}

// repeat executes the graph for the same inputs, numbered from
// first, and hands each execution's outputs to use. Without noise all would have the same outputs, and only the
// first is carried out.
func (r *repeated) repeat(ctx context.Context, inputs *tensors.Tensor, first, times int, use func(out [][]float64)) error {
	var out [][]float64
	for m := range times {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("stopped after %d of %d executions: %w", m, times, err)
		}
		if m == 0 || r.noisy {
			if r.seeded != nil {
				r.seeded.StartAt(m*r.samples, first)
			}
			var err error
			if out, err = r.outputs(inputs); err != nil {
				return fmt.Errorf("execution %d: %w", m, err)
			}
		} else {
			out = slices.Clone(out)
			for i, row := range out {
				out[i] = slices.Clone(row) // what use was given is its own
			}
		}
		use(out)
	}
	return nil
}

// outputs executes the graph once.
func (r *repeated) outputs(inputs *tensors.Tensor) ([][]float64, error) {
	if r.executed && r.noise != nil {
		if err := r.noise.Refresh(); err != nil {
			return nil, err
		}
	}
	r.executed = true
	nodes, err := r.exec.Call(inputs)
	if err != nil {
		return nil, nets.Cause(err)
	}
	out := make([][]float64, len(nodes))
	for i, node := range nodes {
		if out[i], err = params.ToFloat64(node); err != nil {
			return nil, err
		}
		// Go's collector does not see how much of an accelerator's memory a tensor holds.
		if err := node.FinalizeAll(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// close frees the compiled graph and its noise.
func (r *repeated) close() error {
	r.exec.Finalize()
	if r.noise == nil {
		return nil
	}
	return r.noise.Release(r.store)
}

// appendEach appends each sample's part to what there is of it.
func appendEach(to *[][]float64, parts [][]float64) {
	if *to == nil {
		*to = make([][]float64, len(parts))
		for m, part := range parts {
			(*to)[m] = slices.Clip(part) // what follows it belongs to others
		}
		return
	}
	for m, part := range parts {
		(*to)[m] = append((*to)[m], part...)
	}
}

// addEnergies appends the energies of n inputs, [M][n*layers].
func (p *Prediction) addEnergies(layers []nets.LayerEnergy, samples [][]float64, n int) {
	if p.Energies == nil {
		p.Energies = make([]LayerEnergy, len(layers))
		for l, layer := range layers {
			if layer.Window.Pixels() > 1 {
				p.LastConvolution = l
			}
		}
	}
	for l := range p.Energies {
		to := &p.Energies[l]
		to.Layer = layers[l].Layer
		for i := range n {
			mean, at := 0.0, i*len(layers)+l
			for _, energies := range samples {
				mean += energies[at] / float64(len(samples))
			}
			to.Mean = append(to.Mean, mean)
		}
	}
}
