package cifar

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/nets"
	"densityuncertainty/environment"
	"densityuncertainty/environment/backendtest"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
)

var kept = flag.String("networks", "", "a folder that \"reproduce run processor --networks\" kept networks in, which become those of the program")

// export makes the networks of the program of kept ones and their results. It reads the training images.
func export(t *testing.T, from string) {
	x := must.Get(committed())(t)
	for _, m := range exported {
		e := exportedExperiment(m)
		r, _ := x.Find(e)
		named, metadata := must.Get2(checkpoint.ReadTensors(filepath.Join(from, e.NetworkFile(0))))(t)
		if metadata["version"] != r.Version {
			t.Fatalf("the network of %v is of version %q and its result of %q, so they are of two trainings", e, metadata["version"], r.Version)
		}
		d := must.Get(e.Task.Data.Load(t.Context(), e.Split))(t)
		metadata[standardKey] = string(must.Get(json.Marshal(d.Train.Inputs.(nets.Pixels).Standardization))(t))
		metadata[metricsKey] = fmt.Sprintf(`{"%s":%v,"%s":%v,"%s":%v}`, experiment.MetricAccuracy, r.Metrics[experiment.MetricAccuracy],
			experiment.MetricNLL, r.Metrics[experiment.MetricNLL], experiment.MetricECE, r.Metrics[experiment.MetricECE])
		var content bytes.Buffer
		must.Do(t, checkpoint.EncodeTensors(&content, named, metadata))
		must.Do(t, os.WriteFile(networkFile(m.Key), content.Bytes(), 0o644))
	}
}

// The networks that are part of the program can be loaded, predict, take little room, and are those of stored results.
func TestTrainedNetworks(t *testing.T) {
	if *kept != "" {
		export(t, *kept)
		return
	}
	backend, size := backendtest.Open(t), 0
	x := must.Get(committed())(t)
	_, test := must.Get2(datasets.CIFAR10Sample())(t)
	for _, m := range exported {
		name := m.Key
		c := must.Get(Trained(backend, name))(t)
		if !strings.HasPrefix(c.Origin, name+": 10 epochs of 45,000 images of CIFAR-10, seed 0; on 10,000 test images accuracy 8") {
			t.Errorf("the origin is %s", c.Origin)
		}
		e := exportedExperiment(m)
		r, has := x.Find(e)
		file := must.Get(networkFiles.ReadFile(networkFile(name)))(t)
		_, metadata := must.Get2(checkpoint.ParseTensors(file))(t)
		if nll := fmt.Sprintf(`"nll":%v`, r.Metrics[experiment.MetricNLL]); !has || !strings.Contains(metadata[metricsKey], nll) || metadata["version"] != r.Version || metadata["experiment"] != e.ID() {
			t.Errorf("%s has %v, and is of another result than %+v", name, metadata, r)
		}
		size += len(file)
	}
	if size > 8<<20 {
		t.Errorf("the networks take %d bytes, more than 8 MiB", size)
	}
	c := must.Get(Trained(backend, "deterministic"))(t)
	done := 0.0
	c.Progress = func(part float64, _ string) { done = part }
	some := Some(test, 100, 1)
	said := must.Get(c.Predict(t.Context(), some, 1))(t)
	right := 0
	for _, at := range must.Get(said.Judged("test"))(t).Outcomes.Right {
		if at {
			right++
		}
	}
	if right < 65 || done != 1 { // four standard deviations below 0.806
		t.Errorf("%d of 100 are right, and progress ended at %v", right, done)
	}
	must.GetErr(Trained(backend, "sngp"))(t, `there are ["deterministic" "rank1" "density" "density-constant"]`)
}

// Held-out pictures are no training images, neither here nor in the presets.
func TestPicturesOfTheSample(t *testing.T) {
	p := must.Get(OpenPictures())(t)
	if p.Training.N != 800 || p.HeldOut.N != 200 || p.Test.N != 1000 || p.CIFAR100.N != 500 || p.SVHN.N != 500 {
		t.Errorf("%d, %d, %d, %d and %d images", p.Training.N, p.HeldOut.N, p.Test.N, p.CIFAR100.N, p.SVHN.N)
	}
	trained, _ := datasets.HoldOut(trainingImages, heldOut, heldOutSeed)
	slices.Sort(trained)
	for _, i := range p.HeldOut.Official {
		if _, found := slices.BinarySearch(trained, i); found || slices.Contains(p.Training.Official, i) {
			t.Errorf("image %d is held out and trained on", i)
		}
	}
	if some := Some(p.SVHN, 7, 1); some.N != 7 || Some(some, 9, 2).N != 7 {
		t.Errorf("7 and then 9 of these are %d and %d", some.N, Some(some, 9, 2).N)
	}
}

// An experiment is trained on any images, and predicts any.
func TestTrainAndPredict(t *testing.T) {
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	train, test := must.Get2(datasets.CIFAR10Sample())(t)
	hundred := must.Get(datasets.CIFAR100Sample())(t)
	e := seeded(Paper, 1).Of(ten, methods.Density)[0]
	e.Recipe.Epochs, e.Recipe.BatchSize, e.Recipe.Samples = 1, 16, 2
	said := must.Get(TrainAndPredict(t.Context(), e, nil, Some(train, 32, 1), Some(test, 8, 1), Some(hundred, 5, 1)))(t)
	if len(said) != 2 || len(said[0].Probabilities) != 80 || len(said[1].Probabilities) != 50 || len(said[0].LastEnergies()) != 8 || len(said[0].LayerNames()) != 16 {
		t.Fatalf("it says %+v", said)
	}
	if judged := must.Get(said[0].Judged("test"))(t); len(judged.Outcomes.Right) != 8 {
		t.Errorf("%d outcomes", len(judged.Outcomes.Right))
	}
	must.GetErr(said[1].Judged("other"))(t, "no labels that the network knows")
	bitmaps := must.Get(said[0].Bitmaps(0, 3))(t)
	label, said3, _ := strings.Cut(bitmaps[1].Caption, "\n")
	if len(bitmaps) != 2 || label != said[0].Names[said[0].Images.Labels[3]] || strings.HasPrefix(said3, "✗ ") == strings.HasPrefix(said3, label) {
		t.Errorf("bitmaps with the captions %q", bitmaps[1].Caption)
	}
	must.GetErr(said[0].Bitmaps(8))(t, "no image 8")
	svhn := must.Get(datasets.SVHNSample())(t)
	must.GetErr(TrainAndPredict(t.Context(), e, nil, svhn, svhn))(t, "neither Targets nor Labels")
}
