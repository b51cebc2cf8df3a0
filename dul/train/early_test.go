package train_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
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
func TestKeepBest(t *testing.T) {
	nan := math.NaN()
	tried := map[string]bool{} // of which kinds of networks a case ran: XLA compiles each case anew, and in short mode one is enough
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
		again := tried[c.trial]
		tried[c.trial] = true
		t.Run(fmt.Sprintf("%s, every %d, %v", c.trial, c.every, c.scores), func(t *testing.T) {
			if again || c.trial != "replicas" {
				fixtures.SkipShortOffGo(t)
			}
			of := func(epochs int) map[string]fixtures.Array {
				run := named(t, c.trial)
				run.Epochs, run.Schedule = epochs, train.Steps{Start: 0.05, Factor: 1}
				m := run.model(t, dtypes.Float32)
				run.fit(t, m)
				return parametersOf(t, m, params.Running)
			}
			run := named(t, c.trial)
			run.Epochs, run.Schedule = 4, train.Steps{Start: 0.05, Factor: 1}
			run.KeepBest = train.KeepBest{Every: c.every, Score: c.scores.score(t, run.data[0].Inputs)}
			var notes []string
			run.Notes = func(note string) { notes = append(notes, note) }
			m := run.model(t, dtypes.Float32)
			run.fit(t, m)
			if useless := fmt.Sprint(c.scores) == fmt.Sprint(told{{nan}, {nan}, {nan}, {nan}}); useless != slices.ContainsFunc(notes, func(note string) bool { return strings.Contains(note, "no score of replica 0 was a finite number") }) {
				t.Errorf("notes %q", notes)
			}
			got := parametersOf(t, m, params.Running)
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

// A replica that diverges after an epoch that is the best has its parameters and did not diverge; one that diverges
// before there is one did.
func TestDivergedAfterTheBestEpoch(t *testing.T) {
	const perEpoch = trialSteps / 3
	for _, c := range []struct {
		name, trial string
		scores      told
		at          int // epoch of training in which all explode
		diverged    []int
	}{
		{"a single model", "regression", told{{1}, {2}, {3}, {4}}, 2, nil},
		{"without a best epoch", "regression", told{{math.NaN()}, {2}, {3}, {4}}, 2, []int{0}},
		{"replicas", "replicas", told{{1, math.NaN()}, {2, 2}, {3, 3}, {4, 4}}, 2, []int{1}},
		{"at the very start", "replicas", told{{1, 1}, {2, 2}, {3, 3}, {4, 4}}, 1, []int{0, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name != "replicas" {
				fixtures.SkipShortOffGo(t)
			}
			run := named(t, c.trial)
			run.Epochs, run.PretrainEpochs = 4, 0 // which would take the largest rate
			run.Schedule = rates(func(step, total int) float64 {
				if step == (c.at-1)*perEpoch+1 {
					return 1e30
				}
				return 0.05
			})
			run.KeepBest.Score = c.scores.score(t, run.data[0].Inputs)
			m := run.model(t, dtypes.Float32)
			err := run.Fit(t.Context(), m, run.data...)
			var diverged *train.DivergedError
			if c.diverged == nil {
				must.Do(t, err)
			} else if !errors.As(err, &diverged) {
				t.Fatalf("the error is %v", err)
			} else {
				var got []int
				for _, d := range diverged.Diverged {
					got = append(got, d.Replica)
				}
				slices.Sort(got)
				if !slices.Equal(got, c.diverged) {
					t.Errorf("replicas %v diverged, want %v", got, c.diverged)
				}
			}
			for path, value := range parametersOf(t, m, params.Running) {
				part := len(value.Values) / max(1, m.Replicas)
				for k := range max(1, m.Replicas) {
					if !slices.Contains(c.diverged, k) && slices.ContainsFunc(value.Values[k*part:(k+1)*part], func(v float64) bool { return !(math.Abs(v) <= 1e6) }) {
						t.Errorf("replica %d: %s is %v", k, path, value.Values[k*part:(k+1)*part])
					}
				}
			}
		})
	}
}

// A run that is stopped, while it trains or where it is to be scored, resumes as if it had not been.
func TestStoppedKeepBest(t *testing.T) {
	fixtures.SkipShortOffGo(t)
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
	run.KeepBest.Score = func(ctx context.Context, _ *nets.Model) ([]float64, error) {
		return scores[step/perEpoch-2], ctx.Err() // an epoch of pretraining is before them
	}
	want := run.model(t, dtypes.Float32)
	must.Do(t, run.Fit(stopping(), want, run.data...))
	stops := []int{3*perEpoch - 1, perEpoch + 1, 2 * perEpoch, 4 * perEpoch, 5 * perEpoch}
	if testing.Short() {
		stops = stops[:1]
	}
	for _, stop = range stops {
		t.Run(fmt.Sprintf("after step %d", stop), func(t *testing.T) {
			run.Checkpoints.Folder = t.TempDir()
			must.Err(t, run.Fit(stopping(), run.model(t, dtypes.Float32), run.data...), context.Canceled)
			m := run.model(t, dtypes.Float32)
			must.Do(t, run.Fit(stopping(), m, run.data...))
			sameState(t, m, want)
		})
	}
}
