package nets

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/params"
)

// HeadScope is the scope of the last layer of this package's networks.
const HeadScope = "/model/network/" + outputScope

const outputScope = "output"

// Headless is a network without its last layer, the dense layer at the scope "output" below its own: it returns the input of that
// layer, the features. Use it with Model.With for the features of a trained model. Apply panics if the network does not have
// one such layer, built by this package (see Positions).
type Headless struct{ Network }

// Apply implements Network.
func (h Headless) Apply(s *model.Scope, x *graph.Node, outputs int) *graph.Node {
	heads := headsOf(x.Graph())
	heads.built, heads.without = 0, model.JoinPath(s.Scope(), outputScope)
	y := h.Network.Apply(s, x, outputs)
	heads.check(h.Network)
	return y
}

// TakesReplicas implements the interface of the function TakesReplicas.
func (h Headless) TakesReplicas() bool { return TakesReplicas(h.Network) }

// lastLayer has the Head of a Process as its Dense.
type lastLayer struct{ Process }

// Dense implements Layers.
func (l lastLayer) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	y := l.Head(s, x, units)
	headsOf(x.Graph()).last = y
	return y
}

// heads describes the last layers of a graph.
type heads struct {
	built   int         // their number
	process bool        // whether the last one was a Gaussian process
	last    *graph.Node // its outputs
	without string      // the scope of the layer to leave out
}

const headsKey = "/heads"

func headsOf(g *graph.Graph) *heads { return params.OfGraph[heads](g, headsKey) }

// check panics unless a network has built one last layer.
func (h *heads) check(network any) {
	if b, is := network.(built); is {
		network = b.architecture
	}
	if h.built != 1 {
		panic(fmt.Errorf("the dense layer at the scope %s is needed, and the network %T has %d there; build its last layer by layers.Dense(s.In(\"output\"), ...), with layers of nets.Positions", HeadScope, network, h.built))
	}
}
