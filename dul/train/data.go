package train

import (
	"fmt"
	"math/rand/v2"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
)

// A Set is one replica's data, row-major: X is N*D, Y is N. Standardise it first.
type Set struct {
	X, Y []float64
	D    int
}

// N is the number of examples.
func (s Set) N() int { return len(s.Y) }

func (s Set) validate() error {
	if s.D < 1 || s.N() == 0 || len(s.X) != s.N()*s.D {
		return fmt.Errorf("training set has %d features, %d inputs and %d targets; want inputs = features * targets, none of them 0", s.D, len(s.X), s.N())
	}
	return nil
}

// shuffleStream keeps the order of examples apart from other uses of a seed.
const shuffleStream = 0x73687566666c65

// batches deals the sets' examples out in seeded random order. Every replica
// shuffles with its own generator, so its order does not depend on the others.
type batches struct {
	sets       []Set
	replicated bool
	dtype      dtypes.DType
	size       int
	rngs       []*rand.Rand
	orders     [][]int
	steps      int // in an epoch
	buffers    map[int]*batch
}

// A batch is the input of one step; its tensors are reused.
type batch struct{ x, y, weights *tensors.Tensor }

func newBatches(sets []Set, seeds []uint64, replicated bool, dtype dtypes.DType, size int) (*batches, error) {
	if len(sets) == 0 || len(sets) != len(seeds) {
		return nil, fmt.Errorf("%d training sets and %d seeds; want one seed for each set, and at least one", len(sets), len(seeds))
	}
	if size < 1 {
		return nil, fmt.Errorf("batch size is %d; it must be at least 1", size)
	}
	b := &batches{sets: sets, replicated: replicated, dtype: dtype, size: size, buffers: map[int]*batch{}}
	for r, set := range sets {
		if err := set.validate(); err != nil {
			return nil, fmt.Errorf("replica %d: %w", r, err)
		}
		if set.D != sets[0].D {
			return nil, fmt.Errorf("replica %d has %d features, replica 0 has %d; replicas share one graph, so train these apart", r, set.D, sets[0].D)
		}
		steps := (set.N() + size - 1) / size
		if r > 0 && steps != b.steps {
			return nil, fmt.Errorf("replica %d has %d examples, replica 0 has %d: with batches of %d their epochs have different lengths; train these apart", r, set.N(), sets[0].N(), size)
		}
		b.steps = steps
		b.rngs = append(b.rngs, rand.New(rand.NewPCG(seeds[r], shuffleStream)))
		order := make([]int, set.N())
		for i := range order {
			order[i] = i
		}
		b.orders = append(b.orders, order)
	}
	return b, nil
}

// shuffle starts a new epoch.
func (b *batches) shuffle() {
	for r, order := range b.orders {
		b.rngs[r].Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
}

// rows is the number of rows of the epoch's batch k: the largest of the
// replicas', whose shorter ones are padded with rows of weight zero.
func (b *batches) rows(k int) int {
	rows := 0
	for _, order := range b.orders {
		rows = max(rows, min(b.size, len(order)-k*b.size))
	}
	return rows
}

// next fills the tensors of the epoch's batch k.
func (b *batches) next(k int) (*batch, error) {
	rows := b.rows(k)
	buffer, found := b.buffers[rows]
	if !found {
		lead := []int{}
		if b.replicated {
			lead = append(lead, len(b.sets))
		}
		tensor := func(columns int) *tensors.Tensor {
			return tensors.FromShape(shapes.Make(b.dtype, append(append([]int{}, lead...), rows, columns)...))
		}
		buffer = &batch{tensor(b.sets[0].D), tensor(1), tensor(1)}
		b.buffers[rows] = buffer
	}
	fill := fillBatch[float32]
	if b.dtype == dtypes.Float64 {
		fill = fillBatch[float64]
	}
	return buffer, fill(b, buffer, k, rows)
}

func fillBatch[T float32 | float64](b *batches, buffer *batch, k, rows int) error {
	var x, y, w []T
	for _, part := range []struct {
		tensor *tensors.Tensor
		flat   *[]T
	}{{buffer.x, &x}, {buffer.y, &y}, {buffer.weights, &w}} {
		if err := tensors.MutableFlatData(part.tensor, func(flat []T) { *part.flat = flat }); err != nil {
			return fmt.Errorf("filling a batch: %w", err)
		}
	}
	d := b.sets[0].D
	for r, set := range b.sets {
		order := b.orders[r]
		first := k * b.size
		count := min(rows, len(order)-first)
		for i := range rows {
			row := r*rows + i
			if i >= count {
				w[row] = 0
				y[row] = 0
				clear(x[row*d : (row+1)*d])
				continue
			}
			source := order[first+i]
			for j, v := range set.X[source*d : (source+1)*d] {
				x[row*d+j] = T(v)
			}
			y[row] = T(set.Y[source])
			w[row] = T(1 / float64(count))
		}
	}
	return nil
}
