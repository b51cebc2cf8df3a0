package predictions

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"densityuncertainty/environment/atomicfile"
)

// A file is one gzip member, whose trailer holds the checksum (CRC-32) and the length. Inside are a line
// that names the format, a line of JSON (header), and then, without separators:
//
//	labels             N bytes
//	predicted classes  N bytes
//	probabilities      2 N (C-1) bytes: of each example, those of the other classes
//	the same three of the held-out examples, if the header says so
//	the columns that the header names, 2 or 3 bytes for each value
//
// Numbers of several bytes are stored plane by plane, the highest bytes of all first; see kind.

// Extension is the ending of a file's name.
const Extension = ".predictions.gz"

// FileName is the name of the file of an experiment.
func FileName(experiment string) string { return experiment + Extension }

const (
	formatLine = "densityuncertainty predictions 1\n"
	maxHeader  = 1 << 14 // bytes
	maxContent = 1 << 26 // bytes, unpacked
)

// ErrDamaged is wrapped by the error for a file that is not what Write wrote.
var ErrDamaged = errors.New("not a file of predictions, or a damaged one; restore it, or remove it and run the experiment again")

// Write stores p at path as a whole or not at all. What is stored is rounded: Read returns probabilities
// with a relative error of 1.2e-4 (3e-3 below 2^-16), energies with one of 2^-16, and the same predicted
// classes. Predictions that Validate rejects are refused.
func Write(path string, p *Predictions) error {
	content, err := encode(p)
	if err != nil {
		return fmt.Errorf("predictions: writing %s: %w", path, err)
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return fmt.Errorf("predictions: packing %s: %w", path, err)
	}
	_, err = z.Write(content)
	if err := errors.Join(err, z.Close()); err != nil {
		return fmt.Errorf("predictions: packing %s: %w", path, err)
	}
	if err := atomicfile.WriteBytes(path, packed.Bytes()); err != nil {
		return fmt.Errorf("predictions: %w", err)
	}
	return nil
}

// Read returns the predictions in the file at path, which Validate accepts. Of a file that is damaged, cut
// short, too large or of another kind it says so with ErrDamaged.
func Read(path string) (p *Predictions, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("predictions: %w", err)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			p = nil
		}
	}()
	content, err := unpack(f)
	if err == nil {
		p, err = decode(content)
	}
	if err != nil {
		return nil, fmt.Errorf("predictions: reading %s: %w: %w", path, err, ErrDamaged)
	}
	return p, nil
}

// unpack reads one gzip member and checks its checksum and that nothing follows.
func unpack(r io.Reader) ([]byte, error) {
	packed := bufio.NewReader(r)
	z, err := gzip.NewReader(packed)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	content, err := io.ReadAll(io.LimitReader(z, maxContent+1))
	if err := errors.Join(err, z.Close()); err != nil {
		return nil, err
	}
	if len(content) > maxContent {
		return nil, fmt.Errorf("more than %d bytes unpacked", maxContent)
	}
	if _, err := packed.ReadByte(); err != io.EOF {
		return nil, fmt.Errorf("something follows the end: %v", err)
	}
	return content, nil
}

// encode returns the unpacked content of the file of p.
func encode(p *Predictions) ([]byte, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	h := p.header()
	line, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	if size := h.size(p.columns(h)); len(line) >= maxHeader || len(formatLine)+len(line)+1+size > maxContent {
		return nil, fmt.Errorf("%d examples of %d classes, with %d other sets, are more than a file can hold", h.Examples, h.Classes, len(h.Others))
	}
	content := append([]byte(formatLine), line...)
	content = append(content, '\n')
	for _, c := range p.classified(h) {
		content = c.append(content, p.Classes)
	}
	for _, c := range p.columns(h) {
		if *c.list != nil {
			content = c.kind.append(content, *c.list)
		}
	}
	return content, nil
}

// append adds the stored form of labels and probabilities.
func (c classified) append(content []byte, classes int) []byte {
	for _, label := range *c.labels {
		content = append(content, byte(label))
	}
	others := classes - 1
	codes := make([]uint32, c.n*others)
	for i := range c.n {
		top := encodeRow((*c.probs)[i*classes:(i+1)*classes], codes[i*others:(i+1)*others])
		content = append(content, byte(top))
	}
	return appendPlanes(content, codes, 2)
}

// read is the inverse of append; take gives the next so many bytes.
func (c classified) read(take func(int) []byte, classes int) error {
	others := classes - 1
	labels, tops := take(c.n), take(c.n)
	codes := readPlanes(take(2*c.n*others), c.n*others, 2)
	*c.labels, *c.probs = make([]int, c.n), make([]float64, c.n*classes)
	for i := range c.n {
		(*c.labels)[i] = int(labels[i])
		top, row := int(tops[i]), (*c.probs)[i*classes:(i+1)*classes]
		if top >= classes {
			return fmt.Errorf("example %d is predicted as class %d of %d", i, top, classes)
		}
		decodeRow(row, top, codes[i*others:(i+1)*others])
		if largest := firstLargest(row); largest != top {
			return fmt.Errorf("example %d is predicted as class %d, but class %d is more probable", i, top, largest)
		}
	}
	return nil
}

// size is the number of bytes that follow the header.
func (h header) size(columns []column) int {
	examples := h.Examples
	if h.HeldOutClasses {
		examples += h.HeldOut
	}
	size := 2*examples + 2*examples*(h.Classes-1)
	for _, c := range columns {
		for _, name := range h.Columns {
			if name == c.name {
				size += c.n * c.kind.bytes()
			}
		}
	}
	return size
}

// decode is the inverse of encode.
func decode(content []byte) (*Predictions, error) {
	rest, ok := bytes.CutPrefix(content, []byte(formatLine))
	if !ok {
		return nil, fmt.Errorf("it does not begin with %q", strings.TrimSpace(formatLine))
	}
	line, rest, ok := bytes.Cut(rest, []byte("\n"))
	if !ok || len(line) >= maxHeader {
		return nil, fmt.Errorf("it has no header of less than %d bytes", maxHeader)
	}
	var h header
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&h); err != nil {
		return nil, fmt.Errorf("its header is not readable: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("its header goes on after its end")
	}
	if err := h.check(); err != nil {
		return nil, fmt.Errorf("its header is wrong: %w", err)
	}
	p := &Predictions{Experiment: h.Experiment, Dataset: h.Dataset, Classes: h.Classes, Samples: h.Samples}
	for _, set := range h.Others {
		p.Others = append(p.Others, Set{Name: set.Name})
	}
	columns := p.columns(h)
	if want := h.size(columns); len(rest) != want {
		return nil, fmt.Errorf("%d bytes follow its header, which says %d", len(rest), want)
	}
	take := func(n int) []byte {
		taken := rest[:n]
		rest = rest[n:]
		return taken
	}
	for _, c := range p.classified(h) {
		if err := c.read(take, h.Classes); err != nil {
			return nil, err
		}
	}
	next := 0
	for _, c := range columns {
		if next < len(h.Columns) && h.Columns[next] == c.name {
			*c.list = c.kind.values(take(c.n*c.kind.bytes()), c.n)
			next++
		}
	}
	if next != len(h.Columns) {
		return nil, fmt.Errorf("its header names the column %q, which is unknown, named twice or out of order", h.Columns[next])
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}
