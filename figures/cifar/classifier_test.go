package cifar

import (
	"bytes"
	"context"
	"encoding/gob"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/datasets"
	"densityuncertainty/dul"
	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/environment"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
)

func sequential(t *testing.T) compute.Backend {
	t.Helper()
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	backend, _ := must.Get2(environment.Open())(t)
	return backend
}

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

// fitted is a classifier trained for eight epochs of four batches, which takes so many steps with those of pretraining.
func fitted(t *testing.T, m methods.Method, wantSteps int) *Classifier {
	t.Helper()
	p := Paper(CIFAR10, ResNet14)
	p.Epochs, p.BatchSize = 8, 8
	steps := 0
	p.Progress = func(_ float64, note string) {
		if strings.Contains(note, "training") {
			steps++
		}
	}
	r := p.resolve(m)
	small := nets.ResNet{Layers: r.Layers.(nets.ConvLayers), Stem: 2, Blocks: []int{1}, Widths: []int{2}}
	c := must.Get(trainClassifier(context.Background(), sequential(t), p, m, r, small, bright(32)))(t)
	if steps != wantSteps {
		t.Errorf("%d steps, want %d", steps, wantSteps)
	}
	return c
}

func TestClassifier(t *testing.T) {
	c := fitted(t, methods.Density, 36)
	test := bright(10)
	p := must.Get(c.Predict(context.Background(), test, 2))(t)
	accuracy, err := metrics.Accuracy(p.Probabilities, 2, test.Labels)
	if err != nil || accuracy != 1 {
		t.Errorf("accuracy %v, %v", accuracy, err)
	}
	if got, want := p.LayerNames(), []string{"stem", "stage_0_block_0/conv_1", "stage_0_block_0/conv_2", "output"}; !reflect.DeepEqual(got, want) {
		t.Errorf("layers %q, want %q", got, want)
	}
	sample := p.LayerSample("test")
	if sample.Name != "test" || len(sample.Energies) != 4 || !reflect.DeepEqual(sample.Energies[2], p.LastEnergies()) {
		t.Errorf("layer sample %q of %d layers; the last convolution is not the third", sample.Name, len(sample.Energies))
	}

	strip := must.Get(p.Strip("row", 3, 0))(t)
	want := report.Picture{Pixels: test.Image(3), Label: "bright", Prediction: "bright", Energy: p.LastEnergies()[3],
		Probability: max(p.Probabilities[6], p.Probabilities[7])}
	want.Entropy = -p.Probabilities[6]*math.Log(p.Probabilities[6]) - p.Probabilities[7]*math.Log(p.Probabilities[7])
	got := strip.Pictures[0]
	if math.Abs(got.Entropy-want.Entropy) > 1e-12 {
		t.Errorf("entropy %v, want %v", got.Entropy, want.Entropy)
	}
	got.Entropy = want.Entropy
	if !reflect.DeepEqual(got, want) || strip.Pictures[1].Label != "dark" || strip.Title != "row" {
		t.Errorf("picture %+v, want %+v", got, want)
	}
	fails(t, "an image that is not there", errorOf(p.Strip("row", 10)), "no image 10 of made up")

	judged, err := p.Judged("method")
	if err != nil || judged.Name != "method" || len(judged.Outcomes.Right) != 10 || !judged.Outcomes.Right[0] {
		t.Errorf("judged %+v, %v", judged, err)
	}
	largest, err := p.MaxProbabilities()
	if err != nil || largest[3] != want.Probability {
		t.Errorf("largest probabilities %v, %v", largest, err)
	}
	if negative, err := p.NegativeMaxProbabilities(); err != nil || negative[3] != -want.Probability {
		t.Errorf("their negatives %v, %v", negative, err)
	}

	var b bytes.Buffer
	var back Predictions
	must.Do(t, gob.NewEncoder(&b).Encode(p))
	if err := gob.NewDecoder(&b).Decode(&back); err != nil || !reflect.DeepEqual(back, *p) {
		t.Errorf("kept and read again: %v", err)
	}
}

func TestClassifierWithoutEnergiesAndLabels(t *testing.T) {
	c := fitted(t, methods.Deterministic, 32)
	other := bright(4)
	other.Classes, other.Labels = []string{"0", "1"}, nil
	p := must.Get(c.Predict(context.Background(), other, 1))(t)
	strip := must.Get(p.Strip("row", 1))(t)
	if picture := strip.Pictures[0]; picture.Label != "" || !math.IsNaN(picture.Energy) || p.LastEnergies() != nil {
		t.Errorf("picture %+v", picture)
	}
	fails(t, "judged without labels", errorOf(p.Judged("method")), "made up has no labels")
	fails(t, "no images", errorOf(c.Predict(context.Background(), &datasets.Images{Name: "nothing"}, 1)), "no images of nothing")
	backend := sequential(t)
	fails(t, "training without labels", errorOf(TrainClassifier(context.Background(), backend, Paper(CIFAR10, ResNet14), methods.MFVI, other)), "0 labels")
	useless := methods.MFVI.Variant("", func(o *methods.Options) { o.Clip = true })
	fails(t, "training of a variant that is none", errorOf(TrainClassifier(context.Background(), backend, Paper(CIFAR10, ResNet14), useless, other)), "mfvi has no use for the option clip")
	fails(t, "checking it", Paper(CIFAR10, ResNet14).Check(useless), "mfvi has no use for the option clip")
	_, err := Paper(CIFAR10, ResNet14).Memory(useless)
	fails(t, "its memory", err, "mfvi has no use for the option clip")
	fails(t, "training of no network", errorOf(TrainClassifier(context.Background(), backend, Paper(CIFAR10, "none"), methods.MFVI, other)), `no network "none"`)
}

// An ensemble, and a Gaussian process, are trained and predict as any other method.
func TestClassifiersOfSeveralNetworksAndProcesses(t *testing.T) {
	two := methods.Ensemble
	two.Members = 2
	for _, c := range []struct {
		method methods.Method
		steps  int
	}{{two, 64}, {methods.SNGP, 32}} {
		t.Run(c.method.Name, func(t *testing.T) {
			test := bright(6)
			p := must.Get(fitted(t, c.method, c.steps).Predict(context.Background(), test, 3))(t)
			if accuracy, err := metrics.Accuracy(p.Probabilities, 2, test.Labels); err != nil || accuracy < 0.5 {
				t.Errorf("accuracy %v, %v", accuracy, err)
			}
		})
	}
}

func TestRanked(t *testing.T) {
	if got := Ranked([]float64{1, 3, 2, 3}); !reflect.DeepEqual(got, []int{1, 3, 2, 0}) {
		t.Errorf("ranked %v", got)
	}
}

func TestCosts(t *testing.T) {
	table := must.Get(Costs(sequential(t), nets.ResNet14, 10, Family{Name: "plain", Layers: baselines.Deterministic{}}, Family{Name: "LDL", Layers: dul.Density{}},
		Family{Name: "LDL, detached", Layers: dul.Density{Gradients: dul.Detached}}))(t)
	// The energy model of a layer has channels^2 size^2 + channels numbers:
	// 84 (stem) + 5 x 2320 + 272 + 4 x 9248 + 1056 + 3 x 36928 + 4160 (output).
	// Its operations, 0.058 GFLOP, come three times in a training step, and twice where the input has no gradient.
	for i, want := range [][]string{
		{"plain", "175,178", "0", "2.102 MB", "0.0533", "0.16", "1.00"},
		{"LDL", "341,266", "164,948", "4.755 MB", "0.111", "0.333", "2.08"},
		{"LDL, detached", "341,266", "164,948", "4.755 MB", "0.111", "0.276", "1.72"},
	} {
		if got := texts(table.Rows[i]); !reflect.DeepEqual(got, want) {
			t.Errorf("row %d: %q, want %q", i, got, want)
		}
	}
}

// texts are the name and the first lines of the cells of a row.
func texts(row report.Row) []string {
	all := []string{row.Name}
	for _, cell := range row.Cells {
		all = append(all, cell[0].Text)
	}
	return all
}

// A model of the mean of an image converges to it.
func TestMaps(t *testing.T) {
	images := bright(2)
	before, after := must.Get2(Maps(sequential(t), images, 200, func(s *model.Scope, x *graph.Node) (shown, loss *graph.Node) {
		values := conv.Channels(x)
		guess := params.New(s, values, "guess", params.Weight, params.Constant(0), values.Shape().Dimensions...)
		return guess, graph.ReduceAllMean(graph.Square(graph.Sub(values, guess)))
	}))(t)
	stats := datasets.FitChannelStats(images, nil)
	for i := range datasets.ImageSide * datasets.ImageSide { // the first channel of the first image
		want := (float64(images.Pixels[i])/255 - stats.Mean[0]) / stats.Std[0]
		if before[i] != 0 || math.Abs(float64(after[i])-want) > 0.05 {
			t.Fatalf("pixel %d: %v, then %v, want 0, then %v", i, before[i], after[i], want)
		}
	}
}
