package notebook

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/gonb/gonbui/protocol"

	"densityuncertainty/environment/atomicfile"
)

// Keep stores a value under a name, for [Kept] in later cells, which are separate programs. In JupyterLab the value is
// stored in the folder out/kept of the checkout, also for after a restart of the kernel, until Keep is called again
// with the name. In other notebooks it ends with the kernel, and outside a notebook with the program.
//
// Only exported fields of structs are stored. A type that cannot be stored, such as a model, stops the cell.
func Keep(name string, value any) {
	var content []byte
	err := keepable(reflect.TypeOf(value))
	if err == nil {
		content, err = encode(value)
	}
	if err != nil {
		panic(fmt.Errorf("notebook.Keep: %q: %w", name, err))
	}
	record := kept{Kernel: os.Getenv(protocol.GONB_TMP_DIR_ENV), Time: time.Now(), Content: content}
	path := keptPath(name)
	if path == "" {
		keptHere.Store(name, record)
		return
	}
	if filepath.Dir(path) != record.Kernel {
		Check(os.MkdirAll(filepath.Dir(path), 0o777))
	}
	Check(atomicfile.WriteBytes(path, Must(encode(record))))
}

// Kept returns the value that an earlier cell stored under the name, as a T; a value that is no T stops the cell. If
// there is none, Kept says so and ends the cell without failing the notebook; outside a notebook it panics. If the
// value was stored before a restart of the kernel, Kept says when.
func Kept[T any](name string) T {
	var value T
	if err := gob.NewDecoder(bytes.NewReader(mustFind(name).Content)).Decode(&value); err != nil {
		panic(fmt.Errorf("notebook.Kept: %q as %T: %w", name, value, err))
	}
	return value
}

// kept is a value as it is stored.
type kept struct {
	Kernel  string // the folder of the kernel that kept it, another one after a restart
	Time    time.Time
	Content []byte
}

// keptHere has what is kept outside a notebook, by name.
var keptHere sync.Map

// keptPath is the file for a name: in a folder of the notebook, or where that is not known in the kernel's own, which
// ends with the kernel; "" outside a notebook.
func keptPath(name string) string {
	folder := os.Getenv(protocol.GONB_TMP_DIR_ENV)
	if folder == "" {
		return ""
	}
	if notebook, checkout := os.Getenv(sessionVariable), os.Getenv("DENSITYUNCERTAINTY_CHECKOUT"); notebook != "" && checkout != "" {
		folder = filepath.Join(checkout, "out", "kept", fmt.Sprintf("%s-%08x", fileName(filepath.Base(notebook)), crc32.ChecksumIEEE([]byte(notebook))))
	}
	return filepath.Join(folder, "kept-"+fileName(name)+".gob")
}

// fileName is a name of a file for any name. A letter may take nine there, and a file system allows 255 in all.
func fileName(name string) string {
	if escaped := url.PathEscape(name); len(escaped) <= 150 {
		return escaped
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(name)))
}

func readKept(name string) (kept, error) {
	path := keptPath(name)
	if path == "" {
		if record, found := keptHere.Load(name); found {
			return record.(kept), nil
		}
		return kept{}, fs.ErrNotExist
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return kept{}, err
	}
	var record kept
	if err := gob.NewDecoder(bytes.NewReader(content)).Decode(&record); err != nil {
		return kept{}, fmt.Errorf("notebook: what was kept under %q cannot be read: %w; keep it again", name, err)
	}
	return record, nil
}

// mustFind returns what was kept under the name. If nothing was, it says so and ends the cell.
func mustFind(name string) kept {
	record, err := readKept(name)
	if errors.Is(err, fs.ErrNotExist) {
		if keptPath(name) == "" {
			panic(fmt.Errorf("notebook.Kept: nothing was kept under %q; call notebook.Keep with this name before", name))
		}
		Markdown(fmt.Sprintf("**Left out:** no cell has kept “%s”. Run the cell with `notebook.Keep(%[1]q, ...)` first.", name))
		exit(0) // as if the cell had run
	}
	Check(err)
	if inNotebook() && record.Kernel != os.Getenv(protocol.GONB_TMP_DIR_ENV) {
		Markdown(fmt.Sprintf("*“%s” was kept on %s.*", name, record.Time.Format("2 January at 15:04:05")))
	}
	return record
}

// exit is os.Exit outside tests.
var exit = os.Exit

func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(value)
	return b.Bytes(), err
}

// keepable returns an error that says why values of a type cannot be kept, or nil. above are the types that it is part
// of. What an interface holds is not known before there is a value.
func keepable(t reflect.Type, above ...reflect.Type) error {
	switch t {
	case nil:
		return errors.New("nil cannot be kept")
	case reflect.TypeFor[*model.Store](), reflect.TypeFor[model.Store]():
		return errors.New("the parameters of a model cannot be kept; write them to a file with checkpoint.Export")
	case reflect.TypeFor[*tensors.Tensor]():
		return errors.New("a GoMLX tensor cannot be kept; keep its values, as tensors.MustCopyFlatData returns them")
	}
	if slices.Contains(above, t) || t.Implements(reflect.TypeFor[gob.GobEncoder]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[gob.GobEncoder]()) {
		return nil
	}
	above = append(above, t)
	switch t.Kind() {
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return fmt.Errorf("a value of type %s cannot be kept: later cells are programs of their own", t)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return keepable(t.Elem(), above...)
	case reflect.Map:
		if err := keepable(t.Key(), above...); err != nil {
			return err
		}
		return keepable(t.Elem(), above...)
	case reflect.Struct:
		exported := 0
		for i := range t.NumField() {
			f := t.Field(i)
			if !f.IsExported() {
				continue
			}
			exported++
			if err := keepable(f.Type, above...); err != nil {
				return fmt.Errorf("field %s of %s: %w", f.Name, t, err)
			}
		}
		if exported == 0 && t.NumField() > 0 {
			return fmt.Errorf("a value of type %s cannot be kept: it has no exported fields", t)
		}
	}
	return nil
}

// sessionVariable has the path of the notebook, in JupyterLab.
const sessionVariable = "JPY_SESSION_NAME"
