package cifar

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"densityuncertainty/datasets"
	"densityuncertainty/datasets/fetch"
	"densityuncertainty/dul/nets"
	"densityuncertainty/figures/methods"
)

// The data sets that classifiers are trained on.
const (
	CIFAR10  = "cifar10"
	CIFAR100 = "cifar100"
)

// The networks.
const (
	ResNet14 = "resnet14"
	ResNet20 = "resnet20" // what the released code builds under the name ResNet-14
	WRN28x10 = methods.WRN28x10
)

// The sizes of both CIFAR sets.
const trainingImages, testImages = 50000, 10000

// A dataset is one that classifiers are trained on.
type dataset struct {
	name, title string
	classes     int
	load        func(ctx context.Context, f *fetch.Fetcher) (train, test *datasets.Images, err error)
}

var allDatasets = []dataset{{CIFAR10, "CIFAR-10", 10, datasets.CIFAR10}, {CIFAR100, "CIFAR-100", 100, datasets.CIFAR100}}

// Datasets are the names of the data sets that classifiers are trained on.
func Datasets() []string {
	var names []string
	for _, d := range allDatasets {
		names = append(names, d.name)
	}
	return names
}

func datasetNamed(name string) (dataset, error) {
	i := slices.Index(Datasets(), name)
	if i < 0 {
		return dataset{}, fmt.Errorf("there is no image data set %q; there are %s", name, strings.Join(Datasets(), " and "))
	}
	return allDatasets[i], nil
}

// otherDataset is that of the two CIFARs which a classifier was not trained on.
func otherDataset(name string) string {
	if name == CIFAR100 {
		return CIFAR10
	}
	return CIFAR100
}

// A network is one that classifiers have, of any family of layers.
type network struct {
	name, title string
	of          func(layers nets.ConvLayers) nets.ResNet
}

var allNetworks = []network{{ResNet14, "ResNet-14", nets.ResNet14}, {ResNet20, "ResNet-20", nets.ResNet20}, {WRN28x10, "WRN-28-10", nets.WideResNet28x10}}

// Networks are the names of the networks.
func Networks() []string {
	var names []string
	for _, n := range allNetworks {
		names = append(names, n.name)
	}
	return names
}

func networkNamed(name string) (network, error) {
	i := slices.Index(Networks(), name)
	if i < 0 {
		return network{}, fmt.Errorf("there is no network %q; there are %s", name, strings.Join(Networks(), ", "))
	}
	return allNetworks[i], nil
}

// title is the name of a data set or a network in tables; unknown ones keep theirs.
func title(name string) string {
	if d, err := datasetNamed(name); err == nil {
		return d.title
	}
	if n, err := networkNamed(name); err == nil {
		return n.title
	}
	return name
}
