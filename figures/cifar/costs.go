package cifar

import (
	"fmt"
	"os"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"densityuncertainty/baselines"
	"densityuncertainty/datasets"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
)

// A Family is a family of layers with the name of its row.
type Family struct {
	Name   string
	Layers nets.ConvLayers
}

// Bytes of a trainable number in float32 while it is trained: itself, its gradient
// and what its optimizer keeps, one number for SGD with momentum and two for the
// Adam of the energy models.
const (
	bytesWithSGD  = 3 * 4
	bytesWithAdam = 4 * 4
)

// Costs is a table of what a network costs with each family of layers, for CIFAR
// images of so many classes: trainable numbers and those of the energy models
// among them, the bytes they take in training, activations not included, and
// operations for one image (see nets.ResNet.CostOf), in prediction and in a training
// step, with their ratio to the first family's. Nothing is trained for it.
func Costs(backend compute.Backend, network func(nets.ConvLayers) nets.ResNet, classes int, families ...Family) (report.Table, error) {
	t := report.Table{
		Name:    "costs",
		Columns: []string{"Layers", "Parameters", "of energy models", "Training state", "GFLOP, prediction", "GFLOP, training step", "ratio"},
	}
	first := 0.0
	for _, family := range families {
		net := network(family.Layers)
		counts, err := nets.Parameters(backend, net, datasets.ImageChannels, datasets.ImageSide, datasets.ImageSide, classes)
		if err != nil {
			return report.Table{}, fmt.Errorf("cifar: %s: %w", family.Name, err)
		}
		total, generative := 0, counts[params.Generative]
		for _, n := range counts {
			total += n
		}
		bytes := float64(bytesWithSGD*(total-generative) + bytesWithAdam*generative)
		cost := net.CostOf(datasets.ImageChannels, datasets.ImageSide, datasets.ImageSide, classes)
		if first == 0 {
			first = cost.Training
		}
		t.Rows = append(t.Rows, report.Row{Name: family.Name, Cells: report.TextCells(
			grouped(total), grouped(generative), fmt.Sprintf("%.4g MB", bytes/1e6),
			fmt.Sprintf("%.3g", cost.Forward/1e9), fmt.Sprintf("%.3g", cost.Training/1e9), fmt.Sprintf("%.2f", cost.Training/first),
		)})
	}
	return t, nil
}

// Memory says in a line how much memory the Gaussian processes of a method with inducing points, such as DUE, take
// in a training step, and where that is more than this computer has, how many inducing points would fit; "" for
// other methods. There is an error for more inducing points than training images that they are chosen among.
func (p Protocol) Memory(m methods.Method) (string, error) {
	p.Options = m.Changed(p.Options)
	r, network, err := p.recipe(m)
	if err != nil {
		return "", err
	}
	if r.Inducing == 0 {
		return "", nil
	}
	size := baselines.DUESize{Classes: p.classes(), Inducing: r.Inducing, Batch: r.BatchSize, Width: slices.Max(network.Widths), DType: dtypes.Float32}
	says := fmt.Sprintf("the Gaussian processes take up to %.0f MB of memory in a training step, "+
		"with %d inducing points for %d classes; fewer by the option inducing_points",
		float64(size.Bytes())/1e6, size.Inducing, size.Classes)
	images := startImages
	if p.TrainN > 0 {
		images = min(images, p.TrainN)
	}
	if size.Inducing > images {
		return "", fmt.Errorf("%s: %d are too many, since they start among the features of %d training images", says, size.Inducing, images)
	}
	if here := memory(); here > 0 && size.Bytes() > here {
		says += fmt.Sprintf(". This computer has %.0f MB", float64(here)/1e6)
		if most, err := size.MostInducing(here); err == nil {
			says += fmt.Sprintf(", for which at most %d inducing points are sure to fit; an accelerator has memory of its own", most)
		}
	}
	return says, nil
}

// memory is the size of this computer's memory in bytes, 0 where it is not known. It is a variable for tests.
var memory = func() int {
	content, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	kilobytes := 0
	if _, err := fmt.Sscanf(string(content), "MemTotal: %d kB", &kilobytes); err != nil {
		return 0
	}
	return kilobytes << 10
}
