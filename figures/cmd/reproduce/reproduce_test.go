package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gonum.org/v1/plot"

	"densityuncertainty/dul/train"
	"densityuncertainty/environment"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
	"densityuncertainty/figures/uci"
)

// TestMain makes the test binary the program where its arguments are not those of a test.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || strings.HasPrefix(os.Args[1], "-test.") {
		os.Exit(m.Run())
	}
	os.Exit(program(tiny()))
}

// tiny are exhibits whose experiments take a moment, and those of "slow" some seconds.
func tiny() tables.Exhibits {
	list := func(epochs int, list ...experiment.Method) experiment.Experiments {
		all, err := experiment.Cross(uci.Paper, uci.On("yacht", "boston"), list...)
		if err != nil {
			panic(err)
		}
		return all.OnSplits(0, 1).Change(func(e *experiment.Experiment) { e.Recipe.Epochs = epochs })
	}
	few := list(2, methods.Density, methods.MCDropout)
	nll := func(x *tables.Index) (report.Table, error) {
		s, err := x.Summarize(tables.Number{Name: "nll"}.Over(few))
		t := report.Table{Name: "nll", Caption: "The likelihood.", Columns: []string{"Data", "NLL"}}
		t.Rows = []report.Row{{Name: "all", Cells: report.TextCells(fmt.Sprintf("%d runs", s.N))}}
		return t, err
	}
	drawn := func(x *tables.Index) (report.Figure, error) {
		if _, has := x.Find(few[0]); !has {
			return report.Figure{}, errors.New("it needs a run")
		}
		f := report.Single("curve", plot.New(), 100, 100)
		f.Caption = "A curve."
		return f, nil
	}
	needs := func(list experiment.Experiments) func() experiment.Experiments {
		return func() experiment.Experiments { return list }
	}
	return tables.Exhibits{
		{Name: "few", Doc: "some experiments", Table: nll},
		{Name: "slow", Doc: "longer ones", Needs: needs(list(400, methods.Density).OnSplits(0))},
		{Name: "lost", Doc: "ones that diverge", Needs: needs(list(2, methods.MCDropout).Change(func(e *experiment.Experiment) { e.Recipe.Schedule = train.Cosine{Start: 1e30} }))},
		{Name: "curve", Doc: "a table and its figure", Table: nll, Picture: drawn},
		{Name: "other", Doc: "a figure", Picture: drawn},
	}
}

// reproduce carries out a command line in this process.
func reproduce(args ...string) (status int, stdout, stderr string) {
	var out, messages bytes.Buffer
	status = command{stdout: &out, stderr: &messages, exhibits: tiny()}.main(context.Background(), args)
	return status, out.String(), messages.String()
}

// ends carries out a command line, which must end with a status and say what is wanted on standard output and standard
// error, and returns standard output.
func ends(t *testing.T, status int, wantOut, wantErr string, args ...string) string {
	t.Helper()
	got, stdout, stderr := reproduce(args...)
	if got != status || !strings.Contains(stdout, wantOut) || !strings.Contains(stderr, wantErr) {
		t.Fatalf("%q: status %d, want %d, %q and %q\n%s\n%s", args, got, status, wantOut, wantErr, stdout, stderr)
	}
	return stdout
}

// lines counts the results in a store, in which each must be once.
func lines(t *testing.T, store string) (count int) {
	t.Helper()
	seen := map[string]bool{}
	for _, file := range must.Get(filepath.Glob(filepath.Join(store, "*-*.csv")))(t) {
		rows := must.Get(csv.NewReader(must.Get(os.Open(file))(t)).ReadAll())(t)
		for _, row := range rows[1:] {
			id := fmt.Sprint(row[0], row[2:4]) // group, split, seed
			if seen[id] {
				t.Errorf("%s is there twice", id)
			}
			seen[id] = true
			count++
		}
	}
	return count
}

func TestRunAgain(t *testing.T) {
	store := filepath.Join(t.TempDir(), "runs")
	at := func(line string) []string { return append(strings.Fields(line), "--store", store) }
	ends(t, exitOK, "MC Dropout on yacht, split 1, seed 1 (uci.Paper)\n", "2 experiments, 0 already in "+store+", 2 to run", at("run few --methods mcdropout --datasets yacht --dry-run")...)
	ends(t, exitOK, "", "] MC Dropout on yacht, 2 splits and seeds: training, epoch 1 of 2", at("run few --methods mcdropout --datasets yacht")...)
	ends(t, exitOK, "", "8 experiments, 2 already in "+store+", 6 to run\n", at("run few")...)
	if n := lines(t, store); n != 8 {
		t.Errorf("%d results, want 8", n)
	}
	ends(t, exitOK, "", "8 already in "+store+", 0 to run\n", at("run few")...)
	ends(t, exitOK, "", "1 already in "+store+", 0 to run\n", at("run few --splits 1 --methods density --datasets boston")...)

	ends(t, exitOK, "MC Dropout on yacht, split 1, seed 1 (uci.Paper, 3 epochs)\n", "2 experiments, 0 already", at("run few --methods mcdropout --datasets yacht --epochs 3 --dry-run")...)
	ends(t, exitOK, "", "2 experiments, 2 already", at("run few --methods mcdropout --datasets yacht --epochs 2")...)
	lost := t.TempDir()
	for range 2 { // trained, and then from the store
		ends(t, exitDiverged, "", "training diverged: 2 of 2 experiments\n  2: step ", "run", "lost", "--datasets", "yacht", "--store", lost)
	}
	ends(t, exitOK, "of 4 results ", "", at("again few --splits 0")...)
	ends(t, exitOK, "of 8 results 8 equal the stored ones", "", at("again few --measure")...)
	if n := lines(t, store); n != 8 {
		t.Errorf("comparing stored %d results", n-8)
	}
	// A stored number that is another one, as an older version could have found it.
	wrong := tiny()[0].Runs()[0]
	wrong.Task.Metrics = []experiment.Metric{func(p *experiment.Predictions) (map[string]float64, error) {
		found, err := experiment.Regression(p)
		found["rmse"] *= 1.5
		return found, err
	}}
	other := &experiment.Store{Folder: filepath.Join(t.TempDir(), "other")}
	must.Get(experiment.Engine{Store: other}.Run(t.Context(), wrong))(t)
	for _, c := range []struct{ line, want string }{
		{"again few --measure", "Density Uncertainty on yacht, split 0, seed 0 (uci.Paper), stored and now: rmse "},
		{"again few", "of 1 result 0 equal the stored ones"},
	} {
		ends(t, exitFailure, c.want, "1 of 1 results differ from the stored ones", append(strings.Fields(c.line), "--store", other.Folder)...)
	}
	must.Do(t, os.RemoveAll(filepath.Join(other.Folder, "predictions")))
	ends(t, exitOK, "", "1 result has no predictions here\n", "again", "few", "--measure", "--store", other.Folder)
	ends(t, exitUsage, "", "has none of these experiments", at("again slow")...)
}

// A process is reproduce in a process of its own.
type process struct {
	*exec.Cmd
	mu     sync.Mutex
	stderr bytes.Buffer
	begun  chan struct{} // closed when it trains
}

// Write takes what the program says.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := strings.Contains(p.stderr.String(), "epoch ")
	p.stderr.Write(b)
	if !before && strings.Contains(p.stderr.String(), "epoch ") {
		close(p.begun)
	}
	return len(b), nil
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(must.Get(os.Executable())(t), args...), begun: make(chan struct{})}
	p.Stderr = p
	must.Do(t, p.Start())
	t.Cleanup(func() { _ = p.Process.Kill() }) // where the test failed
	return p
}

// What a signal stops goes on where it was; what is killed goes on, too.
func TestStopAndGoOn(t *testing.T) {
	for _, c := range []struct {
		signal os.Signal
		status int
	}{{os.Interrupt, exitInterrupted}, {syscall.SIGTERM, exitRequeue}, {syscall.SIGHUP, exitRequeue}, {syscall.SIGKILL, -1}} {
		t.Run(c.signal.String(), func(t *testing.T) {
			if signal.Ignored(c.signal) {
				t.Skip("the tests were started so that they ignore it, as by nohup")
			}
			t.Parallel()
			store := filepath.Join(t.TempDir(), "my runs")
			args := []string{"run", "slow", "--datasets", "yacht", "--store", store}
			p := start(t, args...)
			<-p.begun
			time.Sleep(300 * time.Millisecond)
			must.Do(t, p.Process.Signal(c.signal))
			if c.signal == syscall.SIGTERM { // a second one does nothing
				must.Do(t, p.Process.Signal(c.signal))
			}
			var exit *exec.ExitError
			if err := p.Wait(); !errors.As(err, &exit) || exit.ExitCode() != c.status {
				t.Fatalf("it ends with %v, want %d\n%s", err, c.status, &p.stderr)
			}
			if c.status > 0 && !strings.HasSuffix(p.stderr.String(), "To resume, run the same command again.\n") {
				t.Errorf("it says\n%s", &p.stderr)
			}
			status, _, stderr := reproduce(args...)
			if status != exitOK || lines(t, store) != 1 {
				t.Fatalf("status %d, %d results\n%s", status, lines(t, store), stderr)
			}
			if c.status > 0 && strings.Contains(stderr, "[0%") {
				t.Errorf("it does not go on where it was:\n%s", stderr)
			}
		})
	}
}

// Programs with one store share the work.
func TestShareAStore(t *testing.T) {
	store := t.TempDir()
	var all []*process
	for range 3 {
		all = append(all, start(t, "run", "few", "--store", store))
	}
	for _, p := range all {
		if err := p.Wait(); err != nil {
			t.Errorf("%v\n%s", err, &p.stderr)
		}
	}
	if n := lines(t, store); n != 8 {
		t.Errorf("%d results, want 8", n)
	}
}

func TestReporter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		r := &reporter{tell: command{stderr: &b}.tell}
		r.progress(0.5, "a") // what an earlier process did
		time.Sleep(time.Second)
		r.progress(0.55, "b")
		time.Sleep(30 * time.Second)
		r.progress(0.6, "c")
		if want := "[50%, 0s] a\n[60%, 31s, about 2m4s left] c\n"; b.String() != want {
			t.Errorf("%q, want %q", &b, want)
		}
	})
}

func TestListTablesFigures(t *testing.T) {
	store, dir := t.TempDir(), t.TempDir()
	ends(t, exitOK, "", "", "run", "few", "--store", store)
	ends(t, exitOK, "curve  yes    yes     a table and its figure\nother         yes     a figure\n", "", "list", "--store", store)
	ends(t, exitOK, "slow                 0     2        0.0    longer ones\n", "", "list", "slow", "--store", store)
	ends(t, exitOK, "few    yes            8     0        0.0    some experiments\n", "", "list", "all", "--store", store)

	made := "densityuncertainty " + environment.Version() + ", 8 runs: 8 uci.Paper"
	ends(t, exitOK, "| all | 8 runs |\n\n"+made+"\n\nThe likelihood.", "", "table", "all", "--store", store)
	ends(t, exitOK, "0 runs\n", "", "table", "few", "--store", t.TempDir())
	for _, c := range []struct{ name, out, file, begins, ends string }{
		{"few", "a.md", "a.md", "The likelihood", "\n\n" + made + "\n"},
		{"few", "a.tex", "a.tex", "% needs", "\n% " + made + "\n"},
		{"few", "a.csv", "a.csv", "Data,NLL", "8 runs\n"},
		{"all", "new", "new/curve.md", "The likelihood", made + "\n"},
	} {
		ends(t, exitOK, "", "wrote "+filepath.Join(dir, c.file), "table", c.name, "--out", filepath.Join(dir, c.out), "--store", store)
		if text := string(must.Get(os.ReadFile(filepath.Join(dir, c.file)))(t)); !strings.HasPrefix(text, c.begins) || !strings.HasSuffix(text, c.ends) {
			t.Errorf("%s is\n%s", c.file, text)
		}
	}
	made = "densityuncertainty " + environment.Version() + ", 1 run: 1 uci.Paper"
	for _, c := range []struct{ out, begins string }{{"a.svg", "<?xml"}, {"a.png", "\x89PNG"}, {"a.pdf", "%PDF"}} {
		file := filepath.Join(dir, c.out)
		ends(t, exitOK, file+": A curve.\n"+made+"\n", "", "figure", "curve", "--out", file, "--store", store)
		if picture := string(must.Get(os.ReadFile(file))(t)); !strings.HasPrefix(picture, c.begins) ||
			strings.Contains(picture, "<desc>A curve.\n"+made+"</desc>") != (c.out == "a.svg") {
			t.Errorf("%s begins with %.20q", c.out, picture)
		}
	}
	t.Chdir(dir)
	ends(t, exitOK, "curve.svg: A curve", "", "figure", "curve", "--store", store)
	ends(t, exitOK, "new/other.png: A curve", "", "figure", "all", "--out", "new", "--format", "png", "--store", store)
	ends(t, exitFailure, "", "2 of 2 could not be made:\n  curve: it needs a run\n  other: it needs a run", "figure", "all", "--store", t.TempDir())
}

// A generated part of a page is a table.
var generated = regexp.MustCompile(`(?ms)^<!-- generated: table (\S+) -->\n.*?^<!-- end of generated -->$`)

// The generated parts of the pages are those of the committed results; with -update they become so.
func TestPagesAreUpToDate(t *testing.T) {
	for _, page := range []string{"figures/README.md", "figures/toy/README.md", "figures/uci/README.md", "figures/uci/tables.md", "figures/cifar/README.md", "figures/where/tables.md"} {
		t.Run(page, func(t *testing.T) {
			path := filepath.Join("..", "..", "..", page)
			text, parts := string(must.Get(os.ReadFile(path))(t)), 0
			filled := generated.ReplaceAllStringFunc(text, func(part string) string {
				parts++
				name := generated.FindStringSubmatch(part)[1]
				one := must.Get(selected("table", paper(), tables.Exhibits.Tables, name))(t)[0]
				return "<!-- generated: table " + name + " -->\n" + must.Get(made(t, one).Render(report.Markdown))(t) + "<!-- end of generated -->"
			})
			if begun, ended := strings.Count(text, "<!-- generated"), strings.Count(text, "<!-- end of generated"); parts == 0 || begun != parts || ended != parts {
				t.Fatalf("%d parts begin and %d end, %d do both; marks are lines of their own", begun, ended, parts)
			}
			figtest.GoldenText(t, path, filled)
		})
	}
}
