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
	for _, args := range [][]string{{"a", "b"}, {"--no-such-flag"}, {"--data", "", "a"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			if err := run(t.Context(), tinySets(), nil, args, io.Discard); !errors.Is(err, errUsage) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The whole archive is taken where it is, rather than the folder.
// What is downloaded is known by its size and sum: anything else would stay in the cache as if it were right.
func TestDownloadsAreChecked(t *testing.T) {
	for _, set := range catalogue {
		if f := set.official; f.URL != "" && (f.Size == 0 || f.SHA256 == "") {
			t.Errorf("%s: %+v", set.name, f)
		}
	}
}

func TestFindPrefersTheArchive(t *testing.T) {
	f := &fetch.Fetcher{Mirror: tinyData(t)}
	writeFile(t, filepath.Join(f.Mirror, "one.tar.gz"), "x", 0o644)
	files, err := tinySets()[0].find(t.Context(), f)
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
mkdir -p "$2" && : >"$2/pjrt_c_api_cpu_v1_plugin.so"
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

// The script of the checks runs each test program in its folder, counts, and fails
// if one of them does.
func TestCheckScript(t *testing.T) {
	bundle := t.TempDir()
	for _, name := range []string{"run.sh", "check.sh"} {
		script := must.Get(os.ReadFile(filepath.Join("target", name)))(t)
		writeFile(t, filepath.Join(bundle, name), string(script), 0o755)
	}
	writeFile(t, filepath.Join(bundle, "version"), "abc\n", 0o644)
	writeFile(t, filepath.Join(bundle, "bin/reproduce-xla"), tellingProgram, 0o755)
	script := filepath.Join(bundle, "check.sh")
	env := []string{"GOMLX_BACKEND=go:ops_sequential"}
	for _, c := range []struct{ args, want string }{
		{"", "no step"}, {"--small", "no step"}, {"corect", "unknown step"}, {"--processes 0 compare", "\"0\" is not a number of at least 1"},
		{"--processes", "needs a number"}, {"-x correct", "unknown argument"},
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

	const passing = "#!/bin/sh\n[ -d testdata ] || exit 3\necho \"--- PASS: A ($*)\"\necho '    --- SKIP: A/b'\n"
	writeFile(t, filepath.Join(bundle, "checks/a/b/b.test"), passing, 0o755)
	must.Do(t, os.MkdirAll(filepath.Join(bundle, "checks/a/b/testdata"), 0o755))
	if status, stdout, stderr := shell(t, env, script, "--small", "correct"); status != 0 || !strings.Contains(stdout, "float32 a/b/b passed: 1 tests passed, 0 failed, 1 left out") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
	writeFile(t, filepath.Join(bundle, "checks/c/c.test"), "#!/bin/sh\necho '--- FAIL: C'\nexit 1\n", 0o755)
	status, stdout, _ := shell(t, env, script, "correct")
	if status != 1 || !strings.Contains(stdout, "float32 a/b/b passed") || !strings.Contains(stdout, "float32 c/c FAILED: 0 tests passed, 1 failed") {
		t.Errorf("status %d, want 1\n%s", status, stdout)
	}
	if log := must.Get(os.ReadFile(filepath.Join(bundle, "results/check/correct-float32-c-c.txt")))(t); string(log) != "--- FAIL: C\n" {
		t.Errorf("log %q", log)
	}

	status, stdout, stderr := shell(t, env, script, "--small", "compare")
	told := commandOutput(stdout)
	if want := "run processor --methods deterministic,rank1,density-constant,density --set decay=all --keep --epochs 1"; status != 0 || !strings.HasPrefix(told["arguments"], want) {
		t.Errorf("compare: status %d, arguments %q, want %q\n%s", status, told["arguments"], want, stderr)
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
		{"another program", []string{gpu, "VIRTUAL_ENV=" + at("venv")}, "with " + filepath.Join(bundle, "bin/reproduce-go") + " a b", map[string]string{"program": "reproduce-go", "arguments": "a b", "backend": "xla:" + at("venv/"+plugin) + ",tf32=false"}, at("venv")},
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

	for _, c := range []struct{ args, want string }{
		{"", "no command"}, {"--devise 1 list", "unknown argument \"--devise\""}, {"--device", "needs a number"},
		{"--device a list", "\"a\" is not a number"}, {"--device= list", "\"\" is not a number"}, {"with", "with needs a program"},
	} {
		t.Run("arguments "+c.args, func(t *testing.T) {
			if status, stdout, stderr := shell(t, nil, script, strings.Fields(c.args)...); status != 2 || stdout != "" || !strings.Contains(stderr, c.want) {
				t.Errorf("status %d, want 2 and %q\n%s%s", status, c.want, stdout, stderr)
			}
		})
	}
	if status, stdout, _ := shell(t, nil, script, "--help"); status != 0 || !strings.Contains(stdout, "Usage:") {
		t.Errorf("help: status %d\n%s", status, stdout)
	}

	// A plugin is downloaded once, and found from then on.
	own := filepath.Join(bundle, "plugin")
	for _, want := range []string{"installing cuda13", ""} {
		status, stdout, stderr := shell(t, []string{gpu, noPlugins}, script, "--download", "run", "a")
		if status != 0 || !strings.Contains(stderr, want) || (want == "" && stderr != "") {
			t.Errorf("download: status %d, want 0 and %q\n%s", status, want, stderr)
		}
		if told := commandOutput(stdout); told["backend"] != "unset" || !strings.HasPrefix(told["plugins"], own+":") {
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
