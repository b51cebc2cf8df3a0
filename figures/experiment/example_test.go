package experiment_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/datasets"
	"densityuncertainty/dul"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/trained"
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

// A table with categories and missing numbers, as it is kept: a network trained on it answers rows of the file.
func ExampleOpened_PredictCells() {
	folder, err := os.MkdirTemp("", "beams")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	text := "wood,length,strength\n"
	for i := range 60 {
		length := fmt.Sprint(i % 10)
		if i%15 == 14 {
			length = "NA"
		}
		text += fmt.Sprintf("%s,%s,%d\n", []string{"oak", "ash"}[i%2], length, 100*(i%2)+i%10)
	}
	file := filepath.Join(folder, "beams.csv")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}

	set, err := datasets.CSV{Categories: []string{"wood"}, FillMissing: true}.Read(file)
	if err != nil {
		log.Fatal(err)
	}
	task := experiment.Task{Name: "beams", Data: experiment.Table{Set: set, Count: 1}, Network: nets.MLP{Widths: []int{20}}, Likelihood: likelihood.Gaussian{}}
	layers := dul.Density{InitStd: 0.1}
	list, err := task.Experiments(experiment.Adam(60, 10, 1e-2), 10, experiment.Method{Name: "density", Layers: layers})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := (experiment.Engine{Networks: folder}).Run(context.Background(), list...); err != nil {
		log.Fatal(err)
	}
	opened, err := trained.Open(filepath.Join(folder, experiment.NetworkFile(list[0], 0)), nets.MLP{Layers: layers, Widths: []int{20}}, likelihood.Gaussian{})
	if err != nil {
		log.Fatal(err)
	}
	for _, wood := range []string{"ash", "oak", "elm"} {
		answer, err := opened.PredictCells(context.Background(), wood, "NA")
		fmt.Println(wood, answer.Mean > 50, err)
	}
	// Output:
	// ash true <nil>
	// oak false <nil>
	// elm false trained: the row ["elm" "NA"]: datasets: column 1: wood: there is no category "elm"; there are ["ash" "oak"]
}
