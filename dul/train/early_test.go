package train_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
)

// told are the scores of the replicas after each epoch.
type told [][]float64

// score gives them in turn, and draws noise on the way, as a prediction does.
func (s told) score(t *testing.T, x nets.Inputs) func(context.Context, *nets.Model) ([]float64, error) {
	epoch := 0
	return func(ctx context.Context, m *nets.Model) ([]float64, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if m.Replicas == 0 {
			sample(t, m, x, 2)
		}
		epoch++
		return s[epoch-1], nil
	}
}

// Each replica ends with the parameters of its best epoch: those of a run that ends there.
func TestEarlyStopping(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		trial  string
		every  int
		scores told
		want   []int // epochs of training, of each replica
	}{
		{"regression", 1, told{{3}, {1}, {2}, {1.5}}, []int{2}},
		{"regression", 0, told{{3}, {3}, {3}, {3}}, []int{1}},
		{"regression", 1, told{{nan}, {math.Inf(1)}, {5}, {nan}}, []int{3}},
		{"regression", 1, told{{nan}, {nan}, {nan}, {nan}}, []int{4}},
		{"regression", 3, told{{2}, {1}}, []int{4}},
		{"regression", 3, told{{1}, {2}}, []int{3}},
		{"images", 1, told{{3}, {1}, {2}, {4}}, []int{2}},
		{"replicas", 1, told{{3, 1}, {1, 2}, {2, 3}, {4, 0}}, []int{2, 4}},
		{"replicas", 2, told{{1, nan}, {nan, 2}}, []int{2, 4}},
	} {
		t.Run(fmt.Sprintf("%s, every %d, %v", c.trial, c.every, c.scores), func(t *testing.T) {
			of := func(epochs int) map[string]fixtures.Array {
				run := named(t, c.trial)
				run.Epochs, run.Schedule = epochs, train.Steps(0.05, 1)
				m := run.model(t, dtypes.Float32)
				run.fit(t, m)
				return parametersOf(t, m)
			}
			run := named(t, c.trial)
			run.Epochs, run.Schedule = 4, train.Steps(0.05, 1)
			run.EarlyStopping = train.EarlyStopping{Every: c.every, Score: c.scores.score(t, run.data[0].Inputs)}
			m := run.model(t, dtypes.Float32)
			run.fit(t, m)
			got := parametersOf(t, m)
			for k, epochs := range c.want {
				want := of(epochs)
				if len(got) != len(want) {
					t.Fatalf("%d parameters, want %d", len(got), len(want))
				}
				for path, value := range want {
					part := len(value.Values) / len(c.want)
					for i := k * part; i < (k+1)*part; i++ {
						if got[path].Values[i] != value.Values[i] {
							t.Fatalf("replica %d: entry %d of %s is %v, after %d epochs it is %v", k, i, path, got[path].Values[i], epochs, value.Values[i])
						}
					}
				}
			}
			for v := range m.Store.IterVariables() {
				if strings.HasPrefix(v.Path(), "/best/") {
					t.Errorf("%s is still there", v.Path())
				}
			}
		})
	}
}

// A run that is stopped, while it trains or where it is to be scored, goes on as if it had not been.
func TestStoppedEarlyStopping(t *testing.T) {
	const perEpoch = trialSteps / 3
	scores := told{{3, 1}, {1, 2}, {2, 0}, {4, 4}}
	run := named(t, "replicas")
	run.Epochs = 4
	step, stop := 0, 0
	stopping := func() context.Context {
		ctx, cancel := context.WithCancel(t.Context())
		run.Progress = func(p train.Progress) {
			if step = p.Step; step == stop {
				cancel()
			}
		}
		return ctx
	}
	run.EarlyStopping.Score = func(ctx context.Context, _ *nets.Model) ([]float64, error) {
		return scores[step/perEpoch-2], ctx.Err() // an epoch of pretraining is before them
	}
	want := run.model(t, dtypes.Float32)
	must.Do(t, run.Fit(stopping(), want, run.data...))
	for _, stop = range []int{perEpoch + 1, 2 * perEpoch, 3*perEpoch - 1, 4 * perEpoch, 5 * perEpoch} {
		t.Run(fmt.Sprintf("after step %d", stop), func(t *testing.T) {
			run.Checkpoints.Folder = t.TempDir()
			if err := run.Fit(stopping(), run.model(t, dtypes.Float32), run.data...); !errors.Is(err, context.Canceled) {
				t.Fatalf("the error is %v", err)
			}
			m := run.model(t, dtypes.Float32)
			must.Do(t, run.Fit(stopping(), m, run.data...))
			sameState(t, m, want)
			again := run.model(t, dtypes.Float32) // of a run that is finished
			must.Do(t, run.Fit(stopping(), again, run.data...))
			sameState(t, again, want)
			other := run.Trainer
			other.EarlyStopping.Every = 2
			if err := other.Fit(t.Context(), run.model(t, dtypes.Float32), run.data...); err == nil || !strings.Contains(err.Error(), `its EarlyStopping is "1", this run's is "2"`) {
				t.Errorf("another distance of scores: %v", err)
			}
		})
	}
}

func TestEarlyStoppingErrors(t *testing.T) {
	broken := errors.New("no such examples")
	for _, c := range []struct {
		name  string
		early train.EarlyStopping
		want  string
	}{
		{"negative", train.EarlyStopping{Every: -1}, "every -1 epochs"},
		{"too few", train.EarlyStopping{Score: func(context.Context, *nets.Model) ([]float64, error) { return []float64{1}, nil }}, "1 scores for a model with 2 replicas"},
		{"failing", train.EarlyStopping{Score: func(context.Context, *nets.Model) ([]float64, error) { return nil, broken }}, "scoring the model after step 8: no such examples"},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := named(t, "replicas")
			run.EarlyStopping = c.early
			if err := run.Fit(t.Context(), run.model(t, dtypes.Float32), run.data...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
