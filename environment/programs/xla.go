//go:build cgo && !noxla && linux && (amd64 || arm64)

package programs

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

// What is used of PJRT's C API (pjrt_c_api.h of OpenXLA), whose layout only grows at its ends.
enum { error_destroy = 0, client_compile = 20, executable_destroy = 40, executable_serialize = 49, get_executable = 51, deserialize_and_load = 56 };

typedef struct { size_t size; void *extension; struct { size_t size; void *extension; int major, minor; } version; void *functions[]; } pjrt_api;
typedef struct { size_t size; void *extension; void *it; } one_args;
typedef struct { size_t size; void *extension; char *code; size_t code_size; const char *format; size_t format_size; } program;
typedef struct { size_t size; void *extension; void *client; const program *program; const char *options; size_t options_size; void *executable; } compile_args;
typedef struct { size_t size; void *extension; void *loaded; void *executable; } get_args;
typedef struct { size_t size; void *extension; void *executable; const char *bytes; size_t bytes_size; void *backing; void (*release)(void *); } serialize_args;
typedef struct { size_t size; void *extension; void *client; const char *bytes; size_t bytes_size; void *executable; const char *options; size_t options_size; } load_args;

extern void *keptCompile(compile_args *args);

static const pjrt_api *plugin;

static void *call(int function, void *args) { return ((void *(*)(void *))plugin->functions[function])(args); }

static void destroy(int function, void *it) {
  one_args args = {sizeof args, NULL, it};
  if (it) call(function, &args);
}

// hooked is the API of a plugin, with a compile function of ours; NULL if it cannot be had.
static void *hooked(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const pjrt_api *(*get)(void) = library ? (const pjrt_api *(*)(void))dlsym(library, "GetPjrtApi") : NULL;
  const pjrt_api *api = get ? get() : NULL;
  if (!api || api->version.major != 0 || api->size < sizeof *api + (deserialize_and_load + 1) * sizeof(void *)) return NULL;
  pjrt_api *copy = malloc(api->size);
  memcpy(copy, api, api->size);
  copy->functions[client_compile] = (void *)keptCompile;
  plugin = api;
  return copy;
}

static void *compile(compile_args *args) { return call(client_compile, args); }

// load makes an executable of what serialize gave; 0 if the plugin refuses it.
static int load(compile_args *into, const char *bytes, size_t n) {
  load_args args = {.size = sizeof args, .client = into->client, .bytes = bytes, .bytes_size = n};
  void *error = call(deserialize_and_load, &args);
  if (error) { destroy(error_destroy, error); return 0; }
  into->executable = args.executable;
  return 1;
}

// serialize gives the bytes of a loaded executable, to be released; 0 if the plugin cannot.
static int serialize(void *loaded, serialize_args *out) {
  get_args get = {.size = sizeof get, .loaded = loaded};
  void *error = call(get_executable, &get);
  if (!error) {
    *out = (serialize_args){.size = sizeof *out, .executable = get.executable};
    error = call(executable_serialize, out);
    destroy(executable_destroy, get.executable);
  }
  if (error) { destroy(error_destroy, error); return 0; }
  return 1;
}

static void release(serialize_args *s) { s->release(s->backing); }
*/
import "C"

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/gomlx/go-xla/pjrt"
)

var (
	mu sync.Mutex
	// kept is where the programs of the plugin are kept, once there is one.
	kept struct{ name, folder, digest, processor string }
)

// Keep lets the plugin for processors of an XLA configuration, as "xla:cpu", keep what it compiles. It does nothing for
// other configurations, for a second plugin, and where nothing can be kept. It is called before the backend is opened.
func Keep(config string) {
	mu.Lock()
	defer mu.Unlock()
	asked, found := strings.CutPrefix(config, "xla:")
	asked, _, _ = strings.Cut(asked, ",")
	if !found || kept.name != "" || folder() == "" {
		return
	}
	name, path := asked, asked
	if !filepath.IsAbs(asked) {
		plugins := pjrt.AvailablePlugins()
		for candidate := range plugins {
			if _, exact := plugins[asked]; !exact && strings.HasPrefix(candidate, asked+"_v") {
				name = candidate
			}
		}
		path = plugins[name]
	}
	if path == "" || !strings.Contains(strings.ToLower(filepath.Base(path)), "cpu") {
		return
	}
	of, err := pluginDigest(path, folder())
	machine, unknown := processor()
	if err != nil || unknown != nil {
		return
	}
	text := C.CString(path)
	defer C.free(unsafe.Pointer(text))
	api := C.hooked(text)
	if api == nil || pjrt.RegisterPreloadedPlugin(name, uintptr(api)) != nil {
		return
	}
	kept.name, kept.folder, kept.digest, kept.processor = name, folder(), of, machine
}

// keptCompile is PJRT_Client_Compile: it loads the program if it is kept, and otherwise compiles and keeps it.
//
//export keptCompile
func keptCompile(args *C.compile_args) unsafe.Pointer {
	program := unsafe.Slice((*byte)(unsafe.Pointer(args.program.code)), args.program.code_size)
	options := unsafe.Slice((*byte)(unsafe.Pointer(args.options)), args.options_size)
	format := unsafe.Slice((*byte)(unsafe.Pointer(args.program.format)), args.program.format_size)
	name := key(program, append(append([]byte{}, format...), options...), kept.digest, kept.processor)
	if bytes := read(kept.folder, name); len(bytes) > 0 && C.load(args, (*C.char)(unsafe.Pointer(&bytes[0])), C.size_t(len(bytes))) != 0 {
		return nil
	}
	failed := C.compile(args)
	var s C.serialize_args
	if failed == nil && C.serialize(args.executable, &s) != 0 {
		write(kept.folder, name, unsafe.Slice((*byte)(unsafe.Pointer(s.bytes)), s.bytes_size))
		C.release(&s)
	}
	return failed
}

// folder is where programs are kept; "" for nowhere.
func folder() string {
	switch named := os.Getenv(folderVariable); named {
	case "off":
		return ""
	case "":
		caches, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		return filepath.Join(caches, "densityuncertainty-xla")
	default:
		return named
	}
}

// pluginDigest is the digest of a plugin's file. It is kept for the file's name, size and time, as the file has 300 MB.
func pluginDigest(path, folder string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	name := digest([]byte("plugin"), []byte(path), fmt.Append(nil, info.Size(), info.ModTime().UnixNano()))
	if known := read(folder, name); known != nil {
		return string(known), nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", err
	}
	sum := hex.EncodeToString(h.Sum(nil))
	write(folder, name, []byte(sum))
	return sum, nil
}

// processor is the model and the features of the processor, from the file that Linux has of it.
func processor() (string, error) {
	content, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(string(content), "\n\n")
	lines := slices.DeleteFunc(strings.Split(first, "\n"), func(line string) bool { // what changes from moment to moment
		return strings.HasPrefix(line, "cpu MHz") || strings.HasPrefix(line, "bogomips") || strings.HasPrefix(line, "BogoMIPS")
	})
	return strings.Join(lines, "\n"), nil
}
