package where

import (
	"math"
	"testing"

	"densityuncertainty/dul"
	"densityuncertainty/dul/predict"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
)

// With Times 1 the control is dul.Density.MeanEnergy. More Times make the same trained network draw functions that are
// farther apart; over the predicted inputs, the noise is that of density layers there.
func TestEvenEnergy(t *testing.T) {
	spread := func(m experiment.Method) float64 {
		e := experiment.Experiments{exactProblems()[1].experiment(m, halvesApart)}.Change(func(e *experiment.Experiment) {
			e.Recipe.Epochs, e.Recipe.PretrainEpochs, e.Recipe.Samples = 200, 100, 400
			e.Task.Metrics = []experiment.Metric{func(p *experiment.Predictions) (map[string]float64, error) {
				return map[string]float64{"spread": meanVariance(p.Sets[1].Mixture)}, nil
			}}
		})
		return must.Get(experiment.Run(t.Context(), e...))(t)[0].Metrics["spread"]
	}
	mean, one, nine := spread(withPrior(methods.DensityMean)), spread(withPrior(times(1))), spread(withPrior(times(9)))
	there := spread(withPrior(experiment.Method{Layers: dul.Density{Energy: evenEnergy{Predicted: true}}}))
	if math.Abs(one/mean-1) > 1e-6 || nine < 2*one || there < 1.05*one {
		t.Errorf("variances: mean energy %g, once that %g, nine times that %g, the mean in the gap %g", mean, one, nine, there)
	}
}

// meanVariance is the variance of the function, averaged over the inputs.
func meanVariance(m predict.Mixture) float64 {
	_, std := m.Moments()
	sum := 0.0
	for _, s := range std {
		sum += s * s
	}
	return sum / float64(len(std))
}
