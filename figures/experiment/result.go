package experiment

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"densityuncertainty/dul/train"
)

// A Result has the metrics of one experiment, and where and how long it ran. See Store for how it is kept.
type Result struct {
	ID    string // Experiment.ID
	Group string // Experiment.Group
	Split int
	Seed  uint64
	// Task, Method and Preset are the names under which the experiment is shown.
	Task, Method, Preset string

	// Metrics are the numbers of Task.Metrics and Task.After. Some may be infinite or NaN; see Metric.
	Metrics map[string]float64
	// Diverged says that training or prediction gave numbers that are not finite. There are no Metrics then; see Metric.
	Diverged bool
	// Reason says at which step training diverged, or at which row of which set prediction did, and how.
	Reason string

	Backend string
	Device  string
	Version string
	// WallSeconds is the time of the run that trained Batched experiments together, divided by Batched.
	WallSeconds float64
	Batched     int
	// ExamplesPerSecond is the speed of the training of all these networks together, without compilation; 0 where it was
	// over before it was known.
	ExamplesPerSecond float64
	Finished          time.Time
	// Experiment is what was carried out; nil in a result that was read from a store without it. See Of.
	Experiment *Experiment

	predictions *Predictions // nil where a store has them
	file        string       // of the store; "" for none
	run         string       // the row of runs of the store
}

// Of returns the result under the names that its experiment has now, with the experiment, by which its predictions know
// their likelihood and data.
func (r Result) Of(e Experiment) Result {
	r.Experiment, r.Task, r.Method, r.Preset = &e, e.Task.Name, e.Method.Name, e.Preset
	return r
}

// NotFinite are the metrics that are infinite or NaN.
func (r Result) NotFinite() map[string]float64 { return notFinite(r.Metrics) }

// Metric is a number of Metrics. If there is none, it is NaN, and the error says why: it wraps train.ErrDiverged if the run
// diverged, and ErrNotFinite if the metric is not finite.
func (r Result) Metric(name string) (float64, error) {
	v, has := r.Metrics[name]
	if has && finite(v) && !r.Diverged {
		return v, nil
	}
	err := fmt.Errorf("it has %s", strings.Join(slices.Sorted(maps.Keys(r.Metrics)), ", "))
	switch {
	case !finite(v):
		err = fmt.Errorf("%v: %w", v, ErrNotFinite)
	case r.Diverged:
		err = fmt.Errorf("%w: %s", train.ErrDiverged, r.Reason)
	}
	return math.NaN(), fmt.Errorf("experiment: %s on %s, split %d, seed %d has no metric %q: %w", r.Method, r.Task, r.Split, r.Seed, name, err)
}

// ErrNoPredictions is wrapped by the error for an experiment whose predictions are not at hand.
var ErrNoPredictions = errors.New("its predictions are not there")

// Predictions are what the networks of the experiment said: as they were made, or read from the store. An error wraps
// ErrNoPredictions where they were not kept.
func (r Result) Predictions() (*Predictions, error) {
	p := r.predictions
	if p == nil {
		content, err := os.ReadFile(r.file)
		if errors.Is(err, fs.ErrNotExist) { // r.file is "" without a store
			return nil, fmt.Errorf("experiment: the result %s of %s on %s has no file %q: %w", r.ID, r.Method, r.Task, r.file, ErrNoPredictions)
		}
		if err != nil {
			return nil, fmt.Errorf("experiment: reading predictions: %w", err)
		}
		if p, err = decodePredictions(content); err != nil {
			return nil, fmt.Errorf("experiment: %s is no file of predictions, or damaged: %w; restore the file, or remove it and the result's row and run the experiment again", r.file, err)
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

// Difference names the metrics in which two results of one experiment differ, with both values; "" for none. How long
// they took is no difference.
func (r Result) Difference(other Result) string {
	if r.Diverged != other.Diverged {
		return fmt.Sprintf("diverged %t and %t", r.Diverged, other.Diverged)
	}
	names, parts := slices.AppendSeq(slices.Collect(maps.Keys(r.Metrics)), maps.Keys(other.Metrics)), []string(nil)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if a, b := r.text(name), other.text(name); a != b {
			parts = append(parts, fmt.Sprintf("%s %s and %s", name, cmp.Or(a, "none"), cmp.Or(b, "none")))
		}
	}
	return strings.Join(parts, ", ")
}

// text is a metric as a row has it, "" if there is none.
func (r Result) text(name string) string {
	if v, has := r.Metrics[name]; has {
		return number(v)
	}
	return ""
}

// number is the shortest text that is read as the same number.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// A groupLine is what all experiments of a group have in common, as a store keeps it once.
type groupLine struct {
	Group      string          `json:"group"`
	Task       string          `json:"task"`
	Method     string          `json:"method"`
	Preset     string          `json:"preset,omitempty"`
	Experiment json.RawMessage `json:"experiment"` // Experiment.Spec
}
