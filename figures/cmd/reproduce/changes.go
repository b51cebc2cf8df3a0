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

// changedMark is added to the name of the preset of a changed experiment.
const changedMark = ", changed"

// changed are experiments with the changes of --set, each once. A change is PATH=VALUE, where the path names a field as
// spec.Differences does, such as "Recipe.Groups[0].Rate". A field that does not exist, a value that it cannot have
// and an experiment that cannot be are errors.
func changed(list experiment.Experiments, changes []string) (experiment.Experiments, error) {
	all := slices.Clone(list)
	given := map[string]bool{}
	for _, change := range changes {
		path, text, has := strings.Cut(change, "=")
		if !has || !fieldPath.MatchString(path) || text == "" || given[path] {
			return nil, usagef("--set: %q is not PATH=VALUE, such as Recipe.Groups[0].Rate=0.5, or the path is given twice", change)
		}
		given[path] = true
		for i, e := range all {
			now, err := with(reflect.ValueOf(e), pathStep.FindAllString(path, -1), "the experiment", text)
			if err != nil {
				return nil, usagef("--set %s: %v: %w", change, e, err)
			}
			all[i] = now.Interface().(experiment.Experiment)
		}
	}
	for i, e := range all {
		if len(changes) == 0 {
			break
		}
		if err := e.Check(); err != nil {
			return nil, usagef("--set %s: %w", strings.Join(changes, " --set "), err)
		}
		if e.ID() != list[i].ID() {
			all[i].Preset = strings.TrimSuffix(e.Preset, changedMark) + changedMark
		}
	}
	return tables.Union(all), nil
}

// The steps of a path are names of fields and places in lists.
var (
	fieldPath = regexp.MustCompile(`^[A-Za-z]\w*(\.[A-Za-z]\w*|\[\d+\])*$`)
	pathStep  = regexp.MustCompile(`\w+`)
)

// with is a copy of a value, which stays as it is, with a text set where the path leads. at is the last step before it.
func with(v reflect.Value, path []string, at, text string) (reflect.Value, error) {
	now := reflect.New(v.Type()).Elem()
	now.Set(v)
	var part reflect.Value // that the path leads into
	switch kind := v.Kind(); {
	case kind == reflect.Interface && !v.IsNil():
		inner, err := with(v.Elem(), path, at, text)
		if err == nil {
			now.Set(inner)
		}
		return now, err
	case len(path) == 0:
		return now, set(now, at, text)
	case kind == reflect.Struct && slices.Contains(fields(v.Type()), path[0]):
		part = now.FieldByName(path[0])
	case kind == reflect.Struct:
		return v, fmt.Errorf("%s, of type %s, has no field %q that can be set; it has %s", at, v.Type(), path[0], strings.Join(fields(v.Type()), ", "))
	case kind == reflect.Slice:
		i, err := strconv.Atoi(path[0])
		if err != nil || i >= v.Len() {
			return v, fmt.Errorf("%s has no entry %q; it is a list of %d, numbered from 0", at, path[0], v.Len())
		}
		now.Set(reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, v.Len()), v))
		part = now.Index(i)
	default:
		return v, fmt.Errorf("%s, of type %s, has no field %q", at, v.Type(), path[0])
	}
	inner, err := with(part, path[1:], path[0], text)
	if err == nil {
		part.Set(inner)
	}
	return now, err
}

// fields are the names of the fields that decide an experiment's numbers.
func fields(t reflect.Type) (names []string) {
	for f := range t.Fields() {
		switch tag := f.Tag.Get("experiment"); {
		case tag == "+":
			names = append(names, fields(f.Type)...)
		case f.IsExported() && tag != "-":
			names = append(names, f.Name)
		}
	}
	return names
}

var jsonNumber = regexp.MustCompile(`[0-9.]+[eE]?[-+]?[0-9]*`)

// mostChoices bounds the numbers that are tried to find a choice by its text.
const mostChoices = 64

// set sets a number, a bool, a string, a choice among few, which has a text of its own, or a list.
func set(v reflect.Value, at, text string) error {
	_, isChoice := v.Interface().(fmt.Stringer)
	switch {
	case v.Kind() == reflect.String:
		v.SetString(text)
	case v.Kind() == reflect.Struct:
		return fmt.Errorf("%s is of type %s; set one of its fields: %s", at, v.Type(), strings.Join(fields(v.Type()), ", "))
	case isChoice && v.CanInt():
		var names []string
		for i := range int64(mostChoices) {
			v.SetInt(i)
			name := fmt.Sprint(v.Interface())
			if name == text {
				return nil
			}
			if strings.HasSuffix(name, ")") { // as in "GradientFlow(3)", which is no choice
				break
			}
			names = append(names, name)
		}
		return fmt.Errorf("%s cannot be %q; it can be %s", at, text, strings.Join(names, ", "))
	default:
		v.SetZero() // a list of its own, not the one of the experiment before
		if err := json.Unmarshal([]byte(text), v.Addr().Interface()); err != nil || text == "null" {
			return fmt.Errorf("%s cannot be %q; it is of type %s", at, text, v.Type())
		}
		for _, number := range jsonNumber.FindAllString(text, -1) {
			if value, err := strconv.ParseFloat(number, 64); err == nil && value == 0 && strings.ContainsAny(number[:strings.IndexAny(number+"e", "eE")], "123456789") {
				return fmt.Errorf("%s cannot be %s; a float64 so near 0 would be 0", at, number)
			}
		}
	}
	return nil
}
