package inspect_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/datasets"
	"densityuncertainty/dul"
	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment"
	"densityuncertainty/figures/inspect"
	"densityuncertainty/figures/render"
)

// bright are n images of two classes, dark and bright ones.
func bright(n int) *datasets.Images {
	m := &datasets.Images{Name: "made up", Classes: []string{"dark", "bright"}, N: n, Pixels: make([]byte, n*datasets.ImageSize), Labels: make([]int, n)}
	for i := range n {
		m.Labels[i] = i % 2
		for k, image := 0, m.Image(i); k < len(image); k++ {
			image[k] = byte(20 + 150*(i%2) + (7*k+13*i)%50)
		}
	}
	return m
}

// fitted is a model trained for four epochs of four batches, which takes so many
// steps with those of pretraining.
func fitted(t *testing.T, layers nets.ConvLayers, wantSteps int) *inspect.Model {
	t.Helper()
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	backend, _, err := environment.Open()
	if err != nil {
		t.Fatal(err)
	}
	recipe := train.ResNet14(2)
	recipe.Epochs, recipe.BatchSize = 4, 8
	steps := 0
	m, err := inspect.Training{
		Network: nets.ResNet{Layers: layers, Stem: 2, Blocks: []int{1}, Widths: []int{2}}, Recipe: recipe, Images: bright(32), Seed: 1,
		Progress: func(done float64, note string) {
			if strings.Contains(note, "training") {
				steps++
			}
		},
	}.Fit(context.Background(), backend)
	if err != nil {
		t.Fatal(err)
	}
	if steps != wantSteps {
		t.Errorf("%d steps, want %d", steps, wantSteps)
	}
	return m
}

func TestInspect(t *testing.T) {
	m := fitted(t, dul.Density{}, 20)
	test := bright(10)
	views, err := m.Look(context.Background(), test, 2)
	if err != nil {
		t.Fatal(err)
	}
	accuracy, err := metrics.Accuracy(views.Probabilities, 2, test.Labels)
	if err != nil || accuracy != 1 {
		t.Errorf("accuracy %v, %v", accuracy, err)
	}
	if got, want := views.Layers(), []string{"stem", "stage_0_block_0/conv_1", "stage_0_block_0/conv_2", "output"}; !reflect.DeepEqual(got, want) {
		t.Errorf("layers %q, want %q", got, want)
	}
	sample := views.LayerSample("test")
	if sample.Name != "test" || len(sample.Energies) != 4 || !reflect.DeepEqual(sample.Energies[2], views.LastEnergies()) {
		t.Errorf("layer sample %q of %d layers; the last convolution is not the third", sample.Name, len(sample.Energies))
	}

	strip, err := views.Strip("row", 3, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := render.Picture{Pixels: test.Image(3), Label: "bright", Prediction: "bright", Energy: views.LastEnergies()[3],
		Probability: max(views.Probabilities[6], views.Probabilities[7])}
	want.Entropy = -views.Probabilities[6]*math.Log(views.Probabilities[6]) - views.Probabilities[7]*math.Log(views.Probabilities[7])
	got := strip.Pictures[0]
	if math.Abs(got.Entropy-want.Entropy) > 1e-12 {
		t.Errorf("entropy %v, want %v", got.Entropy, want.Entropy)
	}
	got.Entropy = want.Entropy
	if !reflect.DeepEqual(got, want) || strip.Pictures[1].Label != "dark" || strip.Title != "row" {
		t.Errorf("picture %+v, want %+v", got, want)
	}
	if _, err := views.Strip("row", 10); err == nil || !strings.Contains(err.Error(), "no image 10 of made up") {
		t.Errorf("an image that is not there: %v", err)
	}

	judged, err := views.Judged("method")
	if err != nil || judged.Name != "method" || len(judged.Outcomes.Right) != 10 || !judged.Outcomes.Right[0] {
		t.Errorf("judged %+v, %v", judged, err)
	}
	largest, err := views.MaxProbabilities()
	if err != nil || largest[3] != want.Probability {
		t.Errorf("largest probabilities %v, %v", largest, err)
	}
	if doubts, err := views.Doubts(); err != nil || doubts[3] != -want.Probability {
		t.Errorf("doubts %v, %v", doubts, err)
	}

	var b bytes.Buffer
	var back inspect.Views
	if err := gob.NewEncoder(&b).Encode(views); err != nil {
		t.Fatal(err)
	}
	if err := gob.NewDecoder(&b).Decode(&back); err != nil || !reflect.DeepEqual(back, *views) {
		t.Errorf("kept and read again: %v", err)
	}
}

func TestWithoutEnergiesAndLabels(t *testing.T) {
	m := fitted(t, baselines.Deterministic{}, 16)
	other := bright(4)
	other.Classes, other.Labels = []string{"0", "1"}, nil
	views, err := m.Look(context.Background(), other, 1)
	if err != nil {
		t.Fatal(err)
	}
	strip, err := views.Strip("row", 1)
	if err != nil {
		t.Fatal(err)
	}
	if p := strip.Pictures[0]; p.Label != "" || !math.IsNaN(p.Energy) || views.LastEnergies() != nil {
		t.Errorf("picture %+v", p)
	}
	if _, err := views.Judged("method"); err == nil || !strings.Contains(err.Error(), "made up has no labels") {
		t.Errorf("judged without labels: %v", err)
	}
	if _, err := (inspect.Training{Images: other}).Fit(context.Background(), m.Classifier.Backend); err == nil || !strings.Contains(err.Error(), "0 labels") {
		t.Errorf("training without labels: %v", err)
	}
}

func TestRanked(t *testing.T) {
	if got := inspect.Ranked([]float64{1, 3, 2, 3}); !reflect.DeepEqual(got, []int{1, 3, 2, 0}) {
		t.Errorf("ranked %v", got)
	}
}

func TestCosts(t *testing.T) {
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	backend, _, err := environment.Open()
	if err != nil {
		t.Fatal(err)
	}
	table, err := inspect.Costs(backend, nets.ResNet14, 10, inspect.Family{Name: "plain", Layers: baselines.Deterministic{}}, inspect.Family{Name: "LDL", Layers: dul.Density{Gradients: dul.Detached}})
	if err != nil {
		t.Fatal(err)
	}
	// The energy model of a layer has channels^2 size^2 + channels numbers:
	// 84 (stem) + 5 x 2320 + 272 + 4 x 9248 + 1056 + 3 x 36928 + 4160 (output).
	for i, want := range [][]string{
		{"plain", "175,178", "0", "2.102 MB", "0.0533", "0.16", "1.00"},
		{"LDL", "341,266", "164,948", "4.755 MB", "0.111", "0.276", "1.72"},
	} {
		got := []string{table.Rows[i].Name}
		for _, cell := range table.Rows[i].Cells {
			got = append(got, cell[0].Text)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("row %d: %q, want %q", i, got, want)
		}
	}
}

// A model of the mean of an image converges to it.
func TestMaps(t *testing.T) {
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	backend, _, err := environment.Open()
	if err != nil {
		t.Fatal(err)
	}
	images := bright(2)
	before, after, err := inspect.Maps(backend, images, 200, func(s *model.Scope, x *graph.Node) (shown, loss *graph.Node) {
		values := conv.Channels(x)
		guess := params.New(s, values, "guess", params.Weight, params.Constant(0), values.Shape().Dimensions...)
		return guess, graph.ReduceAllMean(graph.Square(graph.Sub(values, guess)))
	})
	if err != nil {
		t.Fatal(err)
	}
	stats := datasets.FitChannelStats(images, nil)
	for i := range datasets.ImageSide * datasets.ImageSide { // the first channel of the first image
		want := (float64(images.Pixels[i])/255 - stats.Mean[0]) / stats.Std[0]
		if before[i] != 0 || math.Abs(float64(after[i])-want) > 0.05 {
			t.Fatalf("pixel %d: %v, then %v, want 0, then %v", i, before[i], after[i], want)
		}
	}
}

func TestCommitted(t *testing.T) {
	made, err := inspect.Committed("ood-svhn", "cifar10-wrn")
	if err != nil || len(made) != 2 || !strings.Contains(made[0], "Out-of-distribution") || !strings.Contains(made[1], "WRN-28-10") {
		t.Errorf("%d tables, %v", len(made), err)
	}
	if _, err := inspect.Committed("cifar11"); err == nil || !strings.Contains(err.Error(), `"cifar11"`) {
		t.Errorf("a table that is not there: %v", err)
	}
}
