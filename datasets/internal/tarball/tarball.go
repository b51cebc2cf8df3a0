// Package tarball reads known files out of a tar archive, in memory.
package tarball

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"densityuncertainty/datasets/internal/parse"
)

// Causes of errors that are not those of archive/tar.
var (
	ErrMissing = errors.New("the archive lacks a file")
	ErrTwice   = errors.New("the archive holds a file twice")
	ErrSize    = errors.New("wrong size")
)

// Each calls visit with the contents of every file that sizes names, in the
// archive's order; other files are passed over. sizes tells how many bytes each
// has to have, which also bounds the memory in use. Names are those of the
// archive, with or without a leading "./".
//
// A file that is missing, there twice, or of another size is an error, as is one
// returned by visit. Damage of the archive itself is reported as a
// [*parse.Error] with an offset into the unpacked archive.
func Each(r io.Reader, sizes map[string]int64, visit func(name string, contents []byte) error) error {
	counter := &counter{r: r}
	archive := tar.NewReader(counter)
	seen := make(map[string]bool, len(sizes))
	for {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return parse.Errorf(counter.n, "reading the archive: %w", err)
		}
		name := strings.TrimPrefix(header.Name, "./")
		size, wanted := sizes[name]
		if !wanted {
			continue
		}
		switch {
		case seen[name]:
			return fmt.Errorf("%w: %s", ErrTwice, name)
		case header.Typeflag != tar.TypeReg || header.Size != size:
			return fmt.Errorf("%w: %s has %d bytes in the archive, expected %d", ErrSize, name, header.Size, size)
		}
		seen[name] = true
		contents := make([]byte, size)
		if _, err := io.ReadFull(archive, contents); err != nil {
			return parse.Errorf(counter.n, "reading %s: %w", name, err)
		}
		if err := visit(name, contents); err != nil {
			return err
		}
	}
	var missing []string
	for name := range sizes {
		if !seen[name] {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf("%w: %s", ErrMissing, strings.Join(missing, ", "))
	}
	return nil
}

// counter counts the bytes read through it.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
