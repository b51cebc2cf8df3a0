package cifar

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/figures/cifar/predictions"
	"densityuncertainty/figures/methods"
)

// A run keeps the energies of all layers with its predictions, scores them, and keeps its trained network.
func TestRunsKeepLayersAndNetworks(t *testing.T) {
	r, _ := withMadeUpImages(t)
	r.Predictions, r.Networks = t.TempDir(), t.TempDir()
	e := tiny(methods.Density, oneEpoch)
	line := outcome(t, r, e)
	p, err := predictions.Read(filepath.Join(r.Predictions, predictions.FileName(e.ID())))
	if err != nil {
		t.Fatal(err)
	}
	// the stem, two convolutions of each of six blocks, two shortcuts and the last layer
	last := slices.Index(p.Layers, "stage_2_block_1/conv_2")
	if len(p.Layers) != 16 || last < 0 || len(p.Others[0].Energy.Layers) != 16 || !slices.Equal(p.Energy.Layers[last], p.Energy.Mean) {
		t.Errorf("layers %q, the last convolution's is number %d, energies of %d layers", p.Layers, last, len(p.Others[0].Energy.Layers))
	}
	if auroc, has := line.Metrics["ood_svhn_auroc"+predictions.ByLayer(p.Layers[last])]; !has || auroc != line.Metrics["ood_svhn_auroc"+methods.ByEnergy] {
		t.Errorf("AUROC at the last convolution is %v, want %v", auroc, line.Metrics["ood_svhn_auroc"+methods.ByEnergy])
	}
	named, metadata, err := checkpoint.ReadTensors(filepath.Join(r.Networks, e.ID()+".safetensors"))
	if err != nil || metadata[keyFormat] != networkFormat || !slices.ContainsFunc(slices.Collect(maps.Keys(named)), func(name string) bool { return strings.HasPrefix(name, "model/network/output/") }) {
		t.Errorf("the network's file has %d tensors and the metadata %v (error %v)", len(named), metadata, err)
	}
}

// The features of a plain network get Gaussians where there are enough training images.
func TestGaussiansAfterwards(t *testing.T) {
	r, _ := withMadeUpImages(t)
	r.Predictions = t.TempDir()
	r.images.files.cifar = func(_ context.Context, name string) (train, test *datasets.Images, err error) {
		return madeUp(name+" train", 120, 10, 1), madeUp(name+" test", 12, 10, 2), nil
	}
	e := tiny(methods.Deterministic, oneEpoch, func(p *Protocol) { p.TrainN = 100 })
	line := outcome(t, r, e)
	for _, by := range []string{predictions.ByGaussian, predictions.ByClassGaussian} {
		if auroc, has := line.Metrics["ood_svhn_auroc"+by]; !has || auroc < 0 || auroc > 1 {
			t.Errorf("AUROC%s is %v, %v", by, auroc, has)
		}
	}
	few := outcome(t, r, tiny(methods.Deterministic, oneEpoch))
	if _, has := few.Metrics["ood_svhn_auroc"+predictions.ByGaussian]; has {
		t.Error("16 features of 64 numbers got a Gaussian")
	}
}
