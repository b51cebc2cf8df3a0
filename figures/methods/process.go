package methods

import (
	"fmt"
	"math"

	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/spec"
)

// SNGPProcess is the spectral-normalised neural Gaussian process (Liu et al. 2020): random features with a Laplace posterior,
// above layers whose spectral norm is bounded by 0.95, and with images by 3, as in the regression and in the images of the DUE
// authors' code.
type SNGPProcess struct {
	// LengthScale is the length scale of the kernel. 0 means the root of the number of inputs: distances of
	// standardised inputs grow with it, and the layers below stretch them little.
	LengthScale float64
}

// randomFeatures is the size of SNGP's head for inputs that are no images.
const randomFeatures = 256

// Identity implements spec.Identifier.
func (p SNGPProcess) Identity() spec.Identity {
	type fields SNGPProcess
	return spec.Identity{Type: "experiment.SNGP", Value: fields(p)}
}

// Examples implements experiment.Process.
func (SNGPProcess) Examples() int { return 1 }

// Hidden implements experiment.Process.
func (SNGPProcess) Hidden() nets.Layers { return baselines.SpectralNormed{Bound: 0.95} }

// Draws implements experiment.Process: the mean over the posterior has a closed form, approximately.
func (SNGPProcess) Draws() bool { return false }

// Head implements experiment.Process.
func (p SNGPProcess) Head(t experiment.HeadTask) (experiment.Head, error) {
	head := baselines.SNGP{Examples: t.Train.Len(), Orthogonal: true} // of images, as in the code with which the paper ran it
	if _, images := t.Train.Inputs.(nets.Pixels); !images {           // with a prior variance of 1
		head = baselines.SNGP{Examples: t.Train.Len(), RandomFeatures: randomFeatures, Plain: true, FeatureScale: math.Sqrt(randomFeatures / 2)}
		if _, is := t.Likelihood.(likelihood.Gaussian); is {
			head.Likelihood = baselines.Gaussian
		}
	}
	if head.LengthScale = p.LengthScale; p.LengthScale == 0 {
		head.LengthScale = math.Sqrt(float64(t.Train.Inputs.(interface{ Size() int }).Size()))
	}
	finish := func(store *model.Store, noise ...float64) error {
		return head.Posterior(store, nets.HeadScope, noise...)
	}
	return experiment.Head{Layers: head, Finish: finish, KeepOutputs: true}, nil
}

// DUEProcess is deterministic uncertainty estimation (van Amersfoort et al. 2021): a variational Gaussian process with inducing
// points, above layers whose spectral norm is bounded by 3. The points start from the features of the untrained
// network.
type DUEProcess struct {
	Inducing int // the number of inducing points
}

// Check says which settings cannot be.
func (p DUEProcess) Check() error {
	if p.Inducing < 1 {
		return fmt.Errorf("methods.DUEProcess has %d inducing points; at least 1 is needed", p.Inducing)
	}
	return nil
}

// Identity implements spec.Identifier.
func (p DUEProcess) Identity() spec.Identity {
	type fields DUEProcess
	return spec.Identity{Type: "experiment.DUE", Value: fields(p)}
}

// Examples implements experiment.Process: the points start among the training examples.
func (p DUEProcess) Examples() int { return p.Inducing }

// Hidden implements experiment.Process.
func (DUEProcess) Hidden() nets.Layers { return baselines.SpectralNormed{Bound: 3} }

// Draws implements experiment.Process.
func (DUEProcess) Draws() bool { return true }

// Head implements experiment.Process.
func (p DUEProcess) Head(t experiment.HeadTask) (experiment.Head, error) {
	if err := p.Check(); err != nil {
		return experiment.Head{}, err
	}
	var head baselines.DUE
	if _, is := t.Likelihood.(likelihood.Gaussian); is {
		head.Likelihood = baselines.Gaussian
	}
	features, width, err := t.Features()
	if err != nil {
		return experiment.Head{}, err
	}
	for i, f := range features {
		start, err := baselines.StartFrom(f, width, p.Inducing, t.Seeds[i])
		if err != nil {
			return experiment.Head{}, err
		}
		head.Start = append(head.Start, start)
	}
	return experiment.Head{Layers: head, Finish: func(store *model.Store, _ ...float64) error { return head.Check(store, nets.HeadScope) }}, nil
}
