package jobs

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"densityuncertainty/figures/results"
)

func exp(method, dataset string, split int) results.Experiment {
	return results.Experiment{Study: results.UCI, Method: method, Dataset: dataset, Splits: results.GalSplits, Split: split,
		Seed: uint64(split), Epochs: 100, Samples: 10, Fidelity: results.Paper, Scale: results.Full}
}

func result(e results.Experiment) results.Result { return results.Result{ID: e.ID(), Experiment: e} }

func TestMissing(t *testing.T) {
	a, b, c := exp("density", "yacht", 0), exp("density", "yacht", 1), exp("rank1", "yacht", 0)
	got := Missing([]results.Experiment{a, b, c}, []results.Result{result(b)})
	if !reflect.DeepEqual(got, []results.Experiment{a, c}) {
		t.Errorf("got %v", got)
	}
}

func TestBatches(t *testing.T) {
	a0, a1, a2 := exp("density", "yacht", 0), exp("density", "yacht", 1), exp("density", "yacht", 2)
	b0 := exp("rank1", "yacht", 0)
	all := []results.Experiment{a0, b0, a1, a2}
	for size, want := range map[int][][]results.Experiment{
		0: {{a0, a1, a2}, {b0}},
		2: {{a0, a1}, {b0}, {a2}},
		1: {{a0}, {b0}, {a1}, {a2}},
	} {
		if got := Batches(all, size); !reflect.DeepEqual(got, want) {
			t.Errorf("size %d: got %v", size, got)
		}
	}
}

// runnerFunc makes a function a Runner.
type runnerFunc func(ctx context.Context, batch []results.Experiment, progress func(float64, string)) ([]results.Result, error)

func (f runnerFunc) Run(ctx context.Context, batch []results.Experiment, progress func(float64, string)) ([]results.Result, error) {
	return f(ctx, batch, progress)
}

// memory keeps results without a disk.
type memory struct {
	ids []string
	err error
}

func (m *memory) Append(r results.Result) (bool, string, error) {
	m.ids = append(m.ids, r.ID)
	return true, "", m.err
}

func all(t *testing.T, ctx context.Context, r Runner, store Appender, batches [][]results.Experiment) (string, error) {
	t.Helper()
	var out strings.Builder
	clock := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	tick := func() time.Time { clock = clock.Add(time.Minute); return clock }
	err := All(ctx, r, store, batches, NewReporter(&out, false, tick, batches))
	return out.String(), err
}

func good(ctx context.Context, batch []results.Experiment, progress func(float64, string)) ([]results.Result, error) {
	var found []results.Result
	for i, e := range batch {
		progress(float64(i)/float64(len(batch)), "epoch 3/10")
		found = append(found, result(e))
	}
	return found, nil
}

func batches() [][]results.Experiment {
	var list []results.Experiment
	for _, method := range []string{"density", "rank1", "mfvi", "vdropout", "mcdropout"} {
		list = append(list, exp(method, "yacht", 0), exp(method, "yacht", 1), exp(method, "yacht", 5))
	}
	return Batches(list, 0)
}

func TestAllStoresEverything(t *testing.T) {
	var m memory
	out, err := all(t, context.Background(), runnerFunc(good), &m, batches())
	if err != nil || len(m.ids) != 15 {
		t.Fatalf("%d stored, %v", len(m.ids), err)
	}
	for _, want := range []string{"[15/15 runs, 100%", "uci density on yacht splits 0-1,5 (paper, full)", "epoch 3/10", "left]"} {
		if !strings.Contains(out, want) {
			t.Errorf("the report lacks %q:\n%s", want, out)
		}
	}
}

func TestAllStopsWhenTold(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var m memory
	calls := 0
	stopping := runnerFunc(func(ctx context.Context, batch []results.Experiment, progress func(float64, string)) ([]results.Result, error) {
		if calls++; calls == 2 {
			cancel()
			return []results.Result{result(batch[0])}, fmt.Errorf("training: %w", ctx.Err())
		}
		return good(ctx, batch, progress)
	})
	_, err := all(t, ctx, stopping, &m, batches())
	if !errors.Is(err, context.Canceled) || calls != 2 || len(m.ids) != 4 {
		t.Errorf("%d calls, %d stored, %v", calls, len(m.ids), err)
	}
}

func TestAllGoesOnAfterAFailure(t *testing.T) {
	var m memory
	calls := 0
	failing := runnerFunc(func(ctx context.Context, batch []results.Experiment, progress func(float64, string)) ([]results.Result, error) {
		if calls++; calls == 2 {
			return []results.Result{result(batch[1])}, errors.New("no such file") // for the others
		}
		return good(ctx, batch, progress)
	})
	out, err := all(t, context.Background(), failing, &m, batches())
	if err == nil || !strings.Contains(err.Error(), "no such file") || !strings.Contains(err.Error(), "rank1") || len(m.ids) != 13 {
		t.Errorf("%d stored, %v", len(m.ids), err)
	}
	if !strings.Contains(out, "FAILED: no such file") {
		t.Errorf("report: %s", out)
	}
}

func TestAllGivesUp(t *testing.T) {
	var m memory
	calls := 0
	failing := runnerFunc(func(context.Context, []results.Experiment, func(float64, string)) ([]results.Result, error) {
		calls++
		return nil, errors.New("no backend")
	})
	if _, err := all(t, context.Background(), failing, &m, batches()); err == nil || calls != maxFailures || !strings.Contains(err.Error(), "gave up") {
		t.Errorf("%d calls, %v", calls, err)
	}
}

func TestAllChecksTheRunner(t *testing.T) {
	short := runnerFunc(func(ctx context.Context, batch []results.Experiment, progress func(float64, string)) ([]results.Result, error) {
		return []results.Result{result(batch[0])}, nil
	})
	if _, err := all(t, context.Background(), short, &memory{}, batches()[:1]); err == nil || !strings.Contains(err.Error(), "no result for 2 of 3") {
		t.Errorf("a short answer: %v", err)
	}
	stray := runnerFunc(func(ctx context.Context, batch []results.Experiment, progress func(float64, string)) ([]results.Result, error) {
		return []results.Result{result(exp("density", "wine", 0))}, nil
	})
	if _, err := all(t, context.Background(), stray, &memory{}, batches()[:1]); err == nil || !strings.Contains(err.Error(), "not in the batch") {
		t.Errorf("a stray answer: %v", err)
	}
	full := &memory{err: errors.New("disk full")}
	if _, err := all(t, context.Background(), runnerFunc(good), full, batches()); err == nil || len(full.ids) != 1 {
		t.Errorf("a full disk: %d appended, %v", len(full.ids), err)
	}
}

func TestTerminalReport(t *testing.T) {
	var out strings.Builder
	b := batches()[:2]
	clock := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	r := NewReporter(&out, true, func() time.Time { clock = clock.Add(time.Second); return clock }, b)
	r.begin(b[0])
	r.update(0.5, "epoch 50/100")
	r.Note("a note")
	r.end(nil)
	if got := out.String(); !strings.Contains(got, "25%, 4s, about 12s left") || !strings.Contains(got, "\na note\n") || strings.Count(got, "\n") != 3 {
		t.Errorf("report:\n%q", got)
	}
}
