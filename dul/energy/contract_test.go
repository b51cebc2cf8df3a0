package energy_test

import (
	"testing"

	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/layertest"
)

func TestContract(t *testing.T) {
	for name, m := range map[string]dul.EnergyModel{
		"LDL": energy.LDL{}, "Diagonal": energy.Diagonal{}, "Constant": energy.Constant{},
		"Rank1Mixture": energy.Rank1Mixture{}, "Rank1Mixture of two": energy.Rank1Mixture{Fraction: 1},
		"LocationMixture": energy.LocationMixture{}, "LocationMixture of one": energy.LocationMixture{Components: 1},
	} {
		t.Run(name, func(t *testing.T) { layertest.Energy(t, m) })
	}
}
