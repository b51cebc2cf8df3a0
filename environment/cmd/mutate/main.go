// Mutate changes the code a little, in many places and each time in one, and says
// which changes no test notices: go run ./environment/cmd/mutate -n 100.
//
// A mutant that survives shows code that no test checks, or a change that changes
// nothing. The files stay as they are: each mutant is compiled with go test
// -overlay. Each test runs once without a mutant, to learn which code it runs and
// how long it takes. A mutant then runs only the tests that run its place: those of
// its package, the fast ones first, and if they pass, fast ones of the packages
// that import it.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	o := options{out: os.Stdout}
	flag.Uint64Var(&o.seed, "seed", 1, "chooses the mutants")
	flag.IntVar(&o.count, "n", 50, "number of mutants")
	flag.DurationVar(&o.limit, "limit", 30*time.Second, "longest time for a test; tests that take longer without a mutant are left out")
	flag.DurationVar(&o.importing, "importing", 15*time.Second, "longest time for the tests of importing packages")
	match := flag.String("match", "", "regular expression of the mutants to make, such as \"due.go:300\"")
	through := flag.String("through", "", "command that runs each command, such as \"nice\"")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "Usage: mutate [flags] [packages]\n\nThe default packages are ./dul/... ./baselines ./datasets/... and ./figures/experiment/... if it is there.")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if o.match, err = regexp.Compile(*match); err == nil {
		o.packages, o.through = flag.Args(), strings.Fields(*through)
		err = o.run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

type options struct {
	seed             uint64
	count            int
	limit, importing time.Duration
	match            *regexp.Regexp
	packages         []string
	through          []string
	out              io.Writer
}

// A goPackage is what go list says of a package.
type goPackage struct {
	Dir, ImportPath                    string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string
}

func (p goPackage) tested() bool { return len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 }

// list returns the packages of patterns.
func list(ctx context.Context, patterns ...string) ([]goPackage, error) {
	command := exec.CommandContext(ctx, "go", append([]string{"list", "-json"}, patterns...)...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", strings.Join(patterns, " "), err)
	}
	var found []goPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := d.Decode(&p); err == io.EOF {
			return found, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		found = append(found, p)
	}
}

// A session is a run of mutate.
type session struct {
	options
	folder   string // for programs and profiles
	all      []goPackage
	chosen   []string                  // import paths of the packages that are changed
	profiled map[string][]test         // by package
	blocks   map[string]map[block]bool // all blocks of a file
}

// A test is what a run of one test without a mutant showed.
type test struct {
	name string
	took time.Duration
	runs map[string][]block // by file
}

// A block is a piece of code as the coverage profile has it; the numbers are lines and columns.
type block struct{ line, column, endLine, endColumn int }

func (b block) has(line, column int) bool {
	at := [2]int{line, column}
	return slices.Compare([]int{b.line, b.column}, at[:]) <= 0 && slices.Compare(at[:], []int{b.endLine, b.endColumn}) < 0
}

func (o options) run(ctx context.Context) error {
	patterns := o.packages
	if len(patterns) == 0 {
		patterns = []string{"./dul/...", "./baselines", "./datasets/..."}
		if _, err := os.Stat("figures/experiment"); err == nil {
			patterns = append(patterns, "./figures/experiment/...")
		}
	}
	chosen, err := list(ctx, patterns...)
	if err != nil {
		return err
	}
	s := &session{options: o, profiled: map[string][]test{}, blocks: map[string]map[block]bool{}}
	if s.all, err = list(ctx, "./..."); err != nil {
		return err
	}
	if s.folder, err = os.MkdirTemp("", "mutate-*"); err != nil {
		return err
	}
	defer os.RemoveAll(s.folder)
	type candidate struct {
		of goPackage
		mutant
	}
	var candidates []candidate
	for _, p := range chosen {
		s.chosen = append(s.chosen, p.ImportPath)
		if !p.tested() {
			fmt.Fprintf(o.out, "no tests: %s\n", p.ImportPath)
			continue
		}
		for _, name := range p.GoFiles {
			found, err := mutantsOfFile(filepath.Join(p.Dir, name))
			if err != nil {
				return err
			}
			for _, m := range found {
				if o.match.MatchString(m.String()) {
					candidates = append(candidates, candidate{p, m})
				}
			}
		}
	}
	rng := rand.New(rand.NewPCG(o.seed, 0))
	rng.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
	fmt.Fprintf(o.out, "%d mutants of %d packages\n", len(candidates), len(chosen))
	killed := 0
	var survivors []string
	for _, c := range candidates {
		if killed+len(survivors) == o.count {
			break
		}
		began := time.Now()
		verdict, err := s.try(ctx, c.of, c.mutant)
		if err != nil {
			return err
		}
		text := c.String()
		fmt.Fprintf(o.out, "%-9s %3.0f s  %s\n", verdict, time.Since(began).Seconds(), text)
		switch verdict {
		case survived, unseen:
			survivors = append(survivors, text)
		case failed, stuck:
			killed++
		}
	}
	total := killed + len(survivors)
	fmt.Fprintf(o.out, "\n%d of %d mutants killed (%.0f %%)\n", killed, total, 100*float64(killed)/float64(max(total, 1)))
	for _, text := range survivors {
		fmt.Fprintln(o.out, "survived:", text)
	}
	return nil
}

// The verdicts on a mutant. One that does not compile does not count.
const (
	failed   = "killed"
	stuck    = "timed out" // which counts as killed
	survived = "SURVIVED"
	unseen   = "NOT RUN" // survived, since no test runs its place
	invalid  = "invalid"
)

// try runs the tests that could notice a mutant of p.
func (s *session) try(ctx context.Context, p goPackage, m mutant) (string, error) {
	changed := filepath.Join(s.folder, "changed.go")
	overlay := filepath.Join(s.folder, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{m.file: changed}})
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.WriteFile(changed, m.apply(), 0o600), os.WriteFile(overlay, text, 0o600)); err != nil {
		return "", err
	}
	tests, err := s.running(ctx, p, p, m)
	if err != nil {
		return "", err
	}
	verdict, err := s.judge(ctx, p, overlay, tests)
	if err != nil || verdict != survived {
		return verdict, err
	}
	seen := len(tests) > 0
	left := s.importing
	for _, other := range s.all {
		if other.ImportPath == p.ImportPath || !other.tested() || !slices.Contains(slices.Concat(other.Imports, other.TestImports, other.XTestImports), p.ImportPath) {
			continue
		}
		tests, err := s.running(ctx, other, p, m)
		if err != nil {
			return "", err
		}
		tests = slices.DeleteFunc(tests, func(t test) bool {
			if t.took > left {
				return true
			}
			left -= t.took
			return false
		})
		if len(tests) == 0 {
			continue
		}
		seen = true
		if verdict, err := s.judge(ctx, other, overlay, tests); err != nil || verdict != survived {
			return verdict, err
		}
	}
	if !seen {
		return unseen, nil
	}
	return survived, nil
}

// running are the tests of a package that run the place of a mutant of p, the fastest first.
func (s *session) running(ctx context.Context, of, p goPackage, m mutant) ([]test, error) {
	tests, err := s.profile(ctx, of)
	if err != nil {
		return nil, err
	}
	file := path.Join(p.ImportPath, filepath.Base(m.file))
	column := m.from - bytes.LastIndexByte(m.source[:m.from], '\n')
	here := func(b block) bool { return b.has(m.line, column) }
	known := false
	for b := range s.blocks[file] {
		known = known || here(b)
	}
	return slices.DeleteFunc(slices.Clone(tests), func(t test) bool {
		if known {
			return !slices.ContainsFunc(t.runs[file], here)
		}
		// A variable of the package is in no block; it may matter to all that runs any of the package.
		for name := range t.runs {
			if path.Dir(name) == p.ImportPath {
				return false
			}
		}
		return true
	}), nil
}

var testName = regexp.MustCompile(`(?m)^(Test|Example|Fuzz)\w*$`)

// profile runs each test of a package by itself, without a mutant, and returns those that pass, the fastest first.
func (s *session) profile(ctx context.Context, p goPackage) ([]test, error) {
	tests, known := s.profiled[p.ImportPath]
	if known {
		return tests, nil
	}
	program := filepath.Join(s.folder, "profile.test")
	if out, err := s.command(ctx, p, "go", "test", "-c", "-cover", "-coverpkg="+strings.Join(s.chosen, ","), "-o="+program, p.ImportPath); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	names, err := s.command(ctx, p, program, "-test.list=.")
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, names)
	}
	began := time.Now()
	for _, name := range testName.FindAllString(string(names), -1) {
		t := test{name: name, runs: map[string][]block{}}
		counts := filepath.Join(s.folder, "counts")
		began := time.Now()
		if out, err := s.command(ctx, p, program, "-test.short", "-test.run=^"+name+"$", "-test.timeout="+s.limit.String(), "-test.coverprofile="+counts); ctx.Err() != nil {
			return nil, ctx.Err()
		} else if err != nil {
			last := strings.Split(strings.TrimSpace(string(out)), "\n")
			fmt.Fprintf(s.out, "left out: %s of %s (%v, %s)\n", name, p.ImportPath, err, last[len(last)-1])
			continue
		}
		t.took = time.Since(began)
		if err := s.read(counts, t.runs); err != nil {
			return nil, err
		}
		tests = append(tests, t)
	}
	slices.SortStableFunc(tests, func(a, b test) int { return cmp.Compare(a.took, b.took) })
	s.profiled[p.ImportPath] = tests
	fmt.Fprintf(s.out, "%d tests of %s took %.0f s\n", len(tests), p.ImportPath, time.Since(began).Seconds())
	return tests, nil
}

// read adds the blocks of a coverage profile, and to runs those that were run.
func (s *session) read(profile string, runs map[string][]block) error {
	text, err := os.ReadFile(profile)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, line := range lines[1:] {
		file, rest, _ := strings.Cut(line, ":")
		var b block
		var statements, count int
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.line, &b.column, &b.endLine, &b.endColumn, &statements, &count); err != nil {
			return fmt.Errorf("coverage profile: %q: %w", line, err)
		}
		if s.blocks[file] == nil {
			s.blocks[file] = map[block]bool{}
		}
		s.blocks[file][b] = true
		if count > 0 {
			runs[file] = append(runs[file], b)
		}
	}
	return nil
}

// judge compiles a package with a mutant and runs tests of it: first those that end within three seconds, then the others.
func (s *session) judge(ctx context.Context, p goPackage, overlay string, tests []test) (string, error) {
	program := filepath.Join(s.folder, "mutant.test")
	if _, err := s.command(ctx, p, "go", "test", "-c", "-ldflags=-s -w", "-overlay="+overlay, "-o="+program, p.ImportPath); ctx.Err() != nil {
		return "", ctx.Err()
	} else if err != nil {
		return invalid, nil
	}
	first, sum := 0, time.Duration(0)
	for first < len(tests) && sum < 3*time.Second {
		sum += tests[first].took
		first++
	}
	for _, tests := range [][]test{tests[:first], tests[first:]} {
		var names []string
		limit := 20 * time.Second
		for _, t := range tests {
			names = append(names, t.name)
			limit += 5 * t.took
		}
		if len(names) == 0 {
			continue
		}
		out, err := s.command(ctx, p, program, "-test.short", "-test.failfast", "-test.run=^("+strings.Join(names, "|")+")$", "-test.timeout="+limit.String())
		switch {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case bytes.Contains(out, []byte("panic: test timed out")):
			return stuck, nil
		case err != nil:
			return failed, nil
		}
	}
	return survived, nil
}

// command runs a command in the folder of a package.
func (s *session) command(ctx context.Context, p goPackage, arguments ...string) ([]byte, error) {
	arguments = slices.Concat(s.through, arguments)
	command := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	command.Dir = p.Dir
	return command.CombinedOutput()
}
