// Package results has the words that all experiments share: what a run is, as data with an identity
// (Experiment); what it measured (Result, with the names of metrics and series); where that is kept (Store,
// one JSON line each, appended once); and what several runs amount to (Summary).
//
// A store is a folder of .jsonl files, one for each study, data set and fidelity. Lines are only
// ever added. Tables and figures are pure functions of the lines.
package results

import (
	"encoding/json"
	strict "encoding/json/v2"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Result is what one experiment measured, and where and how long it ran.
type Result struct {
	ID         string     `json:"id"` // Experiment.ID(), stored so that a changed line is noticed
	Experiment Experiment `json:"experiment"`

	// Metrics are the numbers of the tables, for example "rmse" and "nll", in the target's own units; of an
	// image run also what it cost, such as "parameters" and "seconds_per_epoch".
	Metrics map[string]float64 `json:"metrics"`

	// Diverged says that training or prediction produced NaN or an infinity. The run still counts: a
	// table shows it. JSON has no such numbers, so Append drops the metrics that are not finite when
	// Diverged is set, and refuses them when it is not.
	Diverged bool `json:"diverged,omitempty"`

	// Series are the curves of the figures, in the data's own units; Append rounds them to 6
	// significant digits, which is far below a pixel.
	Series map[string][]float64 `json:"series,omitempty"`

	Backend string `json:"backend"` // compute backend, for example "go" or "xla"
	Device  string `json:"device"`  // processor or accelerator, in words
	Version string `json:"version"` // of this project's code

	// ScoredBy is the version that last computed the metrics from kept predictions, "reproduce rescore", and
	// wrote them or found them as they are; "" where none did since the run.
	ScoredBy string `json:"scored_by,omitempty"`

	// WallSeconds and CPUSeconds are the times of the run that trained Batched experiments together,
	// divided by Batched. Those of an image run are of all the processes in which it went on. CPUSeconds is 0 where
	// other runs shared the process at the time, and nobody can tell.
	WallSeconds float64 `json:"wall_seconds"`
	CPUSeconds  float64 `json:"cpu_seconds"`
	Batched     int     `json:"batched"`

	Finished time.Time `json:"finished"` // RFC 3339, in UTC

	uses uses     // of Watch
	of   []Result // of MadeOf
}

// seriesDigits is how many significant digits of a series are kept.
const seriesDigits = 6

// encode returns the result's line with its newline, or an error that names the first value that
// cannot be stored.
func (r Result) encode() ([]byte, error) {
	if err := r.Experiment.Validate(); err != nil {
		return nil, err
	}
	if id := r.Experiment.ID(); r.ID != id {
		return nil, fmt.Errorf("results: %v: the result's ID is %q but the experiment's is %q", r.Experiment, r.ID, id)
	}
	if r.Batched < 1 {
		return nil, fmt.Errorf("results: %v: batched is %d, want at least 1", r.Experiment, r.Batched)
	}
	if r.Finished.IsZero() {
		return nil, fmt.Errorf("results: %v: the finishing time is not set", r.Experiment)
	}
	for name, seconds := range map[string]float64{"wall_seconds": r.WallSeconds, "cpu_seconds": r.CPUSeconds} {
		if !finite(seconds) || seconds < 0 {
			return nil, fmt.Errorf("results: %v: %s is %v, want a finite time", r.Experiment, name, seconds)
		}
	}
	metrics := make(map[string]float64, len(r.Metrics))
	for _, name := range slices.Sorted(maps.Keys(r.Metrics)) {
		if value := r.Metrics[name]; finite(value) {
			metrics[name] = value
		} else if !r.Diverged {
			return nil, fmt.Errorf("results: %v: metric %q is %v; mark the run as diverged to store it without", r.Experiment, name, value)
		}
	}
	series := make(map[string][]float64, len(r.Series))
	for _, name := range slices.Sorted(maps.Keys(r.Series)) {
		rounded, bad := roundSeries(r.Series[name])
		if bad < 0 {
			series[name] = rounded
		} else if !r.Diverged {
			return nil, fmt.Errorf("results: %v: series %q has %v at index %d; mark the run as diverged to store it without",
				r.Experiment, name, r.Series[name][bad], bad)
		}
	}
	r.Metrics, r.Series, r.Finished = metrics, series, r.Finished.UTC().Truncate(time.Second)
	line, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("results: encoding %v: %w", r.Experiment, err)
	}
	return append(line, '\n'), nil
}

// decode reads one line. Unknown fields are errors, so that a misspelt name does not pass as a zero, and so are fields
// that are there twice.
func decode(line []byte) (Result, error) {
	var r Result
	if err := strict.Unmarshal(line, &r, strict.RejectUnknownMembers(true)); err != nil {
		return Result{}, err
	}
	if err := r.Experiment.Validate(); err != nil {
		return Result{}, err
	}
	if id := r.Experiment.ID(); r.ID != id {
		return Result{}, fmt.Errorf("the line's id is %q but its experiment's is %q: the line was changed", r.ID, id)
	}
	return r, nil
}

// Difference names the metrics in which the result is not the same as that of the experiment in a store, with both values;
// "" for none. How long a run took is no part of its result. same says which numbers count as the same; nil means equal
// ones.
func (r Result) Difference(stored Result, same func(a, b float64) bool) string {
	if same == nil {
		same = func(a, b float64) bool { return a == b }
	}
	if r.Diverged != stored.Diverged {
		return fmt.Sprintf("diverged %t, in the store %t", r.Diverged, stored.Diverged)
	}
	names := slices.Collect(maps.Keys(r.Metrics))
	for name := range stored.Metrics {
		if _, has := r.Metrics[name]; !has {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	value := func(of Result, name string) string {
		if v, has := of.Metrics[name]; has {
			return strconv.FormatFloat(v, 'g', 6, 64)
		}
		return "none"
	}
	var parts []string
	for _, name := range names {
		if name == MetricSecondsPerEpoch || name == MetricImagesPerSecond {
			continue
		}
		old, has := stored.Metrics[name]
		if v, is := r.Metrics[name]; !has || !is || !same(v, old) {
			parts = append(parts, fmt.Sprintf("%s %s, in the store %s", name, value(r, name), value(stored, name)))
		}
	}
	return strings.Join(parts, "; ")
}

// roundSeries rounds to seriesDigits significant digits and returns the index of the first value
// that is not finite, or -1.
func roundSeries(values []float64) (rounded []float64, bad int) {
	rounded = make([]float64, len(values))
	for i, v := range values {
		if !finite(v) {
			return nil, i
		}
		text := strconv.FormatFloat(v, 'g', seriesDigits, 64)
		r, err := strconv.ParseFloat(text, 64)
		if err != nil {
			// Rounding up can pass the largest float64; such a value is not finite either.
			return nil, i
		}
		rounded[i] = r
	}
	return rounded, -1
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// The metrics of a result, by their names in the store. Those of predictions out of distribution, such as
// "ood_svhn_auroc_energy", are made by the package of the image study. What an ensemble cost is that of all
// its members together.
const (
	MetricNLL  = "nll"  // negative log likelihood in nats; of a regression in the target's own units
	MetricRMSE = "rmse" // root mean squared error in the target's own units

	MetricCRPS     = "crps"       // continuous ranked probability score, in the target's own units
	MetricCoverage = "coverage95" // part of the targets inside central 95 % intervals of the predictive distribution, 0 to 1
	MetricSpearman = "spearman"   // rank correlation of predicted variance and squared error; there if the variances differ

	MetricNoiseStd  = "noise_std" // standard deviation of the observation noise, in the target's own units
	MetricSharpness = "sharpness" // mean standard deviation of the target's predictive distribution, noise and function, in the target's own units

	MetricModelStd = "model_std" // mean standard deviation of the function at the test inputs, in the target's own units

	MetricGapRatio    = "gap_ratio"      // cubic: mean standard deviation of the function in the gap over that at the data
	MetricGapCoverage = "gap_coverage95" // cubic: part of the gap where x^3 is inside the central 95 % of the function's draws, 0 to 1

	MetricAccuracy    = "accuracy"     // part of the test examples, 0 to 1
	MetricECE         = "ece10"        // expected calibration error with 10 bins
	MetricEntropyData = "entropy_data" // two moons: mean entropy at the training data, in nats
	MetricEntropyFar  = "entropy_far"  // two moons: mean entropy at places at least 1 away from all training data

	// MetricPosteriorStd is the geometric mean of the standard deviations of the trained
	// posterior: of weights (MFVI), factors (Rank-1 BNN), or the two noise scales of
	// density layers. Methods without one lack it.
	MetricPosteriorStd = "posterior_std"

	MetricParameters      = "parameters"        // trainable parameters, energy models included
	MetricTrainingGFLOP   = "training_gflop"    // 10^9 floating-point operations of a training step for one image
	MetricSecondsPerEpoch = "seconds_per_epoch" // of training, without compilation
	MetricImagesPerSecond = "images_per_second" // in training
)

// The series of a toy result, all in the data's own units. A predictive draw is the network's output for
// one draw of its noise, without observation noise; mean, standard deviation and percentiles at each x are
// those of the draws.
const (
	SeriesX      = "x"
	SeriesMean   = "mean"
	SeriesStd    = "std"
	SeriesQ005   = "q0.5"
	SeriesQ025   = "q2.5"
	SeriesQ975   = "q97.5"
	SeriesQ995   = "q99.5"
	SeriesTrainX = "train_x"
	SeriesTrainY = "train_y"
)

// The further series of a result on two moons: the map has a value for each place of the grid SeriesX by
// SeriesY, row by row from below.
const (
	SeriesY       = "y"
	SeriesEntropy = "entropy" // of the predictive distribution, in nats
	SeriesLabel   = "label"   // the class of each training point, 0 or 1
)
