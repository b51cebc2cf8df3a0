package ops

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"golang.org/x/sys/cpu"
)

// multiply is the plain product of each pair of replicas, without a gradient of
// its own: [..., n, k] x [..., k, m] -> [..., n, m].
func multiply(a, b *Node) *Node { return multiplyEach(b, a)[0] }

// multiplyEach is the product a b for each of several factors a.
//
// For small products the Go backend has a vector kernel that takes so many columns
// at once and the rest one by one, ten to a hundred times slower an entry; so the
// columns of b are filled up with zeros, and cut off again in the products.
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
	if !isSmall(a, b.Shape().Dim(-2)) {
		return dot(a, b, -1)
	}
	return multiply(a, transpose(b))
}

// multiplyAsIs is the product in the order of axes in which the Go backend
// multiplies matrices as they lie in memory. A single column lies there as a row
// does, and some kernels are fast with rows alone.
func multiplyAsIs(a, b *Node) *Node {
	if OnGo(a) && processor.byRows && b.Shape().Dim(-1) == 1 {
		return dot(a, transpose(b), -1)
	}
	return dot(a, b, -2)
}

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
	if !OnGo(product) || product.Shape().Dim(-1) <= processor.scalarColumns {
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

// ScaleRows multiplies each row by an entry, [n, m] * [n, 1], on the Go backend,
// without a gradient of its own. That broadcasts several times slower than it
// multiplies matrices: so, where the first term of a sum costs no more than others,
// it is a batch of products of a 1 x 1 matrix and a row.
func ScaleRows(x, column *Node) *Node {
	if processor.slowFirstTerm {
		return Mul(x, column)
	}
	n, m := x.Shape().Dim(0), x.Shape().Dim(1)
	return Reshape(multiplyAsIs(Reshape(column, n, 1, 1), Reshape(x, n, 1, m)), n, m)
}

// OnGo says whether x is computed by the pure Go backend. Compilers fuse what is
// written plainly; the Go backend executes operation by operation, and has some
// that are several times faster than others with the same result.
func OnGo(x *Node) bool { return IsGo(x.Graph().Backend()) }

// IsGo says whether a backend is the pure Go backend.
func IsGo(backend compute.Backend) bool { return backend.String() == "go" }

// largeProduct is the number of multiplications from which on the Go backend uses
// its large kernel, which needs no help.
const largeProduct = 1 << 22

// A kernel is what the Go backend's vector kernel for small products does on a
// kind of processor, and from where on a trick pays.
type kernel struct {
	vectorColumns int  // that it takes at once
	scalarColumns int  // with no more of them, the backend multiplies without vectors
	byRows        bool // the transpose of a single column is multiplied with vectors, the column itself is not
	slowFirstTerm bool // the first term of 8 sums takes as long as twenty others
	eachReplica   bool // a product is small if it is in each replica, not in all together

	fewestColumns int // that are filled up to vectorColumns
	worthPadding  int // multiplications in one replica; below, padding costs more than it saves
	worthCutting  int // terms in each sum; below, cutting the product to size costs more than padding saves
}

var (
	avx512 = kernel{vectorColumns: 32, scalarColumns: 16, fewestColumns: 8, worthPadding: 1 << 14, worthCutting: 8}
	// Of what AVX2 leaves over, an entry takes 30 to 120 ns: each is a scalar operation between vector
	// operations, and waits for them.
	avx2 = kernel{vectorColumns: 8, byRows: true, slowFirstTerm: true, eachReplica: true, fewestColumns: 2, worthPadding: 1 << 6, worthCutting: 1}
)

// processor is the kernel of this one. GoMLX asks for the same five extensions; with neither these nor AVX2 it has no
// vector kernels, and the tricks cost little.
var processor = func() kernel {
	x86 := cpu.X86
	if x86.HasAVX2 && !(x86.HasAVX512F && x86.HasAVX512CD && x86.HasAVX512BW && x86.HasAVX512DQ && x86.HasAVX512VL) {
		return avx2
	}
	return avx512
}()

// columnPadding is the number of columns of zeros to fill up b with for the product a b.
func columnPadding(a, b *Node) int {
	k, columns := processor, b.Shape().Dim(-1)
	if !OnGo(a) || columns < k.fewestColumns || a.Shape().Dim(-1) < k.worthCutting ||
		inReplica(a, columns) < k.worthPadding || !isSmall(a, columns) {
		return 0
	}
	return (k.vectorColumns - columns%k.vectorColumns) % k.vectorColumns
}

// inReplica is the number of multiplications in one replica of the product of a
// with a matrix of the given number of columns.
func inReplica(a *Node, columns int) int { return a.Shape().Dim(-2) * a.Shape().Dim(-1) * columns }

// isSmall says whether the Go backend takes its kernel for small products for this one.
func isSmall(a *Node, columns int) bool {
	if processor.eachReplica {
		return inReplica(a, columns) < largeProduct
	}
	return a.Shape().Size()*columns < largeProduct
}

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
