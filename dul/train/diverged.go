package train

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/tensors"

	"densityuncertainty/dul/stochastic"
)

// ErrDiverged is wrapped by the error of a training that diverged; Trainer.Fit says when.
var ErrDiverged = errors.New("training diverged")

// A Divergence says when and why one replica diverged.
type Divergence struct {
	// Replica is the number of the replica, from 0; 0 for a model without replicas.
	Replica int `json:"replica"`
	// Step is the step after which the divergence was noticed, counted from 1 and with the steps of the pretraining.
	Step int `json:"step"`
	// Reason describes the objective, or names the parameter that is NaN or infinite.
	Reason string `json:"reason"`
}

// A DivergedError lists the replicas that diverged. It wraps ErrDiverged.
type DivergedError struct {
	Replicas int // the number of replicas of the model, 0 if it has no replica axis
	Diverged []Divergence
}

// Error implements error.
func (e *DivergedError) Error() string {
	var parts []string
	for _, d := range e.Diverged {
		text := fmt.Sprintf("step %d: %s", d.Step, d.Reason)
		if e.Replicas > 0 {
			text = fmt.Sprintf("replica %d of %d, %s", d.Replica, e.Replicas, text)
		}
		parts = append(parts, text)
	}
	return fmt.Sprintf("%v: %s; lower the learning rate or the noise at the start (InitStd), and standardise inputs and targets", ErrDiverged, strings.Join(parts, "; "))
}

// Unwrap returns ErrDiverged.
func (e *DivergedError) Unwrap() error { return ErrDiverged }

// diverge notes where a replica diverged first.
func (r *run) diverge(d Divergence) {
	if !r.hasDiverged(d.Replica) {
		r.Diverged = append(r.Diverged, d)
	}
}

func (r *run) hasDiverged(replica int) bool {
	return slices.ContainsFunc(r.Diverged, func(d Divergence) bool { return d.Replica == replica })
}

// divergence is nil unless a replica diverged that has no best epoch before it.
func (r *run) divergence() error {
	diverged := slices.DeleteFunc(slices.Clone(r.Diverged), func(d Divergence) bool { return r.Best != nil && r.Best[d.Replica].Step > 0 })
	if len(diverged) == 0 {
		return nil
	}
	return &DivergedError{r.model.Replicas, diverged}
}

// checkParameters notes the replicas with a parameter that is NaN or infinite, and is
// an error where none is left.
func (r *run) checkParameters() error {
	for v := range r.model.Store.IterVariables() {
		if stochastic.IsNoiseBuffer(v) {
			continue
		}
		value, err := v.Value()
		if err != nil {
			return fmt.Errorf("reading variable %s: %w", v.Path(), err)
		}
		broken := make([]bool, r.model.Count())
		switch v.DType() {
		case dtypes.Float32:
			err = tensors.ConstFlatData(value, func(flat []float32) { markNotFinite(broken, flat) })
		case dtypes.Float64:
			err = tensors.ConstFlatData(value, func(flat []float64) { markNotFinite(broken, flat) })
		}
		if err != nil {
			return fmt.Errorf("reading variable %s: %w", v.Path(), err)
		}
		for k, is := range broken {
			if is {
				r.diverge(Divergence{k, r.step, fmt.Sprintf("variable %s has entries that are NaN or infinite", v.Path())})
			}
		}
	}
	if len(r.Diverged) == r.model.Count() {
		return &DivergedError{r.model.Replicas, r.Diverged}
	}
	return nil
}

// markNotFinite marks the replicas, each of which has an equal part of the values.
func markNotFinite[T float32 | float64](broken []bool, values []T) {
	size := max(len(values)/len(broken), 1)
	for i, v := range values {
		if notFinite(float64(v)) {
			broken[min(i/size, len(broken)-1)] = true
		}
	}
}
