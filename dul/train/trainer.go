package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/gomlx/gomlx/core/tensors"

	"densityuncertainty/dul/nets"
)

// Classification trains an image classifier on the objective
//
//	mean_i -log softmax(logits_i)[label_i] + KL / N - Scale * mean_i log p_energy(h_i)
//
// (see Objective). An epoch is every image once in random order; its last batch
// has what is left over and is trained on like any other.
//
// With Checkpoints a run survives being stopped or killed: Fit called again goes
// on in the middle of the epoch, and on the pure Go backend ends with the same
// bits as a run that was never stopped.
type Classification struct {
	Epochs    int
	BatchSize int
	// Groups say how each kind of parameter is trained. A parameter belongs to
	// the first group that contains it; one in no group stays as it is.
	Groups []Group
	// Schedule gives the learning rate of each step.
	Schedule Schedule
	// LogLikelihoodScale multiplies the generative objective (see Objective).
	LogLikelihoodScale float64
	// PretrainEpochs are spent on the generative objective alone, at the
	// schedule's first learning rate, before the joint training. The running
	// statistics of batch normalisation move there too.
	PretrainEpochs int
	// PretrainGroups take the place of Groups there; nil means Groups.
	PretrainGroups []Group
	// Seed fixes order and augmentation; that of initial values and noise is the
	// classifier's.
	Seed uint64
	// Order gives the order of n images in an epoch, a pure function that returns
	// each of 0 to n-1 once. Epochs of pretraining count, from 0.
	Order func(seed uint64, epoch, n int) []int
	// Augmentation changes the images; nil leaves them as they are. Padding is the
	// number of black pixels on each side that it cuts its windows from.
	Augmentation Augmentation
	Padding      int
	// StepsPerExecution is how many steps of the joint training are computed
	// without asking the host in between; 0 means 1, right for the pure Go backend.
	// An accelerator that needs a few milliseconds for a step gains from 3 to 8,
	// and takes as much longer to compile. Choose a divisor of the number of whole
	// batches in an epoch: else there is one more graph, for the steps left over.
	StepsPerExecution int
	// BFloat16 lets convolutions multiply in bfloat16 (conv.UseBFloat16), on
	// accelerators; prediction stays in the type of the parameters.
	BFloat16 bool
	// Progress, if not nil, hears of every execution.
	Progress func(ClassificationProgress)
	// Checkpoints say where and when the run is saved; the zero value never saves.
	Checkpoints Checkpoints
	// Notes, if not nil, hears what the user should know though the run goes on,
	// such as that a checkpoint was damaged and an older one is used.
	Notes func(string)
}

// ClassificationProgress is the state of a run after an execution.
type ClassificationProgress struct {
	// Step and Steps count training steps done and in all, pretraining included.
	Step, Steps int
	// Epoch counts the finished epochs, of Epochs in all.
	Epoch, Epochs int
	// Pretraining says whether this was a step of the generative pretraining.
	Pretraining bool
	// Rate is the learning rate of the last step.
	Rate float64
	// Losses are means over the steps of this epoch so far.
	Losses LossValues
	// ImagesPerSecond is the speed since Fit was called, without the executions
	// that compile.
	ImagesPerSecond float64
	// Remaining is the time to the end at that speed.
	Remaining time.Duration
}

// LossValues are the objective and its parts. KL is in nats, not divided by N;
// parts that no layer has are 0.
type LossValues struct {
	Total, NLL, KL, LogLikelihood float64
	// Accuracy is the part of the training images, as augmented, whose largest
	// logit was that of their label.
	Accuracy float64
}

// lossColumns is the number of fields of LossValues.
const lossColumns = 5

// lossValues gives the fields of a row that a step returns.
func lossValues(row []float64) LossValues {
	return LossValues{Total: row[0], NLL: row[1], KL: row[2], LogLikelihood: row[3], Accuracy: row[4]}
}

func (t Classification) validate() error {
	if t.Schedule == nil || t.Order == nil || len(t.Groups) == 0 {
		return errors.New("train.Classification needs a Schedule, an Order and Groups")
	}
	if t.Epochs < 0 || t.PretrainEpochs < 0 || t.StepsPerExecution < 0 {
		return fmt.Errorf("train.Classification has %d epochs, %d for pretraining and %d steps per execution; none may be negative", t.Epochs, t.PretrainEpochs, t.StepsPerExecution)
	}
	if t.BatchSize < 1 {
		return fmt.Errorf("batch size is %d; it must be at least 1", t.BatchSize)
	}
	if t.Padding < 0 {
		return fmt.Errorf("padding is %d pixels; it must not be negative", t.Padding)
	}
	return t.Checkpoints.validate()
}

// ErrDiverged is wrapped by the error of a run whose objective or one of whose
// parameters is no number any more.
var ErrDiverged = errors.New("training diverged")

// Fit trains f on the images. It goes on from the last checkpoint in the folder,
// if there is one, and refuses one of a run with other settings.
//
// When ctx is cancelled it saves a checkpoint and returns ctx's error, wrapped.
// An objective or a parameter that is not a number any more is ErrDiverged,
// wrapped; no checkpoint of it is saved.
func (t Classification) Fit(ctx context.Context, f *nets.Classifier, data Images) (err error) {
	if err := t.validate(); err != nil {
		return err
	}
	if err := data.validate(f.Classes); err != nil {
		return err
	}
	if t.StepsPerExecution == 0 {
		t.StepsPerExecution = 1
	}
	if t.PretrainGroups == nil {
		t.PretrainGroups = t.Groups
	}
	if t.Notes == nil {
		t.Notes = func(string) {}
	}
	r := &classificationRun{Classification: t, fitted: f, data: data, device: data.toDevice()}
	defer func() { err = errors.Join(err, r.device.finalize()) }()
	r.epochSteps = (data.N() + t.BatchSize - 1) / t.BatchSize
	r.steps = (t.PretrainEpochs + t.Epochs) * r.epochSteps
	if t.Checkpoints.Folder == "" {
		if err := r.train(ctx); err != nil {
			return err
		}
		return checkFinite(f.Store) // as a save does
	}
	return r.trainSaving(ctx)
}

// A classificationRun is the state of one call of Fit.
type classificationRun struct {
	Classification
	fitted     *nets.Classifier
	data       Images
	device     deviceImages
	epochSteps int // steps of an epoch
	steps      int // of the run
	step       int // done
	order      []int
	orderEpoch int // of order, from 1
	epoch      epochLosses
	saves      *saves // nil without checkpoints
	speed      speed
}

// epochLosses are sums over the images of the current epoch so far.
type epochLosses struct {
	Sums   [lossColumns]float64 `json:"sums"`
	Images int                  `json:"images"`
}

// speed is the time that executions took, and how many steps and images they had.
type speed struct {
	time          time.Duration
	steps, images int
}

// train runs the steps that are left.
func (r *classificationRun) train(ctx context.Context) error {
	pretraining := phase{name: "pretraining", epochs: r.PretrainEpochs, groups: r.PretrainGroups, generative: true}
	joint := phase{name: "training", epochs: r.Epochs, groups: r.Groups}
	first := 0
	for _, p := range []phase{pretraining, joint} {
		end := first + p.epochs*r.epochSteps
		if err := r.phase(ctx, p, first, end); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		first = end
	}
	return nil
}

// phase runs what is left of the steps from first to before end.
func (r *classificationRun) phase(ctx context.Context, p phase, first, end int) (err error) {
	executions := r.newExecutions(p)
	defer func() { err = errors.Join(err, executions.close()) }()
	for r.step < end {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("stopped after %d of %d steps: %w", r.step, r.steps, err)
		}
		began := time.Now()
		shape := r.shape(p)
		table, err := r.table(shape)
		if err != nil {
			return err
		}
		rates := make([]float64, shape.count)
		for i := range rates {
			rates[i] = r.Schedule(r.step-first+i, end-first)
			if p.generative {
				rates[i] = r.Schedule(0, end-first)
			}
		}
		losses, compiled, err := executions.run(shape, table, rates, r.step-first+1)
		if err != nil {
			return fmt.Errorf("steps %d to %d: %w", r.step+1, r.step+shape.count, err)
		}
		if err := r.note(losses, shape.rows); err != nil {
			return err
		}
		if !compiled {
			r.speed.time += time.Since(began)
			r.speed.steps += shape.count
			r.speed.images += shape.rows * shape.count
		}
		r.report(p, rates[shape.count-1])
		if err := r.saves.afterStep(r); err != nil {
			return err
		}
	}
	return nil
}

// shape is that of the next execution: several steps of whole batches if the
// epoch has as many left, else one step. Pretraining, which is short, goes step by
// step: it would not gain the time that the larger graph takes to compile.
func (r *classificationRun) shape(p phase) executionShape {
	n, done := r.data.N(), r.step%r.epochSteps
	shape := executionShape{rows: min(r.BatchSize, n-done*r.BatchSize), count: 1}
	if !p.generative && n/r.BatchSize-done >= r.StepsPerExecution {
		shape.count = r.StepsPerExecution
	}
	return shape
}

// table is the picks of the next steps, [count, rows, pickColumns].
func (r *classificationRun) table(shape executionShape) (*tensors.Tensor, error) {
	epoch, n := r.step/r.epochSteps, r.data.N()
	if r.orderEpoch != epoch+1 {
		order := r.Order(r.Seed, epoch, n)
		if err := isPermutation(order, n); err != nil {
			return nil, fmt.Errorf("the order of epoch %d: %w", epoch, err)
		}
		r.order, r.orderEpoch = order, epoch+1
	}
	first := r.step % r.epochSteps * r.BatchSize
	images := r.order[first : first+shape.rows*shape.count]
	picks := make([]int32, 0, len(images)*pickColumns)
	for _, image := range images {
		top, left, flip := r.Padding, r.Padding, false
		if r.Augmentation != nil {
			top, left, flip = r.Augmentation.Draw(r.Seed, epoch, image)
		}
		if min(top, left) < 0 || max(top, left) > 2*r.Padding {
			return nil, fmt.Errorf("the augmentation cuts image %d at (%d, %d) in epoch %d; with a padding of %d both must be from 0 to %d", image, top, left, epoch, r.Padding, 2*r.Padding)
		}
		picks = append(picks, int32(image), int32(top), int32(left), 0)
		if flip {
			picks[len(picks)-1] = 1
		}
	}
	return tensors.FromFlatDataAndDimensions(picks, shape.count, shape.rows, pickColumns), nil
}

// isPermutation says why order is not one of 0 to n-1.
func isPermutation(order []int, n int) error {
	if len(order) != n {
		return fmt.Errorf("has %d images, want %d", len(order), n)
	}
	seen := make([]bool, n)
	for _, i := range order {
		if i < 0 || i >= n || seen[i] {
			return fmt.Errorf("has image %d twice, or there is no such image among %d", i, n)
		}
		seen[i] = true
	}
	return nil
}

// note counts steps of the given losses as done.
func (r *classificationRun) note(losses [][]float64, rows int) error {
	for _, row := range losses {
		if r.step%r.epochSteps == 0 {
			r.epoch = epochLosses{}
		}
		for i, value := range row {
			if math.IsNaN(value) || math.IsInf(value, 0) {
				return fmt.Errorf("step %d: the objective is no number any more: %+v; lower the learning rate or the noise at the start: %w", r.step+1, lossValues(row), ErrDiverged)
			}
			r.epoch.Sums[i] += value * float64(rows)
		}
		r.epoch.Images += rows
		r.step++
	}
	return nil
}

func (r *classificationRun) report(p phase, rate float64) {
	if r.Progress == nil {
		return
	}
	means := r.epoch.Sums
	for i := range means {
		means[i] /= float64(r.epoch.Images)
	}
	progress := ClassificationProgress{
		Step: r.step, Steps: r.steps,
		Epoch: r.step / r.epochSteps, Epochs: r.PretrainEpochs + r.Epochs,
		Pretraining: p.generative, Rate: rate, Losses: lossValues(means[:]),
	}
	if seconds := r.speed.time.Seconds(); seconds > 0 {
		progress.ImagesPerSecond = float64(r.speed.images) / seconds
		left := float64(r.steps-r.step) / float64(r.speed.steps)
		progress.Remaining = time.Duration(left * float64(r.speed.time))
	}
	r.Progress(progress)
}
