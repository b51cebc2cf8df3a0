package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/tables"
)

// changes is the flag --set: PATH=VALUE, several times. A path names a field of an experiment, such as
// "Recipe.Groups[0].Rate", as experiment.Differences does.
type changes []string

// changedMark is added to the name of the preset of a changed experiment.
const changedMark = ", changed"

// apply returns the changed experiments, each once. A field that does not exist, a value that it cannot have and an
// experiment that cannot be are errors.
func (c changes) apply(list experiment.Experiments) (experiment.Experiments, error) {
	if len(c) == 0 {
		return list, nil
	}
	given := map[string]bool{}
	changed := slices.Clone(list)
	for _, text := range c {
		field, value, has := strings.Cut(text, "=")
		if !has || field == "" || value == "" {
			return nil, usagef("--set: %q is not PATH=VALUE, such as Recipe.Epochs=3", text)
		}
		if given[field] {
			return nil, usagef("--set: %s is given twice", field)
		}
		given[field] = true
		steps, err := pathOf(field)
		if err != nil {
			return nil, usagef("--set %s: %w", text, err)
		}
		for i, e := range changed {
			now, err := with(reflect.ValueOf(e), steps, "the experiment", value)
			if err != nil {
				return nil, usagef("--set %s: %v: %w", text, e, err)
			}
			changed[i] = now.Interface().(experiment.Experiment)
		}
	}
	for i := range changed {
		if err := changed[i].Check(); err != nil {
			return nil, usagef("--set %s: %w", strings.Join(c, " --set "), err)
		}
		if changed[i].ID() != list[i].ID() {
			changed[i].Preset = strings.TrimSuffix(changed[i].Preset, changedMark) + changedMark
		}
	}
	return tables.Union(changed), nil
}

// pathStep is a part of a path: the name of a field, or the place in a list.
var pathStep = regexp.MustCompile(`^(?:\.?([A-Za-z_][A-Za-z0-9_]*)|\[([0-9]+)\])`)

// pathOf are the parts of a path; those that are places in lists are numbers.
func pathOf(text string) (steps []string, err error) {
	for rest := "." + text; rest != ""; {
		found := pathStep.FindStringSubmatch(rest)
		if found == nil {
			return nil, fmt.Errorf("%q is not a path such as Recipe.Groups[0].Rate", text)
		}
		steps, rest = append(steps, found[1]+found[2]), rest[len(found[0]):]
	}
	return steps, nil
}

// with is a copy of a value in which what a path leads to was set. at is the path of the value itself.
func with(v reflect.Value, path []string, at, text string) (reflect.Value, error) {
	changed := reflect.New(v.Type()).Elem()
	changed.Set(v)
	switch {
	case v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer:
		if v.IsNil() {
			return v, fmt.Errorf("%s is nil here, and cannot be changed by a text", at)
		}
		inner, err := with(v.Elem(), path, at, text)
		if err != nil {
			return v, err
		}
		if v.Kind() == reflect.Pointer {
			changed.Set(reflect.New(v.Type().Elem()))
			changed = changed.Elem()
			changed.Set(inner)
			return changed.Addr(), nil
		}
		changed.Set(inner)
	case len(path) == 0:
		return changed, set(changed, at, text)
	case v.Kind() == reflect.Struct:
		i, names := fieldOf(v.Type(), path[0])
		if i < 0 {
			return v, fmt.Errorf("%s, of type %s, has no field %q that can be changed; it has %s", at, v.Type(), path[0], inWords(names))
		}
		inner, err := with(v.Field(i), path[1:], path[0], text)
		if err != nil {
			return v, err
		}
		changed.Field(i).Set(inner)
	case v.Kind() == reflect.Slice:
		i, err := strconv.Atoi(path[0])
		if err != nil || i >= v.Len() {
			return v, fmt.Errorf("%s has no entry %s; it is a list of %d, numbered from 0", at, path[0], v.Len())
		}
		inner, err := with(v.Index(i), path[1:], fmt.Sprintf("%s[%d]", at, i), text)
		if err != nil {
			return v, err
		}
		changed.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		reflect.Copy(changed, v)
		changed.Index(i).Set(inner)
	default:
		return v, fmt.Errorf("%s is of type %s, and has no field %q", at, v.Type(), path[0])
	}
	return changed, nil
}

// fieldOf is the number of the field that has a name in paths, or -1, and the names of all fields.
func fieldOf(t reflect.Type, name string) (number int, names []string) {
	number = -1
	for i := range t.NumField() {
		field := t.Field(i)
		known := field.Tag.Get("experiment")
		if known == "-" || !field.IsExported() { // which decides no numbers
			continue
		}
		if known == "" {
			known = field.Name
		}
		if names = append(names, known); known == name {
			number = i
		}
	}
	return number, names
}

func inWords(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// mostChoices bounds the numbers that are tried to find the one with a text.
const mostChoices = 64

// set sets a plain value, or a list of them, by its text. Choices among few have a text of their own.
func set(v reflect.Value, at, text string) error {
	fail := func(what string) error { return fmt.Errorf("%s cannot be %q; want %s", at, text, what) }
	_, isChoice := v.Interface().(fmt.Stringer)
	switch kind := v.Kind(); {
	case kind == reflect.String:
		v.SetString(text)
	case isChoice && v.CanInt():
		var there []string
		for i := range int64(mostChoices) {
			v.SetInt(i)
			name := fmt.Sprint(v.Interface())
			if name == text {
				return nil
			}
			if strings.HasSuffix(name, fmt.Sprintf("(%d)", i)) { // the text of a number that is none of them
				break
			}
			there = append(there, name)
		}
		return fail(strings.Join(there, ", "))
	case kind == reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fail("true or false")
		}
		v.SetBool(b)
	case v.CanInt():
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return fail("a whole number")
		}
		v.SetInt(n)
	case v.CanUint():
		n, err := strconv.ParseUint(text, 10, v.Type().Bits())
		if err != nil {
			return fail("a whole number of at least 0")
		}
		v.SetUint(n)
	case v.CanFloat():
		f, err := strconv.ParseFloat(text, v.Type().Bits())
		if err != nil {
			return fail("a number")
		}
		v.SetFloat(f)
	case kind == reflect.Slice:
		if err := json.Unmarshal([]byte(text), v.Addr().Interface()); err != nil {
			return fail("a list, such as [50,50]")
		}
	case kind == reflect.Struct:
		_, names := fieldOf(v.Type(), "")
		return fmt.Errorf("%s is of type %s; set one of its fields: %s", at, v.Type(), inWords(names))
	default:
		return fmt.Errorf("%s is of type %s, which a text cannot say", at, v.Type())
	}
	return nil
}
