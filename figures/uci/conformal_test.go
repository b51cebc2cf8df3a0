package uci

import (
	"slices"
	"testing"

	"densityuncertainty/dul/predict"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
)

// Examples to calibrate by are a fifth of the training part, and no part of it any more.
func TestCalibration(t *testing.T) {
	plain := must.Get(Data{Name: "yacht"}.Load(t.Context(), 3))(t)
	held := must.Get(Data{Name: "yacht", HeldOut: true}.Load(t.Context(), 3))(t)
	d := must.Get(Data{Name: "yacht", Calibration: true}.Load(t.Context(), 3))(t)
	if d.Train.Len() != held.Train.Len() || d.HeldOut.Inputs != nil || len(d.Sets) != 2 || d.Sets[0].Len() != plain.Sets[0].Len() || d.Sets[1].Name != calibrationSet || !slices.Equal(d.Sets[1].Targets, held.HeldOut.Targets) {
		t.Errorf("%d training examples and the sets %d", d.Train.Len(), len(d.Sets))
	}
	must.Err(t, (Data{Name: "yacht", HeldOut: true, Calibration: true}).Check(), "leave one of them out")
}

func TestConformal(t *testing.T) {
	set := func(name string, targets ...float64) experiment.Prediction {
		one := make([]float64, len(targets))
		for i := range one {
			one[i] = 1
		}
		return experiment.Prediction{Set: name, Targets: targets, Prediction: predict.Prediction{Mixture: predict.Mixture{Mean: [][]float64{make([]float64, len(targets))}, NoiseStd: [][]float64{one}}}}
	}
	var scores []float64
	for i := range 19 {
		scores = append(scores, float64(i+1))
	}
	p := &experiment.Predictions{Unit: 2, Sets: []experiment.Prediction{set("test", -20, -19, 0, 19), set(calibrationSet, scores...)}}
	found := must.Get(conformal(p))(t)
	if found[metricConformal] != 0.75 || found[metricConformalWidth] != 2*2*19 {
		t.Errorf("the numbers are %v", found)
	}
	p.Sets = p.Sets[:1]
	must.GetErr(conformal(p))(t, calibrationSet)
}
