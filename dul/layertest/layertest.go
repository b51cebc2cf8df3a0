// Package layertest tests your own layers:
//
//	func TestMine(t *testing.T) { layertest.Dense(t, mine.Layers{}) }
//
// Subtests check shapes, float32 against float64, gradients, a KL divergence that is not negative, that examples of a
// batch do not depend on each other, noise and its seeds, replicas, and moments that you give. The layer must create
// its parameters by package params and draw its noise by stochastic.Draw.
package layertest

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
)

// ConvLayers is a family with convolutions (see nets.ConvLayers); Dense is not needed here.
type ConvLayers interface {
	// Conv maps [channels, batch, height, width] to [filters, batch, height', width'].
	Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node
}

// Checks describes a family, so that the right checks run. The zero value is a family with its own noise for each
// example, with replicas and a KL that is not negative.
type Checks struct {
	// Deterministic: the family has no noise; its output is always the same.
	Deterministic bool
	// SharedNoise: all examples of a batch share one draw of noise.
	SharedNoise bool
	// NoReplicas: Dense takes no leading replica axis.
	NoReplicas bool
	// RelativeKL: the KL is known only up to a constant, as with an improper prior, so that it may be negative.
	RelativeKL bool
	// CutGradients: the family stops some gradients on purpose, so that gradients are not compared. Check it without
	// the cut as well.
	CutGradients bool
	// Features is the only number of inputs that Dense takes; 0 means any.
	Features int
	// Moments returns the mean and the variance of each entry of the output, in row-major order, for the single example
	// at["x"], [1, in] or [channels, 1, height, width], and the parameters at["/layer/..."]. Dense has 2 units; Conv
	// has the convolution MomentsSpec: 2 filters with a bias and a window of 3 x 3 pixels with stride 2. If nil,
	// moments are not checked.
	Moments func(t testing.TB, at fixtures.Values) (mean, variance []float64)
}

// MomentsSpec is the convolution for which Checks.Moments gives the moments.
var MomentsSpec = conv.Spec{Filters: 2, Window: conv.Same(3, 2)}

// Dense runs all checks for layers of vectors, with the zero Checks.
func Dense(t testing.TB, layers nets.Layers) {
	t.Helper()
	Checks{}.Dense(t, layers)
}

// Conv runs all checks for convolutional layers, with the zero Checks.
func Conv(t testing.TB, layers ConvLayers) {
	t.Helper()
	Checks{}.Conv(t, layers)
}

// Dense runs the checks for layers of vectors.
func (c Checks) Dense(t testing.TB, layers nets.Layers) {
	t.Helper()
	f := family{Checks: c}
	in := c.Features
	if in == 0 {
		in = 4
	}
	add := func(exact bool, units int, x ...int) {
		last := len(x) - 1
		f.geometries = append(f.geometries, geometry{
			x: x, out: append(slices.Clone(x[:last]), units), lead: x[:last-1], batch: x[last-1], exact: exact,
			layer: func(s *model.Scope, x *graph.Node) *graph.Node { return dense(layers, s, x, units) },
		})
	}
	add(true, 2, 3, in)
	if !c.NoReplicas {
		add(true, 2, 2, 3, in)
	}
	add(false, 1, 1, in)
	if c.Features == 0 {
		add(false, 3, 5, 1)
		add(false, 4, 2, 7)
	}
	f.moments = f.geometries[0]
	f.run(t)
	if !c.NoReplicas {
		run(t, "replicas", func(t testing.TB) { checkReplicas(t, layers, in) })
	}
}

// dense builds a layer, and names the family in what it panics with.
func dense(layers nets.Layers, s *model.Scope, x *graph.Node, units int) *graph.Node {
	params.FactsOf(x.Graph()).Replicas = x.Shape().Dimensions[:x.Rank()-2]
	return built("Dense", layers, s.In("layer"), x, func(s *model.Scope) *graph.Node { return layers.Dense(s, x, units) })
}

// built is what a family builds. Where that panics it panics with an error that names the family.
func built(what string, layers any, s *model.Scope, x *graph.Node, layer func(s *model.Scope) *graph.Node) *graph.Node {
	return nets.BuildLayer(layers, s, x, func() *graph.Node {
		defer nets.PanicWithError("%s of layers of type %T", what, layers)
		return layer(s)
	})
}

// Conv runs the checks for convolutional layers.
func (c Checks) Conv(t testing.TB, layers ConvLayers) {
	t.Helper()
	f := family{Checks: c, images: true}
	add := func(exact bool, spec conv.Spec, x ...int) geometry {
		high, wide := spec.Window.Out(x[2], x[3])
		g := geometry{
			x: x, out: []int{spec.Filters, x[1], high, wide}, batch: x[1], exact: exact,
			layer: func(s *model.Scope, x *graph.Node) *graph.Node {
				return built("Conv", layers, s.In("layer"), x, func(s *model.Scope) *graph.Node { return layers.Conv(s, x, spec) })
			},
		}
		f.geometries = append(f.geometries, g)
		return g
	}
	add(true, conv.Spec{Filters: 2, Window: conv.Same(3, 1), NoBias: true}, 2, 2, 4, 3)
	add(true, conv.Spec{Filters: 3, Window: conv.Same(3, 2)}, 2, 2, 4, 3)
	add(true, conv.Spec{Filters: 2, Window: conv.Same(1, 2)}, 2, 2, 4, 3)
	add(true, conv.Spec{Filters: 2, Window: conv.Same(3, 2)}, 2, 2, 1, 4)
	f.moments = add(false, MomentsSpec, 2, 1, 3, 4)
	add(false, conv.Spec{Filters: 1, Window: conv.Same(5, 1)}, 1, 3, 5, 4)
	add(false, conv.Spec{Filters: 3, Window: conv.Same(1, 1)}, 3, 1, 1, 1)
	f.run(t)
}

// A family is a family of layers and the geometries in which it is checked.
type family struct {
	Checks
	images     bool
	geometries []geometry
	moments    geometry // of the one that Checks.Moments is about
}

// A geometry is one layer of a family and the shapes of its input and output.
type geometry struct {
	x, out []int
	lead   []int // the replica axes
	batch  int
	exact  bool // whether gradients are compared
	layer  func(s *model.Scope, x *graph.Node) *graph.Node
}

// input is a random batch for the layer.
func (g geometry) input() fixtures.Array { return fixtures.Random(newRand(), g.x...) }

// several is the shape of an input of four examples.
func (g geometry) several(axis int) []int {
	dims := slices.Clone(g.x)
	dims[axis] = 4
	return dims
}

// function is the layer as a function of its values.
func (g geometry) function(s *model.Scope, in fixtures.Nodes) *graph.Node { return g.layer(s, in["x"]) }

// run runs the checks that vectors and images share.
func (f family) run(t testing.TB) {
	t.Helper()
	for _, g := range f.geometries {
		run(t, fmt.Sprintf("shapes/%v", g.x), func(t testing.TB) { f.checkShapes(t, g) })
	}
	run(t, "precision", func(t testing.TB) { checkPrecision(t, f.geometries[0]) })
	run(t, "neighbours", func(t testing.TB) {
		for _, g := range f.geometries {
			if g.exact && len(g.lead) == 0 {
				axis := 0
				if f.images {
					axis = 1
				}
				checkNeighbours(t, fixtures.Random(newRand(), g.several(axis)...), axis, g.function)
			}
		}
	})
	run(t, "KL", func(t testing.TB) { f.checkKL(t) })
	if !f.CutGradients {
		for i, g := range f.geometries {
			if g.exact {
				run(t, fmt.Sprintf("gradients/%d %v", i, g.x), func(t testing.TB) {
					fixtures.SkipShortOffGo(t)
					Gradients(t, g.input(), g.layer)
				})
			}
		}
	}
	for _, s := range sources {
		run(t, "noise/"+s.name, func(t testing.TB) { f.checkNoise(t, s) })
		if f.Moments != nil {
			run(t, "moments/"+s.name, func(t testing.TB) { f.checkMoments(t, s) })
		}
	}
}

// Failures runs checks without the go command, as in a notebook, and returns what failed, or nil:
//
//	err := layertest.Failures(func(t testing.TB) { layertest.Dense(t, mine.Layers{}) })
//
// A check that panics fails; a check that is skipped does not. t reports and skips; its other methods, such as TempDir,
// panic.
func Failures(checks func(t testing.TB)) error {
	c := &collector{}
	c.run("", checks)
	return errors.Join(*c.found()...)
}

// run runs a check as a subtest where there are such.
func run(t testing.TB, name string, check func(t testing.TB)) {
	t.Helper()
	switch t := t.(type) {
	case *testing.T:
		t.Run(name, func(t *testing.T) { check(t) })
	case *collector:
		t.run(name, check)
	default:
		check(t)
	}
}

// A collector is a testing.TB outside of tests.
type collector struct {
	testing.TB // nil, for all methods that are not below
	name       string
	failures   []error
	root       *collector
}

func (c *collector) found() *[]error {
	if c.root != nil {
		return &c.root.failures
	}
	return &c.failures
}

// run runs a check until it returns, panics, or ends itself by Fatal or Skip.
func (c *collector) run(name string, check func(t testing.TB)) {
	sub := &collector{name: name, root: c}
	if c.root != nil {
		sub.root = c.root
	}
	if c.name != "" {
		sub.name = c.name + "/" + name
	}
	done := make(chan struct{})
	go func() { // of its own, since Goexit, by which Fatal and Skip end a check, ends a goroutine
		defer close(done)
		defer func() {
			if panicked := recover(); panicked != nil {
				sub.note(fmt.Sprintf("panic: %v", panicked))
			}
		}()
		check(sub)
	}()
	<-done
}

func (c *collector) note(text string) {
	if c.name != "" {
		text = c.name + ": " + text
	}
	found := c.found()
	*found = append(*found, errors.New(text))
}

func (c *collector) Helper()                           {}
func (c *collector) Log(...any)                        {}
func (c *collector) Logf(string, ...any)               {}
func (c *collector) Error(args ...any)                 { c.note(fmt.Sprint(args...)) }
func (c *collector) Errorf(format string, args ...any) { c.note(fmt.Sprintf(format, args...)) }
func (c *collector) Fatal(args ...any)                 { c.Error(args...); runtime.Goexit() }
func (c *collector) Fatalf(format string, args ...any) { c.Errorf(format, args...); runtime.Goexit() }
func (c *collector) Skip(...any)                       { runtime.Goexit() }
