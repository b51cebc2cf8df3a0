package cifar

import (
	"fmt"
	"os"
	"slices"

	"github.com/gomlx/compute/dtypes"

	"densityuncertainty/baselines"
	"densityuncertainty/figures/methods"
)

// Memory says in a line how much memory the Gaussian processes of a method with inducing points, such as DUE, take
// in a training step, and where that is more than this computer has, how many inducing points would fit; "" for
// other methods. There is an error for more inducing points than training images that they are chosen among.
func (p Protocol) Memory(m methods.Method) (string, error) {
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
