package train

import (
	"context"
	"errors"
	"fmt"
	"time"

	"densityuncertainty/dul/checkpoint"
)

// Checkpoints say where and when a run is saved. A run is also saved when it
// ends and when it is stopped; one that is killed loses what it did since the
// last save.
type Checkpoints struct {
	// Folder holds the checkpoints of this run and of no other; "" saves none.
	Folder string
	// EverySteps saves once so many steps were done since the last save; 0 does
	// not count steps.
	EverySteps int
	// Every saves once so much time has passed since the last save. 0 means ten
	// minutes, or no limit if EverySteps is given.
	Every time.Duration
	// Keep is the number of checkpoints to keep; 0 means 2, so that a damaged one
	// has another to fall back on.
	Keep int
	// Version is that of the program, for the record.
	Version string
}

func (c Checkpoints) check() error {
	if c.EverySteps < 0 || c.Every < 0 || c.Keep < 0 {
		return fmt.Errorf("train.Checkpoints has EverySteps %d, Every %s and Keep %d; none may be negative", c.EverySteps, c.Every, c.Keep)
	}
	return nil
}

const (
	saveEvery = 10 * time.Minute
	keepSaves = 2
)

// saves are the checkpoints of a run that is going on.
type saves struct {
	Checkpoints
	folder   *checkpoint.Folder
	identity []setting
	lastStep int // that is saved
	// When it was last tried, even if it failed.
	triedStep int
	triedTime time.Time
}

// saved is what a checkpoint holds besides the variables and the noise.
type saved struct {
	Run []setting `json:"run"`
	state
}

// trainSaving is train from the last checkpoint on, with new ones on the way.
func (r *run) trainSaving(ctx context.Context) (err error) {
	s := &saves{Checkpoints: r.Checkpoints}
	if s.Keep == 0 {
		s.Keep = keepSaves
	}
	if s.Every == 0 && s.EverySteps == 0 {
		s.Every = saveEvery
	}
	if s.identity, err = r.identity(); err != nil {
		return err
	}
	if s.folder, err = checkpoint.Open(s.Folder, s.Keep); err != nil {
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
	return errors.Join(err, s.save(r))
}

// restore goes to where the last checkpoint was saved.
func (s *saves) restore(r *run) error {
	var progress saved
	found, err := s.folder.Restore(checkpoint.State{
		Store: r.model.Store, Noise: r.model.Host, Progress: &progress,
		Check: func(progress any) error {
			if err := sameRun(progress.(*saved).Run, s.identity); err != nil {
				return fmt.Errorf("it is of another run: %w; use another folder, or the settings of that run", err)
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	s.triedTime = time.Now()
	if !found.Found {
		return nil
	}
	for _, damage := range found.Damaged {
		r.Notes(fmt.Sprintf("%v; going on from step %d", damage, found.Step))
	}
	r.step, r.state, s.lastStep, s.triedStep = found.Step, progress.state, found.Step, found.Step
	return nil
}

// afterStep saves if it is time to. That a checkpoint cannot be written does not
// end the run: the earlier ones are still there, and there will be another.
func (s *saves) afterStep(r *run) error {
	if s == nil {
		return nil
	}
	enoughSteps := s.EverySteps > 0 && r.step-s.triedStep >= s.EverySteps
	enoughTime := s.Every > 0 && time.Since(s.triedTime) >= s.Every
	if !enoughSteps && !enoughTime {
		return nil
	}
	err := s.save(r)
	s.triedStep, s.triedTime = r.step, time.Now()
	if err != nil && !errors.Is(err, ErrDiverged) {
		r.Notes(fmt.Sprintf("training goes on, but a stop would lose what was done since step %d: %v", s.lastStep, err))
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
	err := s.folder.Save(r.step, checkpoint.State{
		Store: r.model.Store, Noise: r.model.Host,
		Progress: saved{Run: s.identity, state: r.state}, Version: s.Version,
	})
	if err != nil {
		return err
	}
	s.lastStep = r.step
	return nil
}
