package methods

import (
	"cmp"
	"math"

	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/nets"
)

// A Process is a Gaussian process in the place of the last layer of a network, which needs to know the training
// data before it can be built, and a step after training.
type Process interface {
	// Hidden is the family of the layers below of a network of dense layers, which is a nets.ResidualMLP.
	Hidden() nets.Layers
	// Head makes the last layer for a task.
	Head(t Task) (Head, error)
	// CountsExamples says that replicas of one graph must have the same number of training examples.
	CountsExamples() bool
}

// An InducingProcess is a Process with inducing points, on whose number its memory depends.
type InducingProcess interface {
	Process
	// InducingPoints is their number for a task.
	InducingPoints(t Task) int
}

// A ScaledProcess is a Process whose kernel has a length scale that is not trained.
type ScaledProcess interface {
	Process
	// LengthScale is that for a task.
	LengthScale(t Task) float64
}

// A Head is the last layer of a network. For image networks, Layers is the family of all layers.
type Head struct {
	Layers nets.Layers
	// Finish is called after training, with the variances of the observation noise of each replica of a regression.
	Finish func(store *model.Store, noiseVariances ...float64) error
}

// Task is what a process is built for.
type Task struct {
	Kind     TaskKind
	Examples int // of the training set, of the smallest of several
	Inputs   int // of a network of dense layers
	Classes  int // of a classifier
	Inducing int // inducing points asked for; 0 means the process's own number
	// LengthScale is the one asked for; 0 means the process's own.
	LengthScale float64
	Seeds       []uint64
	// Features are those of the untrained network at training inputs, of each replica, row-major with width columns.
	Features func() (features [][]float64, width int, err error)
}

// TaskKind is the kind of a Task.
type TaskKind int

// The kinds of tasks.
const (
	Regression TaskKind = iota // UCI and the cubic
	FewInputs                  // a regression of a single input
	Points                     // classification of points in the plane
	Pictures                   // classification of images
)

// headScope is where a network has its last layer.
const headScope = "/model/network/output"

// The settings of SNGP and DUE, which the paper does not run on regression.
const (
	// sngpBound and dueBound are how far the layers below a Gaussian process may
	// stretch distances: the former is that of regression in the DUE authors' code,
	// the latter that of their classifiers, which trained better with a length
	// scale that is trained too.
	sngpBound, dueBound = 0.95, 3
	// randomFeatures and inducingPoints are the sizes of SNGP's and DUE's heads.
	randomFeatures, inducingPoints = 256, 50
	// fewInducingPoints is their number for one or two inputs, as in that code.
	fewInducingPoints = 20
)

// sngp is the Process of SNGP. The length scale of regressions and points is the root of the number of inputs:
// distances of standardised inputs grow with it, and the layers below stretch them little.
type sngp struct{}

func (sngp) Hidden() nets.Layers  { return baselines.SpectralNormed{Bound: sngpBound} }
func (sngp) CountsExamples() bool { return true }

// LengthScale implements ScaledProcess.
func (sngp) LengthScale(t Task) float64 {
	if t.Kind == Pictures {
		return cmp.Or(t.LengthScale, 1)
	}
	return math.Sqrt(float64(t.Inputs))
}

func (p sngp) Head(t Task) (Head, error) {
	var head baselines.SNGP
	switch t.Kind {
	case Regression, FewInputs:
		head = baselines.RegressionSNGP(t.Examples, randomFeatures)
	case Points:
		head = baselines.SNGP{Examples: t.Examples, RandomFeatures: randomFeatures, Plain: true, FeatureScale: math.Sqrt(float64(randomFeatures) / 2)}
	case Pictures:
		// Orthogonal frequencies, as in the code with which the paper ran it.
		head = baselines.SNGP{Examples: t.Examples, Orthogonal: true}
	}
	head.LengthScale = p.LengthScale(t)
	finish := func(store *model.Store, noise ...float64) error { return head.Posterior(store, headScope, noise...) }
	return Head{Layers: head, Finish: finish}, nil
}

// due is the Process of DUE, which starts from the features of the untrained network.
type due struct{}

func (due) Hidden() nets.Layers  { return baselines.SpectralNormed{Bound: dueBound} }
func (due) CountsExamples() bool { return false }

// InducingPoints implements InducingProcess.
func (due) InducingPoints(t Task) int {
	switch {
	case t.Kind == Regression:
		return inducingPoints
	case t.Kind != Pictures:
		return fewInducingPoints
	case t.Inducing > 0:
		return t.Inducing
	}
	return t.Classes
}

func (d due) Head(t Task) (Head, error) {
	points := d.InducingPoints(t)
	head := baselines.DUE{}
	if t.Kind == Regression || t.Kind == FewInputs {
		head.Likelihood = baselines.Gaussian
	}
	features, width, err := t.Features()
	if err != nil {
		return Head{}, err
	}
	for i, f := range features {
		count := points
		if t.Kind != Pictures {
			count = min(points, len(f)/width)
		}
		start, err := baselines.StartFrom(f, width, count, t.Seeds[i])
		if err != nil {
			return Head{}, err
		}
		head.Start = append(head.Start, start)
	}
	return Head{Layers: head, Finish: func(store *model.Store, _ ...float64) error { return head.Check(store, headScope) }}, nil
}
