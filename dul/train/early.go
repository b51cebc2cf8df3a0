package train

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
)

// KeepBest stops nothing: it gives each replica, after the training, the parameters that it had after the epoch with the lowest
// score, such as the negative log-likelihood of held-out examples (early stopping: Prechelt 1998, "Early stopping - but when?"). A
// replica that diverges later gets them too, and does not count as diverged.
//
// All epochs are trained all the same, because replicas that share a graph are best after different ones. Scoring
// changes neither the training nor its noise.
type KeepBest struct {
	// Every is the number of epochs between two scores; 0 means 1. The last epoch is always scored, epochs of
	// pretraining never.
	Every int
	// Score returns one number for each replica; lower is better. NaN and infinite scores are ignored. A replica
	// without a finite score keeps its last parameters, and Trainer.Notes is told. Score must not change the model. An
	// error ends the training. If Score is nil, the last parameters stay.
	Score func(ctx context.Context, m *nets.Model) ([]float64, error)
}

// A best is what a checkpoint keeps of the best score of a replica; its parameters
// are variables of the store.
type best struct {
	Score float64 `json:"score"`
	Step  int     `json:"step"` // 0 before there is one
}

// bestScope is where in the store the parameters of the best epochs are.
const bestScope = "best"

// keepBest scores the model if an epoch has ended after which it is time to, and
// it was not before; first and end are the steps of the joint training.
func (r *run) keepBest(ctx context.Context, first, end int) (err error) {
	every := max(1, r.KeepBest.Every) * r.epochSteps
	if r.KeepBest.Score == nil || r.step == first || r.step <= r.Scored || (r.step-first)%every != 0 && r.step != end {
		return nil
	}
	// The noise of the steps to come stays what it is.
	before, err := r.model.NoiseState()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.model.SetNoiseState(before)) }()
	scores, err := r.KeepBest.Score(ctx, r.model)
	if err != nil {
		return fmt.Errorf("scoring the model after step %d: %w", r.step, err)
	}
	if len(scores) != r.model.Count() {
		return fmt.Errorf("KeepBest.Score gave %d scores for a model with %d replicas", len(scores), r.model.Count())
	}
	if r.Best == nil {
		r.Best = make([]best, len(scores))
	}
	better := make([]bool, len(scores))
	for k, score := range scores {
		if !notFinite(score) && !r.hasDiverged(k) && (r.Best[k].Step == 0 || score < r.Best[k].Score) {
			r.Best[k], better[k] = best{score, r.step}, true
		}
	}
	r.Scored = r.step
	if !slices.Contains(better, true) {
		return nil
	}
	return r.eachParameter(func(v, kept *model.Variable) error { return copyReplicas(kept, v, better) })
}

// takeBest replaces the last parameters by the best epochs'. A replica without a
// score keeps its own.
func (r *run) takeBest() error {
	if r.Best == nil {
		return nil
	}
	scored := make([]bool, len(r.Best))
	for k := range scored {
		scored[k] = r.Best[k].Step > 0
	}
	for k, has := range scored {
		if !has && !r.hasDiverged(k) {
			r.Notes(fmt.Sprintf("early stopping: no score of replica %d was a finite number, and it keeps the parameters of the last epoch", k))
		}
	}
	if err := r.eachParameter(func(v, kept *model.Variable) error { return copyReplicas(v, kept, scored) }); err != nil {
		return err
	}
	return r.model.Store.DeleteVariablesInScope(model.RootScopePath + bestScope)
}

// eachParameter visits the model's parameters and running statistics, with the
// variable that keeps the best epoch's value, which it creates.
func (r *run) eachParameter(visit func(v, kept *model.Variable) error) error {
	store := r.model.Store
	var all []*model.Variable
	for v := range store.IterVariables() {
		if params.RoleOf(v, store) != "" {
			all = append(all, v)
		}
	}
	for _, v := range all {
		path := model.RootScopePath + bestScope + v.Path()
		kept := store.GetVariable(path)
		if kept == nil {
			value, err := v.Value()
			if err == nil {
				value, err = value.LocalClone()
			}
			if err != nil {
				return fmt.Errorf("keeping variable %s: %w", v.Path(), err)
			}
			kept = store.VariableWithValue(path, value)
			kept.Trainable = false
		}
		if err := visit(v, kept); err != nil {
			return fmt.Errorf("keeping variable %s: %w", v.Path(), err)
		}
	}
	return nil
}

// copyReplicas copies the values of some replicas, each of which has an equal part of them.
func copyReplicas(to, from *model.Variable, which []bool) error {
	var values [2][]float64
	for i, v := range []*model.Variable{to, from} {
		value, err := v.Value()
		if err != nil {
			return err
		}
		if values[i], err = params.ToFloat64(value); err != nil {
			return err
		}
	}
	part := len(values[0]) / len(which)
	for k, copied := range which {
		if copied {
			copy(values[0][k*part:(k+1)*part], values[1][k*part:(k+1)*part])
		}
	}
	return to.SetValue(params.FromFloat64(to.Shape(), values[0]))
}
