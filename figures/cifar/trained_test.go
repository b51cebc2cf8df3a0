package cifar

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/nets"
	"densityuncertainty/environment/backendtest"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/experiment/methods"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// The networks that are part of the program can be loaded, predict, take little room, and are those of stored results.
func TestTrainedNetworks(t *testing.T) {
	backend, size := backendtest.Open(t), 0
	x := must.Get(tables.Committed())(t)
	_, test := must.Get2(datasets.CIFAR10Sample())(t)
	var names []string
	for _, n := range must.Get(listed(networkFiles, networksFolder))(t) {
		names = append(names, n.Name)
		c := must.Get(Trained(backend, n.Name))(t)
		if !strings.HasPrefix(c.Origin, n.Name+": 10 epochs of 45,000 images of CIFAR-10, seed 0; on all test images accuracy ") {
			t.Errorf("the origin is %s", c.Origin)
		}
		i := slices.IndexFunc(exported, func(m experiment.Method) bool { return methods.NameOf(m) == n.Name })
		r, has := x.Find(exportedExperiment(exported[i]))
		file := must.Get(networkFiles.ReadFile("networks/" + n.Name + networkExtension))(t)
		_, metadata := must.Get2(checkpoint.ParseTensors(file))(t)
		if !has || r.Metrics[results.MetricNLL] != n.Metrics[results.MetricNLL] || metadata[versionKey] != r.Version {
			t.Errorf("%s is of version %s, and of another result than %+v", n.Name, metadata[versionKey], r)
		}
		size += len(file)
	}
	if want := []string{"deterministic", "rank1", "density", "density-constant"}; !slices.Equal(names, want) || size > 8<<20 {
		t.Errorf("the networks %q take %d bytes; want %q and at most 8 MiB", names, size, want)
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
	for _, c := range []struct {
		name, want string
		spoil      func(named map[string]*tensors.Tensor, n *listedNetwork)
	}{
		{"missing", "the network has variable /model/network/stem/", func(named map[string]*tensors.Tensor, _ *listedNetwork) {
			maps.DeleteFunc(named, func(name string, _ *tensors.Tensor) bool { return strings.HasPrefix(name, "model/network/stem/") })
		}},
		{"too much", "the file has variable /model/network/other, the network has not", func(named map[string]*tensors.Tensor, _ *listedNetwork) {
			named["model/network/other"] = tensors.FromValue([]float32{1})
		}},
		{"shape", "has the shape", func(named map[string]*tensors.Tensor, _ *listedNetwork) {
			for name := range named {
				named[name] = tensors.FromValue([]float32{1, 2, 3})
			}
		}},
		{"experiment", "export it again", func(_ map[string]*tensors.Tensor, n *listedNetwork) { n.Experiment = "another" }},
		{"changed", "SHA-256", func(_ map[string]*tensors.Tensor, n *listedNetwork) { n.SHA256 = "another" }},
	} {
		folder := filepath.Join(t.TempDir(), networksFolder)
		must.Do(t, os.Mkdir(folder, 0o755))
		n := must.Get(listed(networkFiles, networksFolder))(t)[0]
		named, metadata := must.Get2(checkpoint.ParseTensors(content))(t)
		n.SHA256 = ""
		c.spoil(named, &n)
		file := filepath.Join(folder, "deterministic"+networkExtension)
		must.Do(t, checkpoint.WriteTensors(file, named, metadata))
		if n.SHA256 == "" {
			n.SHA256 = sumOf(must.Get(os.ReadFile(file))(t))
		}
		must.Do(t, os.WriteFile(filepath.Join(folder, networksList), must.Get(json.Marshal([]listedNetwork{n}))(t), 0o644))
		fails(t, c.name, errorOf(trainedIn(os.DirFS(filepath.Dir(folder)), backend, "deterministic")), c.want)
	}
}

// Networks that an engine kept are exported with what their results say. The folder never gets less than it has, nor networks
// of other trainings than their results.
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
		named, _ := must.Get2(checkpoint.ParseTensors(content))(t)
		must.Do(t, checkpoint.WriteTensors(filepath.Join(kept, e.ID()+networkExtension), named, map[string]string{versionKey: "v1"}))
	}
	names, missing, err := exportNetworks(index(found...), kept, to, loaded)
	if err != nil || !slices.Equal(names, []string{"deterministic", "density"}) || !slices.Equal(missing, []string{"rank1", "density-constant"}) {
		t.Fatalf("exported %q without %q: %v", names, missing, err)
	}
	c := must.Get(trainedIn(os.DirFS(filepath.Dir(to)), backendtest.Open(t), "density"))(t)
	if !slices.Equal(c.standardization.Std, standard.Std) || !strings.HasSuffix(c.Origin, "accuracy 80.0 %, NLL 0.500, ECE 0.020") {
		t.Errorf("it was exported as %+v", c)
	}
	before := must.Get(os.ReadFile(filepath.Join(to, networksList)))(t)
	later := slices.Clone(found)
	later[1].Version = "v2"
	for want, some := range map[string][]experiment.Result{
		"it has the network of deterministic, which is missing in " + kept: found[1:],
		"so they are of two trainings":                                     later,
	} {
		_, _, err := exportNetworks(index(some...), kept, to, loaded)
		fails(t, want, err, want)
		if after := must.Get(os.ReadFile(filepath.Join(to, networksList)))(t); !slices.Equal(before, after) {
			t.Errorf("%q: the list is another", want)
		}
	}
}
