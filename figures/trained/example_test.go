package trained_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"densityuncertainty/datasets"
	"densityuncertainty/dul"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/trained"
)

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
	opened, err := trained.Open(filepath.Join(folder, list[0].NetworkFile(0)), nets.MLP{Layers: layers, Widths: []int{20}}, likelihood.Gaussian{})
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
