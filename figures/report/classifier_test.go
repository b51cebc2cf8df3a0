package report_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/report"
)

// judged are made-up outcomes of 10 classes: confidences as a trained network has them, and answers that
// are right with the confidence raised to a power, above 1 for an overconfident network.
func judged(name string, certainty, power float64, n int) report.Judged {
	rng := rand.New(rand.NewPCG(uint64(len(name)), 5))
	j := report.Judged{Name: name}
	for range n {
		confidence := 0.1 + 0.9/(1+math.Exp(-certainty-3*rng.NormFloat64()))
		j.Outcomes.Confidence = append(j.Outcomes.Confidence, confidence)
		j.Outcomes.Right = append(j.Outcomes.Right, rng.Float64() < math.Pow(confidence, power))
	}
	return j
}

func methods() []report.Judged {
	return []report.Judged{judged("MFVI", 4, 2.2, 10000), judged("MC Dropout", 3, 0.7, 10000), judged("Rank-1 BNN", 5, 1.6, 10000), judged("Density Uncertainty", 4, 1.05, 10000)}
}

func TestReliabilityDiagrams(t *testing.T) {
	figtest.Golden(t)(report.ReliabilityDiagrams("reliability", methods(), 10))
	five := append(methods(), judged("Variational Dropout", 2, 1, 300))
	f, err := report.ReliabilityDiagrams("reliability-five", five, 15)
	if err != nil || len(f.Panels) != 2 || len(f.Panels[1]) != 3 || f.Panels[1][2] != nil || f.Panels[0][2].X.Label.Text != "confidence" || f.Panels[0][0].X.Label.Text != "" {
		t.Errorf("five panels: %v, %v", f.Panels, err)
	}
	if ece := five[0].Outcomes.ECE(15); !strings.Contains(f.Panels[0][0].Title.Text, fmt.Sprintf("ECE %.3f", ece)) {
		t.Errorf("title %q, ECE %v", f.Panels[0][0].Title.Text, ece)
	}
	figtest.Golden(t)(f, err)
}

// separations are energies whose statistic spans many powers of ten, and confidences.
func separations() []report.Separation {
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
	return []report.Separation{
		{Title: "Density Uncertainty", Label: "energy statistic", Log: true, Inside: report.Sample{"CIFAR-10", statistic(10000, 900, 0.05)}, Outside: []report.Sample{{"SVHN", statistic(26032, 1100, 0.1)}}},
		{Title: "MFVI", Label: "1 - largest probability", Log: true, Inside: report.Sample{"CIFAR-10", doubt(10000, 4)}, Outside: []report.Sample{{"SVHN", doubt(26032, 0.5)}}},
		{Title: "Two other sets", Label: "entropy (nats)", Inside: report.Sample{"CIFAR-10", confidence(10001, -3)}, Outside: []report.Sample{{"SVHN", confidence(26032, 0)}, {"CIFAR-100", confidence(9999, -1)}}},
	}
}

func TestOODThreshold(t *testing.T) {
	f, err := report.OODThreshold("ood", separations(), 0.05)
	figtest.Golden(t)(f, err)
	// Values that are all equal, and zeros on a logarithmic axis, can be drawn.
	same := report.Separation{Title: "same", Inside: report.Sample{"a", []float64{1, 1}}, Outside: []report.Sample{{"b", []float64{1}}}}
	zeros := report.Separation{Title: "zeros", Log: true, Inside: report.Sample{"a", []float64{0, 1}}, Outside: []report.Sample{{"b", []float64{10}}}}
	for _, s := range []report.Separation{same, zeros} {
		f := must.Get(report.OODThreshold(s.Title, []report.Separation{s}, 0.05))(t)
		must.Get(f.Bytes(report.SVG))(t)
	}
}

func layerSamples() (layers []string, sets []report.LayerSample) {
	rng := rand.New(rand.NewPCG(8, 8))
	layers = []string{"conv1"}
	for stage := 1; stage <= 3; stage++ {
		for block := 1; block <= 2; block++ {
			layers = append(layers, fmt.Sprintf("%d.%d.conv1", stage, block), fmt.Sprintf("%d.%d.conv2", stage, block))
		}
	}
	layers = append(layers, "dense")
	for k, name := range []string{"CIFAR-10 test", "CIFAR-10 held out", "SVHN"} {
		set := report.LayerSample{Name: name}
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
	figtest.Golden(t)(report.LayerEnergies("layer-energies", layers, sets))
	var many report.LayerSample
	var names []string
	for l := range 28 {
		names, many.Energies = append(names, fmt.Sprintf("layer %d", l+1)), append(many.Energies, []float64{1, 2, 400 * float64(l+1)})
	}
	many.Name = "CIFAR-100"
	figtest.Golden(t)(report.LayerEnergies("layer-energies-many", names, []report.LayerSample{many}))
}

func TestClassifierFiguresReject(t *testing.T) {
	layers, sets := layerSamples()
	ood := func(log bool, inside, outside []float64) (report.Figure, error) {
		return report.OODThreshold("n", []report.Separation{{Log: log, Inside: report.Sample{"a", inside}, Outside: []report.Sample{{"b", outside}}}}, 0.1)
	}
	energies := func(values ...float64) (report.Figure, error) {
		return report.LayerEnergies("n", []string{"dense"}, []report.LayerSample{{"a", [][]float64{values}}})
	}
	must.GetErr(report.ReliabilityDiagrams("n", []report.Judged{{Name: "empty"}}, 10))(t, "empty: there are no predictions")
	must.GetErr(report.ReliabilityDiagrams("n", nil, 10))(t, "n: no methods")
	must.GetErr(report.OODThreshold("n", nil, 0.1))(t, "no separations")
	must.GetErr(report.OODThreshold("n", separations(), 1.5))(t, "1.5 is no rate")
	must.GetErr(report.OODThreshold("n", separations(), math.NaN()))(t, "NaN is no rate")
	must.GetErr(ood(false, nil, []float64{1}))(t, `"a" has no scores`)
	must.GetErr(ood(false, []float64{1}, nil))(t, `"b" has no scores`)
	must.GetErr(ood(true, []float64{1}, []float64{math.NaN()}))(t, "is NaN")
	must.GetErr(ood(true, []float64{-1, 1}, []float64{1}))(t, "no place on a logarithmic")
	must.GetErr(ood(true, []float64{0}, []float64{0}))(t, "no value is above 0")
	must.GetErr(report.LayerEnergies("n", nil, sets))(t, "0 layers")
	must.GetErr(report.LayerEnergies("n", layers[1:], sets))(t, "14 layers of CIFAR-10")
	must.GetErr(energies())(t, "layer dense has 0")
	must.GetErr(energies(0))(t, "layer dense has 1")
	must.GetErr(energies(1, math.NaN()))(t, "layer dense has 2")
}

func TestStandardDeviations(t *testing.T) {
	var x, exact, rough []float64
	for i := range 81 {
		at := -4 + 0.1*float64(i)
		x, exact, rough = append(x, at), append(exact, 1-math.Exp(-at*at)), append(rough, 1-0.8*math.Exp(-at*at))
	}
	curves := []report.Sample{{"exact", exact}, {"rough", rough}}
	f, err := report.StandardDeviations("process", x, []float64{-0.5, 0, 0.5}, report.Variances{"left", curves}, report.Variances{"right", curves[:1]})
	figtest.Golden(t)(f, err)
	if left, right := f.Panels[0][0], f.Panels[0][1]; left.Y.Max != right.Y.Max || right.Y.Label.Text != "" {
		t.Errorf("axes to %v and %v, label %q", left.Y.Max, right.Y.Max, right.Y.Label.Text)
	}
	rough[3] = -0.1
	must.GetErr(report.StandardDeviations("process", x, []float64{0}, report.Variances{"left", curves}))(t, "rough has the variance -0.1 at place 3")
	for lowest, refused := range map[float64]bool{-1e-9: false, -1e-8: true} { // of variances of 0.005
		small := slices.Repeat([]float64{0.005}, len(x))
		small[3] = lowest
		if _, err := report.StandardDeviations("process", x, []float64{0}, report.Variances{"left", []report.Sample{{"small", small}}}); (err != nil) != refused {
			t.Errorf("a variance of %g among 0.005: %v", lowest, err)
		}
	}
	must.GetErr(report.StandardDeviations("process", x, []float64{0}, report.Variances{"left", []report.Sample{{"short", exact[1:]}}}))(t, "81 x values but 80")
}
