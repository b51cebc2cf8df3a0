package environment

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"
)

// versionVariable is the environment variable that gives the version of the code if the program cannot know it, as in a
// container without git.
const versionVariable = "DENSITYUNCERTAINTY_VERSION"

// Info describes the backend and the code that computed a result. All fields are set.
type Info struct {
	Backend string `json:"backend"` // configuration that reopens the backend, such as "go:ops_sequential" or "xla:cuda"
	Device  string `json:"device"`  // processor model, number of cores and "simd" or "no simd" for the pure Go backend, or GPU model
	Version string `json:"version"` // see Version
}

// Describe returns the Info of a backend that [Open] or OpenFor returned.
func Describe(backend compute.Backend) Info {
	info := Info{Version: Version()}
	if config, device, ok := describeXLA(backend); ok {
		info.Backend, info.Device = config, device
		return info
	}
	info.Backend, info.Device = cmp.Or(requested(), goMode(backend)), processor()+", "+vectors()
	return info
}

// vectors says whether vector instructions were built in, with which results differ in their last digits.
func vectors() string {
	if vectorised() {
		return "simd"
	}
	return "no simd"
}

// PureGo reports whether the backend is the pure Go backend.
func (i Info) PureGo() bool {
	name, _, _ := strings.Cut(i.Backend, ":")
	return name == gobackend.BackendName
}

// goMode returns which of the two OpenFor chose: goParallel if the number of workers is unlimited, else GoSequential.
func goMode(backend compute.Backend) string {
	if workers, is := goWorkers(backend).(interface{ IsUnlimited() bool }); is && workers.IsUnlimited() {
		return goParallel
	}
	return GoSequential
}

// goWorkers are the workers of a Go backend, nil of others. The backend's type cannot be named here, but they are an
// exported field.
func goWorkers(backend compute.Backend) any {
	b := reflect.Indirect(reflect.ValueOf(backend))
	if b.Kind() != reflect.Struct || !b.FieldByName("Workers").IsValid() {
		return nil
	}
	return b.FieldByName("Workers").Interface()
}

// Version returns the version of this code, from the first source that has it:
//
//   - the revision from which the program was built, with "+dirty" if files had been changed;
//   - the version of the module;
//   - the variable DENSITYUNCERTAINTY_VERSION;
//   - the revision of the checkout that has the source, for "go run", tests and notebook cells.
//
// Otherwise it is "devel". For a folder that replaces the module (replace in go.mod) it is the folder's revision, or
// "files-" and a digest of the Go files.
func Version() string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		build = new(debug.BuildInfo)
	}
	return versionFrom(build)
}

// versionFrom is Version for a given build.
func versionFrom(build *debug.BuildInfo) string {
	module := build.Main
	if module.Path == modulePath {
		if revision := setting(build, "vcs.revision"); revision != "" {
			revision = revision[:min(12, len(revision))]
			if setting(build, "vcs.modified") == "true" {
				revision += "+dirty"
			}
			return revision
		}
	} else if i := slices.IndexFunc(build.Deps, func(m *debug.Module) bool { return m.Path == modulePath }); i >= 0 {
		module = *build.Deps[i]
	}
	released := ""
	switch of := module.Replace; {
	case of != nil && of.Version != "" && of.Version != "(devel)":
		released = of.Path + "@" + of.Version
	case of != nil && (sourceRevision() == "" || strings.HasSuffix(sourceRevision(), "+dirty")):
		released = sourceDigest()
	case of == nil && module.Path == modulePath && module.Version != "(devel)":
		released = module.Version
	}
	return cmp.Or(released, strings.TrimSpace(os.Getenv(versionVariable)), sourceRevision(), "devel")
}

const modulePath = "densityuncertainty"

// sourceDigest is "files-" and a digest of the module's Go files, without those of tests; "" where they are not there.
var sourceDigest = sync.OnceValue(func() string {
	_, file, _, _ := runtime.Caller(0)
	root, h := os.DirFS(filepath.Dir(filepath.Dir(file))), sha256.New()
	err := fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
		case entry.IsDir() && (path != "." && strings.HasPrefix(entry.Name(), ".") || path == "figures/runs"):
			return fs.SkipDir
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") || path == "go.mod":
			var content []byte
			content, err = fs.ReadFile(root, path)
			fmt.Fprintf(h, "%q %d %s", path, len(content), content)
		}
		return err
	})
	if err != nil || !filepath.IsAbs(file) { // built with -trimpath
		return ""
	}
	return "files-" + hex.EncodeToString(h.Sum(nil)[:6])
})

// sourceRevision is the revision of the checkout that holds this file; "" where git is not there, or does not know the file.
var sourceRevision = sync.OnceValue(func() string {
	_, file, _, _ := runtime.Caller(0)
	if !filepath.IsAbs(file) { // built with -trimpath
		return ""
	}
	git := func(arguments ...string) (string, error) {
		out, err := exec.Command("git", append([]string{"-C", filepath.Dir(file)}, arguments...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	revision, err := git("rev-parse", "--short=12", "HEAD")
	if _, unknown := git("ls-files", "--error-unmatch", file); unknown != nil { // the checkout is another project's
		return ""
	}
	changed, statusErr := git("status", "--porcelain", "--", ":/", ":(top,exclude)figures/runs") // which runs add to
	if err != nil || statusErr != nil {
		return ""
	}
	if changed != "" {
		revision += "+dirty"
	}
	return revision
})

// vectorised tells whether the program was built with GOEXPERIMENT=simd, which
// turns on the Go backend's AVX2 and AVX-512 matrix products.
func vectorised() bool {
	build, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(strings.Split(setting(build, "GOEXPERIMENT"), ","), "simd")
}

// setting returns the value of a build setting, or "".
func setting(build *debug.BuildInfo, key string) string {
	for _, s := range build.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// processor returns the model of the CPU and the number of cores that this
// process may use, as "AMD EPYC 7B13, 2 cores". Where the model is unknown the
// architecture stands in its place.
func processor() string {
	model := "CPU " + runtime.GOARCH
	// Only Linux has this file; elsewhere the architecture must do.
	if file, err := os.Open("/proc/cpuinfo"); err == nil {
		if name := field(file, "model name"); name != "" {
			model = name
		}
		// A file only read from loses nothing when closing it fails.
		_ = file.Close()
	}
	cores := runtime.GOMAXPROCS(0)
	if cores == 1 {
		return model + ", 1 core"
	}
	return fmt.Sprintf("%s, %d cores", model, cores)
}

// nvidiaModels returns the models of the NVIDIA GPUs that the driver reports
// under root, normally /proc/driver/nvidia/gpus; none where there is no driver.
func nvidiaModels(root string) []string {
	paths, err := filepath.Glob(filepath.Join(root, "*", "information"))
	if err != nil {
		return nil
	}
	var models []string
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			continue
		}
		if name := field(file, "Model"); name != "" {
			models = append(models, name)
		}
		_ = file.Close()
	}
	return models
}

// field returns the value of the first line "name: value", or "".
func field(r io.Reader, name string) string {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		key, value, found := strings.Cut(lines.Text(), ":")
		if found && strings.TrimSpace(key) == name {
			return strings.Join(strings.Fields(value), " ")
		}
	}
	return ""
}
