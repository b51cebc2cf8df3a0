package params

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

// Facts are known to all layers of a graph. Some come from the model, its training and its predictions: packages nets, train and predict
// set them before the first layer. Others come from the layers. Most layers need none; baselines.SNGP and DUE do.
type Facts struct {
	// Replicas are the first axes of the graph's activations and parameters: [replicas] in models of nets.NewReplicas, else none.
	Replicas []int
	// Coherent asks for coherent draws: all examples share the noise of a draw, so that it is one function of the input. A layer must
	// then draw one noise for all examples, without changing the distribution of any single output. stochastic.Seeded refuses other
	// draws.
	Coherent bool
	// BFloat16 lets the convolutions of the graph round their inputs and results to bfloat16 (8 bits of precision), also in gradients
	// and energies, and add up in the backend's precision. Parameters, activations and everything else keep their type.
	// conv.InFullPrecision is not affected, which the energy of energy.Rank1Mixture uses. On the pure Go backend it has no effect.
	BFloat16 bool
	// Noise is set by stochastic.Draw: a layer has drawn noise so far. Without noise, executions differ only if variables change.
	Noise bool
	// Images says whether the model's inputs are images, and Inputs is how many numbers one input has; 0 if unknown.
	Images bool
	Inputs int
	// Classes says whether the likelihood is a likelihood.Classification. Otherwise it is likelihood.Gaussian.
	Classes bool
	// Examples is the number of training examples; 0 outside a training, or if replicas have different numbers.
	Examples int
	// Features returns, for each replica, what the last layer of the untrained network gets for training inputs, row-major with
	// width columns: for all inputs, or the first 1000 images. It is nil outside a training.
	Features func(width int) ([][]float64, error)
	// NeedsHead is set by layers that must be followed by a nets.Process.Head.
	NeedsHead bool
	// Finish is set by a layer. A training calls it at its end; in regression it gets the noise variance of each replica.
	Finish func(noiseVariances ...float64) error
	// OnlyFinished is set by a layer that predicts nothing before Finish.
	OnlyFinished bool
}

// TrainingSums is the scope, below a layer's, of sums over the examples of one training. train.Trainer sets the sums to 0 when a
// training starts.
const TrainingSums = "training_sums"

// Covariance is the name of a variable that a layer makes in Facts.Finish. train.Trainer deletes it when a training starts.
const Covariance = "covariance_root"

const factsKey = "/facts"

// FactsOf returns the facts of the graph g, to read and to set.
func FactsOf(g *graph.Graph) *Facts { return OfGraph[Facts](g, factsKey) }

// OfGraph returns what the graph g keeps under a key, to read and to set: a zero T at first.
func OfGraph[T any](g *graph.Graph, key string) *T {
	if value, found := model.GetGraphParam(g, key); found {
		return value.(*T)
	}
	value := new(T)
	model.SetGraphParam(g, key, value)
	return value
}
