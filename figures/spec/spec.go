// Package spec says what values are and what networks compute. It writes values as canonical JSON, by the names of types and fields,
// and graphs as a list of their nodes. Experiments with equal JSON have the same identity; experiment.Experiment.Spec has the rules.
package spec

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
)

// An Identifier replaces its type's name and fields in a Spec by its Identity. A type that embeds an Identifier inherits
// the method, which does not know the other fields. Give such a type a method Identity of its own.
type Identifier interface {
	Identity() Identity
}

// An Identity is what an Identifier is.
type Identity struct {
	// Type is the type's name; "" means the name that it has in Go. A type that was renamed gives its old name.
	Type string
	// Value has the fields, such as a struct.
	Value any
}

// A Tree is a value in the form of JSON: a map[string]Tree, a []Tree, a string, a bool, an int64, a uint64, a float64,
// or nil for zero.
type Tree any

// Text is the tree as JSON.
func Text(t Tree) string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // trees always have a JSON form
	}
	return string(text)
}

// Of is the tree of a value. Errors call the value by the name. custom says whether a type or function in it is custom
// (IsCustom).
func Of(value any, name string) (t Tree, custom bool, err error) {
	var w writer
	t, err = w.tree(reflect.ValueOf(value), name)
	return t, w.custom, err
}

// TextOf is the JSON of a value with its type's name, such as a likelihood; "null" if it has none.
func TextOf(value any) string {
	t, _, _ := Of(&value, "")
	return Text(t)
}

// Key is a digest of a value and of what it points to, which takes a fraction of the time of Of: values with equal keys have equal
// trees, unless something is custom. It is nil for what has a map, a channel or a list too long to write out.
func Key(value any) any {
	text, is := appendKey(nil, reflect.ValueOf(value), 0)
	if !is {
		return nil
	}
	return sha256.Sum256(text)
}

func appendKey(text []byte, v reflect.Value, depth int) (_ []byte, is bool) {
	word := func(w uint64) { text = binary.NativeEndian.AppendUint64(text, w) }
	parts, part := 0, v.Field
	switch kind := v.Kind(); {
	case depth > deepest:
		return nil, false
	case kind == reflect.Invalid: // behind nil
		word(0)
	case kind == reflect.Interface, kind == reflect.Pointer:
		if held := v.Elem(); kind == reflect.Interface && held.IsValid() {
			word(uint64(reflect.ValueOf(held.Type()).Pointer())) // the type
		} else if held.IsValid() {
			word(1)
		}
		return appendKey(text, v.Elem(), depth+1)
	case kind == reflect.Func, (kind == reflect.Map || kind == reflect.Chan) && v.IsNil(): // a function has a name, or is custom
		word(uint64(v.Pointer()))
	case kind == reflect.String:
		word(uint64(v.Len()))
		text = append(text, v.String()...)
	case kind == reflect.Bool:
		text = strconv.AppendBool(text, v.Bool())
	case v.CanInt():
		word(uint64(v.Int()))
	case v.CanUint():
		word(v.Uint())
	case v.CanFloat():
		word(math.Float64bits(v.Float()))
	case kind == reflect.Struct:
		parts = v.NumField()
	case (kind == reflect.Slice || kind == reflect.Array) && v.Len() <= longList:
		parts, part = v.Len(), v.Index
		word(uint64(parts))
	default:
		return nil, false
	}
	for i := range parts {
		if text, is = appendKey(text, part(i), depth+1); !is {
			return nil, false
		}
	}
	return text, true
}

// longList is the most entries that a list is written out with.
const longList = 64

// deepest is how many values a value may be inside of: one that points to itself has no tree.
const deepest = 100

// A writer makes trees.
type writer struct {
	depth   int
	display bool // all fields are there, with their names in Go, and so are the names of custom types
	custom  bool // whether something was custom
}

func (w *writer) tree(v reflect.Value, path string) (Tree, error) {
	if w.depth++; w.depth > deepest {
		return nil, fmt.Errorf("%s is inside of more than %d values; one that it is itself a part of has no identity", path, deepest)
	}
	defer func() { w.depth-- }()
	if own, is := identityOf(v); is {
		return w.tree(reflect.ValueOf(own.Value), path)
	}
	if v.IsValid() && v.CanInterface() {
		if f, is := v.Interface().(nets.Func); is && v.Kind() == reflect.Struct {
			own := IsCustom(f.Build)
			w.custom = w.custom || own
			switch {
			case own && !w.display:
				f.Name = ""
			case !own && f.Name == "":
				return nil, fmt.Errorf("%s is a nets.Func of this module without a Name, by which its stored results are known", path)
			}
			return map[string]Tree{"Name": f.Name}, nil
		}
	}
	if text, is := textOfChoice(v); is && !v.IsZero() {
		return text, nil
	}
	switch v.Kind() {
	case reflect.Invalid:
		return nil, nil
	case reflect.Interface:
		return w.interfaceTree(v, path)
	case reflect.Pointer:
		return w.pointerTree(v, path)
	case reflect.Struct:
		return w.structTree(v, path)
	case reflect.Slice, reflect.Array:
		return w.listTree(v, path)
	case reflect.String:
		return v.String(), nil
	case reflect.Bool:
		return v.Bool(), nil
	case reflect.Float64, reflect.Float32:
		if f := v.Float(); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f + 0, nil // -0 is 0
		}
		return nil, fmt.Errorf("%s is %v; it must be finite", path, v.Float())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int(), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return v.Uint(), nil
	case reflect.Func, reflect.Map, reflect.Chan:
		if v.IsNil() {
			return nil, nil
		}
	}
	if v.Kind() == reflect.Func {
		return nil, fmt.Errorf("%s is a function, which has no identity: two functions cannot be told apart. Put its settings into a type with fields, "+
			"give its type a method Identity (see spec.Identifier), or if it builds a network, name it (nets.Func)", path)
	}
	return nil, fmt.Errorf("%s is of type %s, which has no identity; use types with plain fields and lists, or give the type a method Identity (see spec.Identifier)", path, v.Type())
}

var identifierType = reflect.TypeFor[Identifier]()

// identityOf calls the method Identity of a value, also if the method's receiver is a pointer.
func identityOf(v reflect.Value) (own Identity, is bool) {
	if !v.IsValid() || !v.CanInterface() || v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer || !reflect.PointerTo(v.Type()).Implements(identifierType) {
		return own, false
	}
	pointer := reflect.New(v.Type())
	pointer.Elem().Set(v)
	return pointer.Interface().(Identifier).Identity(), true
}

// textOfChoice is the text of a number that is one of a few choices.
func textOfChoice(v reflect.Value) (text string, is bool) {
	if !v.CanInt() && !v.CanUint() || !v.CanInterface() {
		return "", false
	}
	choice, is := v.Interface().(fmt.Stringer)
	if !is {
		return "", false
	}
	return choice.String(), true
}

func (w *writer) interfaceTree(v reflect.Value, path string) (Tree, error) {
	if v.IsNil() {
		return nil, nil
	}
	held := v.Elem()
	for held.Kind() == reflect.Pointer && !held.IsNil() {
		held = held.Elem()
	}
	inner, err := w.tree(held, path)
	if err != nil {
		return nil, err
	}
	fields, is := inner.(map[string]Tree)
	if !is {
		fields = map[string]Tree{"value": inner}
	}
	own := customType(held.Type())
	w.custom = w.custom || own
	if fields["type"], err = typeName(held, path); err != nil || own && !w.display {
		fields["type"] = "own"
	}
	return fields, err
}

// modulePrefix begins the paths of this module's packages.
const modulePrefix = "densityuncertainty/"

// typeName is the name of a value's type: with the last part of its package's path in this module, where packages have
// different names, and with the whole path elsewhere.
func typeName(v reflect.Value, path string) (string, error) {
	t := v.Type()
	if own, is := identityOf(v); is && own.Type != "" {
		return own.Type, nil
	}
	if former, has := formerNames[t]; has {
		return former, nil
	}
	name := t.PkgPath() + "." + t.Name()
	switch {
	case t.Name() == "":
		return "", fmt.Errorf("%s is of the type %s without a name; give the type a name", path, t)
	case t.PkgPath() == "" || strings.HasPrefix(t.PkgPath(), modulePrefix):
		name = t.String()
	}
	return name, nil
}

// formerNames are the names in identities of types that had another name.
var formerNames = map[reflect.Type]string{
	reflect.TypeFor[train.Constant](): "experiment.Constant", reflect.TypeFor[train.Cosine](): "experiment.Cosine", reflect.TypeFor[train.Steps](): "experiment.Steps",
	reflect.TypeFor[baselines.SNGP](): "experiment.SNGP", reflect.TypeFor[baselines.DUE](): "experiment.DUE",
}

func (w *writer) pointerTree(v reflect.Value, path string) (Tree, error) {
	if v.IsNil() {
		return nil, nil
	}
	value, err := w.tree(v.Elem(), path)
	if err == nil && isZero(value) {
		value = map[string]Tree{"pointer": value} // a pointer to zero is not nil
	}
	return value, err
}

func (w *writer) structTree(v reflect.Value, path string) (Tree, error) {
	fields := map[string]Tree{}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name := field.Tag.Get("experiment")
		if name == "-" {
			continue
		}
		if name == "+" {
			inner, err := w.structTree(v.Field(i), path)
			if err != nil {
				return nil, err
			}
			maps.Copy(fields, inner.(map[string]Tree))
			continue
		}
		if name == "" || w.display {
			name = field.Name
		}
		if _, taken := fields[name]; taken || name == "type" {
			return nil, fmt.Errorf("%s has two fields %q; a tag gives a field a name that no other has, and not \"type\"", path, name)
		}
		value, err := w.tree(v.Field(i), path+"."+field.Name)
		if err != nil {
			return nil, err
		}
		if text, is := textOfChoice(v.Field(i)); is && w.display {
			value = text
		}
		if w.display || !isZero(value) {
			fields[name] = value
		}
	}
	return fields, nil
}

// isZero says whether a field is left out.
func isZero(t Tree) bool {
	switch t := t.(type) {
	case nil:
		return true
	case map[string]Tree:
		return len(t) == 0
	case []Tree:
		return len(t) == 0
	}
	return t == "" || t == false || t == 0. || t == int64(0) || t == uint64(0)
}

func (w *writer) listTree(v reflect.Value, path string) (Tree, error) {
	list := make([]Tree, v.Len())
	for i := range list {
		var err error
		if list[i], err = w.tree(v.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return nil, err
		}
	}
	if len(list) > longList {
		return map[string]Tree{"entries": int64(len(list)), "sha256": Digest([]byte(Text(list)))}, nil
	}
	return list, nil
}

// Digest is the first 16 hexadecimal digits of the SHA-256 of a text.
func Digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// IsCustom says whether a value has a type from outside this module, a function whether it is from there itself. Tests are custom,
// and nil is not.
func IsCustom(value any) bool {
	v := reflect.ValueOf(value)
	if !v.IsValid() {
		return false
	}
	if v.Kind() == reflect.Func && !v.IsNil() {
		return customName(runtime.FuncForPC(v.Pointer()).Name())
	}
	return customType(v.Type())
}

func customType(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath() != "" && customName(t.PkgPath())
}

// customName is IsCustom for the path of a package, or the full name of a function.
func customName(name string) bool {
	return !strings.HasPrefix(name, modulePrefix) || strings.HasSuffix(name, "_test") || strings.Contains(name, "_test.")
}

// A Difference is a field in which two values differ, by its name in Go, such as "Method.Layers.InitStd", with both
// values as JSON. A nil interface and a field that only one of the values has are "null".
type Difference struct {
	Path, Is, Was string
}

// Differences lists the fields in which a value differs from another one, such as a preset's, for display.
func Differences(is, was any) ([]Difference, error) {
	a, b := writer{display: true}, writer{display: true}
	x, err := a.tree(reflect.ValueOf(is), "")
	if err != nil {
		return nil, err
	}
	y, err := b.tree(reflect.ValueOf(was), "")
	return compare(x, y, ""), err
}

// compare lists the differences between two trees below a path.
func compare(a, b Tree, path string) (found []Difference) {
	x, isX := a.(map[string]Tree)
	y, isY := b.(map[string]Tree)
	list, isList := a.([]Tree)
	other, alsoList := b.([]Tree)
	switch {
	case isX && isY:
		all := maps.Clone(x)
		maps.Copy(all, y)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			_, has := x[name]
			if _, both := y[name]; (!has || !both) && isZero(all[name]) { // a field of another type, which is not set
				continue
			}
			found = append(found, compare(x[name], y[name], strings.TrimPrefix(path+"."+name, "."))...)
		}
	case isList && alsoList && len(list) == len(other):
		for i := range list {
			found = append(found, compare(list[i], other[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
	default:
		if is, was := Text(a), Text(b); is != was {
			return []Difference{{Path: path, Is: is, Was: was}}
		}
	}
	return found
}
