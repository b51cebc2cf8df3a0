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
	// SHA256 is the published checksum in hexadecimal; empty where the publisher
	// states none. In that case the checksum of the first download, once Check
	// has accepted it, is written beside it as Name.sha256 and later uses are
	// compared with that. This finds damage since the download; it is no proof
	// that the download was what the publisher meant.
	SHA256 string
	// Size is the size in bytes; 0 if unknown.
	Size int64
	// Limit is the most bytes to take where Size is unknown; 0 means 4 GiB: an
	// address that never stops sending must not fill the disk.
	Limit int64
	// Check looks at the contents of a complete file, such as whether an archive
	// can be read to its end; nil checks nothing. It is used where SHA256 is empty.
	Check func(path string) error
}

// most is how many bytes the file can have.
func (f File) most() int64 { return cmp.Or(f.Size, f.Limit, 4<<30) }

func (f File) validate() error {
	if !filepath.IsLocal(filepath.FromSlash(f.Name)) || strings.HasSuffix(f.Name, "/") || f.Name == "." {
		return fmt.Errorf("fetch: file name %q does not name a file below a folder", f.Name)
	}
	return nil
}
