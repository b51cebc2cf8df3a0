// Package pickle reads the pickled files of the Python version of CIFAR-10 and
// CIFAR-100: dictionaries of lists, strings and one array of bytes, written by
// Python 2 in pickle protocol 2.
//
// It knows the opcodes that occur in those files and no others. In general a
// pickle is a program; here nothing is ever looked up or called: the three names
// that may occur, those with which NumPy rebuilds an array of bytes, are
// recognised and what they stand for is built in Go.
package pickle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"densityuncertainty/datasets/internal/parse"
)

// Causes of errors, wrapped in a [*parse.Error].
var (
	ErrOpcode = errors.New("unknown opcode")
	ErrName   = errors.New("a name that is not allowed")
	ErrStack  = errors.New("the opcode does not fit the values before it")
	ErrLimit  = errors.New("more values than an image file has")
)

// A List is a Python list.
type List struct{ Items []any }

// An Array is a NumPy array of unsigned bytes in C order (row-major).
type Array struct {
	Shape []int
	Data  []byte
}

// The opcodes, by their names in Python's pickletools.
const (
	opProto          = 0x80
	opEmptyDict      = '}'
	opEmptyList      = ']'
	opMark           = '('
	opBinPut         = 'q'
	opLongBinPut     = 'r'
	opShortBinString = 'U'
	opBinString      = 'T'
	opBinInt1        = 'K'
	opBinInt2        = 'M'
	opBinInt         = 'J'
	opNone           = 'N'
	opNewFalse       = 0x89
	opTuple          = 't'
	opTuple1         = 0x85
	opTuple2         = 0x86
	opTuple3         = 0x87
	opAppends        = 'e'
	opSetItems       = 'u'
	opGlobal         = 'c'
	opReduce         = 'R'
	opBuild          = 'b'
	opStop           = '.'
)

// A name is what opGlobal pushes.
type name string

const (
	reconstruct name = "numpy.core.multiarray _reconstruct"
	ndarray     name = "numpy ndarray"
	dtype       name = "numpy dtype"
)

// uint8Type is NumPy's type of unsigned bytes.
type uint8Type struct{}

// Bounds on what a file may make: a byte can ask for a value that takes a hundred,
// and a chain of containers is as deep as the file is long. The files of CIFAR
// hold about 20 containers, and a value for every 500 bytes or more.
const (
	mostContainers = 1000 // which bounds how deep they nest, too
	freeValues     = 1 << 16
	bytesPerValue  = 64 // of the file, for each value beyond freeValues
)

// tuple is a Python tuple.
type tuple []any

// machine is the state of the reader: the stack, and where marks were set on it.
type machine struct {
	data  []byte
	at    int // next byte
	op    int // offset of the opcode being read
	stack []any
	marks []int

	values, containers int // made so far; marks count as values
}

// Load reads the one value of a pickle, which must take up all of data. It
// returns map[string]any for a dictionary, [*List], [*Array], string (of fewer
// than 256 bytes), []byte (of more; a view into data), int, false or nil.
//
// Errors are [*parse.Error] with the offset of the opcode at fault. Time is
// proportional to len(data), and memory is at most three times that plus 30 MB: a
// file with more values than the sets' files have is refused with ErrLimit.
func Load(data []byte) (any, error) {
	m := &machine{data: data}
	if len(data) < 2 || data[0] != opProto || data[1] != 2 {
		return nil, m.errorf("%w: a pickle of protocol 2 starts with 80 02 (hexadecimal)", ErrOpcode)
	}
	m.at = 2
	for {
		m.op = m.at
		code, err := m.take(1)
		if err != nil {
			return nil, err
		}
		if code[0] == opStop {
			break
		}
		if err := m.step(code[0]); err != nil {
			return nil, err
		}
		if most := freeValues + len(data)/bytesPerValue; m.values > most || m.containers > mostContainers {
			return nil, m.errorf("%w: %d values and %d containers, want at most %d and %d", ErrLimit, m.values, m.containers, most, mostContainers)
		}
	}
	if len(m.stack) != 1 || len(m.marks) != 0 {
		return nil, m.errorf("%w: %d values and %d marks at the end, expected one value", ErrStack, len(m.stack), len(m.marks))
	}
	if m.at != len(data) {
		return nil, m.errorf("%d bytes follow the end of the pickle", len(data)-m.at)
	}
	return m.stack[0], nil
}

func (m *machine) errorf(format string, args ...any) error {
	return parse.Errorf(int64(m.op), format, args...)
}

// step carries out one opcode.
func (m *machine) step(code byte) error {
	switch code {
	case opEmptyDict:
		m.push(map[string]any{})
	case opEmptyList:
		m.push(&List{})
	case opNone:
		m.push(nil)
	case opNewFalse:
		m.push(false)
	case opMark:
		m.values++
		m.marks = append(m.marks, len(m.stack))
	case opBinPut, opLongBinPut:
		return m.put(code)
	case opBinInt1, opBinInt2, opBinInt:
		return m.integer(code)
	case opShortBinString, opBinString:
		return m.text(code)
	case opTuple:
		items, err := m.popMark()
		if err != nil {
			return err
		}
		m.push(tuple(items))
	case opTuple1, opTuple2, opTuple3:
		items, err := m.pop(int(code-opTuple1) + 1)
		if err != nil {
			return err
		}
		m.push(tuple(items))
	case opAppends:
		return m.appends()
	case opSetItems:
		return m.setItems()
	case opGlobal:
		return m.global()
	case opReduce:
		return m.reduce()
	case opBuild:
		return m.build()
	default:
		return m.errorf("%w %#02x", ErrOpcode, code)
	}
	return nil
}

// take returns the next n bytes of the file.
func (m *machine) take(n int) ([]byte, error) {
	if n > len(m.data)-m.at {
		return nil, m.errorf("%w: %d more bytes needed, %d left", io.ErrUnexpectedEOF, n, len(m.data)-m.at)
	}
	m.at += n
	return m.data[m.at-n : m.at : m.at], nil
}

func (m *machine) push(v any) {
	m.values++
	switch v.(type) {
	case map[string]any, *List, tuple, *Array:
		m.containers++
	}
	m.stack = append(m.stack, v)
}

// base is the first place of the stack that belongs to the innermost mark.
func (m *machine) base() int {
	if len(m.marks) == 0 {
		return 0
	}
	return m.marks[len(m.marks)-1]
}

// pop removes the top n values and returns them in the order they were pushed.
func (m *machine) pop(n int) ([]any, error) {
	from := len(m.stack) - n
	if from < m.base() {
		return nil, m.errorf("%w: it takes %d values", ErrStack, n)
	}
	items := slices.Clone(m.stack[from:])
	m.stack = m.stack[:from]
	return items, nil
}

// popMark removes the innermost mark and the values above it.
func (m *machine) popMark() ([]any, error) {
	if len(m.marks) == 0 {
		return nil, m.errorf("%w: it takes the values since a mark, and no mark is set", ErrStack)
	}
	items, err := m.pop(len(m.stack) - m.base())
	m.marks = m.marks[:len(m.marks)-1]
	return items, err
}

// put notes the top of the stack for later use in a Python reader. The files
// never use what they note, so it is only skipped.
func (m *machine) put(code byte) error {
	width := 1
	if code == opLongBinPut {
		width = 4
	}
	if _, err := m.take(width); err != nil {
		return err
	}
	if len(m.stack) == m.base() {
		return m.errorf("%w: there is no value to note", ErrStack)
	}
	return nil
}

func (m *machine) integer(code byte) error {
	width := 4
	switch code {
	case opBinInt1:
		width = 1
	case opBinInt2:
		width = 2
	}
	b, err := m.take(width)
	if err != nil {
		return err
	}
	switch width {
	case 1:
		m.push(int(b[0]))
	case 2:
		m.push(int(binary.LittleEndian.Uint16(b)))
	default:
		m.push(int(int32(binary.LittleEndian.Uint32(b))))
	}
	return nil
}

func (m *machine) text(code byte) error {
	if code == opShortBinString {
		n, err := m.take(1)
		if err != nil {
			return err
		}
		b, err := m.take(int(n[0]))
		if err != nil {
			return err
		}
		m.push(string(b))
		return nil
	}
	b, err := m.take(4)
	if err != nil {
		return err
	}
	n := int32(binary.LittleEndian.Uint32(b))
	if n < 0 {
		return m.errorf("a string of length %d", n)
	}
	if b, err = m.take(int(n)); err != nil {
		return err
	}
	m.push(b)
	return nil
}

// appends adds the values above the mark to the list below it.
func (m *machine) appends() error {
	items, err := m.popMark()
	if err != nil {
		return err
	}
	list, ok := m.top().(*List)
	if !ok {
		return m.errorf("%w: it adds to a list, not to %T", ErrStack, m.top())
	}
	list.Items = append(list.Items, items...)
	return nil
}

// setItems enters the keys and values above the mark into the dictionary below it.
func (m *machine) setItems() error {
	items, err := m.popMark()
	if err != nil {
		return err
	}
	dict, ok := m.top().(map[string]any)
	if !ok || len(items)%2 != 0 {
		return m.errorf("%w: it enters pairs into a dictionary, not %d values into %T", ErrStack, len(items), m.top())
	}
	for pair := range slices.Chunk(items, 2) {
		key, ok := pair[0].(string)
		if !ok {
			return m.errorf("%w: a key of type %T", ErrStack, pair[0])
		}
		if _, twice := dict[key]; twice {
			return m.errorf("%w: key %q occurs twice", ErrStack, key)
		}
		dict[key] = pair[1]
	}
	return nil
}

// top is the top of the stack, nil if there is none above the innermost mark.
func (m *machine) top() any {
	if len(m.stack) == m.base() {
		return nil
	}
	return m.stack[len(m.stack)-1]
}

// global pushes one of the allowed names.
func (m *machine) global() error {
	rest := m.data[m.at:]
	for _, allowed := range []name{reconstruct, ndarray, dtype} {
		line := []byte(allowed + "\n")
		line[bytes.IndexByte(line, ' ')] = '\n' // module and name have a line each
		if bytes.HasPrefix(rest, line) {
			m.at += len(line)
			m.push(allowed)
			return nil
		}
	}
	return m.errorf("%w: %q", ErrName, rest[:min(len(rest), 40)])
}

// reduce stands for a call. The two that occur make an array without contents,
// and the type of unsigned bytes.
func (m *machine) reduce() error {
	call, err := m.pop(2)
	if err != nil {
		return err
	}
	arguments, ok := call[1].(tuple)
	switch {
	case ok && call[0] == reconstruct && len(arguments) == 3 && arguments[0] == ndarray && isTuple(arguments[1], 0) && arguments[2] == "b":
		m.push(&Array{})
	case ok && call[0] == dtype && isTuple(arguments, "u1", 0, 1):
		m.push(uint8Type{})
	default:
		return m.errorf("%w: a call other than those that make an array of bytes", ErrStack)
	}
	return nil
}

// build gives the value below the top its contents.
func (m *machine) build() error {
	items, err := m.pop(2)
	if err != nil {
		return err
	}
	state, ok := items[1].(tuple)
	if !ok {
		return m.errorf("%w: contents of type %T", ErrStack, items[1])
	}
	switch target := items[0].(type) {
	case uint8Type:
		if !isTuple(state, 3, "|", nil, nil, nil, -1, -1, 0) {
			return m.errorf("%w: not the type of unsigned bytes", ErrStack)
		}
	case *Array:
		if err := m.fill(target, state); err != nil {
			return err
		}
	default:
		return m.errorf("%w: contents for a %T", ErrStack, target)
	}
	m.stack = append(m.stack, items[0]) // the same value again
	return nil
}

// fill reads the state of an array: version 1, shape, type, whether in Fortran
// order, bytes.
func (m *machine) fill(a *Array, state tuple) error {
	if len(state) != 5 || state[0] != 1 || state[2] != (uint8Type{}) || state[3] != false {
		return m.errorf("%w: not the contents of an array of unsigned bytes in C order", ErrStack)
	}
	shape, ok1 := state[1].(tuple)
	data, ok2 := state[4].([]byte)
	if !ok1 || !ok2 || a.Data != nil {
		return m.errorf("%w: an array has a shape and one string of more than 255 bytes", ErrStack)
	}
	size := 1
	for _, d := range shape {
		n, ok := d.(int)
		if !ok || n < 1 || size > len(data)/n {
			return m.errorf("shape %v does not fit %d bytes", shape, len(data))
		}
		size *= n
		a.Shape = append(a.Shape, n)
	}
	if size != len(data) {
		return m.errorf("shape %v does not fit %d bytes", shape, len(data))
	}
	a.Data = data
	return nil
}

// isTuple tells whether v is a tuple of just these integers, strings and nils.
func isTuple(v any, want ...any) bool {
	t, ok := v.(tuple)
	if !ok {
		return false
	}
	return slices.EqualFunc(t, want, func(a, b any) bool {
		switch a.(type) {
		case int, string, nil:
			return a == b
		}
		return false
	})
}
