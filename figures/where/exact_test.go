package where

import (
	"context"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/floats/scalar"

	"densityuncertainty/dul"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/tables"
	"densityuncertainty/figures/uci"
)

// The inputs at the data and in the gap are those of the gap split, each once, and none is trained on.
func TestGapAndData(t *testing.T) {
	for split := range exactSplits {
		d := must.Get(exactProblems()[1].data.Load(context.Background(), split))(t)
		whole := must.Get(uci.Data{Name: "yacht", Kind: uci.Gap}.Load(context.Background(), split))(t)
		data, gap := d.Sets[0], d.Sets[1]
		if data.Name != dataRegion || gap.Name != gapRegion || d.HeldOut.Inputs != nil {
			t.Errorf("split %d has the sets %q and %q", split, data.Name, gap.Name)
		}
		if d.Train.Len()+data.Len() != whole.Train.Len() || gap.Len() != whole.Sets[0].Len() {
			t.Errorf("split %d: %d trained on, %d at the data and %d in the gap, of %d and %d", split, d.Train.Len(), data.Len(), gap.Len(), whole.Train.Len(), whole.Sets[0].Len())
		}
		column := func(of nets.Inputs) (values []float64) {
			x := of.(nets.Floats)
			for i := split; i < len(x.Values); i += x.Size() {
				values = append(values, x.Values[i])
			}
			return values
		}
		low, high := slices.Min(column(gap.Inputs)), slices.Max(column(gap.Inputs))
		for _, v := range slices.Concat(column(d.Train.Inputs), column(data.Inputs)) {
			if v > low && v < high {
				t.Fatalf("split %d: an input outside of the gap is %g, and the gap reaches from %g to %g", split, v, low, high)
			}
		}
	}
}

// predicted are predictions of two sets, whose function has the draws of each component at all inputs.
func predicted(draws ...float64) *experiment.Predictions {
	p := &experiment.Predictions{}
	for _, name := range []string{dataRegion, gapRegion} {
		s := experiment.Prediction{Set: name, Prediction: predict.Prediction{}}
		for _, v := range draws {
			s.Mean, s.NoiseStd = append(s.Mean, []float64{v, v}), append(s.NoiseStd, []float64{0.5, 0.5})
		}
		p.Sets = append(p.Sets, s)
	}
	return p
}

// A function that is shifted by 1 has the distance 1, the total variation of two Gaussians and the same width; chains that
// differ by so much have it from each other.
func TestApart(t *testing.T) {
	const shift = 1
	found := must.Get(apart(predicted(0, 0, 0), predicted(shift, shift)))(t)
	must.Near(t, found["gap_w1"], shift, 1e-12, "the distance W1")
	must.Near(t, found["gap_tv"], math.Erf(shift/(2*math.Sqrt2*0.5)), 1e-3, "the total variation")
	halves := must.Get(halvesApart(predicted(0, 1, 3, 4, 0, 1, 3, 4)))(t)
	if halves["data_w1"] != 3 || halves["data_std_ratio"] != 1 {
		t.Errorf("the first two of four chains are apart from the others by %v, want 3", halves)
	}
}

// The regions of the cubic are parts of its grid.
func TestRegionsOfTheCubic(t *testing.T) {
	d := must.Get(exactProblems()[0].data.Load(context.Background(), 0))(t)
	p := &experiment.Predictions{Sets: []experiment.Prediction{{Set: d.Sets[0].Name, Prediction: predict.Prediction{Mixture: predict.Mixture{Mean: [][]float64{make([]float64, d.Sets[0].Len())}}}}}}
	found := byRegion(p)
	if len(found) != 2 || len(found[dataRegion]) != 2*41 || len(found[gapRegion]) != 79 { // 2 to 4 on both sides, and between -2 and 2, in steps of 0.05
		t.Errorf("%d inputs at the data and %d in the gap", len(found[dataRegion]), len(found[gapRegion]))
	}
}

// What the picture lacks it names.
func TestExactFigure(t *testing.T) {
	must.GetErr(exactFigure(tables.Of(nil)))(t, "where-posterior")
	f := must.Get(exactFigure(must.Get(tables.Committed())(t)))(t)
	if len(f.Panels) != 3 || len(f.Panels[0]) != 3 || f.Panels[0][0].Title.Text != "Density Uncertainty" {
		t.Errorf("%d rows", len(f.Panels))
	}
}

// Without the draws of a posterior nothing is trained, and the error says how to get them. Of the cubic's the repository has curves.
func TestNoPosterior(t *testing.T) {
	for _, noise := range []float64{0.123, exactProblems()[0].noise} {
		p := exactProblems()[0]
		p.noise = noise
		engine := experiment.Engine{Progress: func(float64, string) { t.Error("something is trained") }}
		must.GetErr(engine.Run(t.Context(), p.runs(methods.Density)...))(t, "run where-posterior")
	}
}

// With Times 1 the control is dul.Density.MeanEnergy. More Times make the same trained network draw functions that are
// farther apart; over the predicted inputs, the noise is that of density layers there.
func TestEvenEnergy(t *testing.T) {
	spread := func(m experiment.Method) float64 {
		e := exactProblems()[1].grid(1, halvesApart).Of(exactProblems()[1].data, m)[:1].Change(func(e *experiment.Experiment) {
			e.Recipe.Epochs, e.Recipe.PretrainEpochs, e.Recipe.Samples = 200, 100, 400
			e.Task.Metrics = []experiment.Metric{func(p *experiment.Predictions) (map[string]float64, error) {
				return map[string]float64{"spread": meanVariance(p.Sets[1].Mixture)}, nil
			}}
		})
		return must.Get(experiment.Run(t.Context(), e...))(t)[0].Metrics["spread"]
	}
	mean, one, nine := spread(methods.DensityMean), spread(times(1)), spread(times(9))
	there := spread(experiment.Method{Layers: dul.Density{Energy: evenEnergy{Predicted: true}}})
	if !scalar.EqualWithinAbs(one/mean, 1, 1e-6) || !(nine >= 2*one && there >= 1.05*one) {
		t.Errorf("variances: mean energy %g, once that %g, nine times that %g, the mean in the gap %g", mean, one, nine, there)
	}
}

// meanVariance is the variance of the function, averaged over the inputs.
func meanVariance(m predict.Mixture) float64 {
	_, std := m.Moments()
	return floats.Dot(std, std) / float64(len(std))
}
