package cifar

import (
	"errors"
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/datasets"
	"densityuncertainty/dul"
	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
)

// An EnergyFit is the course of fitting an energy model to features by maximum
// likelihood.
type EnergyFit struct {
	// LogLikelihood and Energy are the means over the features at each step, the
	// first of them before any training. The former is what was maximised, right
	// or wrong.
	LogLikelihood, Energy []float64
	// Features and Others are the energies of the single ones in the end.
	Features, Others []float64
}

// FitEnergy fits an energy model to features, [N*d] row-major, by steps of Adam on
// all of them at once, at a rate of 0.02; others, [M*d], have no part in it. The
// model sees a vector as an image of one pixel with d channels. The seed fixes
// where it starts.
func FitEnergy(backend compute.Backend, m dul.EnergyModel, d int, features, others []float64, steps int, seed uint64) (EnergyFit, error) {
	if d < 1 || len(features) == 0 || len(features)%d != 0 || len(others)%d != 0 || steps < 1 {
		return EnergyFit{}, fmt.Errorf("cifar: %d numbers to fit and %d others, %d of them a vector, in %d steps", len(features), len(others), d, steps)
	}
	n, all := len(features)/d, (len(features)+len(others))/d
	channels := make([]float64, 0, all*d) // [d, all]
	for j := range d {
		for _, rows := range [][]float64{features, others} {
			for i := j; i < len(rows); i += d {
				channels = append(channels, rows[i])
			}
		}
	}
	x := params.FromFloat64(shapes.Make(dtypes.Float32, d, all, 1, 1), channels)
	var f EnergyFit
	err := fit(backend, m, conv.Same(1, 1), x, n, steps, seed, func(x *graph.Node) *graph.Node { return x }, func(energies []float64, logLikelihood float64) {
		f.Features, f.Others = energies[:n], energies[n:]
		f.LogLikelihood, f.Energy = append(f.LogLikelihood, logLikelihood), append(f.Energy, stat.Mean(f.Features, nil))
	})
	return f, err
}

// EnergyMaps fits an energy model to standardised images in the same way, and returns the energies of a layer's windows,
// [N*H*W], before and after.
func EnergyMaps(backend compute.Backend, m dul.EnergyModel, window conv.Window, images *datasets.Images, steps int) (before, after []float64, err error) {
	scale := standardization(datasets.FitChannelStats(images, nil))
	pixels := tensors.FromFlatDataAndDimensions(images.Pixels, images.N, datasets.ImageChannels, datasets.ImageSide, datasets.ImageSide)
	err = fit(backend, m, window, pixels, images.N, steps, 0, func(x *graph.Node) *graph.Node { return scale.Images(x, dtypes.Float32) }, func(energies []float64, _ float64) {
		if after = energies; before == nil {
			before = energies
		}
	})
	return before, after, err
}

// fitRate is the learning rate of fit.
const fitRate = 0.02

// fit maximises the mean log-likelihood of the first n examples of x, once inputs has made them [channels, N, height, width].
// It shows the energies and this mean at each step, first before any training.
func fit(backend compute.Backend, m dul.EnergyModel, window conv.Window, x *tensors.Tensor, n, steps int, seed uint64,
	inputs func(x *graph.Node) *graph.Node, show func(energies []float64, logLikelihood float64)) error {
	store := model.NewStore()
	params.SetSeeds(store, seed)
	exec, err := model.NewExec(backend, store, func(root *model.Scope, x *graph.Node) []*graph.Node {
		defer nets.PanicWithError("Conv of the energy model %T", m)
		terms := m.Conv(root.In("energy"), inputs(x), window)
		logLikelihood := graph.ReduceAllMean(graph.SliceAxis(terms.LogLikelihood, 0, graph.AxisRange(0, n)))
		optimizer.Adam().LearningRate(fitRate).Done().UpdateGraph(root, x.Graph(), graph.Neg(logLikelihood))
		return []*graph.Node{terms.Energy, logLikelihood}
	})
	if err != nil {
		return fmt.Errorf("cifar: building the energy model: %w", err)
	}
	defer exec.Finalize()
	for step := range steps + 1 {
		out, err := exec.Call(x)
		if err != nil {
			return fmt.Errorf("cifar: step %d: %w", step, err)
		}
		energies, err := params.ToFloat64(out[0])
		logLikelihood, err1 := params.ToFloat64(out[1])
		if err := errors.Join(err, err1); err != nil {
			return fmt.Errorf("cifar: step %d: %w", step, err)
		}
		show(energies, logLikelihood[0])
	}
	return nil
}
