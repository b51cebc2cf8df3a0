package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/datasets/fetch"
	"densityuncertainty/environment/must"
)

// tinySets are two data sets, one of which has two forms. Reading them says
// whether the files are the given ones.
func tinySets() []dataSet {
	read := func(names ...string) func(context.Context, *fetch.Fetcher) error {
		return func(_ context.Context, f *fetch.Fetcher) error {
			for _, name := range names {
				path, found, err := f.Local(name)
				if err != nil {
					return err
				}
				if contents, err := os.ReadFile(path); !found || err != nil || string(contents) != "contents of "+name {
					return fmt.Errorf("%s: found %v, %q, %w", name, found, contents, err)
				}
			}
			return nil
		}
	}
	return []dataSet{
		{name: "one", forms: [][]string{{"one.tar.gz"}, {"one-bin/a.bin", "one-bin/b.bin"}}, official: fetch.File{Name: "one.tar.gz"}, read: read("one-bin/a.bin", "one-bin/b.bin")},
		{name: "other", forms: [][]string{{"svhn/c.mat"}}, official: fetch.File{Name: "svhn/c.mat"}, read: read("svhn/c.mat")},
	}
}

// tinyData is a folder with the files of both sets.
func tinyData(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"one-bin/a.bin", "one-bin/b.bin", "svhn/c.mat"} {
		writeFile(t, filepath.Join(folder, name), "contents of "+name, 0o644)
	}
	return folder
}

func TestCollect(t *testing.T) {
	for _, c := range []struct {
		name, sets string
		change     func(t *testing.T, folder string) // of the data
		want       []string                          // files
		says       string                            // error; none if empty
	}{
		{"all", "one,other", nil, []string{"one-bin/a.bin", "one-bin/b.bin", "svhn/c.mat"}, ""},
		{"one", "other", nil, []string{"svhn/c.mat"}, ""},
		{"none", "none", nil, nil, ""},
		{"an unknown one", "one,two", nil, nil, `unknown "two", want none or some of one,other`},
		{"missing", "one,other", func(t *testing.T, folder string) { remove(t, filepath.Join(folder, "one-bin/b.bin")) }, nil, "set one is not here; put it into the folder that " + fetch.EnvData},
		{"wrong", "other", func(t *testing.T, folder string) {
			writeFile(t, filepath.Join(folder, "svhn/c.mat"), "something else", 0o644)
		}, []string{"svhn/c.mat"}, "set other is not as published"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fetch.Fetcher{Mirror: tinyData(t), Cache: t.TempDir()}
			if c.change != nil {
				c.change(t, f.Mirror)
			}
			out := filepath.Join(t.TempDir(), "data")
			err := run(t.Context(), tinySets(), f, []string{"--data", c.sets, out}, io.Discard)
			if (err == nil) != (c.says == "") || (err != nil && !strings.Contains(err.Error(), c.says)) {
				t.Errorf("error %v, want %q", err, c.says)
			}
			for _, name := range c.want {
				if _, err := os.Stat(filepath.Join(out, name)); err != nil {
					t.Error(err)
				}
			}
			if err := run(t.Context(), tinySets(), f, []string{"--data", c.sets}, io.Discard); c.name != "wrong" && (err == nil) != (c.says == "") {
				t.Errorf("dry run: error %v, want %q", err, c.says)
			}
		})
	}
	t.Run("nothing is downloaded without a folder", func(t *testing.T) {
		sets := tinySets()[:1]
		sets[0].official.URL = "http://127.0.0.1:1/one.tar.gz"
		var out strings.Builder
		f := &fetch.Fetcher{Mirror: t.TempDir(), Cache: t.TempDir()}
		if err := run(t.Context(), sets, f, []string{"--data", "one"}, &out); err != nil || out.String() != "data: one from http://127.0.0.1:1/one.tar.gz, when it is wanted\n" {
			t.Errorf("%v\n%s", err, out.String())
		}
	})
	t.Run("--help", func(t *testing.T) {
		var out strings.Builder
		if err := run(t.Context(), tinySets(), nil, []string{"--help"}, &out); err != nil || !strings.HasPrefix(out.String(), "usage: bundle [--data SETS] [FOLDER]\n  -data sets\n") {
			t.Errorf("%v\n%s", err, out.String())
		}
	})
	for _, args := range [][]string{{"a", "b"}, {"--no-such-flag"}, {"--data", "", "a"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			if err := run(t.Context(), tinySets(), nil, args, io.Discard); !errors.Is(err, errUsage) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// What is downloaded is known by its size and sum: anything else would stay in the cache as if it were right.
func TestDownloadsAreChecked(t *testing.T) {
	for _, set := range catalogue {
		if f := set.official; f.URL != "" && (f.Size == 0 || f.SHA256 == "") {
			t.Errorf("%s: %+v", set.name, f)
		}
	}
}

// Every form in which the data sets are read is one that can be taken along: the
// names are those that an error of package datasets lists, and those of each form alone
// are enough to find it, without the network.
func TestFormsAreThoseThatAreRead(t *testing.T) {
	offline, cancel := context.WithCancel(t.Context())
	cancel()
	for _, set := range catalogue {
		if !strings.HasPrefix(set.name, "cifar") {
			continue
		}
		err := set.read(offline, &fetch.Fetcher{Mirror: t.TempDir(), Cache: t.TempDir()})
		_, list, listed := strings.Cut(fmt.Sprint(err), "(any of ")
		list, _, ended := strings.Cut(list, " will do)")
		if !listed || !ended {
			t.Fatalf("%s: the error lists no forms: %v", set.name, err)
		}
		names := strings.Split(list, ", ")
		if len(names) != len(set.forms) {
			t.Errorf("%s is read in the forms %q, looked for are %q", set.name, names, set.forms)
		}
		for _, name := range names {
			at := slices.IndexFunc(set.forms, func(form []string) bool { return strings.HasPrefix(form[0], name) })
			if at < 0 {
				t.Errorf("%s: %s is not looked for", set.name, name)
				continue
			}
			f := &fetch.Fetcher{Mirror: t.TempDir(), Cache: t.TempDir()}
			var want []dataFile
			for _, file := range set.forms[at] {
				path := filepath.Join(f.Mirror, file)
				writeFile(t, path, "x", 0o644)
				want = append(want, dataFile{file, path})
			}
			if files, err := set.find(offline, f, f.Get); err != nil || !slices.Equal(files, want) {
				t.Errorf("%s: found %v, %v; want %v", set.name, files, err, want)
			}
			// Of a folder, all files that are read.
			if err := fmt.Sprint(set.read(offline, f)); strings.HasSuffix(name, "/") && (strings.Contains(err, "files are missing") || strings.Contains(err, "(any of ")) {
				t.Errorf("%s: %s is not all that is read: %s", set.name, name, err)
			}
		}
	}
}

// The folder that the data are in can be the one that they are collected in: they
// stay as they are.
func TestCollectInPlace(t *testing.T) {
	f := &fetch.Fetcher{Mirror: tinyData(t), Cache: t.TempDir()}
	if err := run(t.Context(), tinySets(), f, []string{"--data=one,other", f.Mirror}, io.Discard); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"one-bin/a.bin", "one-bin/b.bin", "svhn/c.mat"} {
		if got := string(must.Get(os.ReadFile(filepath.Join(f.Mirror, name)))(t)); got != "contents of "+name {
			t.Errorf("%s is %q now", name, got)
		}
	}
}

// A copy that fails leaves the file that was there before.
func TestCopiesAreWhole(t *testing.T) {
	folder := t.TempDir()
	to := filepath.Join(folder, "a")
	writeFile(t, to, "before", 0o644)
	if err := copyFile(to, t.TempDir()); err == nil { // a folder can be opened, and not read
		t.Error("a folder was copied as if it were a file")
	}
	left := must.Get(os.ReadDir(folder))(t)
	if got := string(must.Get(os.ReadFile(to))(t)); got != "before" || len(left) != 1 {
		t.Errorf("the file is %q now, the folder has %v", got, left)
	}
}

// The whole archive is taken where it is, rather than the folder.
func TestFindPrefersTheArchive(t *testing.T) {
	f := &fetch.Fetcher{Mirror: tinyData(t)}
	writeFile(t, filepath.Join(f.Mirror, "one.tar.gz"), "x", 0o644)
	files, err := tinySets()[0].find(t.Context(), f, f.Get)
	if want := []dataFile{{"one.tar.gz", filepath.Join(f.Mirror, "one.tar.gz")}}; err != nil || !slices.Equal(files, want) {
		t.Errorf("got %v, %v", files, err)
	}
}

// The programs of a test bundle: what computes tells how it was called.
const (
	tellingProgram = `#!/bin/sh
[ "$1" != help ] || exit 0
printf '%s\n' "program=${0##*/}" "arguments=$*" "version=$DENSITYUNCERTAINTY_VERSION" "data=$DENSITYUNCERTAINTY_DATA" \
  "backend=${GOMLX_BACKEND-unset}" "libraries=${LD_LIBRARY_PATH-unset}" "device=${CUDA_VISIBLE_DEVICES-unset}" "plugins=$PJRT_PLUGIN_LIBRARY_PATH" \
  "flags=${XLA_FLAGS-unset}" "checks=${GOPJRT_CUDA_CHECKS-unset}"
`
	brokenProgram = `#!/bin/sh
echo "$0: libc.so.6: version GLIBC_2.99 not found" >&2
exit 1
`
	installingProgram = `#!/bin/sh
echo "installing $1" >&2
kind=${1%1?}
mkdir -p "$2" && : >"$2/pjrt_c_api_${kind}_v1_plugin.so"
`
)

// makeBundle makes a bundle of the tiny sets and returns the folder of its parts.
func makeBundle(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the scripts of a bundle are for Linux")
	}
	stage, out := filepath.Join(t.TempDir(), "densityuncertainty-abc+dirty"), filepath.Join(t.TempDir(), "it's here")
	must.Do(t, run(t.Context(), tinySets(), &fetch.Fetcher{Mirror: tinyData(t)}, []string{"--data=one,other", filepath.Join(stage, "data")}, io.Discard))
	for _, f := range []struct{ name, contents string }{
		{"bin/reproduce-xla", tellingProgram}, {"bin/reproduce-go", tellingProgram}, {"bin/xlaplugin", installingProgram},
		{"version", "abc+dirty\n"}, {"glibc", "2.34\n"}, {"random", noise(10_000)},
	} {
		writeFile(t, filepath.Join(stage, f.name), f.contents, 0o755)
	}
	script := must.Get(os.ReadFile("target/run.sh"))(t)
	writeFile(t, filepath.Join(stage, "run.sh"), string(script), 0o755)
	pack := func(size string) (string, error) {
		text, err := exec.Command("bash", "pack.sh", stage, out, size).CombinedOutput()
		return string(text), err
	}
	if text, err := pack("100"); err == nil || !strings.Contains(text, "choose a larger --part-size") {
		t.Errorf("too many parts: %v, %s", err, text)
	}
	if text, err := pack("4000"); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if left, err := filepath.Glob(filepath.Join(out, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	if text, err := pack("4000"); err == nil || !strings.Contains(text, "is there already") {
		t.Errorf("making it twice: %v, %s", err, text)
	}
	return filepath.Join(out, filepath.Base(stage))
}

// checksBundle is a folder with the scripts of a bundle with checks, and a program that tells how it was called.
func checksBundle(t *testing.T) (bundle, script string) {
	t.Helper()
	bundle = t.TempDir()
	for _, name := range []string{"run.sh", "check.sh"} {
		text := must.Get(os.ReadFile(filepath.Join("target", name)))(t)
		writeFile(t, filepath.Join(bundle, name), string(text), 0o755)
	}
	writeFile(t, filepath.Join(bundle, "version"), "abc\n", 0o644)
	writeFile(t, filepath.Join(bundle, "bin/reproduce-xla"), tellingProgram, 0o755)
	return bundle, filepath.Join(bundle, "check.sh")
}

// The script of the checks runs each test program in its folder, counts, and fails
// if one of them does, after all steps.
func TestCheckScript(t *testing.T) {
	bundle, script := checksBundle(t)
	env := []string{"GOMLX_BACKEND=go:ops_sequential"}
	for _, c := range []struct{ args, want string }{
		{"", "no step"}, {"--small", "no step"}, {"corect", "unknown step"}, {"--processes 0 compare", "\"0\" is not a number of at least 1"},
		{"--processes", "needs a number"}, {"--minutes=x compare", "--minutes: \"x\" is not a number"}, {"-x correct", "unknown argument"},
	} {
		t.Run("arguments "+c.args, func(t *testing.T) {
			if status, _, stderr := shell(t, env, script, strings.Fields(c.args)...); status != 2 || !strings.Contains(stderr, c.want) {
				t.Errorf("status %d, want 2 and %q\n%s", status, c.want, stderr)
			}
		})
	}
	if status, _, stderr := shell(t, env, script, "correct"); status != 1 || !strings.Contains(stderr, "made without --checks") {
		t.Errorf("without checks: status %d\n%s", status, stderr)
	}

	const passing = "#!/bin/sh\n[ -d testdata ] || exit 3\necho \"--- PASS: A ($*)\"\necho '    --- SKIP: A/b'\necho '    b_test.go:7: bfloat16: 0.1 off'\n"
	writeFile(t, filepath.Join(bundle, "checks/a/b/b.test"), passing, 0o755)
	must.Do(t, os.MkdirAll(filepath.Join(bundle, "checks/a/b/testdata"), 0o755))
	const passed = "float32 a/b/b passed: 1 tests passed, 0 failed, 1 left out"
	status, stdout, stderr := shell(t, env, script, "--small", "correct")
	if status != 0 || !strings.Contains(stdout, passed) || !strings.Contains(stdout, "\nbfloat16: 0.1 off\n") || !strings.Contains(stdout, "\ncorrect: done, ") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
	writeFile(t, filepath.Join(bundle, "checks/c/c.test"), "#!/bin/sh\necho '--- FAIL: C'\nexit 1\n", 0o755)
	status, stdout, stderr = shell(t, env, script, "--small", "correct", "compare")
	for _, want := range []string{passed, "float32 c/c FAILED: 0 tests passed, 1 failed", "\ncorrect: failed: c/c, ", "\ncompare: done, "} {
		if status != 1 || !strings.Contains(stdout, want) {
			t.Errorf("status %d, want 1 and %q\n%s%s", status, want, stdout, stderr)
		}
	}
	if told, want := commandOutput(stdout), "run gpu --set Recipe.Epochs=1 "; !strings.HasPrefix(told["arguments"], want) {
		t.Errorf("compare: arguments %q, want %q", told["arguments"], want)
	}
	if log := readCheck(t, bundle, "correct-float32-c-c.txt"); !strings.HasSuffix(log, "\n--- FAIL: C\n") {
		t.Errorf("log %q", log)
	}
	for _, name := range []string{"correct-float32.txt", "correct-float32-a-b-b.txt", "compare.txt"} {
		if first, _, _ := strings.Cut(readCheck(t, bundle, name), "\n"); !strings.Contains(first, " UTC; backend go:ops_sequential, version abc; ") {
			t.Errorf("%s begins with %q", name, first)
		}
	}
}

// readCheck is what the checks wrote into a file.
func readCheck(t *testing.T, bundle, name string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(filepath.Join(bundle, "results/check", name)))(t))
}

// What a GPU adds to the checks. Nothing that fails or takes too long keeps the rest from being done.
func TestCheckScriptOnGPU(t *testing.T) {
	bundle, script := checksBundle(t)
	tools := t.TempDir()
	tool := func(name, text string) { writeFile(t, filepath.Join(tools, name), "#!/bin/sh\n"+text, 0o755) }
	tool("nvidia-smi", `case $* in *memory*) printf '1, 17\n2, 2000\n3, 30\n' ;; *) echo 'H, 580.1' ;; esac`)
	tool("python3", `case $* in
  "-c"*) [ -n "${HAVE_PYTORCH-}" ] ;;
  *bfloat16*) echo half; exit 1 ;;
  *wrn28x10*) exit 124 ;;
  *) echo "table $*"
    for word in ${XLA_FLAGS-}; do
      case $word in --xla_dump_to=*)
        echo 'a = f32[] copy(b)' >"${word#*=}/small.after_optimizations.txt"
        printf 'a = f32[] transpose(b)\nc = f32[] custom-call(a), custom_call_target="__cudnn$convForward"\n' >"${word#*=}/large.after_optimizations.txt" ;;
      esac
    done ;;
esac
`)
	// The time that is given, but shorter.
	tool("timeout", `shift 4
exec /usr/bin/timeout --foreground -k 5 1 "$@"
`)
	writeFile(t, filepath.Join(bundle, "checks/c/c.test"), "#!/bin/sh\necho \"--- PASS: $*\"\n", 0o755)
	writeFile(t, filepath.Join(bundle, "bin/reproduce-xla"), `#!/bin/sh
[ "$1" != help ] || exit 0
echo "arguments=$*"
trap 'echo saved; exit 75' TERM
sleep 20 &
wait
`, 0o755)
	env := []string{"PATH=" + tools + ":/usr/bin:/bin", "GOMLX_BACKEND=xla:cuda", "HAVE_PYTORCH=yes"}
	status, stdout, stderr := shell(t, env, script, "--processes", "3", "--minutes=7", "speed", "correct", "compare")
	for _, want := range []string{
		"speed: not all: bfloat16 failed, wrn28x10 cut off, wrn28x10-pytorch cut off, ", "correct: done, ", "compare: stopped after 7 minutes, the same call goes on, ",
		"float32: table ", "tf32: table ", "processes-3: table ", "executions-of-32: table ", "memory of the card: 2000 MiB at most",
		"the compiled step: 1 transposes, 0 copies, 1 convolutions", "tf32 c/c passed: ",
	} {
		if status != 1 || !strings.Contains(stdout, want) {
			t.Errorf("status %d, want 1 and %q\n%s%s", status, want, stdout, stderr)
		}
	}
	log := readCheck(t, bundle, "compare.txt")
	for _, want := range []string{"arguments=run gpu --gpu ", "saved\n"} {
		if n := strings.Count(log, want); n != 3 {
			t.Errorf("compare has %q %d times, want 3: %q", want, n, log)
		}
	}
	for _, name := range []string{"hlo-density.txt", "memory-float32.txt", "correct-float32.txt", "correct-tf32-c-c.txt"} {
		tf32 := strings.Contains(name, "tf32")
		if first, _, _ := strings.Cut(readCheck(t, bundle, name), "\n"); !strings.Contains(first, fmt.Sprintf(" UTC; backend xla:cuda,tf32=%v, version abc; H, driver 580.1; ", tf32)) {
			t.Errorf("%s begins with %q", name, first)
		}
	}
	if log := readCheck(t, bundle, "correct-float32-c-c.txt"); !strings.Contains(log, "--- PASS: -test.v -test.short\n") {
		t.Errorf("arguments of a test on XLA: %q", log)
	}
	if log := readCheck(t, bundle, "speed-float32.txt"); !strings.Contains(log, "--device cuda ") {
		t.Errorf("arguments of a table: %q", log)
	}

	// On a processor a rehearsal goes through the same tables but TF32, with few steps and small batches.
	status, stdout, stderr = shell(t, []string{env[0], "GOMLX_BACKEND=xla:cpu", env[2]}, script, "--rehearse", "speed")
	for _, want := range []string{
		"speed: not all: bfloat16 failed, wrn28x10 cut off, wrn28x10-pytorch cut off, ", "float32: table ", "batch512: table ", "processes-4: table ", "compiled-pytorch: table ", "executions-of-32: table ",
		"the compiled step: 1 transposes, 0 copies, 1 convolutions",
	} {
		if status != 1 || !strings.Contains(stdout, want) || strings.Contains(stdout, "tf32: ") || strings.Contains(stdout, "--count 300") {
			t.Errorf("a rehearsal: status %d, want 1 and %q\n%s%s", status, want, stdout, stderr)
		}
	}
	if log := readCheck(t, bundle, "speed-float32.txt"); !strings.Contains(log, "--count 3 --device cpu ") {
		t.Errorf("arguments of a table in a rehearsal: %q", log)
	}

	status, stdout, stderr = shell(t, env[:2], script, "speed")
	if log := readCheck(t, bundle, "speed-float32.txt"); status != 1 || !strings.Contains(stdout, "without PyTorch: ") || !strings.Contains(log, "--without-pytorch ") {
		t.Errorf("without PyTorch: status %d\n%s%s", status, stdout, stderr)
	}
}

// The table of speeds has what could be measured, whatever else fails, and however the program is ended.
func TestStepTable(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the scripts of a bundle are for Linux")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3")
	}
	program := filepath.Join(t.TempDir(), "train.test")
	writeFile(t, program, `#!/bin/sh
case $* in
  *mixture*)
    echo '--- FAIL: BenchmarkImageStep/mixture'
    echo '    bench_test.go:9: out of memory'
    echo '    and more'
    exit 1 ;;
  *detached*) exec sleep 60 ;;
  *-processes=*) # as the benchmark does
    for word; do case $word in -barrier=*) folder=${word#*=} ;; esac; done
    : >"$folder/$$"
    while [ "$(ls "$folder" | wc -l)" -lt 2 ]; do sleep 0.01; done ;;
esac
echo 'BenchmarkImageStep/plain-2   3   7 ns/op   80.5 cpu-ms/step   640 images/s   200 ms/step'
`, 0o755)
	run := func(limit string, args ...string) (status int, text string) {
		t.Helper()
		cmd := exec.Command("timeout", append([]string{"--foreground", limit, python, "../../../dul/train/step_pytorch.py", "--program", program, "--without-pytorch", "--rounds=2"}, args...)...)
		cmd.Env = append(os.Environ(), "GOMLX_BACKEND=go:x")
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), string(out)
	}
	const plainRow = "plain        200.00    80.50      640 "
	for _, c := range []struct {
		name, limit string
		args        []string
		status      int
		want        []string
	}{
		{"all goes well", "60", []string{"--kinds=plain,density"}, 0, []string{" UTC; backend go:x; ", "round 2, density, Go: 200.00 ms, CPU 80.50 ms", plainRow}},
		{"one fails", "60", []string{"--kinds=mixture,plain"}, 1, []string{"round 1, mixture, Go: failed", "mixture      failed   failed ", plainRow, "mixture, Go, failed: bench_test.go:9: out of memory\n", "round 2, plain"}},
		{"stopped", "2", []string{"--kinds=plain,detached"}, 124, []string{plainRow, "detached          - ", "stopped by SIGTERM"}},
		{"two at a time", "60", []string{"--kinds=plain", "--processes=2"}, 0, []string{"plain        200.00    80.50     1280 ", "2 processes at the same time"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, text := run(c.limit, c.args...)
			for _, want := range c.want {
				if status != c.status || !strings.Contains(text, want) {
					t.Errorf("status %d, want %d and %q\n%s", status, c.status, want, text)
				}
			}
		})
	}
}

// noise cannot be compressed, so that there are several parts.
func noise(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return string(b)
}

func remove(t *testing.T, path string) {
	t.Helper()
	must.Do(t, os.Remove(path))
}

func writeFile(t *testing.T, path, contents string, mode os.FileMode) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.Do(t, os.WriteFile(path, []byte(contents), mode))
}

// shell runs a script with nothing but the given environment.
func shell(t *testing.T, env []string, script string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	cmd := exec.Command("/bin/sh", append([]string{script}, args...)...)
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{"PATH=/usr/bin:/bin"}, env...)
	var out, complaint strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &complaint
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), complaint.String()
}

func TestInstall(t *testing.T) {
	parts := makeBundle(t)
	names, err := filepath.Glob(filepath.Join(parts, "densityuncertainty-abc+dirty.tar.gz.part*"))
	if err != nil || len(names) < 3 {
		t.Fatalf("parts %q, %v", names, err)
	}
	for i, name := range names {
		info := must.Get(os.Stat(name))(t)
		if last := i == len(names)-1; info.Size() > 4000 || (!last && info.Size() < 4000) {
			t.Errorf("%s has %d bytes", name, info.Size())
		}
	}
	script, target := filepath.Join(parts, "install.sh"), filepath.Join(t.TempDir(), "new folder")
	bundle := filepath.Join(target, "densityuncertainty-abc+dirty")

	// One part has not arrived, another one is damaged.
	second := must.Get(os.ReadFile(names[1]))(t)
	third := must.Get(os.ReadFile(names[2]))(t)
	remove(t, names[1])
	damaged := slices.Clone(third)
	damaged[7] ^= 1
	writeFile(t, names[2], string(damaged), 0o644)
	status, stdout, stderr := shell(t, nil, script, target)
	if want := "missing: " + filepath.Base(names[1]) + "\ndamaged: " + filepath.Base(names[2]) + "\nerror: 2 files"; status != 1 || !strings.HasPrefix(stderr, want) {
		t.Errorf("status %d, want 1 and %q\n%s%s", status, want, stdout, stderr)
	}
	if _, err := os.Stat(bundle); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a damaged bundle was installed: %v", err)
	}
	writeFile(t, names[1], string(second), 0o644)
	writeFile(t, names[2], string(third), 0o644)

	// What a killed installation left is no obstacle.
	writeFile(t, filepath.Join(target, ".densityuncertainty-abc+dirty.part", "densityuncertainty-abc+dirty", "run.sh"), "", 0o644)
	if status, stdout, stderr := shell(t, nil, script, target); status != 0 || stderr != "" || !strings.Contains(stdout, "Ready.") {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	if err := tinySets()[0].read(t.Context(), &fetch.Fetcher{Mirror: filepath.Join(bundle, "data")}); err != nil {
		t.Errorf("the data: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(target, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	if status, stdout, stderr := shell(t, nil, script, target); status != 0 || !strings.Contains(stdout, "Installed already") {
		t.Errorf("again: status %d\n%s%s", status, stdout, stderr)
	}

	for _, c := range []struct {
		args []string
		want string
	}{{[]string{"-x"}, "unknown argument"}, {[]string{"a", "b"}, "takes one folder"}} {
		if status, _, stderr := shell(t, nil, script, c.args...); status != 2 || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: status %d, want 2 and %q\n%s", c.args, status, c.want, stderr)
		}
	}
	writeFile(t, filepath.Join(parts, "SHA256SUMS"), "x\n", 0o644)
	if status, _, stderr := shell(t, nil, script, target); status != 1 || !strings.Contains(stderr, "SHA256SUMS is damaged") {
		t.Errorf("damaged sums: status %d\n%s", status, stderr)
	}
}

// commandOutput is what the program of a bundle told of its call.
func commandOutput(stdout string) map[string]string {
	told := make(map[string]string)
	for line := range strings.Lines(stdout) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		told[name] = value
	}
	return told
}

func TestRunScript(t *testing.T) {
	parts := makeBundle(t)
	target := t.TempDir()
	if status, _, stderr := shell(t, nil, filepath.Join(parts, "install.sh"), target); status != 0 {
		t.Fatal(stderr)
	}
	bundle := filepath.Join(target, filepath.Base(parts))
	script, store := filepath.Join(bundle, "run.sh"), " --store "+filepath.Join(bundle, "results")

	// A machine with a GPU, and environments with and without plugins.
	machine := t.TempDir()
	at := func(name string) string { return filepath.Join(machine, name) }
	writeFile(t, at("bin/nvidia-smi"), "#!/bin/sh\n[ $# -eq 1 ] || echo 580.65.06\n", 0o755)
	const plugin = "lib/python3.12/site-packages/jax_plugins/xla_cuda13/xla_cuda_plugin.so"
	writeFile(t, at("venv/"+plugin), "", 0o644)
	writeFile(t, at("venv/lib/python3.12/site-packages/nvidia/cudnn/lib/libcudnn.so.9"), "", 0o644)
	writeFile(t, at("venv/lib/python3.12/site-packages/nvidia/cu13/lib/libcublas.so.13"), "", 0o644)
	writeFile(t, at("venv/lib/python3.12/site-packages/nvidia/cu13/nvvm/libdevice/libdevice.10.bc"), "", 0o644)
	compiler := "--xla_gpu_cuda_data_dir=" + at("venv/lib/python3.12/site-packages/nvidia/cu13")
	libraries := at("venv/lib/python3.12/site-packages/nvidia/cu13/lib") + ":" + at("venv/lib/python3.12/site-packages/nvidia/cudnn/lib")
	writeFile(t, at("conda/"+plugin), "", 0o644)
	writeFile(t, at("empty/lib/python3.12/site-packages/x"), "", 0o644)
	writeFile(t, at("python/python3"), "#!/bin/sh\necho '"+at("conda/lib/python3.12/site-packages")+"'\n", 0o755)
	writeFile(t, at("python/python"), "#!/bin/sh\nexit 1\n", 0o755)
	// Hides a Python with plugins that this machine may have.
	writeFile(t, at("none/python3"), "#!/bin/sh\nexit 1\n", 0o755)
	writeFile(t, at("none/python"), "#!/bin/sh\nexit 1\n", 0o755)
	gpu := "PATH=" + at("bin") + ":" + at("none") + ":/usr/bin:/bin"
	gpuAndPython := "PATH=" + at("bin") + ":" + at("python") + ":/usr/bin:/bin"
	noPlugins := "PJRT_PLUGIN_LIBRARY_PATH=" + at("nowhere")
	writeFile(t, at("cuda/pjrt_c_api_cuda_plugin.so"), "", 0o644)
	writeFile(t, at("cpu/pjrt_c_api_cpu_v0.83.1_plugin.so"), "", 0o644)
	onlyCPU, both := "PJRT_PLUGIN_LIBRARY_PATH="+at("cpu"), "PJRT_PLUGIN_LIBRARY_PATH="+at("cpu")+":"+at("cuda")
	tell := "with " + filepath.Join(bundle, "bin/reproduce-go") + " a b"

	for _, test := range []struct {
		name string
		env  []string
		args string
		told map[string]string
		says string
	}{
		{"list", nil, "list", map[string]string{"program": "reproduce-go", "arguments": "list" + store, "version": "abc+dirty", "data": filepath.Join(bundle, "data")}, ""},
		{"options of the program", nil, "table all --store=x", map[string]string{"arguments": "table all --store=x"}, ""},
		{"another store", []string{"GOMLX_BACKEND=go"}, "run a --store x", map[string]string{"program": "reproduce-xla", "arguments": "run a --store x", "backend": "go", "device": "unset"}, ""},
		{"no plugin", []string{gpu, noPlugins}, "run a", map[string]string{"program": "reproduce-xla", "arguments": "run a" + store, "backend": "unset"}, "no CUDA plugin was found"},
		{"virtual environment", []string{gpu, "VIRTUAL_ENV=" + at("venv")}, "run a", map[string]string{"backend": "xla:" + at("venv/"+plugin) + ",tf32=false", "libraries": libraries, "flags": compiler, "checks": "no"}, at("venv")},
		{"settings of the user", []string{gpu, "VIRTUAL_ENV=" + at("venv"), "LD_LIBRARY_PATH=/x", "XLA_FLAGS=--a"}, "run a", map[string]string{"libraries": libraries + ":/x", "flags": "--a " + compiler}, at("venv")},
		{"compiler of the user", []string{gpu, "VIRTUAL_ENV=" + at("venv"), "XLA_FLAGS=--xla_gpu_cuda_data_dir=/y"}, "run a", map[string]string{"flags": "--xla_gpu_cuda_data_dir=/y"}, at("venv")},
		{"conda", []string{gpu, "VIRTUAL_ENV=" + at("empty"), "CONDA_PREFIX=" + at("conda")}, "run a", map[string]string{"backend": "xla:" + at("conda/"+plugin) + ",tf32=false", "libraries": "unset", "flags": "unset", "checks": "unset"}, at("conda")},
		{"python", []string{gpuAndPython}, "run a", map[string]string{"backend": "xla:" + at("conda/"+plugin) + ",tf32=false"}, at("conda")},
		{"TF32", []string{gpu, "VIRTUAL_ENV=" + at("venv")}, "--tf32 run a", map[string]string{"backend": "xla:" + at("venv/"+plugin) + ",tf32=true"}, at("venv")},
		{"another program", []string{gpu, "VIRTUAL_ENV=" + at("venv")}, tell, map[string]string{"program": "reproduce-go", "arguments": "a b", "backend": "xla:" + at("venv/"+plugin) + ",tf32=false"}, at("venv")},
		{"another program, no plugin", []string{gpu, noPlugins}, tell, map[string]string{"backend": "go:parallelism=-1"}, "no CUDA plugin was found"},
		{"another program, asked for", []string{gpu, "GOMLX_BACKEND=go"}, tell, map[string]string{"backend": "go"}, ""},
		{"installed plugin", []string{gpu, both}, tell, map[string]string{"backend": "xla:cuda,tf32=false"}, at("cuda/pjrt_c_api_cuda_plugin.so")},
		{"installed plugin, run", []string{gpu, both}, "run a", map[string]string{"backend": "xla:cuda,tf32=false"}, at("cuda/pjrt_c_api_cuda_plugin.so")},
		{"installed plugin, TF32", []string{gpu, both}, "--tf32 run a", map[string]string{"backend": "xla:cuda,tf32=true"}, at("cuda/pjrt_c_api_cuda_plugin.so")},
		{"JAX before what is installed", []string{gpu, both, "VIRTUAL_ENV=" + at("venv")}, "run a", map[string]string{"backend": "xla:" + at("venv/"+plugin) + ",tf32=false"}, at("venv")},
		{"installed for processors alone", []string{gpu, onlyCPU}, "run a", map[string]string{"backend": "xla:cpu"}, "no CUDA plugin was found"},
		{"asked for", []string{gpu, "VIRTUAL_ENV=" + at("venv"), "GOMLX_BACKEND=xla:cuda"}, "run a", map[string]string{"backend": "xla:cuda", "libraries": "unset"}, ""},
		{"nothing to download", []string{gpu, "GOMLX_BACKEND=xla:cuda"}, "--download run a", map[string]string{"backend": "xla:cuda"}, "nothing is downloaded"},
		{"device", []string{gpu, "VIRTUAL_ENV=" + at("venv")}, "--device 3 run a", map[string]string{"device": "3"}, at("venv")},
		{"device, with =", []string{gpu, "VIRTUAL_ENV=" + at("venv")}, "--device=0 run a", map[string]string{"device": "0"}, at("venv")},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, stdout, stderr := shell(t, test.env, script, strings.Fields(test.args)...)
			told := commandOutput(stdout)
			for what, want := range test.told {
				if told[what] != want {
					t.Errorf("%s %q, want %q\n%s", what, told[what], want, stderr)
				}
			}
			if status != 0 || !strings.Contains(stderr, test.says) || (test.says == "") != (stderr == "") {
				t.Errorf("status %d, want 0 and %q\n%s", status, test.says, stderr)
			}
		})
	}

	if _, err := os.Stat("/dev/nvidiactl"); err != nil { // a machine without a GPU
		for _, test := range []struct{ name, plugins, args, backend string }{
			{"plugins", both, "run a", "xla:cpu"}, {"plugins, another program", both, tell, "xla:cpu"},
			{"nothing", noPlugins, "run a", "unset"}, {"nothing, another program", noPlugins, tell, "go:parallelism=-1"},
		} {
			t.Run("no GPU, "+test.name, func(t *testing.T) {
				status, stdout, stderr := shell(t, []string{"PATH=" + at("none") + ":/usr/bin:/bin", test.plugins}, script, strings.Fields(test.args)...)
				if told := commandOutput(stdout); status != 0 || told["backend"] != test.backend || (stderr == "") != (test.plugins == both) {
					t.Errorf("status %d, backend %q, want %q\n%s", status, told["backend"], test.backend, stderr)
				}
			})
		}
	}

	for _, c := range []struct{ args, want string }{
		{"", "no command"}, {"--devise 1 list", "unknown argument \"--devise\""}, {"--device", "needs a number"},
		{"--device a list", "\"a\" is not a number"}, {"--tf32 run a", "--tf32 is for a GPU, and GOMLX_BACKEND=go:ops_sequential is none"}, {"--device= list", "\"\" is not a number"}, {"with", "with needs a program"},
	} {
		t.Run("arguments "+c.args, func(t *testing.T) {
			if status, stdout, stderr := shell(t, []string{"GOMLX_BACKEND=go:ops_sequential"}, script, strings.Fields(c.args)...); status != 2 || stdout != "" || !strings.Contains(stderr, c.want) {
				t.Errorf("status %d, want 2 and %q\n%s%s", status, c.want, stdout, stderr)
			}
		})
	}
	if status, stdout, _ := shell(t, nil, script, "--help"); status != 0 || !strings.Contains(stdout, "Usage:") {
		t.Errorf("help: status %d\n%s", status, stdout)
	}

	// TF32 is what --tf32 says, whatever GOMLX_BACKEND does.
	for asked, want := range map[string]string{"xla:cuda": "xla:cuda,tf32=true", "xla:cuda,tf32=false": "xla:cuda,tf32=true", "xla:/a/xla_cuda_plugin.so,tf32=true": "xla:/a/xla_cuda_plugin.so,tf32=true"} {
		status, stdout, stderr := shell(t, []string{"GOMLX_BACKEND=" + asked}, script, "--tf32", "run", "a")
		if told := commandOutput(stdout); status != 0 || told["backend"] != want {
			t.Errorf("--tf32 with %s: status %d, backend %q, want %q\n%s", asked, status, told["backend"], want, stderr)
		}
	}
	// What is chosen is chosen from the results here.
	if status, stdout, stderr := shell(t, nil, script, "choose", "images"); status != 0 || !strings.HasSuffix(commandOutput(stdout)["arguments"], "choose images --store "+filepath.Join(bundle, "results")) {
		t.Errorf("choose: status %d\n%s%s", status, stdout, stderr)
	}

	// A plugin is downloaded once, and found from then on.
	own := filepath.Join(bundle, "plugin")
	for i, first := range []bool{true, false} {
		status, stdout, stderr := shell(t, []string{gpu, noPlugins}, script, "--download", "run", "a")
		if status != 0 || strings.Contains(stderr, "installing cuda13") != first || !strings.Contains(stderr, "CUDA plugin "+own) {
			t.Errorf("download %d: status %d\n%s", i, status, stderr)
		}
		if told := commandOutput(stdout); told["backend"] != "xla:cuda,tf32=false" || !strings.HasPrefix(told["plugins"], own+":") {
			t.Errorf("download: %v", told)
		}
	}

	// A C library that is too old.
	writeFile(t, filepath.Join(bundle, "bin/reproduce-xla"), brokenProgram, 0o755)
	for _, test := range []struct {
		name   string
		env    []string
		status int
		says   string
	}{
		{"plugin installed", []string{gpu, both}, 0, "needs glibc 2.34 or newer"},
		{"plugin found", []string{gpu, "VIRTUAL_ENV=" + at("venv")}, 0, "needs glibc 2.34 or newer"},
		{"Go asked for", []string{gpu, "GOMLX_BACKEND=go:ops_sequential"}, 0, "computing on the processor"},
		{"XLA asked for", []string{gpu, "GOMLX_BACKEND=xla:cuda"}, 1, "GLIBC_2.99 not found), and GOMLX_BACKEND=xla:cuda asks for XLA"},
	} {
		t.Run("old library, "+test.name, func(t *testing.T) {
			status, stdout, stderr := shell(t, test.env, script, "run", "a")
			if status != test.status || !strings.Contains(stderr, test.says) {
				t.Errorf("status %d, want %d and %q\n%s", status, test.status, test.says, stderr)
			}
			told := commandOutput(stdout)
			if status == 0 && (told["program"] != "reproduce-go" || strings.HasPrefix(told["backend"], "xla")) {
				t.Errorf("%v", told)
			}
		})
	}
}
