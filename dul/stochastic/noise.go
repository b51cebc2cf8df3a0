package stochastic

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/params"
)

// A NoiseSource draws the noise of a graph. Models on the pure Go backend and models with replicas have noise drawn by
// the host, in NoiseBuffers; other models have noise drawn InGraph.
type NoiseSource interface {
	// Draw returns a node with noise from d of the given shape, which is new in every execution of the graph.
	Draw(s *model.Scope, g *graph.Graph, d Distribution, shape shapes.Shape) *graph.Node
}

const noiseKey = "/stochastic_noise"

// SetNoiseSource makes n the source of all noise in the graph g. The default is InGraph.
func SetNoiseSource(g *graph.Graph, n NoiseSource) { *params.OfGraph[NoiseSource](g, noiseKey) = n }

// Draw returns noise [..., rows, columns] from the graph's source, with the replica axes and type of like. If the rows
// or columns belong to examples, each example's must be neighbours, so that Seeded can tell examples apart. If rows
// is shapes.DynamicDim, unknown until the graph is executed, the noise has the rows of like. Draw panics if d returns
// another shape, and for DynamicDim unless the source is InGraph.
func Draw(s *model.Scope, like *graph.Node, d Distribution, rows, columns int) *graph.Node {
	shape, source := likeNoise(like, rows, columns), sourceOf(like.Graph())
	if rows == shapes.DynamicDim {
		if _, is := source.(InGraph); !is {
			panic(fmt.Errorf("stochastic: noise of shape %s from a source of type %T, which needs the number of rows", shape, source))
		}
		source = InGraph{like}
	}
	noise := source.Draw(s, like.Graph(), d, shape)
	if !noise.Shape().Equal(shape) {
		panic(fmt.Errorf("stochastic: noise of distribution %T has shape %s, want %s: Sample must return one entry for each of the base's", d, noise.Shape(), shape))
	}
	return noise
}

// DrawRows returns a row of noise for each example of x, [..., batch, n], from the graph's source; if draws are
// coherent, one row for all examples, [..., 1, n].
func DrawRows(s *model.Scope, x *graph.Node, d Distribution, n int) *graph.Node {
	rows := x.Shape().Dim(-2)
	if params.FactsOf(x.Graph()).Coherent {
		rows = 1
	}
	return Draw(s, x, d, rows, n)
}

// DrawByColumns is Draw for one matrix that the backend stores column by column: InGraph then draws in this order.
func DrawByColumns(s *model.Scope, like *graph.Node, d Distribution, rows, columns int) *graph.Node {
	if _, inGraph := sourceOf(like.Graph()).(InGraph); inGraph {
		return graph.Transpose(Draw(s, like, d, columns, rows), 0, 1)
	}
	return Draw(s, like, d, rows, columns)
}

// sourceOf is the graph's source of noise, which is about to be used.
func sourceOf(g *graph.Graph) NoiseSource {
	params.FactsOf(g).Noise = true
	if source := *params.OfGraph[NoiseSource](g, noiseKey); source != nil {
		return source
	}
	return InGraph{}
}

// InGraph draws noise in the graph, from the store's random state (model.Store.SetRNGStateFromSeed). It is for
// accelerators, where sending noise from the host costs more than drawing it. Each number uses 32 random bits, as the
// host's do, and depends only on the seed, the number of the draw and its place in it.
type InGraph struct {
	like *graph.Node // whose rows are the noise's, if their number is unknown
}

// Draw implements NoiseSource.
func (n InGraph) Draw(s *model.Scope, g *graph.Graph, d Distribution, shape shapes.Shape) *graph.Node {
	return d.Sample(Base{func(l baseDistribution) *graph.Node { return n.draw(s, g, l, shape) }})
}

// draw returns draws of one distribution.
func (n InGraph) draw(s *model.Scope, g *graph.Graph, l baseDistribution, shape shapes.Shape) *graph.Node {
	bits := n.randomBits(s, g, shape)
	switch l.kind {
	case uniform:
		// 24 bits, which every float32 of [0, 1) can tell apart.
		bits = graph.BitwiseShiftRightLogicalScalar(bits, uint32(8))
		return graph.StopGradient(graph.MulScalar(graph.ConvertDType(bits, shape.DType), 1.0/(1<<24)))
	case mask:
		wide := graph.ConvertDType(bits, dtypes.Uint64) // as the limit may be 1<<32
		kept := graph.LessThan(wide, graph.Const(g, uint64(l.keep*(1<<32))))
		return graph.StopGradient(graph.MulScalar(graph.ConvertDType(kept, shape.DType), 1/l.keep))
	}
	return graph.StopGradient(normalsOf(bits, shape.DType))
}

// randomBits returns 32 random bits for each entry of the shape, Uint32: the upper
// half of a word of the generator SplitMix64 (Steele, Lea & Flood 2014). Its word
// i is a function of i alone; of the store's random state the first word is where
// the stream starts, and the second counts the draws, each of which takes the next
// 2^32 words.
//
// Compilers fuse that with what uses the words. The backend's own generator,
// Philox, takes XLA several times as long, and its graph longer to compile.
func (n InGraph) randomBits(s *model.Scope, g *graph.Graph, shape shapes.Shape) *graph.Node {
	word := func(value uint64) *graph.Node { return graph.Const(g, value) }
	mixed := func(z *graph.Node, shift, factor uint64) *graph.Node {
		return graph.Mul(graph.BitwiseXor(z, graph.BitwiseShiftRightLogicalScalar(z, shift)), word(factor))
	}
	variable := randomState(s.Store())
	state := params.Input(s.Store(), variable, g)
	variable.SetNodeValue(graph.Add(state, graph.Const(g, []uint64{0, 1, 0})))
	start := graph.Reshape(graph.Slice(state, graph.AxisElem(0)))
	draw := graph.BitwiseShiftLeftScalar(graph.Reshape(graph.Slice(state, graph.AxisElem(1))), uint64(32))

	var number *graph.Node
	if n.like == nil {
		number = graph.Iota(g, shapes.Make(dtypes.Uint64, shape.Size()), 0)
	} else {
		along := func(axis int) *graph.Node {
			return graph.DynamicIota(g, dtypes.Uint64, axis, graph.DimensionSpecFor(n.like, -2), graph.StaticDim(shape.Dim(-1)))
		}
		number = graph.Add(graph.MulScalar(along(0), shape.Dim(-1)), along(1))
	}
	z := graph.Add(number, draw)
	z = graph.Add(graph.Mul(z, word(0x9e3779b97f4a7c15)), start)
	z = mixed(z, 30, 0xbf58476d1ce4e5b9)
	z = mixed(z, 27, 0x94d049bb133111eb)
	z = graph.BitwiseXor(z, graph.BitwiseShiftRightLogicalScalar(z, uint64(31)))
	high := graph.ConvertDType(graph.BitwiseShiftRightLogicalScalar(z, uint64(32)), dtypes.Uint32)
	if n.like != nil {
		return high
	}
	return graph.Reshape(high, shape.Dimensions...)
}

// randomState is the store's random state, three words; without a seed a random one.
func randomState(store *model.Store) *model.Variable {
	path := model.JoinPath(model.ScopeSeparator, model.RNGStateVariableName)
	if v := store.GetVariable(path); v != nil && v.HasValue() {
		return v
	}
	if err := store.ResetRNGState(); err != nil {
		panic(fmt.Errorf("starting the random state: %w", err))
	}
	return store.GetVariable(path)
}

// HostSampler draws noise on the host by the ziggurat method. On the pure Go backend it is six times faster than noise
// in the graph. Each graph has its own NoiseBuffers, which are refilled between executions.
//
// Every replica has its own stream, so that its noise does not depend on the other replicas of the graph.
type HostSampler struct {
	streams    []*rand.PCG
	replicated bool
	graphs     int
}

// NewHostSampler returns a host source for graphs without a replica axis.
func NewHostSampler(seed uint64) *HostSampler {
	h := NewReplicatedHostSampler([]uint64{seed})
	h.replicated = false
	return h
}

// NewReplicatedHostSampler returns a host source for graphs whose activations are [replicas, batch, features], with one
// seed for each replica.
func NewReplicatedHostSampler(seeds []uint64) *HostSampler {
	h := &HostSampler{replicated: true}
	for _, seed := range seeds {
		h.streams = append(h.streams, rand.NewPCG(seed, noiseStream))
	}
	return h
}

// noiseStream keeps noise apart from other uses of the same seed.
const noiseStream = 0x6e6f697365

// noiseScope is where the store keeps the buffers of all graphs.
const noiseScope = "/noise/"

// NoiseBuffers are the host's noise for one graph: a buffer for each draw, in variables of the store below /noise that
// are not trained.
type NoiseBuffers struct {
	source  noiseFiller
	scope   string // of the variables
	buffers []noiseBuffer
}

// A noiseFiller says which streams draw a buffer.
type noiseFiller interface {
	// parts are all parts of a buffer of the given shape, each with the stream that draws it.
	parts(b noiseBuffer, of shapes.Shape) (iter.Seq2[*rand.Rand, part], error)
	// replicaAxis is the length of the replica axis that draws must have; 0 for none.
	replicaAxis() int
}

// A part of a buffer is some rows of so many columns each, whose first entries are
// stride apart.
type part struct{ first, rows, columns, stride int }

type noiseBuffer struct {
	variable *model.Variable
	of       baseDistribution
	number   int // among the buffers of its graphs
}

// NewBuffers returns the NoiseSource for one graph.
func (h *HostSampler) NewBuffers() *NoiseBuffers {
	h.graphs++
	return &NoiseBuffers{source: h, scope: fmt.Sprintf("%sbuffers_%d", noiseScope, h.graphs)}
}

// replicaAxis implements noiseFiller.
func (h *HostSampler) replicaAxis() int {
	if h.replicated {
		return len(h.streams)
	}
	return 0
}

// Draw implements NoiseSource.
func (n *NoiseBuffers) Draw(s *model.Scope, g *graph.Graph, d Distribution, shape shapes.Shape) *graph.Node {
	if replicas := n.source.replicaAxis(); replicas > 0 && (shape.Rank() < 3 || shape.Dim(0) != replicas) {
		panic(fmt.Errorf("noise of shape %s asked of a host source with %d replicas; its leading axis must be the replicas", shape, replicas))
	}
	return d.Sample(Base{func(l baseDistribution) *graph.Node { return n.buffer(s, g, l, shape) }})
}

// buffer returns a new buffer, filled with draws of one distribution.
func (n *NoiseBuffers) buffer(s *model.Scope, g *graph.Graph, l baseDistribution, shape shapes.Shape) *graph.Node {
	path := fmt.Sprintf("%s/draw_%d", n.scope, len(n.buffers))
	v := s.Store().VariableWithValue(path, tensors.FromShape(shape)).SetTrainable(false)
	b := noiseBuffer{v, l, len(n.buffers)}
	if err := n.fill(b); err != nil {
		panic(fmt.Errorf("drawing noise %s: %w", path, err))
	}
	n.buffers = append(n.buffers, b)
	return params.Input(s.Store(), v, g)
}

// Refresh draws new noise into every buffer. Call it before each execution except the first: building the graph draws
// the first noise.
func (n *NoiseBuffers) Refresh() error {
	for _, b := range n.buffers {
		if err := n.fill(b); err != nil {
			return fmt.Errorf("refreshing noise %s: %w", b.variable.Path(), err)
		}
	}
	return nil
}

// Release deletes the buffers from the store. Their graph can then not be executed any more.
func (n *NoiseBuffers) Release(store *model.Store) error {
	for _, b := range n.buffers {
		if err := store.DeleteVariable(b.variable.Path()); err != nil {
			return fmt.Errorf("releasing noise %s: %w", b.variable.Path(), err)
		}
	}
	n.buffers = nil
	return nil
}

// fill draws new noise into a buffer.
func (n *NoiseBuffers) fill(b noiseBuffer) error {
	value, err := b.variable.Value()
	if err != nil {
		return err
	}
	parts, err := n.source.parts(b, value.Shape())
	if err != nil {
		return err
	}
	if value.DType() == dtypes.Float64 {
		return tensors.MutableFlatData(value, func(flat []float64) { fill(flat, b.of, parts) })
	}
	return tensors.MutableFlatData(value, func(flat []float32) { fill(flat, b.of, parts) })
}

// parts implements noiseFiller.
func (h *HostSampler) parts(_ noiseBuffer, of shapes.Shape) (iter.Seq2[*rand.Rand, part], error) {
	size := of.Size() / len(h.streams)
	return func(yield func(*rand.Rand, part) bool) {
		for r, stream := range h.streams {
			if !yield(rand.New(stream), part{r * size, 1, size, size}) {
				return
			}
		}
	}, nil
}

// fill fills parts of noise with independent draws of one distribution.
func fill[T float32 | float64](noise []T, l baseDistribution, parts iter.Seq2[*rand.Rand, part]) {
	for stream, p := range parts {
		var word uint64
		for row := range p.rows {
			entries := noise[p.first+row*p.stride:][:p.columns]
			word = draws(entries, l, stream, row*p.columns, word)
		}
	}
}

// draws fills entries with draws number first, first+1, ... of a stream. word is what it
// returned for those before. Each distribution has a loop of its own, as noise is a tenth of a
// training step.
func draws[T float32 | float64](entries []T, l baseDistribution, stream *rand.Rand, first int, word uint64) uint64 {
	switch l.kind {
	case uniform:
		for i := range entries {
			word = nextBits(stream, first+i, word)
			entries[i] = T(uint32(word)>>8) / (1 << 24)
		}
	case mask:
		scale, limit := T(1/l.keep), uint64(l.keep*(1<<32))
		for i := range entries {
			word = nextBits(stream, first+i, word)
			entries[i] = 0
			if uint64(uint32(word)) < limit {
				entries[i] = scale
			}
		}
	default:
		for i := range entries {
			word = nextBits(stream, first+i, word)
			layer, x, under := pointOf(int32(word))
			if !under {
				x = normalNearCurve(stream, layer, x)
			}
			entries[i] = T(x)
		}
	}
	return word
}

// nextBits gives draw i its random bits, the lower 32 of the result. word is the result
// for the draw before: every word of a stream serves two draws, as random words are most
// of the cost of noise.
func nextBits(stream *rand.Rand, i int, word uint64) uint64 {
	if i%2 == 0 {
		return stream.Uint64()
	}
	return word >> 32
}

// stateSize is the length of one stream's position, in bytes, as
// rand.PCG.MarshalBinary writes it.
const stateSize = 20

// State returns the position of the streams, for SetState, without the noise in the buffers.
func (h *HostSampler) State() ([]byte, error) {
	var state []byte
	for r, stream := range h.streams {
		position, err := stream.MarshalBinary()
		if err != nil {
			return nil, fmt.Errorf("reading the position of noise stream %d: %w", r, err)
		}
		state = append(state, position...)
	}
	return state, nil
}

// SetState sets the streams to a position that State returned. Call it before a graph is built, because building draws
// the noise of the first execution. It is an error, after which nothing has changed, if the state is damaged or from a
// source with another number of replicas.
func (h *HostSampler) SetState(state []byte) error {
	if len(state) != stateSize*len(h.streams) {
		return fmt.Errorf("the position of the noise streams has %d bytes, want %d for %d streams: it is of a source with another number of replicas, or damaged",
			len(state), stateSize*len(h.streams), len(h.streams))
	}
	positions := make([]rand.PCG, 0, len(h.streams))
	for part := range slices.Chunk(state, stateSize) {
		var position rand.PCG
		if err := position.UnmarshalBinary(part); err != nil {
			return fmt.Errorf("the position of noise stream %d: %w", len(positions), err)
		}
		positions = append(positions, position)
	}
	for r, stream := range h.streams {
		*stream = positions[r]
	}
	return nil
}

// IsNoiseBuffer reports whether a variable is one of NoiseBuffers. Such a variable is neither part of a model nor of
// the state of its training.
func IsNoiseBuffer(v *model.Variable) bool { return strings.HasPrefix(v.Path(), noiseScope) }

// A Distribution is a distribution of independent noise entries. Its values must be comparable with ==.
type Distribution interface {
	// Sample returns noise with the shape and type of the draws of base. Each entry may depend only on the same entry
	// of these draws. It is called once for each draw, while the graph is built.
	Sample(base Base) *graph.Node
}

// A Base gives a Distribution independent random numbers of one shape, from the graph's NoiseSource. Each call returns
// other numbers, which are new in every execution.
type Base struct {
	draw func(baseDistribution) *graph.Node
}

// Normal returns draws from N(0, 1).
func (b Base) Normal() *graph.Node { return b.draw(baseDistribution{kind: normal}) }

// Uniform returns draws from U[0, 1): multiples of 2^-24, including 0.
func (b Base) Uniform() *graph.Node { return b.draw(baseDistribution{kind: uniform}) }

// Mask returns 1/keep with probability keep, else 0. It panics unless 0 < keep <= 1.
func (b Base) Mask(keep float64) *graph.Node {
	if !(keep > 0 && keep <= 1) {
		panic(fmt.Errorf("a mask of noise keeps entries with probability %g; it must be above 0 and at most 1", keep))
	}
	return b.draw(baseDistribution{kind: mask, keep: keep})
}

// A baseDistribution is the distribution of a base draw.
type baseDistribution struct {
	kind baseKind
	keep float64 // of a mask
}

type baseKind int

const (
	normal baseKind = iota
	uniform
	mask
)

// Gaussian is N(0, 1), the paper's noise.
func Gaussian() Distribution { return gaussian{} }

type gaussian struct{}

// Sample implements Distribution.
func (gaussian) Sample(b Base) *graph.Node { return b.Normal() }

// Uniform01 is U[0, 1), which the authors' code draws instead of N(0, 1). Its mean is 1/2, its standard deviation
// 1/sqrt(12) = 0.289.
func Uniform01() Distribution { return uniform01{} }

type uniform01 struct{}

// Sample implements Distribution.
func (uniform01) Sample(b Base) *graph.Node { return b.Uniform() }

// DropoutMask is 1/(1-rate) with probability 1-rate, else 0: mean 1,
// variance rate/(1-rate). It panics unless 0 <= rate < 1.
func DropoutMask(rate float64) Distribution {
	if !(rate >= 0 && rate < 1) {
		panic(fmt.Errorf("dropout rate is %g; it must be at least 0 and below 1", rate))
	}
	return dropoutMask{keep: 1 - rate}
}

type dropoutMask struct{ keep float64 }

// Sample implements Distribution.
func (d dropoutMask) Sample(b Base) *graph.Node { return b.Mask(d.keep) }

// StudentT is Student's t with Nu > 0 degrees of freedom, one of the heavy-tailed distributions that the paper suggests
// instead of the Gaussian (section 2.4). Its mean is 0 for Nu > 1. Its variance is Nu/(Nu-2) for Nu > 2, and infinite
// or undefined for smaller Nu. For large Nu it is N(0, 1). Sample panics if Nu is out of range.
type StudentT struct {
	Nu float64
	// UnitVariance divides the draws by sqrt(Nu/(Nu-2)), so that a layer's noise has the variance given by its gamma
	// and beta. It needs Nu > 2.
	UnitVariance bool
}

// Sample implements Distribution by the polar method of Bailey (1994). For U and V uniform on (0, 1),
//
//	sqrt(Nu (U^(-2/Nu) - 1)) cos 2 pi V
//
// has exactly the t distribution. U is at least 2^-24, so that no draw is larger than sqrt(Nu (2^(48/Nu) - 1)): 2e14
// for Nu = 1/2, 2e7 for Nu = 1, 62 for Nu = 5. In single precision it overflows for Nu below 3/8.
func (t StudentT) Sample(b Base) *graph.Node {
	if !(t.Nu > 0) || t.UnitVariance && !(t.Nu > 2) {
		panic(fmt.Errorf("stochastic.StudentT: %g degrees of freedom; they must be above 0, and above 2 for UnitVariance", t.Nu))
	}
	scale := t.Nu
	if t.UnitVariance {
		scale = t.Nu - 2
	}
	y := graph.MulScalar(graph.Log(graph.OneMinus(b.Uniform())), -2/t.Nu)
	radius := graph.Sqrt(graph.MulScalar(graph.Expm1(y), scale))
	return graph.Mul(radius, graph.Cos(graph.MulScalar(b.Uniform(), 2*math.Pi)))
}
