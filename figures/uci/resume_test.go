package uci

import (
	"context"
	"errors"
	"maps"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/methods"
)

// A batch that is stopped goes on where it was, and ends with the numbers of one that was not; so do the members of
// an ensemble and a Gaussian process. Another batch with the same last split does not take its checkpoints.
func TestStoppedBatchGoesOn(t *testing.T) {
	for _, m := range []methods.Method{methods.Density, methods.Ensemble, methods.DUE} {
		t.Run(m.Name, func(t *testing.T) {
			r, batch := runner(t), yacht(m, 0, 1)
			whole := must.Get(r.Run(t.Context(), batch, ignore))(t)
			r.Work = t.TempDir()
			ctx, stop := context.WithCancel(t.Context())
			stopped := 0.0
			if _, err := r.Run(ctx, batch, func(done float64, _ string) {
				if done > 0.6 && stopped == 0 {
					stopped = done
					stop()
				}
			}); !errors.Is(err, context.Canceled) {
				t.Fatalf("stopped: %v", err)
			}
			first := 0.0
			resumed := must.Get(r.Run(t.Context(), batch, func(done float64, _ string) {
				if first == 0 {
					first = done
				}
			}))(t)
			if stopped == 0 || first < stopped {
				t.Errorf("stopped at %v, it goes on at %v", stopped, first)
			}
			for i, line := range resumed {
				if !maps.Equal(line.Metrics, whole[i].Metrics) {
					t.Errorf("split %d: %v, without a stop %v", i, line.Metrics, whole[i].Metrics)
				}
			}
			alone, err := r.Run(t.Context(), batch[1:], ignore)
			if err != nil || len(alone) != 1 {
				t.Fatalf("the last split alone: %v, %v", alone, err)
			}
			if a, b := r.checkpoints([]splitData{{experiment: batch[1]}}), jobs.WorkFolder(r.Work, batch[1]); len(a.Folder) <= len(b) || a.Folder[:len(b)] != b {
				t.Errorf("checkpoints are in %s, want them below %s", a.Folder, b)
			}
		})
	}
}
