package cifar

import (
	"fmt"

	"github.com/gomlx/compute"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/figures/report"
)

// A Family is a family of layers with the name of its row.
type Family struct {
	Name   string
	Layers nets.ConvLayers
}

// Bytes of a trainable number in float32 while it is trained: the number, its gradient and what its optimizer keeps, which
// is one number for SGD with momentum and two for the Adam of the energy models.
const (
	bytesWithSGD  = 3 * 4
	bytesWithAdam = 4 * 4
)

// Costs is a table of what a network costs with each family of layers, for CIFAR images of so many classes. It counts the
// trainable numbers, how many of them are of energy models, the bytes that they take in training without activations, and
// the operations for one image (see nets.ResNet.CostOf) in prediction and in a training step, with their ratio to the
// first family's. Nothing is trained.
func Costs(backend compute.Backend, network func(nets.ConvLayers) nets.ResNet, classes int, families ...Family) (report.Table, error) {
	t := prose.Table("costs", classes)
	t.Columns = []string{"Layers", "Parameters", "of energy models", "Training state", "GFLOP, prediction", "GFLOP, training step", "ratio"}
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
