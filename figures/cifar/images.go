package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gomlx/gomlx/core/tensors"

	"densityuncertainty/baselines"
	"densityuncertainty/datasets"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/atomicfile"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/predictions"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// WorkFolder is the folder of one experiment in progress below a folder of work.
func WorkFolder(work string, e experiment.Experiment) string { return filepath.Join(work, e.ID()) }

// runImages carries out image experiments one after the other: one of them fills
// a processor or an accelerator.
func (r *Runner) runImages(ctx context.Context, batch []experiment.Experiment, progress func(done float64, note string)) (found []results.Result, err error) {
	for i, e := range batch {
		line, err := r.image(ctx, e, func(done float64, note string) {
			progress((float64(i)+done)/float64(len(batch)), note)
		})
		if err != nil {
			return found, err
		}
		found = append(found, line)
	}
	return found, nil
}

// An imageRun is one image experiment while it runs.
type imageRun struct {
	*Runner
	experiment experiment.Experiment
	data       imageData
	members    []*nets.Model // of an ensemble; otherwise one
	finish     func() error  // what the method does after training
	progress   func(done float64, note string)
	effort     effort
	meter      *meter
}

// image trains a classifier, predicts and measures. Stopped and called again it
// goes on with the training where it was, given a folder for work.
func (r *Runner) image(ctx context.Context, e experiment.Experiment, progress func(done float64, note string)) (results.Result, error) {
	fail := func(doing string, err error) (results.Result, error) {
		return results.Result{}, fmt.Errorf("%v: %s: %w", e, doing, err)
	}
	recipe, err := ImageRecipeOf(e)
	if err != nil {
		return results.Result{}, err
	}
	network, err := recipe.network(e)
	if err != nil {
		return fail("building the network", err)
	}
	progress(0, "reading images")
	run := &imageRun{Runner: r, experiment: e, progress: progress}
	if run.data, err = r.images.imageDataOf(ctx, e, recipe, r.WithoutSVHN, r.note); err != nil {
		return fail("reading images", err)
	}
	classes, err := classesOf(e.Dataset)
	if err != nil {
		return fail("building the network", err)
	}
	if network, err = run.withProcess(ctx, recipe, network, classes); err != nil {
		return fail("building the network", err)
	}
	for m := range membersOf(e) {
		member, err := nets.New(r.backend, network, likelihood.Categorical{Classes: classes}, memberSeed(e, m))
		if err != nil {
			return fail("building the network", err)
		}
		run.members = append(run.members, member)
	}
	cost := network.CostOf(datasets.ImageChannels, datasets.ImageSide, datasets.ImageSide, classes)
	run.effort = run.effortOf(cost, recipe.PretrainEpochs+e.Epochs)
	folder := ""
	if r.Work != "" {
		folder = WorkFolder(r.Work, e)
	}
	if run.meter, err = startMeter(folder); err != nil {
		return fail("preparing", err)
	}
	line := results.Result{ID: e.ID(), Experiment: e, Backend: r.info.Backend, Device: r.info.Device, Version: r.info.Version, Batched: 1}
	doing := "training"
	if err = run.train(ctx, recipe, folder); err == nil {
		err = run.finish()
	}
	if err == nil {
		doing = "predicting"
		line.Metrics, err = run.measure(ctx)
	}
	switch {
	case errors.Is(err, train.ErrDiverged):
		r.note(fmt.Sprintf("%v diverged: %s: %v", e, doing, err))
		line.Diverged, line.Metrics = true, nil
	case err != nil:
		return fail(doing, errors.Join(err, run.meter.save()))
	default:
		if err := run.addPosteriorStd(line.Metrics); err != nil {
			return fail("measuring the posterior", err)
		}
		counts, err := nets.Parameters(r.backend, network, datasets.ImageChannels, datasets.ImageSide, datasets.ImageSide, classes)
		if err != nil {
			return fail("counting parameters", err)
		}
		members := float64(len(run.members))
		for _, n := range counts {
			line.Metrics[tables.MetricParameters] += members * float64(n)
		}
		line.Metrics[tables.MetricTrainingGFLOP] = members * cost.Training / 1e9
		if rate := run.meter.imagesPerSecond; rate > 0 {
			line.Metrics[tables.MetricImagesPerSecond] = rate / members
			line.Metrics[tables.MetricSecondsPerEpoch] = members * float64(run.data.train.N) / rate
		}
	}
	line.WallSeconds, line.CPUSeconds = run.meter.now()
	line.Finished = time.Now().UTC().Truncate(time.Second)
	return line, nil
}

// note tells the user what he should know though the run goes on.
func (r *Runner) note(text string) {
	if r.Notes != nil {
		r.Notes(text)
	}
}

// An effort is the work of a run, for the progress.
type effort struct {
	training, prediction float64 // floating-point operations
	images               int     // to predict
}

func (run *imageRun) effortOf(cost nets.Cost, epochs int) effort {
	d := run.data
	images := d.test.N
	if run.keepsEnergies() || run.fitsTemperature() {
		images += d.heldOut.N
	}
	for _, other := range d.others {
		images += other.images.N
	}
	return effort{training: cost.Training * float64(epochs*d.train.N), prediction: cost.Forward * float64(drawsOf(run.experiment)*images), images: images}
}

// keepsEnergies says whether there are energies, and images to compare them with.
func (run *imageRun) keepsEnergies() bool {
	return hasEnergies(run.experiment.Method) && run.data.heldOut != nil
}

// fitsTemperature says whether this is a single network with images that a
// temperature can be fitted on.
func (run *imageRun) fitsTemperature() bool {
	return run.experiment.Method == experiment.Deterministic && run.data.heldOut != nil
}

// report tells how far the run is, given the parts of training and prediction done.
func (run *imageRun) report(trained, predicted float64, note string) {
	e := run.effort
	run.progress((trained*e.training+predicted*e.prediction)/(e.training+e.prediction), note)
}

// stepsPerExecution is how many training steps of a small network an accelerator
// computes without asking the host in between: about 4, and if possible a divisor
// of the whole batches of an epoch, so that there are no single ones left over,
// which need a graph of their own.
func stepsPerExecution(images, batchSize int) int {
	batches := images / batchSize
	for _, steps := range []int{4, 5, 3, 6, 7, 8, 2} {
		if batches%steps == 0 {
			return steps
		}
	}
	return 4
}

// checkpointEvery is the most that a killed run loses, often enough for a card
// that trains a ResNet-14 in a quarter of an hour.
const checkpointEvery = 2 * time.Minute

// train fits the networks one after the other, each from its last checkpoint on.
func (run *imageRun) train(ctx context.Context, recipe ImageRecipe, folder string) error {
	for m := range run.members {
		if err := run.trainMember(ctx, recipe, folder, m); err != nil {
			if len(run.members) > 1 {
				err = fmt.Errorf("member %d of %d of the ensemble: %w", m+1, len(run.members), err)
			}
			return err
		}
	}
	return nil
}

func (run *imageRun) trainMember(ctx context.Context, recipe ImageRecipe, folder string, m int) error {
	fit := recipe.classification(run.experiment)
	onHost := run.members[m].Host != nil
	if onHost && fit.BFloat16 {
		return fmt.Errorf("option precision is bfloat16, which the backend %s has no use for; leave it at float32 or choose an accelerator (GOMLX_BACKEND)", run.info.Backend)
	}
	if !onHost && run.experiment.Network != experiment.WRN28x10 {
		fit.StepsPerExecution = stepsPerExecution(run.data.train.N, fit.BatchSize)
	}
	who := ""
	if len(run.members) > 1 {
		who = fmt.Sprintf("member %d of %d, ", m+1, len(run.members))
	}
	if folder != "" {
		fit.Checkpoints = train.Checkpoints{Folder: run.checkpoints(folder, m), Every: checkpointEvery, Version: run.info.Version}
	}
	fit.Notes = func(text string) { run.note(fmt.Sprintf("%v: %s%s", run.experiment, who, text)) }
	var lost error // of the meter
	fit.Progress = func(p train.Progress) {
		what := "training"
		if p.Pretraining {
			what = "generative pretraining"
		}
		note := fmt.Sprintf("%s%s, epoch %d of %d, loss %.3g, accuracy %.1f%%", who, what, (p.Step-1)*p.Epochs/p.Steps+1, p.Epochs, p.Losses.Total, 100*p.Losses.Accuracy)
		if p.ExamplesPerSecond > 0 {
			note += fmt.Sprintf(", %.0f images/s, about %v to train", p.ExamplesPerSecond, p.Remaining.Round(time.Second))
			run.meter.imagesPerSecond = p.ExamplesPerSecond
		}
		run.report((float64(m)+float64(p.Step)/float64(p.Steps))/float64(len(run.members)), 0, note)
		if err := run.meter.saveNowAndThen(); err != nil && lost == nil {
			lost = err
			run.note(fmt.Sprintf("%v: training goes on, but its time will not be known: %v", run.experiment, err))
		}
	}
	return fit.Fit(ctx, run.members[m], run.data.trainingSet())
}

// checkpoints is the folder of a member's checkpoints.
func (run *imageRun) checkpoints(folder string, m int) string {
	folder = filepath.Join(folder, "checkpoints")
	if len(run.members) > 1 {
		folder = filepath.Join(folder, fmt.Sprintf("member-%d", m))
	}
	return folder
}

// The batches of prediction.
const hostBatch, deviceBatch = 128, 500

// measure predicts all sets and computes the metrics. With a folder for
// predictions they are kept there, and the metrics are those of what is kept. A
// prediction or a metric that is not finite is train.ErrDiverged, wrapped: to
// measure again would not help.
func (run *imageRun) measure(ctx context.Context) (map[string]float64, error) {
	e, d := run.experiment, run.data
	p := &predictions.Predictions{Experiment: e.ID(), Dataset: e.Dataset, Classes: run.members[0].Likelihood.Outputs(), Samples: drawsOf(e) * len(run.members), Labels: d.test.Labels}
	done := 0.0
	predicted := func(m *datasets.Images) (imagePrediction, error) {
		share := float64(m.N) / float64(run.effort.images)
		found, err := run.predict(ctx, m, func(part float64, note string) { run.report(1, done+share*part, note) })
		done += share
		return found, err
	}
	test, err := predicted(d.test)
	if err != nil {
		return nil, err
	}
	p.Probs, p.MutualInformation, p.DempsterShafer, p.Energy = test.probabilities, test.mutualInformation, test.dempsterShafer, test.energies
	if run.keepsEnergies() || run.fitsTemperature() {
		held, err := predicted(d.heldOut)
		if err != nil {
			return nil, err
		}
		p.HeldOut = held.energies
		if run.fitsTemperature() {
			p.HeldOutLabels, p.HeldOutProbs = d.heldOut.Labels, held.probabilities
		}
	}
	for _, other := range d.others {
		found, err := predicted(other.images)
		if err != nil {
			return nil, err
		}
		set := predictions.Set{Name: other.name, MutualInformation: found.mutualInformation, DempsterShafer: found.dempsterShafer, Energy: found.energies}
		if set.MaxProbability, err = metrics.MaxProbability(found.probabilities, p.Classes); err != nil {
			return nil, err
		}
		if set.Entropy, err = metrics.Entropy(found.probabilities, p.Classes); err != nil {
			return nil, err
		}
		p.Others = append(p.Others, set)
	}
	scores, err := score(p)
	if err != nil || run.Predictions == "" {
		return scores, err
	}
	return kept(run.Predictions, p)
}

// An imagePrediction is what a run says of a set of images; lists that the method
// does not have are nil.
type imagePrediction struct {
	probabilities, mutualInformation []float64
	dempsterShafer                   []float64
	energies                         predictions.Energies
}

// predict asks all members, whose mixture is the prediction of an ensemble.
func (run *imageRun) predict(ctx context.Context, m *datasets.Images, report func(part float64, note string)) (imagePrediction, error) {
	e := run.experiment
	var p imagePrediction
	var each [][]float64 // the members' probabilities
	for i, member := range run.members {
		sampling := predict.Options{Samples: drawsOf(e), BatchSize: deviceBatch, Energies: run.keepsEnergies(), KeepOutputs: e.Method == experiment.SNGP}
		if member.Host != nil {
			sampling.BatchSize = hostBatch
		}
		sampling.Progress = func(images, total int) {
			report((float64(i)+float64(images)/float64(total))/float64(len(run.members)), fmt.Sprintf("predicting %s, image %d of %d", m.Name, images, total))
		}
		classes, err := predict.Sample(ctx, member, run.data.inputs(m), sampling)
		if errors.Is(err, metrics.ErrValue) { // of logits that are no numbers
			err = fmt.Errorf("%w: %w", train.ErrDiverged, err)
		}
		if err != nil {
			return p, err
		}
		p = imagePrediction{probabilities: classes.Probabilities, mutualInformation: classes.MutualInformation, energies: lastEnergies(classes)}
		if sampling.KeepOutputs { // all samples of SNGP are equal
			if p.dempsterShafer, err = metrics.DempsterShafer(classes.Outputs[0], classes.Width); err != nil {
				return p, err
			}
		}
		each = append(each, classes.Probabilities)
	}
	if len(each) > 1 {
		var err error
		if p.probabilities, p.mutualInformation, err = baselines.MixClasses(each, run.members[0].Likelihood.Outputs()); err != nil {
			return p, err
		}
	}
	return p, p.check(m.Name)
}

// check reports the first number that is not finite.
func (p imagePrediction) check(set string) error {
	for _, list := range []struct {
		name   string
		values []float64
	}{{"probability", p.probabilities}, {"mutual information", p.mutualInformation}, {"energy", p.energies.Mean}, {"energy of one sample", p.energies.Once}} {
		if i := slices.IndexFunc(list.values, notFinite); i >= 0 {
			return fmt.Errorf("%s number %d on %s is %v: %w", list.name, i, set, list.values[i], train.ErrDiverged)
		}
	}
	return nil
}

func notFinite(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

// score computes the metrics, which must be finite: the negative log-likelihood is
// not if a label has probability 0.
func score(p *predictions.Predictions) (map[string]float64, error) {
	scores, err := predictions.Score(p)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(scores)) {
		if notFinite(scores[name]) {
			return nil, fmt.Errorf("%s is %v: %w", name, scores[name], train.ErrDiverged)
		}
	}
	return scores, nil
}

// addPosteriorStd adds the geometric mean of the posterior standard deviations,
// e^(v/2) over the entries v of all log-variances, of a method that trains them.
func (run *imageRun) addPosteriorStd(to map[string]float64) error {
	sum, n := 0.0, 0
	store := run.members[0].Store // no ensemble has such a posterior
	for v := range store.IterVariables() {
		if params.RoleOf(v, store) != params.Variational || !strings.HasSuffix(v.Path(), "log_variance") {
			continue
		}
		value, err := v.Value()
		if err != nil {
			return fmt.Errorf("reading variable %s: %w", v.Path(), err)
		}
		if err := tensors.ConstFlatData(value, func(flat []float32) {
			for _, logVariance := range flat {
				sum += float64(logVariance)
			}
			n += len(flat)
		}); err != nil {
			return fmt.Errorf("reading variable %s: %w", v.Path(), err)
		}
	}
	if n > 0 {
		to[tables.MetricPosteriorStd] = math.Exp(sum / float64(n) / 2)
	}
	return nil
}

// kept writes predictions and scores what was written.
func kept(folder string, p *predictions.Predictions) (map[string]float64, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder for predictions: %w", err)
	}
	path := filepath.Join(folder, predictions.FileName(p.Experiment))
	if err := predictions.Write(path, p); err != nil {
		return nil, err
	}
	back, err := predictions.Read(path)
	if err != nil {
		return nil, err
	}
	return score(back)
}

// lastEnergies are those of the input of the last convolution; none without energies.
func lastEnergies(c *predict.Prediction) predictions.Energies {
	if c.Energies == nil || c.LastConvolution < 0 {
		return predictions.Energies{}
	}
	layer := c.Energies[c.LastConvolution]
	return predictions.Energies{Mean: layer.Mean, Once: layer.One}
}

// A meter adds up the time that a run takes, in all the processes in which it went
// on. What a killed process spent since the last save is lost.
type meter struct {
	before    spent  // by earlier processes
	file      string // "" for none
	began     time.Time
	beganCPU  time.Duration
	lastSaved time.Time
	// imagesPerSecond is the speed of the training, 0 while it is not known.
	imagesPerSecond float64
}

// spent is what a meter keeps in its file.
type spent struct {
	WallSeconds     float64 `json:"wall_seconds"`
	CPUSeconds      float64 `json:"cpu_seconds"`
	ImagesPerSecond float64 `json:"images_per_second"`
}

const meterEvery = 30 * time.Second

// startMeter goes on with the meter in a folder, if there is one.
func startMeter(folder string) (*meter, error) {
	m := &meter{began: time.Now(), beganCPU: cpuTime(), lastSaved: time.Now()}
	if folder == "" {
		return m, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder for work: %w", err)
	}
	m.file = filepath.Join(folder, "spent.json")
	content, err := os.ReadFile(m.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return m, nil
	case err != nil:
		return nil, fmt.Errorf("reading the time spent: %w", err)
	}
	if err := json.Unmarshal(content, &m.before); err != nil {
		return nil, fmt.Errorf("%s is damaged, remove it: %w", m.file, err)
	}
	m.imagesPerSecond = m.before.ImagesPerSecond
	return m, nil
}

// now is the time spent until now.
func (m *meter) now() (wall, cpu float64) {
	return m.before.WallSeconds + time.Since(m.began).Seconds(), m.before.CPUSeconds + (cpuTime() - m.beganCPU).Seconds()
}

func (m *meter) saveNowAndThen() error {
	if time.Since(m.lastSaved) < meterEvery {
		return nil
	}
	return m.save()
}

func (m *meter) save() error {
	m.lastSaved = time.Now()
	if m.file == "" {
		return nil
	}
	wall, cpu := m.now()
	content, err := json.Marshal(spent{wall, cpu, m.imagesPerSecond})
	if err != nil {
		return fmt.Errorf("keeping the time spent: %w", err)
	}
	if err := atomicfile.WriteBytes(m.file, content); err != nil {
		return fmt.Errorf("keeping the time spent: %w", err)
	}
	return nil
}
