package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"densityuncertainty/datasets/fetch"
)

// tinySets are data sets of a few records, one of which is not images. Reading
// them says whether the files are the given ones.
func tinySets(files map[string][]byte) []dataSet {
	check := func(names ...string) func(context.Context, *fetch.Fetcher) error {
		return func(_ context.Context, f *fetch.Fetcher) error {
			for _, name := range names {
				path, found, err := f.Local(name)
				if err != nil || !found {
					return fmt.Errorf("%s: found %v, error %w", name, found, err)
				}
				if contents, err := os.ReadFile(path); err != nil || !bytes.Equal(contents, files[name]) {
					return fmt.Errorf("%s differs", name)
				}
			}
			return nil
		}
	}
	return []dataSet{
		{name: "one", files: records(1, "one-bin/", "a.bin", "b.bin"), archive: fetch.File{Name: "one.tar.gz"}, check: check("one-bin/a.bin", "one-bin/b.bin")},
		{name: "other", files: []dataFile{{name: "svhn/c.mat"}}, check: check("svhn/c.mat")},
	}
}

func tinyFiles() map[string][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	bytes := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	const record = 1 + 3*32*32
	return map[string][]byte{"one-bin/a.bin": bytes(2 * record), "one-bin/b.bin": bytes(record), "svhn/c.mat": bytes(1000)}
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

// makeBundle makes a bundle and returns the folder of its parts.
func makeBundle(t *testing.T, files map[string][]byte, sets []dataSet) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the scripts of a bundle are for Linux")
	}
	base, data, out := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "it's here")
	myself, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{
		xlaProgram: tellingProgram, "bin/reproduce-go": tellingProgram, "bin/xlaplugin": installingProgram,
		"bin/bundle": fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", childMark, myself),
	} {
		writeFile(t, filepath.Join(base, name), script, 0o755)
	}
	for name, contents := range files {
		writeFile(t, filepath.Join(data, name), string(contents), 0o644)
	}
	m := maker{
		version: "abc+dirty", date: time.Unix(1.7e9, 0), glibc: "2.34", base: base, sets: sets,
		fetcher: &fetch.Fetcher{Mirror: data, Cache: t.TempDir()}, out: out, partSize: 4000, stdout: io.Discard,
	}
	if err := m.make(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(out, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	for _, again := range []func(context.Context) error{m.find, m.make} {
		if err := again(t.Context()); err == nil || !strings.Contains(err.Error(), "is there already") {
			t.Errorf("making it twice: error %v", err)
		}
	}
	return filepath.Join(out, m.name())
}

func writeFile(t *testing.T, path, contents string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(contents), mode); err != nil {
		t.Fatal(err)
	}
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
	files := tinyFiles()
	parts := makeBundle(t, files, tinySets(files))
	names, err := filepath.Glob(filepath.Join(parts, "densityuncertainty-abc+dirty.tar.gz.part*"))
	if err != nil || len(names) < 3 {
		t.Fatalf("parts %q, %v", names, err)
	}
	for i, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if last := i == len(names)-1; info.Size() > 4000 || (!last && info.Size() < 4000) {
			t.Errorf("%s has %d bytes", name, info.Size())
		}
	}
	script, target := filepath.Join(parts, "install.sh"), filepath.Join(t.TempDir(), "new folder")
	bundle := filepath.Join(target, "densityuncertainty-abc+dirty")

	// One part has not arrived, another one is damaged.
	second, err := os.ReadFile(names[1])
	if err != nil {
		t.Fatal(err)
	}
	third, err := os.ReadFile(names[2])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(names[1]); err != nil {
		t.Fatal(err)
	}
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
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(bundle, "data", name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s was not restored: %v", name, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(target, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	if status, stdout, stderr := shell(t, nil, script, target); status != 0 || !strings.Contains(stdout, "Installed already") {
		t.Errorf("again: status %d\n%s%s", status, stdout, stderr)
	}

	for want, args := range map[string][]string{"unknown argument": {"-x"}, "takes one folder": {"a", "b"}} {
		if status, _, stderr := shell(t, nil, script, args...); status != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%q: status %d, want 2 and %q\n%s", args, status, want, stderr)
		}
	}
	writeFile(t, filepath.Join(parts, "SHA256SUMS"), "x\n", 0o644)
	if status, _, stderr := shell(t, nil, script, target); status != 1 || !strings.Contains(stderr, "SHA256SUMS is damaged") {
		t.Errorf("damaged sums: status %d\n%s", status, stderr)
	}
}

func TestUnpackRepairs(t *testing.T) {
	files := tinyFiles()
	parts := makeBundle(t, files, tinySets(files))
	target := t.TempDir()
	if status, _, stderr := shell(t, nil, filepath.Join(parts, "install.sh"), target); status != 0 {
		t.Fatal(stderr)
	}
	bundle := filepath.Join(target, filepath.Base(parts))
	data := func(name string) string { return filepath.Join(bundle, "data", name) }
	before, err := os.Stat(data("one-bin/a.bin"))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, data("one-bin/b.bin"), "cut off", 0o644)
	if err := unpack(t.Context(), bundle, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(data("one-bin/b.bin")); err != nil || !bytes.Equal(got, files["one-bin/b.bin"]) {
		t.Errorf("the file was not restored: %v", err)
	}
	if after, err := os.Stat(data("one-bin/a.bin")); err != nil || !os.SameFile(before, after) {
		t.Errorf("a file that was right has been replaced: %v", err)
	}

	for _, name := range []string{"one-bin/b.bin", "svhn/c.mat"} {
		packed, err := os.ReadFile(filepath.Join(bundle, "packed", name))
		if err != nil {
			t.Fatal(err)
		}
		packed[len(packed)/2] ^= 1
		writeFile(t, filepath.Join(bundle, "packed", name), string(packed), 0o644)
		if err := os.Remove(data(name)); err != nil {
			t.Fatal(err)
		}
		if err := unpack(t.Context(), bundle, io.Discard); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("damaged %s: error %v", name, err)
		}
		writeFile(t, data(name), string(files[name]), 0o644)
	}
	writeFile(t, filepath.Join(bundle, "packed", "manifest.json"), `[{"name": "../a"}]`, 0o644)
	if err := unpack(t.Context(), bundle, io.Discard); err == nil || !strings.Contains(err.Error(), "leads out") {
		t.Errorf("a name that leads out of the folder: error %v", err)
	}
}

func TestMakeRefusesWrongData(t *testing.T) {
	files := tinyFiles()
	sets := tinySets(files)
	other := maps.Clone(files)
	other["svhn/c.mat"] = []byte("something else")
	data, out, base := t.TempDir(), t.TempDir(), t.TempDir()
	for name, contents := range other {
		writeFile(t, filepath.Join(data, name), string(contents), 0o644)
	}
	m := maker{version: "v1", base: base, sets: sets, fetcher: &fetch.Fetcher{Mirror: data, Cache: t.TempDir()}, out: out, partSize: 4000, stdout: io.Discard}
	if err := m.make(t.Context()); err == nil || !strings.Contains(err.Error(), "other is not as published") {
		t.Errorf("wrong data: error %v", err)
	}
	writeFile(t, filepath.Join(data, "one-bin/b.bin"), "no records", 0o644)
	if err := m.make(t.Context()); err == nil || !strings.Contains(err.Error(), "b.bin") {
		t.Errorf("no records: error %v", err)
	}
	if err := os.Remove(filepath.Join(data, "svhn/c.mat")); err != nil {
		t.Fatal(err)
	}
	if err := m.find(t.Context()); err == nil || !strings.Contains(err.Error(), fetch.EnvData) {
		t.Errorf("missing data: error %v", err)
	}
	m.sets, m.partSize = nil, 1
	if err := m.make(t.Context()); err == nil || !strings.Contains(err.Error(), "choose a larger --part-size") {
		t.Errorf("too many parts: error %v", err)
	}
	if left, err := os.ReadDir(out); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// The files may also come from the official archive.
func TestDataFromArchive(t *testing.T) {
	files := tinyFiles()
	set := tinySets(files)[0]
	f := &fetch.Fetcher{Mirror: t.TempDir(), Cache: t.TempDir()}
	collect := func() (map[string][]byte, error) {
		found := make(map[string][]byte)
		err := set.each(t.Context(), f, func(file dataFile, contents []byte) error {
			found[file.name] = contents
			return nil
		})
		return found, err
	}
	archive := func(names ...string) {
		var b bytes.Buffer
		zipped := gzip.NewWriter(&b)
		w := tar.NewWriter(zipped)
		for _, name := range names {
			err := w.WriteHeader(&tar.Header{Name: "./" + name, Size: int64(len(files[name])), Mode: 0o644})
			if err == nil {
				_, err = w.Write(files[name])
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.Close(), zipped.Close()); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(f.Mirror, set.archive.Name), b.String(), 0o644)
	}
	archive("svhn/c.mat", "one-bin/b.bin", "one-bin/a.bin")
	found, err := collect()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range set.files {
		if !bytes.Equal(found[file.name], files[file.name]) {
			t.Errorf("%s differs", file.name)
		}
	}
	archive("one-bin/b.bin")
	if _, err := collect(); err == nil || !strings.Contains(err.Error(), "lacks one-bin/a.bin") {
		t.Errorf("a file is missing: error %v", err)
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
	parts := makeBundle(t, nil, nil)
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

	for name, test := range map[string]struct {
		env  []string
		args string
		told map[string]string
		says string
	}{
		"list":                   {nil, "list", map[string]string{"program": "reproduce-go", "arguments": "list" + store, "version": "abc+dirty", "data": filepath.Join(bundle, "data")}, ""},
		"options of the program": {nil, "table all --store=x", map[string]string{"arguments": "table all --store=x"}, ""},
		"another store":          {[]string{"GOMLX_BACKEND=go"}, "run a --store x", map[string]string{"program": "reproduce-xla", "arguments": "run a --store x", "backend": "go", "device": "unset"}, ""},
		"no plugin":              {[]string{gpu, noPlugins}, "run a", map[string]string{"program": "reproduce-xla", "arguments": "run a" + store, "backend": "unset"}, "no CUDA plugin was found"},
		"virtual environment":    {[]string{gpu, "VIRTUAL_ENV=" + at("venv")}, "run a", map[string]string{"backend": "xla:" + at("venv/"+plugin) + ",tf32=false", "libraries": libraries, "flags": compiler, "checks": "no"}, at("venv")},
		"settings of the user":   {[]string{gpu, "VIRTUAL_ENV=" + at("venv"), "LD_LIBRARY_PATH=/x", "XLA_FLAGS=--a"}, "run a", map[string]string{"libraries": libraries + ":/x", "flags": "--a " + compiler}, at("venv")},
		"compiler of the user":   {[]string{gpu, "VIRTUAL_ENV=" + at("venv"), "XLA_FLAGS=--xla_gpu_cuda_data_dir=/y"}, "run a", map[string]string{"flags": "--xla_gpu_cuda_data_dir=/y"}, at("venv")},
		"conda":                  {[]string{gpu, "VIRTUAL_ENV=" + at("empty"), "CONDA_PREFIX=" + at("conda")}, "run a", map[string]string{"backend": "xla:" + at("conda/"+plugin) + ",tf32=false", "libraries": "unset", "flags": "unset", "checks": "unset"}, at("conda")},
		"python":                 {[]string{gpuAndPython}, "run a", map[string]string{"backend": "xla:" + at("conda/"+plugin) + ",tf32=false"}, at("conda")},
		"asked for":              {[]string{gpu, "VIRTUAL_ENV=" + at("venv"), "GOMLX_BACKEND=xla:cuda"}, "run a", map[string]string{"backend": "xla:cuda", "libraries": "unset"}, ""},
		"nothing to download":    {[]string{gpu, "GOMLX_BACKEND=xla:cuda"}, "--download run a", map[string]string{"backend": "xla:cuda"}, "nothing is downloaded"},
		"device":                 {[]string{gpu, "VIRTUAL_ENV=" + at("venv")}, "--device 3 run a", map[string]string{"device": "3"}, at("venv")},
		"device, with =":         {[]string{gpu, "VIRTUAL_ENV=" + at("venv")}, "--device=0 run a", map[string]string{"device": "0"}, at("venv")},
	} {
		status, stdout, stderr := shell(t, test.env, script, strings.Fields(test.args)...)
		told := commandOutput(stdout)
		for what, want := range test.told {
			if told[what] != want {
				t.Errorf("%s: %s %q, want %q\n%s", name, what, told[what], want, stderr)
			}
		}
		if status != 0 || !strings.Contains(stderr, test.says) || (test.says == "") != (stderr == "") {
			t.Errorf("%s: status %d, want 0 and %q\n%s", name, status, test.says, stderr)
		}
	}

	for args, want := range map[string]string{"": "no command", "--devise 1 list": "unknown argument \"--devise\"", "--device": "needs a number", "--device a list": "\"a\" is not a number", "--device= list": "\"\" is not a number"} {
		if status, stdout, stderr := shell(t, nil, script, strings.Fields(args)...); status != 2 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%q: status %d, want 2 and %q\n%s%s", args, status, want, stdout, stderr)
		}
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
	writeFile(t, filepath.Join(bundle, xlaProgram), brokenProgram, 0o755)
	for name, test := range map[string]struct {
		env    []string
		status int
		says   string
	}{
		"plugin found":  {[]string{gpu, "VIRTUAL_ENV=" + at("venv")}, 0, "needs glibc 2.34 or newer"},
		"Go asked for":  {[]string{gpu, "GOMLX_BACKEND=go:ops_sequential"}, 0, "computing on the processor"},
		"XLA asked for": {[]string{gpu, "GOMLX_BACKEND=xla:cuda"}, 1, "GLIBC_2.99 not found), and GOMLX_BACKEND=xla:cuda asks for XLA"},
	} {
		status, stdout, stderr := shell(t, test.env, script, "run", "a")
		if status != test.status || !strings.Contains(stderr, test.says) {
			t.Errorf("old library, %s: status %d, want %d and %q\n%s", name, status, test.status, test.says, stderr)
		}
		told := commandOutput(stdout)
		if status == 0 && (told["program"] != "reproduce-go" || strings.HasPrefix(told["backend"], "xla")) {
			t.Errorf("old library, %s: %v", name, told)
		}
	}
}

func TestNeededGlibc(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("for programs of Linux")
	}
	// The shell of most systems is linked to the C library.
	version, err := neededGlibc("/bin/sh")
	if err != nil || !strings.HasPrefix(version, "2.") {
		t.Errorf("/bin/sh: %q, %v", version, err)
	}
	if _, err := neededGlibc("main.go"); err == nil {
		t.Error("no error for a file that is no program")
	}
}
