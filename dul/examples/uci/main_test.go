package main

import (
	"bytes"
	"testing"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/environment/must"
)

// The cells are those of the tables, to the digit.
func TestCells(t *testing.T) {
	fixtures.SkipShortOffGo(t) // stored numbers are of the pure Go backend
	for name, want := range map[string]string{
		"yacht": "NLL 2.906 ± 0.083, RMSE 3.555 ± 0.834\n", "boston": "NLL 2.710 ± 0.145, RMSE 3.376 ± 1.010\n", "energy": "NLL 2.389 ± 0.077, RMSE 2.391 ± 0.295\n",
	} {
		if testing.Short() && name != "yacht" {
			continue
		}
		var out bytes.Buffer
		must.Do(t, run(t.Context(), &out, name))
		if got := out.String(); got != name+": "+want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	must.Err(t, run(t.Context(), &bytes.Buffer{}, "mars"), "mars")
}
