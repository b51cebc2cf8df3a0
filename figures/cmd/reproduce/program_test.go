package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"densityuncertainty/environment"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/results"
)

// What the made-up runner does in a process of its own.
const (
	fakeDelay = "REPRODUCE_TEST_DELAY" // how long it takes for one experiment
	fakeLog   = "REPRODUCE_TEST_LOG"   // file to which it writes every experiment it starts
	fakeNoGPU = "REPRODUCE_TEST_NOGPU" // that there is no GPU, if not empty
)

// TestMain makes the test binary the program where its arguments are not those of a test. The program starts itself
// so, for --devices and --processes, with arguments of its own choice.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || strings.HasPrefix(os.Args[1], "-test.") {
		os.Exit(m.Run())
	}
	newRunner = newFake
	main()
}

func newFake(s settings) (jobs.Runner, error) {
	if s.gpu && os.Getenv(fakeNoGPU) != "" {
		return nil, usagef("no GPU here")
	}
	return fake{s}, nil
}

// fake makes up results: they depend on the experiment alone.
type fake struct{ settings }

func (fake) Cost(results.Experiment) float64 { return 1 }

func (r fake) Run(ctx context.Context, batch []results.Experiment, progress func(float64, string)) (found []results.Result, err error) {
	delay := time.Duration(0)
	if text := os.Getenv(fakeDelay); text != "" {
		if delay, err = time.ParseDuration(text); err != nil {
			return nil, err
		}
	}
	for i, e := range batch {
		progress(float64(i)/float64(len(batch)), fmt.Sprintf("experiment %d", i))
		if path := os.Getenv(fakeLog); path != "" {
			f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				return found, err
			}
			_, err = fmt.Fprintln(f, e.ID(), withoutSVHNFlag, r.withoutSVHN, "device="+os.Getenv(deviceVariable), "cores="+os.Getenv("GOMAXPROCS"), "gpu", r.gpu)
			if err := errors.Join(err, f.Close()); err != nil {
				return found, err
			}
		}
		select {
		case <-ctx.Done():
			return found, ctx.Err()
		case <-time.After(delay):
		}
		found = append(found, madeUp(e))
	}
	return found, nil
}

// madeUp is a result as each study has them.
func madeUp(e results.Experiment) results.Result {
	r := results.Result{ID: e.ID(), Experiment: e, Metrics: map[string]float64{"rmse": 1, "nll": 2},
		Backend: "fake", Device: "none", Version: "test", Batched: 1, Finished: time.Now()}
	switch {
	case e.Study == results.Images:
		r.Metrics = map[string]float64{"accuracy": 0.5, "nll": 1, "ece10": 0.1}
	case e.Dataset == "two-moons":
		r.Series = map[string][]float64{"train_x": {-1, 1}, "train_y": {0, 1}, "label": {0, 1}, "x": {-1, 1}, "y": {0, 1}, "entropy": {0, 0.3, 0.6, 0.1}}
	case e.Study == results.Toy:
		r.Series = map[string][]float64{"train_x": {-3, 3}, "train_y": {-27, 27}, "x": {-4, 0, 4}, "mean": {-64, 0, 64}, "std": {1, 2, 1},
			"q0.5": {-67, -6, 61}, "q2.5": {-66, -4, 62}, "q97.5": {-62, 4, 66}, "q99.5": {-61, 6, 67}}
	}
	return r
}

// reproduce carries out a command line in this process.
func reproduce(args ...string) (status int, stdout, stderr string) {
	var out, messages bytes.Buffer
	status = command{stdout: &out, stderr: &messages, newRunner: newFake}.main(context.Background(), args)
	return status, out.String(), messages.String()
}

// succeeds carries out a command line, which must say what is wanted on standard error, and returns its output.
func succeeds(t *testing.T, want string, args ...string) string {
	t.Helper()
	status, stdout, stderr := reproduce(args...)
	if status != exitOK || !strings.Contains(stderr, want) {
		t.Fatalf("%v: status %d, want 0 and %q\n%s\n%s", args, status, want, stdout, stderr)
	}
	return stdout
}

// fails carries out a command line, which must end with a status and say why, and print nothing else.
func fails(t *testing.T, status int, want string, args ...string) {
	t.Helper()
	if got, stdout, stderr := reproduce(args...); got != status || !strings.Contains(stderr, want) || stdout != "" {
		t.Errorf("%q: status %d, want %d and %q\n%s\n%s", args, got, status, want, stdout, stderr)
	}
}

// holds checks that the store has n experiments, each once, and nothing odd, and returns them.
func holds(t *testing.T, store string, n int) []results.Result {
	t.Helper()
	lines, notes, err := results.Read(store)
	if err != nil || len(notes) != 0 || len(lines) != n {
		t.Fatalf("%d lines, want %d; notes %v; %v", len(lines), n, notes, err)
	}
	return lines
}

// program is reproduce in a process of its own.
type program struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
}

func start(t *testing.T, env []string, args ...string) *program {
	t.Helper()
	path := must.Get(os.Executable())(t)
	p := &program{cmd: exec.Command(path, args...)}
	p.cmd.Env, p.cmd.Stderr = append(os.Environ(), env...), &p.stderr
	must.Do(t, p.cmd.Start())
	return p
}

// signal waits until the store has n results, or more, and sends a signal.
func (p *program) signal(t *testing.T, store string, n int, s os.Signal) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if lines, _, err := results.Read(store); err == nil && len(lines) >= n {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %d results within 20 s", n)
		}
	}
	must.Do(t, p.cmd.Process.Signal(s))
}

// ends waits for the end, which must come with a status, -1 after a signal, and the wanted messages.
func (p *program) ends(t *testing.T, status int, wants ...string) {
	t.Helper()
	var exit *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	for _, want := range append(wants, "") {
		if got := p.cmd.ProcessState.ExitCode(); got != status || !strings.Contains(p.stderr.String(), want) {
			t.Fatalf("status %d, want %d and %q\n%s", got, status, want, p.stderr.String())
		}
	}
}

func TestCtrlCThenContinue(t *testing.T) {
	store, log := filepath.Join(t.TempDir(), "my runs"), filepath.Join(t.TempDir(), "log")
	args := []string{"run", "uci-released", "--methods", "density,rank1", "--datasets", "yacht", "--batch", "4", "--store", store}
	p := start(t, []string{fakeDelay + "=40ms", fakeLog + "=" + log}, args...)
	p.signal(t, store, 4, os.Interrupt)
	p.ends(t, exitInterrupted, "To go on, run the same command again:\n  reproduce run uci-released --methods density,rank1 --datasets yacht --batch 4 --store '"+store+"'\n")
	before, notes, err := results.Read(store)
	if err != nil || len(notes) != 0 || len(before) < 4 || len(before) >= 40 {
		t.Fatalf("%d lines, %v, %v", len(before), notes, err)
	}
	succeeds(t, fmt.Sprintf("%d already in", len(before)), args...)
	holds(t, store, 40)
	// Every stored experiment was started once, but for the one that Ctrl-C stopped.
	content := must.Get(os.ReadFile(log))(t)
	if started := bytes.Count(content, []byte("\n")); started > len(before)+1 {
		t.Errorf("the first program started %d experiments and stored %d", started, len(before))
	}
}

// Several calls with one store share the work: each experiment is started once, and none of them fails.
func TestCallsShareAStore(t *testing.T) {
	store, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	args := []string{"run", "uci-released", "--methods", "density,rank1", "--datasets", "yacht", "--batch", "4", "--store", store}
	var calls []*program
	for range 4 {
		calls = append(calls, start(t, []string{fakeDelay + "=30ms", fakeLog + "=" + log}, args...))
	}
	for _, p := range calls {
		p.ends(t, exitOK)
	}
	holds(t, store, 40)
	if started := bytes.Count(must.Get(os.ReadFile(log))(t), []byte("\n")); started != 40 {
		t.Errorf("40 experiments were started %d times", started)
	}
}

// A comparison that is stopped has stored nothing, and says what it found until then.
func TestStoppedComparison(t *testing.T) {
	store, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	args := []string{"run", "uci-released", "--methods", "density", "--datasets", "yacht", "--batch", "4", "--store", store}
	start(t, []string{fakeDelay + "=0s"}, args...).ends(t, exitOK, "[20/20 runs")
	p := start(t, []string{fakeDelay + "=100ms", fakeLog + "=" + log}, append(args, "--again", "20")...)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if content, err := os.ReadFile(log); err == nil && bytes.Count(content, []byte("\n")) >= 6 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing was started within 20 s")
		}
	}
	must.Do(t, p.cmd.Process.Signal(os.Interrupt))
	p.ends(t, exitInterrupted, " runs came out as they are stored, and 0 more but for rounding\nNothing is stored. To begin anew, run the same command again:\n")
	holds(t, store, 20)
}

// SIGTERM ends the program with the status that asks to be started again.
func TestSIGTERMAsksToBeRequeued(t *testing.T) {
	store := filepath.Join(t.TempDir(), "runs")
	p := start(t, []string{fakeDelay + "=50ms"}, "run", "cifar-small", "--store", store)
	p.signal(t, store, 1, syscall.SIGTERM)
	p.signal(t, store, 1, syscall.SIGTERM)
	p.ends(t, jobs.Requeue, "run the same command again")
}

// The end of the terminal stops the program as Ctrl-C does, unless it was told to ignore that.
func TestSIGHUP(t *testing.T) {
	// A process inherits that a signal is ignored, as it is where the tests run under nohup, and not that it is caught.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	store := filepath.Join(t.TempDir(), "runs")
	p := start(t, []string{fakeDelay + "=50ms"}, "run", "cifar-small", "--store", store)
	p.signal(t, store, 1, syscall.SIGHUP)
	p.ends(t, exitHangup, "run the same command again")
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	p = start(t, []string{fakeDelay + "=10ms"}, "run", "cifar-small", "--methods", "density,mfvi", "--store", store)
	p.signal(t, store, 1, syscall.SIGHUP)
	p.ends(t, exitOK)
}

func TestKillThenContinue(t *testing.T) {
	store := filepath.Join(t.TempDir(), "runs")
	args := []string{"run", "uci-released", "--methods", "density,rank1", "--datasets", "yacht", "--batch", "1", "--store", store}
	for n := range 4 {
		p := start(t, []string{fakeDelay + "=10ms"}, args...)
		p.signal(t, store, 1+5*n, syscall.SIGKILL)
		p.ends(t, -1)
		if _, _, err := results.Read(store); err != nil {
			t.Fatal(err)
		}
	}
	succeeds(t, "", args...)
	holds(t, store, 40)
}

// Two programs share one store and one list of work.
func TestTwoProgramsOneStore(t *testing.T) {
	store := filepath.Join(t.TempDir(), "runs")
	args := []string{"run", "uci-released", "--methods", "density,rank1", "--datasets", "yacht,wine", "--batch", "2", "--store", store}
	one, two := start(t, []string{fakeDelay + "=1ms"}, args...), start(t, []string{fakeDelay + "=1ms"}, args...)
	one.ends(t, exitOK)
	two.ends(t, exitOK)
	holds(t, store, 80)
}

// Several processes share the work of a set; a stop ends them all, and the next run goes on.
func TestDevices(t *testing.T) {
	dir := t.TempDir()
	store, log := filepath.Join(dir, "runs"), filepath.Join(dir, "log")
	args := []string{"run", "cifar-small", "--methods", "density,mfvi", "--store", store, "--devices", "3,5,5", "--without-svhn"}
	p := start(t, []string{fakeDelay + "=100ms", fakeLog + "=" + log}, args...)
	p.signal(t, store, 3, os.Interrupt)
	p.ends(t, exitInterrupted)
	if before, _, err := results.Read(store); err != nil || len(before) < 3 || len(before) == 12 {
		t.Fatalf("%d lines, %v", len(before), err)
	}
	start(t, nil, args...).ends(t, exitOK, "2, device 5: ", "[1/1 runs, 100%")
	holds(t, store, 12)
	content := must.Get(os.ReadFile(log))(t)
	if !strings.Contains(string(content), " without-svhn true device=3 cores= gpu true\n") || !strings.Contains(string(content), "device=5 ") {
		t.Errorf("devices of the first processes:\n%s", content)
	}
	if left, err := filepath.Glob(filepath.Join(store, "work", "*")); err != nil || len(left) != 0 {
		t.Errorf("left in the folder for work: %v, %v", left, err)
	}
	start(t, []string{fakeDelay + "=soon"}, "run", "cifar10-resnet14", "--methods", "mfvi", "--seeds", "0", "--store", filepath.Join(dir, "none"), "--devices", "0").
		ends(t, exitFailure, "0, device 0: reproduce: ", "task 0 (device 0)")
}

// On a processor several processes share its cores.
func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	store, log := filepath.Join(dir, "runs"), filepath.Join(dir, "log")
	p := start(t, []string{fakeDelay + "=1ms", fakeLog + "=" + log, "GOMAXPROCS=5"}, "run", "uci-released", "--methods", "density,rank1", "--datasets", "yacht,wine", "--store", store, "--processes", "2")
	p.ends(t, exitOK, "0, process 0: ", "1, process 1: ")
	holds(t, store, 80)
	if content := must.Get(os.ReadFile(log))(t); strings.Count(string(content), " cores=2 gpu false\n") != 80 {
		t.Errorf("processes and their cores:\n%s", content)
	}
}

// Without GPUs the processes of --devices refuse to run, and no further ones are started.
func TestDevicesWithoutGPU(t *testing.T) {
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	if _, err := newRunner(settings{folders: folders{gpu: true}, note: func(string) {}}); err == nil || !strings.Contains(err.Error(), "by --devices or --gpu, and computes on go:") {
		t.Errorf("error %v", err)
	}
	store := filepath.Join(t.TempDir(), "runs")
	p := start(t, []string{fakeNoGPU + "=1"}, "run", "cifar-small", "--methods", "density,mfvi", "--store", store, "--devices", "0,1")
	p.ends(t, exitFailure, "no GPU here", "task 0 (device ")
	if n := strings.Count(p.stderr.String(), "no GPU here"); n > 2 {
		t.Errorf("%d processes were started for 2 devices", n)
	}
}
