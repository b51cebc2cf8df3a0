package stochastic

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync/atomic"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/params"
)

// Seeded draws noise on the host that depends only on a seed, the replica, the numbers of sample and example, and the
// place in the network. It does not depend on earlier draws, or on how many examples or samples a graph computes at
// once. Noise that all examples share, such as noise of weights, does not depend on the example.
//
// To find the axis of examples, Seeded compares the shapes of each draw in two graphs with different numbers of
// examples. Build a graph with Trace before a graph with NewBuffers.
type Seeded struct {
	seed       uint64
	replicas   []uint64 // seeds
	replicated bool
	source     *rand.ChaCha8
	stream     *rand.Rand // of source

	traced         []shapes.Shape // the base draws of one application of the network
	tracedExamples int
	coherent       bool // whether all examples must share every draw

	copies          int  // of the network in a graph
	alike           bool // whether all examples have the noise of the first
	rows            int  // of a sample, if the examples of a graph are those of several samples; else 0
	sample, example int  // the first ones of the next execution
}

// NewSeeded returns a source for one seed and the seeds of the replicas. replicated says whether activations have a
// replica axis; without one, replicas has one seed.
func NewSeeded(seed uint64, replicas []uint64, replicated bool) *Seeded {
	source := rand.NewChaCha8([32]byte{})
	return &Seeded{seed: seed, replicas: replicas, replicated: replicated, source: source, stream: rand.New(source)}
}

// Trace returns the NoiseSource of a graph that applies the network once, to so many examples. The source records the
// shapes of the draws; its noise is zero. Graphs of NewBuffers must have another number of examples.
func (s *Seeded) Trace(examples int) NoiseSource {
	s.traced, s.tracedExamples = nil, examples
	return tracer{s}
}

// A tracer notes the shapes of draws.
type tracer struct{ to *Seeded }

// Draw implements NoiseSource.
func (t tracer) Draw(_ *model.Scope, g *graph.Graph, d Distribution, shape shapes.Shape) *graph.Node {
	t.to.coherent = params.FactsOf(g).Coherent
	return d.Sample(Base{func(baseDistribution) *graph.Node {
		t.to.traced = append(t.to.traced, shape)
		return graph.Zeros(g, shape)
	}})
}

// NewBuffers returns the NoiseSource of a graph that applies the network copies times, for as many consecutive samples.
// Call StartAt before each execution.
func (s *Seeded) NewBuffers(copies int) *NoiseBuffers {
	s.copies = copies
	return &NoiseBuffers{source: s, scope: fmt.Sprintf("%sseeded_%d", noiseScope, seededGraphs.Add(1))}
}

// RowsPerSample says that a graph's batch has so many examples for each of several samples: all examples of the first sample,
// then those of the next.
func (s *Seeded) RowsPerSample(examples int) { s.rows = examples }

// SameNoise gives all examples the noise of example 0.
func (s *Seeded) SameNoise() { s.alike = true }

// PerExample reports whether the network has noise and draws it for each example. other must have traced the same network
// with another number of examples.
func (s *Seeded) PerExample(other *Seeded) bool {
	for i, shape := range s.traced {
		if _, shared, err := example(shape, other.traced[i], other.tracedExamples); err != nil || shared {
			return false
		}
	}
	return len(s.traced) > 0
}

// seededGraphs counts the graphs of Seeded in this process, whose buffers may be in one store.
var seededGraphs atomic.Uint64

// StartAt sets the numbers of the first sample and the first example of the next execution.
func (s *Seeded) StartAt(sample, example int) { s.sample, s.example = sample, example }

// replicaAxis implements noiseFiller.
func (s *Seeded) replicaAxis() int {
	if s.replicated {
		return len(s.replicas)
	}
	return 0
}

// parts implements noiseFiller.
func (s *Seeded) parts(b noiseBuffer, of shapes.Shape) (iter.Seq2[*rand.Rand, part], error) {
	number, sample := b.number%len(s.traced), s.sample+b.number/len(s.traced)%s.copies
	one, shared, err := example(of, s.traced[number], s.tracedExamples)
	if err != nil {
		return nil, err
	}
	if s.coherent && !shared {
		return nil, fmt.Errorf("noise of shape %s, its own for each example, so that a draw is no function of the input: the layer has no coherent draws (see params.Facts.Coherent)", of)
	}
	size := of.Size() / len(s.replicas)
	return func(yield func(*rand.Rand, part) bool) {
		for r := range s.replicas {
			if shared {
				if !yield(s.restart(r, number, sample, -1), part{r * size, 1, size, size}) {
					return
				}
				continue
			}
			for e := range size / max(one.rows*one.columns, 1) {
				p := one
				p.first = r*size + e*one.first
				k, of := sample, e
				if s.rows > 0 {
					k, of = sample+e/s.rows, e%s.rows
				}
				if of += s.example; s.alike {
					of = 0
				}
				if !yield(s.restart(r, number, k, of), p) {
					return
				}
			}
		}
	}, nil
}

// restart goes to the stream of a replica, draw, sample and example; the example -1
// stands for all.
func (s *Seeded) restart(replica, number, sample, example int) *rand.Rand {
	var key [32]byte
	for i, word := range []uint64{s.seed, s.replicas[replica], uint64(number)<<32 | uint64(sample), uint64(example + 1)} {
		binary.LittleEndian.PutUint64(key[8*i:], word)
	}
	s.source.Seed(key)
	return s.stream
}

// example says which entries of noise [..., rows, columns] belong to an example: the
// part of example number 1 or, if shared, all entries to all examples. Examples lie
// below or beside each other. It is seen by comparison with the shape of the same
// draw for another number of examples.
func example(shape, other shapes.Shape, otherExamples int) (one part, shared bool, err error) {
	fail := fmt.Errorf("noise of shape %s, and of shape %s for %d examples: what belongs to an example cannot be told, and neither can noise by seed", shape, other, otherExamples)
	if other.Rank() != shape.Rank() || shape.Rank() < 2 {
		return one, false, fail
	}
	rows, columns, otherRows, otherColumns := shape.Dim(-2), shape.Dim(-1), other.Dim(-2), other.Dim(-1)
	switch {
	case otherRows == rows && otherColumns == columns:
		return one, true, nil
	case otherColumns == columns && otherRows%otherExamples == 0:
		high := otherRows / otherExamples
		one = part{high * columns, high, columns, columns}
	case otherRows == rows && otherColumns%otherExamples == 0:
		wide := otherColumns / otherExamples
		one = part{wide, rows, wide, columns}
	default:
		return one, false, fail
	}
	if rows%max(one.rows, 1) != 0 || columns%max(one.columns, 1) != 0 {
		return one, false, fail
	}
	return one, false, nil
}
