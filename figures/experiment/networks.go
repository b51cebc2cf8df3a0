package experiment

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment"
	"densityuncertainty/figures/spec"
)

// networkFormat is the format of the files of trained networks: safetensors files with the parameters and running
// statistics of one network.
const networkFormat, networkExtension = "densityuncertainty network 1", ".safetensors"

// The keys of the metadata of a trained network; formatKey is a further one. experimentKey is the identity of its experiment, and
// versionKey the version of the program that trained it.
const trainingKey, memberKey, scaleKey, graphKey, experimentKey, versionKey = "training", "member", "scale", "graph", "experiment", "version"

// NetworkFile is the name of the file in Engine.Networks with the trained network of an experiment. An ensemble has a file
// for each member, from 0.
func NetworkFile(e Experiment, member int) string { return e.Method.networkFile(e.ID(), member) }

// networkFile is NetworkFile for an experiment with this identity, which takes time to find for your own code.
func (m Method) networkFile(id string, member int) string {
	if m.members() == 1 {
		return id + networkExtension
	}
	return fmt.Sprintf("%s-%d%s", id, member, networkExtension)
}

// checkKept says which networks Engine.Networks cannot keep, and which curves Engine.Curves, before anything is trained.
func (r *run) checkKept() error {
	var all problems
	for _, kept := range []struct {
		folder, what string
		file         func(e *planned) string
	}{
		{r.Networks, "network", func(e *planned) string { return e.Method.networkFile(e.id, 0) }},
		{r.Curves, "learning curve", func(e *planned) string { return e.id + csvExtension }},
	} {
		if kept.folder == "" {
			continue
		}
		err := os.MkdirAll(kept.folder, 0o777)
		all.need(err == nil, "making the folder of Engine.Networks or Curves: %w", err)
		for _, g := range r.groups {
			e := g.list[0]
			all.need(e.program() == nil, "the %s of %s on %s cannot be kept: a %T trains the networks; leave Engine.Networks and Curves out, or run the others alone", kept.what, e.Method.Name, e.Task.Name, e.program())
			all.need(kept.folder != r.Networks || e.Method.Process == nil, "the network of %s cannot be kept: its Gaussian process needs the training data; leave Engine.Networks out, or run the others alone", e.Method.Name)
		}
		for _, e := range r.order {
			if e.result == nil || e.result.Diverged {
				continue
			}
			if _, err := os.Stat(filepath.Join(kept.folder, kept.file(e))); err != nil {
				r.note(fmt.Sprintf("%v is in the store already, and is not trained again to keep its %s; use another store for that", e, kept.what))
			}
		}
	}
	if err := all.err(); err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	return nil
}

// keepNetworks keeps the trained networks, each in a file of its own.
func (f *fit) keepNetworks(context.Context) error {
	if f.run.Networks == "" {
		return nil
	}
	digest, first := "", f.first()
	x, floats := first.data.Train.Inputs.(nets.Floats)
	if floats {
		network, err := first.Task.Network.Over(first.Method.Layers)
		if err == nil {
			digest, err = graphOf(network, first.Task.Likelihood, x.Shape)
		}
		if err != nil {
			return err
		}
	}
	for number := range len(f.list) * f.members() {
		e, member := f.list[number/f.members()], number%f.members()
		if e.predictions.Diverged {
			continue
		}
		text, err := json.Marshal(scale{Shape: x.Shape, Inputs: e.data.Inputs, Columns: e.data.Columns, Unit: e.data.Unit, Zero: e.data.Zero, Likelihood: likelihoodText(e.Task.Likelihood)})
		if err != nil {
			return err
		}
		m, err := f.models[number/f.together()].Replica(number % f.together())
		if err == nil {
			metadata := map[string]string{formatKey: networkFormat, experimentKey: e.id, memberKey: fmt.Sprint(member), versionKey: f.info.Version, scaleKey: string(text), graphKey: digest, trainingKey: e.training(member, f.info.Version)}
			err = checkpoint.Export(m.Store, filepath.Join(f.run.Networks, e.Method.networkFile(e.id, member)), metadata)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// training is a digest of what decides the trained network of an experiment, and not what only its predictions depend on: the
// number of draws, the batch, and the sets. It is "" where networks cannot predict again what they did in their own run.
func (e *planned) training(member int, version string) string {
	var tree map[string]map[string]any
	if e.program() != nil || e.Method.Process != nil || e.Recipe.SharedNoise || json.Unmarshal(e.group.line.Experiment, &tree) != nil {
		return ""
	}
	delete(tree["Task"], "Data")
	delete(tree["code"], "data")
	used := []Set{{"training", e.data.Train}}
	if e.Recipe.EarlyStopping {
		used = append(used, Set{"held-out", e.data.HeldOut})
	} else {
		for _, field := range []string{"Samples", "PredictBatch", "Coherent"} {
			delete(tree["Recipe"], field)
		}
	}
	text, err := json.Marshal(tree)
	if err != nil {
		return ""
	}
	return spec.Digest(fmt.Appendln(text, version, Digest(used...), likelihoodText(e.data.likelihood), e.networkSeed(member)))
}

// keptNetworks are the files in Engine.Networks with the networks of an experiment, of each member, that an earlier run trained; nil if
// one of them is missing.
func (r *run) keptNetworks(e *planned, version string) (files []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entries, _ := os.ReadDir(r.Networks) // none without a folder
	for _, entry := range entries {
		path := filepath.Join(r.Networks, entry.Name())
		if filepath.Ext(path) != networkExtension || r.seen[path] {
			continue
		}
		r.seen[path] = true
		metadata, err := checkpoint.ReadMetadata(path)
		if training := metadata[trainingKey]; err == nil && metadata[formatKey] == networkFormat && training != "" {
			r.kept[training] = cmp.Or(r.kept[training], path)
		}
	}
	for member := 0; member < e.Method.members() && len(r.kept) > 0; member++ {
		file := r.kept[e.training(member, version)]
		if file == "" {
			return nil
		}
		files = append(files, file)
	}
	return files
}

// readKept makes the models of an experiment's members from files.
func (f *fit) readKept(context.Context) error {
	e := f.first()
	network, err := e.Task.Network.Over(e.Method.Layers)
	if err != nil {
		return err
	}
	for member, file := range f.kept {
		named, _, err := checkpoint.ReadTensors(file)
		if err != nil {
			return err
		}
		m, err := loaded(f.backend, network, f.likelihood(), e.networkSeed(member), named)
		if err != nil {
			return err
		}
		f.models = append(f.models, m)
	}
	f.run.note(fmt.Sprintf("%v is predicted by networks that were trained before, in %s", e, f.run.Networks))
	return nil
}

// loaded is a model with the parameters of a file.
func loaded(backend compute.Backend, network nets.Network, l likelihood.Likelihood, seed uint64, named map[string]*tensors.Tensor) (*nets.Model, error) {
	m, err := nets.New(backend, network, l, seed)
	if err == nil {
		err = checkpoint.SetTensors(m.Store, named)
	}
	return m, err
}

// A scale is what a file knows of its network's inputs and target.
type scale struct {
	Shape      []int            `json:"shape"`            // of one input; none for images
	Inputs     *datasets.Scaler `json:"inputs,omitempty"` // nil for inputs as they are
	Columns    datasets.Columns `json:"columns,omitempty"`
	Likelihood string           `json:"likelihood,omitempty"` // as the identity has it
	Unit, Zero float64
}

// likelihoodText is a likelihood as the identity has it.
func likelihoodText(l likelihood.Likelihood) string {
	tree, _, _ := spec.Of(&l, "Likelihood")
	return spec.Text(tree)
}

// An Opened network answers questions in the data's own units.
type Opened struct {
	scale     scale
	named     map[string]*tensors.Tensor // of the file
	model     *nets.Model
	one, many *predict.Predictor // of a single row, and of batches
}

// An Answer is the prediction of one input.
type Answer struct {
	// Mean is that of a real target, which lies from Low to High with a probability of 95%.
	Mean, Low, High float64
	// Probabilities are those of the classes.
	Probabilities []float64
}

// answerDraws is the number of draws of an answer, and answerBatch that of the rows that are predicted at once.
const answerDraws, answerBatch = 100, 64

// Open opens a trained network that Engine.Networks kept, as it was trained, such as nets.MLP{Layers: layers, Widths: widths}. Nothing
// of the experiment is needed. Of an ensemble it opens a single member. Another likelihood is an error, and so is a network that has
// parameters of other shapes, or computes something else, such as by other settings of its layers. Answers have 100 draws, by the
// seed 0; see With.
func Open(path string, network nets.Network, l likelihood.Likelihood) (*Opened, error) {
	fail := func(err error) (*Opened, error) {
		return nil, fmt.Errorf("experiment: opening the network %s: %w", path, err)
	}
	named, metadata, err := checkpoint.ReadTensors(path)
	if err != nil {
		return fail(err)
	}
	o := &Opened{named: named}
	if metadata[formatKey] != networkFormat || json.Unmarshal([]byte(metadata[scaleKey]), &o.scale) != nil || o.scale.Shape == nil {
		return fail(errors.New("it is not a file of Engine.Networks of a network whose inputs are nets.Floats"))
	}
	if was, is := o.scale.Likelihood, likelihoodText(l); was != is && was != "" {
		return fail(fmt.Errorf("it was trained with the likelihood %s, not with %s", was, is))
	}
	own, err := rescaled(l, cmp.Or(o.scale.Unit, 1), o.scale.Zero)
	backend, _, noBackend := environment.OpenFor(environment.ShortTrainings)
	if err := errors.Join(err, noBackend); err != nil {
		return fail(err)
	}
	if o.model, err = loaded(backend, network, own, 1, named); err == nil {
		o, err = o.With(answerDraws, 0)
	}
	if err == nil {
		if _, err = o.one.Predict(context.Background(), zeros(o.scale.Shape)); errors.Is(err, metrics.ErrValue) { // the shapes are right
			err = nil
		}
	}
	digest, was := "", metadata[graphKey] // which older files do not have
	if err == nil {
		digest, err = graphOf(network, l, o.scale.Shape)
	}
	if err == nil && digest != was && was != "" {
		err = fmt.Errorf("the network computes something else than the one that version %s of this project trained: give it, and its layers, as they were then, with all settings", metadata[versionKey])
	}
	if err != nil {
		return fail(err)
	}
	return o, nil
}

// zeros is one input of a shape.
func zeros(shape []int) nets.Floats {
	return nets.Floats{Shape: shape, Values: make([]float64, nets.Floats{Shape: shape}.Size())}
}

// graphOf is a digest of the graph by which a network predicts inputs of a shape.
func graphOf(network nets.Network, l likelihood.Likelihood, shape []int) (string, error) {
	h := sha256.New()
	err := building{data: Data{Train: train.Dataset{Inputs: zeros(shape)}}, rows: fewRows}.build(network, l, false, false, func(m *nets.Model, s *model.Scope, outputs, _ *graph.Node) { writePrediction(h, m, s, outputs) })
	return hex.EncodeToString(h.Sum(nil)[:8]), err
}

// Exec is the prediction by one draw for each row of inputs of the returned shape, for a backend that writes it for other programs:
// see figures/examples/serve/onnx. Inputs, of which none is missing, and target are float64 numbers in the data's own units. Of a
// Regression it computes the target's mean and variance, [rows, 1] each. Over many draws the mean is the means' mean, and the
// variance is the mean of the variances plus the variance of the means. Of a Classification it computes the probabilities, [rows,
// classes]. Other likelihoods are an error. If the network has noise, the store's random state is a further input. Noise of
// weights, as of baselines.MFVI, is one draw for all rows; another state gives another.
func (o *Opened) Exec(backend compute.Backend) (*model.Exec, shapes.Shape, error) {
	regression, isRegression := o.model.Likelihood.(likelihood.Regression)
	classes, isClassification := o.model.Likelihood.(likelihood.Classification)
	if !isRegression && !isClassification {
		return nil, shapes.Shape{}, fmt.Errorf("experiment: a prediction by the likelihood %T is neither a mean and a variance nor probabilities, which is what another program can be given", o.model.Likelihood)
	}
	m, err := loaded(backend, o.model.Network, o.model.Likelihood, 1, o.named)
	if err != nil {
		return nil, shapes.Shape{}, fmt.Errorf("experiment: %w", err)
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
		if stochastic.HasNoise(g) {
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
		return nil, fmt.Errorf("experiment: %d draws for an answer; at least 1 is needed", draws)
	}
	other, options := *o, predict.Options{Samples: draws, Seed: &seed, Alike: true}
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

// PredictAll is Predict for many inputs, in less time, with an answer for each. An error names the first input that has none,
// from 0.
func (o *Opened) PredictAll(ctx context.Context, rows [][]float64) (all []Answer, err error) {
	x, predictor := nets.Floats{Shape: o.scale.Shape}, o.many
	if len(rows) == 1 {
		predictor = o.one
	}
	for i, row := range rows {
		if len(row) != x.Size() {
			return nil, fmt.Errorf("experiment: %sthe input has %d numbers; the network takes %d", numbered(i, len(rows)), len(row), x.Size())
		}
		values := slices.Clone(row)
		if o.scale.Inputs != nil {
			if err := o.scale.Columns.Fill(values, *o.scale.Inputs); err != nil {
				return nil, fmt.Errorf("experiment: %sthe input %v: %w", numbered(i, len(rows)), row, err)
			}
			values = o.scale.Inputs.Transform(values)
		}
		x.Values = append(x.Values, values...)
		if x.Len() == mostAnswered || i == len(rows)-1 {
			found, err := o.answers(ctx, predictor, x)
			if err != nil {
				return nil, fmt.Errorf("experiment: %w", err)
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
			return nil, fmt.Errorf("experiment: %sthe row %q: %w", numbered(i, len(table)), cells, err)
		}
	}
	return o.PredictAll(ctx, rows)
}

// An Epoch is a point of a learning curve.
type Epoch struct {
	Model       int // which member of an ensemble, from 0; members that are trained in one graph are one model
	Epoch       int // from 1; the epochs of pretraining count too
	Pretraining bool
	// Losses are means over the steps of the epoch, and over all experiments that are trained in one graph.
	train.Losses
	// HeldOut is the negative log-likelihood of the held-out examples after the epoch, or the loss of quantiles, by Recipe.Samples
	// draws; NaN without such examples, in pretraining, and where only some of more than 100 epochs are scored.
	HeldOut float64
}

// Curve reads the learning curve of an experiment from the folder Engine.Curves, model by model. If a training was killed and
// resumed, some epochs may be there twice; the last counts. An experiment that was not trained has no epochs.
func Curve(folder string, e Experiment) ([]Epoch, error) {
	file := filepath.Join(folder, e.ID()+csvExtension)
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("experiment: reading a learning curve: %w", err)
	}
	last, line := map[[2]int]Epoch{}, 0
	for text := range strings.Lines(string(content)) {
		if line++; line == 1 && strings.HasPrefix(text, "model,") {
			continue
		}
		if strings.Count(text, ",") == 7 { // an older file
			text = strings.TrimSuffix(text, "\n") + ",NaN\n"
		}
		var p Epoch
		if _, err := fmt.Sscanf(text, curveLine, &p.Model, &p.Epoch, &p.Pretraining, &p.Total, &p.NLL, &p.KL, &p.LogLikelihood, &p.Accuracy, &p.HeldOut); err != nil {
			return nil, fmt.Errorf("experiment: the learning curve %s, line %d: %w; remove the line", file, line, err)
		}
		last[[2]int{p.Model, p.Epoch}] = p
	}
	return slices.SortedFunc(maps.Values(last), func(a, b Epoch) int { return cmp.Or(a.Model-b.Model, a.Epoch-b.Epoch) }), nil
}
