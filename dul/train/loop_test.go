package train_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
)

// firstBatch is what the untrained model says of the first examples of its data,
// in training: outputs [replicas][rows*K], KL [replicas], log-likelihoods of the
// energy models [replicas][rows].
func firstBatch(t *testing.T, c trial) (outputs [][]float64, kl []float64, ll [][]float64) {
	t.Helper()
	m := c.model(t, dtypes.Float64)
	var input *tensors.Tensor
	pixels, isPixels := c.data[0].Inputs.(nets.Pixels)
	if isPixels {
		input = tensors.FromFlatDataAndDimensions(pixels.Bytes[:c.BatchSize*pixels.Size()], c.BatchSize, 3, 8, 8)
	} else {
		var x []float64
		for _, set := range c.data {
			x = append(x, set.Inputs.(nets.Floats).Values[:c.BatchSize*2]...)
		}
		input = params.FromFloat64(shapes.Make(m.DType, append(m.LeadingAxes(), c.BatchSize, 2)...), x)
	}
	exec := must.Get(model.NewExec(m.Backend, m.Store, func(root *model.Scope, x *graph.Node) (y, kl, ll *graph.Node) {
		g := x.Graph()
		if m.Host != nil {
			stochastic.SetNoiseSource(g, m.Host.NewBuffers())
		}
		root.Store().SetTraining(g, true)
		if isPixels {
			x = pixels.Standardization.Images(x, m.DType)
		}
		y = m.Apply(m.Scope(root), x)
		return y, stochastic.LayerLossesOf(g).KL, stochastic.LayerLossesOf(g).LogLikelihood
	}))(t)
	a, b, d, err := exec.Call3(input)
	must.Do(t, err)
	parts := func(x *tensors.Tensor) [][]float64 {
		values := fixtures.FromTensor(t, x).Values
		return slices.Collect(slices.Chunk(values, len(values)/len(c.data)))
	}
	return parts(a), slices.Concat(parts(b)...), parts(d)
}

// byHand is the negative log-likelihood of an example by its formula, and whether
// its label is the most probable one.
func byHand(l likelihood.Likelihood, outputs []float64, data train.Dataset, i int) (nll, correct float64) {
	gaussian := func(mean, logVariance float64) float64 {
		return 0.5 * (math.Log(2*math.Pi) + logVariance + math.Pow(data.Targets[i]-mean, 2)/math.Exp(logVariance))
	}
	switch l.(type) {
	case likelihood.Gaussian:
		return gaussian(outputs[0], 0), 0
	case likelihood.Heteroscedastic:
		return gaussian(outputs[0], outputs[1]), 0
	}
	if outputs[data.Labels[i]] == slices.Max(outputs) {
		correct = 1
	}
	return floats.LogSumExp(outputs) - outputs[data.Labels[i]], correct
}

// The losses of the first step are what the objective's formula gives for the
// untrained network, of the replicas' means: with N examples, not those of the
// batch, and with the scale of the generative objective, which in pretraining is alone.
// That of classifiers can be weighted.
func TestFirstLosses(t *testing.T) {
	const scale = 0.3
	var all []trial
	for _, c := range trials() {
		all = append(all, c)
		if _, is := c.like.(likelihood.Classification); is {
			c.name, c.WeightEnergies = c.name+", weighted", true
			all = append(all, c)
		}
	}
	each(t, all, func(t *testing.T, c trial) {
		if c.name != "images" && c.name != "replicas of points, weighted" && c.name != "replicas" {
			fixtures.SkipShortOffGo(t)
		}
		c.Order, c.Augmentation, c.Padding, c.LogLikelihoodScale = ordering(inOrder), nil, 0, scale
		outputs, kl, ll := firstBatch(t, c)
		var joint train.Losses
		rows, replicas := float64(c.BatchSize), float64(len(c.data))
		for r, set := range c.data {
			width := len(outputs[r]) / c.BatchSize
			for i := range c.BatchSize {
				nll, correct := byHand(c.like, outputs[r][i*width:(i+1)*width], set, i)
				joint.NLL += nll / rows / replicas
				joint.Accuracy += correct / rows / replicas
				weight := 1.0
				if c.WeightEnergies {
					weight = laplaceWeight(outputs[r][i*width : (i+1)*width])
				}
				joint.LogLikelihood += weight * ll[r][i] / rows / replicas
			}
			joint.KL += kl[r] / replicas
			joint.Total += kl[r] / float64(set.Len()) / replicas
		}
		joint.Total += joint.NLL - scale*joint.LogLikelihood
		pretraining := joint
		pretraining.Total = -scale * joint.LogLikelihood
		for _, phase := range []struct {
			name     string
			pretrain int
			want     train.Losses
		}{{"joint", 0, joint}, {"pretraining", 1, pretraining}} {
			t.Run(phase.name, func(t *testing.T) {
				c.PretrainEpochs = phase.pretrain
				var got train.Losses
				c.Progress = func(p train.Progress) { got = p.Losses }
				must.Err(t, fitUntil(c.Trainer, c.model(t, dtypes.Float64), 1, c.data...), context.Canceled)
				for _, part := range []struct {
					name      string
					got, want float64
				}{
					{"objective", got.Total, phase.want.Total}, {"negative log-likelihood", got.NLL, phase.want.NLL}, {"KL", got.KL, phase.want.KL},
					{"log-likelihood of the energy models", got.LogLikelihood, phase.want.LogLikelihood}, {"accuracy", got.Accuracy, phase.want.Accuracy},
				} {
					must.Near(t, part.got, part.want, 1e-10*math.Max(1, math.Abs(part.want)), "%s of the first batch", part.name)
				}
			})
		}
	})
}

// Every step has fresh noise: while nothing is trained, the losses of one batch differ from step to step if and only if the
// network has noise.
func TestNoiseOfEveryStep(t *testing.T) {
	for _, c := range []struct {
		name    string
		layers  nets.ConvLayers
		inGraph bool
		differ  bool
	}{
		{"none", baselines.Deterministic{}, false, false},
		{"host", dul.Density{InitStd: 0.3}, false, true},
		{"graph", dul.Density{InitStd: 0.3}, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newModel(t, nets.MLP{Layers: c.layers, Widths: []int{6}}, likelihood.Gaussian{}, dtypes.Float64, 1)
			m.Host = stochastic.NewHostSampler(1)
			if c.inGraph {
				m.Host = nil
			}
			var sums []float64
			run := train.Trainer{Settings: train.Settings{
				Epochs: 4, BatchSize: 4, Order: ordering(inOrder), Schedule: train.Constant{Start: 0}, LogLikelihoodScale: 1, Groups: []train.Group{{Roles: train.AllRoles(), Optimizer: train.SGD{}}}},
				Progress: func(p train.Progress) { sums = append(sums, p.Losses.NLL) },
			}
			data := linearSet(2, 0.3, 1) // the same batch in either half of an epoch
			x := data.Inputs.(nets.Floats).Values
			data = train.Dataset{Inputs: nets.Rows(slices.Repeat(x, 4), 2), Targets: slices.Repeat(data.Targets, 4)}
			must.Do(t, run.Fit(context.Background(), m, data))
			slices.Sort(sums)
			if distinct := len(slices.Compact(sums)); (distinct > 1) != c.differ || c.differ && distinct < 8 {
				t.Errorf("losses %v", sums)
			}
		})
	}
}

// Step t of the joint training has the rate Schedule(t, total), the pretraining the largest one. TestDiverged shows that a
// step has the rate of its number.
func TestSchedule(t *testing.T) {
	fixtures.SkipShortOffGo(t)
	c := named(t, "regression")
	var asked [][2]int
	c.Schedule = rates(func(t, total int) float64 {
		asked = append(asked, [2]int{t, total})
		return 0.01
	})
	c.fit(t, c.model(t, dtypes.Float64))
	var want [][2]int
	for t := range 8 {
		want = append(want, [2]int{t, 8})
	}
	if want = slices.Repeat(want, 2); !slices.Equal(asked, want) { // before the first step, and step by step
		t.Errorf("the schedule was asked for %v, want %v", asked, want)
	}
}

// laplaceWeight is the weight of an example with these logits by its formula.
func laplaceWeight(logits []float64) float64 {
	weight, log := 0.0, floats.LogSumExp(logits)
	for _, z := range logits {
		p := math.Exp(z - log)
		weight += p * (1 - p) / 2
	}
	return weight
}

// A step of gradient descent on the generative objective of one layer, from Sigma =
// I, is the weighted mean of the examples' gradients, which are known there. The
// classifier, which determines the weights, does not move.
func TestStepOnWeightedEnergies(t *testing.T) {
	const rate = 0.1
	const lower, logVariance = "/model/network/output/energy/lower", "/model/network/output/energy/log_variance"
	for _, weighted := range []bool{false, true} {
		t.Run(map[bool]string{false: "all alike", true: "weighted"}[weighted], func(t *testing.T) {
			c := named(t, "points")
			c.network = func(d dul.Density) nets.Network { return nets.MLP{Layers: d} }
			c.Order, c.WeightEnergies, c.BatchSize, c.Schedule = ordering(inOrder), weighted, trialN, train.Constant{Start: rate}
			c.Groups, c.PretrainGroups = []train.Group{{Roles: train.AllRoles(), Optimizer: train.SGD{}}}, nil
			c.PretrainEpochs, c.Epochs = 0, 0
			start := c.model(t, dtypes.Float64)
			sample(t, start, c.data[0].Inputs, 1) // makes the parameters
			c.PretrainEpochs = 1
			m := c.model(t, dtypes.Float64)
			c.fit(t, m)

			logits, _, _ := firstBatch(t, c)
			want := map[string]fixtures.Array{lower: fixtures.Zeros(2, 2), logVariance: fixtures.Zeros(1, 2)}
			x := c.data[0].Inputs.(nets.Floats).Values
			for i := range trialN {
				share, h := rate/trialN, x[2*i:2*i+2]
				if weighted {
					share *= laplaceWeight(logits[0][2*i : 2*i+2])
				}
				want[lower].Values[2] -= share * h[0] * h[1]
				for d := range h {
					want[logVariance].Values[d] += share * (h[d]*h[d] - 1) / 2
				}
			}
			before := parametersOf(t, start)
			for path, got := range parametersOf(t, m) {
				if end, moves := want[path]; moves {
					fixtures.Compare(t, path, got, end, 1e-12)
				} else {
					fixtures.Compare(t, path, got, before[path], 0)
				}
			}
		})
	}
}

// Five steps of each optimizer with given gradients, against PyTorch's.
func TestOptimizersMatchTheRecordedTraces(t *testing.T) {
	c := fixtures.Open(t, "sgd_trace")
	start, gradients := c.Array("p0"), c.Array("grads")
	steps, n := gradients.Dims[0], gradients.Dims[1]
	for _, known := range []struct {
		name      string
		optimizer train.Optimizer
		schedule  train.Schedule
	}{
		{"sgd", train.SGD{Momentum: 0.9, Decay: 0.01}, train.Cosine{Start: 0.1}},
		{"adamw", train.Adam{Beta2: 0.99, Decay: 0.01, Decoupled: true}, train.Constant{Start: 0.01}},
		{"adam", train.Adam{Decay: 0.01}, train.Constant{Start: 0.01}},
	} {
		for _, dtype := range []dtypes.DType{dtypes.Float64, dtypes.Float32} {
			t.Run(fmt.Sprintf("%s/%s", known.name, dtype), func(t *testing.T) {
				tolerance := 1e-10
				if dtype == dtypes.Float32 {
					tolerance = 2e-5
				}
				store := model.NewStore()
				parameter := store.VariableWithValue("/p", fixtures.Tensor(dtype, start))
				exec := must.Get(model.NewExec(fixtures.Backend(t), store,
					func(root *model.Scope, gradient, rate, step *graph.Node) *graph.Node {
						store.SetTraining(gradient.Graph(), true)
						value := parameter.NodeValue(gradient)
						updated := known.optimizer.Update(root.In("state"), value, gradient, rate, step)
						parameter.SetNodeValue(updated)
						return updated
					}))(t)
				for i := range steps {
					row := func(a fixtures.Array) fixtures.Array { return fixtures.Matrix(1, n, a.Values[i*n:(i+1)*n]...) }
					scalar := func(v float64) fixtures.Array { return fixtures.Array{Values: []float64{v}} }
					got := must.Get(exec.Call1(
						fixtures.Tensor(dtype, row(gradients)),
						fixtures.Tensor(dtype, scalar(known.schedule.Rate(i, steps))),
						fixtures.Tensor(dtype, scalar(float64(i+1)))))(t)
					fixtures.Compare(t, fmt.Sprintf("step %d", i), fixtures.FromTensor(t, got), row(c.Array(known.name)), tolerance)
				}
			})
		}
	}
	rates := fixtures.Zeros(1, steps)
	for i := range steps {
		rates.Values[i] = train.Cosine{Start: 0.1}.Rate(i, steps)
	}
	fixtures.Compare(t, "cosine schedule", rates, c.Array("lrs"), 1e-12)
}

// A group without optimizer leaves its parameters as they are. The first group
// that has a parameter owns it. Only limits a group. Rate multiplies the learning
// rate, and so the change by one step of plain SGD.
func TestGroups(t *testing.T) {
	set := linearSet(16, 0.1, 2)
	oneStep := regression()
	oneStep.Epochs, oneStep.Schedule = 1, train.Constant{Start: 0.01}
	trained := func(groups ...train.Group) map[string]fixtures.Array {
		t.Helper()
		r := oneStep
		r.Groups = groups
		m := mlp(t, dul.Density{}, 4)
		fit(t, r, m, set)
		return parametersOf(t, m)
	}
	sgd := train.SGD{}
	all := train.AllRoles()
	start := trained(train.Group{Roles: []params.Role{params.Likelihood}, Optimizer: sgd}) // the others stay
	step := trained(train.Group{Roles: all, Optimizer: sgd})
	change := func(at map[string]fixtures.Array, path string) fixtures.Array {
		c := fixtures.Zeros(start[path].Dims...)
		for i, v := range at[path].Values {
			c.Values[i] = v - start[path].Values[i]
		}
		return c
	}
	const weights, bias, energy = "/model/network/output/weights", "/model/network/output/bias", "/model/network/output/energy/log_variance"
	for _, c := range []struct {
		name   string
		groups []train.Group
		factor map[string]float64 // of each path's change
	}{
		{"weights alone", []train.Group{{Roles: []params.Role{params.Weight}, Optimizer: sgd}},
			map[string]float64{weights: 1, bias: 1, energy: 0}},
		{"only", []train.Group{{Roles: all, Only: []string{"bias"}, Optimizer: sgd}},
			map[string]float64{weights: 0, bias: 1, energy: 0}},
		{"rate", []train.Group{{Roles: []params.Role{params.Generative}, Optimizer: sgd, Rate: 3}, {Roles: all, Optimizer: sgd}},
			map[string]float64{weights: 1, bias: 1, energy: 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := trained(c.groups...)
			for path, factor := range c.factor {
				fixtures.Compare(t, path, change(got, path), change(step, path).Scale(factor), 1e-10)
			}
		})
		if largest := fixtures.RelativeError(t, weights, change(step, weights), fixtures.Zeros(8, 1)); largest == 0 {
			t.Fatal("training changes nothing")
		}
	}
}

// A gradient above ClipNorm has this norm over all parameters of a replica, and its direction; one below it stays.
func TestClipNorm(t *testing.T) {
	sets := []train.Dataset{linearSet(16, 0.1, 2), linearSet(16, 3, 5)}
	step := func(limit float64) [2][]float64 { // of each replica
		run := regression()
		run.Epochs, run.PretrainEpochs, run.Schedule, run.ClipNorm = 1, 0, train.Constant{Start: 1}, limit
		run.BatchSize = 16
		run.Groups = []train.Group{{Roles: train.AllRoles(), Optimizer: train.SGD{}}}
		before, after := mlp(t, dul.Density{}, 4, 5), mlp(t, dul.Density{}, 4, 5)
		fit(t, run, after, sets...)
		run.ClipNorm = 1e-300 // nothing moves
		fit(t, run, before, sets...)
		var change [2][]float64
		old, now := parametersOf(t, before), parametersOf(t, after)
		for _, path := range slices.Sorted(maps.Keys(now)) {
			n := len(now[path].Values) / 2
			for i, v := range now[path].Values {
				change[i/n] = append(change[i/n], v-old[path].Values[i])
			}
		}
		return change
	}
	free := step(0)
	first, second := floats.Norm(free[0], 2), floats.Norm(free[1], 2)
	limit := (first + second) / 2 // clips one of them
	for r, change := range step(limit) {
		factor := min(1, limit/floats.Norm(free[r], 2))
		for i, v := range change {
			must.Near(t, v, free[r][i]*factor, 1e-9*max(first, second), "replica %d: the move of parameter %d", r, i)
		}
	}
	if math.Abs(first-second) < 0.01*limit {
		t.Errorf("the norms are %g and %g", first, second)
	}
}

// A misspelt role is an error, also beside a group for all roles. A user's own role is
// accepted if a parameter has it.
func TestRolesOfGroups(t *testing.T) {
	all := train.Group{Roles: train.AllRoles(), Optimizer: train.SGD{}}
	for role, network := range map[params.Role]nets.Network{
		"weigths": nets.MLP{Layers: dul.Density{}}, "tempo": nets.MLP{Layers: ownRole{}},
	} {
		run := regression()
		run.Groups = []train.Group{{Roles: []params.Role{role}, Optimizer: train.SGD{}}, all}
		run.PretrainEpochs = 0
		err := run.Fit(context.Background(), newModel(t, network, likelihood.Gaussian{}, dtypes.Float32, 1), linearSet(16, 0.1, 2))
		if want := `group 0 trains parameters of role "weigths"`; role == "weigths" && (err == nil || !strings.Contains(err.Error(), want)) || role != "weigths" && err != nil {
			t.Errorf("role %s: the error is %v", role, err)
		}
	}
}

// ownRole is a linear layer, times a parameter with a new role.
type ownRole struct{}

func (ownRole) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	return graph.Mul(params.Dense(s, x, units), params.New(s, x, "tempo", "tempo", params.Constant(1), 1, units))
}

// Without PretrainGroups, pretraining moves the energy models' parameters in Groups, as
// set there, and nothing else, not even by weight decay. PretrainGroups move all that
// they contain.
func TestGroupsOfThePretraining(t *testing.T) {
	fixtures.SkipShortOffGo(t)
	const energy = params.Generative
	decaying := train.Adam{Decay: 0.1}
	others := train.Group{Roles: []params.Role{params.Weight, params.Variational, params.Likelihood}, Optimizer: decaying}
	all := []train.Group{{Roles: train.AllRoles(), Optimizer: decaying}}
	for _, c := range []struct {
		name        string
		groups, own []train.Group
		moves       func(path string, role params.Role) bool
	}{
		{"all roles", all, nil, func(_ string, r params.Role) bool { return r == energy }},
		{"several groups", []train.Group{others, {Roles: []params.Role{energy, params.Weight}, Optimizer: decaying}}, nil, func(_ string, r params.Role) bool { return r == energy }},
		{"a part of the energy models", []train.Group{{Roles: train.AllRoles(), Only: []string{"lower"}, Optimizer: decaying}}, nil,
			func(path string, r params.Role) bool { return r == energy && strings.HasSuffix(path, "/lower") }},
		{"the first group owns", append([]train.Group{{Roles: []params.Role{energy}, Only: []string{"lower"}}}, all...), nil,
			func(path string, r params.Role) bool { return r == energy && !strings.HasSuffix(path, "/lower") }},
		{"its own", nil, all, func(_ string, r params.Role) bool { return r != params.Likelihood }}, // the log-variance of the noise starts at 0
	} {
		t.Run(c.name, func(t *testing.T) {
			after := func(rate float64) (map[string]fixtures.Array, *nets.Model) {
				run := regression()
				run.Epochs, run.PretrainEpochs, run.Schedule = 0, 1, train.Constant{Start: rate}
				run.PretrainGroups = c.own
				if c.groups != nil {
					run.Groups = c.groups
				}
				m := mlp(t, dul.Density{}, 4)
				fit(t, run, m, linearSet(16, 0.1, 2))
				return parametersOf(t, m), m
			}
			start, _ := after(0)
			end, m := after(0.01)
			for path, was := range start {
				role := params.RoleOf(m.Store.GetVariable(path), m.Store)
				if moved := !slices.Equal(was.Values, end[path].Values); len(was.Values) > 1 && moved != c.moves(path, role) {
					t.Errorf("%s, of role %s, moved: %t", path, role, moved)
				}
			}
		})
	}
}
