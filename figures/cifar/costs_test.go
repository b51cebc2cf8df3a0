package cifar

import (
	"testing"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/nets"
	"densityuncertainty/environment/backendtest"
	"densityuncertainty/environment/must"
)

// Heads count: in the place of 64*10 + 10 numbers SNGP has 2*128 of the normalisation and 1024*10 + 10, DUE for 10 classes 10
// points of 64, and 10*10 + 10 + 3 of each. Density layers have two numbers of noise for each of 570 units.
func TestCosts(t *testing.T) {
	due := baselines.DUE{Start: []baselines.Inducing{{Points: make([]float64, 10*64), LengthScale: 8}}}
	table := must.Get(Costs(backendtest.Open(t), nets.ResNet14, 10, Family{"plain", baselines.Deterministic{}},
		Family{"SNGP", baselines.SNGP{Examples: 50000, Orthogonal: true}}, Family{"DUE", due}, Family{"density", dul.Density{}}))(t)
	same(t, lines(table), []string{
		"plain | 175,178 | 0 | 2.102 MB | 0.0533 | 0.16 | 1.00", "SNGP | 185,034 | 0 | 2.22 MB | 0.0533 | 0.16 | 1.00",
		"DUE | 176,298 | 0 | 2.116 MB | 0.0533 | 0.16 | 1.00", "density | 341,266 | 164,948 | 4.755 MB | 0.111 | 0.333 | 2.08",
	})
}
