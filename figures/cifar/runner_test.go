package cifar

import (
	"context"
	"encoding/gob"
	"errors"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/baselines"
	"densityuncertainty/datasets"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment"
	"densityuncertainty/environment/atomicfile"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/cifar/predictions"
	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

var _ jobs.Runner = new(Runner)

func ignore(float64, string) {}

// fails reports an error, of what was tried, that there is not, or without the words.
func fails(t *testing.T, tried string, err error, words ...string) {
	t.Helper()
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%s: error %v, want one with %q", tried, err, w)
		}
	}
}

func errorOf[T any](_ T, err error) error { return err }

// madeUp are n images of noise in which each class has a brightness of its own.
func madeUp(name string, n, classes int, seed uint64) *datasets.Images {
	rng := rand.New(rand.NewPCG(seed, 0))
	m := &datasets.Images{Name: name, N: n, Pixels: make([]byte, n*datasets.ImageSize), Labels: make([]int, n), Classes: make([]string, classes)}
	for i := range n {
		m.Labels[i] = i % classes
		for k := range m.Image(i) {
			m.Image(i)[k] = byte(rng.IntN(100) + 100*(i%classes)/classes)
		}
	}
	return m
}

// withMadeUpImages is a runner of all methods whose CIFAR sets have 60 training and 12 test images, whose SVHN has 9,
// and which reads each set once.
func withMadeUpImages(t *testing.T) (r *Runner, reads map[string]int) {
	t.Helper()
	t.Setenv(environment.ConfigVariable, environment.GoSequential) // the same bits every time
	machine := must.Get(jobs.OpenMachine(environment.Images))(t)
	r, reads = &Runner{Machine: machine, Methods: methods.All()}, map[string]int{}
	r.images.files = imageFiles{
		cifar: func(_ context.Context, dataset string) (train, test *datasets.Images, err error) {
			reads[dataset]++
			set, err := datasetNamed(dataset)
			return madeUp(dataset+" train", 60, set.classes, 1), madeUp(dataset+" test", 12, set.classes, 2), err
		},
		svhn: func(context.Context, bool) (*datasets.Images, error) {
			reads[svhnTest]++
			return madeUp("svhn", 9, 10, 3), nil
		},
		excerpt: func(context.Context) (*datasets.Images, error) { return nil, nil },
	}
	return r, reads
}

// tinyProtocol is one of a few seconds.
func tinyProtocol() Protocol {
	p := Paper(CIFAR10, ResNet14).Quick()
	p.Epochs, p.Samples, p.TrainN, p.TestN, p.HeldOut, p.BatchSize = 2, 2, 16, 8, 6, 8
	return p
}

// tiny is its experiment.
func tiny(m methods.Method, changes ...func(p *Protocol)) results.Experiment {
	p := tinyProtocol()
	for _, change := range changes {
		change(&p)
	}
	return p.Experiments(m)[0]
}

func oneEpoch(p *Protocol) { p.Epochs = 1 }

// outcome is the line of an experiment.
func outcome(t *testing.T, r *Runner, e results.Experiment) results.Result {
	t.Helper()
	found, err := r.Run(context.Background(), []results.Experiment{e}, ignore)
	if err != nil || len(found) != 1 {
		t.Fatalf("%d results, error %v", len(found), err)
	}
	return found[0]
}

// withoutSpeed leaves out the metrics that no two runs share.
func withoutSpeed(r results.Result) map[string]float64 {
	same := maps.Clone(r.Metrics)
	delete(same, results.MetricImagesPerSecond)
	delete(same, results.MetricSecondsPerEpoch)
	return same
}

// forward fails the test where progress goes back, and collects the notes.
func forward(t *testing.T, last *float64, notes *strings.Builder) func(float64, string) {
	return func(done float64, note string) {
		if done < *last {
			t.Errorf("progress went back from %v to %v", *last, done)
		}
		*last = done
		notes.WriteString(note + "\n")
	}
}

// An experiment that is stopped in its training and continued by another runner ends with the numbers of one that was
// not, and its metrics are those of the predictions that it keeps.
func TestStoppedAndContinued(t *testing.T) {
	e := tiny(methods.Density)
	whole, _ := withMadeUpImages(t)
	whole.Predictions = t.TempDir()
	want := outcome(t, whole, e)

	work, kept := t.TempDir(), filepath.Join(t.TempDir(), "predictions")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	first, _ := withMadeUpImages(t)
	first.Work, first.Predictions = work, kept
	_, err := first.Run(ctx, []results.Experiment{e}, func(_ float64, note string) {
		if strings.HasPrefix(note, "training, epoch 2") {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "training") {
		t.Fatalf("the stopped run: %v", err)
	}
	must.Get(os.Stat(filepath.Join(jobs.WorkFolder(work, e), "checkpoints")))(t)

	second, _ := withMadeUpImages(t)
	second.Work, second.Predictions = work, kept
	var last float64
	var notes strings.Builder
	found := must.Get(second.Run(context.Background(), []results.Experiment{e}, forward(t, &last, &notes)))(t)
	if said := notes.String(); last < 0.999 || last > 1.001 || strings.Contains(said, "epoch 1 of 3") || !strings.Contains(said, "predicting svhn") {
		t.Errorf("progress ended at %v, after\n%s", last, said)
	}
	got := found[0]
	p := must.Get(predictions.Read(filepath.Join(kept, predictions.FileName(e.ID()))))(t)
	scores := must.Get(predictions.Score(p))(t)
	for name, score := range scores {
		if got.Metrics[name] != score {
			t.Errorf("%s is %v in the line and %v from the predictions", name, got.Metrics[name], score)
		}
	}
	if a, b := withoutSpeed(got), withoutSpeed(want); !maps.Equal(a, b) {
		t.Errorf("metrics\n%v, of the run that was not stopped\n%v", a, b)
	}
	for _, name := range []string{"accuracy", "nll", "ece10", "ece15", "brier", "ood_cifar100_auroc", "ood_cifar100_fpr95_energy",
		"ood_svhn_auprc_energyonce", "ood_svhn_ap_mutualinformation"} {
		if _, has := got.Metrics[name]; !has {
			t.Errorf("there is no metric %s", name)
		}
	}
	m := got.Metrics
	if m[results.MetricParameters] != 341266 || m[results.MetricTrainingGFLOP] < 0.27 || m[results.MetricSecondsPerEpoch] <= 0 {
		t.Errorf("costs: %v", m)
	}
	if got.ID != e.ID() || got.Batched != 1 || got.WallSeconds <= 0 || got.CPUSeconds <= 0 || got.Finished.IsZero() || got.Backend == "" {
		t.Errorf("the result is incomplete: %+v", got)
	}
	if len(p.Labels) != 8 || len(p.HeldOut.Mean) != 6 || len(p.Others) != 2 || len(p.Others[1].Entropy) != 8 {
		t.Errorf("predictions of %d test images, %d held out and %d sets", len(p.Labels), len(p.HeldOut.Mean), len(p.Others))
	}
}

// A run that is stopped in its predictions has those of the sets before, and draws the rest as if it had not been
// stopped; what is damaged, or of another network, is predicted again.
func TestStoppedInPredictions(t *testing.T) {
	e := tiny(methods.Density, oneEpoch)
	whole, _ := withMadeUpImages(t)
	want := outcome(t, whole, e)

	work := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	first, _ := withMadeUpImages(t)
	first.Work = work
	_, err := first.Run(ctx, []results.Experiment{e}, func(_ float64, note string) {
		if strings.HasPrefix(note, "predicting cifar100") {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "predicting") {
		t.Fatalf("the stopped run: %v", err)
	}
	folder := filepath.Join(jobs.WorkFolder(work, e), "predicted")
	files := must.Get(filepath.Glob(filepath.Join(folder, "*")))(t)
	if len(files) != 3 { // the last batch of CIFAR-100 is what is heard of
		t.Fatalf("of test images, those held out and CIFAR-100 there are %v", files)
	}
	goOn := func(t *testing.T) (predicted, notes string) {
		t.Helper()
		var said, noted strings.Builder
		r, _ := withMadeUpImages(t)
		r.Work, r.Notes = work, func(text string) { noted.WriteString(text) }
		var last float64
		found := must.Get(r.Run(context.Background(), []results.Experiment{e}, forward(t, &last, &said)))(t)
		if a, b := withoutSpeed(found[0]), withoutSpeed(want); !maps.Equal(a, b) {
			t.Errorf("metrics\n%v, of the run that was not stopped\n%v", a, b)
		}
		return said.String(), noted.String()
	}
	if said, _ := goOn(t); strings.Contains(said, "predicting cifar") || !strings.Contains(said, "predicting svhn") {
		t.Errorf("predicted:\n%s", said)
	}
	must.Do(t, os.WriteFile(files[0], []byte("damaged"), 0o600))
	said, notes := goOn(t)
	if strings.Contains(said, "predicting svhn") || !strings.Contains(notes, files[0]) {
		t.Errorf("with a damaged file, notes %q, predicted:\n%s", notes, said)
	}
	must.Do(t, os.Rename(files[1], files[0]))
	if said, notes := goOn(t); strings.Contains(said, "predicting svhn") || notes != "" {
		t.Errorf("with the file of other images, notes %q, predicted:\n%s", notes, said)
	}
	last := filepath.Join(folder, "set-3.gob")
	other := must.Get(readPredictedSet(last))(t)
	other.Network = []byte("another")
	other.Prediction.Probabilities[0] = math.NaN()
	must.Do(t, atomicfile.Write(last, func(w io.Writer) error { return gob.NewEncoder(w).Encode(other) }))
	if said, _ := goOn(t); !strings.Contains(said, "predicting svhn") {
		t.Error("what another network predicted is taken")
	}
}

// Images are read once for all experiments; a set that is not there leaves its metrics out and is spoken of; without
// images held out there are no energies.
func TestWithoutSomeSets(t *testing.T) {
	r, reads := withMadeUpImages(t)
	var notes []string
	r.Notes = func(text string) { notes = append(notes, text) }
	r.images.files.svhn = func(context.Context, bool) (*datasets.Images, error) {
		reads[svhnTest]++
		return nil, errors.New("no network")
	}
	noneHeldOut := func(p *Protocol) { p.HeldOut = 0 }
	for _, e := range []results.Experiment{
		tiny(methods.DensityMixture, oneEpoch, noneHeldOut, func(p *Protocol) { p.PretrainEpochs = 0 }),
		tiny(methods.MCDropout, oneEpoch, noneHeldOut, func(p *Protocol) { p.Seeds = []uint64{1} }),
	} {
		found := outcome(t, r, e)
		for name := range found.Metrics {
			if strings.Contains(name, "svhn") || strings.Contains(name, "energy") {
				t.Errorf("%v has a metric %s", e, name)
			}
		}
		if _, has := found.Metrics["ood_cifar100_auroc"]; !has {
			t.Errorf("%v lacks CIFAR-100", e)
		}
	}
	if reads[CIFAR10] != 1 || reads[CIFAR100] != 1 || reads[svhnTest] != 1 {
		t.Errorf("sets were read %v times", reads)
	}
	if len(notes) != 2 || !strings.Contains(notes[0], "svhn") || !strings.Contains(notes[0], "no network") {
		t.Errorf("notes %q", notes)
	}
}

func TestRunnerErrors(t *testing.T) {
	damaged := &datasets.FileError{File: "test_batch.bin", Err: datasets.ErrChecksum, Advice: "get it again"}
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	option := func(name, value string) func(*Runner, *results.Experiment) {
		return func(_ *Runner, e *results.Experiment) { e.Options = map[string]string{name: value} }
	}
	for _, c := range []struct {
		name   string
		ctx    context.Context
		change func(*Runner, *results.Experiment)
		want   string
	}{
		{"no data", context.Background(), func(r *Runner, _ *results.Experiment) {
			r.images.files.cifar = func(context.Context, string) (*datasets.Images, *datasets.Images, error) { return nil, nil, damaged }
		}, "test_batch.bin"},
		{"damaged data of a set out of distribution", context.Background(), func(r *Runner, _ *results.Experiment) {
			r.images.files.svhn = func(context.Context, bool) (*datasets.Images, error) { return nil, damaged }
		}, "not the published MD5"},
		{"an option", context.Background(), option("none", "1"), `no option "none"`},
		{"an option for others", context.Background(), option("clip", "true"), "no use for the option clip"},
		{"a precision for others", context.Background(), option("precision", "bfloat16"), "choose an accelerator"},
		{"a method", context.Background(), func(_ *Runner, e *results.Experiment) { e.Method = "none" }, `no method "none"`},
		{"a data set", context.Background(), func(_ *Runner, e *results.Experiment) { e.Dataset = "mnist" }, `no image data set "mnist"`},
		{"stopped", canceled, func(*Runner, *results.Experiment) {}, "context canceled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _ := withMadeUpImages(t)
			e := tiny(methods.MFVI)
			c.change(r, &e)
			if _, err := r.Run(c.ctx, []results.Experiment{e}, ignore); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// A run that diverges in training, or that was trained to the end and predicts what is no number or gives a label no
// chance at all, is a result that says so, without predictions.
func TestDivergence(t *testing.T) {
	for _, c := range []struct {
		name        string
		decay       float64
		epochs      int
		batch       int
		doing, what string
	}{
		{"in training", 1e30, 2, 8, "training: ", ""},
		{"no chance for a label", 10, 1, 16, "predicting: ", "nll is +Inf"},
		{"logits that are no numbers", 1e4, 1, 16, "predicting: ", "output at input 0 is NaN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _ := withMadeUpImages(t)
			r.Predictions = t.TempDir()
			var notes []string
			r.Notes = func(text string) { notes = append(notes, text) }
			found := outcome(t, r, tiny(methods.Deterministic, func(p *Protocol) {
				p.Epochs, p.BatchSize, p.LearningRate, p.WeightDecay = c.epochs, c.batch, 1, c.decay
			}))
			if !found.Diverged || found.Metrics != nil {
				t.Errorf("result %+v", found)
			}
			if len(notes) != 1 || !strings.Contains(notes[0], "diverged: "+c.doing) || !strings.Contains(notes[0], c.what) {
				t.Errorf("notes %q", notes)
			}
			if left, err := os.ReadDir(r.Predictions); err != nil || len(left) != 0 {
				t.Errorf("predictions that were kept: %v, %v", left, err)
			}
		})
	}
	nan, fine := math.NaN(), []float64{0.5, 0.5}
	for _, c := range []struct {
		want string
		p    imagePrediction
	}{
		{"probability number 1 on svhn is NaN", imagePrediction{Probabilities: []float64{1, nan}}},
		{"mutual information number 0 on svhn is +Inf", imagePrediction{Probabilities: fine, MutualInformation: []float64{math.Inf(1)}}},
		{"energy number 0 on svhn is NaN", imagePrediction{Probabilities: fine, Energies: predictions.Energies{Mean: []float64{nan}, Once: fine}}},
		{"energy of one sample number 1 on svhn is NaN", imagePrediction{Probabilities: fine, Energies: predictions.Energies{Mean: fine, Once: []float64{0, nan}}}},
	} {
		if err := c.p.check("svhn"); !errors.Is(err, train.ErrDiverged) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

func TestStepsPerExecution(t *testing.T) {
	for _, c := range []struct{ images, batch, want int }{{50000, 128, 5}, {45000, 128, 3}, {5000, 128, 3}, {512, 128, 4}, {97, 1, 4}} {
		if got := stepsPerExecution(c.images, c.batch); got != c.want {
			t.Errorf("%d images in batches of %d: %d steps, want %d", c.images, c.batch, got, c.want)
		}
	}
}

// The posterior's standard deviation is in the line of a method that has one.
func TestPosteriorStd(t *testing.T) {
	for _, c := range []struct {
		method  methods.Method
		initStd float64
	}{{methods.Density, 0.02}, {methods.MFVI, 0.02}, {methods.MCDropout, 0}} {
		t.Run(c.method.Name, func(t *testing.T) {
			r, _ := withMadeUpImages(t)
			found := outcome(t, r, tiny(c.method, oneEpoch, func(p *Protocol) { p.LearningRate, p.InitStd = 1e-6, c.initStd }))
			if got := found.Metrics[results.MetricPosteriorStd]; math.Abs(got-c.initStd) > 1e-4*c.initStd {
				t.Errorf("posterior standard deviation %v, want %v", got, c.initStd)
			}
		})
	}
}

// The cost of an experiment is that of its images, its network and its members.
func TestCost(t *testing.T) {
	r := &Runner{Methods: methods.All()}
	cost := func(p Protocol, m methods.Method) float64 { return r.Cost(p.Experiments(m)[0]) }
	plain := Paper(CIFAR10, ResNet14)
	// 200 epochs of 50,000 images, and two test sets of 10,000 once at a third of the effort.
	if got, want := cost(plain, methods.Deterministic), exampleCost*(200*50000+2*10000/3.); math.Abs(got/want-1) > 1e-12 {
		t.Errorf("cost %v, want %v", got, want)
	}
	if got := cost(plain, methods.Ensemble) / cost(plain, methods.Deterministic); math.Abs(got-methods.EnsembleMembers) > 1e-12 {
		t.Errorf("an ensemble costs as much as %v networks", got)
	}
	costs := []float64{cost(plain.Small(), methods.MFVI), cost(plain, methods.MFVI), cost(plain, methods.Density), cost(Paper(CIFAR10, WRN28x10), methods.MFVI)}
	if !slices.IsSorted(costs) || costs[0] > costs[1]/50 || costs[3] < 100*costs[1] {
		t.Errorf("costs of a part, of ResNet-14, with density layers and of the Wide ResNet are %v", costs)
	}
	if got := r.Cost(results.Experiment{Study: results.Images, Method: "none"}); got != 0 {
		t.Errorf("an unknown method costs %v", got)
	}
}

// A family of layers of one's own is trained, predicts, is measured and has its rows beside the others.
func TestMethodOfOnesOwn(t *testing.T) {
	mine := methods.New("narrow", baselines.MFVI{InitStd: 0.01, PriorStd: 0.2})
	r, _ := withMadeUpImages(t)
	p := tinyProtocol()
	p.Epochs, p.TrainN, p.TestN, p.HeldOut = 1, 8, 4, 4
	last, said := 0.0, ""
	p.Progress = func(done float64, note string) { last, said = done, said+note+"\n" }
	lines := must.Get(run(context.Background(), r, p, methods.List{methods.Deterministic, mine}))(t)
	if len(lines) != 2 || lines[1].Experiment.Method != "narrow" || math.Abs(last-1) > 1e-12 || !strings.Contains(said, "images narrow batch_size=8 on cifar10") {
		t.Fatalf("%d lines, progress to %v:\n%s", len(lines), last, said)
	}
	for _, metric := range []string{results.MetricNLL, results.MetricPosteriorStd, "ood_svhn_auroc", "ood_cifar100_auprc_mutualinformation"} {
		if _, has := lines[1].Metrics[metric]; !has {
			t.Errorf("no metric %s", metric)
		}
	}
	fails(t, "twice the same", errorOf(Run(context.Background(), p, mine, mine)), `two methods are named "narrow"`)
	fails(t, "without convolutions", errorOf(Run(context.Background(), p, methods.New("dense", denseOnly{}))), "have no convolution")
	p.Clip = true
	fails(t, "an option that a given family does not take", p.Check(mine), "narrow has no use for the option clip")
	if e := p.Experiments(mine)[0]; e.ID() != lines[1].ID {
		t.Errorf("with it the experiment is %v, without it %v", e, lines[1].Experiment)
	}
	forgotten := methods.Density
	forgotten.HasEnergies = false
	fails(t, "energy models that would not be trained", errorOf(run(context.Background(), r, tinyProtocol(), methods.List{forgotten})), "HasEnergies is false")
}
