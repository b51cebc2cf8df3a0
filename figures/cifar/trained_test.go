package cifar

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/environment/backendtest"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/cifar/predictions"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

// A run keeps the energies of all layers with its predictions, scores them, and keeps its trained network.
func TestRunsKeepLayersAndNetworks(t *testing.T) {
	r, _ := withMadeUpImages(t)
	r.Predictions, r.Networks = t.TempDir(), t.TempDir()
	e := tiny(methods.Density, oneEpoch)
	line := outcome(t, r, e)
	p := must.Get(predictions.Read(filepath.Join(r.Predictions, predictions.FileName(e.ID()))))(t)
	// the stem, two convolutions of each of six blocks, two shortcuts and the last layer
	last := slices.Index(p.Layers, "stage_2_block_1/conv_2")
	if len(p.Layers) != 16 || last < 0 || len(p.Others[0].Energy.Layers) != 16 || !slices.Equal(p.Energy.Layers[last], p.Energy.Mean) {
		t.Errorf("layers %q, the last convolution's is number %d, energies of %d layers", p.Layers, last, len(p.Others[0].Energy.Layers))
	}
	if auroc, has := line.Metrics["ood_svhn_auroc"+predictions.ByLayer(p.Layers[last])]; !has || auroc != line.Metrics["ood_svhn_auroc"+methods.ByEnergy] {
		t.Errorf("AUROC at the last convolution is %v, want %v", auroc, line.Metrics["ood_svhn_auroc"+methods.ByEnergy])
	}
	named, metadata, err := checkpoint.ReadTensors(filepath.Join(r.Networks, NetworkFile(e, 0, 1)))
	if err != nil || metadata[keyFormat] != networkFormat || !slices.ContainsFunc(slices.Collect(maps.Keys(named)), func(name string) bool { return strings.HasPrefix(name, "model/network/output/") }) {
		t.Errorf("the network's file has %d tensors and the metadata %v (error %v)", len(named), metadata, err)
	}
}

// A kept network predicts what its run predicted, and what is new to it; one that draws samples, or that is not there, or
// of another run, is refused.
func TestPredictAgain(t *testing.T) {
	r, _ := withMadeUpImages(t)
	r.Predictions, r.Networks = t.TempDir(), t.TempDir()
	e := tiny(methods.Deterministic, oneEpoch)
	r.images.files.svhn = func(context.Context, bool) (*datasets.Images, error) { return nil, nil }
	line := outcome(t, r, e)
	file := filepath.Join(r.Predictions, predictions.FileName(e.ID()))
	before := must.Get(predictions.Read(file))(t)

	later, _ := withMadeUpImages(t)
	later.Predictions = t.TempDir()
	var last float64
	var notes strings.Builder
	metrics := must.Get(later.Predict(t.Context(), e, r.Networks, forward(t, &last, &notes)))(t)
	after := must.Get(predictions.Read(filepath.Join(later.Predictions, predictions.FileName(e.ID()))))(t)
	if !slices.Equal(after.Probs, before.Probs) || !slices.Equal(after.HeldOutProbs, before.HeldOutProbs) || metrics[results.MetricNLL] != line.Metrics[results.MetricNLL] {
		t.Errorf("the network predicts %v..., its run %v...", after.Probs[:3], before.Probs[:3])
	}
	names := func(p *predictions.Predictions) (all []string) {
		for _, set := range p.Others {
			all = append(all, set.Name)
			if len(set.Probs) != 10*len(set.MaxProbability) {
				t.Errorf("set %s has %d probabilities of %d images", set.Name, len(set.Probs), len(set.MaxProbability))
			}
		}
		return all
	}
	if was, is := names(before), names(after); slices.Contains(was, svhnTest) || !slices.Contains(is, svhnTest) {
		t.Errorf("sets %q, later %q", was, is)
	}
	if last < 0.999 || strings.Contains(notes.String(), "training") || !strings.Contains(notes.String(), "predicting") {
		t.Errorf("progress ended at %v, after\n%s", last, notes.String())
	}

	fails(t, "noise", errorOf(later.Predict(t.Context(), tiny(methods.Density, oneEpoch), r.Networks, ignore)), "networks of density draw samples")
	other := tiny(methods.Deterministic, oneEpoch, func(p *Protocol) { p.Seeds = []uint64{1} })
	if _, err := later.Predict(t.Context(), other, r.Networks, ignore); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a network that there is not: %v", err)
	}
	must.Do(t, os.Rename(filepath.Join(r.Networks, NetworkFile(e, 0, 1)), filepath.Join(r.Networks, NetworkFile(other, 0, 1))))
	fails(t, "another run's", errorOf(later.Predict(t.Context(), other, r.Networks, ignore)), "is the network of another run")
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

// processorLine is a quick run of a method with its network, made into one of the protocol processor.
func processorLine(t *testing.T, folder string, m methods.Method) results.Result {
	t.Helper()
	r, _ := withMadeUpImages(t)
	r.Networks = t.TempDir()
	e := tiny(m, oneEpoch)
	line := outcome(t, r, e)
	named, metadata := must.Get2(checkpoint.ReadTensors(filepath.Join(r.Networks, NetworkFile(e, 0, 1))))(t)
	p := Paper(CIFAR10, ResNet14).Processor()
	if n, has := searchOf(m.Name); has {
		p = n.with(p, committedChoice()[m.Name])
	}
	line.Experiment = p.Experiments(m)[0]
	line.ID = line.Experiment.ID()
	text := must.Get(json.Marshal(line.Experiment))(t)
	metadata[keyExperiment] = string(text)
	must.Do(t, checkpoint.WriteTensors(filepath.Join(folder, NetworkFile(line.Experiment, 0, 1)), named, metadata))
	return line
}

// What is exported is loaded by its name, and says of images what the network that was trained says; what is wrong with
// a file is named.
func TestExportedNetworks(t *testing.T) {
	kept, to := t.TempDir(), t.TempDir()
	lines := []results.Result{processorLine(t, kept, methods.Deterministic), processorLine(t, kept, methods.Density)}
	names, missing, err := ExportNetworks(lines, kept, filepath.Join(to, "networks"))
	if err != nil || !slices.Equal(names, []string{"deterministic", "density"}) || !slices.Equal(missing, []string{"rank1", "density-constant"}) {
		t.Fatalf("exported %q without %q: %v", names, missing, err)
	}
	// What is there is not replaced by less, nor by networks of other trainings than their lines.
	before := must.Get(os.ReadFile(filepath.Join(to, "networks", networksList)))(t)
	later := slices.Clone(lines)
	later[1].Version += " and more"
	for want, lines := range map[string][]results.Result{
		"it has the network of deterministic, which is missing in " + kept: lines[1:],
		"so they are of two trainings":                                     later,
	} {
		if _, _, err := ExportNetworks(lines, kept, filepath.Join(to, "networks")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if after := must.Get(os.ReadFile(filepath.Join(to, "networks", networksList)))(t); !slices.Equal(before, after) {
			t.Errorf("%q: the list is another", want)
		}
	}
	backend := backendtest.Open(t)
	images := madeUp("CIFAR-10 test", 12, 10, 2)
	for i, name := range names {
		direct := must.Get(LoadClassifier(backend, []string{filepath.Join(kept, NetworkFile(lines[i].Experiment, 0, 1))}))(t)
		loaded := must.Get(trainedIn(os.DirFS(to), backend, name))(t)
		a, err1 := direct.Predict(t.Context(), images, 2)
		b, err2 := loaded.Predict(t.Context(), images, 2)
		if err := errors.Join(err1, err2); err != nil || !slices.Equal(a.Probabilities, b.Probabilities) || !slices.Equal(loaded.Classes[:2], []string{"airplane", "automobile"}) ||
			!strings.HasPrefix(loaded.Origin, name+": 10 epochs of 45,000 images of CIFAR-10") {
			t.Errorf("%s: of %v it says %v, want %v (%v)", name, loaded.Classes[:2], b.Probabilities[:3], a.Probabilities[:3], err)
		}
	}
	if _, err := trainedIn(os.DirFS(to), backend, "rank1"); err == nil || !strings.Contains(err.Error(), `there are ["deterministic" "density"]`) {
		t.Errorf("a network that there is not: %v", err)
	}

	file := filepath.Join(to, "networks", "density.safetensors")
	for _, c := range []struct {
		name, want string
		spoil      func(named map[string]*tensors.Tensor, metadata map[string]string)
	}{
		{"missing", "the network has variable /model/network/stem/", func(named map[string]*tensors.Tensor, _ map[string]string) {
			maps.DeleteFunc(named, func(name string, _ *tensors.Tensor) bool { return strings.HasPrefix(name, "model/network/stem/") })
		}},
		{"too much", "the file has variable /model/network/other, the network has not", func(named map[string]*tensors.Tensor, _ map[string]string) {
			named["model/network/other"] = tensors.FromValue([]float32{1})
		}},
		{"shape", "has the shape", func(named map[string]*tensors.Tensor, _ map[string]string) {
			for name := range named {
				named[name] = tensors.FromValue([]float32{1, 2, 3})
			}
		}},
		{"format", "its format is", func(_ map[string]*tensors.Tensor, metadata map[string]string) { delete(metadata, keyFormat) }},
		{"channels", "means and deviations of 0", func(_ map[string]*tensors.Tensor, metadata map[string]string) { metadata[keyStandard] = "{}" }},
		{"experiment", "reading how it was made", func(_ map[string]*tensors.Tensor, metadata map[string]string) { metadata[keyExperiment] = "" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			named, metadata := must.Get2(checkpoint.ReadTensors(file))(t)
			c.spoil(named, metadata)
			spoilt := filepath.Join(t.TempDir(), "a.safetensors")
			must.Do(t, checkpoint.WriteTensors(spoilt, named, metadata))
			if _, err := LoadClassifier(backend, []string{spoilt}); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), spoilt) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if _, err := LoadClassifier(backend, []string{file, file}); err == nil || !strings.Contains(err.Error(), "is named twice") {
		t.Errorf("a file twice: %v", err)
	}
	content := must.Get(os.ReadFile(file))(t)
	content[len(content)-1] ^= 1
	must.Do(t, os.WriteFile(file, content, 0o644))
	if _, err := trainedIn(os.DirFS(to), backend, "density"); err == nil || !strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("a changed file: %v", err)
	}
	if _, err := LoadClassifier(backend, nil); err == nil {
		t.Error("no file: no error")
	}
}

// The networks that are part of the program can be loaded, take little room, and are of runs whose lines are stored.
func TestTrainedNetworks(t *testing.T) {
	list := must.Get(listed(networkFiles, "networks"))(t)
	stored := results.ByID(must.Get(results.Committed())(t))
	for _, n := range list {
		if line, _ := stored.Find(n.Line.Experiment); !maps.Equal(line.Metrics, n.Line.Metrics) || line.Version != n.Line.Version || !line.Finished.Equal(n.Line.Finished) {
			t.Errorf("the line of %s is not the stored one: %v", n.Name, n.Line)
		}
		if e := n.Line.Experiment; e.Scale != results.Processor || e.Seed != 0 || !hasChosen(e) {
			t.Errorf("%s is of another protocol: %v", n.Name, e)
		}
	}
	backend, size := backendtest.Open(t), 0
	for _, n := range list {
		c := must.Get(Trained(backend, n.Name))(t)
		file := must.Get(networkFiles.ReadFile("networks/" + n.Name + ".safetensors"))(t)
		if size += len(file); c.Method.Name != n.Line.Experiment.Method || n.Line.Experiment.Network != ResNet14 {
			t.Errorf("%s: a network of %s by the run %v", n.Name, c.Method.Name, n.Line.Experiment)
		}
	}
	if size > 8<<20 {
		t.Errorf("the networks take %d bytes, more than 8 MiB", size)
	}
}
