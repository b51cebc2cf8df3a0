package inspect_test

import (
	"context"
	"errors"
	"testing"

	"densityuncertainty/environment"
	"densityuncertainty/figures/inspect"
)

// The training itself is that of package runner; here a run is asked for and stopped.
func TestMoonsStops(t *testing.T) {
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	ctx, cancel := context.WithCancel(t.Context())
	reports := 0
	_, err := inspect.Moons(ctx, func(done float64, note string) {
		if reports++; done > 0.1 || note == "" {
			t.Errorf("report %v, %q", done, note)
		}
		cancel()
	}, 0)
	if !errors.Is(err, context.Canceled) || reports == 0 {
		t.Errorf("%d reports, then %v", reports, err)
	}
}
