package spec

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

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
