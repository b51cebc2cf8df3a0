package cifar

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"gonum.org/v1/gonum/floats"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment"
	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

// Run carries out a protocol for each method and seed, on the backend that the environment chooses, and returns the
// results in the order of p.Experiments. It keeps nothing; p.Progress hears how it goes. Beside an error are the results
// of the runs that were finished before.
func Run(ctx context.Context, p Protocol, list ...methods.Method) (found []results.Result, err error) {
	for _, m := range list {
		if err := p.Check(m); err != nil {
			return nil, fmt.Errorf("cifar: %w", err)
		}
	}
	machine, err := jobs.OpenMachine(environment.Images)
	if err != nil {
		return nil, err
	}
	defer machine.Backend.Finalize()
	return run(ctx, &Runner{Machine: machine}, p, list)
}

func run(ctx context.Context, r *Runner, p Protocol, list methods.List) ([]results.Result, error) {
	if err := list.Validate(); err != nil {
		return nil, err
	}
	if err := jobs.Distinct("seed", p.Seeds); err != nil {
		return nil, fmt.Errorf("cifar: %w", err)
	}
	last := 0.0
	progress := func(done float64, note string) {
		last = done
		if p.Progress != nil {
			p.Progress(done, note)
		}
	}
	r.Methods, r.Notes, r.WithoutSVHN = list, func(text string) { progress(last, text) }, p.WithoutSVHN
	return jobs.Live(ctx, r, p.Experiments(list...), progress)
}

// Runner trains and tests image classifiers; it is a jobs.Runner.
type Runner struct {
	Machine jobs.Machine
	// Methods are those whose experiments it can carry out.
	Methods methods.List
	// Work is the folder in which experiments keep their checkpoints and predicted sets, each in its jobs.WorkFolder;
	// "" keeps none. The runner removes nothing there.
	Work string
	// Predictions is the folder in which experiments keep what their model said of each image; "" keeps nothing.
	Predictions string
	// Networks is the folder in which experiments keep their trained networks; "" keeps none.
	Networks string
	// WithoutSVHN lets the experiments that the table of out-of-distribution detection is made of go on where the
	// test part of SVHN cannot be had.
	WithoutSVHN bool
	// Notes, if not nil, hears what the user should know though a run goes on.
	Notes func(string)

	images, sample imageCache
}

// Run implements jobs.Runner. It carries out the experiments one after the other: one of them fills a processor or
// an accelerator. Stopped and called again it goes on with the training where it was, or with the first set of images that
// is not predicted yet, given a folder for work.
func (r *Runner) Run(ctx context.Context, batch []results.Experiment, progress func(done float64, note string)) (found []results.Result, err error) {
	for i, e := range batch {
		line, err := r.one(ctx, e, func(done float64, note string) {
			progress((float64(i)+done)/float64(len(batch)), note)
		})
		if err != nil {
			return found, err
		}
		found = append(found, line)
	}
	return found, nil
}

// exampleCost is how many examples of a small network, as those of UCI, an image of a plain ResNet-14's training step
// costs: some 2.5 ms of a processor's time, and 0.018 ms.
const exampleCost = 140

// Cost implements jobs.Runner: the operations of training and prediction, in units of those of a small network.
func (r *Runner) Cost(e results.Experiment) float64 {
	m, has := r.Methods.Named(e.Method)
	p, err := ProtocolOf(e)
	if err != nil || !has {
		return 0 // Run says what is wrong
	}
	all, allTest := p.available()
	cost, err := networkCost(p, m)
	plain, plainErr := networkCost(Paper(CIFAR10, ResNet14), methods.Deterministic)
	if err != nil || plainErr != nil {
		return 0
	}
	training, test := float64(all-e.HeldOut), float64(allTest)
	if e.TrainN > 0 {
		training = float64(e.TrainN)
	}
	if e.TestN > 0 {
		test = float64(e.TestN)
	}
	// The other CIFAR is predicted too.
	operations := cost.Training*training*float64(e.Epochs) + cost.Forward*float64(m.SamplesOf(e.Samples))*(2*test+float64(e.HeldOut))
	return exampleCost * float64(m.Networks()) * operations / plain.Training
}

// networkCost is that of a single network.
func networkCost(p Protocol, m methods.Method) (nets.Cost, error) {
	_, network, err := p.recipe(m)
	if err != nil {
		return nets.Cost{}, err
	}
	return network.CostOf(datasets.ImageChannels, datasets.ImageSide, datasets.ImageSide, p.classes()), nil
}

// An experimentRun is one experiment while it runs.
type experimentRun struct {
	*Runner
	experiment results.Experiment
	protocol   Protocol
	recipe     recipe
	cost       nets.Cost // of one network
	data       imageData
	classifier *Classifier
	progress   func(done float64, note string)
	effort     effort
	meter      *meter
}

// opened is an experiment with its protocol, network and images, and the classifier still to be made.
func (r *Runner) opened(ctx context.Context, e results.Experiment, progress func(done float64, note string)) (*experimentRun, nets.ResNet, error) {
	fail := func(doing string, err error) (*experimentRun, nets.ResNet, error) {
		return nil, nets.ResNet{}, fmt.Errorf("%v: %s: %w", e, doing, err)
	}
	m, has := r.Methods.Named(e.Method)
	if !has {
		return nil, nets.ResNet{}, fmt.Errorf("cifar: %v: there is no method %q for images; the runner has %s", e, e.Method, strings.Join(r.Methods.Names(), ", "))
	}
	x := &experimentRun{Runner: r, experiment: e, progress: progress}
	var err error
	if x.protocol, err = ProtocolOf(e); err != nil {
		return nil, nets.ResNet{}, err
	}
	var network nets.ResNet
	if x.recipe, network, err = x.protocol.recipe(m); err != nil {
		return fail("reading the protocol", err)
	}
	progress(0, "reading images")
	images := &r.images
	if x.protocol.Sample {
		images = &r.sample
		images.files = sampleImages
	}
	if x.data, err = images.of(ctx, e, x.recipe.ChannelStats, r.WithoutSVHN, r.note); err != nil {
		return fail("reading images", err)
	}
	x.cost = network.CostOf(datasets.ImageChannels, datasets.ImageSide, datasets.ImageSide, len(x.data.train.Classes))
	x.classifier = &Classifier{Method: m, Classes: x.data.train.Classes, Standardization: x.data.stats}
	return x, network, nil
}

// one trains a classifier, predicts and measures.
func (r *Runner) one(ctx context.Context, e results.Experiment, progress func(done float64, note string)) (line results.Result, err error) {
	defer jobs.Recover(&err, e)
	fail := func(doing string, err error) (results.Result, error) {
		return results.Result{}, fmt.Errorf("%v: %s: %w", e, doing, err)
	}
	x, network, err := r.opened(ctx, e, progress)
	if err != nil {
		return results.Result{}, err
	}
	needs, err := x.protocol.Memory(x.classifier.Method)
	if err != nil {
		return fail("building the network", err)
	}
	if needs != "" {
		r.note(fmt.Sprintf("%v: %s", e, needs))
	}
	if err := x.classifier.build(ctx, r.Machine.Backend, x.recipe, network, x.data.train, e); err != nil {
		return fail("building the network", err)
	}
	x.effort = x.effortOf()
	folder := ""
	if r.Work != "" {
		folder = jobs.WorkFolder(r.Work, e)
	}
	if x.meter, err = startMeter(folder, r.Machine.Info); err != nil {
		return fail("preparing", err)
	}
	line = r.Machine.Line(e, 1)
	x.meter.note(&line)
	doing := "training"
	if err = x.train(ctx, folder); err == nil {
		doing = "keeping the network"
		err = x.keepNetworks(line.Version)
	}
	if err == nil {
		doing = "predicting"
		line.Metrics, err = x.measure(ctx, folder)
	}
	switch {
	case errors.Is(err, train.ErrDiverged):
		r.note(fmt.Sprintf("%v diverged: %s: %v", e, doing, err))
		line.Diverged, line.Metrics = true, nil
	case err != nil:
		return fail(doing, errors.Join(err, x.meter.save()))
	default:
		if err := x.addPosteriorStd(line.Metrics); err != nil {
			return fail("measuring the posterior", err)
		}
		x.addCosts(line.Metrics)
	}
	x.meter.note(&line)
	line.Finished = time.Now().UTC().Truncate(time.Second)
	return line, nil
}

// PredictsAgain says whether a trained network of the method can be loaded and then predicts what it predicted after
// training: it draws no samples, and has no Gaussian process.
func PredictsAgain(m methods.Method) bool { return m.SamplesOf(2) == 1 && m.Process == nil }

// Predict predicts the images of an experiment with the trained network that its run kept in a folder, without training:
// the predictions have what that run's lack, such as a set of images that was not at hand then. It returns their metrics
// without costs. The method must be one that PredictsAgain; an error says if it is not, or names the file that is missing
// or not as it should be (see LoadClassifier; fs.ErrNotExist where the run kept none).
func (r *Runner) Predict(ctx context.Context, e results.Experiment, networks string, progress func(done float64, note string)) (metrics map[string]float64, err error) {
	defer jobs.Recover(&err, e)
	x, _, err := r.opened(ctx, e, progress)
	if err != nil {
		return nil, err
	}
	m := x.classifier.Method
	if !PredictsAgain(m) {
		return nil, fmt.Errorf("cifar: %v: networks of %s draw samples, or cannot be loaded without their training data, so that they do not predict the same again", e, m.Name)
	}
	var files []string
	for i := range m.Networks() {
		files = append(files, filepath.Join(networks, NetworkFile(e, i, m.Networks())))
	}
	if x.classifier, err = LoadClassifier(r.Machine.Backend, files, r.Methods...); err != nil {
		return nil, err
	}
	if x.classifier.Origin != e.String() {
		return nil, fmt.Errorf("cifar: %s is the network of another run: %s, not %v", files[0], x.classifier.Origin, e)
	}
	if x.meter, err = startMeter("", r.Machine.Info); err != nil {
		return nil, err
	}
	x.cost.Training = 0
	x.effort = x.effortOf()
	return x.measure(ctx, "")
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

func (x *experimentRun) effortOf() effort {
	images := x.data.test.N
	if x.keepsEnergies() || x.fitsTemperature() {
		images += x.data.heldOut.N
	}
	for _, other := range x.data.others {
		images += other.images.N
	}
	epochs := x.recipe.Energies.PretrainEpochs + x.experiment.Epochs
	samples := x.classifier.Method.SamplesOf(x.experiment.Samples)
	return effort{training: x.cost.Training * float64(epochs*x.data.train.N), prediction: x.cost.Forward * float64(samples*images), images: images}
}

// report tells how far the run is, given the parts of training and prediction done.
func (x *experimentRun) report(trained, predicted float64, note string) {
	e := x.effort
	x.progress((trained*e.training+predicted*e.prediction)/(e.training+e.prediction), note)
}

// stepsPerExecution is how many training steps of a small network an accelerator computes without asking the host in
// between: about 4, and if possible a divisor of the whole batches of an epoch, so that there are no single ones left
// over, which need a graph of their own.
func stepsPerExecution(images, batchSize int) int {
	batches := images / batchSize
	for _, steps := range []int{4, 5, 3, 6, 7, 8, 2} {
		if batches%steps == 0 {
			return steps
		}
	}
	return 4
}

// checkpointEvery is the most that a killed run loses, often enough for a card that trains a ResNet-14 in a quarter
// of an hour.
const checkpointEvery = 2 * time.Minute

// train fits the networks, each from its last checkpoint on.
func (x *experimentRun) train(ctx context.Context, folder string) error {
	c := x.classifier
	run := x.recipe.training(x.experiment.Epochs, c.Method.ImageSchedule)
	onHost := c.members[0].Host != nil
	if onHost && run.BFloat16 {
		return fmt.Errorf("option precision is bfloat16, which the backend %s has no use for; leave it at float32 or choose an accelerator (%s)",
			x.Machine.Info.Backend, environment.ConfigVariable)
	}
	if !onHost && x.experiment.Network != WRN28x10 {
		run.StepsPerExecution = stepsPerExecution(x.data.train.N, run.BatchSize)
	}
	return c.fit(ctx, run, x.data.train, func(member int, run *train.Trainer) {
		if folder != "" {
			run.Checkpoints = train.Checkpoints{Folder: x.checkpoints(folder, member), Every: checkpointEvery, Version: x.Machine.Info.Version}
		}
		run.Notes = func(text string) { x.note(fmt.Sprintf("%v: %s%s", x.experiment, c.who(member), text)) }
		run.Progress = func(p train.Progress) { x.trained(member, p) }
	})
}

// trained hears of the training of a member.
func (x *experimentRun) trained(member int, p train.Progress) {
	note := fmt.Sprintf("%s%s, epoch %d of %d, loss %.3g, accuracy %.1f%%",
		x.classifier.who(member), phase(p), (p.Step-1)*p.Epochs/p.Steps+1, p.Epochs, p.Losses.Total, 100*p.Losses.Accuracy)
	if p.ExamplesPerSecond > 0 {
		note += fmt.Sprintf(", %.0f images/s, about %v to train", p.ExamplesPerSecond, p.Remaining.Round(time.Second))
		x.meter.imagesPerSecond = p.ExamplesPerSecond
	}
	x.report(x.classifier.trained(member, p), 0, note)
	x.keepTime()
}

// keepTime saves the time spent, now and then.
func (x *experimentRun) keepTime() {
	if err := x.meter.saveNowAndThen(); err != nil && !x.meter.lost {
		x.meter.lost = true
		x.note(fmt.Sprintf("%v: the run goes on, but its time will not be known: %v", x.experiment, err))
	}
}

// checkpoints is the folder of a member's checkpoints.
func (x *experimentRun) checkpoints(folder string, member int) string {
	folder = filepath.Join(folder, "checkpoints")
	if len(x.classifier.members) > 1 {
		folder = filepath.Join(folder, fmt.Sprintf("member-%d", member))
	}
	return folder
}

// addPosteriorStd adds the geometric mean of the posterior standard deviations, e^(v/2) over the entries v of all
// log-variances of all members, of a method that trains them.
func (x *experimentRun) addPosteriorStd(to map[string]float64) error {
	sum, n := 0.0, 0
	for _, member := range x.classifier.members {
		store := member.Store
		for v := range store.IterVariables() {
			if params.RoleOf(v, store) != params.Variational || !strings.HasSuffix(v.Path(), "log_variance") {
				continue
			}
			value, err := v.Value()
			if err != nil {
				return fmt.Errorf("reading variable %s: %w", v.Path(), err)
			}
			logVariances, err := params.ToFloat64(value)
			if err != nil {
				return fmt.Errorf("reading variable %s: %w", v.Path(), err)
			}
			sum, n = sum+floats.Sum(logVariances), n+len(logVariances)
		}
	}
	if n > 0 {
		to[results.MetricPosteriorStd] = math.Exp(sum / float64(n) / 2)
	}
	return nil
}

// addCosts adds what all members together cost.
func (x *experimentRun) addCosts(to map[string]float64) {
	members := float64(len(x.classifier.members))
	for _, n := range x.classifier.counts {
		to[results.MetricParameters] += members * float64(n)
	}
	to[results.MetricTrainingGFLOP] = members * x.cost.Training / 1e9
	if rate := x.meter.imagesPerSecond; rate > 0 {
		to[results.MetricImagesPerSecond] = rate / members
		to[results.MetricSecondsPerEpoch] = members * float64(x.data.train.N) / rate
	}
}
