package cifar

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/nets"
	"densityuncertainty/environment/backendtest"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

// The networks that are part of the program can be loaded, predict, take little room, and are those of stored results.
func TestTrainedNetworks(t *testing.T) {
	backend, size := backendtest.Open(t), 0
	x := must.Get(committed())(t)
	_, test := must.Get2(datasets.CIFAR10Sample())(t)
	for _, m := range exported {
		name := methods.NameOf(m)
		c := must.Get(Trained(backend, name))(t)
		if !strings.HasPrefix(c.Origin, name+": 10 epochs of 45,000 images of CIFAR-10, seed 0; on 10,000 test images accuracy 8") {
			t.Errorf("the origin is %s", c.Origin)
		}
		r, has := x.Find(exportedExperiment(m))
		file := must.Get(networkFiles.ReadFile("networks/" + name + networkExtension))(t)
		_, metadata := must.Get2(checkpoint.ParseTensors(file))(t)
		if nll := fmt.Sprintf(`"nll":%v`, r.Metrics[results.MetricNLL]); !has || !strings.Contains(metadata[metricsKey], nll) || metadata[experiment.VersionKey] != r.Version {
			t.Errorf("%s is of version %s, and of another result than %+v", name, metadata[experiment.VersionKey], r)
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
	fails(t, "a network that there is not", errorOf(Trained(backend, "sngp")), `there are ["deterministic" "rank1" "density" "density-constant"]`)
}

// What of a file is not as it should be is named.
func TestDamagedNetworks(t *testing.T) {
	backend := backendtest.Open(t)
	content := must.Get(networkFiles.ReadFile("networks/deterministic" + networkExtension))(t)
	for want, spoil := range map[string]func(metadata map[string]string){
		`the file has the experiment "another", want`: func(metadata map[string]string) { metadata["experiment"] = "another" },
		`the file has the format ""`:                  func(metadata map[string]string) { delete(metadata, "format") },
		"reading the metadata":                        func(metadata map[string]string) { delete(metadata, standardKey) },
	} {
		folder := filepath.Join(t.TempDir(), networksFolder)
		must.Do(t, os.Mkdir(folder, 0o755))
		named, metadata := must.Get2(checkpoint.ParseTensors(content))(t)
		spoil(metadata)
		must.Do(t, checkpoint.WriteTensors(filepath.Join(folder, "deterministic"+networkExtension), named, metadata))
		fails(t, want, errorOf(trainedIn(os.DirFS(filepath.Dir(folder)), backend, "deterministic")), want)
	}
}

// Networks that an engine kept are exported with what their results say, unless they are of other trainings.
func TestExportNetworks(t *testing.T) {
	kept, to := t.TempDir(), filepath.Join(t.TempDir(), networksFolder)
	standard := nets.Standardization{Mean: []float64{0.1, 0.2, 0.3}, Std: []float64{1, 2, 3}}
	loaded := func(experiment.Experiment) (nets.Standardization, error) { return standard, nil }
	var found []experiment.Result
	for _, m := range []experiment.Method{methods.Deterministic, methods.Density} {
		e := exportedExperiment(m)
		r := resultsOf(measuring(0.8, 0.02, 0.5, 0), experiment.Experiments{e})[0]
		r.Version = "v1"
		found = append(found, r)
		content := must.Get(networkFiles.ReadFile("networks/" + methods.NameOf(m) + networkExtension))(t)
		named, metadata := must.Get2(checkpoint.ParseTensors(content))(t)
		delete(metadata, metricsKey)
		metadata[experiment.VersionKey] = "v1"
		must.Do(t, checkpoint.WriteTensors(filepath.Join(kept, experiment.NetworkFile(e, 0)), named, metadata))
	}
	names, missing, err := exportNetworks(index(found...), kept, to, loaded)
	if err != nil || !slices.Equal(names, []string{"deterministic", "density"}) || !slices.Equal(missing, []string{"rank1", "density-constant"}) {
		t.Fatalf("exported %q without %q: %v", names, missing, err)
	}
	c := must.Get(trainedIn(os.DirFS(filepath.Dir(to)), backendtest.Open(t), "density"))(t)
	if !slices.Equal(c.standardization.Std, standard.Std) || !strings.HasSuffix(c.Origin, "accuracy 80.0 %, NLL 0.500, ECE 0.020") {
		t.Errorf("it was exported as %+v", c)
	}
	found[1].Version = "v2"
	_, _, err = exportNetworks(index(found...), kept, to, loaded)
	fails(t, "a network of another training", err, "so they are of two trainings")
}
