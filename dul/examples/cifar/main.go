// Command cifar trains a ResNet-14 of density layers on CIFAR-10, and prints accuracy,
// calibration, and how well it tells images of SVHN from those of the test set.
//
//	go run ./dul/examples/cifar -quick   # a minute's work, on images that come with the program
//	go run ./dul/examples/cifar          # the whole of CIFAR-10, best on a GPU
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"densityuncertainty/baselines"
	"densityuncertainty/datasets"
	"densityuncertainty/datasets/fetch"
	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment"
)

// families are the layers to choose from. Add your own: any type with Dense and Conv.
var families = map[string]nets.ConvLayers{
	"density": dul.Density{Energy: energy.Rank1Mixture{}, InitStd: 1e-3},
	"plain":   baselines.Deterministic{},
}

func main() {
	layers := flag.String("layers", "density", "layers: density or plain")
	quick := flag.Bool("quick", false, "a small network and the sample of images that comes with the program")
	epochs := flag.Int("epochs", 200, "epochs of training, of which -quick takes 3")
	seed := flag.Uint64("seed", 1, "seed of parameters, noise and the order of the images")
	folder := flag.String("checkpoints", "", "folder for checkpoints, from which the same command resumes")
	flag.Parse()
	if *quick {
		*epochs = 3
	}
	if err := run(context.Background(), os.Stdout, *layers, *quick, *epochs, *seed, *folder); err != nil {
		fmt.Fprintln(os.Stderr, "cifar:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, family string, quick bool, epochs int, seed uint64, folder string) error {
	// Data: images to train on, a tenth of them held out, test images, and images of another kind.
	all, test, err := datasets.CIFAR10Sample()
	far, errFar := datasets.SVHNSample()
	if !quick {
		all, test, err = datasets.CIFAR10(ctx, &fetch.Fetcher{}) // from the cache, or downloaded
		far, errFar = datasets.SVHNTrainExcerpt(ctx, &fetch.Fetcher{})
	}
	if err := errors.Join(err, errFar); err != nil {
		return err
	}
	training, heldOut := datasets.HoldOut(all.N, all.N/10, 0)
	images, held := all.Take(training), all.Take(heldOut)
	stats := datasets.FitChannelStats(images, nil)
	pixels := func(m *datasets.Images) nets.Pixels {
		return nets.Pixels{Bytes: m.Pixels, Height: datasets.ImageSide, Width: datasets.ImageSide,
			Standardization: nets.Standardization{Mean: stats.Mean[:], Std: stats.Std[:]}}
	}

	// Model: p(class | image), with the layers as all linear maps and convolutions.
	layers, known := families[family]
	if !known {
		return fmt.Errorf("there are no layers %q; choose density or plain", family)
	}
	network, samples := nets.ResNet14(layers), 25
	if quick {
		network, samples = nets.ResNet{Layers: layers, Blocks: []int{1, 1}, Widths: []int{4, 8}, Stem: 4}, 2
	}
	backend, _, err := environment.OpenFor(environment.Images)
	if err != nil {
		return err
	}
	m, err := nets.New(backend, network, likelihood.Categorical{Classes: len(all.Classes)}, seed)
	if err != nil {
		return err
	}

	// Training: SGD for the network; Adam for the energy models, which train alone for one epoch first.
	const rate = 0.1
	fit := train.Trainer{Settings: train.Settings{
		Epochs: epochs, BatchSize: 128, Schedule: train.Cosine{Start: rate},
		Augmentation: datasets.Augmentation{Pad: 4, Flip: true}, Padding: 4,
		Groups: []train.Group{{Roles: []params.Role{params.Weight}, Optimizer: train.SGD{Momentum: 0.9, Decay: 1e-4}}}},
		Checkpoints: train.Checkpoints{Folder: folder},
		Notes:       func(note string) { fmt.Fprintln(os.Stderr, note) },
		Progress: func(p train.Progress) {
			fmt.Fprintf(os.Stderr, "\rstep %d of %d, loss %.3f ", p.Step, p.Steps, p.Losses.Total)
		},
	}
	if family == "density" {
		fit.PretrainEpochs, fit.LogLikelihoodScale = 1, 1
		fit.Groups = append(fit.Groups,
			train.Group{Roles: []params.Role{params.Variational}, Optimizer: train.SGD{Momentum: 0.9}},
			train.Group{Roles: []params.Role{params.Generative}, Optimizer: train.Adam{Decay: 1e-5}, Rate: 0.01 / rate})
	}
	if err := fit.Fit(ctx, m, train.Dataset{Inputs: pixels(images), Labels: images.Labels}); err != nil {
		return err
	}

	// Predictions: class probabilities and energies, means over draws of the noise.
	var p [3]*predict.Prediction
	for i, set := range []*datasets.Images{test, far, held} {
		if p[i], err = predict.Sample(ctx, m, pixels(set), predict.Options{Samples: samples, Energies: family == "density"}); err != nil {
			return err
		}
	}

	// Scores: of the test images, and of telling SVHN from them by the largest probability, and by how far the
	// energy at the last convolution is from its mean over held-out images.
	outcomes := metrics.NewOutcomes(p[0].Probabilities, p[0].Width, test.Labels)
	accuracy := metrics.Accuracy(p[0].Probabilities, p[0].Width, test.Labels)
	fmt.Fprintf(out, "test accuracy %.1f%%, ECE %.1f%%\n", 100*accuracy, 100*outcomes.ECE(15))
	told(out, "unlikely classes", metrics.MaxProbability(p[1].Probabilities, p[1].Width), outcomes.Confidence)
	if last := p[0].LastConvolution; last >= 0 {
		reference := p[2].Energies[last].Mean
		told(out, "energies", metrics.EnergyOOD(p[0].Energies[last].Mean, reference), metrics.EnergyOOD(p[1].Energies[last].Mean, reference))
	}
	return nil
}

// told prints how often the higher of two scores, one of each list, is of the second list.
func told(out io.Writer, by string, lower, higher []float64) {
	scores := append(append([]float64{}, lower...), higher...)
	isHigher := append(make([]bool, len(lower)), make([]bool, len(higher))...)
	for i := range higher {
		isHigher[len(lower)+i] = true
	}
	fmt.Fprintf(out, "SVHN told from CIFAR-10 by %s: AUROC %.3f\n", by, metrics.AUROC(scores, isHigher))
}
