package cifar

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/nets"
	"densityuncertainty/environment/backendtest"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
)

var kept = flag.String("networks", "", "a folder that \"reproduce run processor --networks\" kept networks in, which become those of the program")

// export makes the networks of the program of kept ones and their results. It reads the training images.
func export(t *testing.T, from string) {
	x := must.Get(committed())(t)
	for _, m := range exported {
		e := exportedExperiment(m)
		r, _ := x.Find(e)
		named, metadata := must.Get2(checkpoint.ReadTensors(filepath.Join(from, experiment.NetworkFile(e, 0))))(t)
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
	fails(t, "a network that there is not", errorOf(Trained(backend, "sngp")), `there are ["deterministic" "rank1" "density" "density-constant"]`)
}
