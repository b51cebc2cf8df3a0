package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/params"
)

// Checkpoints say where and when a run is saved. A run is also saved when it ends and when it is cancelled. A run that
// is killed loses what it did since the last save. If a checkpoint cannot be written, training continues and
// Trainer.Notes is told; only a cancelled run returns the failure as an error.
type Checkpoints struct {
	// Folder holds the checkpoints of this run and of no other; with "" nothing is saved. Resume a run with the
	// settings and the data that it was started with. Fit checks only the variables and their shapes, the seeds, the
	// numbers of examples, the BatchSize and PretrainEpochs, and that the run is not shorter than what was saved.
	Folder string
	// Every is the time between two saves. 0 means ten minutes; a nanosecond saves after every step.
	Every time.Duration
	// Version is the version of your program. If it differs when a run resumes, Trainer.Notes is told.
	Version string
}

func (c Checkpoints) check() error {
	if c.Every < 0 {
		return fmt.Errorf("train.Checkpoints has Every %s; it must not be negative", c.Every)
	}
	return nil
}

// keptCheckpoints is how many there are: a damaged one has another to fall back on.
const keptCheckpoints = 2

// saves are the checkpoints of a run that is going on.
type saves struct {
	Checkpoints
	folder   *checkpoint.Folder
	lastStep int       // that is saved
	tried    time.Time // when it was last tried, even if it failed
}

// trainSaving is train from the last checkpoint on, with new ones on the way.
func (r *run) trainSaving(ctx context.Context) (err error) {
	s := &saves{Checkpoints: r.Checkpoints}
	s.Every = cmp.Or(s.Every, 10*time.Minute)
	if s.folder, err = checkpoint.Open(s.Folder, keptCheckpoints); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.folder.Close()) }()
	if err := s.restore(r); err != nil {
		return err
	}
	r.saves = s
	err = r.train(ctx)
	if err != nil && (ctx.Err() == nil || !errors.Is(err, ctx.Err())) {
		return err // what failed is not worth saving
	}
	failed := s.save(r)
	if err == nil && failed != nil && !errors.Is(failed, ErrDiverged) {
		r.Notes(fmt.Sprintf("training is complete, but the same call would do it again from step %d: %v", s.lastStep, failed))
		return nil
	}
	return errors.Join(err, failed)
}

// restore goes to where the last checkpoint was saved.
func (s *saves) restore(r *run) error {
	own := []int{r.BatchSize, r.PretrainEpochs}
	for _, set := range r.data {
		own = append(own, set.Len())
	}
	r.Sizes = slices.Clone(own) // what a checkpoint without Sizes leaves
	seeds, used := r.model.Seeds(), map[string]bool{}
	for v := range r.model.Store.IterVariables() {
		used[v.Path()] = true
	}
	found, err := s.folder.Restore(checkpoint.State{Store: r.model.Store, Noise: r.model.Host, Progress: &r.state})
	if err != nil {
		return err
	}
	s.tried = time.Now()
	if !found.Found {
		return nil
	}
	if !slices.Equal(r.Sizes, own) || !slices.Equal(seeds, r.model.Seeds()) {
		return fmt.Errorf("train: %s was saved with BatchSize, PretrainEpochs and numbers of examples %v and the seeds %v, and this run has %v and %v; use another Checkpoints.Folder", found.Path, r.Sizes, r.model.Seeds(), own, seeds)
	}
	for v := range r.model.Store.IterVariables() {
		if !used[v.Path()] && params.RoleOf(v, r.model.Store) != "" {
			params.SetLoaded(r.model.Store, v.Path()) // the model must have these variables
		}
	}
	if found.Step > r.steps {
		return fmt.Errorf("train: %s was saved at step %d, and this run ends at %d: it is of a longer run; use another Checkpoints.Folder", found.Path, found.Step, r.steps)
	}
	for _, damage := range found.Damaged {
		r.Notes(fmt.Sprintf("%v; going on from step %d", damage, found.Step))
	}
	if found.Version != s.Version {
		r.Notes(fmt.Sprintf("%s was saved by version %q of the program and resumes with %q: what comes out is of both", found.Path, found.Version, s.Version))
	}
	r.step, s.lastStep = found.Step, found.Step
	return nil
}

// afterStep saves if it is time to. That a checkpoint cannot be written does not
// end the run: the earlier ones are still there, and there will be another.
func (s *saves) afterStep(r *run) error {
	if s == nil {
		return nil
	}
	if time.Since(s.tried) < s.Every {
		return nil
	}
	err := s.save(r)
	s.tried = time.Now()
	if err != nil && !errors.Is(err, ErrDiverged) {
		r.Notes(fmt.Sprintf("training continues, but a stop would lose what was done since step %d: %v", s.lastStep, err))
		return nil
	}
	return err
}

// save writes a checkpoint, unless the run was saved at this step.
func (s *saves) save(r *run) error {
	if r.step == s.lastStep {
		return nil
	}
	if err := r.checkParameters(); err != nil {
		return err
	}
	err := s.folder.Save(r.step, checkpoint.State{Store: r.model.Store, Noise: r.model.Host, Progress: r.state, Version: s.Version})
	if err != nil {
		return err
	}
	s.lastStep = r.step
	return nil
}
