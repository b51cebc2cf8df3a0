package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"densityuncertainty/dul/metrics"
)

// judged are made-up outcomes of 10 classes: confidences as a trained network has them, and answers that
// are right with the confidence raised to a power, above 1 for an overconfident network.
func judged(name string, certainty, power float64, n int) Judged {
	rng := rand.New(rand.NewPCG(uint64(len(name)), 5))
	j := Judged{Name: name}
	for range n {
		confidence := 0.1 + 0.9/(1+math.Exp(-certainty-3*rng.NormFloat64()))
		j.Outcomes.Confidence = append(j.Outcomes.Confidence, confidence)
		j.Outcomes.Right = append(j.Outcomes.Right, rng.Float64() < math.Pow(confidence, power))
	}
	return j
}

func methods() []Judged {
	return []Judged{judged("MFVI", 4, 2.2, 10000), judged("MC Dropout", 3, 0.7, 10000), judged("Rank-1 BNN", 5, 1.6, 10000), judged("Density Uncertainty", 4, 1.05, 10000)}
}

// golden compares a figure that was made without an error.
func golden(t *testing.T) func(Figure, error) {
	return func(f Figure, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if f.Caption == "" {
			t.Error("no caption")
		}
		checkGolden(t, f)
	}
}

func TestReliabilityDiagrams(t *testing.T) {
	golden(t)(ReliabilityDiagrams("reliability", methods(), 10))
	five := append(methods(), judged("Variational Dropout", 2, 1, 300))
	f, err := ReliabilityDiagrams("reliability-five", five, 15)
	if err != nil || len(f.Panels) != 2 || len(f.Panels[1]) != 3 || f.Panels[1][2] != nil || f.Panels[0][2].X.Label.Text != "confidence" || f.Panels[0][0].X.Label.Text != "" {
		t.Errorf("five panels: %v, %v", f.Panels, err)
	}
	ece, err := five[0].Outcomes.ECE(15)
	if err != nil || !strings.Contains(f.Panels[0][0].Title.Text, fmt.Sprintf("ECE %.3f", ece)) {
		t.Errorf("title %q, ECE %v, %v", f.Panels[0][0].Title.Text, ece, err)
	}
	golden(t)(f, err)
}

func TestRiskCoverageCurves(t *testing.T) {
	golden(t)(RiskCoverageCurves("risk-coverage", methods()))
	// Few examples, all tied.
	if _, err := RiskCoverageCurves("few", []Judged{{"one", metrics.Outcomes{Confidence: []float64{0.5, 0.5}, Right: []bool{true, false}}}}); err != nil {
		t.Error(err)
	}
}

// separations are energies whose statistic spans many powers of ten, and confidences.
func separations() []Separation {
	rng := rand.New(rand.NewPCG(9, 9))
	statistic := func(n int, mean, std float64) (values []float64) {
		for range n {
			e := mean * math.Exp(std*rng.NormFloat64())
			values = append(values, (e-900)*(e-900))
		}
		return values
	}
	confidence := func(n int, certainty float64) []float64 {
		return judged(fmt.Sprint(n), certainty, 1, n).Outcomes.Confidence
	}
	doubt := func(n int, certainty float64) []float64 {
		values := confidence(n, certainty)
		for i := range values {
			values[i] = 1 - values[i]
		}
		return values
	}
	return []Separation{
		{Title: "Density Uncertainty", Label: "energy statistic", Log: true, Inside: Sample{"CIFAR-10", statistic(10000, 900, 0.05)}, Outside: []Sample{{"SVHN", statistic(26032, 1100, 0.1)}}},
		{Title: "MFVI", Label: "1 - largest probability", Log: true, Inside: Sample{"CIFAR-10", doubt(10000, 4)}, Outside: []Sample{{"SVHN", doubt(26032, 0.5)}}},
		{Title: "MFVI, plain axis", Label: "largest probability", Lower: true, Inside: Sample{"CIFAR-10", confidence(10000, 4)}, Outside: []Sample{{"SVHN", confidence(26032, 0.5)}}},
		{Title: "Two other sets", Label: "entropy (nats)", Inside: Sample{"CIFAR-10", confidence(10001, -3)}, Outside: []Sample{{"SVHN", confidence(26032, 0)}, {"CIFAR-100", confidence(9999, -1)}}},
	}
}

func TestOODHistograms(t *testing.T) {
	f, err := OODHistograms("ood", separations())
	golden(t)(f, err)
	s := separations()[2]
	var score []float64
	var positive []bool
	for k, sample := range append([]Sample{s.Inside}, s.Outside...) {
		for _, v := range sample.Values {
			score, positive = append(score, 1-v), append(positive, k > 0)
		}
	}
	want, err := metrics.AUROC(score, positive)
	if got, err2 := s.auroc(s.Outside[0]); err != nil || err2 != nil || math.Abs(got-want) > 1e-12 {
		t.Errorf("AUROC %v, want %v; %v, %v", got, want, err, err2)
	}
	// Values that are all equal, and zeros on a logarithmic axis, can be drawn.
	same := Separation{Title: "same", Inside: Sample{"a", []float64{1, 1}}, Outside: []Sample{{"b", []float64{1}}}}
	zeros := Separation{Title: "zeros", Log: true, Inside: Sample{"a", []float64{0, 1}}, Outside: []Sample{{"b", []float64{10}}}}
	for _, s := range []Separation{same, zeros} {
		f, err := OODHistograms(s.Title, []Separation{s})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Bytes(SVG); err != nil {
			t.Error(err)
		}
	}
}

// The area of a histogram is the share of the values that are on the axis.
func TestStepDensity(t *testing.T) {
	x, density := stepDensity([]float64{0, 0.5, 0.5, 1, 3}, 0, 2, 4)
	if fmt.Sprint(x) != "[0 0.5 0.5 1 1 1.5 1.5 2]" || fmt.Sprint(density) != "[0.4 0.4 0.8 0.8 0.4 0.4 0 0]" {
		t.Errorf("got %v, %v", x, density)
	}
}

func TestPowerTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      string
	}{
		{-2.5, 4.2, "0.01 1 100 10000"},
		{-7, 7, "1e-6 0.001 1 1000 1e6"},
		{0.1, 3.9, "10 100 1000"},
		{-0.2, 0.6, "1 2"},
		{-0.4, 0.8, "0.5 1 2 5"},
		{2, 2.5, "100 200"},
	} {
		var labels []string
		for _, tick := range (powerTicks{}).Ticks(c.low, c.high) {
			labels = append(labels, tick.Label)
		}
		if got := strings.Join(labels, " "); got != c.want {
			t.Errorf("[%v, %v]: got %s, want %s", c.low, c.high, got, c.want)
		}
	}
}

func layerSamples() (layers []string, sets []LayerSample) {
	rng := rand.New(rand.NewPCG(8, 8))
	layers = []string{"conv1"}
	for stage := 1; stage <= 3; stage++ {
		for block := 1; block <= 2; block++ {
			layers = append(layers, fmt.Sprintf("%d.%d.conv1", stage, block), fmt.Sprintf("%d.%d.conv2", stage, block))
		}
	}
	layers = append(layers, "dense")
	for k, name := range []string{"CIFAR-10 test", "CIFAR-10 held out", "SVHN"} {
		set := LayerSample{Name: name}
		for l := range layers {
			energies := make([]float64, 500)
			for i := range energies {
				energies[i] = 30 * float64(l+1) * math.Exp((0.3+0.1*float64(k/2))*rng.NormFloat64()+0.05*float64(l*(k/2))-0.3*float64(k/2))
			}
			set.Energies = append(set.Energies, energies)
		}
		sets = append(sets, set)
	}
	return layers, sets
}

func TestLayerEnergies(t *testing.T) {
	layers, sets := layerSamples()
	golden(t)(LayerEnergies("layer-energies", layers, sets))
	var many LayerSample
	var names []string
	for l := range 28 {
		names, many.Energies = append(names, fmt.Sprintf("layer %d", l+1)), append(many.Energies, []float64{1, 2, 400 * float64(l+1)})
	}
	many.Name = "CIFAR-100"
	golden(t)(LayerEnergies("layer-energies-many", names, []LayerSample{many}))
}

// picture is a made-up image: a disc or a square on a slope of colour.
func picture(rng *rand.Rand, p Picture) Picture {
	p.Pixels = make([]uint8, 3*imageSide*imageSide)
	cx, cy, r, round := 10+rng.IntN(12), 10+rng.IntN(12), 5+rng.IntN(6), rng.IntN(2) == 0
	var back, front [3]int
	for c := range 3 {
		back[c], front[c] = rng.IntN(160), 80+rng.IntN(170)
	}
	for y := range imageSide {
		for x := range imageSide {
			dx, dy := x-cx, y-cy
			inside := dx*dx+dy*dy < r*r
			if !round {
				inside = max(dx, -dx) < r && max(dy, -dy) < r
			}
			for c := range 3 {
				v := back[c] + 2*x + y
				if inside {
					v = front[c]
				}
				p.Pixels[(c*imageSide+y)*imageSide+x] = uint8(min(v+rng.IntN(12), 255))
			}
		}
	}
	return p
}

func strips() []Strip {
	rng := rand.New(rand.NewPCG(6, 6))
	classes := []string{"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse"}
	test, strange := Strip{Title: "CIFAR-10 test images of the largest entropy"}, Strip{Title: "SVHN images of the largest energy statistic"}
	for i, label := range classes {
		prediction := label
		if i%3 == 1 {
			prediction = classes[(i+3)%len(classes)]
		}
		test.Pictures = append(test.Pictures, picture(rng, Picture{Label: label, Prediction: prediction, Probability: 0.2 + 0.1*float64(i), Entropy: 2.3 - 0.2*float64(i), Energy: 800 + 400*rng.Float64()}))
		if i < 6 {
			strange.Pictures = append(strange.Pictures, picture(rng, Picture{Prediction: classes[5-i], Probability: 0.9, Entropy: 0.4, Energy: math.NaN()}))
		}
	}
	return []Strip{test, strange}
}

func TestImageStrips(t *testing.T) {
	f, err := ImageStrips("images", strips())
	golden(t)(f, err)
	for _, format := range []string{SVG, PDF} {
		if _, err := f.Bytes(format); err != nil {
			t.Error(err)
		}
	}
}

// Red, green and blue come from their planes, rows from top to bottom.
func TestEnlarged(t *testing.T) {
	p := Picture{Pixels: make([]uint8, 3*imageSide*imageSide)}
	for c := range 3 {
		p.Pixels[(c*imageSide+2)*imageSide+5] = uint8(10 * (c + 1))
	}
	m := p.enlarged()
	for dy := range enlargement {
		for dx := range enlargement {
			r, g, b, a := m.At(5*enlargement+dx, 2*enlargement+dy).RGBA()
			if r>>8 != 10 || g>>8 != 20 || b>>8 != 30 || a>>8 != 255 {
				t.Fatalf("pixel is %d, %d, %d, %d", r>>8, g>>8, b>>8, a>>8)
			}
		}
	}
	if r, _, _, _ := m.At(6*enlargement, 2*enlargement).RGBA(); r != 0 {
		t.Error("the neighbour is not black")
	}
}

func TestClassifierFiguresReject(t *testing.T) {
	layers, sets := layerSamples()
	negative := Separation{Title: "negative", Log: true, Inside: Sample{"a", []float64{-1, 1}}, Outside: []Sample{{"b", []float64{1}}}}
	nothing := Separation{Title: "nothing", Log: true, Inside: Sample{"a", []float64{0}}, Outside: []Sample{{"b", []float64{0}}}}
	for want, call := range map[string]func() (Figure, error){
		"empty: metrics": func() (Figure, error) { return ReliabilityDiagrams("n", []Judged{{Name: "empty"}}, 10) },
		"0 bins":         func() (Figure, error) { return ReliabilityDiagrams("n", methods(), 0) },
		"none: metrics":  func() (Figure, error) { return RiskCoverageCurves("n", []Judged{{Name: "none"}}) },
		"of one kind": func() (Figure, error) {
			return OODHistograms("n", []Separation{{Inside: Sample{"a", []float64{1}}, Outside: []Sample{{"b", nil}}}})
		},
		"no place on a logarithmic": func() (Figure, error) { return OODHistograms("n", []Separation{negative}) },
		"no value is above 0":       func() (Figure, error) { return OODHistograms("n", []Separation{nothing}) },
		"0 layers":                  func() (Figure, error) { return LayerEnergies("n", nil, sets) },
		"14 layers of CIFAR-10":     func() (Figure, error) { return LayerEnergies("n", layers[1:], sets) },
		"layer dense has 0": func() (Figure, error) {
			return LayerEnergies("n", []string{"dense"}, []LayerSample{{"a", [][]float64{nil}}})
		},
		"layer dense has 1": func() (Figure, error) {
			return LayerEnergies("n", []string{"dense"}, []LayerSample{{"a", [][]float64{{0}}}})
		},
		"no images":    func() (Figure, error) { return ImageStrips("n", nil) },
		"has 7 values": func() (Figure, error) { return ImageStrips("n", []Strip{{"s", []Picture{{Pixels: make([]uint8, 7)}}}}) },
	} {
		if _, err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
