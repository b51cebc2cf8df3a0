package methods

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Field is one field of a protocol that an experiment can set by name: the name is that of the options in result
// lines and of --set on the command line.
type Field struct {
	Name string // of the option
	Doc  string // what it is, and why someone would change it

	index   []int
	kind    string   // of numbers: "positive", "count" (at least 1), "whole" (at least 0), "rate" (between 0 and 1) or "step" (to mostStep)
	choices []string // of text: its values; "", the zero value, is not among them
	only    string   // the studies it is for, apart by blanks; "" for all
}

// Fields are the fields with an option tag of a protocol, a struct, and of the structs that it embeds, in their
// order. study leaves out those whose tag "only" names others; "" leaves out none. The list is shared and must not be
// changed: experiments ask for it by the thousand.
//
// The tags are option:"name" doc:"what it is", for numbers range:"positive|count|whole|rate|step", for text choices:"its values,
// apart by blanks", and only:"the studies it is for".
func Fields(protocol any, study string) []Field {
	key := fieldsKey{reflect.TypeOf(protocol), study}
	if known, has := fieldsOf.Load(key); has {
		return known.([]Field)
	}
	var fields []Field
	for _, f := range reflect.VisibleFields(key.protocol) {
		name, has := f.Tag.Lookup("option")
		if !has {
			continue
		}
		field := Field{Name: name, Doc: f.Tag.Get("doc"), index: f.Index, kind: f.Tag.Get("range"), choices: strings.Fields(f.Tag.Get("choices")),
			only: f.Tag.Get("only")}
		if study == "" || field.only == "" || slices.Contains(strings.Fields(field.only), study) {
			fields = append(fields, field)
		}
	}
	fieldsOf.Store(key, fields)
	return fields
}

// fieldsOf are the fields of each type and study that were asked for, by fieldsKey.
var fieldsOf sync.Map

type fieldsKey struct {
	protocol reflect.Type
	study    string
}

// Text is the field's value in a protocol as an option has it; "" for a value that is the method's own.
func (f Field) Text(protocol any) string {
	v := reflect.ValueOf(protocol).FieldByIndex(f.index)
	switch v.Kind() {
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Int:
		if v.Int() == 0 && f.kind != "whole" {
			return ""
		}
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Float64:
		if v.Float() == 0 {
			return ""
		}
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	}
	return v.String()
}

// mostStep bounds learning rates: with more, every optimizer here diverges at its first steps.
const mostStep = 100

// set parses text into the field of the struct that protocol points to.
func (f Field) set(protocol reflect.Value, text string) error {
	v := protocol.FieldByIndex(f.index)
	switch v.Kind() {
	case reflect.Bool:
		if text != "true" && text != "false" {
			return fmt.Errorf("is %q, want true or false", text)
		}
		v.SetBool(text == "true")
	case reflect.Int:
		least := int64(1)
		if f.kind == "whole" {
			least = 0
		}
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < least {
			return fmt.Errorf("is %q, want a whole number of at least %d", text, least)
		}
		v.SetInt(n)
	case reflect.Float64:
		most, wants := math.MaxFloat64, "a positive number"
		switch f.kind {
		case "rate":
			most, wants = math.Nextafter(1, 0), "a number above 0 and below 1"
		case "step":
			most, wants = mostStep, fmt.Sprintf("a positive number of at most %d", mostStep)
		}
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !(x > 0 && x <= most) {
			return fmt.Errorf("is %q, want %s", text, wants)
		}
		v.SetFloat(x)
	default:
		if !slices.Contains(f.choices, text) {
			return fmt.Errorf("is %q, want %s", text, strings.Join(f.choices, " or "))
		}
		v.SetString(text)
	}
	return nil
}

// Set sets fields of the protocol, a pointer to a struct, by the names and values of options, in the order of the
// names. It returns an error for an option that there is not, and for a value that the field cannot have.
func Set(protocol any, options map[string]string) error { return SetFor("", protocol, options) }

// SetFor is Set with the fields of a study alone: an option that would change nothing there is refused.
func SetFor(study string, protocol any, options map[string]string) error {
	fields := Fields(reflect.ValueOf(protocol).Elem().Interface(), study)
	for _, name := range slices.Sorted(maps.Keys(options)) {
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
		if i < 0 {
			names := make([]string, len(fields))
			for k, f := range fields {
				names[k] = f.Name
			}
			return fmt.Errorf("there is no option %q; the options are %s", name, strings.Join(names, ", "))
		}
		if err := fields[i].set(reflect.ValueOf(protocol).Elem(), options[name]); err != nil {
			return fmt.Errorf("option %q %w", name, err)
		}
	}
	return nil
}

// Departures are the options by which a protocol differs from another of its type: its values where they are
// not the same. Nil where there are none.
func Departures(protocol, from any) map[string]string {
	var options map[string]string
	for _, f := range Fields(protocol, "") {
		if text := f.Text(protocol); text != f.Text(from) {
			if options == nil {
				options = make(map[string]string)
			}
			options[f.Name] = text
		}
	}
	return options
}

// Unused are the names of options, among those given, that make no difference to what a protocol comes to: with
// another value of theirs in the protocol the result of resolve is the same.
func Unused[P any](protocol P, options map[string]string, resolve func(P) any) []string {
	var unused []string
	for _, f := range Fields(protocol, "") {
		if _, given := options[f.Name]; !given {
			continue
		}
		other := protocol
		f.change(reflect.ValueOf(&other).Elem())
		if reflect.DeepEqual(resolve(protocol), resolve(other)) {
			unused = append(unused, f.Name)
		}
	}
	return unused
}

// DeparturesOf is Departures without those options that Unused lists. An option that is given the value that the method
// would have by itself is left: the identities of stored results have such options.
func DeparturesOf[P any](protocol, from P, resolve func(P) any) map[string]string {
	options := Departures(protocol, from)
	for _, name := range Unused(protocol, options, resolve) {
		delete(options, name)
	}
	if len(options) == 0 {
		return nil
	}
	return options
}

// RefuseUnused is an error that names the options of a method that Unused lists.
func RefuseUnused[P any](protocol P, options map[string]string, m Method, resolve func(P) any) error {
	unused := Unused(protocol, options, resolve)
	if len(unused) == 0 {
		return nil
	}
	slices.Sort(unused)
	return fmt.Errorf("%s has no use for the option %s: with any value its layers and its training are the same; leave it out", m.Name, strings.Join(unused, ", "))
}

// change gives the field of a protocol another value that it can have.
func (f Field) change(protocol reflect.Value) {
	v := protocol.FieldByIndex(f.index)
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int:
		v.SetInt(v.Int() + 1)
	case reflect.Float64:
		v.SetFloat(v.Float() / 2)
	default:
		i := slices.IndexFunc(f.choices, func(c string) bool { return c != v.String() })
		v.SetString(f.choices[i])
	}
}

// Version is a protocol in one fidelity, for the table of options.
type Version struct {
	Protocol any // the struct as its constructor makes it
	// Filled is the protocol with the numbers filled in that are the method's own.
	Filled func(m Method) any
	// Also are the same in other settings; what differs in them is listed too, after their Setting.
	Setting string
	Also    []Version
}

// DescribeOptions lists the options of a study's protocol, made from its fields, as rows of text: the name, its value
// in each of the versions, and what it is. Where the value is each method's own, it is the one that most methods have,
// and those of the others.
func DescribeOptions(study string, versions ...Version) [][]string {
	var rows [][]string
	for _, f := range Fields(versions[0].Protocol, study) {
		row := []string{f.Name}
		for _, v := range versions {
			value := f.value(v)
			for _, other := range v.Also {
				if text := f.value(other); text != f.value(v) {
					value += fmt.Sprintf("; %s %s", other.Setting, text)
				}
			}
			row = append(row, value)
		}
		rows = append(rows, append(row, f.Doc))
	}
	return rows
}

// value is the field's value in a version as words.
func (f Field) value(v Version) string {
	if text := f.Text(v.Protocol); text != "" {
		return text
	}
	var values []string // different ones, in the order of the methods
	by := make(map[string][]string)
	for _, m := range All() {
		text := f.Text(v.Filled(m))
		if text == "" {
			continue // the method has none
		}
		if by[text] == nil {
			values = append(values, text)
		}
		by[text] = append(by[text], m.Name)
	}
	if len(values) == 0 {
		return "–"
	}
	usual := slices.MaxFunc(values, func(a, b string) int { return len(by[a]) - len(by[b]) })
	if len(by[usual]) == 1 && len(values) > 1 {
		usual = ""
	}
	var parts []string
	if usual != "" {
		parts = append(parts, usual)
	}
	for _, value := range values {
		if value != usual {
			parts = append(parts, fmt.Sprintf("%s %s", strings.Join(by[value], " and "), value))
		}
	}
	return strings.Join(parts, ", ")
}
