package hmc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/dul/train"
)

// A Posterior is the distribution of all parameters w of a network and its likelihood given training data, up to a
// constant:
//
//	log p(w | data) = sum_i log p(y_i | x_i, w) + log p(w) + constant.
//
// log p(w) is minus the KL that the layers add to the graph's stochastic.LayerLosses, so that training minimises the
// same function. A parameter for which they add nothing has a flat prior.
type Posterior struct {
	model     *nets.Model
	exec      *model.Exec
	predictor *predict.Predictor
	data      []any // inputs and targets
	variables []*model.Variable
	sizes     []int // of the variables in one chain
}

// NewPosterior returns the posterior of a model of nets.NewReplicas, with one replica for each chain. It sets the
// model's DType to Float64. A model without replicas or likelihood, a network with noise, inputs that are not
// nets.Floats and missing targets are errors. Call Close to free it.
func NewPosterior(m *nets.Model, data train.Dataset) (*Posterior, error) {
	x, is := data.Inputs.(nets.Floats)
	switch {
	case m == nil || m.Replicas == 0 || m.Likelihood == nil:
		return nil, errors.New("hmc: a posterior needs a model of nets.NewReplicas with a likelihood, a replica for each chain")
	case !is || len(data.Targets) == 0:
		return nil, fmt.Errorf("hmc: a posterior needs inputs that are nets.Floats and a target for each; there are %T and %d targets", data.Inputs, len(data.Targets))
	}
	if err := data.Check(m.Likelihood); err != nil {
		return nil, fmt.Errorf("hmc: %w", err)
	}
	m.DType = dtypes.Float64
	p := &Posterior{model: m}
	p.data = []any{tensorOf(x), params.FromFloat64(shapes.Make(m.DType, x.Len(), len(data.Targets)/x.Len()), data.Targets)}
	p.exec = model.MustNewExec(m.Backend, m.Store, p.build)
	var err error
	if p.predictor, err = predict.NewPredictor(m, predict.Options{Samples: 1}); err != nil {
		return nil, fmt.Errorf("hmc: %w", err)
	}
	if _, _, err := p.evaluate(); err != nil { // which makes the parameters
		p.Close()
		return nil, fmt.Errorf("hmc: %w", err)
	}
	return p, nil
}

// tensorOf are inputs as a tensor, [N, Shape...].
func tensorOf(x nets.Floats) *tensors.Tensor {
	return params.FromFloat64(shapes.Make(dtypes.Float64, append([]int{x.Len()}, x.Shape...)...), x.Values)
}

// apply is the outputs of all chains at the same inputs.
func (p *Posterior) apply(root *model.Scope, x *graph.Node) (s *model.Scope, outputs *graph.Node) {
	root.Store().SetTraining(x.Graph(), true) // so that all parameters are inputs of the graph
	s = p.model.Scope(root)
	return s, p.model.Apply(s, p.repeated(x))
}

// repeated is a node once for each chain.
func (p *Posterior) repeated(n *graph.Node) *graph.Node {
	return graph.BroadcastToDims(graph.ExpandAxes(n, 0), append(p.model.LeadingAxes(), n.Shape().Dimensions...)...)
}

// build is the graph: the log density of each chain, and the gradient of each variable.
func (p *Posterior) build(root *model.Scope, x, y *graph.Node) []*graph.Node {
	defer nets.PanicWithError("building the posterior")
	g, m := x.Graph(), p.model
	s, outputs := p.apply(root, x)
	loss := graph.ReduceSum(graph.Reshape(m.NLL(s, outputs, p.repeated(y)), m.Replicas, -1), -1)
	if params.FactsOf(g).Noise {
		panic(errors.New("the network has noise of its own; a posterior is of networks without, such as of baselines.Deterministic"))
	}
	if kl := stochastic.LayerLossesOf(g).KL; kl != nil {
		loss = graph.Add(loss, graph.Reshape(kl, m.Replicas))
	}
	p.variables, p.sizes = nil, nil
	var values []*graph.Node
	for v := range s.IterVariables() {
		if v.Trainable && params.RoleOf(v, s.Store()) != "" && v.InUseByGraph(g) {
			p.variables = append(p.variables, v)
		}
	}
	slices.SortFunc(p.variables, func(a, b *model.Variable) int { return strings.Compare(a.Path(), b.Path()) })
	for _, v := range p.variables {
		p.sizes, values = append(p.sizes, v.Shape().Size()/m.Replicas), append(values, v.NodeValue(g))
	}
	density := graph.Neg(loss)
	return append([]*graph.Node{density}, graph.Gradient(graph.ReduceAllSum(density), values...)...)
}

// evaluate is the log density and the gradient at the parameters that the model has.
func (p *Posterior) evaluate() (logs []float64, gradients [][]float64, err error) {
	out, err := p.exec.Exec(p.data...)
	if err != nil {
		return nil, nil, nets.Cause(err)
	}
	if logs, err = params.ToFloat64(out[0]); err != nil {
		return nil, nil, err
	}
	gradients = make([][]float64, len(logs))
	for k, t := range out[1:] {
		values, err := params.ToFloat64(t)
		if err != nil {
			return nil, nil, err
		}
		for c := range gradients {
			gradients[c] = append(gradients[c], values[c*p.sizes[k]:(c+1)*p.sizes[k]]...)
		}
	}
	for _, t := range out {
		err = errors.Join(err, t.FinalizeAll())
	}
	return logs, gradients, err
}

// Start returns the parameters of models of the same network, one row for each replica and so for each chain: of the
// posterior's own, untrained model, or of trained models, which may be Float32.
func (p *Posterior) Start(of ...*nets.Model) ([][]float64, error) {
	var chains [][]float64
	for _, m := range of {
		rows := make([][]float64, m.Count())
		for k, v := range p.variables {
			values, _, err := params.Values(m.Store, v.Path())
			if err != nil {
				return nil, fmt.Errorf("hmc: %w", err)
			}
			if len(values) != p.sizes[k]*len(rows) {
				return nil, fmt.Errorf("hmc: %s has %d numbers, and in the posterior %d for each chain; give a model of the same network", v.Path(), len(values)/len(rows), p.sizes[k])
			}
			for r := range rows {
				rows[r] = append(rows[r], values[r*p.sizes[k]:(r+1)*p.sizes[k]]...)
			}
		}
		chains = append(chains, rows...)
	}
	return chains, nil
}

// Set gives each replica of the model the parameters of a chain, at[chain][dimension], for predicting. It panics
// unless there is a row for each replica.
func (p *Posterior) Set(at [][]float64) error {
	first := 0
	for k, v := range p.variables {
		var values []float64
		for _, chain := range at {
			values = append(values, chain[first:first+p.sizes[k]]...)
		}
		if err := v.SetValue(params.FromFloat64(v.Shape(), values)); err != nil {
			return fmt.Errorf("hmc: setting %s: %w", v.Path(), err)
		}
		first += p.sizes[k]
	}
	return nil
}

// Density is the log density and its gradient at the parameters `at`, for Sample. It sets the model's parameters.
func (p *Posterior) Density(at [][]float64) (logs []float64, gradients [][]float64, err error) {
	if err := p.Set(at); err != nil {
		return nil, nil, err
	}
	return p.evaluate()
}

// Predict returns the predictions of the networks with the parameters `at`: one component for each chain. It sets the
// model's parameters. It is an error if the likelihood is no likelihood.Regression.
func (p *Posterior) Predict(at [][]float64, x nets.Floats) (predict.Mixture, error) {
	var all predict.Mixture
	if _, is := p.model.Likelihood.(likelihood.Regression); !is {
		return all, fmt.Errorf("hmc: a likelihood of type %T has no mean and variance to predict; set the parameters, and use predict.SampleReplicas", p.model.Likelihood)
	}
	if err := p.Set(at); err != nil {
		return all, err
	}
	found, err := p.predictor.PredictReplicas(context.Background(), slices.Repeat([]nets.Inputs{x}, p.model.Replicas)...)
	if err != nil {
		return all, fmt.Errorf("hmc: %w", err)
	}
	for _, chain := range found {
		all.Mean, all.NoiseStd = append(all.Mean, chain.Mean...), append(all.NoiseStd, chain.NoiseStd...)
	}
	return all, nil
}

// Close frees the compiled graphs. The model stays as it is.
func (p *Posterior) Close() {
	p.exec.Finalize()
	_ = p.predictor.Close() // it has no noise, whose buffers could not be freed
}

// Prior is a family of layers whose deterministic weights and biases (role params.Weight) have the prior
//
//	w ~ N(0, 1/in),   b ~ N(0, 1)
//
// for a layer with `in` inputs. It adds -log p(w, b), up to a constant, to the graph's stochastic.LayerLosses as KL. A
// network of baselines.Deterministic then has the posterior of hmc.Posterior, and training finds its mode. Variational
// parameters keep their own prior.
type Prior struct{ Layers nets.Layers }

// Dense implements nets.Layers.
func (l Prior) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	if l.Layers == nil {
		panic(fmt.Errorf("hmc.Prior has no Layers; give some, such as baselines.Deterministic{}"))
	}
	y := l.Layers.Dense(s, x, units)
	for _, of := range []struct {
		name      string
		precision float64
	}{{"weights", float64(x.Shape().Dim(-1))}, {"bias", 1}} {
		v := s.Store().GetVariable(model.JoinPath(s.Scope(), of.name))
		if v == nil || params.RoleOf(v, s.Store()) != params.Weight {
			continue
		}
		w := v.NodeValue(x)
		stochastic.LayerLossesOf(x.Graph()).AddKL(graph.MulScalar(ops.SumColumns(ops.SumRows(graph.Mul(w, w))), of.precision/2))
	}
	return y
}
