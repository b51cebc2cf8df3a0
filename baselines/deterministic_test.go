package baselines_test

import (
	"testing"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/layertest"
)

func TestDeterministic(t *testing.T) {
	checkFamilies(t, []variant{{name: "default", layers: baselines.Deterministic{}, checks: layertest.Checks{Deterministic: true}}})
}
