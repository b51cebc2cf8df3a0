package notebook

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"github.com/janpfeifer/gonb/gonbui/protocol"

	"densityuncertainty/environment/atomicfile"
)

// Keep keeps a value under a name for [Kept] in later cells, which are programs
// of their own. It is there until the kernel ends, or Keep is called with that
// name again. Of structures only exported fields are kept; a type that package
// gob cannot encode stops the cell. Outside a notebook the value is kept until
// the program ends.
func Keep(name string, value any) {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(value); err != nil {
		panic(fmt.Errorf("notebook.Keep: %q: %w", name, err))
	}
	path := keptPath(name)
	if path == "" {
		keptHere.Store(name, b.Bytes())
		return
	}
	Check(atomicfile.WriteBytes(path, b.Bytes()))
}

// Kept returns the value that an earlier cell kept under the name, as a T. If none
// did, for example because its data are missing, it says so and ends the cell
// without failing the notebook. Outside a notebook, where nothing but the program
// itself can have kept the value, it panics.
func Kept[T any](name string) T {
	var value T
	content, err := readKept(name)
	if errors.Is(err, fs.ErrNotExist) {
		if keptPath(name) == "" {
			panic(fmt.Errorf("notebook.Kept: nothing was kept under %q; call notebook.Keep with this name before", name))
		}
		leave(fmt.Sprintf("**Left out:** no cell above has kept “%s”.", name))
		return value
	}
	Check(err)
	if err := gob.NewDecoder(bytes.NewReader(content)).Decode(&value); err != nil {
		panic(fmt.Errorf("notebook.Kept: %q as %T: %w", name, value, err))
	}
	return value
}

// keptHere has what is kept outside a notebook, by name.
var keptHere sync.Map

// keptPath is the file for a name in the kernel's own folder, which ends with
// the kernel; "" outside a notebook.
func keptPath(name string) string {
	folder := os.Getenv(protocol.GONB_TMP_DIR_ENV)
	if folder == "" {
		return ""
	}
	return filepath.Join(folder, "kept-"+url.PathEscape(name)+".gob")
}

func readKept(name string) ([]byte, error) {
	if path := keptPath(name); path != "" {
		return os.ReadFile(path)
	}
	if content, found := keptHere.Load(name); found {
		return content.([]byte), nil
	}
	return nil, fs.ErrNotExist
}
