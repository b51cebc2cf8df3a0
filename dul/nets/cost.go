package nets

import (
	"errors"
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/params"
)

// Parameters counts the entries of a network's trainable parameters by role, for images of channels x height x width
// pixels, without creating them. Masked entries of energy.LDL count too. It is an error if the graph cannot be built.
//
// For 10 classes, with the default settings of each family:
//
//	                       ResNet-14    ResNet-20    WRN-28-10
//	Deterministic            175,178      272,394   36,480,330
//	MCDropout                175,178      272,394   36,480,330
//	VDropout                 175,178      272,394   36,480,330
//	MFVI                     349,306      543,290   72,941,562
//	Rank1                    177,348      275,460   36,519,492
//	Density, rank 1          206,608      322,148   43,613,653
//	Density, LDL             341,266      535,922   72,071,058
func Parameters(backend compute.Backend, network Network, channels, height, width, classes int) (map[params.Role]int, error) {
	counts, store := map[params.Role]int{}, model.NewStore()
	params.WithoutValues(store)
	images := shapes.Make(dtypes.Float32, channels, 1, height, width)
	err := Build(backend, store, func(s *model.Scope, in []*graph.Node) {
		s.Store().SetTraining(in[0].Graph(), true) // some families predict only once trained
		*params.FactsOf(in[0].Graph()) = params.Facts{Images: true, Examples: 1}
		apply(network, s, in[0], classes)
		for v := range store.IterVariables() {
			if role := params.RoleOf(v, store); role != "" && v.Trainable {
				counts[role] += v.Shape().Size()
			}
		}
	}, images)
	if err != nil {
		return nil, fmt.Errorf("counting parameters: %w", err)
	}
	return counts, nil
}

// Build builds a graph for inputs of the given shapes and discards it: nothing is compiled, executed or initialised. If
// build panics, Build returns the panic's value as an error.
func Build(backend compute.Backend, store *model.Store, build func(root *model.Scope, in []*graph.Node), inputs ...shapes.Shape) error {
	exec, err := model.NewExec(backend, store, func(root *model.Scope, in []*graph.Node) *graph.Node {
		defer PanicWithError("building the graph")
		build(root, in)
		panic(errBuilt)
	})
	if err != nil {
		return err
	}
	defer exec.Finalize()
	if _, err := exec.Compile(inputs...); !errors.Is(err, errBuilt) {
		return Cause(err)
	}
	return nil
}

// errBuilt ends the building of a graph that has served its purpose.
var errBuilt = errors.New("the graph is built")

// A Cost counts the floating-point operations for one image: two for each multiply-add of a convolution or a dense
// layer. Operations on single entries, such as normalisation and noise, do not count.
type Cost struct {
	// Forward is the cost of one sample in prediction.
	Forward float64
	// Training is the cost of a training step. The gradients of a product take twice as many operations as the product.
	Training float64
}

// CostOf returns the cost for images of channels x height x width pixels. A family that multiplies more than weights
// and inputs has a method EnergyMultiplyAdds, as dul.Density does. CostOf panics as Apply does.
//
// For CIFAR, in GFLOP for one image of a training step: ResNet-14 0.160, with density layers 0.333 (0.276 with
// dul.Detached); WRN-28-10 31.5, with density layers 64.4 (53.4).
func (r ResNet) CostOf(channels, height, width, classes int) Cost {
	r = r.withDefaults()
	energies, hasEnergies := r.Layers.(interface {
		EnergyMultiplyAdds(channels int, w conv.Window, height, width int) (forward, training int)
	})
	forward, training := 0, 0
	layer := func(in int, c conv.Spec) {
		high, wide := c.Window.Out(height, width)
		n := c.Filters * in * c.Window.Pixels() * high * wide
		forward, training = forward+n, training+3*n
		if hasEnergies {
			f, t := energies.EnergyMultiplyAdds(in, c.Window, height, width)
			forward, training = forward+f, training+t
		}
	}
	layer(channels, r.stem())
	in := r.Stem
	for _, b := range r.blocks() {
		if !b.keepsShape() {
			layer(b.in, b.shortcut())
		}
		layer(b.in, b.first())
		height, width = b.first().Window.Out(height, width)
		layer(b.filters, b.second())
		in = b.filters
	}
	height, width = 1, 1
	layer(in, conv.Spec{Filters: classes, Window: conv.Same(1, 1)}) // a dense layer
	return Cost{Forward: 2 * float64(forward), Training: 2 * float64(training)}
}
