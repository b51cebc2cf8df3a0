package runner

import (
	"context"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/datasets"
	"densityuncertainty/datasets/fetch"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/predictions"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// madeUp are n images of noise in which each class has a brightness of its own.
func madeUp(name string, n, classes int, seed uint64) *datasets.Images {
	rng := rand.New(rand.NewPCG(seed, 0))
	m := &datasets.Images{Name: name, N: n, Pixels: make([]byte, n*datasets.ImageSize), Labels: make([]int, n)}
	for i := range n {
		m.Labels[i] = i % classes
		for k := range m.Image(i) {
			m.Image(i)[k] = byte(rng.IntN(100) + 100*(i%classes)/classes)
		}
	}
	return m
}

// withMadeUpImages is a runner whose CIFAR sets have 60 training and 12 test
// images, whose SVHN has 9, and which reads each set once.
func withMadeUpImages(t *testing.T) (r *Runner, reads map[string]int) {
	t.Helper()
	t.Setenv(environment.ConfigVariable, environment.GoSequential) // the same bits every time
	r, reads = newRunner(t), map[string]int{}
	r.images.files = imageFiles{
		cifar: func(_ context.Context, dataset string) (train, test *datasets.Images, err error) {
			reads[dataset]++
			classes, err := classesOf(dataset)
			return madeUp(dataset+" train", 60, classes, 1), madeUp(dataset+" test", 12, classes, 2), err
		},
		svhn: func(context.Context, bool) (*datasets.Images, error) {
			reads[svhnTest]++
			return madeUp("svhn", 9, 10, 3), nil
		},
		excerpt: func(context.Context) (*datasets.Images, error) { return nil, nil },
	}
	return r, reads
}

func tinyImages(method string) experiment.Experiment {
	return experiment.Experiment{Study: experiment.Images, Method: method, Dataset: experiment.CIFAR10, Network: experiment.ResNet14, Epochs: 2, Samples: 2,
		Fidelity: experiment.Paper, Scale: experiment.Quick, TrainN: 16, TestN: 8, HeldOut: 6, Options: map[string]string{"batch_size": "8"}}
}

// withoutSpeed leaves out the metrics that no two runs share.
func withoutSpeed(r results.Result) map[string]float64 {
	same := maps.Clone(r.Metrics)
	delete(same, tables.MetricImagesPerSecond)
	delete(same, tables.MetricSecondsPerEpoch)
	return same
}

// An image experiment that is stopped in its training and continued by another
// runner ends with the numbers of one that was not, and its metrics are those of
// the predictions that it keeps.
func TestImagesStoppedAndContinued(t *testing.T) {
	e := tinyImages(experiment.Density)
	whole, _ := withMadeUpImages(t)
	whole.Predictions = t.TempDir()
	want, err := whole.Run(context.Background(), []experiment.Experiment{e}, ignore)
	if err != nil {
		t.Fatal(err)
	}

	work, kept := t.TempDir(), filepath.Join(t.TempDir(), "predictions")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	first, _ := withMadeUpImages(t)
	first.Work, first.Predictions = work, kept
	_, err = first.Run(ctx, []experiment.Experiment{e}, func(_ float64, note string) {
		if strings.HasPrefix(note, "training, epoch 2") {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "training") {
		t.Fatalf("the stopped run: %v", err)
	}
	if _, err := os.Stat(filepath.Join(WorkFolder(work, e), "checkpoints")); err != nil {
		t.Fatal(err)
	}

	second, _ := withMadeUpImages(t)
	second.Work, second.Predictions = work, kept
	last, notes := 0.0, ""
	found, err := second.Run(context.Background(), []experiment.Experiment{e}, func(done float64, note string) {
		if done < last {
			t.Errorf("progress went back from %v to %v", last, done)
		}
		last = done
		notes += note + "\n"
	})
	if err != nil {
		t.Fatal(err)
	}
	if last < 0.999 || last > 1.001 || strings.Contains(notes, "epoch 1 of 3") || !strings.Contains(notes, "predicting svhn") {
		t.Errorf("progress ended at %v, after\n%s", last, notes)
	}
	got := found[0]
	p, err := predictions.Read(filepath.Join(kept, predictions.FileName(e.ID())))
	if err != nil {
		t.Fatal(err)
	}
	scores, err := predictions.Score(p)
	if err != nil {
		t.Fatal(err)
	}
	for name, score := range scores {
		if got.Metrics[name] != score {
			t.Errorf("%s is %v in the line and %v from the predictions", name, got.Metrics[name], score)
		}
	}
	for name, value := range withoutSpeed(want[0]) {
		if got.Metrics[name] != value {
			t.Errorf("%s is %v, in the run that was not stopped %v", name, got.Metrics[name], value)
		}
	}
	for _, name := range []string{"accuracy", "nll", "ece10", "ece15", "brier", "ood_cifar100_auroc", "ood_cifar100_fpr95_energy", "ood_svhn_auprc_energyonce", "ood_svhn_ap_mutualinformation"} {
		if _, has := got.Metrics[name]; !has {
			t.Errorf("there is no metric %s", name)
		}
	}
	if got.Metrics[tables.MetricParameters] != 341266 || got.Metrics[tables.MetricTrainingGFLOP] < 0.27 || got.Metrics[tables.MetricSecondsPerEpoch] <= 0 {
		t.Errorf("costs: %v", got.Metrics)
	}
	if got.ID != e.ID() || got.Batched != 1 || got.WallSeconds <= 0 || got.CPUSeconds <= 0 || got.Finished.IsZero() || got.Backend == "" {
		t.Errorf("the result is incomplete: %+v", got)
	}
	if len(p.Labels) != 8 || len(p.HeldOut.Mean) != 6 || len(p.Others) != 2 || len(p.Others[1].Entropy) != 8 {
		t.Errorf("predictions of %d test images, %d held out and %d sets", len(p.Labels), len(p.HeldOut.Mean), len(p.Others))
	}
}

// Images are read once for all experiments; a set that is not there leaves its
// metrics out and is spoken of; without images held out there are no energies.
func TestImagesWithoutSomeSets(t *testing.T) {
	r, reads := withMadeUpImages(t)
	var notes []string
	r.Notes = func(text string) { notes = append(notes, text) }
	r.images.files.svhn = func(context.Context, bool) (*datasets.Images, error) {
		reads[svhnTest]++
		return nil, errors.New("no network")
	}
	e := tinyImages(experiment.DensityRank1Mix)
	e.Epochs, e.HeldOut, e.Options = 1, 0, map[string]string{"batch_size": "8", "pretrain_epochs": "0"}
	other := e
	other.Method, other.Seed = experiment.MCDropout, 1
	for _, batch := range [][]experiment.Experiment{{e}, {other}} {
		found, err := r.Run(context.Background(), batch, ignore)
		if err != nil {
			t.Fatal(err)
		}
		for name := range found[0].Metrics {
			if strings.Contains(name, "svhn") || strings.Contains(name, "energy") {
				t.Errorf("%v has a metric %s", batch[0], name)
			}
		}
		if _, has := found[0].Metrics["ood_cifar100_auroc"]; !has {
			t.Errorf("%v lacks CIFAR-100", batch[0])
		}
	}
	if reads[experiment.CIFAR10] != 1 || reads[experiment.CIFAR100] != 1 || reads[svhnTest] != 1 {
		t.Errorf("sets were read %v times", reads)
	}
	if len(notes) != 2 || !strings.Contains(notes[0], "svhn") || !strings.Contains(notes[0], "no network") {
		t.Errorf("notes %q", notes)
	}
}

// A grid run is measured on training images that it was not trained on, and on
// nothing else.
func TestImagesOfTheData(t *testing.T) {
	r, _ := withMadeUpImages(t)
	e := tinyImages(experiment.VDropout)
	e.Scale, e.TrainN, e.TestN = experiment.Grid, 0, 0
	recipe := imageRecipe(t, e)
	d, err := r.images.imageDataOf(context.Background(), e, recipe, false, func(text string) { t.Log(text) })
	if err != nil {
		t.Fatal(err)
	}
	if d.train.N != 54 || d.test.N != 6 || d.heldOut != nil || d.others != nil {
		t.Errorf("%d training and %d test images, held out %v, others %v", d.train.N, d.test.N, d.heldOut, d.others)
	}
	for i := range d.test.N {
		for k := range d.train.N {
			if slices.Equal(d.test.Image(i), d.train.Image(k)) {
				t.Fatalf("held-out image %d is training image %d", i, k)
			}
		}
	}
	// The held-out images depend on neither seed nor method, a subset is a part of the rest.
	small := tinyImages(experiment.Density)
	small.Seed = 5
	sub, err := r.images.imageDataOf(context.Background(), small, recipe, false, func(text string) { t.Log(text) })
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(sub.heldOut.Pixels, d.test.Pixels) || sub.train.N != 16 || sub.test.N != 8 {
		t.Errorf("%d training, %d test and %d held-out images", sub.train.N, sub.test.N, sub.heldOut.N)
	}
	mean := 0.0
	for _, v := range sub.train.Pixels {
		mean += float64(v) / 255 / float64(len(sub.train.Pixels))
	}
	got := (sub.stats.Mean[0] + sub.stats.Mean[1] + sub.stats.Mean[2]) / 3
	if diff := got - mean; diff > 1e-9 || diff < -1e-9 {
		t.Errorf("the mean of the images to train on is %v, standardised by %v", mean, got)
	}
	recipe.ReleasedStats = true
	if sub, err := r.images.imageDataOf(context.Background(), small, recipe, false, func(text string) { t.Log(text) }); err != nil || sub.stats.Mean[0] != 0.4914 {
		t.Errorf("released statistics: %v (error %v)", sub.stats, err)
	}
	for name, change := range map[string]func(*experiment.Experiment){
		"too many to train on": func(e *experiment.Experiment) { e.TrainN = 55 },
		"all held out":         func(e *experiment.Experiment) { e.TrainN, e.HeldOut = 0, 60 },
		"too many to test on":  func(e *experiment.Experiment) { e.TestN = 13 },
	} {
		e := small
		change(&e)
		if _, err := r.images.imageDataOf(context.Background(), e, recipe, false, func(text string) { t.Log(text) }); err == nil || !strings.Contains(err.Error(), "held out") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestImageErrors(t *testing.T) {
	damaged := &datasets.FileError{File: "test_batch.bin", Offset: -1, Err: datasets.ErrChecksum, Advice: "get it again"}
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	for name, c := range map[string]struct {
		ctx    context.Context
		change func(*Runner, *experiment.Experiment)
		want   string
	}{
		"no data": {context.Background(), func(r *Runner, _ *experiment.Experiment) {
			r.images.files.cifar = func(context.Context, string) (*datasets.Images, *datasets.Images, error) { return nil, nil, damaged }
		}, "test_batch.bin"},
		"damaged data of a set out of distribution": {context.Background(), func(r *Runner, _ *experiment.Experiment) {
			r.images.files.svhn = func(context.Context, bool) (*datasets.Images, error) { return nil, damaged }
		}, "not the published MD5"},
		"an option": {context.Background(), func(_ *Runner, e *experiment.Experiment) { e.Options = map[string]string{"none": "1"} }, `no option "none"`},
		"a method":  {context.Background(), func(_ *Runner, e *experiment.Experiment) { e.Method = "none" }, `no method "none"`},
		"a data set": {context.Background(), func(_ *Runner, e *experiment.Experiment) { e.Dataset = "mnist" },
			`no image data set "mnist"`},
		"stopped": {canceled, func(*Runner, *experiment.Experiment) {}, "context canceled"},
	} {
		r, _ := withMadeUpImages(t)
		e := tinyImages(experiment.MFVI)
		c.change(r, &e)
		if _, err := r.Run(c.ctx, []experiment.Experiment{e}, ignore); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

// A run that diverges is a result that says so.
func TestImagesDiverge(t *testing.T) {
	r, _ := withMadeUpImages(t)
	e := tinyImages(experiment.Deterministic)
	e.Options["learning_rate"] = "1e30"
	found, err := r.Run(context.Background(), []experiment.Experiment{e}, ignore)
	if err != nil || len(found) != 1 || !found[0].Diverged || found[0].Metrics != nil {
		t.Errorf("results %+v, error %v", found, err)
	}
}

// A model that was trained to the end and predicts what is no number, or gives a
// label no chance at all, is a result that says so too.
func TestImagesDivergeInPrediction(t *testing.T) {
	r, _ := withMadeUpImages(t)
	r.Predictions = t.TempDir()
	var notes []string
	r.Notes = func(text string) { notes = append(notes, text) }
	for rate, want := range map[string]string{"1e3": "nll is +Inf", "1e4": "logits[0][0] is NaN"} {
		notes = nil
		e := tinyImages(experiment.Deterministic)
		e.Epochs, e.Options["batch_size"], e.Options["learning_rate"] = 1, "16", rate
		found, err := r.Run(context.Background(), []experiment.Experiment{e}, ignore)
		if err != nil || len(found) != 1 || !found[0].Diverged || found[0].Metrics != nil {
			t.Errorf("results %+v, error %v", found, err)
		}
		if len(notes) != 1 || !strings.Contains(notes[0], "diverged: predicting: ") || !strings.Contains(notes[0], want) {
			t.Errorf("notes %q, want %s", notes, want)
		}
	}
	if left, err := os.ReadDir(r.Predictions); err != nil || len(left) != 0 {
		t.Errorf("predictions of a run that diverged: %v, %v", left, err)
	}
	nan, fine := math.NaN(), []float64{0.5, 0.5}
	for want, p := range map[string]imagePrediction{
		"probability number 1 on svhn is NaN":          {probabilities: []float64{1, nan}},
		"mutual information number 0 on svhn is +Inf":  {probabilities: fine, mutualInformation: []float64{math.Inf(1)}},
		"energy number 0 on svhn is NaN":               {probabilities: fine, energies: predictions.Energies{Mean: []float64{nan}, Once: fine}},
		"energy of one sample number 1 on svhn is NaN": {probabilities: fine, energies: predictions.Energies{Mean: fine, Once: []float64{0, nan}}},
	} {
		if err := p.check("svhn"); !errors.Is(err, train.ErrDiverged) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A run of the table of out-of-distribution detection does not begin without SVHN,
// unless it was told to.
func TestOODNeedsSVHN(t *testing.T) {
	for _, name := range oodSets() {
		set, found := experiment.SetByName(name)
		if !found || !needsSVHN(set.At(experiment.Full)[0]) {
			t.Errorf("the set %s: found %v, or needs no SVHN", name, found)
		}
	}
	set, _ := experiment.SetByName(oodSets()[0])
	e := set.At(experiment.Full)[0]
	for name, missing := range map[string]error{"no network": errors.New("no network"), "there is no such file": nil} {
		r, _ := withMadeUpImages(t)
		r.images.files.svhn = func(context.Context, bool) (*datasets.Images, error) { return nil, missing }
		_, err := r.Run(context.Background(), []experiment.Experiment{e}, func(_ float64, note string) {
			if note != "reading images" {
				t.Fatalf("it went on: %s", note)
			}
		})
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "--without-svhn") || !strings.Contains(err.Error(), "test_32x32.mat") {
			t.Errorf("%s: %v", name, err)
		}
		other := e
		other.Scale = experiment.Small
		for _, c := range []struct {
			e       experiment.Experiment
			without bool
		}{{e, true}, {other, false}} {
			d, err := r.images.imageDataOf(context.Background(), c.e, imageRecipe(t, c.e), c.without, ignoreNote)
			if err != nil || len(d.others) != 1 {
				t.Errorf("%v without %v: %d sets, error %v", c.e, c.without, len(d.others), err)
			}
		}
	}
}

func ignoreNote(string) {}

func TestStepsPerExecution(t *testing.T) {
	for _, c := range []struct{ images, batch, want int }{{50000, 128, 5}, {45000, 128, 3}, {5000, 128, 3}, {512, 128, 4}, {97, 1, 4}} {
		if got := stepsPerExecution(c.images, c.batch); got != c.want {
			t.Errorf("%d images in batches of %d: %d steps, want %d", c.images, c.batch, got, c.want)
		}
	}
}

// The posterior's standard deviation is in the line of a method that has one.
func TestPosteriorStd(t *testing.T) {
	r, _ := withMadeUpImages(t)
	for method, want := range map[string]float64{experiment.Density: 0.02, experiment.MFVI: 0.02, experiment.MCDropout: 0} {
		e := tinyImages(method)
		e.Epochs, e.Options["learning_rate"], e.Options["init_std"] = 1, "1e-6", "0.02"
		found, err := r.Run(context.Background(), []experiment.Experiment{e}, ignore)
		if err != nil {
			t.Fatal(err)
		}
		if got := found[0].Metrics[tables.MetricPosteriorStd]; math.Abs(got-want) > 1e-4*want {
			t.Errorf("%s: posterior standard deviation %v, want %v", method, got, want)
		}
	}
}

func TestMeterGoesOn(t *testing.T) {
	folder := t.TempDir()
	m, err := startMeter(folder)
	if err != nil {
		t.Fatal(err)
	}
	m.began = m.began.Add(-meterEvery)
	m.lastSaved = m.began
	m.imagesPerSecond = 7
	if err := m.saveNowAndThen(); err != nil {
		t.Fatal(err)
	}
	next, err := startMeter(folder)
	if err != nil {
		t.Fatal(err)
	}
	if wall, _ := next.now(); wall < meterEvery.Seconds() || next.imagesPerSecond != 7 {
		t.Errorf("after %v the next meter has %v s and %v images/s", meterEvery, wall, next.imagesPerSecond)
	}
	if err := os.WriteFile(m.file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := startMeter(folder); err == nil || !strings.Contains(err.Error(), m.file) {
		t.Errorf("a damaged file: %v", err)
	}
}

// Without being told to download, optional sets are taken from the local folder or left out.
func TestOptionalSets(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(fetch.EnvData, folder)
	files := officialFiles()
	if m, err := files.svhn(context.Background(), false); m != nil || err != nil {
		t.Errorf("SVHN that is not there: %v, %v", m, err)
	}
	if m, err := files.excerpt(context.Background()); m != nil || err != nil {
		t.Errorf("an excerpt that is not there: %v, %v", m, err)
	}
	if err := os.Mkdir(filepath.Join(folder, "svhn"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"test_32x32.mat", "svhn/train_first1083_32x32.mat"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := files.svhn(context.Background(), false); err == nil || !strings.Contains(err.Error(), "test_32x32.mat") {
		t.Errorf("a damaged SVHN: %v", err)
	}
	if _, err := files.excerpt(context.Background()); err == nil || !strings.Contains(err.Error(), "train_first1083_32x32.mat") {
		t.Errorf("a damaged excerpt: %v", err)
	}
}
