package predict

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
)

// Images are N images as bytes.
type Images struct {
	// Pixels has shape [N, channels, Height, Width], row-major; 0 is black.
	Pixels        []byte
	Height, Width int
	// Standardization is that with which the model was trained; it has a mean and
	// a standard deviation for each channel.
	Standardization nets.Standardization
}

func (m Images) channels() int { return len(m.Standardization.Mean) }

// size is the number of bytes of an image.
func (m Images) size() int { return m.channels() * m.Height * m.Width }

func (m Images) check() error {
	if m.channels() < 1 || m.Height < 1 || m.Width < 1 {
		return fmt.Errorf("images of %d x %d pixels with %d channel means; all must be at least 1", m.Height, m.Width, m.channels())
	}
	if len(m.Pixels) == 0 || len(m.Pixels)%m.size() != 0 {
		return fmt.Errorf("%d bytes are not a positive number of images of %d bytes each", len(m.Pixels), m.size())
	}
	return m.Standardization.Check(m.channels())
}

// Sampling says how a classifier's predictions are drawn.
type Sampling struct {
	// Samples is the number M of samples; 0 means 25, as in the paper.
	Samples int
	// BatchSize is the number of images that are computed at once; 0 means 128.
	BatchSize int
	// PerExecution is the number of samples that one execution draws, each by a
	// copy of the network of its own; it must divide Samples. More save the start
	// of an execution, and take as much longer to compile. 0 means 1 on the pure
	// Go backend, on others the largest divisor of Samples up to 5.
	PerExecution int
	// Energies asks for the energies of the layers' inputs.
	Energies bool
	// KeepLogits keeps the logits of all samples.
	KeepLogits bool
	// Progress, if not nil, hears of the number of images done after each batch.
	Progress func(done, total int)
}

// mostPerExecution is the largest default of Sampling.PerExecution.
const mostPerExecution = 5

func (o Sampling) withDefaults(onHost bool) (Sampling, error) {
	if o.Samples < 0 || o.BatchSize < 0 || o.PerExecution < 0 {
		return o, fmt.Errorf("%d samples, of them %d in one execution, in batches of %d; none may be negative", o.Samples, o.PerExecution, o.BatchSize)
	}
	if o.Samples == 0 {
		o.Samples = 25
	}
	if o.BatchSize == 0 {
		o.BatchSize = 128
	}
	if o.PerExecution == 0 {
		o.PerExecution = 1
		for n := 2; n <= mostPerExecution && !onHost; n++ {
			if o.Samples%n == 0 {
				o.PerExecution = n
			}
		}
	}
	if o.Samples%o.PerExecution != 0 {
		return o, fmt.Errorf("%d samples cannot be drawn %d in each execution; choose a divisor", o.Samples, o.PerExecution)
	}
	return o, nil
}

// Classes is the posterior predictive distribution of the classes of N images,
// from M samples (section 2.2 of the paper):
//
//	p(y | x) = 1/M sum_m softmax(logits_m(x))_y.
type Classes struct {
	// Probabilities are p(y | x), [N*classes].
	Probabilities []float64
	// MutualInformation is that between label and sample, in nats, [N]: the
	// entropy of Probabilities minus the mean entropy of the samples.
	MutualInformation []float64
	// Logits are those of every sample, [M][N*classes]; nil without KeepLogits.
	Logits [][]float64
	// Energies are those of the layers' inputs, in the order in which the network
	// applies the layers; nil without Sampling.Energies.
	Energies []LayerEnergy
	// LastConvolution is the number in Energies of the features by which the
	// paper tells inputs unlike the training data: the input of the last
	// convolution that sees more than one pixel; -1 if Energies has none.
	LastConvolution int
}

// A LayerEnergy is the energy E(h) of the input h of a layer at N images: the
// mean over positions, and not clipped.
type LayerEnergy struct {
	// Layer is the layer's scope below the network's.
	Layer string
	// Mean is the mean over the samples, [N]; One is that of the first sample, [N].
	// The noise of the layers before makes them differ.
	Mean, One []float64
}

// Classification predicts the classes of images. Batch normalisation uses its
// running statistics; the noise of the layers is drawn anew for every sample, and
// for every batch where it is that of weights. An error comes of bad inputs, of
// a network that cannot be applied to the images, of Energies asked of a network
// without energy models, and where the context ends.
func Classification(ctx context.Context, c *nets.Classifier, images Images, sampling Sampling) (classes *Classes, err error) {
	if err := images.check(); err != nil {
		return nil, err
	}
	sampling, err = sampling.withDefaults(c.Host != nil)
	if err != nil {
		return nil, err
	}
	p := &prediction{Sampling: sampling, classifier: c, images: images, total: len(images.Pixels) / images.size()}
	p.result.LastConvolution = -1
	run, err := newRun(c.Backend, c.Store, c.Host, p.build)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, run.close()) }()
	for p.done < p.total {
		if err := p.batch(ctx, run); err != nil {
			return nil, fmt.Errorf("predicting image %d and those after it: %w", p.done, err)
		}
		if p.Progress != nil {
			p.Progress(p.done, p.total)
		}
	}
	return &p.result, nil
}

// A prediction is the state of one call of Classification.
type prediction struct {
	Sampling
	classifier  *nets.Classifier
	images      Images
	done, total int
	result      Classes
}

// build applies the network to a batch of bytes PerExecution times. The outputs
// are the logits, [PerExecution*batch, classes], and with Energies those of all
// layers, [PerExecution*batch, layers].
func (p *prediction) build(root *model.Scope, pixels *graph.Node) []*graph.Node {
	c, g := p.classifier, pixels.Graph()
	x := p.images.Standardization.Images(pixels, c.DType)
	var logits, energies []*graph.Node
	for range p.PerExecution {
		before := len(nets.Energies(g))
		logits = append(logits, c.Logits(c.Scope(root.ResetVisited()), x))
		if p.Energies {
			energies = append(energies, p.columns(nets.Energies(g)[before:]))
		}
	}
	outputs := []*graph.Node{graph.Concatenate(logits, 0)}
	if p.Energies {
		outputs = append(outputs, graph.Concatenate(energies, 0))
	}
	return outputs
}

// columns are the energies of the layers side by side, of which it notes the names.
func (p *prediction) columns(layers []nets.LayerEnergy) *graph.Node {
	if len(layers) == 0 {
		panic(errors.New("energies were asked for, but no layer of the network has an energy model"))
	}
	p.result.LastConvolution = nets.LastConvolution(layers)
	p.result.Energies = make([]LayerEnergy, len(layers))
	columns := make([]*graph.Node, len(layers))
	for l, layer := range layers {
		p.result.Energies[l].Layer = layer.Layer
		columns[l] = layer.Energy
	}
	return graph.Concatenate(columns, 1)
}

// batch predicts the next images. The last batch is filled up with black ones.
func (p *prediction) batch(ctx context.Context, run *run) error {
	size := p.images.size()
	count := min(p.BatchSize, p.total-p.done)
	padded := make([]byte, p.BatchSize*size)
	copy(padded, p.images.Pixels[p.done*size:(p.done+count)*size])
	inputs := tensors.FromFlatDataAndDimensions(padded, p.BatchSize, p.images.channels(), p.images.Height, p.images.Width)

	classes := p.classifier.Classes
	var logits, energies [][]float64 // of each sample
	err := run.repeat(ctx, inputs, p.Samples/p.PerExecution, func(out [][]float64) {
		logits = append(logits, perSample(out[0], p.PerExecution, count*classes)...)
		if p.Energies {
			energies = append(energies, perSample(out[1], p.PerExecution, count*len(p.result.Energies))...)
		}
	})
	if err := errors.Join(err, inputs.FinalizeAll()); err != nil {
		return err
	}
	if err := p.add(logits); err != nil {
		return err
	}
	p.addEnergies(energies)
	p.done += count
	return nil
}

// perSample is the part that counts of the output of each of n samples.
func perSample(out []float64, n, count int) [][]float64 {
	parts := make([][]float64, n)
	for m := range parts {
		first := m * len(out) / n
		parts[m] = out[first : first+count]
	}
	return parts
}

// add appends the distribution of further images, [M][count*classes].
func (p *prediction) add(logits [][]float64) error {
	r, classes := &p.result, p.classifier.Classes
	probabilities, err := metrics.MeanProbabilities(logits, classes)
	if err != nil {
		return err
	}
	information, err := metrics.MutualInformation(logits, classes)
	if err != nil {
		return err
	}
	r.Probabilities = append(r.Probabilities, probabilities...)
	r.MutualInformation = append(r.MutualInformation, information...)
	if p.KeepLogits {
		if r.Logits == nil {
			r.Logits = make([][]float64, p.Samples)
		}
		for m := range logits {
			r.Logits[m] = append(r.Logits[m], logits[m]...)
		}
	}
	return nil
}

// addEnergies appends those of further images, [M][count*layers].
func (p *prediction) addEnergies(samples [][]float64) {
	layers := p.result.Energies
	for l := range layers {
		for at := l; at < len(samples[0]); at += len(layers) {
			mean := 0.0
			for _, energies := range samples {
				mean += energies[at] / float64(len(samples))
			}
			layers[l].Mean = append(layers[l].Mean, mean)
			layers[l].One = append(layers[l].One, samples[0][at])
		}
	}
}
