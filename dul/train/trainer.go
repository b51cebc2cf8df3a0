package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
)

// Settings say how a model is trained. They are plain values to print and compare: equal settings train equal models. A
// zero is taken literally, except in Group.Rate and Adam.Beta2.
type Settings struct {
	// Epochs is the number of epochs of the joint training, BatchSize the number of examples in a step.
	Epochs, BatchSize int
	// Schedule gives the learning rate of each step.
	Schedule Schedule
	// Groups say how each kind of parameter is trained. A parameter belongs to the first group that contains it. A
	// parameter in no group does not change. It is an error if nothing at all is trained.
	Groups []Group
	// PretrainEpochs come before the Epochs. They train on the generative objective alone, at the largest learning rate
	// of the schedule. They also update the running statistics of batch normalisation.
	PretrainEpochs int
	// PretrainGroups replace Groups during pretraining; nil means Groups limited to the role params.Generative. Leave
	// out other roles: their gradient is zero here (except with dul.Attached), so that weight decay would shrink them.
	PretrainGroups []Group
	// LogLikelihoodScale multiplies the generative objective: 1 in the paper, 0.01 in the authors' code. 0 is an error
	// if a group trains energy models, which would then never change. To keep them at their initial values, leave
	// params.Generative out of the Groups.
	LogLikelihoodScale float64
	// ClipNorm, if not 0, limits the norm of the gradient (Pascanu, Mikolov & Bengio 2013). The norm is sqrt(sum g^2)
	// over all trained parameters of one replica. If it is larger, the gradient is multiplied by ClipNorm / norm,
	// before weight decay.
	ClipNorm float64
	// WeightEnergies multiplies each example's part of the generative objective by its energy.LaplaceWeights, constants
	// for the gradient, from the class probabilities of this step. Bayes' rule gives these weights to the last layer of
	// a classifier; all layers get them here. The paper does not use them in its experiments. It is an error unless the
	// likelihood is a likelihood.Classification.
	WeightEnergies bool
	// Augmentation cuts a window out of each training image, which is padded by Padding black pixels on each side. nil
	// leaves images as they are.
	Augmentation Augmentation
	Padding      int
	// Order gives the order of the examples in each epoch, counted from 0 and with the pretraining. With nil, every
	// epoch shuffles the previous epoch's order.
	Order Order
	// BFloat16 makes convolutions multiply in bfloat16 on accelerators (params.Facts.BFloat16). Predictions are computed in
	// the type of the parameters all the same.
	BFloat16 bool
}

// An Order gives the order of n examples in each epoch.
type Order interface {
	// Of returns a permutation of 0, ..., n-1. It must be a pure function, so that a resumed run sees the same order.
	// seed is the seed of the model or replica. A result that is no permutation ends the training with an error.
	Of(seed uint64, epoch, n int) []int
}

// A Trainer fits any model, with or without replicas, by minimising the objective in the package's documentation. An
// epoch uses every example once; its last batch has the examples that are left over.
//
// With Checkpoints you can stop or kill a run and call Fit again: it resumes in the middle of the epoch. On the pure Go
// backend the result has the same bits as that of a run that was never stopped.
type Trainer struct {
	Settings
	// KeepBest ends with the best parameters instead of the last; the zero value keeps the last.
	KeepBest KeepBest
	// Progress, if not nil, is called after every step.
	Progress func(Progress)
	// Checkpoints say where and when the run is saved; the zero value never saves.
	Checkpoints Checkpoints
	// Notes, if not nil, is called with warnings, such as that a checkpoint was damaged and an older one is used.
	Notes func(string)
}

// An Augmentation shifts and mirrors the training images, differently in every epoch.
type Augmentation interface {
	// Draw returns the window that is used of an image in an epoch: its top row and left column in the padded image,
	// both from 0 to 2 Settings.Padding, and whether to mirror it left to right. image is the number of the image in
	// the training set. Draw must be a pure function, so that a resumed run sees the same images. seed is the model's.
	Draw(seed uint64, epoch, image int) (top, left int, flip bool)
}

// Progress is the state of a run after a step.
type Progress struct {
	// Step is the number of finished steps, of Steps in all, with the pretraining.
	Step, Steps int
	// Epoch is the number of finished epochs, of Epochs in all, with the pretraining.
	Epoch, Epochs int
	// Pretraining says whether this was a step of the generative pretraining.
	Pretraining bool
	// Losses are means over this epoch's steps so far, and over the replicas that have not diverged.
	Losses Losses
	// ExamplesPerSecond is the speed since Fit was called, of all replicas together. Steps that compile a graph do not
	// count.
	ExamplesPerSecond float64
}

// EndsEpoch says whether this step was the last of its epoch.
func (p Progress) EndsEpoch() bool { return p.Step*p.Epochs%p.Steps == 0 }

// Losses are the objective and its parts, in nats (with likelihood.Quantiles in the unit of the target). Total is the
// objective. NLL and LogLikelihood are means over examples; KL is not divided by N. A part that the model does not have
// is 0.
type Losses struct {
	Total, NLL, KL, LogLikelihood float64
	// Accuracy is the fraction of the training examples, after augmentation, whose label is the most probable class. It
	// is 0 unless the likelihood is a likelihood.Classification.
	Accuracy float64
}

// lossColumns is the number of fields of Losses.
const lossColumns = 5

// lossesOf gives the fields of a row that a step returns.
func lossesOf(row []float64) Losses {
	return Losses{Total: row[0], NLL: row[1], KL: row[2], LogLikelihood: row[3], Accuracy: row[4]}
}

// maxEpochs is the largest number of epochs, so that no count of steps overflows.
const maxEpochs = 1e9

// Check returns an error that lists all settings that are invalid for a model with the likelihood l.
func (s Settings) Check(l likelihood.Likelihood) error {
	var all []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			all = append(all, fmt.Errorf(format, args...))
		}
	}
	need(min(s.Epochs, s.PretrainEpochs) >= 0 && max(s.Epochs, s.PretrainEpochs) <= maxEpochs,
		"Epochs is %d and PretrainEpochs is %d; both must be from 0 to %d", s.Epochs, s.PretrainEpochs, int(maxEpochs))
	need(s.BatchSize >= 1, "BatchSize is %d; it must be at least 1", s.BatchSize)
	need(s.Schedule != nil, "Schedule is nil; give one, such as train.Cosine{Start: 1e-3}")
	if c, has := s.Schedule.(likelihood.Checker); has {
		all = append(all, c.Check())
	}
	need(len(s.Groups) > 0, "Groups is empty, so that nothing would be trained")
	for name, groups := range map[string][]Group{"Groups": s.Groups, "PretrainGroups": s.PretrainGroups} {
		for i, g := range groups {
			err := g.check()
			need(err == nil, "%s[%d]: %w", name, i, err)
		}
	}
	need(amount(s.ClipNorm), "ClipNorm is %g; it must be finite and not negative, and 0 clips nothing", s.ClipNorm)
	need(amount(s.LogLikelihoodScale), "LogLikelihoodScale is %g; it must be finite and not negative", s.LogLikelihoodScale)
	if _, is := l.(likelihood.Classification); s.WeightEnergies && !is {
		need(false, "WeightEnergies weighs examples by the probabilities of their classes, and a %T has none; leave it off", l)
	}
	need(s.Padding >= 0, "Padding is %d; it must not be negative", s.Padding)
	need(s.Padding == 0 || s.Augmentation != nil, "Padding is %d, but there is no Augmentation to use it", s.Padding)
	return errors.Join(all...)
}

// Fit trains m on the data: one set for each replica, or a single set for a model without replicas. Sets may differ in
// size if their epochs have the same number of batches; shorter batches are padded with examples of weight zero.
// Replica r has the same initial values and order as a model with its seed alone and, if none of its batches is padded,
// the same noise.
//
// If Checkpoints.Folder has a checkpoint, the run resumes from the latest. Otherwise Fit starts at the model's present
// parameters, with step 0 of the schedule and new optimizer state, also for a model that was trained before.
//
// At its end Fit finishes layers that need it, such as a Gaussian process (see params.Facts), and joins their error to its own.
//
// If ctx is cancelled, Fit saves a checkpoint and returns an error that wraps ctx's. If a replica diverges, the others
// are trained to the end, and Fit returns a *DivergedError. A replica has diverged if a parameter, the objective or a
// part of it is NaN or infinite, or if the objective exceeds 1e6 (1 + |first|). first is its value at the first step of
// the pretraining or of the joint training or, if that is larger, the NLL of the step's Targets by outputs of 0.
func (t Trainer) Fit(ctx context.Context, m *nets.Model, data ...Dataset) (err error) {
	if t.KeepBest.Every < 0 {
		return fmt.Errorf("train.Trainer has KeepBest.Every %d; it must not be negative", t.KeepBest.Every)
	}
	if err := t.Checkpoints.check(); err != nil {
		return err
	}
	if t.PretrainGroups == nil {
		t.PretrainGroups = restricted(t.Groups, params.Generative)
	}
	if t.Notes == nil {
		t.Notes = func(string) {}
	}
	r := &run{Trainer: t, model: m, data: data}
	r.features = func(int) ([][]float64, error) { return r.untrainedFeatures(ctx) }
	if err := r.checkData(); err != nil {
		return err
	}
	r.steps = (t.PretrainEpochs + t.Epochs) * r.epochSteps
	if err := r.checkRates(); err != nil {
		return err
	}
	// What an earlier run left would be taken for this run's.
	for _, scope := range []string{pretraining, training, bestScope} {
		if err := m.Store.DeleteVariablesInScope(model.RootScopePath + scope); err != nil {
			return fmt.Errorf("clearing what an earlier run left: %w", err)
		}
	}
	for _, v := range slices.Collect(m.Store.IterVariables()) {
		var err error
		switch path := v.Path(); {
		case strings.Contains(path, "/"+params.TrainingSums+"/"):
			err = v.SetValue(tensors.FromShape(v.Shape()))
		case strings.HasSuffix(path, "/"+params.Covariance):
			err = m.Store.DeleteVariable(path)
		}
		if err != nil {
			return fmt.Errorf("clearing what an earlier run left: %w", err)
		}
	}
	r.source = r.newSource()
	defer func() { err = errors.Join(err, freed(r.source.resident()...)) }()
	if t.Checkpoints.Folder != "" {
		err = r.trainSaving(ctx)
	} else if err = r.train(ctx); err == nil {
		err = r.checkParameters()
	}
	var diverged *DivergedError // of all replicas, which ends the training
	if err != nil && !errors.As(err, &diverged) {
		return err
	}
	if err := r.takeBest(); err != nil {
		return err
	}
	err = r.divergence()
	if errors.As(err, &diverged) && len(diverged.Diverged) == m.Count() {
		return err
	}
	if unfinished := r.finish(); unfinished != nil {
		return errors.Join(err, unfinished)
	}
	return err
}

// A run is the state of one call of Fit.
type run struct {
	Trainer
	model      *nets.Model
	data       []Dataset // of each replica
	orders     []*order  // of each replica
	features   func(width int) ([][]float64, error)
	facts      *params.Facts // of the last graph that trains; nil before
	source     source
	epochSteps int     // steps of an epoch
	steps      int     // of the run
	step       int     // done
	peak       float64 // the largest learning rate
	state
	saves *saves // nil without checkpoints
	speed speed
}

// A state is what a checkpoint keeps of a run besides the model and the step.
type state struct {
	// Sums add up the losses of the current epoch so far, times Weight.
	Sums   [lossColumns]float64 `json:"sums"`
	Weight float64              `json:"weight"`
	// First are the objectives of the replicas at the first step of the phase, or larger ones of nullNLL, which say what
	// is much in it.
	First []float64 `json:"first,omitempty"`
	// Diverged are the replicas that diverged.
	Diverged []Divergence `json:"diverged,omitempty"`
	// Best are the replicas' best scores, and Scored the last step that was scored.
	Best   []best `json:"best,omitempty"`
	Scored int    `json:"scored,omitempty"`
	// Sizes are BatchSize, PretrainEpochs and the numbers of examples.
	Sizes []int `json:"sizes,omitempty"`
}

// speed is the time that steps took, and how many examples they had.
type speed struct {
	time     time.Duration
	examples int
}

// checkData checks the sets and sets what follows from them.
func (r *run) checkData() error {
	m := r.model
	if m == nil {
		return errors.New("there is no model to train; nets.New makes one")
	}
	if err := m.Check(); err != nil {
		return err
	}
	if m.Likelihood == nil {
		return errors.New("the model has no likelihood, and so nothing to train it by")
	}
	if len(r.data) != m.Count() {
		return fmt.Errorf("%d training sets for a model with %d replicas; want one for each, or a single one without replicas", len(r.data), m.Replicas)
	}
	if err := r.Settings.Check(m.Likelihood); err != nil {
		return fmt.Errorf("train.Settings: %w", err)
	}
	for i, set := range r.data {
		err := set.Check(m.Likelihood, r.data[:min(i, 1)]...)
		if err == nil && set.Targets == nil && set.Labels == nil {
			err = errors.New("there are neither Targets nor Labels")
		}
		if err != nil {
			err = fmt.Errorf("training set: %w", err)
		}
		if err == nil {
			n := set.Len()
			r.orders = append(r.orders, newOrder(m.Seeds()[i], n, r.Order))
			steps := (n-1)/r.BatchSize + 1 // rounded up, for any BatchSize
			if i > 0 && steps != r.epochSteps {
				err = fmt.Errorf("%d examples, where replica 0 has %d: with batches of %d their epochs have different lengths; train these apart", n, r.data[0].Len(), r.BatchSize)
			}
			r.epochSteps = steps
		}
		if err != nil && m.Replicas > 0 {
			err = fmt.Errorf("replica %d: %w", i, err)
		}
		if err != nil {
			return err
		}
	}
	if _, is := r.data[0].Inputs.(nets.Pixels); !is && r.Augmentation != nil {
		return errors.New("there is an Augmentation, which is for images, but the inputs are none")
	}
	return nil
}

// checkRates looks at the learning rates of all steps before the first one. A schedule may start at 0, to warm up.
func (r *run) checkRates() error {
	total := cmp.Or(r.Epochs, r.PretrainEpochs) * r.epochSteps
	for t := range total {
		rate := r.Schedule.Rate(t, total)
		if !amount(rate) {
			return fmt.Errorf("the Schedule gives step %d the learning rate %g; it must be finite and not negative", t+1, rate)
		}
		r.peak = max(r.peak, rate)
	}
	return nil
}

// The names of the phases, and the scopes of their optimizers' states in the store.
const (
	pretraining = "pretraining"
	training    = "training"
)

// A phase is a part of a run with an objective of its own.
type phase struct {
	name       string
	epochs     int
	groups     []Group
	generative bool // only the generative objective, at the largest rate
}

// train runs the steps that are left.
func (r *run) train(ctx context.Context) error {
	first := 0
	for _, p := range []phase{
		{name: pretraining, epochs: r.PretrainEpochs, groups: r.PretrainGroups, generative: true},
		{name: training, epochs: r.Epochs, groups: r.Groups},
	} {
		end := first + p.epochs*r.epochSteps
		if err := r.phase(ctx, p, first, end); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		first = end
	}
	return nil
}

// phase runs what is left of the steps from first to before end.
func (r *run) phase(ctx context.Context, p phase, first, end int) (err error) {
	if r.step == first {
		r.First = nil // the objective is another than the phase's before
	}
	executions := &executions{run: r, phase: p, compiled: map[int]*execution{}}
	defer func() { err = errors.Join(err, executions.close()) }()
	for {
		if !p.generative {
			if err := r.keepBest(ctx, first, end); err != nil {
				return err
			}
		}
		if r.step >= end {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("stopped after %d of %d steps: %w", r.step, r.steps, err)
		}
		began := time.Now()
		b := batch{r.rows(), r.step / r.epochSteps, r.step % r.epochSteps}
		rate := r.peak
		if !p.generative {
			rate = r.Schedule.Rate(r.step-first, end-first)
		}
		losses, compiled, err := executions.execute(b, rate, r.step-first+1)
		if err != nil {
			return fmt.Errorf("step %d: %w", r.step+1, err)
		}
		if err := r.note(losses, b.rows); err != nil {
			return err
		}
		if !compiled {
			r.speed.time += time.Since(began)
			r.speed.examples += b.rows * len(r.data)
		}
		r.report(p)
		if err := r.saves.afterStep(r); err != nil {
			return err
		}
	}
}

// rows is the number of examples in the next step, of the replica that has the most.
func (r *run) rows() (rows int) {
	for _, set := range r.data {
		rows = max(rows, min(r.BatchSize, set.Len()-r.step%r.epochSteps*r.BatchSize))
	}
	return rows
}

// note counts a step of the given losses, [replicas][lossColumns], as done.
func (r *run) note(losses [][]float64, rows int) error {
	if r.step%r.epochSteps == 0 {
		r.Sums, r.Weight = [lossColumns]float64{}, 0
	}
	r.step++
	for k, row := range losses {
		total := lossesOf(row).Total
		broken := slices.ContainsFunc(row, notFinite)
		if len(r.First) < len(losses) {
			r.First = append(r.First, total)
			if broken { // and a checkpoint cannot keep it
				r.First[k] = 0
			}
		}
		if broken {
			r.diverge(Divergence{k, r.step, fmt.Sprintf("the objective is NaN or infinite: %+v", lossesOf(row))})
		} else if far, err := r.exploded(k, total); err != nil {
			return err
		} else if far {
			r.diverge(Divergence{k, r.step, fmt.Sprintf("the objective went from %.3g to %.3g", r.First[k], total)})
		}
	}
	left := len(losses) - len(r.Diverged)
	if left == 0 {
		return &DivergedError{r.model.Replicas, r.Diverged}
	}
	r.Weight += float64(rows)
	for k, row := range losses {
		if !r.hasDiverged(k) {
			for i, value := range row {
				r.Sums[i] += value * float64(rows) / float64(left)
			}
		}
	}
	return nil
}

// exploded says whether the objective of replica k at the last step is far from what it is at first. If it is far from
// that of the phase's first batch, whose counts may all be 0, the targets of the step itself decide.
func (r *run) exploded(k int, total float64) (bool, error) {
	far := func() bool { return total > explosion*(1+math.Abs(r.First[k])) }
	if far() && r.data[k].Labels == nil && r.step > r.PretrainEpochs*r.epochSteps {
		null, err := r.nullNLL(k)
		if err != nil {
			return false, err
		}
		if !notFinite(null) {
			r.First[k] = max(math.Abs(r.First[k]), null)
		}
	}
	return far(), nil
}

// nullNLL is the mean NLL of the targets of replica k in the last step, by outputs of 0 and the likelihood as it is at first.
func (r *run) nullNLL(k int) (float64, error) {
	set, last := r.data[k], r.step-1
	order, err := r.orders[k].of(last / r.epochSteps)
	if err != nil {
		return 0, err
	}
	first := last % r.epochSteps * r.BatchSize
	rows := order[first:min(first+r.BatchSize, len(order))]
	var y []float64
	for _, i := range rows {
		y = append(y, set.target(i)...)
	}
	l, targets := r.model.Likelihood, r.targets(y, len(rows), set.columns())
	out, err := model.CallOnce(r.model.Backend, model.NewStore(), func(s *model.Scope, targets *graph.Node) *graph.Node {
		return graph.ReduceAllMean(l.NLL(s, graph.Zeros(targets.Graph(), shapes.Make(r.model.DType, len(rows), l.Outputs())), targets))
	}, targets)
	if err != nil {
		return 0, fmt.Errorf("the likelihood of the targets of step %d: %w", r.step, nets.Cause(err))
	}
	null, err := params.ToFloat64(out)
	if err := errors.Join(err, freed(out, targets)); err != nil {
		return 0, err
	}
	return null[0], nil
}

// explosion is how many times its first value, and at least 1, an objective must
// reach to have diverged; see exploded. A network that has been there gives numbers, and none
// that mean anything: its units are far from where they were initialised.
const explosion = 1e6

func notFinite(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

func (r *run) report(p phase) {
	if r.Progress == nil {
		return
	}
	means := r.Sums
	for i := range means {
		means[i] /= r.Weight
	}
	progress := Progress{
		Step: r.step, Steps: r.steps,
		Epoch: r.step / r.epochSteps, Epochs: r.PretrainEpochs + r.Epochs,
		Pretraining: p.generative, Losses: lossesOf(means[:]),
	}
	if seconds := r.speed.time.Seconds(); seconds > 0 {
		progress.ExamplesPerSecond = float64(r.speed.examples) / seconds
	}
	r.Progress(progress)
}
