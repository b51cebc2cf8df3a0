package train

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// executions are the compiled graphs of one phase: one for whole batches, and one for the smaller batch at the end of an epoch.
type executions struct {
	*run
	phase    phase
	compiled map[int]*execution // by the number of examples
}

// An execution is the compiled graph of a step.
type execution struct {
	exec  *model.Exec
	noise *stochastic.NoiseBuffers // nil for noise that is drawn in the graph
}

// close frees the graphs and their buffers of noise.
func (e *executions) close() error {
	var failures []error
	for _, c := range e.compiled {
		c.exec.Finalize()
		if c.noise != nil {
			failures = append(failures, c.noise.Release(e.model.Store))
		}
	}
	return errors.Join(failures...)
}

// execute makes a step, which has the number t in its phase. It returns the losses of each replica, and
// whether the graph had to be compiled first.
func (e *executions) execute(b batch, rate float64, t int) (losses [][]float64, compiled bool, err error) {
	fed, err := e.source.next(b)
	if err != nil {
		return nil, false, err
	}
	c, found := e.compiled[b.rows]
	switch {
	case !found:
		c = e.compile(b.rows) // which draws the noise of the first step
		e.compiled[b.rows] = c
	case c.noise != nil:
		if err := c.noise.Refresh(); err != nil {
			return nil, false, err
		}
	}
	for _, v := range []float64{rate, float64(t)} {
		fed = append(fed, params.FromFloat64(shapes.Make(e.model.DType), []float64{v}))
	}
	var args []any
	for _, tensor := range slices.Concat(e.source.resident(), fed) {
		args = append(args, tensor)
	}
	out, err := c.exec.Call1(args...)
	if err != nil {
		return nil, false, nets.Cause(err)
	}
	values, err := params.ToFloat64(out)
	return slices.Collect(slices.Chunk(values, lossColumns)), !found, errors.Join(err, freed(append(fed, out)...))
}

// compile makes the graph of a step of so many examples.
func (e *executions) compile(rows int) *execution {
	m, c := e.model, &execution{}
	if m.Host != nil {
		c.noise = m.Host.NewBuffers()
	}
	c.exec = model.MustNewExec(m.Backend, m.Store, func(root *model.Scope, args []*graph.Node) *graph.Node {
		defer nets.PanicWithError("building the training step")
		g := args[0].Graph()
		if c.noise != nil {
			stochastic.SetNoiseSource(g, c.noise)
		}
		root.Store().SetTraining(g, true)
		x, targets, weights := e.source.step(args, rows)
		return e.step(root, x, targets, weights, args[len(args)-2], args[len(args)-1])
	})
	return c
}

// step is one training step in the graph: the rate and the step's number t are
// scalars, the result is a row of losses for each replica, [replicas, lossColumns].
func (e *executions) step(root *model.Scope, x, targets, weights, rate, t *graph.Node) *graph.Node {
	g, m := x.Graph(), e.model
	params.FactsOf(g).BFloat16 = e.BFloat16
	s := m.Scope(root)
	outputs := e.apply(s, x)
	m.CheckOutputs(s, outputs, weights.Shape().Dim(-2))
	classes, _ := m.Likelihood.(likelihood.Classification)
	if e.WeightEnergies {
		stochastic.LayerLossesOf(g).WeightLogLikelihood(energy.LaplaceWeights(likelihood.Logits(classes, s, outputs)))
	}
	o := objective{logLikelihoodScale: e.LogLikelihoodScale}
	for _, set := range e.data {
		o.n = append(o.n, float64(set.Len()))
	}
	parts := o.of(m.NLL(s, outputs, targets), weights)
	if e.phase.generative {
		if parts.logLikelihood == nil {
			panic(errors.New("generative pretraining was asked for, but no layer of the network has an energy model"))
		}
		parts.total = graph.MulScalar(parts.logLikelihood, -e.LogLikelihoodScale)
	}
	if parts.logLikelihood != nil && e.LogLikelihoodScale == 0 {
		for _, p := range trained(s, g, e.phase.groups) {
			if params.RoleOf(p.Variable, s.Store()) == params.Generative {
				panic(errors.New("LogLikelihoodScale is 0, so that the energy models would not be trained; set it, to 1 as in the paper, or leave params.Generative out of the groups, and PretrainEpochs 0"))
			}
		}
	}
	applyGroups(root.In("%s", e.phase.name), s, parts.total, e.phase.groups, e.ClipNorm, rate, t)

	row := []*graph.Node{parts.total, parts.nll, parts.kl, parts.logLikelihood, nil}
	if classes != nil {
		row[4] = weightedSum(likelihood.Correct(classes, s, outputs, targets), weights)
	}
	for i, term := range row {
		if term == nil {
			row[i] = graph.ZerosLike(parts.nll)
		}
	}
	return graph.Reshape(graph.Concatenate(row, -1), m.Count(), lossColumns)
}

// A trainedParameter is one with the group that trains it.
type trainedParameter struct {
	*model.Variable
	group Group
}

// trained are the parameters of the scope that the graph uses and the groups train.
func trained(s *model.Scope, g *graph.Graph, groups []Group) []trainedParameter {
	var all []trainedParameter
	for v := range s.IterVariables() {
		if !v.InUseByGraph(g) {
			continue
		}
		owner := slices.IndexFunc(groups, func(group Group) bool { return group.Contains(v.Path(), params.RoleOf(v, s.Store())) })
		if owner >= 0 && groups[owner].Optimizer != nil {
			all = append(all, trainedParameter{v, groups[owner]})
		}
	}
	return all
}

// applyGroups updates every parameter of the scope by the optimizer of its group.
func applyGroups(state, s *model.Scope, loss *graph.Node, groups []Group, clipNorm float64, rate, t *graph.Node) {
	g := loss.Graph()
	parameters := trained(s, g, groups)
	if len(parameters) == 0 {
		panic(errors.New("nothing is trained: none of the model's parameters belongs to a group with an Optimizer; set Group.Roles, such as train.AllRoles(), and see that Group.Only and Group.Except leave some"))
	}
	checkRoles(s, groups)
	values := make([]*graph.Node, len(parameters))
	for i, p := range parameters {
		values[i] = p.NodeValue(g)
	}
	gradients := graph.Gradient(graph.ReduceAllSum(loss), values...)
	if clipNorm > 0 {
		clip(gradients, clipNorm, loss.Shape().Size())
	}
	for i, p := range parameters {
		groupRate := rate
		if p.group.Rate != 0 && p.group.Rate != 1 { // without a product in the graph
			groupRate = graph.MulScalar(rate, p.group.Rate)
		}
		slots := state.In("%s", model.EscapeScopeName(p.Path()))
		p.SetNodeValue(p.group.Optimizer.Update(slots, values[i], gradients[i], groupRate, t))
	}
}

// clip multiplies the gradients of each replica, the first axis of each if there are several, by min(1, limit / norm). A norm that is NaN
// leaves them NaN.
func clip(gradients []*graph.Node, limit float64, replicas int) {
	var squares *graph.Node // [replicas, 1]
	for _, gradient := range gradients {
		rows := graph.Reshape(gradient, replicas, -1)
		own := graph.ReduceAndKeep(graph.Mul(rows, rows), graph.ReduceSum, -1)
		if squares == nil {
			squares = own
		} else {
			squares = graph.Add(squares, own)
		}
	}
	norm := graph.Sqrt(squares)
	factor := graph.Where(graph.GreaterThan(norm, graph.MulScalar(graph.OnesLike(norm), limit)), graph.MulScalar(graph.Reciprocal(norm), limit), graph.OnesLike(norm))
	for i, gradient := range gradients {
		rows := graph.Mul(graph.Reshape(gradient, replicas, -1), factor)
		gradients[i] = graph.Reshape(rows, gradient.Shape().Dimensions...)
	}
}

// checkRoles panics on a role of a group that no parameter has and that package params
// does not know either, as one that is misspelt.
func checkRoles(s *model.Scope, groups []Group) {
	known := map[params.Role]bool{params.Running: true}
	for _, role := range AllRoles() {
		known[role] = true
	}
	for v := range s.IterVariables() {
		known[params.RoleOf(v, s.Store())] = true
	}
	for i, g := range groups {
		for _, role := range g.Roles {
			if !known[role] {
				panic(fmt.Errorf("group %d trains parameters of role %q, which no parameter of the model has; the usual roles are %v", i, role, AllRoles()))
			}
		}
	}
}

// An objective is the function that training minimizes,
//
//	mean_i NLL_i + KL / N - Scale * mean_i log p_energy(h_i),
//
// the negative ELBO of N examples divided by N, and the generative objective
// of the energy models (section 2.4, "Optimization"), both estimated on one
// batch. With replicas it is the sum of the replicas' objectives, whose
// gradients do not mix.
type objective struct {
	// n is the number of training examples of each replica.
	n []float64
	// logLikelihoodScale multiplies the generative objective.
	logLikelihoodScale float64
}

// losses are an objective and its parts for each replica, [..., 1, 1]. kl and
// logLikelihood are nil where no layer has one.
type losses struct {
	total, nll, kl, logLikelihood *graph.Node
}

// of returns the losses of the graph: nll is each example's, [..., batch, 1],
// and weights each example's share of the mean, [..., batch, 1], 1/n for the n
// examples of a replica's batch and 0 for padding.
func (o objective) of(nll, weights *graph.Node) losses {
	layers := stochastic.LayerLossesOf(nll.Graph())
	l := losses{nll: weightedSum(nll, weights)}
	l.total = l.nll
	if layers.KL != nil {
		l.kl = layers.KL
		l.total = graph.Add(l.total, graph.Mul(l.kl, o.perExample(nll)))
	}
	if layers.LogLikelihood != nil {
		l.logLikelihood = weightedSum(layers.LogLikelihood, weights)
		l.total = graph.Sub(l.total, graph.MulScalar(l.logLikelihood, o.logLikelihoodScale))
	}
	return l
}

// perExample is 1/N, [..., 1, 1].
func (o objective) perExample(like *graph.Node) *graph.Node {
	dims := append(append([]int{}, like.Shape().Dimensions[:like.Rank()-2]...), 1, 1)
	inverse := make([]float64, len(o.n))
	for i, n := range o.n {
		inverse[i] = 1 / n
	}
	return graph.ConstTensor(like.Graph(), params.FromFloat64(shapes.Make(like.DType(), dims...), inverse))
}

// weightedSum is sum_i weights_i x_i over the batch, [..., batch, 1] -> [..., 1, 1].
func weightedSum(x, weights *graph.Node) *graph.Node {
	return ops.TransposedProduct(weights, x)
}
