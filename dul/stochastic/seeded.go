package stochastic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
)

// Seeded draws noise on the host that depends on nothing but a seed, the replica, the
// number of the sample, the number of the example and the place in the network: not
// on what was drawn before, nor on how many examples or samples a graph computes at
// once. Noise that all examples share, such as that of weights, depends on the sample
// alone.
//
// Which entries of a draw belong to an example is seen from its shape in two graphs
// that differ in the number of examples only: the axis that differs is that of the
// examples, and the entries of an example must be next to each other along it. Call
// Trace and build such a graph before a graph with NewBuffers.
type Seeded struct {
	seed       uint64
	replicas   []uint64 // seeds
	replicated bool
	source     *rand.ChaCha8
	stream     *rand.Rand // of source

	traced         []shapes.Shape // the base draws of one application of the network
	tracedExamples int
	coherent       bool // whether all examples must share every draw

	copies          int // of the network in a graph
	sample, example int // the first ones of the next execution
}

// NewSeeded makes a source for one seed and the seeds of the replicas. replicated says
// whether activations have a replica axis; without one there is one replica.
func NewSeeded(seed uint64, replicas []uint64, replicated bool) *Seeded {
	source := rand.NewChaCha8([32]byte{})
	return &Seeded{seed: seed, replicas: replicas, replicated: replicated, source: source, stream: rand.New(source)}
}

// Trace returns the NoiseSource of a graph that applies the network once, to so many
// examples. It notes the shapes of the draws, and its noise is zero. The graphs of
// NewBuffers must have other numbers of examples.
func (s *Seeded) Trace(examples int) NoiseSource {
	s.traced, s.tracedExamples = nil, examples
	return tracer{s}
}

// A tracer notes the shapes of draws.
type tracer struct{ to *Seeded }

// Draw implements NoiseSource.
func (t tracer) Draw(_ *model.Scope, g *graph.Graph, d Distribution, shape shapes.Shape) *graph.Node {
	t.to.coherent = Coherent(g)
	return d.Sample(Base{func(law) *graph.Node {
		t.to.traced = append(t.to.traced, shape)
		return graph.Zeros(g, shape)
	}})
}

// NewBuffers returns the NoiseSource of graphs that apply the network so many times,
// each time for the next sample. Call At before each execution.
func (s *Seeded) NewBuffers(copies int) *NoiseBuffers {
	s.copies = copies
	return &NoiseBuffers{source: s, scope: noiseScope + "seeded"}
}

// At says which sample and which example are the first of the next execution.
func (s *Seeded) At(sample, example int) { s.sample, s.example = sample, example }

// replicaAxis implements noiseFiller.
func (s *Seeded) replicaAxis() int {
	if s.replicated {
		return len(s.replicas)
	}
	return 0
}

// fill implements noiseFiller.
func (s *Seeded) fill(b noiseBuffer) error {
	if len(s.traced) == 0 {
		return errors.New("no draws were traced; call Seeded.Trace and build a graph with it first")
	}
	value, err := b.variable.Value()
	if err != nil {
		return err
	}
	draw := seededDraw{s, b.law, b.number % len(s.traced), s.sample + b.number/len(s.traced)%s.copies, blocks{}}
	if draw.of, err = blocksOf(value.Shape(), s.traced[draw.number], s.tracedExamples); err != nil {
		return err
	}
	if s.coherent && !draw.of.shared {
		return fmt.Errorf("noise of shape %s, its own for each example, so that a draw is no function of the input: the layer has no coherent draws (see stochastic.Coherent)", value.Shape())
	}
	if value.DType() == dtypes.Float64 {
		return tensors.MutableFlatData(value, func(flat []float64) { fillSeeded(draw, flat) })
	}
	return tensors.MutableFlatData(value, func(flat []float32) { fillSeeded(draw, flat) })
}

// blocks say which entries of noise [..., rows, columns] belong to an example: each of
// the examples has height rows and width columns, below or beside those of the others.
type blocks struct {
	rows, columns, height, width int
	shared                       bool // all entries belong to all examples
}

// blocksOf compares the shape of a draw with that of the same draw for another number
// of examples.
func blocksOf(shape, other shapes.Shape, otherExamples int) (blocks, error) {
	fail := fmt.Errorf("noise of shape %s, and of shape %s for %d examples: what belongs to an example cannot be told, and neither can noise by seed", shape, other, otherExamples)
	n := shape.Rank()
	if other.Rank() != n || n < 2 {
		return blocks{}, fail
	}
	b := blocks{rows: shape.Dim(-2), columns: shape.Dim(-1), height: shape.Dim(-2), width: shape.Dim(-1)}
	switch sameRows, sameColumns := other.Dim(-2) == b.rows, other.Dim(-1) == b.columns; {
	case sameRows && sameColumns:
		b.shared = true
	case sameColumns && other.Dim(-2)%otherExamples == 0:
		b.height = other.Dim(-2) / otherExamples
	case sameRows && other.Dim(-1)%otherExamples == 0:
		b.width = other.Dim(-1) / otherExamples
	default:
		return blocks{}, fail
	}
	if b.rows%max(b.height, 1) != 0 || b.columns%max(b.width, 1) != 0 {
		return blocks{}, fail
	}
	return b, nil
}

// seededDraw is one draw of a sample.
type seededDraw struct {
	from           *Seeded
	law            law
	number, sample int
	of             blocks
}

// restart goes to the stream of a replica and an example; -1 stands for all examples.
func (d seededDraw) restart(replica, example int) *rand.Rand {
	var key [32]byte
	for i, word := range []uint64{d.from.seed, d.from.replicas[replica], uint64(d.number)<<32 | uint64(d.sample), uint64(example + 1)} {
		binary.LittleEndian.PutUint64(key[8*i:], word)
	}
	d.from.source.Seed(key)
	return d.from.stream
}

func fillSeeded[T float32 | float64](d seededDraw, flat []T) {
	size, b := len(flat)/len(d.from.replicas), d.of
	block := make([]T, b.height*b.width)
	for r := range d.from.replicas {
		part := flat[r*size : (r+1)*size]
		if b.shared {
			fillLaw(d.restart(r, -1), d.law, part)
			continue
		}
		for e := range len(part) / max(len(block), 1) {
			fillLaw(d.restart(r, d.from.example+e), d.law, block)
			// Either the heights or the widths of the blocks add up to the whole.
			first := e * b.height * b.columns
			if b.height == b.rows {
				first = e * b.width
			}
			for i := range b.height {
				copy(part[first+i*b.columns:], block[i*b.width:(i+1)*b.width])
			}
		}
	}
}
