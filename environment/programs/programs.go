// Package programs keeps on disk what XLA has compiled for the processor, so that a program that starts again loads it,
// in a thirtieth of the time.
//
// The environment variable DENSITYUNCERTAINTY_PROGRAMS names the folder, by default densityuncertainty-xla in the user's
// cache folder; "off" keeps none. The folder takes at most a gigabyte; the programs that were used longest ago go first.
// A file's name is the SHA-256 digest of all that its program depends on (see key), and the file has a checksum. So a
// program is compiled again for another processor, plugin or flag, and after any damage or disk error.
package programs

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"densityuncertainty/environment/atomicfile"
)

// folderVariable names the environment variable for the folder.
const folderVariable = "DENSITYUNCERTAINTY_PROGRAMS"

// limit is what the kept programs may take, in bytes.
var limit int64 = 1 << 30

// suffix ends the names of kept programs.
const suffix = ".xla"

// digest is SHA-256 of the parts, each with its length.
func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d ", len(part))
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// key is the digest of everything that a compiled program depends on: the program, its options, the plugin, the
// processor's model and features, the number of cores, and the variables that the compiler reads.
func key(program, options []byte, plugin, processor string) string {
	parts := [][]byte{program, options, []byte(plugin), []byte(processor), fmt.Append(nil, runtime.NumCPU())}
	for _, variable := range []string{"XLA_FLAGS", "NPROC"} {
		parts = append(parts, []byte(os.Getenv(variable)))
	}
	return digest(parts...)
}

// read is the content that was kept by a name; nil if there is none, or not all of it.
func read(folder, name string) []byte {
	path := filepath.Join(folder, name+suffix)
	kept, err := os.ReadFile(path)
	head := len(digest())
	if err != nil || len(kept) < head || string(kept[:head]) != digest([]byte(name), kept[head:]) {
		return nil
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // in a folder that may only be read, the order is that of writing
	return kept[head:]
}

// write keeps a content by a name, if it can.
func write(folder, name string, content []byte) {
	if os.MkdirAll(folder, 0o700) != nil {
		return
	}
	kept := slices.Concat([]byte(digest([]byte(name), content)), content)
	if atomicfile.WriteBytes(filepath.Join(folder, name+suffix), kept) == nil {
		trim(folder)
	}
}

// trim removes the programs that were used longest ago, until what is left takes at most the limit.
func trim(folder string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	var files []os.FileInfo
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && strings.HasSuffix(info.Name(), suffix) {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b os.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), bytes.Compare([]byte(a.Name()), []byte(b.Name())))
	})
	left := limit
	for _, info := range files {
		if left -= info.Size(); left < 0 {
			_ = os.Remove(filepath.Join(folder, info.Name())) // another process may have done it
		}
	}
}
