package train

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
)

// A Dataset is a training set of N inputs and their targets.
type Dataset struct {
	// Inputs are nets.Floats, or nets.Pixels, which stay on the device.
	Inputs nets.Inputs
	// Targets are real targets, T for each example one after the other; Labels are
	// classes from 0. There is one of both.
	Targets []float64
	Labels  []int
}

// Len is the number N of examples.
func (d Dataset) Len() int { return d.Inputs.Len() }

// columns is the number T of targets of an example.
func (d Dataset) columns() int {
	if d.Labels != nil {
		return 1
	}
	return len(d.Targets) / d.Len()
}

// target is that of an example, or its label, [T].
func (d Dataset) target(i int) []float64 {
	if d.Labels != nil {
		return []float64{float64(d.Labels[i])}
	}
	t := d.columns()
	return d.Targets[i*t : (i+1)*t]
}

func (d Dataset) check(l likelihood.Likelihood) error {
	if d.Inputs == nil {
		return errors.New("training set: there are no Inputs")
	}
	if err := d.Inputs.Check(); err != nil {
		return fmt.Errorf("training set: %w", err)
	}
	if d.Labels != nil && len(d.Labels) != d.Len() || d.Labels == nil && (len(d.Targets) == 0 || len(d.Targets)%d.Len() != 0) || d.Labels != nil && d.Targets != nil {
		return fmt.Errorf("training set: %d inputs, %d labels and %d targets; want a label or an equal number of targets for each input", d.Len(), len(d.Labels), len(d.Targets))
	}
	categorical, is := l.(likelihood.Categorical)
	if is && d.Labels == nil {
		return errors.New("training set: there are Targets where likelihood.Categorical needs Labels")
	}
	for i, label := range d.Labels {
		if label < 0 || is && label >= categorical.Classes {
			return fmt.Errorf("training set: example %d has label %d; the model has classes 0 to %d", i, label, categorical.Classes-1)
		}
	}
	return nil
}

// sameKind says why two sets cannot be those of replicas, which share one graph.
func sameKind(a, b Dataset) error {
	x, isFloats := a.Inputs.(nets.Floats)
	y, alsoFloats := b.Inputs.(nets.Floats)
	switch {
	case !isFloats || !alsoFloats:
		return errors.New("images cannot be the inputs of replicas; train one model after the other")
	case fmt.Sprint(x.Shape) != fmt.Sprint(y.Shape), a.columns() != b.columns(), (a.Labels == nil) != (b.Labels == nil):
		return fmt.Errorf("has inputs of shape %v with %d targets, replica 0 inputs of shape %v with %d; replicas share one graph, so train these apart", y.Shape, b.columns(), x.Shape, a.columns())
	}
	return nil
}

// shuffleStream keeps the order of examples apart from other uses of a seed.
const shuffleStream = 0x73687566666c65

// An order is the order of one replica's examples, anew in every epoch. It is a
// function of seed and epoch alone, so that a run that was stopped goes on with
// the same batches.
type order struct {
	seed    uint64
	n       int
	own     func(seed uint64, epoch, n int) []int // nil for the usual one
	rng     *rand.Rand
	indices []int
	epoch   int // of indices; -1 before the first
}

func newOrder(seed uint64, n int, own func(seed uint64, epoch, n int) []int) *order {
	o := &order{seed: seed, n: n, own: own}
	o.restart()
	return o
}

func (o *order) restart() {
	o.epoch, o.indices, o.rng = -1, make([]int, o.n), rand.New(rand.NewPCG(o.seed, shuffleStream))
	for i := range o.indices {
		o.indices[i] = i
	}
}

// of returns the order of an epoch. Every epoch shuffles the order of the one
// before; going back begins again.
func (o *order) of(epoch int) ([]int, error) {
	if o.own != nil {
		if o.epoch != epoch {
			o.indices = o.own(o.seed, epoch, o.n)
			if err := isPermutation(o.indices, o.n); err != nil {
				return nil, fmt.Errorf("the order of epoch %d: %w", epoch, err)
			}
			o.epoch = epoch
		}
		return o.indices, nil
	}
	if epoch < o.epoch {
		o.restart()
	}
	for ; o.epoch < epoch; o.epoch++ {
		o.rng.Shuffle(o.n, func(i, j int) { o.indices[i], o.indices[j] = o.indices[j], o.indices[i] })
	}
	return o.indices, nil
}

// isPermutation says why order is not one of 0 to n-1.
func isPermutation(order []int, n int) error {
	if len(order) != n {
		return fmt.Errorf("has %d examples, want %d", len(order), n)
	}
	seen := make([]bool, n)
	for _, i := range order {
		if i < 0 || i >= n || seen[i] {
			return fmt.Errorf("has example %d twice, or there is no such example among %d", i, n)
		}
		seen[i] = true
	}
	return nil
}
