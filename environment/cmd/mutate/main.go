// Mutate changes the code a little, in many places and each time in one, and says
// which changes no test notices: go run ./environment/cmd/mutate -n 100.
//
// A mutant that survives shows code that no test checks, or a change that changes
// nothing. The files stay as they are: each mutant is compiled with go test
// -overlay. Each test runs once without a mutant, to learn which code it runs and
// how long it takes. A mutant then runs only the tests that run its place: those of
// its package, the fast ones first, and if they pass, fast ones of the packages
// that import it. A survivor that survivors.md explains is reported as known, and
// an explanation of what the code no longer has as stale.
package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
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

	"densityuncertainty/environment/atomicfile"
)

func main() {
	o := options{out: os.Stdout, known: explanations(survivors)}
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
	caches, err1 := os.UserCacheDir()
	matching, err2 := regexp.Compile(*match)
	err := errors.Join(err1, err2)
	if err == nil {
		o.packages, o.through, o.match = flag.Args(), strings.Fields(*through), matching
		o.cache = filepath.Join(caches, "densityuncertainty", "mutate")
		err = o.run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

//go:embed survivors.md
var survivors string

// explanations reads why mutants survive, by mutant.key, from a page like survivors.md: a heading names a file, an
// indented block has a line of it and mutants of that line, and the paragraph below says why these survive.
func explanations(page string) map[string]string {
	why := map[string]string{}
	var file, code string
	var keys []string
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		indented, isBlock := strings.CutPrefix(line, "    ")
		name, isHeading := strings.CutPrefix(line, "## ")
		switch {
		case isHeading:
			file = name
		case isBlock && code == "":
			code = indented
		case isBlock:
			keys = append(keys, file+": "+indented+" in "+code)
		case line != "":
			for _, key := range keys {
				why[key] = line
			}
			code, keys = "", nil
		}
	}
	return why
}

type options struct {
	seed             uint64
	count            int
	limit, importing time.Duration
	match            *regexp.Regexp
	packages         []string
	through          []string
	cache            string            // folder that keeps profiles
	known            map[string]string // why mutants survive, by mutant.key
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
	chosen   []string            // import paths of the packages that are changed
	profiles map[string]*profile // by package
}

// A profile is what runs of the tests of a package, one by one and without a mutant, showed.
type profile struct {
	Blocks []block
	Tests  []test // those that pass, the fastest first
}

type test struct {
	Name string
	Took time.Duration
	Runs []int // indices of blocks
}

// A block is a piece of code in a coverage profile.
type block struct {
	File                             string
	Line, Column, EndLine, EndColumn int
}

func (b block) has(line, column int) bool {
	at := []int{line, column}
	return slices.Compare([]int{b.Line, b.Column}, at) <= 0 && slices.Compare(at, []int{b.EndLine, b.EndColumn}) < 0
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
	s := &session{options: o, profiles: map[string]*profile{}}
	if s.all, err = list(ctx, "./..."); err != nil {
		return err
	}
	if s.folder, err = os.MkdirTemp("", "mutate-*"); err != nil {
		return err
	}
	defer os.RemoveAll(s.folder)
	var candidates []mutant
	all := map[string]bool{} // files, and keys of their mutants
	for _, p := range chosen {
		s.chosen = append(s.chosen, p.ImportPath)
		if !p.tested() {
			fmt.Fprintf(o.out, "no tests: %s\n", p.ImportPath)
			continue
		}
		for _, name := range p.GoFiles {
			file := filepath.Join(p.Dir, name)
			source, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			found, err := mutantsOf(file, source)
			if err != nil {
				return err
			}
			for _, m := range found {
				all[m.name()], all[m.key()] = true, true
				if o.match.MatchString(m.String()) {
					m.of = p
					candidates = append(candidates, m)
				}
			}
		}
	}
	rng := rand.New(rand.NewPCG(o.seed, 0))
	rng.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
	fmt.Fprintf(o.out, "%d mutants of %d packages\n", len(candidates), len(chosen))
	for _, key := range slices.Sorted(maps.Keys(o.known)) {
		if file, _, _ := strings.Cut(key, ": "); !all[key] && (all[file] || len(o.packages) == 0) {
			fmt.Fprintln(o.out, "stale in survivors.md:", key)
		}
	}
	killed, known := 0, 0
	var survivors []string
	for _, m := range candidates {
		if killed+known+len(survivors) == o.count {
			break
		}
		began := time.Now()
		verdict, err := s.try(ctx, m)
		if err != nil {
			return err
		}
		text := m.String()
		why := o.known[m.key()]
		if why != "" && (verdict == survived || verdict == unseen) {
			verdict, text = explained, text+": "+why
		}
		fmt.Fprintf(o.out, "%-9s %3.0f s  %s\n", verdict, time.Since(began).Seconds(), text)
		switch verdict {
		case explained:
			known++
		case survived, unseen:
			survivors = append(survivors, text)
		case failed, stuck:
			killed++
		}
	}
	total := killed + known + len(survivors)
	fmt.Fprintf(o.out, "\n%d of %d mutants killed (%.0f %%), %d known to survive\n", killed, total, 100*float64(killed)/float64(max(total, 1)), known)
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
	// explained survived, for a reason in survivors.md.
	explained = "known"
)

// try runs the tests that could notice a mutant.
func (s *session) try(ctx context.Context, m mutant) (string, error) {
	changed := filepath.Join(s.folder, "changed.go")
	overlay := filepath.Join(s.folder, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{m.file: changed}})
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.WriteFile(changed, m.apply(), 0o600), os.WriteFile(overlay, text, 0o600)); err != nil {
		return "", err
	}
	tests, err := s.running(ctx, m.of, m)
	if err != nil {
		return "", err
	}
	verdict, err := s.judge(ctx, m.of, overlay, tests)
	if err != nil || verdict != survived {
		return verdict, err
	}
	seen := len(tests) > 0
	left := s.importing
	for _, other := range s.all {
		if left <= 0 {
			break
		}
		if other.ImportPath == m.of.ImportPath || !other.tested() || !slices.Contains(slices.Concat(other.Imports, other.TestImports, other.XTestImports), m.of.ImportPath) {
			continue
		}
		tests, err := s.running(ctx, other, m)
		if err != nil {
			return "", err
		}
		tests = slices.DeleteFunc(tests, func(t test) bool {
			if t.Took > left {
				return true
			}
			left -= t.Took
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

// running are the tests of a package that run the place of a mutant.
func (s *session) running(ctx context.Context, p goPackage, m mutant) ([]test, error) {
	found, err := s.profile(ctx, p)
	if err != nil {
		return nil, err
	}
	file := path.Join(m.of.ImportPath, filepath.Base(m.file))
	column := m.from - bytes.LastIndexByte(m.source[:m.from], '\n')
	matters := func(b block) bool { return b.File == file && b.has(m.line, column) }
	if !slices.ContainsFunc(found.Blocks, matters) {
		// A variable of the package is in no block: it may matter wherever the package is used.
		matters = func(b block) bool { return path.Dir(b.File) == m.of.ImportPath }
	}
	runs := func(i int) bool { return matters(found.Blocks[i]) }
	return slices.DeleteFunc(slices.Clone(found.Tests), func(t test) bool { return !slices.ContainsFunc(t.Runs, runs) }), nil
}

var testName = regexp.MustCompile(`(?m)^(Test|Example|Fuzz)\w*$`)

// profile returns the profile of a package, which it keeps for the next call.
func (s *session) profile(ctx context.Context, p goPackage) (*profile, error) {
	if known := s.profiles[p.ImportPath]; known != nil {
		return known, nil
	}
	program := filepath.Join(s.folder, "profile.test")
	if out, err := s.command(ctx, p, "go", "test", "-c", "-cover", "-coverpkg="+strings.Join(s.chosen, ","), "-o="+program, p.ImportPath); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	built, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	kept := filepath.Join(s.cache, fmt.Sprintf("%x.json", sha256.Sum256(built)))
	made := new(profile)
	if text, err := os.ReadFile(kept); err == nil && json.Unmarshal(text, made) == nil {
		s.profiles[p.ImportPath] = made
		return made, nil
	}
	names, err := s.command(ctx, p, program, "-test.list=.")
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, names)
	}
	counts := filepath.Join(s.folder, "counts")
	for _, name := range testName.FindAllString(string(names), -1) {
		began := time.Now()
		if _, err := s.command(ctx, p, program, "-test.short", "-test.run=^"+name+"$", "-test.timeout="+s.limit.String(), "-test.coverprofile="+counts); ctx.Err() != nil {
			return nil, ctx.Err()
		} else if err != nil {
			fmt.Fprintf(s.out, "left out: %s of %s: %v\n", name, p.ImportPath, err)
			continue
		}
		t := test{Name: name, Took: time.Since(began)}
		if t.Runs, err = made.read(counts); err != nil {
			return nil, err
		}
		made.Tests = append(made.Tests, t)
	}
	slices.SortStableFunc(made.Tests, func(a, b test) int { return cmp.Compare(a.Took, b.Took) })
	s.profiles[p.ImportPath] = made
	text, err := json.Marshal(made)
	if err != nil {
		return nil, err
	}
	return made, errors.Join(os.MkdirAll(s.cache, 0o755), atomicfile.WriteBytes(kept, text))
}

// read returns the indices of the blocks that were run, by the coverage profile of one test; the first one tells the blocks.
func (p *profile) read(file string) (runs []int, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")[1:]
	if len(p.Tests) > 0 && len(lines) != len(p.Blocks) {
		return nil, fmt.Errorf("coverage profiles of %d and of %d blocks", len(p.Blocks), len(lines))
	}
	for i, line := range lines {
		if len(p.Tests) == 0 {
			var b block
			name, rest, _ := strings.Cut(line, ":")
			if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d", &b.Line, &b.Column, &b.EndLine, &b.EndColumn); err != nil {
				return nil, fmt.Errorf("coverage profile: %q: %w", line, err)
			}
			b.File = name
			p.Blocks = append(p.Blocks, b)
		}
		if !strings.HasSuffix(line, " 0") {
			runs = append(runs, i)
		}
	}
	return runs, nil
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
		sum += tests[first].Took
		first++
	}
	for _, tests := range [][]test{tests[:first], tests[first:]} {
		var names []string
		limit := 20 * time.Second
		for _, t := range tests {
			names = append(names, t.Name)
			limit += 5 * t.Took
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
