package environment

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/gomlx/compute/gobackend"

	"densityuncertainty/environment/must"
)

func TestVersionFrom(t *testing.T) {
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123"}
	own := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: "densityuncertainty", Version: version}, Settings: settings}
	}
	replaced := func(by debug.Module) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: "mine"}, Deps: []*debug.Module{{Path: "densityuncertainty", Version: "v0.0.0", Replace: &by}}}
	}
	// A folder is known by its revision, or by what its files are.
	if got := versionFrom(replaced(debug.Module{Path: "../fork", Version: "(devel)"})); !regexp.MustCompile(`^([0-9a-f]{12}|files-[0-9a-f]{12})$`).MatchString(got) {
		t.Errorf("the version of a folder is %q", got)
	}
	for _, test := range []struct {
		name, variable, want string
		build                *debug.BuildInfo
	}{
		{"checkout", "v9", "0123456789ab", own("(devel)", revision)},
		{"changed checkout", "", "0123456789ab+dirty", own("", revision, debug.BuildSetting{Key: "vcs.modified", Value: "true"})},
		{"released", "v9", "v1.2.3", own("v1.2.3")},
		{"not stamped", " v9 ", "v9", own("(devel)")},
		{"dependency", "", "v1.2.3", &debug.BuildInfo{Deps: []*debug.Module{{Path: "other", Version: "v7"}, {Path: "densityuncertainty", Version: "v1.2.3"}}}},
		{"notebook", "v9", "v9", &debug.BuildInfo{Main: debug.Module{Path: "gonb_1"}, Settings: []debug.BuildSetting{revision}, Deps: []*debug.Module{{Path: "densityuncertainty", Version: "(devel)"}}}},
		{"replaced by a fork", "", "example.com/fork@v0.1.0", replaced(debug.Module{Path: "example.com/fork", Version: "v0.1.0"})},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv(versionVariable, test.variable)
			if got := versionFrom(test.build); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// Programs that "go run" compiles, tests and the cells of notebooks have no revision of their own.
func TestVersionOfTheCheckout(t *testing.T) {
	t.Setenv(versionVariable, "")
	want := "devel"
	if revision, err := exec.Command("git", "rev-parse", "HEAD").Output(); err == nil {
		want = string(revision[:12])
	}
	for _, version := range []string{Version(), versionFrom(&debug.BuildInfo{Main: debug.Module{Path: "gonb_1"}})} {
		if got := strings.TrimSuffix(version, "+dirty"); got != want { // files may have been changed
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestField(t *testing.T) {
	const cpuinfo = "processor\t: 0\nmodel\t\t: 7\nmodel name\t: Some  CPU @ 2.20GHz: x\nmodel name\t: Second\n"
	for name, want := range map[string]string{"model name": "Some CPU @ 2.20GHz: x", "model": "7", "flags": ""} {
		if got := field(strings.NewReader(cpuinfo), name); got != want {
			t.Errorf("field %q = %q, want %q", name, got, want)
		}
	}
}

func TestProcessorCountsCores(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if got := processor(); !strings.HasSuffix(got, ", 1 core") {
		t.Errorf("one core: %q", got)
	}
	runtime.GOMAXPROCS(3)
	if got := processor(); !strings.HasSuffix(got, ", 3 cores") {
		t.Errorf("three cores: %q", got)
	}
}

func TestNvidiaModels(t *testing.T) {
	root := t.TempDir()
	if got := nvidiaModels(root); got != nil {
		t.Errorf("no driver: %q", got)
	}
	gpu := filepath.Join(root, "0000:01:00.0")
	must.Do(t, os.MkdirAll(gpu, 0o755))
	must.Do(t, os.WriteFile(filepath.Join(gpu, "information"), []byte("Model: \t\t NVIDIA H200\nIRQ: 12\n"), 0o644))
	if got := nvidiaModels(root); len(got) != 1 || got[0] != "NVIDIA H200" {
		t.Errorf("got %q", got)
	}
}

// The device of the pure Go backend says whether vector instructions were built in.
func TestDeviceSaysVectors(t *testing.T) {
	want := "no simd"
	if strings.Contains(os.Getenv("GOEXPERIMENT"), "simd") { // as this test was built, too
		want = "simd"
	}
	backend, err := gobackend.New("")
	must.Do(t, err)
	defer backend.Finalize()
	if device := Describe(backend).Device; !strings.HasSuffix(device, ", "+want) {
		t.Errorf("the device is %q, want %q at its end", device, want)
	}
}
