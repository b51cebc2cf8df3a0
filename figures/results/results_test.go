package results

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"densityuncertainty/environment/must"
	"densityuncertainty/environment/reexec"
)

// sample is a result that can be stored.
func sample(split int) Result {
	e := Experiment{Study: UCI, Method: "density", Dataset: "yacht", Splits: "gal",
		Split: split, Seed: 1, Epochs: 100, Samples: 10, Fidelity: Paper, Scale: Full}
	return Result{ID: e.ID(), Experiment: e, Metrics: map[string]float64{"rmse": 2.5, "nll": 1.0 / 3}, Backend: "go",
		Device: "test", Version: "test", WallSeconds: 1.5, CPUSeconds: 3, Batched: 4, Finished: time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)}
}

func openStore(t *testing.T) *Store {
	t.Helper()
	s := must.Get(OpenStore(filepath.Join(t.TempDir(), "runs")))(t)
	return s
}

func mustAppend(t *testing.T, s *Store, r Result) {
	t.Helper()
	if added, _, err := s.Append(r); err != nil || !added {
		t.Fatalf("Append(%v) = %v, %v", r.Experiment, added, err)
	}
}

func TestAppendAndRead(t *testing.T) {
	s := openStore(t)
	want := sample(0)
	want.Series = map[string][]float64{"x": {1.23456789, -1e-9, 0, 123456789}}
	mustAppend(t, s, want)
	mustAppend(t, s, sample(1))
	lines, notes, err := Read(s.Dir())
	if err != nil || len(notes) != 0 {
		t.Fatal(notes, err)
	}
	want.Series["x"] = []float64{1.23457, -1e-9, 0, 123457000}
	if len(lines) != 2 || !reflect.DeepEqual(lines[0], want) {
		t.Errorf("read %+v\nwant %+v", lines, want)
	}
	if name := FileName(want.Experiment); name != "uci-yacht-paper.jsonl" {
		t.Errorf("file name %s", name)
	}
	quick := want.Experiment
	quick.Scale = Quick
	if name := FileName(quick); name != "uci-yacht-paper-quick.jsonl" {
		t.Errorf("file name %s", name)
	}
}

func TestAppendOnce(t *testing.T) {
	s := openStore(t)
	mustAppend(t, s, sample(0))
	again := sample(0)
	again.WallSeconds++
	if added, note, err := s.Append(again); err != nil || added || note != "" {
		t.Fatalf("the same line: added %v, note %q, %v", added, note, err)
	}
	again.Metrics["rmse"] = 99
	want := "uci-yacht-paper.jsonl has another result of " + again.ID + " " + again.Experiment.String() + ", which stays: rmse 99, in the store 2.5; "
	if added, note, err := s.Append(again); err != nil || added || !strings.Contains(note, want) {
		t.Fatalf("the second line of an experiment: added %v, note %q, want %q, %v", added, note, want, err)
	}
	lines, _, err := Read(s.Dir())
	if err != nil || len(lines) != 1 || lines[0].Metrics["rmse"] != 2.5 {
		t.Errorf("got %v, %v", lines, err)
	}
}

// Several results go to their files in order, each once; one that is refused keeps the others of its file out.
func TestAppendAll(t *testing.T) {
	s := openStore(t)
	mustAppend(t, s, sample(1))
	other := sample(0)
	other.Experiment.Dataset = "wine"
	other.ID = other.Experiment.ID()
	if added, note, err := s.AppendAll([]Result{sample(2), other, sample(1), sample(0), sample(2)}); err != nil || added != 3 || note != "" {
		t.Fatalf("added %d, note %q, %v", added, note, err)
	}
	broken := sample(4)
	broken.Batched = 0
	if added, _, err := s.AppendAll([]Result{sample(3), broken}); err == nil || added != 0 {
		t.Errorf("with a result that is refused: added %d, %v", added, err)
	}
	lines, _, err := Read(s.Dir())
	var got []string
	for _, line := range lines {
		got = append(got, fmt.Sprint(line.Experiment.Dataset, line.Experiment.Split))
	}
	if want := []string{"wine0", "yacht1", "yacht2", "yacht0"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("read %q, %v; want %q", got, err, want)
	}
}

// What is missing is read anew each time, as other processes add to the folder.
func TestMissing(t *testing.T) {
	s, other := openStore(t), sample(0).Experiment
	other.Dataset = "wine"
	wanted := []Experiment{other, sample(1).Experiment, sample(0).Experiment}
	for stored, want := range [][]Experiment{wanted, wanted[:2], wanted[:1]} {
		if stored > 0 {
			mustAppend(t, must.Get(OpenStore(s.Dir()))(t), sample(stored-1))
		}
		if got, err := s.Missing(wanted); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("with %d stored %v are missing, want %v; %v", stored, got, want, err)
		}
	}
	tear(t, s, "no result\n")
	if _, err := s.Missing(wanted); err == nil || !strings.Contains(err.Error(), "uci-yacht-paper.jsonl:3") {
		t.Errorf("a broken line: %v", err)
	}
}

func TestAppendRefuses(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(*Result)
	}{
		{`metric "nll" is NaN`, func(r *Result) { r.Metrics["nll"] = math.NaN() }},
		{`metric "rmse" is +Inf`, func(r *Result) { r.Metrics["rmse"] = math.Inf(1) }},
		{`series "x" has NaN at index 1`, func(r *Result) { r.Series = map[string][]float64{"x": {0, math.NaN()}} }},
		{"the result's ID", func(r *Result) { r.ID = "0" }},
		{"batched is 0", func(r *Result) { r.Batched = 0 }},
		{"finishing time", func(r *Result) { r.Finished = time.Time{} }},
		{"wall_seconds is NaN", func(r *Result) { r.WallSeconds = math.NaN() }},
		{"cpu_seconds is -1, want a", func(r *Result) { r.CPUSeconds = -1 }},
		{`method is "Density!"`, func(r *Result) { r.Experiment.Method = "Density!" }},
	} {
		t.Run(c.want, func(t *testing.T) {
			s, r := openStore(t), sample(0)
			c.change(&r)
			if _, _, err := s.Append(r); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want an error with %q, got %v", c.want, err)
			}
			if lines, _, err := Read(s.Dir()); err != nil || len(lines) != 0 {
				t.Errorf("a refused result left %v, %v", lines, err)
			}
		})
	}
}

func TestDivergedRunIsKept(t *testing.T) {
	s, r := openStore(t), sample(0)
	r.Diverged = true
	r.Metrics["nll"] = math.NaN()
	r.Series = map[string][]float64{"mean": {math.Inf(1)}, "x": {1}}
	mustAppend(t, s, r)
	lines, _ := must.Get2(Read(s.Dir()))(t)
	got := lines[0]
	if _, has := got.Metrics["nll"]; !got.Diverged || has || got.Metrics["rmse"] != 2.5 || len(got.Series) != 1 {
		t.Errorf("read %+v", got)
	}
}

// tear appends text to the store's file as a killed writer would.
func tear(t *testing.T, s *Store, text string) string {
	t.Helper()
	path := filepath.Join(s.Dir(), FileName(sample(0).Experiment))
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(text)
	must.Do(t, errors.Join(err, f.Close()))
	return path
}

func TestTornLastLine(t *testing.T) {
	whole := must.Get(sample(1).encode())(t)
	for cut := 1; cut < len(whole)-1; cut += 37 {
		s := openStore(t)
		mustAppend(t, s, sample(0))
		tear(t, s, string(whole[:cut]))
		lines, notes, err := Read(s.Dir())
		if err != nil || len(lines) != 1 || len(notes) != 1 || !strings.Contains(notes[0], ":2: the last line is cut short") {
			t.Fatalf("cut at %d: %v %v %v", cut, lines, notes, err)
		}
		added, note, err := s.Append(sample(1))
		if err != nil || !added || !strings.Contains(note, "removed line 2") {
			t.Fatalf("cut at %d: appending: %v %q %v", cut, added, note, err)
		}
		if lines, notes, err = Read(s.Dir()); err != nil || len(lines) != 2 || len(notes) != 0 {
			t.Fatalf("cut at %d: after repair: %v %v %v", cut, lines, notes, err)
		}
	}
}

// A kill just before the newline leaves a whole line, which is not thrown away.
func TestLastLineWithoutNewline(t *testing.T) {
	s := openStore(t)
	mustAppend(t, s, sample(0))
	whole := must.Get(sample(1).encode())(t)
	tear(t, s, strings.TrimSuffix(string(whole), "\n"))
	mustAppend(t, s, sample(2))
	lines, notes, err := Read(s.Dir())
	if err != nil || len(lines) != 3 || len(notes) != 0 {
		t.Fatal(lines, notes, err)
	}
}

func TestCorruptedMiddleLine(t *testing.T) {
	line := func(split int) string {
		b := must.Get(sample(split).encode())(t)
		return string(b)
	}
	for _, c := range []struct{ name, bad, says string }{
		{"half a line", line(1)[:50] + "\n", "restore the file or remove the line"},
		{"empty line", "\n", "the line is blank; remove it"},
		{"unknown field", strings.Replace(line(1), `"backend"`, `"backendd"`, 1), "a newer version of this program"},
		{"field in capitals", strings.Replace(line(1), `"backend"`, `"Backend"`, 1), `"Backend"`},
		{"field twice", strings.Replace(line(1), `"backend"`, `"backend":"go","backend"`, 1), `duplicate object member name "backend"`},
		{"metric twice", strings.Replace(line(1), `"rmse"`, `"rmse":1,"rmse"`, 1), `duplicate object member name "rmse"`},
		{"changed number", strings.Replace(line(1), `"epochs":100`, `"epochs":200`, 1), "restore the file"},
		{"two on one line", strings.TrimSuffix(line(1), "\n") + line(2), "restore the file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openStore(t)
			mustAppend(t, s, sample(0))
			path := tear(t, s, c.bad+line(3))
			if _, _, err := Read(s.Dir()); err == nil || !strings.Contains(err.Error(), path+":2: ") || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Read gives %v, want %q", err, c.says)
			}
			if _, _, err := s.Append(sample(4)); err == nil || !strings.Contains(err.Error(), path+":2: ") {
				t.Errorf("Append gives %v", err)
			}
		})
	}
}

func TestReadSeveralPlaces(t *testing.T) {
	a, b := openStore(t), openStore(t)
	mustAppend(t, a, sample(0))
	other := sample(0)
	other.Metrics["rmse"] = 99
	mustAppend(t, b, other)
	mustAppend(t, b, sample(1))
	file := filepath.Join(b.Dir(), FileName(sample(0).Experiment))
	lines, notes, err := Read(a.Dir(), file)
	if err != nil || len(lines) != 2 || lines[0].Metrics["rmse"] != 2.5 || len(notes) != 1 {
		t.Errorf("got %v %v %v", lines, notes, err)
	}
	if _, _, err := Read(filepath.Join(a.Dir(), "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
}

// perWriter is how many experiments a writer appends.
const perWriter = 60

// writer is a second program that appends experiments from the first on. Its test must begin with isWriter.
func writer(t *testing.T, dir string, first int) *exec.Cmd {
	return reexec.Command(t, fmt.Sprint(first, " ", dir))
}

// isWriter is the second program, where this is its process.
func isWriter(t *testing.T) bool {
	argument, is := reexec.Argument(t)
	if !is {
		return false
	}
	number, dir, _ := strings.Cut(argument, " ")
	first := must.Get(strconv.Atoi(number))(t)
	s := must.Get(OpenStore(dir))(t)
	for i := range perWriter {
		fmt.Println("appending", first+i)
		if _, _, err := s.Append(sample(first + i)); err != nil {
			t.Fatal(err)
		}
	}
	return true
}

// Two programs append overlapping lists; every experiment must end up on exactly one line.
func TestTwoProcesses(t *testing.T) {
	if isWriter(t) {
		return
	}
	dir := t.TempDir()
	one, two := writer(t, dir, 0), writer(t, dir, perWriter/2)
	must.Do(t, errors.Join(one.Start(), two.Start()))
	must.Do(t, errors.Join(one.Wait(), two.Wait()))
	lines, notes, err := Read(dir)
	if err != nil || len(notes) != 0 || len(lines) != perWriter*3/2 {
		t.Errorf("%d lines, notes %v, %v", len(lines), notes, err)
	}
}

// A writer is in the middle of a line: it holds the lock, and only half of the line is there. A second process that
// appends the same experiment waits for the other half, and so does a reader. Without the lock the process would take
// the half for what a killed run left, and the reader would report it.
func TestOthersWaitForAWriter(t *testing.T) {
	if isWriter(t) {
		return
	}
	s := openStore(t)
	mustAppend(t, s, sample(perWriter))
	line := must.Get(sample(0).encode())(t)
	half := len(line) / 2
	lock := flock.New(filepath.Join(s.Dir(), FileName(sample(0).Experiment)))
	must.Do(t, lock.Lock())
	tear(t, s, string(line[:half]))

	other := writer(t, s.Dir(), 0)
	out, err := other.StdoutPipe()
	if err == nil {
		err = other.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	appending, said := make(chan bool, 2), bufio.NewScanner(out)
	go func() {
		appending <- said.Scan() // before its first line
		appending <- said.Scan() // after it
	}()
	if !<-appending {
		t.Fatal("the other process did not start")
	}
	read := make(chan error, 1)
	go func() {
		_, notes, err := Read(s.Dir())
		if len(notes) > 0 {
			err = errors.Join(err, errors.New(notes[0]))
		}
		read <- err
	}()
	select {
	case <-appending:
		t.Error("the other process did not wait")
	case err := <-read:
		t.Errorf("the reader did not wait: %v", err)
	case <-time.After(500 * time.Millisecond):
		tear(t, s, string(line[half:]))
		must.Do(t, lock.Close())
		if err := <-read; err != nil {
			t.Errorf("the reader that waited: %v", err)
		}
		if !<-appending {
			t.Error("the other process did not append")
		}
	}
	must.Do(t, errors.Join(lock.Close(), other.Wait()))
	lines, notes, err := Read(s.Dir())
	if err != nil || len(notes) != 0 || len(lines) != perWriter+1 || lines[1].ID != sample(0).ID {
		t.Errorf("%d lines, notes %v, %v", len(lines), notes, err)
	}
}

// A program is killed at many moments; what it had appended must stay readable and be completed.
func TestKilledWriter(t *testing.T) {
	if isWriter(t) {
		return
	}
	dir := t.TempDir()
	for first := 0; first < 5*perWriter; first += perWriter {
		cmd := writer(t, dir, first)
		must.Do(t, cmd.Start())
		time.Sleep(time.Duration(5+7*first/perWriter) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Log("the writer ended before it was killed")
		}
		if _, _, err := Read(dir); err != nil {
			t.Fatal(err)
		}
	}
	for first := 0; first < 5*perWriter; first += perWriter {
		must.Do(t, writer(t, dir, first).Run())
	}
	lines, notes, err := Read(dir)
	if err != nil || len(notes) != 0 || len(lines) != 5*perWriter {
		t.Errorf("%d lines, notes %v, %v", len(lines), notes, err)
	}
}

func TestDefaultDir(t *testing.T) {
	dir, err := DefaultDir()
	if err != nil || !strings.HasSuffix(dir, filepath.Join("figures", "runs")) {
		t.Errorf("DefaultDir = %q, %v", dir, err)
	}
	t.Chdir(t.TempDir())
	if dir, err := DefaultDir(); err == nil {
		t.Errorf("outside a checkout DefaultDir = %q", dir)
	}
}

// Groups that a table's columns do not tell apart say in what they differ, and others do not.
func TestTitles(t *testing.T) {
	var groups []Group
	for _, e := range []Experiment{
		{Method: "a", Epochs: 1, Scale: Full, Samples: 10}, {Method: "a", Epochs: 1, Scale: Quick, Samples: 10},
		{Method: "a", Epochs: 2, Scale: Full, Samples: 20}, {Method: "b", Epochs: 1, Scale: Full, Samples: 10},
	} {
		groups = append(groups, Group{First: e})
	}
	got := Titles(groups, func(e Experiment) string { return e.Method }, []func(Experiment) string{func(e Experiment) string { return fmt.Sprint(e.Epochs) }},
		func(e Experiment) string { return fmt.Sprint(e.Samples) }, func(e Experiment) string { return e.Scale })
	if want := []string{"a, full", "a, quick", "a", "b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// FuzzParse holds the reader of a file to an error that names the file and a line in it, or to lines that are the same
// when they are written out and read again.
func FuzzParse(f *testing.F) {
	whole := string(must.Get(sample(1).encode())(f))
	for _, text := range []string{"", "\n", whole, whole + whole[:40], whole[:len(whole)-1], whole + "\n" + whole, "null\n", "{}\n", "[]\n", strings.Replace(whole, "2.5", "1e999", 1)} {
		f.Add(text, uint16(3))
	}
	f.Fuzz(func(t *testing.T, text string, split uint16) {
		// Mutation does not find an experiment's checksum.
		text = strings.ReplaceAll(text, sample(1).ID, sample(int(split)).ID)
		text = strings.ReplaceAll(text, `"split":1,`, fmt.Sprintf(`"split":%d,`, split))
		p, err := resultFile("fuzz").parse([]byte(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "results: fuzz:") {
				t.Errorf("the error does not name the place: %v", err)
			}
			return
		}
		var again []byte
		for _, r := range p.Values {
			line, err := r.encode()
			if err != nil {
				return // such as a time that is missing, which only writers need
			}
			again = append(again, line...)
		}
		second, err := resultFile("again").parse(again)
		if err != nil || len(second.Values) != len(p.Values) {
			t.Fatalf("%d lines of %q, read again %d, error %v", len(p.Values), again, len(second.Values), err)
		}
		for i, r := range second.Values {
			if d := r.Difference(p.Values[i], nil); d != "" || r.ID != p.Values[i].ID {
				t.Errorf("line %d: %s", i+1, d)
			}
		}
	})
}
