package predict_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/predict"
)

// An untrained LDL has Sigma = I, so the first layer's energy is |x|^2/2.
func TestEnergies(t *testing.T) {
	x := []float64{3, 4, 0, 0, 1, -2}
	energies, err := predict.Energies(context.Background(), model(t, dul.Density{}, 0), x, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	if len(energies) != 2 || len(energies[1]) != 3 {
		t.Fatalf("energies are %v, want 2 layers with 3 inputs each", energies)
	}
	for i, want := range []float64{12.5, 0, 2.5} {
		if math.Abs(energies[0][i]-want) > 1e-12 {
			t.Errorf("the first layer's energy of input %d is %g, want %g", i, energies[0][i], want)
		}
	}
	if energies[1][0] <= energies[1][1] {
		t.Errorf("the second layer's energies are %v; that of the larger input should be larger", energies[1])
	}
}

func TestEnergiesAreRefused(t *testing.T) {
	ctx := context.Background()
	if _, err := predict.Energies(ctx, model(t, baselines.Deterministic{}, 0), []float64{1, 2}, 2, 1); err == nil || !strings.Contains(err.Error(), "energy model") {
		t.Errorf("a network without energy models: %v", err)
	}
	if _, err := predict.Energies(ctx, model(t, dul.Density{}, 2), []float64{1, 2}, 2, 1); err == nil {
		t.Error("no error for a model with replicas")
	}
	if _, err := predict.Energies(ctx, model(t, dul.Density{}, 0), []float64{1, 2}, 2, 0); err == nil {
		t.Error("no error for no samples")
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := predict.Energies(done, model(t, dul.Density{}, 0), []float64{1, 2}, 2, 1); err == nil {
		t.Error("no error after the context is done")
	}
}
