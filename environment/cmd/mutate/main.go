// Mutate changes the code a little, in many places and each time in one, and says
// which changes no test notices: go run ./environment/cmd/mutate -n 100.
//
// A mutant that survives shows code that the tests do not hold to anything, or a
// change that changes nothing. The files stay as they are: each mutant is compiled
// with go test -overlay. First run the tests of its package, then, where these pass,
// those of the packages that import it and are quick.
package main

import (
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
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	o := options{out: os.Stdout}
	flag.Uint64Var(&o.seed, "seed", 1, "chooses the mutants")
	flag.IntVar(&o.count, "n", 50, "number of mutants")
	flag.DurationVar(&o.limit, "limit", 2*time.Minute, "longest time for the tests of a package; tests that take longer without a mutant are left out")
	flag.DurationVar(&o.quick, "quick", 15*time.Second, "longest time that the tests of an importing package may take without a mutant")
	flag.IntVar(&o.importers, "importers", 3, "number of importing packages whose tests are run")
	through := flag.String("through", "", "command that runs each test, such as \"nice\"")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "Usage: mutate [flags] [packages]\n\nThe default packages are ./dul/... ./baselines ./datasets/... and ./figures/experiment/... if it is there.")
		flag.PrintDefaults()
	}
	flag.Parse()
	o.packages, o.through = flag.Args(), strings.Fields(*through)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

type options struct {
	seed         uint64
	count        int
	importers    int
	limit, quick time.Duration
	packages     []string
	through      []string
	out          io.Writer
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
	all  []goPackage              // of the module
	took map[string]time.Duration // by the tests of a package without a mutant; below 0 for tests that fail
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
	s := &session{options: o, took: map[string]time.Duration{}}
	if s.all, err = list(ctx, "./..."); err != nil {
		return err
	}
	type candidate struct {
		of goPackage
		mutant
	}
	var candidates []candidate
	for _, p := range chosen {
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
				candidates = append(candidates, candidate{p, m})
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
		case survived:
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

// The verdicts on a mutant. One that does not compile, or whose package's tests take too long without it, does not count.
const (
	failed   = "killed"
	stuck    = "timed out" // which counts as killed
	survived = "SURVIVED"
	invalid  = "invalid"
	slow     = "too slow"
)

// try runs the tests that could notice a mutant.
func (s *session) try(ctx context.Context, p goPackage, m mutant) (verdict string, err error) {
	folder, err := os.MkdirTemp("", "mutate-*")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	changed := filepath.Join(folder, "changed.go")
	overlay := filepath.Join(folder, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{m.file: changed}})
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.WriteFile(changed, m.apply(), 0o600), os.WriteFile(overlay, text, 0o600)); err != nil {
		return "", err
	}
	for i, of := range append([]goPackage{p}, s.importing(p)...) {
		limit := s.quick
		if i == 0 {
			limit = s.limit
		}
		before, err := s.baseline(ctx, of, limit)
		if err != nil {
			return "", err
		}
		if before < 0 {
			if i == 0 {
				return slow, nil
			}
			continue
		}
		verdict, err := s.test(ctx, of, 3*before+10*time.Second, "-overlay="+overlay)
		if err != nil || verdict != survived {
			return verdict, err
		}
	}
	return survived, nil
}

// importing are packages with tests that import p, at most as many as asked for.
func (s *session) importing(p goPackage) (found []goPackage) {
	for _, other := range s.all {
		imports := slices.Concat(other.Imports, other.TestImports, other.XTestImports)
		if len(found) < s.importers && other.ImportPath != p.ImportPath && other.tested() && slices.Contains(imports, p.ImportPath) {
			found = append(found, other)
		}
	}
	return found
}

// baseline is how long the tests of a package take without a mutant, or -1 if that is longer than the limit, or they fail.
func (s *session) baseline(ctx context.Context, p goPackage, limit time.Duration) (time.Duration, error) {
	key := p.ImportPath + " " + limit.String()
	if took, known := s.took[key]; known {
		return took, nil
	}
	began := time.Now()
	verdict, err := s.test(ctx, p, limit)
	if err != nil {
		return 0, err
	}
	s.took[key] = time.Since(began)
	if verdict != survived {
		s.took[key] = -1
	}
	return s.took[key], nil
}

// test runs the tests of a package.
func (s *session) test(ctx context.Context, p goPackage, limit time.Duration, flags ...string) (string, error) {
	arguments := slices.Concat(s.through, []string{"go", "test", "-short", "-failfast", "-count=1", "-vet=off", "-timeout=" + limit.String()}, flags, []string{p.ImportPath})
	command := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	out, err := command.CombinedOutput()
	var status *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err == nil:
		return survived, nil
	case !errors.As(err, &status):
		return "", err
	case strings.Contains(string(out), "[build failed]") || strings.Contains(string(out), "[setup failed]"):
		return invalid, nil
	case strings.Contains(string(out), "panic: test timed out"):
		return stuck, nil
	}
	return failed, nil
}
