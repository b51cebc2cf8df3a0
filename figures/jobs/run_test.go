package jobs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"densityuncertainty/environment"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/results"
)

func exp(method, dataset string, split int) results.Experiment {
	return results.Experiment{Study: results.UCI, Method: method, Dataset: dataset, Splits: "gal", Split: split,
		Seed: uint64(split), Epochs: 100, Samples: 10, Fidelity: results.Paper, Scale: results.Full}
}

func image(seed uint64) results.Experiment {
	return results.Experiment{Study: results.Images, Method: "density", Dataset: "cifar10", Network: "resnet14", Seed: seed, Epochs: 1, Samples: 1,
		Fidelity: results.Paper, Scale: results.Full}
}

func result(e results.Experiment) results.Result { return results.Result{ID: e.ID(), Experiment: e} }

func TestBatches(t *testing.T) {
	a0, a1, a2, b0 := exp("density", "yacht", 0), exp("density", "yacht", 1), exp("density", "yacht", 2), exp("rank1", "yacht", 0)
	first, second := image(0), image(1)
	for _, c := range []struct {
		name string
		list []results.Experiment
		size int
		want [][]results.Experiment
	}{
		{"no limit", []results.Experiment{a0, b0, a1, a2}, 0, [][]results.Experiment{{a0, a1, a2}, {b0}}},
		{"two", []results.Experiment{a0, b0, a1, a2}, 2, [][]results.Experiment{{a0, a1}, {b0}, {a2}}},
		{"one", []results.Experiment{a0, b0, a1, a2}, 1, [][]results.Experiment{{a0}, {b0}, {a1}, {a2}}},
		{"images alone, no limit", []results.Experiment{first, a0, second, a1}, 0, [][]results.Experiment{{first}, {a0, a1}, {second}}},
		{"images alone, two", []results.Experiment{first, second}, 2, [][]results.Experiment{{first}, {second}}},
		{"none", nil, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Batches(c.list, c.size); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// runnerFunc makes a function a Runner, for which a run costs as much as it has epochs.
type runnerFunc func(ctx context.Context, batch []results.Experiment, progress func(float64, string)) ([]results.Result, error)

func (f runnerFunc) Run(ctx context.Context, batch []results.Experiment, progress func(float64, string)) ([]results.Result, error) {
	return f(ctx, batch, progress)
}

func (f runnerFunc) Cost(e results.Experiment) float64 { return float64(e.Epochs) }

// Each batch goes to the runner of its study, and so does the question what it costs.
func TestStudies(t *testing.T) {
	var ran []string
	named := func(name string) Runner {
		return runnerFunc(func(ctx context.Context, batch []results.Experiment, progress func(float64, string)) ([]results.Result, error) {
			ran = append(ran, name)
			return good(ctx, batch, progress)
		})
	}
	studies := Studies{results.UCI: named("uci"), results.Toy: named("toy")}
	toy, image := exp("density", "toy-cubic", 0), exp("density", "cifar10", 0)
	toy.Study, toy.Epochs, image.Study = results.Toy, 7, results.Images
	for _, c := range []struct {
		name  string
		batch []results.Experiment
		cost  float64
		want  string // in the error
	}{
		{"uci", []results.Experiment{exp("density", "yacht", 0)}, 100, ""},
		{"toy", []results.Experiment{toy}, 7, ""},
		{"another", []results.Experiment{image}, 0, "cifar10"},
		{"none", nil, 0, "empty batch"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ran = nil
			found, err := studies.Run(t.Context(), c.batch, func(float64, string) {})
			switch {
			case c.want != "":
				if err == nil || !strings.Contains(err.Error(), c.want) || ran != nil {
					t.Errorf("%v ran, error %v, want one with %q", ran, err, c.want)
				}
			case err != nil || len(found) != 1 || found[0].ID != c.batch[0].ID() || !slices.Equal(ran, []string{c.name}):
				t.Errorf("%v ran and returned %v, %v", ran, found, err)
			}
			for _, e := range c.batch {
				if got := studies.Cost(e); got != c.cost {
					t.Errorf("it costs %v, want %v", got, c.cost)
				}
			}
		})
	}
}

// memory keeps results without a disk.
type memory struct {
	Alone
	ids []string
	err error
}

func (m *memory) Append(r results.Result) (bool, string, error) {
	m.ids = append(m.ids, r.ID)
	return true, "", m.err
}

func (m *memory) Missing(list []results.Experiment) ([]results.Experiment, error) {
	return slices.DeleteFunc(slices.Clone(list), func(e results.Experiment) bool { return slices.Contains(m.ids, e.ID()) }), nil
}

func all(t *testing.T, ctx context.Context, r Runner, store Store, batches [][]results.Experiment) (string, error) {
	t.Helper()
	var out strings.Builder
	clock := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	tick := func() time.Time { clock = clock.Add(time.Minute); return clock }
	err := All(ctx, r, store, batches, NewReporter(&out, false, tick, r, batches))
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
	out, err := all(t, ctx, stopping, &m, batches())
	if !errors.Is(err, context.Canceled) || calls != 2 || len(m.ids) != 4 {
		t.Errorf("%d calls, %d stored, %v", calls, len(m.ids), err)
	}
	if !strings.Contains(out, "[4/15 runs, 27%") || !strings.HasSuffix(out, ": stopped\n") {
		t.Errorf("report: %s", out)
	}
}

func TestAllGoesOnAfterAFailure(t *testing.T) {
	var m memory
	calls, cause := 0, errors.New("no such file")
	failing := runnerFunc(func(ctx context.Context, batch []results.Experiment, progress func(float64, string)) ([]results.Result, error) {
		if calls++; calls == 1 {
			return nil, cause
		}
		if calls == 2 {
			return []results.Result{result(batch[1])}, cause // for the others
		}
		return good(ctx, batch, progress)
	})
	out, err := all(t, context.Background(), failing, &m, batches())
	if !errors.Is(err, cause) || len(m.ids) != 10 {
		t.Errorf("%d stored, %v", len(m.ids), err)
	}
	if want := "jobs: 2 of 5 batches failed, as said above:\n  uci density on yacht splits 0-1,5 (paper, full)\n  uci rank1 on yacht splits 0-1,5 (paper, full)"; err != nil && err.Error() != want {
		t.Errorf("error %v, want %v", err, want)
	}
	for _, want := range []string{"[0/15 runs, 0%, 3m0s] uci density on yacht splits 0-1,5 (paper, full): FAILED: no such file\n", "[1/15 runs, 7%, 6m0s, about 54m0s left] uci rank1 ", "[10/15 runs, 67%, "} {
		if !strings.Contains(out, want) {
			t.Errorf("the report lacks %q:\n%s", want, out)
		}
	}
	if last := out[strings.LastIndex(out, "["):]; strings.Contains(last, "left") {
		t.Errorf("at the end there is something left: %s", last)
	}
}

// A batch of one experiment, which the error names too, is named once.
func TestReportNamesAnExperimentOnce(t *testing.T) {
	e := exp("density", "yacht", 0)
	failing := runnerFunc(func(context.Context, []results.Experiment, func(float64, string)) ([]results.Result, error) {
		return nil, fmt.Errorf("%v: training: no backend", e)
	})
	if out, err := all(t, t.Context(), failing, new(memory), [][]results.Experiment{{e}}); err == nil || !strings.Contains(out, "] "+e.String()+": FAILED: training: no backend\n") {
		t.Errorf("error %v, report:\n%s", err, out)
	}
}

// What another process stores while a batch fails, as it has the same checkpoints, or before all others are done, has
// not failed.
func TestAllAmongOthers(t *testing.T) {
	for when, last := range map[int]string{2: "mcdropout on yacht splits 0-1,5 (paper, full): done\n", 4: "rank1 on yacht splits 0-1,5 (paper, full): another run has finished it\n"} {
		// In this call the other process stores the second batch.
		t.Run(fmt.Sprintf("call %d", when), func(t *testing.T) {
			var m memory
			calls, list := 0, batches()
			failing := runnerFunc(func(ctx context.Context, batch []results.Experiment, progress func(float64, string)) ([]results.Result, error) {
				if calls++; calls == when {
					for _, e := range list[1] {
						m.ids = append(m.ids, e.ID())
					}
				}
				if calls == 2 {
					return nil, errors.New("in use by another run")
				}
				return good(ctx, batch, progress)
			})
			if out, err := all(t, t.Context(), failing, &m, list); err != nil || !strings.Contains(out, "uci rank1 on yacht splits 0-1,5 (paper, full): another run has finished it") || !strings.Contains(out[strings.LastIndex(out, "["):], "[15/15 runs, 100%, ") || !strings.HasSuffix(out, last) {
				t.Errorf("error %v, report:\n%s", err, out)
			}
		})
	}
}

// What another process has stored since the batches were made is not carried out again.
func TestAllLeavesOutWhatOthersFinished(t *testing.T) {
	var m memory
	list := batches()
	for _, e := range append(list[1][:1:1], list[2]...) {
		m.ids = append(m.ids, e.ID())
	}
	ran := 0
	counting := runnerFunc(func(ctx context.Context, batch []results.Experiment, progress func(float64, string)) ([]results.Result, error) {
		ran += len(batch)
		return good(ctx, batch, progress)
	})
	out, err := all(t, t.Context(), counting, &m, list)
	if want := 15 - 1 - len(list[2]); err != nil || ran != want || !strings.Contains(out, "another run has finished it") || !strings.Contains(out, "[15/15 runs, 100%, ") {
		t.Errorf("%d experiments carried out, want %d (%v), report:\n%s", ran, want, err, out)
	}
}

// shared is a memory that other processes have claimed experiments of.
type shared struct {
	memory
	claimed  func(pass int, e results.Experiment) bool // pass counts how often an experiment was asked for
	asked    map[string]int
	released int
}

func (s *shared) Claim(list []results.Experiment) (free []results.Experiment, release func() error, err error) {
	for _, e := range list {
		if s.asked[e.ID()]++; !s.claimed(s.asked[e.ID()], e) {
			free = append(free, e)
		}
	}
	return free, func() error { s.released++; return nil }, nil
}

// What other processes are at comes last, and what they are still at then is theirs; neither is a failure, however many
// there are.
func TestAllSharesTheWork(t *testing.T) {
	always := func(_ int, e results.Experiment) bool { return e.Method != "mcdropout" }
	for _, c := range []struct {
		name    string
		claimed func(pass int, e results.Experiment) bool
		ran     []string // batches, by method and number of experiments
		want    string   // in the report
	}{
		{"four others", always, []string{"mcdropout 3"}, "uci density on yacht splits 0-1,5 (paper, full): another run is still at it, and it is left to that\n"},
		{"others that stop", func(pass int, e results.Experiment) bool { return pass == 1 && always(pass, e) },
			[]string{"mcdropout 3", "density 3", "rank1 3", "mfvi 3", "vdropout 3"}, "[15/15 runs, 100%"},
		{"a part of a batch", func(_ int, e results.Experiment) bool { return e.Method == "density" && e.Split == 1 },
			[]string{"density 2", "rank1 3", "mfvi 3", "vdropout 3", "mcdropout 3"}, "split 1, 100 epochs, 10 samples, seed 1 (paper, full): another run is still at it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var ran []string
			counting := runnerFunc(func(ctx context.Context, batch []results.Experiment, progress func(float64, string)) ([]results.Result, error) {
				ran = append(ran, fmt.Sprintf("%s %d", batch[0].Method, len(batch)))
				return good(ctx, batch, progress)
			})
			s := shared{claimed: c.claimed, asked: make(map[string]int)}
			out, err := all(t, t.Context(), counting, &s, batches())
			if err != nil || !slices.Equal(ran, c.ran) || !strings.Contains(out, c.want) {
				t.Errorf("ran %q, %v, report:\n%s", ran, err, out)
			}
			if want := 5 + strings.Count(out, "comes later"); s.released != want {
				t.Errorf("%d of %d claims released", s.released, want)
			}
		})
	}
	// A runner that fails has released what it had.
	s := shared{claimed: func(int, results.Experiment) bool { return false }, asked: make(map[string]int)}
	failing := runnerFunc(func(context.Context, []results.Experiment, func(float64, string)) ([]results.Result, error) {
		return nil, errors.New("no backend")
	})
	if _, err := all(t, t.Context(), failing, &s, batches()); err == nil || s.released != maxFailures {
		t.Errorf("%d claims released, %v", s.released, err)
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
	returning := func(found ...results.Result) Runner {
		return runnerFunc(func(context.Context, []results.Experiment, func(float64, string)) ([]results.Result, error) {
			return found, nil
		})
	}
	for _, c := range []struct {
		name   string
		runner Runner
		store  memory
		want   string
		kept   int // that the store was given
	}{
		{"a short answer", returning(result(batches()[0][0])), memory{}, "no result for 2 of 3", 1},
		{"a stray answer", returning(result(exp("density", "wine", 0))), memory{}, "not in the batch", 0},
		{"a full disk", runnerFunc(good), memory{err: errors.New("disk full")}, "disk full", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := all(t, context.Background(), c.runner, &c.store, batches()[:1])
			if err == nil || !strings.Contains(out+err.Error(), c.want) || len(c.store.ids) != c.kept {
				t.Errorf("%d appended, error %v, want %d and %q; report:\n%s", len(c.store.ids), err, c.kept, c.want, out)
			}
		})
	}
}

// Time left and part done go by what batches cost, not by their number.
func TestReportGoesByCost(t *testing.T) {
	long, short := exp("density", "yacht", 0), exp("rank1", "yacht", 0)
	long.Epochs = 900
	var out strings.Builder
	clock := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	batches := [][]results.Experiment{{long}, {short}}
	r := NewReporter(&out, false, func() time.Time { return clock }, runnerFunc(good), batches)
	clock = clock.Add(9 * time.Minute)
	r.begin(batches[0])
	r.end(nil, nil)
	if got := out.String(); !strings.Contains(got, "[1/2 runs, 90%, 9m0s, about 1m0s left]") {
		t.Errorf("report:\n%s", got)
	}
}

// What an earlier process did before this one went on took none of its time.
func TestReportOfARunThatGoesOn(t *testing.T) {
	var out strings.Builder
	clock := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	batch := []results.Experiment{exp("density", "yacht", 0)}
	r := NewReporter(&out, false, func() time.Time { return clock }, runnerFunc(good), [][]results.Experiment{batch})
	r.begin(batch)
	clock = clock.Add(time.Minute)
	r.update(0.4, "epoch 41/100")
	clock = clock.Add(time.Minute)
	r.update(0.5, "epoch 51/100")
	if got := out.String(); !strings.Contains(got, "[0/1 runs, 40%, 1m0s] ") || !strings.Contains(got, "[0/1 runs, 50%, 2m0s, about 5m0s left] ") {
		t.Errorf("report:\n%s", got)
	}
}

func TestTerminalReport(t *testing.T) {
	var out strings.Builder
	b := batches()[:2]
	clock := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	r := NewReporter(&out, true, func() time.Time { clock = clock.Add(time.Second); return clock }, runnerFunc(good), b)
	r.begin(b[0])
	r.update(0.5, "epoch 50/100")
	r.Note("a note")
	r.end(nil, nil)
	if got := out.String(); !strings.Contains(got, "50%, 5s, about 4s left") || !strings.Contains(got, "\na note\n") || strings.Count(got, "\n") != 3 {
		t.Errorf("report:\n%q", got)
	}
}

func TestLive(t *testing.T) {
	wanted := []results.Experiment{exp("density", "yacht", 1), exp("rank1", "boston", 0), exp("density", "yacht", 0)}
	var fractions []float64
	lines := must.Get(Live(context.Background(), runnerFunc(good), wanted, func(done float64, note string) {
		fractions = append(fractions, done)
		if !strings.Contains(note, "yacht") && !strings.Contains(note, "boston") {
			t.Errorf("the note %q does not say what is running", note)
		}
	}))(t)
	for i, e := range wanted {
		if lines[i].ID != e.ID() {
			t.Errorf("line %d is of %v, want %v", i, lines[i].Experiment, e)
		}
	}
	if !slices.ContainsFunc(fractions, func(f float64) bool { return math.Abs(f-2./3) < 1e-6 }) { // two of the three runs, which cost the same, are done
		t.Errorf("progress went %v, want it to pass 2/3", fractions)
	}
	if !slices.IsSorted(fractions) || fractions[0] != 0 || fractions[len(fractions)-1] != 1 {
		t.Errorf("progress went %v, want up from 0 to 1", fractions)
	}
}

// What was finished before an error is there beside it, in the order of the experiments.
func TestLiveKeepsWhatIsFinished(t *testing.T) {
	wanted := []results.Experiment{exp("rank1", "boston", 0), exp("density", "yacht", 1), exp("density", "yacht", 0)}
	lines, err := Live(t.Context(), runnerFunc(func(ctx context.Context, batch []results.Experiment, progress func(float64, string)) ([]results.Result, error) {
		if batch[0].Method == "rank1" {
			return good(ctx, batch, progress)
		}
		found, err := good(ctx, batch[:1], progress)
		return found, errors.Join(err, errors.New("no more"))
	}), wanted, nil)
	if err == nil || len(lines) != 2 || lines[0].ID != wanted[0].ID() || lines[1].Experiment.Method != "density" {
		t.Errorf("%d lines beside the error %v: %v", len(lines), err, lines)
	}
}

// An experiment that is asked for twice is carried out once.
func TestLiveTwice(t *testing.T) {
	ran := 0
	counted := runnerFunc(func(ctx context.Context, batch []results.Experiment, progress func(float64, string)) ([]results.Result, error) {
		ran += len(batch)
		return good(ctx, batch, progress)
	})
	e := exp("density", "yacht", 1)
	lines := must.Get(Live(t.Context(), counted, []results.Experiment{e, exp("rank1", "yacht", 1), e}, nil))(t)
	if ran != 2 || len(lines) != 3 || lines[0].ID != lines[2].ID || lines[0].ID != e.ID() {
		t.Errorf("%d runs, %d lines", ran, len(lines))
	}
}

// An experiment that cannot be, or none at all, is an error before the first is carried out.
func TestExperimentsThatCannotBe(t *testing.T) {
	wrong := exp("rank1", "yacht", 0)
	wrong.Samples = 0
	for _, c := range []struct {
		name, want string
		list       []results.Experiment
		of         func(list []results.Experiment, r Runner) error
	}{
		{"live", "samples is 0", []results.Experiment{exp("density", "yacht", 0), wrong}, func(list []results.Experiment, r Runner) error {
			_, err := Live(t.Context(), r, list, nil)
			return err
		}},
		{"live, none", "there are no experiments", nil, func(list []results.Experiment, r Runner) error {
			_, err := Live(t.Context(), r, list, nil)
			return err
		}},
		{"all", "samples is 0", []results.Experiment{exp("density", "yacht", 0), wrong}, func(list []results.Experiment, r Runner) error {
			_, err := all(t, t.Context(), r, new(memory), Batches(list, 0))
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls := 0
			runner := runnerFunc(func(ctx context.Context, batch []results.Experiment, progress func(float64, string)) ([]results.Result, error) {
				calls++
				return good(ctx, batch, progress)
			})
			if err := c.of(c.list, runner); err == nil || !strings.Contains(err.Error(), c.want) || calls > 0 {
				t.Errorf("%d calls, error %v", calls, err)
			}
		})
	}
}

func TestLiveFails(t *testing.T) {
	broken := errors.New("no backend")
	for _, c := range []struct {
		name  string
		err   error
		wants []string
	}{
		{"a failing batch", broken, []string{"yacht", "no backend"}},
		{"an empty answer", nil, []string{"yacht", "no result for 1 of 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls := 0
			runner := runnerFunc(func(context.Context, []results.Experiment, func(float64, string)) ([]results.Result, error) {
				calls++
				return nil, c.err
			})
			wanted := []results.Experiment{exp("density", "yacht", 0), exp("rank1", "yacht", 0)}
			_, err := Live(context.Background(), runner, wanted, nil)
			if err == nil || c.err != nil && !errors.Is(err, c.err) || calls != 1 {
				t.Errorf("%d calls, error %v", calls, err)
			}
			for _, want := range c.wants {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want one with %q", err, want)
				}
			}
		})
	}
}

// Small networks on the pure Go backend run beside each other: each of the two batches waits until both are under way.
// Progress comes one at a time and never goes back; nobody knows which took the processor's time.
func TestLiveBesideEachOther(t *testing.T) {
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	short, long := exp("rank1", "boston", 0), exp("density", "yacht", 0)
	long.Epochs = 300
	var underWay atomic.Int32
	both := make(chan struct{})
	on := func(machine Machine) Runner {
		return runnerFunc(func(ctx context.Context, batch []results.Experiment, progress func(float64, string)) ([]results.Result, error) {
			progress(0.5, "half")
			if underWay.Add(1) == 2 {
				close(both)
			}
			select {
			case <-both:
			case <-time.After(time.Minute):
				return nil, errors.New("the other batch is not under way")
			}
			line := machine.Line(batch[0], 1)
			line.CPUSeconds = 5
			return []results.Result{line}, nil
		})
	}
	calling := false
	var fractions []float64
	lines := must.Get(LiveFor(t.Context(), on, []results.Experiment{short, long}, func(done float64, _ string) {
		if calling {
			t.Error("progress was called from two goroutines at a time")
		}
		calling = true
		fractions = append(fractions, done)
		time.Sleep(time.Millisecond)
		calling = false
	}))(t)
	if len(lines) != 2 || lines[0].ID != short.ID() || lines[1].ID != long.ID() || lines[0].CPUSeconds != 0 || lines[1].CPUSeconds != 0 {
		t.Errorf("lines %+v", lines)
	}
	if !slices.IsSorted(fractions) || len(fractions) != 4 || math.Abs(fractions[1]-0.5) > 1e-6 || math.Abs(fractions[3]-1) > 1e-6 {
		t.Errorf("progress went %v", fractions)
	}
}

// With more batches than runners the longest ones begin first, and where one fails, those under way are stopped and keep
// what they have, and no further one begins.
func TestLiveStopsTheOthers(t *testing.T) {
	var wanted []results.Experiment
	for i, method := range []string{"rank1", "mfvi", "density", "mcdropout"} {
		e := exp(method, "yacht", 0)
		e.Epochs = []int{1, 10, 100, 1000}[i]
		wanted = append(wanted, e)
	}
	broken := errors.New("no more")
	underWay := make(chan struct{})
	runner := runnerFunc(func(ctx context.Context, batch []results.Experiment, progress func(float64, string)) ([]results.Result, error) {
		switch batch[0].Method {
		case "mcdropout":
			close(underWay)
			<-ctx.Done()
			return []results.Result{result(batch[0])}, ctx.Err()
		case "density":
			<-underWay
			return nil, broken
		}
		t.Errorf("%v was begun", batch[0])
		return nil, nil
	})
	lines, err := live(t.Context(), []Runner{runner, runner}, wanted, liveBatches(wanted), nil)
	if !errors.Is(err, broken) || errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "density") {
		t.Errorf("error %v", err)
	}
	if len(lines) != 1 || lines[0].Experiment.Method != "mcdropout" {
		t.Errorf("%d lines beside the error: %v", len(lines), lines)
	}
}

// What kind of work batches are goes by what they cost on average; images by what they are.
func TestWorkOf(t *testing.T) {
	short, long := exp("density", "yacht", 0), exp("density", "protein", 0) // which cost as much as they have epochs
	short.Epochs, long.Epochs = 1e6, 2.5e6
	for _, c := range []struct {
		name    string
		batches [][]results.Experiment
		want    environment.Work
	}{
		{"short", [][]results.Experiment{{short}}, environment.ShortTrainings},
		{"long", [][]results.Experiment{{long}}, environment.SmallNetworks},
		{"long together", [][]results.Experiment{{short, short, short}}, environment.SmallNetworks},
		{"more short ones", [][]results.Experiment{{long}, {short}, {short}}, environment.ShortTrainings},
		{"an image among them", [][]results.Experiment{{short}, {image(0)}}, environment.Images},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := WorkOf(runnerFunc(good), c.batches); got != c.want {
				t.Errorf("work %v, want %v", got, c.want)
			}
		})
	}
}

// One batch, and images, have one runner, and know the time of the processor.
func TestLiveAlone(t *testing.T) {
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	for _, c := range []struct {
		name   string
		wanted []results.Experiment
	}{
		{"one batch", []results.Experiment{exp("density", "yacht", 0), exp("density", "yacht", 1)}},
		{"images", []results.Experiment{image(0), image(1)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			machines := 0
			on := func(machine Machine) Runner {
				if machine.Backend != nil {
					machines++
				}
				return runnerFunc(func(ctx context.Context, batch []results.Experiment, progress func(float64, string)) ([]results.Result, error) {
					lines, err := good(ctx, batch, progress)
					for i := range lines {
						lines[i].CPUSeconds = 5
					}
					return lines, err
				})
			}
			lines := must.Get(LiveFor(t.Context(), on, c.wanted, nil))(t)
			if machines != 1 || len(lines) != 2 || lines[0].CPUSeconds != 5 {
				t.Errorf("%d machines, lines %+v", machines, lines)
			}
		})
	}
}
