package baselines_test

import (
	"testing"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/layertest"
)

func TestDeterministic(t *testing.T) {
	layertest.Checks{Deterministic: true}.Dense(t, baselines.Deterministic{})
	layertest.Checks{Deterministic: true}.Conv(t, baselines.Deterministic{})
}
