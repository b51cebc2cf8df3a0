package experiment_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"os"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/figures/experiment"
)

// A network of your own on sequences of your own, with two methods, kept in a folder: called again, it resumes.
func Example() {
	transformer := func(layers nets.Layers, s *model.Scope, x *graph.Node, classes int) *graph.Node {
		h := layers.Dense(s.In("embed"), x, 8)
		q, k, v := layers.Dense(s.In("query"), h, 8), layers.Dense(s.In("key"), h, 8), layers.Dense(s.In("value"), h, 8)
		scores := graph.MulScalar(graph.Einsum("bqd,bkd->bqk", q, k), 1/math.Sqrt(8))
		h = graph.Add(h, graph.Einsum("bqk,bkd->bqd", graph.Softmax(scores, -1), v))
		return layers.Dense(s.In("output"), graph.ReduceMean(h, 1), classes)
	}
	folder, err := os.MkdirTemp("", "runs")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)

	task := experiment.Task{
		Name:       "my sequences",
		Data:       experiment.Arrays{Train: sequences(60), Sets: []experiment.Set{{Name: "test", Dataset: sequences(20)}}},
		Network:    nets.Func{Name: "transformer-1", Build: transformer},
		Likelihood: likelihood.Categorical{Classes: 2},
		Metrics:    []experiment.Metric{experiment.Classification},
	}
	list, err := task.Experiments(experiment.Adam(20, 16, 1e-2), 10,
		experiment.Method{Name: "density", Layers: dul.Density{InitStd: 0.01}},
		experiment.Method{Name: "plain", Layers: baselines.Deterministic{}})
	if err != nil {
		log.Fatal(err)
	}
	results, err := experiment.Engine{Store: &experiment.Store{Folder: folder}}.Run(context.Background(), list...)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range results {
		fmt.Printf("%s: %.0f%% right\n", r.Method, 100*r.Metrics["accuracy"])
	}
	// Output:
	// density: 100% right
	// plain: 100% right
}
