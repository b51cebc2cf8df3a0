package notebook

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/gonb/gonbui/protocol"

	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/nets"
	"densityuncertainty/environment/atomicfile"
)

// Keep keeps a value under a name for [Kept] in later cells, which are programs of their own. In JupyterLab it is
// there after a restart of the kernel too, in the folder out/kept of the checkout, until Keep is called with that name
// again; elsewhere it ends with the kernel, and outside a notebook with the program.
//
// Of structures only exported fields are kept. Of a [nets.Model] its parameters are kept, which [KeptModel] gives
// back. A type that cannot be kept stops the cell.
func Keep(name string, value any) {
	var content []byte
	var err error
	if m, ok := value.(*nets.Model); ok {
		content, err = encodeModel(m)
	} else if err = keepable(reflect.TypeOf(value)); err == nil {
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
		Check(os.MkdirAll(filepath.Dir(path), 0o755))
	}
	Check(atomicfile.WriteBytes(path, Must(encode(record))))
}

// Kept returns the value that an earlier cell kept under the name, as a T. If none did, it says which cell to run and
// ends the cell without failing the notebook. If the value was kept before the kernel was restarted, it says so.
// Outside a notebook, where nothing but the program itself can have kept the value, it panics if there is none.
func Kept[T any](name string) T {
	var value T
	if _, ok := any(value).(*nets.Model); ok {
		panic(fmt.Errorf("notebook.Kept: %q: a model is given back by notebook.KeptModel(%[1]q, m), for an untrained m", name))
	}
	if err := gob.NewDecoder(bytes.NewReader(mustFind(name).Content)).Decode(&value); err != nil {
		panic(fmt.Errorf("notebook.Kept: %q as %T: %w", name, value, err))
	}
	return value
}

// KeptModel gives m, a model that was made as the one that was kept under the name and is not yet trained, the kept
// parameters, and returns it. If none were kept, it ends the cell as [Kept] does. A model of other parameters stops
// the cell.
func KeptModel(name string, m *nets.Model) *nets.Model {
	record := mustFind(name)
	err := isModel(m)
	if err == nil {
		var named map[string]*tensors.Tensor
		if named, _, err = checkpoint.ParseTensors(record.Content); err == nil {
			err = checkpoint.SetTensors(m.Store, named)
		}
	}
	if err != nil {
		panic(fmt.Errorf("notebook: the model that was kept under %q: %w; make the model as the one that was kept, or notebook.Forget(%[1]q)", name, err))
	}
	return m
}

// Forget removes what was kept under the name, if anything was.
func Forget(name string) {
	keptHere.Delete(name)
	if path := keptPath(name); path != "" {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			panic(err)
		}
	}
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
		key := fmt.Sprintf("%s-%08x", filepath.Base(notebook), crc32.ChecksumIEEE([]byte(notebook)))
		folder = filepath.Join(checkout, "out", "kept", url.PathEscape(key))
	}
	return filepath.Join(folder, "kept-"+url.PathEscape(name)+".gob")
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
		return kept{}, fmt.Errorf("notebook: what was kept under %q cannot be read: %w; notebook.Forget(%[1]q) removes it", name, err)
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
		Markdown(fmt.Sprintf("**Left out:** no cell has kept “%s”. %s", name, keeper(name)))
		exit(0) // as if the cell had run
	}
	Check(err)
	if In() && record.Kernel != os.Getenv(protocol.GONB_TMP_DIR_ENV) {
		Markdown(fmt.Sprintf("*“%s” was kept on %s. `notebook.Forget(%[1]q)` removes it.*", name, record.Time.Format("2 January at 15:04:05")))
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
	case reflect.TypeFor[*nets.Model](), reflect.TypeFor[nets.Model]():
		return errors.New("a model is kept by notebook.Keep with its address, not inside of another value")
	case reflect.TypeFor[*model.Store](), reflect.TypeFor[model.Store]():
		return errors.New("a GoMLX store cannot be kept by itself; keep the nets.Model that it belongs to")
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

// isModel returns an error if m is no model whose parameters can be kept.
func isModel(m *nets.Model) error {
	switch {
	case m == nil:
		return errors.New("the model is nil")
	case m.Store == nil || m.Network == nil:
		return errors.New("the model has no store or no network; make it with nets.New")
	}
	return nil
}

// encodeModel returns the parameters of a model as the bytes of a safetensors file.
func encodeModel(m *nets.Model) ([]byte, error) {
	if err := isModel(m); err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "kept")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(folder, "model.safetensors")
	err = checkpoint.Export(m.Store, path, nil)
	var content []byte
	if err == nil {
		content, err = os.ReadFile(path)
	}
	return content, errors.Join(err, os.RemoveAll(folder))
}

// sessionVariable has the path of the notebook, in JupyterLab.
const sessionVariable = "JPY_SESSION_NAME"

// keeper says which cell of the notebook keeps a value of the name.
func keeper(name string) string {
	const nowhere = "Run the cells above first."
	content, err := os.ReadFile(os.Getenv(sessionVariable))
	if err != nil {
		return nowhere
	}
	var notebook struct {
		Cells []struct {
			Type   string `json:"cell_type"`
			Source any    `json:"source"`
		} `json:"cells"`
	}
	if json.Unmarshal(content, &notebook) != nil {
		return nowhere
	}
	heading := ""
	for _, cell := range notebook.Cells {
		text, ok := cell.Source.(string)
		if lines, split := cell.Source.([]any); split {
			for _, line := range lines {
				text += fmt.Sprint(line)
			}
		} else if !ok {
			continue
		}
		if cell.Type == "markdown" {
			for line := range strings.SplitSeq(text, "\n") {
				if title := strings.TrimLeft(line, "#"); title != line {
					heading = strings.TrimSpace(title)
				}
			}
			continue
		}
		if strings.Contains(text, fmt.Sprintf("notebook.Keep(%q", name)) {
			return fmt.Sprintf("Run the cell below “%s” that begins with `%s`.", heading, firstLine(text))
		}
	}
	return nowhere
}

// firstLine is the first line of a cell's code that says something.
func firstLine(code string) string {
	for line := range strings.SplitSeq(code, "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "%%") && !strings.HasPrefix(line, "import") {
			return line
		}
	}
	return code
}
