package metrics

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"

	"densityuncertainty/environment/must"
)

func TestDempsterShafer(t *testing.T) {
	got := DempsterShafer([]float64{0, 0, math.Log(2), math.Log(4), 800, -800, -800, -800}, 2)
	near(t, "Dempster-Shafer", got, []float64{2.0 / 4, 2.0 / 8, 0, 1})
}

// calibrated are logits whose labels were drawn from softmax(logits).
func calibrated(rng *rand.Rand, n, classes int) (logits []float64, labels []int) {
	for i := range n {
		for range classes {
			logits = append(logits, 2*rng.NormFloat64())
		}
		u, label := rng.Float64(), 0
		total := 0.0
		for _, logit := range logits[i*classes:] {
			total += math.Exp(logit)
		}
		for _, logit := range logits[i*classes : (i+1)*classes-1] {
			if u -= math.Exp(logit) / total; u < 0 {
				break
			}
			label++
		}
		labels = append(labels, label)
	}
	return logits, labels
}

func TestTemperatureIsTheMinimum(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	for range 50 {
		classes := 2 + rng.IntN(6)
		logits, labels := calibrated(rng, 40, classes)
		best := must.Get(FitTemperature(logits, classes, labels))(t)
		nll := func(temperature float64) float64 {
			return CategoricalNLL(Softmax(logits, classes, temperature), classes, labels)
		}
		for _, other := range []float64{0.01, 0.5, 0.99, 1.01, 2, 50} {
			if nll(best*other) < nll(best) {
				t.Errorf("NLL at T = %v is %v, at %v it is %v", best, nll(best), best*other, nll(best*other))
			}
		}
		before := Accuracy(Softmax(logits, classes, 1), classes, labels)
		if after := Accuracy(Softmax(logits, classes, best), classes, labels); after != before {
			t.Errorf("accuracy %v before, %v after", before, after)
		}
		shifted := make([]float64, len(logits))
		for i := range shifted {
			shifted[i] = logits[i] + float64(i/classes)
		}
		near(t, "after a shift", []float64{must.Get(FitTemperature(shifted, classes, labels))(t)}, []float64{best})
	}
}

// A temperature has the unit of the logits.
func TestTemperatureOfAnyScale(t *testing.T) {
	rng := rand.New(rand.NewPCG(25, 26))
	for _, scale := range []float64{1e-300, 1e-100, 1e-31, 1e-20, 1e20, 1e31} {
		for range 20 {
			classes := 2 + rng.IntN(4)
			logits, labels := calibrated(rng, 40, classes)
			want := must.Get(FitTemperature(logits, classes, labels))(t)
			floats.Scale(scale, logits)
			must.Near(t, must.Get(FitTemperature(logits, classes, labels))(t)/scale, want, 1e-12*want, "the temperature at the scale %g", scale)
		}
	}
	// One right example of a huge difference, and of each ten with a difference of 5 two wrong ones: T = 5/log 4.
	logits, labels := []float64{1e25, 0}, []int{0}
	for i := range 10 {
		logits, labels = append(logits, 5, 0), append(labels, i/8)
	}
	near(t, "temperature", []float64{must.Get(FitTemperature(logits, 2, labels))(t)}, []float64{5 / math.Log(4)})
}

// Where the labels are balanced over logits with ties, the derivative at 1/T = 0 is 0 but for rounding, and there is
// never a temperature.
func TestTemperatureOfTies(t *testing.T) {
	rng := rand.New(rand.NewPCG(27, 28))
	for range 5000 {
		classes := 2 + rng.IntN(3)
		var logits []float64
		var labels []int
		for range 1 + rng.IntN(4) {
			row := make([]float64, classes)
			for k := range row {
				row[k] = float64(rng.IntN(10)) / 10
			}
			for label := range classes { // each of its labels once
				logits, labels = append(logits, row...), append(labels, label)
			}
		}
		if got, err := FitTemperature(logits, classes, labels); !errors.Is(err, ErrNoTemperature) {
			t.Fatalf("%v, %v of logits %v", got, err, logits)
		}
	}
}

func TestTemperatureWithoutMinimum(t *testing.T) {
	for _, c := range []struct {
		name   string
		logits []float64
		labels []int
	}{
		{"all right", []float64{1, 0, 0, 1}, []int{0, 1}},
		{"all wrong", []float64{1, 0, 0, 1}, []int{1, 0}},
		{"no better than chance", []float64{1, 0, 0, 1}, []int{0, 0}},
		{"better than chance by rounding alone", []float64{.3, .4, .1, .2, .3, .3}, []int{1, 0, 0}},
		{"all equal, and large", []float64{1e38, 1e38}, []int{0}},
		{"all right but for next to nothing", []float64{1e-310, 0, 0, 1e-320, 5, 0}, []int{0, 0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			must.GetErr(FitTemperature(c.logits, 2, c.labels))(t, ErrNoTemperature)
		})
	}
}

func ExampleFitTemperature() {
	// Nine of ten predictions made with a probability of 0.993 are right.
	logits, labels := []float64{}, []int{}
	for i := range 10 {
		logits = append(logits, 5, 0)
		labels = append(labels, i/9)
	}
	temperature, err := FitTemperature(logits, 2, labels)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("T = %.2f, probability %.2f\n", temperature, Softmax(logits, 2, temperature)[0])
	// Output: T = 2.28, probability 0.90
}
