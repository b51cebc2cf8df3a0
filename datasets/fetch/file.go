package fetch

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
)

// File describes a published file.
type File struct {
	// Name is the file's name in the cache, in a local folder and on a mirror;
	// slashes separate folders. It must stay below the folder it is joined to.
	Name string
	// URL is the official address.
	URL string
	// SHA256 is the published checksum in hexadecimal; empty where the publisher states none.
	SHA256 string
	// Size is the size in bytes; 0 if unknown.
	Size int64
	// Check looks at the contents of a complete file in the place of a checksum. It is used where SHA256 is empty; nil then
	// checks nothing, which is for a caller that looks at them itself.
	Check func(path string) error
}

// most is how many bytes the file can have: an address that never stops sending must not fill the disk.
func (f File) most() int64 { return cmp.Or(f.Size, 1<<30) }

func (f File) validate() error {
	if !filepath.IsLocal(filepath.FromSlash(f.Name)) || strings.HasSuffix(f.Name, "/") || f.Name == "." {
		return fmt.Errorf("fetch: file name %q does not name a file below a folder", f.Name)
	}
	return nil
}
