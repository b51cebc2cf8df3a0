package ops

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// multiply is the plain product of each pair of replicas, without a gradient of
// its own: [..., n, k] x [..., k, m] -> [..., n, m].
func multiply(a, b *Node) *Node { return multiplyEach(b, a)[0] }

// multiplyEach is the product a b for each of several factors a.
//
// For small products the Go backend has a vector kernel that takes 32 columns
// at once and the rest one by one, ten times slower an entry; so the columns of
// b are filled up with zeros, and cut off again in the products.
func multiplyEach(b *Node, as ...*Node) []*Node {
	filled := withZeroColumns(b, columnPadding(as[0], b))
	products := make([]*Node, len(as))
	for i, a := range as {
		products[i] = firstColumns(multiplyAsIs(a, filled), b.Shape().Dim(-1))
	}
	return products
}

// multiplyTransposed is the plain product a b^T: [..., n, k] x [..., m, k] -> [..., n, m].
// The backend's large kernel transposes b while it reads it; the small one is
// slow at that.
func multiplyTransposed(a, b *Node) *Node {
	if multiplications(a, b.Shape().Dim(-2)) >= largeProduct {
		return dot(a, b, -1)
	}
	return multiply(a, transpose(b))
}

// multiplyAsIs is the product in the order of axes in which the Go backend
// multiplies matrices as they lie in memory.
func multiplyAsIs(a, b *Node) *Node { return dot(a, b, -2) }

// dot is the product over the last axis of a and the given axis of b.
func dot(a, b *Node, axis int) *Node {
	replicaAxes := make([]int, a.Rank()-2)
	for i := range replicaAxes {
		replicaAxes[i] = i
	}
	return withRegistersReleased(DotGeneral(a, []int{a.Rank() - 1}, replicaAxes, b, []int{b.Rank() + axis}, replicaAxes))
}

// withRegistersReleased is the same product, after which scalar operations run
// at full speed.
//
// The vector kernels of the Go backend leave the upper halves of the vector
// registers in use. Every scalar floating-point operation that follows on the
// thread then waits for the one before it: a square root takes three times as
// long, an exponential up to fifty times, depending on the processor. Go's own
// copy of a block of memory (of 256 to 2048 bytes on all processors) ends by
// releasing the registers, and a scheduling barrier on a constant is such a
// copy, carried out between the product and whatever uses it.
func withRegistersReleased(product *Node) *Node {
	if !OnGo(product) || product.Shape().Dim(-1) <= scalarColumns {
		return product
	}
	block := Const(product.Graph(), make([]float32, 128))
	return SchedulingBarrier(product, SchedulingBarrier(block, product))
}

// GoMLX has no derivative of a scheduling barrier: it is its first input.
func init() {
	VJPRegistration[NodeTypeSchedulingBarrier] = func(barrier *Node, dy []*Node, _ shapes.Shape) []*Node {
		gradients := make([]*Node, len(barrier.Inputs()))
		gradients[0] = dy[0]
		return gradients
	}
}

// OnGo says whether x is computed by the pure Go backend. Compilers fuse what is
// written plainly; the Go backend executes operation by operation, and has some
// that are several times faster than others with the same result.
func OnGo(x *Node) bool { return IsGo(x.Graph().Backend()) }

// IsGo says whether a backend is the pure Go backend.
func IsGo(backend compute.Backend) bool { return backend.String() == "go" }

// What the kernels of the Go backend do, and from where on a trick pays.
const (
	vectorColumns = 32      // that a vector kernel takes at once
	scalarColumns = 16      // with no more of them, the backend multiplies without vectors
	largeProduct  = 1 << 22 // multiplications from which on the large kernel is used, which needs no help
	worthPadding  = 1 << 14 // multiplications in one replica; below, padding costs more than it saves
	worthCutting  = 8       // terms in each sum; below, cutting the product to size costs more than padding saves
)

// columnPadding is the number of columns of zeros to fill up b with for the product a b.
func columnPadding(a, b *Node) int {
	terms, columns := a.Shape().Dim(-1), b.Shape().Dim(-1)
	inReplica := a.Shape().Dim(-2) * terms * columns
	if !OnGo(a) || columns < vectorColumns/4 || terms < worthCutting ||
		inReplica < worthPadding || multiplications(a, columns) >= largeProduct {
		return 0
	}
	return (vectorColumns - columns%vectorColumns) % vectorColumns
}

// multiplications is how many a product of a with a matrix of the given number
// of columns takes, in all replicas.
func multiplications(a *Node, columns int) int { return a.Shape().Size() * columns }

// withZeroColumns appends columns of zeros.
func withZeroColumns(x *Node, count int) *Node {
	if count == 0 {
		return x
	}
	return Concatenate([]*Node{x, MulScalar(onesLike(x, x.Shape().Dim(-2), count), 0)}, -1)
}

// firstColumns is the first count columns.
func firstColumns(x *Node, count int) *Node {
	if count == x.Shape().Dim(-1) {
		return x
	}
	return SliceAxis(x, -1, AxisRange(0, count))
}

// source is the value that a chain of identities hands on: what StopGradient
// and WithGradient make of x. Layers transpose their input for several
// gradients; of the same source, the backend transposes it once.
func source(x *Node) *Node {
	for x.Type() == NodeTypeIdentity {
		x = x.Inputs()[0]
	}
	return x
}

// transpose exchanges the last two axes; for a single row or column that is
// only another name for the same memory.
func transpose(x *Node) *Node {
	n, m := x.Shape().Dim(-2), x.Shape().Dim(-1)
	if n == 1 || m == 1 {
		return Reshape(x, slices.Concat(leadOf(x), []int{m, n})...)
	}
	return Transpose(x, -2, -1)
}

// leadOf returns the replica axes.
func leadOf(x *Node) []int { return x.Shape().Dimensions[:x.Rank()-2] }
