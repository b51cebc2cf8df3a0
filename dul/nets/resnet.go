package nets

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/stochastic"
)

// ResNet is a residual network for small images with pre-activation basic blocks (He et al. 2016, "Identity mappings";
// Zagoruyko & Komodakis 2016):
//
//	stem:   h = conv3x3(x)
//	block:  h = conv3x3(relu(norm(conv3x3(relu(norm(h)))))) + shortcut(h)
//	head:   logits = dense(mean over pixels of relu(norm(h)))
//
// The first block of each stage after the first halves height and width. The shortcut is the identity if h keeps its
// shape, and otherwise a 1x1 convolution of h. All layers are of the given family, stem, shortcuts and head too. Stem,
// shortcuts and head have biases; the convolutions of blocks have none, since a batch normalisation is next to them.
//
// The paper only names its networks; the details are those of the authors' code.
type ResNet struct {
	Layers ConvLayers
	// Blocks is the number of blocks of each stage, Widths the number of filters of its convolutions.
	Blocks, Widths []int
	// Stem is the number of filters of the first convolution; 0 means 16.
	Stem int
	// Dropout is the probability with which, in training only, each entry of the input of a block's second convolution
	// is set to 0 (Zagoruyko & Komodakis 2016, section 2.4).
	Dropout float64
}

// ResNet14 is the network that the paper names for CIFAR, with 14 layers if shortcuts do not count. With
// baselines.Deterministic it has 175,178 parameters for 10 classes.
func ResNet14(layers ConvLayers) ResNet {
	return ResNet{Layers: layers, Blocks: []int{2, 2, 2}, Widths: []int{16, 32, 64}}
}

// ResNet20 is the network that the authors' code builds under the name ResNet-14. With baselines.Deterministic it has
// 272,394 parameters for 10 classes.
func ResNet20(layers ConvLayers) ResNet {
	return ResNet{Layers: layers, Blocks: []int{3, 3, 3}, Widths: []int{16, 32, 64}}
}

// WideResNet28x10 is the Wide ResNet WRN-28-10. With baselines.Deterministic it has 36,480,330 parameters for 10
// classes.
func WideResNet28x10(layers ConvLayers) ResNet {
	return ResNet{Layers: layers, Blocks: []int{4, 4, 4}, Widths: []int{160, 320, 640}}
}

// Apply maps images [channels, batch, height, width] to logits [batch, classes]. It panics if Layers is nil, or if a
// number of blocks or filters is missing or not positive.
func (r ResNet) Apply(s *model.Scope, x *graph.Node, classes int) *graph.Node {
	r = r.withDefaults()
	layers := layersOf("nets.ResNet.Layers", r.Layers, s)
	h := layers.Conv(s.In("stem"), x, r.stem())
	for _, b := range r.blocks() {
		h = b.apply(s.In("%s", b.name), layers, h)
	}
	h = conv.ReLU(layers.Norm(s.In("norm"), h))
	return layers.Dense(s.In("output"), conv.GlobalMeans(h), classes)
}

// withDefaults panics on numbers of blocks or filters that are not positive.
func (r ResNet) withDefaults() ResNet {
	if r.Stem == 0 {
		r.Stem = 16
	}
	if len(r.Blocks) != len(r.Widths) || len(r.Blocks) == 0 {
		panic(fmt.Errorf("nets.ResNet: %d numbers of blocks and %d of filters; each stage needs one of both", len(r.Blocks), len(r.Widths)))
	}
	for i, width := range r.Widths {
		if width < 1 || r.Blocks[i] < 1 || r.Stem < 1 {
			panic(fmt.Errorf("nets.ResNet: stage %d has %d blocks of width %d, the stem %d filters; each must be at least 1", i, r.Blocks[i], width, r.Stem))
		}
	}
	return r
}

// stem is the first convolution.
func (r ResNet) stem() conv.Spec { return conv.Spec{Filters: r.Stem, Window: conv.Same(3, 1)} }

// blocks are the residual blocks in order.
func (r ResNet) blocks() []block {
	var all []block
	in := r.Stem
	for stage, width := range r.Widths {
		for i := range r.Blocks[stage] {
			b := block{name: fmt.Sprintf("stage_%d_block_%d", stage, i), in: in, filters: width, stride: 1, dropout: r.Dropout}
			if stage > 0 && i == 0 {
				b.stride = 2
			}
			all = append(all, b)
			in = width
		}
	}
	return all
}

// A block is a pre-activation basic block.
type block struct {
	name                string
	in, filters, stride int
	dropout             float64
}

// first, second and shortcut are the block's convolutions; where it keeps the
// shape of its input, the shortcut is not used.
func (b block) first() conv.Spec {
	return conv.Spec{Filters: b.filters, Window: conv.Same(3, b.stride), NoBias: true}
}

func (b block) second() conv.Spec {
	return conv.Spec{Filters: b.filters, Window: conv.Same(3, 1), NoBias: true}
}

func (b block) shortcut() conv.Spec {
	return conv.Spec{Filters: b.filters, Window: conv.Same(1, b.stride)}
}

func (b block) keepsShape() bool { return b.stride == 1 && b.in == b.filters }

// apply maps [in, batch, height, width] to [filters, batch, height/stride, width/stride].
func (b block) apply(s *model.Scope, layers positions, x *graph.Node) *graph.Node {
	h := conv.ReLU(layers.Norm(s.In("norm_1"), x))
	h = layers.Conv(s.In("conv_1"), h, b.first())
	h = b.drop(s.In("dropout"), conv.ReLU(layers.Norm(s.In("norm_2"), h)))
	h = layers.Conv(s.In("conv_2"), h, b.second())
	if !b.keepsShape() {
		x = layers.Conv(s.In("shortcut"), x, b.shortcut())
	}
	return conv.Add(h, x)
}

// drop is dropout of the pixels of x, of every channel by itself, in training.
func (b block) drop(s *model.Scope, x *graph.Node) *graph.Node {
	if b.dropout == 0 || !s.Store().IsTraining(x.Graph()) {
		return x
	}
	m := conv.Channels(x)
	mask := conv.Noise(s, m, stochastic.DropoutMask(b.dropout))
	return conv.LikeImage(graph.Mul(m, mask), x)
}

// ResidualSum is the residual network of Proposition 1 in the paper's section 2.4. Every layer adds to the sum of the
// layers before it,
//
//	a_1 = dense(x),   a_{l+1} = a_l + dense(h_l),   h_l = relu(norm(a_l)),   l = 1, ..., Depth,
//
// and the outputs are the first units of a_{Depth+1}, so that a statement about a sum holds for the prediction. The
// paper calls two layers f_1; here one of them is the input layer, and f_l has the scope "block_" and l-1. Width is the
// number of units of a sum.
type ResidualSum struct {
	Layers Layers
	Width  int
	Depth  int
	// BatchNorm makes norm the batch normalisation conv.BatchNorm; otherwise norm(a) = a. With it there are no
	// replicas.
	BatchNorm bool
}

// Apply maps [..., batch, features] to the first outputs of the last sum, [..., batch, outputs]. It panics if Width is
// below outputs, Depth below 1 or Layers nil.
func (m ResidualSum) Apply(s *model.Scope, x *graph.Node, outputs int) *graph.Node {
	if outputs > m.Width {
		panic(fmt.Errorf("nets.ResidualSum: %d outputs of a sum of width %d; want at most as many", outputs, m.Width))
	}
	sums := m.sums(s, x)
	return graph.SliceAxis(sums[len(sums)-1], -1, graph.AxisRange(0, outputs))
}

// Sums returns the network whose outputs are all sums side by side, a_1, ..., a_{Depth+1}: [..., batch, (Depth+1)
// Width]. Use it with Model.With.
func (m ResidualSum) Sums() Network { return allSums{m} }

type allSums struct{ ResidualSum }

// Apply implements Network.
func (m allSums) Apply(s *model.Scope, x *graph.Node, _ int) *graph.Node {
	return graph.Concatenate(m.sums(s, x), -1)
}

func (m ResidualSum) sums(s *model.Scope, x *graph.Node) []*graph.Node {
	if m.Width < 1 || m.Depth < 1 {
		panic(fmt.Errorf("nets.ResidualSum: width %d and depth %d; both must be at least 1", m.Width, m.Depth))
	}
	layers := layersOf("nets.ResidualSum.Layers", m.Layers, s)
	sums := []*graph.Node{layers.Dense(s.In("input"), x, m.Width)}
	for l := range m.Depth {
		a := sums[l]
		block := s.In("block_%d", l)
		sums = append(sums, graph.Add(a, layers.Dense(block, ops.ReLU(m.norm(block, a)), m.Width)))
	}
	return sums
}

// norm takes the units of vectors [batch, units] for the channels of images of one pixel.
func (m ResidualSum) norm(s *model.Scope, a *graph.Node) *graph.Node {
	if !m.BatchNorm {
		return a
	}
	batch, units := a.Shape().Dim(0), a.Shape().Dim(1)
	image := graph.Reshape(graph.Transpose(a, 0, 1), units, batch, 1, 1)
	return graph.Transpose(graph.Reshape(conv.BatchNorm(s.In("norm"), image), units, batch), 0, 1)
}
