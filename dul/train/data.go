package train

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
)

// A Dataset is a training set of N inputs and their targets.
type Dataset struct {
	// Inputs are nets.Floats or nets.Pixels. Pixels are copied to the device once and stay there.
	Inputs nets.Inputs
	// Targets are real numbers, [N, T] row-major. Labels are classes from 0, [N]. Set only one of the two.
	Targets []float64
	Labels  []int
}

// Len is the number N of examples, 0 without Inputs.
func (d Dataset) Len() int {
	if d.Inputs == nil {
		return 0
	}
	return d.Inputs.Len()
}

// columns is the number T of targets of an example.
func (d Dataset) columns() int {
	if d.Labels != nil {
		return 1
	}
	return len(d.Targets) / d.Len()
}

// target is an example's target or label, [T].
func (d Dataset) target(i int) []float64 {
	if d.Labels != nil {
		return []float64{float64(d.Labels[i])}
	}
	t := d.columns()
	return d.Targets[i*t : (i+1)*t]
}

// Check returns an error unless a model with the likelihood l can be trained or measured on d, and on the others with
// it: inputs and answers must have matching shapes, be finite and be allowed by l. Targets and Labels may both be nil.
func (d Dataset) Check(l likelihood.Likelihood, others ...Dataset) error {
	var inputs []nets.Inputs
	for _, other := range others {
		inputs = append(inputs, other.Inputs)
	}
	if err := nets.CheckInputs(d.Inputs, inputs...); err != nil {
		return err
	}
	n := d.Len()
	if d.Labels != nil && (d.Targets != nil || len(d.Labels) != n) || len(d.Targets)%n != 0 || d.Targets != nil && len(d.Targets) == 0 {
		return fmt.Errorf("%d inputs, %d labels and %d targets; want a label or an equal number of targets for each input", n, len(d.Labels), len(d.Targets))
	}
	if at := params.NotFinite(d.Targets); at >= 0 {
		return fmt.Errorf("the target of example %d is %g; all must be finite, also as float32: leave such examples out, and standardise the others", at/d.columns(), d.Targets[at])
	}
	for _, other := range others {
		a, b := d.columns(), other.columns()
		if a > 0 && b > 0 && (a != b || (d.Labels == nil) != (other.Labels == nil)) {
			return fmt.Errorf("there are %d targets (labels: %t) for each example, where others have %d (labels: %t)", a, d.Labels != nil, b, other.Labels != nil)
		}
	}
	_, classes := l.(likelihood.Classification)
	if classes && d.Targets != nil {
		return fmt.Errorf("there are Targets where %T needs Labels", l)
	}
	switch l.(type) {
	case likelihood.Regression, likelihood.Distribution, likelihood.Quantiles:
		if d.Labels != nil {
			return fmt.Errorf("there are Labels where %T needs Targets", l)
		}
		if d.Targets != nil && d.columns() != 1 {
			return fmt.Errorf("%d inputs and %d targets; want one target for each input, as %T has", n, len(d.Targets), l)
		}
	}
	if c, is := l.(likelihood.TargetChecker); is {
		for i, y := range d.Targets {
			if err := c.CheckTarget(y); err != nil {
				return fmt.Errorf("the target of example %d: %w", i/d.columns(), err)
			}
		}
	}
	for i, label := range d.Labels {
		if classes && label >= l.Outputs() {
			return fmt.Errorf("example %d has label %d; the model has classes 0 to %d", i, label, l.Outputs()-1)
		}
		if label < 0 { // how many classes another likelihood has, it alone knows
			return fmt.Errorf("example %d has label %d; classes are numbered from 0", i, label)
		}
	}
	return nil
}

// shuffleStream keeps the order of examples apart from other uses of a seed.
const shuffleStream = 0x73687566666c65

// An order is the order of one replica's examples, anew in every epoch. It is a
// function of seed and epoch alone, so that a resumed run has the same batches.
type order struct {
	seed    uint64
	n       int
	own     Order // nil for the usual one
	rng     *rand.Rand
	indices []int
	epoch   int // of indices; -1 before the first
}

func newOrder(seed uint64, n int, own Order) *order {
	o := &order{seed: seed, n: n, own: own, epoch: -1, indices: make([]int, n), rng: rand.New(rand.NewPCG(seed, shuffleStream))}
	for i := range o.indices {
		o.indices[i] = i
	}
	return o
}

// of returns the order of an epoch, which is not before the one that was asked for last. Every
// epoch shuffles the order of the one before.
func (o *order) of(epoch int) ([]int, error) {
	if o.own != nil {
		if o.epoch != epoch {
			o.indices = o.own.Of(o.seed, epoch, o.n)
			if err := isPermutation(o.indices, o.n); err != nil {
				return nil, fmt.Errorf("the order of epoch %d: %w", epoch, err)
			}
			o.epoch = epoch
		}
		return o.indices, nil
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

// A source hands the examples of a run to its graphs.
type source interface {
	// resident are the tensors that all steps are given.
	resident() []*tensors.Tensor
	// next makes the further tensors of one step.
	next(b batch) ([]*tensors.Tensor, error)
	// step returns inputs, targets [..., rows, T] and each example's share of the
	// mean, [..., rows, 1], in the graph, from the nodes of all these tensors.
	step(tensors []*graph.Node, rows int) (x, targets, weights *graph.Node)
}

// A batch is the examples of one step.
type batch struct{ rows, epoch, step int } // step is its number in the epoch

// newSource returns the source of a run's data. What it makes of them must agree
// in type with the model.
func (r *run) newSource() source {
	if pixels, is := r.data[0].Inputs.(nets.Pixels); is {
		n := pixels.Len()
		s := &pixelSource{run: r, pixels: pixels, bytes: tensors.FromFlatDataAndDimensions(pixels.Bytes, n, pixels.Channels(), pixels.Height, pixels.Width)}
		var y []float64
		for i := range n {
			y = append(y, r.data[0].target(i)...)
		}
		s.answers = r.targets(y, n, r.data[0].columns())
		return s
	}
	return floatSource{r}
}

// targets is a tensor of targets of the model's type, or of labels as Int32.
func (r *run) targets(y []float64, dims ...int) *tensors.Tensor {
	if r.data[0].Labels == nil {
		return params.FromFloat64(shapes.Make(r.model.DType, dims...), y)
	}
	labels := make([]int32, len(y))
	for i, v := range y {
		labels[i] = int32(v)
	}
	return tensors.FromFlatDataAndDimensions(labels, dims...)
}

// A floatSource sends every step its examples.
type floatSource struct{ *run }

func (floatSource) resident() []*tensors.Tensor { return nil }

// next makes inputs [..., rows, shape...], targets [..., rows, T] and weights [..., rows, 1]. A replica with fewer examples is
// padded with zeros of weight zero.
func (s floatSource) next(b batch) ([]*tensors.Tensor, error) {
	kind := s.data[0]
	shape, columns := kind.Inputs.(nets.Floats).Shape, kind.columns()
	var x, y, weights []float64
	for r, set := range s.data {
		order, err := s.orders[r].of(b.epoch)
		if err != nil {
			return nil, err
		}
		inputs := set.Inputs.(nets.Floats)
		size, first := inputs.Size(), b.step*s.BatchSize
		rows := order[first:min(first+b.rows, len(order))]
		for _, i := range rows {
			x = append(x, inputs.Values[i*size:(i+1)*size]...)
			weights = append(weights, 1/float64(len(rows)))
			y = append(y, set.target(i)...)
		}
		missing := b.rows - len(rows)
		x = append(x, make([]float64, missing*size)...)
		y = append(y, make([]float64, missing*columns)...)
		weights = append(weights, make([]float64, missing)...)
	}
	dims := func(last ...int) []int { return slices.Concat(s.model.LeadingAxes(), []int{b.rows}, last) }
	tensor := func(values []float64, last ...int) *tensors.Tensor {
		return params.FromFloat64(shapes.Make(s.model.DType, dims(last...)...), values)
	}
	return []*tensors.Tensor{tensor(x, shape...), s.targets(y, dims(columns)...), tensor(weights, 1)}, nil
}

func (floatSource) step(tensors []*graph.Node, _ int) (x, targets, weights *graph.Node) {
	return tensors[0], tensors[1], tensors[2]
}

// A pixelSource keeps the training set where the backend computes: each step is
// sent the numbers of its images and their shifts, no pixels.
type pixelSource struct {
	*run
	pixels         nets.Pixels
	bytes, answers *tensors.Tensor // [N, channels, height, width] and [N, T]
}

func (s *pixelSource) resident() []*tensors.Tensor { return []*tensors.Tensor{s.bytes, s.answers} }

// The columns of a table of picks: what a step needs to know of each image.
const (
	pickImage   = iota // its number
	pickTop            // of the window
	pickLeft           // of the window
	pickFlip           // 1 or 0
	pickColumns        // their number
)

// next makes a table of picks, [rows, pickColumns].
func (s *pixelSource) next(b batch) ([]*tensors.Tensor, error) {
	order, err := s.orders[0].of(b.epoch)
	if err != nil {
		return nil, err
	}
	first := b.step * s.BatchSize
	images := order[first : first+b.rows]
	picks := make([]int32, 0, len(images)*pickColumns)
	for _, image := range images {
		top, left, flip := s.Padding, s.Padding, false
		if s.Augmentation != nil {
			top, left, flip = s.Augmentation.Draw(s.orders[0].seed, b.epoch, image)
		}
		if min(top, left) < 0 || max(top, left) > 2*s.Padding {
			return nil, fmt.Errorf("the augmentation cuts image %d at (%d, %d) in epoch %d; with a padding of %d both must be from 0 to %d", image, top, left, b.epoch, s.Padding, 2*s.Padding)
		}
		picks = append(picks, int32(image), int32(top), int32(left), 0)
		if flip {
			picks[len(picks)-1] = 1
		}
	}
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(picks, b.rows, pickColumns)}, nil
}

func (s *pixelSource) step(tensors []*graph.Node, rows int) (x, targets, weights *graph.Node) {
	bytes, all, table := tensors[0], tensors[1], tensors[2]
	x = s.pixels.Standardization.Images(pick(bytes, table, s.Padding), s.model.DType)
	targets = graph.Gather(all, graph.SliceAxis(table, 1, graph.AxisRange(pickImage, pickImage+1)))
	ones := graph.Ones(bytes.Graph(), shapes.Make(s.model.DType, rows, 1))
	return x, targets, graph.MulScalar(ones, 1/float64(rows))
}

// pick is the images of a batch, augmented, [batch, channels, height, width], of
// the bytes of all images, [N, channels, height, width], by a table of picks,
// [batch, pickColumns]. Images are padded with so many black pixels.
func pick(pixels, table *graph.Node, padding int) *graph.Node {
	batch := table.Shape().Dim(0)
	column := func(first, end int) *graph.Node { return graph.SliceAxis(table, 1, graph.AxisRange(first, end)) }
	x := graph.Gather(pixels, column(pickImage, pickImage+1))
	dims := x.Shape().Dimensions
	if padding > 0 {
		x = framed(framed(x, 2, padding), 3, padding)
		example := graph.Iota(table.Graph(), shapes.Make(table.DType(), batch, 1), 0)
		corner := graph.Concatenate([]*graph.Node{example, column(pickTop, pickFlip)}, 1)
		x = graph.GatherSlices(x, []int{0, 2, 3}, corner, []int{1, dims[2], dims[3]}, true)
		x = graph.Reshape(x, dims...)
	}
	flip := graph.GreaterThan(column(pickFlip, pickColumns), graph.ScalarZero(table.Graph(), table.DType()))
	flip = graph.BroadcastToDims(graph.Reshape(flip, batch, 1, 1, 1), dims...)
	return graph.Where(flip, graph.Reverse(x, 3), x)
}

// framed puts black pixels before and after an axis.
func framed(x *graph.Node, axis, width int) *graph.Node {
	shape := x.Shape().Clone()
	shape.Dimensions[axis] = width
	black := graph.Zeros(x.Graph(), shape)
	return graph.Concatenate([]*graph.Node{black, x, black}, axis)
}

// freed frees buffers of the device now: the garbage collector, which sees only
// the host's memory, might take its time.
func freed(list ...*tensors.Tensor) error {
	for _, t := range list {
		if err := t.FinalizeAll(); err != nil {
			return err
		}
	}
	return nil
}

// Remarks returns a sentence on each oddity of the named set, given the training examples d: examples that are training
// examples too, with the same answer (images are not compared), and labels that no training example has.
func (d Dataset) Remarks(name string, set Dataset) (all []string) {
	trained, n := map[uint64]bool{}, 0
	for _, hash := range d.hashes() {
		trained[hash] = true
	}
	for _, hash := range set.hashes() {
		if trained[hash] {
			n++
		}
	}
	if n > 0 {
		all = append(all, fmt.Sprintf("%d of the %d examples of the set %q are training examples too, with the same inputs and answer", n, set.Len(), name))
	}
	unseen := slices.Compact(slices.Sorted(slices.Values(set.Labels)))
	unseen = slices.DeleteFunc(unseen, func(label int) bool { return slices.Contains(d.Labels, label) })
	if len(unseen) > 0 && d.Labels != nil {
		all = append(all, fmt.Sprintf("the set %q has the labels %v, which no training example has", name, unseen))
	}
	return all
}

// hashSeed is that of hashes.
var hashSeed = maphash.MakeSeed()

// hashes has a hash of each example with its answer. Images, and examples without answers, have none.
func (d Dataset) hashes() (all []uint64) {
	x, is := d.Inputs.(nets.Floats)
	if !is || d.Targets == nil && d.Labels == nil {
		return nil
	}
	var row []byte
	for i := range d.Len() {
		row, _ = binary.Append(row[:0], binary.LittleEndian, slices.Concat(x.Values[i*x.Size():][:x.Size()], d.target(i)))
		all = append(all, maphash.Bytes(hashSeed, row))
	}
	return all
}
