package experiment

import (
	"context"
	"reflect"
	"strconv"
	"unsafe"

	"densityuncertainty/dul/nets"
	"densityuncertainty/figures/spec"
)

// Spec is the experiment as canonical JSON, but for its split and seed: what decides its numbers, by the names of
// types and fields. Experiments with equal specs are of one group.
//
//   - A field that is zero is left out. So a field that is added to a type later changes no identity, if its zero value
//     means what was done before.
//   - A pointer is the value that it points to. Nil and a pointer to zero differ.
//   - Fields without a capital letter count too. Leave out those that change while a program runs, such as a cache.
//   - A value in an interface is written with its type's name, as in {"InitStd":0.1,"type":"dul.Density"}.
//   - A type with a method Identity is written as that method says; see spec.Identifier.
//   - A type of integers with a method String, such as a choice among few, is written as its text.
//   - A nets.Func of this module is its name.
//   - The tag `experiment:"-"` leaves a field out. `experiment:"Name"` is for a field that was renamed: it keeps the
//     name that it had, and with it the identity of stored results. `experiment:"+"` writes the fields of an embedded
//     struct as if they were fields of the struct that it is in.
//   - More than 64 entries are written as their number and a digest.
//   - A type or a nets.Func from outside this module has no name here, since a name says nothing about code that may have
//     changed. Instead the Spec has digests of what the experiment computes: of the graphs of loss, gradients and
//     prediction and of the initial values, and if the Source is from outside, of the data of all its splits. So edited code
//     is another experiment, and renamed code is the same. Of After, a Decision, a Sampler or a part of the Recipe from
//     outside no graph shows what they do: the Spec then has a digest of the running program.
//
// Functions, maps, channels, cycles of pointers and numbers that are not finite are errors.
func (e Experiment) Spec() ([]byte, error) {
	text, err := e.spec(context.Background())
	return text, e.problem(err)
}

func (e Experiment) spec(ctx context.Context) ([]byte, error) {
	e.Split, e.Seed = 0, 0
	t, outside, err := spec.Of(e, "Experiment")
	if err == nil && (outside || e.hidden()) {
		t.(map[string]spec.Tree)["code"], err = e.code(ctx)
	}
	return []byte(spec.Text(t)), err
}

// ID is the experiment's identity, 16 hexadecimal digits: a digest of its group, split and seed. It panics where Check
// returns an error.
func (e Experiment) ID() string { return idOf(e.Group(), e.Split, e.Seed) }

// Group is the identity without split and seed: a digest of Spec. The experiments of a group are averaged in one cell
// of a table, and can be trained together. It panics where Check returns an error.
func (e Experiment) Group() string {
	text, err := e.Spec()
	if err != nil {
		panic(err)
	}
	return spec.Digest(text)
}

// IDs are the identities of the experiments. It is faster than Experiment.ID for each of them where neighbours are of one
// group.
func (l Experiments) IDs() []string {
	ids, group := make([]string, len(l)), grouper()
	for i, e := range l {
		of, err := group(context.Background(), e)
		if err != nil {
			panic(e.problem(err))
		}
		ids[i] = idOf(of, e.Split, e.Seed)
	}
	return ids
}

// grouper returns a function that finds the group of an experiment, and remembers that of the experiment before: looking at
// your own data and graphs again for each split takes time.
func grouper() func(ctx context.Context, e Experiment) (string, error) {
	var before any
	var group string
	var failed error
	return func(ctx context.Context, e Experiment) (string, error) {
		if now := e.identified(); !reflect.DeepEqual(now, before) {
			text, err := e.spec(ctx)
			before, group, failed = now, spec.Digest(text), err
		}
		return group, failed
	}
}

// identified is an experiment without what is no part of its group's identity, and with a pointer for the function of its
// network.
func (e Experiment) identified() any {
	after := spec.Outside(e.Task.After)
	var network unsafe.Pointer
	if f, is := e.Task.Network.(nets.Func); is {
		network = *(*unsafe.Pointer)(unsafe.Pointer(&f.Build)) // which differs for closures over other variables
		f.Build = nil
		e.Task.Network = f
	}
	e.Task.Name, e.Method.Key, e.Method.Name, e.Preset, e.Split, e.Seed = "", "", "", "", 0, 0
	e.Task.Metrics, e.Task.After = nil, nil
	return []any{e, network, after}
}

// idOf is the identity of an experiment of a group.
func idOf(group string, split int, seed uint64) string {
	return spec.Digest([]byte(group + " split " + strconv.Itoa(split) + " seed " + strconv.FormatUint(seed, 10)))
}
