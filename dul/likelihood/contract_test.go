package likelihood_test

import (
	"testing"

	"densityuncertainty/dul/layertest"
	"densityuncertainty/dul/likelihood"
)

func TestContract(t *testing.T) {
	for name, l := range map[string]likelihood.Likelihood{
		"Gaussian": likelihood.Gaussian{}, "KnownNoise": likelihood.KnownNoise{Std: 2}, "Heteroscedastic": likelihood.Heteroscedastic{},
		"StudentT": likelihood.StudentT{Nu: 3}, "StudentT with a variance": likelihood.StudentT{Nu: 12},
		"Poisson": likelihood.Poisson{}, "Categorical": likelihood.Categorical{Classes: 4},
	} {
		t.Run(name, func(t *testing.T) { layertest.Likelihood(t, l) })
	}
}
