package experiment

import (
	"encoding/json"
	strict "encoding/json/v2"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"densityuncertainty/figures/results"
)

// A Result is what one experiment measured, and where and how long it ran. A store keeps it as a line of JSON with a
// checksum, without names, which are in the line of its group.
type Result struct {
	ID    string `json:"id"`    // Experiment.ID
	Group string `json:"group"` // Experiment.Group
	Split int    `json:"split"`
	Seed  uint64 `json:"seed"`
	// Task, Method and Preset are the names under which the experiment is shown.
	Task, Method, Preset string `json:"-"`

	// Metrics are the numbers of Task.Metrics and Task.Inspect.
	Metrics map[string]float64 `json:"metrics,omitempty"`
	// NotFinite lists the metrics that came out infinite or as NaN, such as "\"skill\" is NaN". They are not among Metrics.
	NotFinite []string `json:"not_finite,omitempty"`
	// Diverged says that training or prediction gave numbers that are not finite. There are no Metrics then.
	Diverged bool `json:"diverged,omitempty"`

	Backend string `json:"backend"`
	Device  string `json:"device"`
	Version string `json:"version"`
	// WallSeconds is the time of the run that trained Batched experiments together, divided by Batched.
	WallSeconds float64 `json:"wall_seconds"`
	Batched     int     `json:"batched"`
	// ExamplesPerSecond is the speed of the training of all these networks together, without compilation; 0 where it was
	// over before it was known.
	ExamplesPerSecond float64   `json:"examples_per_second,omitempty"`
	Finished          time.Time `json:"finished"`
	// Was is the identity that the result had before it had this one; "" for none.
	Was string `json:"was,omitempty"`
	// PredictionsSum is a digest of the file of predictions; "" where none were kept.
	PredictionsSum string `json:"predictions,omitempty"`

	// Experiment is what was carried out; nil in a result that was read from a store without it. See Of.
	Experiment *Experiment `json:"-"`

	predictions *Predictions // nil where a store has them
	file        string       // of the store; "" for none
}

// Of returns the result under the names that its experiment has now, with the experiment, by which its predictions know
// their likelihood and data.
func (r Result) Of(e Experiment) Result {
	r.Experiment, r.Task, r.Method, r.Preset = &e, e.Task.Name, e.Method.Name, e.Preset
	return r
}

// ErrNoPredictions is wrapped by the error for an experiment whose predictions are not at hand.
var ErrNoPredictions = errors.New("its predictions are not there")

// Predictions are what the networks of the experiment said: as they were made, or read from the store. An error wraps
// ErrNoPredictions where they were not kept.
func (r Result) Predictions() (*Predictions, error) {
	p := r.predictions
	if p == nil {
		if _, err := os.Stat(r.file); r.file == "" || errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("experiment: the result %s of %s on %s has no file %q: %w", r.ID, r.Method, r.Task, r.file, ErrNoPredictions)
		}
		var err error
		if p, err = readPredictions(r.file, r.PredictionsSum); err != nil {
			return nil, err
		}
		if p.Experiment != r.ID {
			return nil, fmt.Errorf("experiment: the predictions in %s are of the experiment %s, not of %s", r.file, p.Experiment, r.ID)
		}
	}
	if r.Experiment != nil {
		p.of(*r.Experiment)
	}
	return p, nil
}

// With returns the result with predictions that no store has, such as those of an ensemble that was made of the predictions
// of other networks.
func (r Result) With(p *Predictions) Result {
	r.predictions = p
	return r
}

// lineFormat is the version of the format of lines.
const lineFormat = 1

// A resultLine is a Result as a store keeps it.
type resultLine struct {
	Format int `json:"format"`
	Result
}

// encode is the line of a result, with its newline. Metrics that are not finite are an error.
func (r Result) encode() ([]byte, error) {
	if err := r.checkID(); err != nil {
		return nil, fmt.Errorf("experiment: encoding a result: %w", err)
	}
	return seal(resultLine{lineFormat, r})
}

// decodeResult reads a line, which has no names.
func decodeResult(line []byte) (Result, error) {
	l, err := unseal[resultLine](line)
	if err == nil {
		err = l.checkID()
	}
	return l.Result, err
}

// checkID returns an error if the result has another identity than its group, split and seed make.
func (r Result) checkID() error {
	if id := idOf(r.Group, r.Split, r.Seed); r.ID != id {
		return fmt.Errorf("the identity is %q, and its group, split and seed have %q", r.ID, id)
	}
	return nil
}

// Difference names the metrics in which two results of one experiment differ, with both values; "" for none. How long
// they took is no difference.
func (r Result) Difference(other Result) string {
	if r.Diverged != other.Diverged {
		return fmt.Sprintf("diverged %t and %t", r.Diverged, other.Diverged)
	}
	names := slices.Collect(maps.Keys(r.Metrics))
	for name := range other.Metrics {
		if _, has := r.Metrics[name]; !has {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	value := func(of Result, name string) string {
		if v, has := of.Metrics[name]; has {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
		return "none"
	}
	var parts []string
	for _, name := range names {
		if a, b := value(r, name), value(other, name); a != b {
			parts = append(parts, fmt.Sprintf("%s %s and %s", name, a, b))
		}
	}
	return strings.Join(parts, ", ")
}

// A groupLine is what all experiments of a group have in common, as a store keeps it once.
type groupLine struct {
	Format     int             `json:"format"`
	Group      string          `json:"group"`
	Task       string          `json:"task"`
	Method     string          `json:"method"`
	Preset     string          `json:"preset,omitempty"`
	Experiment json.RawMessage `json:"experiment"` // Experiment.Spec
	// Parameters are the roles and shapes of the network's parameters by their names, such as "weight [50 1]". They
	// tell a function of a nets.Func that was changed, but not renamed.
	Parameters map[string]string `json:"parameters,omitempty"`
}

// newGroupLine is the line of the group of an experiment.
func newGroupLine(e Experiment, t Traits) (groupLine, error) {
	spec, err := e.Spec()
	if err != nil {
		return groupLine{}, err
	}
	g := groupLine{Format: lineFormat, Group: digest(spec), Task: e.Task.Name, Method: e.Method.Name, Preset: e.Preset, Experiment: spec, Parameters: map[string]string{}}
	for _, p := range t.Parameters {
		g.Parameters[p.Name] = fmt.Sprintf("%s %v", p.Role, p.Shape)
	}
	return g, nil
}

// decodeGroup reads the line of a group.
func decodeGroup(line []byte) (groupLine, error) {
	g, err := unseal[groupLine](line)
	if err == nil && g.Group != digest(g.Experiment) {
		err = fmt.Errorf("the group is %q, and its experiment has %q", g.Group, digest(g.Experiment))
	}
	return g, err
}

// sameParameters says in what the parameters of two lines of a group differ; nil for nothing. A line without parameters
// tells nothing.
func (g groupLine) sameParameters(stored groupLine) error {
	if len(stored.Parameters) == 0 || maps.Equal(g.Parameters, stored.Parameters) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(g.Parameters)) {
		if was := stored.Parameters[name]; was != g.Parameters[name] {
			return fmt.Errorf("parameter %s is %q, and in the stored results %q", name, g.Parameters[name], was)
		}
	}
	return fmt.Errorf("the network has %d parameters, and in the stored results %d", len(g.Parameters), len(stored.Parameters))
}

// The checksum of a line is its last field, a digest of all that is before it.
const sumField, sumDigits = `,"sum":"`, 16

// seal is a value as a line of JSON with its checksum and a newline.
func seal(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("experiment: encoding a line: %w", err)
	}
	open := text[:len(text)-1]
	return fmt.Appendf(nil, "%s%s%s\"}\n", open, sumField, digest(open)), nil
}

// unseal reads a line that seal wrote, without its newline. The error says whether the line was changed, or was
// written by a newer version of this program.
func unseal[T any](line []byte) (value T, err error) {
	end := len(line) - len(sumField) - sumDigits - len(`"}`)
	if end < 0 || string(line[end:end+len(sumField)]) != sumField || string(line[len(line)-2:]) != `"}` {
		return value, errors.New("the line has no checksum at its end: it was changed or cut short")
	}
	if sum := string(line[end+len(sumField) : len(line)-2]); sum != digest(line[:end]) {
		return value, fmt.Errorf("the line was changed: its checksum is %s, and its content has %s", sum, digest(line[:end]))
	}
	text := append(slices.Clone(line[:end]), '}')
	var version struct {
		Format int `json:"format"`
	}
	if err := strict.Unmarshal(text, &version); err != nil {
		return value, err
	}
	err = strict.Unmarshal(text, &value, strict.RejectUnknownMembers(true))
	if version.Format > lineFormat || err != nil && version.Format == lineFormat { // the checksum is right: nothing was damaged
		err = fmt.Errorf("the line was written by a newer version of this program: %w (format %d, and this version reads %d)", results.ErrNewer, version.Format, lineFormat)
	}
	return value, err
}
