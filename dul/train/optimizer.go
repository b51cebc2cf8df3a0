package train

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/params"
)

// An Optimizer updates one parameter in the graph. GoMLX's own SGD has neither
// momentum nor weight decay, and neither of its optimizers has parameter groups.
type Optimizer interface {
	// Update returns the parameter's new value after one step with the given
	// gradient and learning rate (a scalar). It keeps its state in variables
	// under s; step is the number of this step, from 1, as a scalar.
	Update(s *model.Scope, value, gradient, rate, step *graph.Node) *graph.Node
}

// SGD is stochastic gradient descent with momentum, in the form in which the
// learning rate multiplies the buffer (PyTorch's):
//
//	g = gradient + Decay * value
//	buffer = Momentum * buffer + g
//	value = value - rate * buffer
type SGD struct {
	Momentum float64
	Decay    float64 // L2 weight decay, coupled
}

// Check returns an error for a setting that is negative or infinite, or a Momentum of 1 or more.
func (o SGD) Check() error {
	if !amount(o.Momentum) || o.Momentum >= 1 || !amount(o.Decay) {
		return fmt.Errorf("train.SGD has Momentum %g and Decay %g; neither may be negative, and Momentum must be below 1", o.Momentum, o.Decay)
	}
	return nil
}

// amount says whether v is finite and not negative.
func amount(v float64) bool { return v >= 0 && !math.IsInf(v, 1) }

// Update implements Optimizer.
func (o SGD) Update(s *model.Scope, value, gradient, rate, _ *graph.Node) *graph.Node {
	gradient = withDecay(gradient, value, o.Decay)
	if o.Momentum != 0 {
		buffer := slot(s, "momentum", value)
		previous := buffer.NodeValue(value)
		gradient = graph.Add(graph.MulScalar(previous, o.Momentum), gradient)
		buffer.SetNodeValue(gradient)
	}
	return graph.Sub(value, graph.Mul(gradient, rate))
}

// Adam is Adam (Kingma & Ba 2015) with bias correction. With g = gradient + Decay * value and t the number of the step
// from 1,
//
//	m = 0.9 m + 0.1 g,  v = Beta2 v + (1 - Beta2) g^2
//	value = value - rate * (m / (1 - 0.9^t)) / (sqrt(v / (1 - Beta2^t)) + 1e-8)
//
// With Decoupled, g = gradient, and rate * Decay * value is subtracted from the value instead (AdamW, Loshchilov &
// Hutter 2019).
type Adam struct {
	Beta2     float64 // 0 means 0.999
	Decay     float64
	Decoupled bool
}

// Check returns an error for a setting that is negative or infinite, or a Beta2 of 1 or more.
func (o Adam) Check() error {
	if !amount(o.Beta2) || o.Beta2 >= 1 || !amount(o.Decay) {
		return fmt.Errorf("train.Adam has Beta2 %g and Decay %g; neither may be negative, and Beta2 must be below 1", o.Beta2, o.Decay)
	}
	return nil
}

// Update implements Optimizer.
func (o Adam) Update(s *model.Scope, value, gradient, rate, step *graph.Node) *graph.Node {
	const beta1 = 0.9
	beta2 := cmp.Or(o.Beta2, 0.999)
	updated := value
	if o.Decoupled {
		updated = graph.Sub(value, graph.Mul(graph.MulScalar(value, o.Decay), rate))
	} else {
		gradient = withDecay(gradient, value, o.Decay)
	}
	first, second := slot(s, "first_moment", value), slot(s, "second_moment", value)
	m := mix(first.NodeValue(value), gradient, beta1)
	v := mix(second.NodeValue(value), graph.Mul(gradient, gradient), beta2)
	first.SetNodeValue(m)
	second.SetNodeValue(v)
	correct1 := graph.OneMinus(graph.Exp(graph.MulScalar(step, math.Log(beta1))))
	correct2 := graph.OneMinus(graph.Exp(graph.MulScalar(step, math.Log(beta2))))
	// rate/correct1 and sqrt(correct2) are scalars: the correction costs
	// nothing per entry.
	denominator := graph.AddScalar(graph.Mul(graph.Sqrt(v), graph.Reciprocal(graph.Sqrt(correct2))), 1e-8)
	return graph.Sub(updated, graph.Div(graph.Mul(m, graph.Div(rate, correct1)), denominator))
}

// mix is beta a + (1 - beta) b.
func mix(a, b *graph.Node, beta float64) *graph.Node {
	return graph.Add(graph.MulScalar(a, beta), graph.MulScalar(b, 1-beta))
}

func withDecay(gradient, value *graph.Node, decay float64) *graph.Node {
	if decay == 0 {
		return gradient
	}
	return graph.Add(gradient, graph.MulScalar(value, decay))
}

// slot is a state variable of an optimizer, of the parameter's shape, starting at 0.
func slot(s *model.Scope, name string, value *graph.Node) *model.Variable {
	v := s.WithInitializer(graph.Zeros).VariableWithShape(name, value.Shape()).SetTrainable(false)
	params.Input(s.Store(), v, value)
	return v
}

// A Group names parameters, by role and name, and the optimizer that trains them.
type Group struct {
	// Roles are the roles of the group's parameters.
	Roles []params.Role
	// Only, if not empty, limits the group to parameters with these names; Except leaves out parameters with these
	// names. A name is the last part of a parameter's path, such as "bias".
	Only, Except []string
	// Optimizer trains the parameters; with nil they do not change.
	Optimizer Optimizer
	// Rate multiplies the schedule's learning rate; 0 means 1.
	Rate float64
}

func (g Group) check() error {
	if !amount(g.Rate) {
		return fmt.Errorf("its Rate is %g; it must be finite and not negative", g.Rate)
	}
	if o, has := g.Optimizer.(likelihood.Checker); has {
		return o.Check()
	}
	return nil
}

// Contains reports whether the parameter with this path and role is in the group.
func (g Group) Contains(name string, role params.Role) bool {
	name = path.Base(name)
	return slices.Contains(g.Roles, role) && (len(g.Only) == 0 || slices.Contains(g.Only, name)) && !slices.Contains(g.Except, name)
}

// restricted are the groups without parameters of other roles.
func restricted(groups []Group, role params.Role) []Group {
	var found []Group
	for _, g := range groups {
		if slices.Contains(g.Roles, role) {
			g.Roles = []params.Role{role}
			found = append(found, g)
		}
	}
	return found
}

// AllRoles returns the roles of all trained parameters: params.Weight, Variational, Generative and Likelihood.
func AllRoles() []params.Role {
	return []params.Role{params.Weight, params.Variational, params.Generative, params.Likelihood}
}

// A Schedule gives the learning rate of step t (from 0) of total steps.
type Schedule interface {
	Rate(t, total int) float64
}

// Constant is the schedule with the rate Start at every step.
type Constant struct{ Start float64 }

// Rate implements Schedule.
func (c Constant) Rate(int, int) float64 { return c.Start }

// Cosine is the schedule that decays from Start to 0 without restarts (Loshchilov & Hutter 2017). The rate of step t,
// from 0, is Start (1 + cos(pi t / total)) / 2.
type Cosine struct{ Start float64 }

// Rate implements Schedule.
func (c Cosine) Rate(t, total int) float64 {
	return c.Start * (1 + math.Cos(math.Pi*float64(t)/float64(total))) / 2
}

// Check returns an error unless Start is positive.
func (c Cosine) Check() error { return Steps{Start: c.Start, Factor: 1}.Check() }

// Steps is a schedule that begins with the rate Start. At each fraction of the run in At, between 0 and 1, it
// multiplies the rate by Factor.
type Steps struct {
	Start, Factor float64
	At            []float64
}

// Rate implements Schedule.
func (s Steps) Rate(t, total int) float64 {
	r := s.Start
	for _, part := range s.At {
		if float64(t) >= part*float64(total) {
			r *= s.Factor
		}
	}
	return r
}

// Check returns an error unless Start is positive and every fraction is above 0 and below 1.
func (s Steps) Check() error {
	if !(s.Start > 0) {
		return fmt.Errorf("the learning rate of the Schedule starts at %g; it must be positive", s.Start)
	}
	for _, part := range s.At {
		if !(part > 0 && part < 1) {
			return fmt.Errorf("Steps.At has %g; the parts of the training are between 0 and 1", part)
		}
	}
	return nil
}
