package experiment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"sync"

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
//   - A Program is written as Method.Sampler, or with a method FormerDecision as Task.Decision, and Layers that are a
//     nets.Process as Method.Process: the fields of stored results.
//   - More than 64 entries are written as their number and a digest.
//   - A custom type or nets.Func (from outside this module) has no name here, since its code may change. Instead the Spec has digests
//     of what the experiment computes: of the initial values, and of the graphs of loss, gradients, updates and prediction for
//     seven examples and for the batches of training. It also has digests of the data of all splits of a custom Source,
//     and of the results of a custom Schedule, Order and Augmentation. So edited code is another experiment, and renamed
//     code the same. Of a Program, an AfterTraining and what a custom nets.Process does after training only name
//     and fields count. Engine.Notes says so if a stored result is used.
//
// Functions, maps, channels, cycles of pointers and numbers that are not finite are errors.
func (e Experiment) Spec() ([]byte, error) {
	text, _, err := e.spec(context.Background())
	return text, e.wrap(err)
}

// spec is Spec, and says whether the experiment has custom parts (spec.IsCustom).
func (e Experiment) spec(ctx context.Context) (text []byte, custom bool, err error) {
	e.Split, e.Seed = 0, 0
	t, custom, err := spec.Of(e, "Experiment")
	if _, decides := e.Method.Program.(interface{ FormerDecision() }); err == nil { // fields as they were when results were stored
		method, task := t.(map[string]spec.Tree)["Method"].(map[string]spec.Tree), t.(map[string]spec.Tree)["Task"].(map[string]spec.Tree)
		if decides {
			task["Decision"] = method["Sampler"]
			delete(method, "Sampler")
		}
		if e.Method.IsProcess() {
			method["Process"] = method["Layers"]
			delete(method, "Layers")
		}
	}
	if custom = custom || e.unseen() != nil; err == nil && custom {
		t.(map[string]spec.Tree)["code"], err = e.code(ctx)
	}
	return []byte(spec.Text(t)), custom, err
}

// groups are groups by their spec.Key, without those that have custom parts.
var groups sync.Map

func (e Experiment) group(ctx context.Context) (string, error) {
	e.Split, e.Seed = 0, 0
	key := spec.Key(e)
	if known, has := groups.Load(key); has {
		return known.(string), nil
	}
	text, custom, err := e.spec(ctx)
	group := spec.Digest(text)
	if key != nil && !custom && err == nil {
		groups.Store(key, group)
	}
	return group, err
}

// ID is the experiment's identity, 16 hexadecimal digits: a digest of its group, split and seed. It panics where Check
// returns an error.
func (e Experiment) ID() string { return idOf(e.Group(), e.Split, e.Seed) }

// Group is the identity without split and seed: a digest of Spec. The experiments of a group are averaged in one cell
// of a table, and can be trained together. It panics where Check returns an error.
func (e Experiment) Group() string {
	group, err := e.group(context.Background())
	if err != nil {
		panic(e.wrap(err))
	}
	return group
}

// IDs returns the ID of each experiment. It is faster than Experiment.ID for each if experiments of one group follow each
// other.
func (l Experiments) IDs() []string {
	ids, group := make([]string, len(l)), grouper()
	for i, e := range l {
		of, err := group(context.Background(), e)
		if err != nil {
			panic(e.wrap(err))
		}
		ids[i] = idOf(of, e.Split, e.Seed)
	}
	return ids
}

// grouper returns a function that finds the group of an experiment, and remembers the previous experiment's: looking at
// your own data and graphs again for each split takes time.
func grouper() func(ctx context.Context, e Experiment) (string, error) {
	var before any
	var group string
	var failed error
	return func(ctx context.Context, e Experiment) (string, error) {
		if now := e.identified(); !reflect.DeepEqual(now, before) {
			before = now
			group, failed = e.group(ctx)
		}
		return group, failed
	}
}

// identified is the part of an experiment that decides its group's identity, for reflect.DeepEqual. A reflect.Value stands for the
// function of its network: values of closures over other variables differ.
func (e Experiment) identified() any {
	unseen := e.unseen()
	var network reflect.Value
	if f, is := e.Task.Network.(nets.Func); is {
		network, f.Build = reflect.ValueOf(f.Build), nil
		e.Task.Network = f
	}
	e.Task.Name, e.Method.Key, e.Method.Name, e.Preset, e.Split, e.Seed = "", "", "", "", 0, 0
	e.Task.Metrics, e.Task.AfterTraining = nil, nil
	return []any{e, network, unseen}
}

// idOf is the identity of an experiment of a group.
func idOf(group string, split int, seed uint64) string {
	return spec.Digest([]byte(group + " split " + strconv.Itoa(split) + " seed " + strconv.FormatUint(seed, 10)))
}

// unseen are the names of the custom parts whose code shows in no graph and no data.
func (e Experiment) unseen() (names []spec.Tree) {
	parts := []any{e.Method.Program, e.Task.AfterTraining}
	if e.Method.IsProcess() { // which does more than its graph shows
		parts = append(parts, e.Method.Layers)
	}
	for _, part := range parts {
		if !spec.IsCustom(part) {
			continue
		}
		if v := reflect.Indirect(reflect.ValueOf(part)); v.Kind() == reflect.Func {
			names = append(names, runtime.FuncForPC(v.Pointer()).Name())
		} else {
			names = append(names, v.Type().PkgPath()+"."+v.Type().Name())
		}
	}
	return names
}

// code has digests of what an experiment with custom parts computes: of its graphs and initial values; of
// the data of all splits, if the source is custom; and of the answers of a recipe's parts. It has the names of the unseen.
func (e Experiment) code(ctx context.Context) (found map[string]spec.Tree, err error) {
	defer recovered(&err)
	d, err := e.load(ctx)
	if err != nil {
		return nil, err
	}
	found = map[string]spec.Tree{}
	e.Task.Likelihood = d.likelihood
	graphs, err := e.graph(d)
	if err == nil {
		found["graphs"], err = graphs.Code(e.Recipe.Settings, !e.Method.IsProcess())
	}
	if err != nil {
		return nil, err
	}
	if _, custom, _ := spec.Of(&e.Task.Data, "Task.Data"); custom { // spec.Of(e) has the same errors
		if found["data"], err = dataOf(ctx, e.Task.Data, map[int]Data{e.Split: d}); err != nil {
			return nil, err
		}
	}
	r := e.Recipe
	if spec.IsCustom(r.Schedule) || spec.IsCustom(r.Order) || spec.IsCustom(r.Augmentation) {
		found["recipe"] = spec.Answers(r.Settings, d.Train.Len(), e.networkSeed(0))
	}
	if names := e.unseen(); names != nil {
		found["unseen"] = names
	}
	return found, nil
}

// dataOf is a digest of the data of all splits of a source, some of which are loaded.
func dataOf(ctx context.Context, source Source, loaded map[int]Data) (string, error) {
	h := sha256.New()
	for split := range source.Splits() { // even if some cannot be loaded
		d, has := loaded[split]
		var err error
		if !has {
			d, err = source.Load(ctx, split)
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if d.noUnit {
			d.Unit = 0
		}
		fmt.Fprintln(h, err == nil, Digest(d.all()...), d.Unit, d.Zero)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// checkData says whether the loaded data of some splits of a source are those by which a group is known.
func (g *group) checkData(ctx context.Context, source Source, loaded map[int]Data) error {
	var known struct {
		Task struct{ Data json.RawMessage }
		Code struct{ Data string }
	}
	tree, _, err := spec.Of(&source, "Task.Data")
	err = errors.Join(err, json.Unmarshal(g.line.Experiment, &known))
	now := known.Code.Data
	if err == nil && now != "" {
		now, err = dataOf(ctx, source, loaded)
	}
	if err == nil && (now != known.Code.Data || spec.Text(tree) != string(known.Task.Data)) {
		err = errors.New("the data have changed since they were read to identify the experiment, so that its result would be kept as that of other data; a Source gives the same data whenever a split is loaded")
	}
	return err
}
