// Package trained answers by trained networks, each from a file of its own, in the units of the data:
//
//	o, err := trained.Open(file, nets.MLP{Layers: layers, Widths: []int{50}}, likelihood.Gaussian{})
//	answer, err := o.Predict(ctx, []float64{0.1, 2.5})
//
// experiment.Engine keeps such files in its folder Networks, and Save writes them for a network that you trained by package train.
package trained

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment"
	"densityuncertainty/figures/spec"
)

// Extension ends the names of the files: safetensors files with the parameters and running statistics of one network.
const Extension = ".safetensors"

// format is the version of the format.
const format = "densityuncertainty network 1"

// The keys of a file's metadata. VersionKey is for the version of the program that trained the network, which an error of Open names.
const formatKey, scaleKey, graphKey, VersionKey = "format", "scale", "graph", "version"

// A Scale says how the data's own inputs and targets became those of the network. The zero value is for images.
type Scale struct {
	// Shape is the shape of one input, such as [features]. It is nil for images, whose file has only parameters.
	Shape []int `json:"shape"`
	// Inputs, if not nil, is how inputs were standardised.
	Inputs *datasets.Scaler `json:"inputs,omitempty"`
	// Columns, if not nil, are the columns of a table before they became inputs.
	Columns datasets.Columns `json:"columns,omitempty"`
	// A target t of the network stands for t Unit + Zero in the data's own units. A Unit of 0 means 1.
	Unit, Zero float64
}

// Check returns an error if a number that must be positive is not, or if Inputs or Columns are for another number of inputs.
func (s Scale) Check() error {
	size := nets.Floats{Shape: s.Shape}.Size()
	switch {
	case slices.ContainsFunc(s.Shape, func(n int) bool { return n < 1 }):
		return fmt.Errorf("the inputs have the shape %v; its numbers must be positive", s.Shape)
	case !(s.Unit >= 0):
		return fmt.Errorf("the Unit is %g; it must be positive", s.Unit)
	case s.Inputs != nil && (len(s.Inputs.Mean) != size || len(s.Inputs.Std) != size) || s.Columns != nil && s.Columns.Width() != size:
		return fmt.Errorf("the inputs of shape %v have a Scaler or Columns for another number of inputs", s.Shape)
	case s.Inputs != nil && slices.ContainsFunc(s.Inputs.Std, func(std float64) bool { return !(std > 0) }):
		return fmt.Errorf("the Scaler of the inputs has the deviations %v; all must be positive", s.Inputs.Std)
	}
	return nil
}

// header is what a file says of its network as JSON.
type header struct {
	Scale
	Likelihood string `json:"likelihood,omitempty"` // as the identity of experiments has it
}

// Save writes a trained model to a file, for Open. l is its likelihood for targets in the data's own units, and metadata, which can be
// nil, has further texts for the file. A model with replicas is an error (save each of Model.Replica), and so are a scale of another
// shape and a likelihood that is not the model's.
func Save(path string, m *nets.Model, l likelihood.Likelihood, s Scale, metadata map[string]string) error {
	fail := func(err error) error { return fmt.Errorf("trained: saving the network %s: %w", path, err) }
	s.Unit = cmp.Or(s.Unit, 1)
	if m.Replicas > 0 {
		return fail(fmt.Errorf("the model has %d replicas; save each of Model.Replica in a file of its own", m.Replicas))
	}
	if err := s.Check(); err != nil {
		return fail(err)
	}
	own, err := likelihood.Rescaled(l, s.Unit, s.Zero)
	if err == nil && spec.TextOf(own) != spec.TextOf(m.Likelihood) {
		err = fmt.Errorf("the likelihood %s, of targets in the data's own units, is not the model's", spec.TextOf(l))
	}
	digest := ""
	if err == nil && s.Shape != nil {
		digest, err = graphOf(m, l, s.Shape)
	}
	if err != nil {
		return fail(err)
	}
	text, err := json.Marshal(header{s, spec.TextOf(l)})
	if err != nil {
		return fail(err)
	}
	all := maps.Clone(metadata)
	if all == nil {
		all = map[string]string{}
	}
	all[formatKey], all[scaleKey], all[graphKey] = format, string(text), digest
	return checkpoint.Export(m.Store, path, all)
}

// An Opened network answers questions in the data's own units.
type Opened struct {
	scale     Scale
	named     map[string]*tensors.Tensor // of the file
	model     *nets.Model
	one, many *predict.Predictor // of a single row, and of batches
}

// An Answer is the prediction of one input.
type Answer struct {
	// Mean is the mean of a real target, which lies from Low to High with a predicted probability of 95%.
	Mean, Low, High float64
	// Probabilities are the probabilities of the classes.
	Probabilities []float64
}

// An answer has answerDraws draws. answerBatch rows are predicted at a time.
const answerDraws, answerBatch = 100, 64

// Open opens the file of a trained network that experiment.Engine has kept in its folder Networks, or Save has written; each
// member of an ensemble has a file. Give the network and the likelihood as they were trained, such as nets.MLP{Layers: layers,
// Widths: widths}. It is an error if the likelihood, a shape, or a setting that changes what the network computes is different.
// Answers have 100 draws, by the seed 0; see With.
func Open(path string, network nets.Network, l likelihood.Likelihood) (*Opened, error) {
	fail := func(err error) (*Opened, error) {
		return nil, fmt.Errorf("trained: opening the network %s: %w", path, err)
	}
	named, metadata, err := checkpoint.ReadTensors(path)
	if err != nil {
		return fail(err)
	}
	var head header
	if metadata[formatKey] != format || json.Unmarshal([]byte(metadata[scaleKey]), &head) != nil || head.Shape == nil {
		return fail(errors.New("it is not a file of Engine.Networks of a network whose inputs are nets.Floats"))
	}
	if err := head.Check(); err != nil {
		return fail(fmt.Errorf("the file is damaged: %w", err))
	}
	head.Unit = cmp.Or(head.Unit, 1)
	o := &Opened{named: named, scale: head.Scale}
	if was, is := head.Likelihood, spec.TextOf(l); was != is && was != "" {
		return fail(fmt.Errorf("it was trained with the likelihood %s, not with %s", was, is))
	}
	own, err := likelihood.Rescaled(l, o.scale.Unit, o.scale.Zero)
	backend, _, noBackend := environment.OpenFor(environment.ShortTrainings)
	if err := errors.Join(err, noBackend); err != nil {
		return fail(err)
	}
	if o.model, err = loaded(backend, network, own, named); err == nil {
		o, err = o.With(answerDraws, 0)
	}
	if err == nil {
		if _, err = o.one.Predict(context.Background(), zeros(o.scale.Shape)); errors.Is(err, metrics.ErrValue) { // the shapes are right
			err = nil
		}
	}
	digest, was := "", metadata[graphKey] // which older files do not have
	if err == nil {
		digest, err = graphOf(o.model, l, o.scale.Shape)
	}
	if err == nil && digest != was && was != "" {
		err = fmt.Errorf("the network computes something else than the one that was trained (version %s): give it, and its layers, as they were then, with all settings", cmp.Or(metadata[VersionKey], "unknown"))
	}
	if err != nil {
		return fail(err)
	}
	return o, nil
}

// loaded is a model with the parameters of a file.
func loaded(backend compute.Backend, network nets.Network, l likelihood.Likelihood, named map[string]*tensors.Tensor) (*nets.Model, error) {
	m, err := nets.New(backend, network, l, 1)
	if err == nil {
		err = checkpoint.SetTensors(m.Store, named)
	}
	if err == nil && slices.ContainsFunc(slices.Collect(maps.Values(named)), func(t *tensors.Tensor) bool { return t.DType() == dtypes.Float64 }) {
		m.DType = dtypes.Float64
	}
	return m, err
}

// zeros is one input of a shape.
func zeros(shape []int) nets.Floats {
	return nets.Floats{Shape: shape, Values: make([]float64, nets.Floats{Shape: shape}.Size())}
}

// graphOf is a digest of the graph by which a model's network predicts inputs of a shape, which must be that of its parameters.
func graphOf(trained *nets.Model, l likelihood.Likelihood, shape []int) (string, error) {
	h, other := sha256.New(), error(nil)
	of := spec.Graph{Network: trained.Network, Likelihood: l, Data: train.Dataset{Inputs: zeros(shape)}}
	err := of.Build(func(m *nets.Model, s *model.Scope, outputs, _ *graph.Node) {
		spec.WritePrediction(h, m, s, outputs)
		for _, v := range spec.Trained(m.Store) {
			want := v.Shape().Dimensions
			if own := trained.Store.GetVariable(v.Path()); own != nil && !slices.Equal(own.Shape().Dimensions, want) {
				other = fmt.Errorf("%s has the shape %v in the model, and %v in a network for inputs of shape %v", v.Path(), own.Shape().Dimensions, want, shape)
			}
		}
	})
	return hex.EncodeToString(h.Sum(nil)[:8]), errors.Join(err, other)
}

// Exec returns the prediction by one draw for each row of inputs of the returned shape, for a backend that writes it for other
// programs: see figures/examples/serve/onnx. Inputs and target are float64 numbers in the data's own units; no input may be
// missing. For a Regression it computes the target's mean and variance, [rows, 1] each. To combine draws, take the mean of the
// means, and the mean of the variances plus the variance of the means. For a Classification it computes the
// probabilities, [rows, classes]. Other likelihoods are an error. If the network has noise, the store's random state is a
// further input. Noise of weights, as in baselines.MFVI, is one draw for all rows; another state gives another.
func (o *Opened) Exec(backend compute.Backend) (*model.Exec, shapes.Shape, error) {
	regression, isRegression := o.model.Likelihood.(likelihood.Regression)
	classes, isClassification := o.model.Likelihood.(likelihood.Classification)
	if !isRegression && !isClassification {
		return nil, shapes.Shape{}, fmt.Errorf("trained: a prediction by the likelihood %T is neither a mean and a variance nor probabilities, which is what another program can be given", o.model.Likelihood)
	}
	m, err := loaded(backend, o.model.Network, o.model.Likelihood, o.named)
	if err != nil {
		return nil, shapes.Shape{}, fmt.Errorf("trained: %w", err)
	}
	exec, err := model.NewExec(backend, m.Store, func(root *model.Scope, x *graph.Node) []*graph.Node {
		g, wide := x.Graph(), func(y *graph.Node) *graph.Node { return graph.ConvertDType(y, dtypes.Float64) }
		if in := o.scale.Inputs; in != nil {
			row := func(values []float64) *graph.Node {
				return graph.Reshape(graph.Const(g, values), append([]int{1}, o.scale.Shape...)...)
			}
			x = graph.Div(graph.Sub(x, row(in.Mean)), row(in.Std))
		}
		s := m.Scope(root)
		y := m.Apply(s, graph.ConvertDType(x, m.DType))
		if params.FactsOf(g).Noise {
			state := root.Store().GetVariable(model.JoinPath(model.ScopeSeparator, model.RNGStateVariableName))
			state.SetNodeValue(g.GetParameterByName(state.Path())) // the next state is no output
		}
		if isClassification {
			return []*graph.Node{wide(ops.Softmax(likelihood.Logits(classes, s, y)))}
		}
		mean, logVariance := regression.Moments(s, y)
		mean = graph.AddScalar(graph.MulScalar(wide(mean), o.scale.Unit), o.scale.Zero)
		return []*graph.Node{mean, graph.BroadcastLike(graph.MulScalar(ops.Exp(wide(logVariance)), o.scale.Unit*o.scale.Unit), mean)}
	})
	names := make([]string, 1+len(o.scale.Shape))
	names[0] = "rows"
	return exec, shapes.MakeDynamic(dtypes.Float64, append([]int{shapes.DynamicDim}, o.scale.Shape...), names), err
}

// With returns the network with so many draws for each answer, which depend on the seed.
func (o *Opened) With(draws int, seed uint64) (*Opened, error) {
	if draws < 1 {
		return nil, fmt.Errorf("trained: %d draws for an answer; at least 1 is needed", draws)
	}
	other, options := *o, predict.Options{Samples: draws, Seed: &seed, SameNoise: true}
	var err, manyErr error
	other.one, err = predict.NewPredictor(o.model, options)
	options.BatchSize = answerBatch
	other.many, manyErr = predict.NewPredictor(o.model, options)
	return &other, errors.Join(err, manyErr)
}

// Columns are the columns of a row for PredictCells; nil if the network was not trained on a table with categories or missing
// numbers.
func (o *Opened) Columns() datasets.Columns { return o.scale.Columns }

// Predict answers for one input, given in the units of the data that the network was trained on, as Regression.X has it.
// Equal inputs have equal answers. Several goroutines may ask.
func (o *Opened) Predict(ctx context.Context, row []float64) (Answer, error) {
	all, err := o.PredictAll(ctx, [][]float64{row})
	return append(all, Answer{})[0], err
}

// PredictAll is Predict for many inputs, in less time, with an answer for each. An error says which input failed, from 0.
func (o *Opened) PredictAll(ctx context.Context, rows [][]float64) (all []Answer, err error) {
	x, predictor := nets.Floats{Shape: o.scale.Shape}, o.many
	if len(rows) == 1 {
		predictor = o.one
	}
	for i, row := range rows {
		if len(row) != x.Size() {
			return nil, fmt.Errorf("trained: %sthe input has %d numbers; the network takes %d", numbered(i, len(rows)), len(row), x.Size())
		}
		values := slices.Clone(row)
		if o.scale.Inputs != nil {
			if err := o.scale.Columns.Fill(values, *o.scale.Inputs); err != nil {
				return nil, fmt.Errorf("trained: %sthe input %v: %w", numbered(i, len(rows)), row, err)
			}
			values = o.scale.Inputs.Transform(values)
		}
		x.Values = append(x.Values, values...)
		if x.Len() == mostAnswered || i == len(rows)-1 {
			found, err := o.answers(ctx, predictor, x)
			if err != nil && len(all) > 0 {
				err = fmt.Errorf("counted from input %d: %w", len(all), err)
			}
			if err != nil {
				return nil, fmt.Errorf("trained: %w", err)
			}
			all, x.Values = append(all, found...), nil
		}
	}
	return all, nil
}

// numbered is the number of one of several inputs, for an error.
func numbered(i, of int) string {
	if of == 1 {
		return ""
	}
	return fmt.Sprintf("input %d: ", i)
}

// mostAnswered is how many inputs are predicted before their answers are made, which need less memory.
const mostAnswered = 4096

// answers are the answers for standardised inputs.
func (o *Opened) answers(ctx context.Context, predictor *predict.Predictor, x nets.Floats) ([]Answer, error) {
	p, err := predictor.Predict(ctx, x)
	if err != nil {
		return nil, err
	}
	all := make([]Answer, x.Len())
	if p.Probabilities != nil {
		for i, row := range slices.Collect(slices.Chunk(p.Probabilities, p.Width)) {
			all[i].Probabilities = row
		}
		return all, nil
	}
	d, err := p.Predictive()
	if err != nil {
		return nil, err
	}
	mean, _, err := d.Moments()
	low, lowErr := d.Quantile(0.025)
	high, highErr := d.Quantile(0.975)
	if err := errors.Join(err, lowErr, highErr); err != nil {
		return nil, err
	}
	own := func(t float64) float64 { return t*o.scale.Unit + o.scale.Zero }
	for i := range all {
		all[i] = Answer{Mean: own(mean[i]), Low: own(low[i]), High: own(high[i])}
	}
	return all, nil
}

// PredictCells is Predict of a row as it stands in a file, without the target: with categories as words, and where numbers
// may miss also without a value, such as "red", "1.5", "NA". The error tells what is wrong with all cells.
func (o *Opened) PredictCells(ctx context.Context, cells ...string) (Answer, error) {
	all, err := o.PredictAllCells(ctx, [][]string{cells})
	return append(all, Answer{})[0], err
}

// PredictAllCells is PredictAll of rows as they stand in a file; see PredictCells.
func (o *Opened) PredictAllCells(ctx context.Context, table [][]string) ([]Answer, error) {
	columns := o.scale.Columns
	if columns == nil {
		columns = slices.Repeat(datasets.Columns{{Name: "the input"}}, nets.Floats{Shape: o.scale.Shape}.Size())
	}
	rows := make([][]float64, len(table))
	for i, cells := range table {
		var err error
		if rows[i], err = columns.Inputs(cells); err != nil {
			return nil, fmt.Errorf("trained: %sthe row %q: %w", numbered(i, len(table)), cells, err)
		}
	}
	return o.PredictAll(ctx, rows)
}
