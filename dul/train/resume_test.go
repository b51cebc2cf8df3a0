package train_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
	"densityuncertainty/environment/reexec"
)

// A run that is stopped after any step and called again ends with the same bits
// as one that was not.
func TestStoppedRunGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("a compiler takes a minute for all the runs")
	}
	eachTrial(t, func(t *testing.T, c trial) {
		want := c.model(t, dtypes.Float32)
		var losses []train.Losses
		c.Progress = func(p train.Progress) { losses = append(losses, p.Losses) }
		c.fit(t, want)
		for _, stops := range [][]int{{1}, {4}, {6, 7}, {3, 5, 9, 11}, {trialSteps}} {
			c.Checkpoints.Folder = t.TempDir()
			stops = append(stops, math.MaxInt)
			for _, stop := range stops {
				// A new process would have a new model, too.
				m := c.model(t, dtypes.Float32)
				c.Progress = func(p train.Progress) {
					if p.Losses != losses[p.Step-1] {
						t.Errorf("stops %v: the losses after step %d are %+v, without a stop %+v", stops, p.Step, p.Losses, losses[p.Step-1])
					}
				}
				err := fitUntil(c.Trainer, m, stop, c.data...)
				switch {
				case stop < trialSteps && !errors.Is(err, context.Canceled):
					t.Fatalf("stopped after step %d: the error is %v", stop, err)
				case stop >= trialSteps && err != nil:
					t.Fatal(err)
				case stop == math.MaxInt:
					sameState(t, m, want)
				}
			}
		}
	})
}

// A model that was trained is trained further from its parameters alone: as a new one
// that was given them, whatever momentum and scores the run before has left.
func TestTrainingAgain(t *testing.T) {
	run := regression()
	run.Order = ordering(inOrder) // which does not depend on how often there was training
	run.Groups = append([]train.Group{{Roles: []params.Role{params.Likelihood}, Optimizer: train.Adam{}}}, run.Groups...)
	data := linearSet(40, 0.3, 1)
	again := mlp(t, baselines.Deterministic{}, 3)
	fit(t, run, again, data)
	path := filepath.Join(t.TempDir(), "model.safetensors")
	must.Do(t, checkpoint.Export(again.Store, path, nil))
	fit(t, run, again, data)

	fresh := mlp(t, baselines.Deterministic{}, 3)
	tensors, _ := must.Get2(checkpoint.ReadTensors(path))(t)
	must.Do(t, checkpoint.SetTensors(fresh.Store, tensors))
	fit(t, run, fresh, data)
	got := parametersOf(t, again)
	for path, want := range parametersOf(t, fresh) {
		fixtures.Compare(t, path, got[path], want, 0)
	}
}

// A run with checkpoints can also resume with the model that it was stopped with, and
// a model that another run has trained is what the checkpoint says.
func TestStoppedRunGoesOnWithAnyModel(t *testing.T) {
	c := named(t, "regression")
	want := c.model(t, dtypes.Float32)
	c.fit(t, want)
	other := c
	other.Groups = []train.Group{{Roles: train.AllRoles(), Optimizer: train.Adam{}}} // with variables that SGD does not have
	scored := 0
	other.KeepBest.Score = func(context.Context, *nets.Model) ([]float64, error) {
		if scored++; scored > 1 {
			return nil, errors.New("no second score") // so that the first one is left
		}
		return []float64{1}, nil
	}
	used := c.model(t, dtypes.Float32)
	must.Err(t, other.Fit(context.Background(), used, other.data...), "no second score")
	for _, goesOn := range []*nets.Model{nil, used} {
		c.Checkpoints.Folder = t.TempDir()
		m := c.model(t, dtypes.Float32)
		must.Err(t, fitUntil(c.Trainer, m, 7, c.data...), context.Canceled)
		if goesOn == nil {
			goesOn = m
		}
		c.fit(t, goesOn)
		sameState(t, goesOn, want)
	}
}

// A damaged checkpoint costs the steps since the one before it, and a note.
func TestDamagedCheckpointIsNoted(t *testing.T) {
	fixtures.SkipShortOffGo(t)
	c := trials()[0]
	want := c.model(t, dtypes.Float32)
	c.fit(t, want)
	c.Checkpoints = train.Checkpoints{Folder: t.TempDir(), Every: everyStep}
	must.Err(t, fitUntil(c.Trainer, c.model(t, dtypes.Float32), 7, c.data...), context.Canceled)
	names, err := filepath.Glob(filepath.Join(c.Checkpoints.Folder, "step-*"))
	if err != nil || len(names) != 2 || filepath.Base(names[1]) != "step-00000007.safetensors" {
		t.Fatalf("checkpoints %v, want those of steps 6 and 7 (%v)", names, err)
	}
	must.Do(t, os.Truncate(names[1], 1000))
	var notes []string
	first := 0
	c.Notes = func(note string) { notes = append(notes, note) }
	c.Progress = func(p train.Progress) {
		if first == 0 {
			first = p.Step
		}
	}
	m := c.model(t, dtypes.Float32)
	c.fit(t, m)
	if first != 7 || len(notes) != 1 || !strings.Contains(notes[0], names[1]) || !strings.Contains(notes[0], "step 6") {
		t.Errorf("the run went on with step %d, notes %q", first, notes)
	}
	sameState(t, m, want)
	// Another version of the program resumes too, and says so.
	c.Checkpoints.Version, notes = "v2", nil
	m = c.model(t, dtypes.Float32)
	c.fit(t, m)
	if len(notes) != 1 || !strings.HasSuffix(notes[0], `was saved by version "" of the program and resumes with "v2": what comes out is of both`) {
		t.Errorf("notes of another version: %q", notes)
	}
	sameState(t, m, want)
	// A shorter run, or one with another batch size, seed or network, is refused.
	for want, change := range map[string]func(*trial){
		"it is of a longer run; use another Checkpoints.Folder": func(c *trial) { c.Epochs-- },
		"was saved with BatchSize":                              func(c *trial) { c.BatchSize++ },
		"and the seeds":                                         func(c *trial) { c.seeds = []uint64{6} },
		"it is the file of another model": func(c *trial) {
			c.network = func(dul.Density) nets.Network {
				return nets.ResNet{Layers: baselines.Deterministic{}, Blocks: []int{1, 1}, Widths: []int{2, 3}, Stem: 2}
			}
		},
	} {
		other := c
		change(&other)
		must.Err(t, other.Fit(context.Background(), other.model(t, dtypes.Float32), other.data...), want)
	}
}

// That a checkpoint cannot be written is noted. It neither ends the run nor spoils
// one that is complete; it is an error only where the run is stopped.
func TestFailingSaveIsNoted(t *testing.T) {
	fixtures.SkipShortOffGo(t)
	want := trials()[1].model(t, dtypes.Float32)
	trials()[1].fit(t, want)
	const last = 5 // step that is saved
	for _, stop := range []int{0, trialSteps - 1} {
		t.Run(fmt.Sprintf("stopped at %d", stop), func(t *testing.T) {
			c := trials()[1]
			c.Checkpoints = train.Checkpoints{Folder: filepath.Join(t.TempDir(), "run"), Every: everyStep}
			var notes []string
			steps := 0
			c.Notes = func(note string) { notes = append(notes, note) }
			c.Progress = func(p train.Progress) {
				if steps = p.Step; steps == last+1 {
					must.Do(t, os.RemoveAll(c.Checkpoints.Folder))
				}
			}
			m := c.model(t, dtypes.Float32)
			err := fitUntil(c.Trainer, m, stop, c.data...)
			if len(notes) == 0 || !strings.Contains(notes[0], fmt.Sprintf("since step %d", last)) {
				t.Errorf("notes %q", notes)
			}
			if stop > 0 {
				if !errors.Is(err, context.Canceled) || !errors.Is(err, os.ErrNotExist) || steps != stop {
					t.Errorf("after %d steps the error is %v", steps, err)
				}
				return
			}
			if err != nil || steps != trialSteps || len(notes) != trialSteps-last+1 || !strings.HasPrefix(notes[len(notes)-1], fmt.Sprintf("training is complete, but the same call would do it again from step %d: ", last)) {
				t.Errorf("after %d steps the error is %v, notes %q", steps, err, notes)
			}
			got := parametersOf(t, m)
			for path, array := range parametersOf(t, want) {
				fixtures.Compare(t, path, got[path], array, 0)
			}
		})
	}
}

// Every run notices that its objective is NaN or infinite, at the step where it
// happens, and that its last step leaves parameters that are none; it says what to
// try, and saves no such checkpoint.
func TestDiverged(t *testing.T) {
	eachTrial(t, func(t *testing.T, c trial) {
		for _, when := range []struct {
			name     string
			step     int // of the joint training, whose rate is infinite as a Float32
			want     string
			lastGood int
		}{{"objective", 4, "step 6: the objective is NaN or infinite", 4}, {"last step", 7, "step 8: variable /", 7}} {
			for _, folder := range []string{"", t.TempDir()} {
				if folder != "" {
					when.want = "variable /" // noticed before it is saved
				}
				t.Run(when.name+map[bool]string{true: ", saving"}[folder != ""], func(t *testing.T) {
					c.PretrainEpochs = 0
					c.Schedule = rates(func(step, _ int) float64 {
						if step == when.step {
							return math.MaxFloat64
						}
						return 0.01
					})
					c.Checkpoints = train.Checkpoints{Folder: folder, Every: everyStep}
					err := c.Fit(context.Background(), c.model(t, dtypes.Float32), c.data...)
					var diverged *train.DivergedError
					if !errors.Is(err, train.ErrDiverged) || !errors.As(err, &diverged) || len(diverged.Diverged) != len(c.data) ||
						!strings.Contains(err.Error(), when.want) || !strings.Contains(err.Error(), "lower the learning rate") {
						t.Errorf("the error is %v", err)
					}
					if folder == "" {
						return
					}
					saved := must.Get(checkpoint.Open(folder, 1))(t)
					found, err := saved.Restore(checkpoint.State{Store: model.NewStore(), Noise: c.model(t, dtypes.Float32).Host})
					if err := errors.Join(err, saved.Close()); err != nil || found.Step != when.lastGood {
						t.Errorf("the last checkpoint is of step %d, want %d (%v)", found.Step, when.lastGood, err)
					}
				})
			}
		}
	}, "replicas")
}

// If the first batch has only counts of 0, or observations of 0 with little noise, a much larger objective afterwards is
// no divergence. A learning rate that ruins the network is one, although its outputs are finite.
func TestFirstBatchOfZeros(t *testing.T) {
	for _, c := range []struct {
		name       string
		likelihood likelihood.Likelihood
		large      float64
		rate       float64
		diverges   bool
	}{
		{"counts", likelihood.Poisson{}, 4e6, 1e-3, false},
		{"little noise", likelihood.KnownNoise{Std: 0.1}, 1e5, 1e-3, false},
		{"a network thrown away", likelihood.KnownNoise{Std: 0.1}, 1e5, 3e8, true},
	} {
		for _, replicas := range []int{1, 2} {
			t.Run(fmt.Sprint(c.name, replicas), func(t *testing.T) {
				const n = 8
				data := train.Dataset{Inputs: nets.Rows(make([]float64, n), 1), Targets: make([]float64, n)}
				for i := n / 2; i < n; i++ {
					data.Targets[i] = c.large
				}
				m := newModel(t, nets.MLP{Layers: baselines.Deterministic{}}, c.likelihood, dtypes.Float32, []uint64{1, 2}[:replicas]...)
				fit := train.Trainer{Settings: train.Settings{
					Epochs: 4, BatchSize: n / 2, Order: ordering(inOrder), Schedule: train.Constant{Start: c.rate},
					Groups: []train.Group{{Roles: train.AllRoles(), Optimizer: train.Adam{}}},
				}}
				err := fit.Fit(t.Context(), m, slices.Repeat([]train.Dataset{data}, replicas)...)
				if !c.diverges {
					must.Do(t, err)
					return
				}
				must.Err(t, err, train.ErrDiverged, "step 2: the objective went from 5e+11 to ")
			})
		}
	}
}

// A replica that diverges does not change the others, also if the run is stopped
// and resumed, and the error names it alone.
func TestDivergedReplica(t *testing.T) {
	c := trials()[4]
	want := c.model(t, dtypes.Float32)
	c.fit(t, want)
	c.data[1].Targets[3] = 1e30 // whose square is infinite
	for _, stop := range []int{0, 9} {
		c.Checkpoints.Folder = t.TempDir()
		for _, at := range []int{stop, 0} {
			c.Progress = func(p train.Progress) {
				if math.IsNaN(p.Losses.Total) {
					t.Errorf("step %d reports %+v", p.Step, p.Losses)
				}
			}
			m := c.model(t, dtypes.Float32)
			err := fitUntil(c.Trainer, m, at, c.data...)
			if at > 0 {
				must.Err(t, err, context.Canceled)
				continue
			}
			var diverged *train.DivergedError
			if !errors.As(err, &diverged) || len(diverged.Diverged) != 1 || diverged.Diverged[0].Replica != 1 || !strings.Contains(err.Error(), "replica 1 of 2") {
				t.Errorf("stopped after %d: the error is %v", stop, err)
			}
			got := parametersOf(t, m)
			for path, array := range parametersOf(t, want) {
				n := len(array.Values) / 2
				fixtures.Compare(t, path, fixtures.Matrix(1, n, got[path].Values[:n]...), fixtures.Matrix(1, n, array.Values[:n]...), 0)
			}
		}
	}
}

// The objective of the pretraining, the energies' alone, is no measure of the joint one: with large counts or little noise
// that is far more than a million times as large from its first step on. So it stays when a run resumes in either phase.
func TestExplosionIsOfItsPhase(t *testing.T) {
	counts := []float64{2e6, 2.1e6, 2.2e6, 2.3e6, 2.4e6, 4e6}
	for _, c := range []struct {
		l        likelihood.Likelihood
		targets  []float64
		replicas int
	}{{likelihood.Poisson{}, counts, 1}, {likelihood.Poisson{}, counts, 2}, {likelihood.KnownNoise{Std: 1e-4}, []float64{1, -1, 2, -2, 3, 3}, 1}, {likelihood.KnownNoise{Std: 1e-5}, make([]float64, 6), 1}} {
		for _, stop := range []int{0, 2, 3, 4} { // of the three steps of an epoch of pretraining
			t.Run(fmt.Sprintf("%T%v of %d, stopped at %d", c.l, c.l, c.replicas, stop), func(t *testing.T) {
				m := newModel(t, nets.MLP{Layers: dul.Density{}, Widths: []int{4}}, c.l, dtypes.Float64, []uint64{1, 2}[:c.replicas]...)
				run := regression()
				run.PretrainEpochs, run.Epochs, run.BatchSize, run.Schedule = 1, 3, 2, train.Constant{Start: 1e-12}
				set := train.Dataset{Inputs: nets.Rows([]float64{-1, -0.5, 0, 0.5, 1, 1.5}, 1), Targets: c.targets}
				data := []train.Dataset{set, set}[:c.replicas]
				if stop > 0 {
					run.Checkpoints = train.Checkpoints{Folder: t.TempDir(), Every: everyStep}
					must.Err(t, fitUntil(run, m, stop, data...), context.Canceled)
				}
				fit(t, run, m, data...)
			})
		}
	}
}

// everyStep lets Checkpoints save every step.
const everyStep = time.Nanosecond

// A run may be killed by the system at any moment, many times, and started again.
// It ends with the same bits as one that was never killed, and each time repeats
// at most one step.
func TestKilledRunGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("a compiler takes a minute for all the processes")
	}
	for _, c := range []struct {
		trial
		epochs, kills int
	}{{trials()[0], 100, 24}, {trials()[4], 300, 12}} { // more steps than all killed processes together reach
		t.Run(c.name, func(t *testing.T) {
			c.Epochs = c.epochs
			m, run := c.model(t, dtypes.Float32), c.Trainer
			if folder, is := reexec.Argument(t); is {
				run.Checkpoints = train.Checkpoints{Folder: folder, Every: everyStep}
				run.Notes = func(note string) { fmt.Println("note:", note) }
				run.Progress = func(p train.Progress) { fmt.Println("step", p.Step) }
				fit(t, run, m, c.data...)
				return
			}
			want := c.model(t, dtypes.Float32)
			c.fit(t, want)
			folder := t.TempDir()
			rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
			reached, lost := 0, 0
			for range c.kills {
				// Some processes are killed before their first step, the others within or
				// after a save, at any moment of the step or the save that follows.
				first, last := trainUntilKilled(t, folder, rng.IntN(6), rng)
				if first > reached+1 || (first > 0 && first < reached) {
					t.Fatalf("killed after step %d, the next process went on with step %d", reached, first)
				}
				if first > 0 {
					lost += reached + 1 - first
					reached = last
				}
			}
			t.Logf("%d kills; %d steps were done again; after the last kill step %d was done", c.kills, lost, reached)

			run.Checkpoints = train.Checkpoints{Folder: folder}
			run.Notes = func(note string) { t.Error(note) }
			fit(t, run, m, c.data...)
			sameState(t, m, want)
		})
	}
}

// trainUntilKilled starts a process that trains, and kills it soon after it has
// done the given number of steps. It returns the first and the last step that
// the process announced, 0 if none.
func trainUntilKilled(t *testing.T, folder string, steps int, rng *rand.Rand) (first, last int) {
	t.Helper()
	c := reexec.Command(t, folder)
	out := must.Get(c.StdoutPipe())(t)
	must.Do(t, c.Start())
	lines := bufio.NewScanner(out)
	listen := func() bool {
		if !lines.Scan() {
			return false
		}
		if _, err := fmt.Sscanf(lines.Text(), "step %d", &last); err != nil {
			t.Fatalf("the process says %q", lines.Text())
		}
		if first == 0 {
			first = last
		}
		return true
	}
	for i := 0; i < steps && listen(); i++ {
	}
	pause := 10 * time.Millisecond // about a step and a save
	if steps == 0 {
		pause = 200 * time.Millisecond // about the start of the process
	}
	time.Sleep(time.Duration(rng.Float64() * float64(pause)))
	if err := c.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	for listen() {
	}
	if _, err := io.Copy(io.Discard, out); err != nil && !errors.Is(err, os.ErrClosed) {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := errors.Join(lines.Err(), c.Wait()); !errors.As(err, &exit) {
		t.Fatalf("the process was to be killed, but ended: %v", err)
	}
	return first, last
}
