package train_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/internal/fixtures"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/dul/train"
)

// jitter is an augmentation of images padded by two pixels.
type jitter struct{}

func (jitter) Draw(seed uint64, epoch, image int) (top, left int, flip bool) {
	rng := rand.New(rand.NewPCG(seed+uint64(epoch), uint64(image)))
	return rng.IntN(5), rng.IntN(5), rng.IntN(2) == 1
}

const tinyClasses = 3

// tinyClassifier is an untrained residual network for images of 8 x 8 pixels
// with everything that has a state: layers with noise, energy models, batch
// normalisation.
func tinyClassifier(t testing.TB, layers nets.ConvLayers, dtype dtypes.DType) *nets.Classifier {
	t.Helper()
	network := nets.ResNet{Layers: layers, Blocks: []int{1, 1}, Widths: []int{2, 3}, Stem: 2}
	f, err := nets.NewClassifier(fixtures.Backend(t), network, tinyClasses, 5, dtype)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// tinyRun has three whole batches and a smaller one in an epoch, one epoch of
// pretraining and two of training: 12 steps.
func tinyRun() train.Classification {
	recipe := train.ResNet14(tinyClasses)
	recipe.Epochs, recipe.BatchSize, recipe.LearningRate = 2, 8, 0.05
	run := recipe.Classification()
	run.Seed, run.Order, run.Augmentation, run.Padding = 9, shuffled, jitter{}, 2
	return run
}

const (
	tinyImages = 29
	tinySteps  = 12
)

// colours are images whose class is the brightest of three channels.
func colours(n int) train.Images {
	data := noiseImages(n, 8, tinyClasses)
	size := len(data.Pixels) / n / 3
	for i, label := range data.Labels {
		for k := range size {
			p := &data.Pixels[(i*3+label)*size+k]
			*p = byte(min(255, int(*p)+100))
		}
	}
	return data
}

// state is the bytes of all variables but the buffers of noise.
func state(t *testing.T, store *model.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for v := range store.IterVariables() {
		if stochastic.IsNoise(v) {
			continue
		}
		value, err := v.Value()
		if err != nil {
			t.Fatal(err)
		}
		if err := value.ConstBytes(func(data []byte) { all[v.Path()] = string(data) }); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// sameState fails where two runs differ in a single bit.
func sameState(t *testing.T, got, want *nets.Classifier) {
	t.Helper()
	a, b := state(t, got.Store), state(t, want.Store)
	if len(a) != len(b) || len(b) < 20 {
		t.Errorf("%d variables, want %d", len(a), len(b))
	}
	for path, value := range b {
		if a[path] != value {
			t.Errorf("variable %s differs", path)
		}
	}
	if got.Host == nil && want.Host == nil {
		return // the state of noise that is drawn in the graph is a variable
	}
	gotNoise, err := got.Host.State()
	if err != nil {
		t.Fatal(err)
	}
	wantNoise, err := want.Host.State()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(gotNoise, wantNoise) {
		t.Error("the streams of noise are at different positions")
	}
}

// Training must solve a problem that is easy to solve, and say so.
func TestClassificationLearns(t *testing.T) {
	for name, layers := range map[string]nets.ConvLayers{"plain": baselines.Deterministic{}, "density": dul.Density{}} {
		t.Run(name, func(t *testing.T) {
			run := tinyRun()
			run.Epochs = 30
			if name == "plain" {
				run.PretrainEpochs = 0
			}
			var last train.ClassificationProgress
			run.Progress = func(p train.ClassificationProgress) { last = p }
			if err := run.Fit(context.Background(), tinyClassifier(t, layers, dtypes.Float32), colours(120)); err != nil {
				t.Fatal(err)
			}
			if last.Step != last.Steps || last.Epoch != last.Epochs || last.ImagesPerSecond <= 0 || last.Remaining != 0 {
				t.Errorf("at the end the progress is %+v", last)
			}
			if last.Losses.Accuracy < 0.9 || last.Losses.NLL > 0.4 {
				t.Errorf("accuracy %.3f and cross-entropy %.3f on the training images; want at least 0.9 and at most 0.4", last.Losses.Accuracy, last.Losses.NLL)
			}
		})
	}
}

// An epoch is every image once, in whole batches and one with the rest, in
// pretraining and in training.
func TestEpochs(t *testing.T) {
	type call struct{ epoch, image int }
	seen := map[call]int{}
	run := tinyRun()
	run.Augmentation = spy(func(epoch, image int) { seen[call{epoch, image}]++ })
	var steps []int
	var epochs []int
	var pretraining []bool
	run.StepsPerExecution = 2
	run.Progress = func(p train.ClassificationProgress) {
		steps, epochs, pretraining = append(steps, p.Step), append(epochs, p.Epoch), append(pretraining, p.Pretraining)
	}
	if err := run.Fit(context.Background(), tinyClassifier(t, dul.Density{}, dtypes.Float32), colours(tinyImages)); err != nil {
		t.Fatal(err)
	}
	// Pretraining goes step by step.
	if want := []int{1, 2, 3, 4, 6, 7, 8, 10, 11, 12}; !slices.Equal(steps, want) {
		t.Errorf("executions end at steps %v, want %v", steps, want)
	}
	if want := []int{0, 0, 0, 1, 1, 1, 2, 2, 2, 3}; !slices.Equal(epochs, want) {
		t.Errorf("finished epochs %v, want %v", epochs, want)
	}
	if !pretraining[3] || pretraining[4] {
		t.Errorf("pretraining: %v", pretraining)
	}
	if len(seen) != 3*tinyImages {
		t.Errorf("%d images in 3 epochs, want %d", len(seen), 3*tinyImages)
	}
	for c, n := range seen {
		if n != 1 {
			t.Errorf("image %d came %d times in epoch %d", c.image, n, c.epoch)
		}
	}
}

// spy is an augmentation that tells what it is asked.
type spy func(epoch, image int)

func (f spy) Draw(_ uint64, epoch, image int) (top, left int, flip bool) {
	f(epoch, image)
	return 2, 2, false
}

// The losses of the first step must be what the objective's formula gives for
// the untrained network.
func TestFirstLosses(t *testing.T) {
	data := colours(8)
	run := tinyRun()
	run.PretrainEpochs, run.Epochs, run.LogLikelihoodScale, run.Augmentation = 0, 1, 0.01, nil
	run.Order = func(_ uint64, _, n int) []int {
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		return order
	}
	var got train.LossValues
	run.Progress = func(p train.ClassificationProgress) { got = p.Losses }
	if err := run.Fit(context.Background(), tinyClassifier(t, dul.Density{}, dtypes.Float64), data); err != nil {
		t.Fatal(err)
	}

	f := tinyClassifier(t, dul.Density{}, dtypes.Float64)
	exec, err := model.NewExec(f.Backend, f.Store, func(root *model.Scope, pixels *graph.Node) (logits, kl, ll *graph.Node) {
		g := pixels.Graph()
		if f.Host != nil {
			stochastic.SetNoise(g, f.Host.NewSheet())
		}
		root.Store().SetTraining(g, true)
		logits = f.Logits(f.Scope(root), data.Standardization.Images(pixels, f.DType))
		return logits, stochastic.TallyOf(g).KL, stochastic.TallyOf(g).LogLikelihood
	})
	if err != nil {
		t.Fatal(err)
	}
	logits, kl, ll, err := exec.Call3(tensors.FromFlatDataAndDimensions(data.Pixels, 8, 3, 8, 8))
	if err != nil {
		t.Fatal(err)
	}
	var want train.LossValues
	want.KL = fixtures.FromTensor(t, kl).Values[0]
	for i, value := range fixtures.FromTensor(t, ll).Values {
		want.LogLikelihood += value / 8
		row := fixtures.FromTensor(t, logits).Values[i*tinyClasses : (i+1)*tinyClasses]
		sum := 0.0
		for _, z := range row {
			sum += math.Exp(z)
		}
		want.NLL += (math.Log(sum) - row[data.Labels[i]]) / 8
		if row[data.Labels[i]] == slices.Max(row) {
			want.Accuracy += 1.0 / 8
		}
	}
	want.Total = want.NLL + want.KL/8 - 0.01*want.LogLikelihood
	for name, pair := range map[string][2]float64{
		"objective": {got.Total, want.Total}, "cross-entropy": {got.NLL, want.NLL}, "KL": {got.KL, want.KL},
		"log-likelihood": {got.LogLikelihood, want.LogLikelihood}, "accuracy": {got.Accuracy, want.Accuracy},
	} {
		if math.Abs(pair[0]-pair[1]) > 1e-10*math.Max(1, math.Abs(pair[1])) {
			t.Errorf("%s of the first batch is %.15g, want %.15g", name, pair[0], pair[1])
		}
	}
}

func TestCrossEntropy(t *testing.T) {
	values := fixtures.Values{"logits": fixtures.Matrix(3, 3, 0.5, -1, 2, 1e4, 0, -1e4, -1e4, 0, 1e4)}
	labels := func(g *graph.Graph) *graph.Node { return graph.Const(g, []int32{2, 0, 0}) }
	out := fixtures.Evaluate(t, dtypes.Float64, values, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
		loss := train.CrossEntropy(in["logits"], labels(in["logits"].Graph()))
		return append(graph.Gradient(graph.ReduceAllSum(loss), in["logits"]), loss)
	})
	sum := math.Exp(0.5) + math.Exp(-1) + math.Exp(2)
	p := func(z float64) float64 { return math.Exp(z) / sum }
	fixtures.Compare(t, "cross-entropy", out[1], fixtures.Matrix(3, 1, math.Log(sum)-2, 0, 2e4), 1e-15)
	fixtures.Compare(t, "its gradient", out[0], fixtures.Matrix(3, 3, p(0.5), p(-1), p(2)-1, 0, 0, 0, -1, 0, 1), 1e-15)
}

// Several steps in one graph must be the same steps: where operations are carried
// out one by one the same bits, with a compiler, which fuses them, up to rounding.
func TestStepsPerExecution(t *testing.T) {
	train1, train3 := tinyClassifier(t, dul.Density{}, dtypes.Float64), tinyClassifier(t, dul.Density{}, dtypes.Float64)
	for f, count := range map[*nets.Classifier]int{train1: 1, train3: 3} {
		run := tinyRun()
		run.StepsPerExecution = count
		if err := run.Fit(context.Background(), f, colours(tinyImages)); err != nil {
			t.Fatal(err)
		}
	}
	if ops.IsGo(train1.Backend) {
		sameState(t, train3, train1)
		return
	}
	for v := range train1.Store.IterVariables() {
		if v.DType() != dtypes.Float64 {
			continue
		}
		values := make([]fixtures.Array, 2)
		for i, f := range []*nets.Classifier{train3, train1} {
			value, err := f.Store.GetVariable(v.Path()).Value()
			if err != nil {
				t.Fatal(err)
			}
			values[i] = fixtures.FromTensor(t, value)
		}
		// A gradient that cancels, as of a bias before batch normalisation, is
		// rounding alone, so some variables have fewer digits than others.
		fixtures.Compare(t, v.Path(), values[0], values[1], 1e-9)
	}
}

// Pretraining moves the energy models and the running statistics, nothing else.
func TestPretraining(t *testing.T) {
	run := tinyRun()
	run.Epochs, run.PretrainEpochs = 0, 0
	before, after := tinyClassifier(t, dul.Density{}, dtypes.Float32), tinyClassifier(t, dul.Density{}, dtypes.Float32)
	// A step with a learning rate of zero makes the variables.
	start := tinyRun()
	start.PretrainEpochs, start.Epochs, start.Schedule = 0, 1, train.Constant(0)
	if err := start.Fit(context.Background(), before, colours(8)); err != nil {
		t.Fatal(err)
	}
	run.PretrainEpochs = 1
	if err := run.Fit(context.Background(), after, colours(8)); err != nil {
		t.Fatal(err)
	}
	moved := map[params.Role]int{}
	start0, now := state(t, before.Store), state(t, after.Store)
	for v := range after.Store.IterVariables() {
		role := params.RoleOf(v, after.Store)
		if role != "" && role != params.Running && start0[v.Path()] != now[v.Path()] {
			moved[role]++
		}
	}
	if moved[params.Generative] == 0 || len(moved) != 1 {
		t.Errorf("pretraining moved %v", moved)
	}
	for v := range after.Store.IterVariables() {
		if stochastic.IsNoise(v) {
			t.Errorf("the buffer of noise %s is left over", v.Path())
		}
	}
}

// A run that is stopped after any step and called again ends with the same bits
// as one that was not.
func TestStoppedRunGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("a compiler takes a minute for all the runs")
	}
	want := tinyClassifier(t, dul.Density{}, dtypes.Float32)
	whole := tinyRun()
	var losses []train.LossValues
	whole.Progress = func(p train.ClassificationProgress) { losses = append(losses, p.Losses) }
	if err := whole.Fit(context.Background(), want, colours(tinyImages)); err != nil {
		t.Fatal(err)
	}
	for _, stops := range [][]int{{1}, {4}, {6, 7}, {3, 5, 9, 11}, {tinySteps}} {
		run := tinyRun()
		run.Checkpoints.Folder = t.TempDir()
		stops = append(stops, math.MaxInt)
		for _, stop := range stops {
			// A new process would have a new classifier, too.
			f := tinyClassifier(t, dul.Density{}, dtypes.Float32)
			ctx, cancel := context.WithCancel(context.Background())
			run.Progress = func(p train.ClassificationProgress) {
				if p.Step == stop {
					cancel()
				}
				if p.Losses != losses[p.Step-1] {
					t.Errorf("stops %v: the losses after step %d are %+v, without a stop %+v", stops, p.Step, p.Losses, losses[p.Step-1])
				}
			}
			err := run.Fit(ctx, f, colours(tinyImages))
			cancel()
			switch {
			case stop < tinySteps && !errors.Is(err, context.Canceled):
				t.Fatalf("stopped after step %d: the error is %v", stop, err)
			case stop >= tinySteps && err != nil:
				t.Fatal(err)
			case stop == math.MaxInt:
				sameState(t, f, want)
			}
		}
	}
}

// A checkpoint of another run must be refused with the name of the setting that
// differs, and leave the model alone.
func TestAnotherRunIsRefused(t *testing.T) {
	folder := t.TempDir()
	fit := func(run train.Classification, layers nets.ConvLayers, data train.Images) (*nets.Classifier, error) {
		run.Checkpoints.Folder = folder
		f := tinyClassifier(t, layers, dtypes.Float32)
		return f, run.Fit(context.Background(), f, data)
	}
	if _, err := fit(tinyRun(), dul.Density{}, colours(tinyImages)); err != nil {
		t.Fatal(err)
	}
	changes := map[string]func(run *train.Classification, layers *nets.ConvLayers, data *train.Images){
		"network":           func(_ *train.Classification, l *nets.ConvLayers, _ *train.Images) { *l = dul.Density{PriorStd: 2} },
		"pixels and labels": func(_ *train.Classification, _ *nets.ConvLayers, d *train.Images) { d.Pixels[7]++ },
		"images":            func(_ *train.Classification, _ *nets.ConvLayers, d *train.Images) { *d = colours(tinyImages + 1) },
		"channel means": func(_ *train.Classification, _ *nets.ConvLayers, d *train.Images) {
			d.Standardization.Mean = []float64{0.5, 0.5, 0.4}
		},
		"Epochs":    func(r *train.Classification, _ *nets.ConvLayers, _ *train.Images) { r.Epochs++ },
		"BatchSize": func(r *train.Classification, _ *nets.ConvLayers, _ *train.Images) { r.BatchSize++ },
		"Groups": func(r *train.Classification, _ *nets.ConvLayers, _ *train.Images) {
			r.Groups[1].Optimizer = train.SGD{}
		},
		"Schedule": func(r *train.Classification, _ *nets.ConvLayers, _ *train.Images) { r.Schedule = train.Cosine(0.04) },
		"LogLikelihoodScale": func(r *train.Classification, _ *nets.ConvLayers, _ *train.Images) {
			r.LogLikelihoodScale = 0.5
		},
		"Seed":         func(r *train.Classification, _ *nets.ConvLayers, _ *train.Images) { r.Seed++ },
		"Order":        func(r *train.Classification, _ *nets.ConvLayers, _ *train.Images) { r.Order = reversed },
		"Augmentation": func(r *train.Classification, _ *nets.ConvLayers, _ *train.Images) { r.Augmentation = nil },
		"Padding":      func(r *train.Classification, _ *nets.ConvLayers, _ *train.Images) { r.Padding++ },
	}
	for name, change := range changes {
		run, data := tinyRun(), colours(tinyImages)
		var layers nets.ConvLayers = dul.Density{}
		change(&run, &layers, &data)
		f, err := fit(run, layers, data)
		if err == nil || !strings.Contains(err.Error(), "its "+name+" is ") {
			t.Errorf("%s changed: the error is %v", name, err)
		}
		if n := len(state(t, f.Store)); n > 1 { // the state of random draws
			t.Errorf("%s changed: the refused checkpoint left %d variables in the model", name, n)
		}
	}
	reseeded := tinyRun()
	reseeded.Checkpoints.Folder = folder
	f, err := nets.NewClassifier(fixtures.Backend(t), tinyClassifier(t, dul.Density{}, dtypes.Float32).Network, tinyClasses, 6, dtypes.Float32)
	if err != nil {
		t.Fatal(err)
	}
	if err := reseeded.Fit(context.Background(), f, colours(tinyImages)); err == nil || !strings.Contains(err.Error(), `its classifier's seed is "[5]", this run's is "[6]"`) {
		t.Errorf("another classifier's seed: the error is %v", err)
	}
	if _, err := fit(tinyRun(), dul.Density{}, colours(tinyImages)); err != nil {
		t.Errorf("the unchanged run is refused: %v", err)
	}
}

// A last step that leaves no numbers is noticed without checkpoints too.
func TestDivergedLastStep(t *testing.T) {
	for _, folder := range []string{"", t.TempDir()} {
		run := tinyRun()
		run.Checkpoints.Folder = folder
		run.Schedule = func(t, total int) float64 {
			if total > run.PretrainEpochs*4 && t == total-1 {
				return math.Inf(1)
			}
			return 0.05
		}
		err := run.Fit(context.Background(), tinyClassifier(t, dul.Density{}, dtypes.Float32), colours(tinyImages))
		if !errors.Is(err, train.ErrDiverged) || !strings.Contains(err.Error(), "variable /") {
			t.Errorf("folder %q: %v", folder, err)
		}
	}
}

func reversed(_ uint64, _, n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = n - 1 - i
	}
	return order
}

// A damaged checkpoint costs the steps since the one before it, and a note.
func TestDamagedCheckpointIsNoted(t *testing.T) {
	want := tinyClassifier(t, dul.Density{}, dtypes.Float32)
	if err := tinyRun().Fit(context.Background(), want, colours(tinyImages)); err != nil {
		t.Fatal(err)
	}
	run := tinyRun()
	run.Checkpoints = train.Checkpoints{Folder: t.TempDir(), EverySteps: 2}
	ctx, cancel := context.WithCancel(context.Background())
	run.Progress = func(p train.ClassificationProgress) {
		if p.Step == 7 {
			cancel()
		}
	}
	if err := run.Fit(ctx, tinyClassifier(t, dul.Density{}, dtypes.Float32), colours(tinyImages)); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(run.Checkpoints.Folder, "step-*"))
	if err != nil || len(names) != 2 || filepath.Base(names[1]) != "step-00000007" {
		t.Fatalf("checkpoints %v, want those of steps 6 and 7 (%v)", names, err)
	}
	if err := os.Truncate(filepath.Join(names[1], "model.safetensors"), 1000); err != nil {
		t.Fatal(err)
	}
	var notes []string
	first := 0
	run.Notes = func(note string) { notes = append(notes, note) }
	run.Progress = func(p train.ClassificationProgress) {
		if first == 0 {
			first = p.Step
		}
	}
	f := tinyClassifier(t, dul.Density{}, dtypes.Float32)
	if err := run.Fit(context.Background(), f, colours(tinyImages)); err != nil {
		t.Fatal(err)
	}
	if first != 7 || len(notes) != 1 || !strings.Contains(notes[0], names[1]) || !strings.Contains(notes[0], "step 6") {
		t.Errorf("the run went on with step %d, notes %q", first, notes)
	}
	sameState(t, f, want)
}

// That a checkpoint cannot be written is noted and does not end the run, but at
// its end it is an error.
func TestFailingSaveIsNoted(t *testing.T) {
	run := tinyRun()
	run.Checkpoints = train.Checkpoints{Folder: filepath.Join(t.TempDir(), "run"), EverySteps: 5}
	var notes []string
	steps := 0
	run.Notes = func(note string) { notes = append(notes, note) }
	run.Progress = func(p train.ClassificationProgress) {
		if steps = p.Step; steps == 6 {
			if err := os.RemoveAll(run.Checkpoints.Folder); err != nil {
				t.Fatal(err)
			}
		}
	}
	err := run.Fit(context.Background(), tinyClassifier(t, dul.Density{}, dtypes.Float32), colours(tinyImages))
	if err == nil || steps != tinySteps || len(notes) != 1 || !strings.Contains(notes[0], "since step 5") {
		t.Errorf("after %d steps the error is %v, notes %q", steps, err, notes)
	}
}

// What is no number any more must not replace a good checkpoint.
func TestDivergedRunIsNotSaved(t *testing.T) {
	run := tinyRun()
	run.Checkpoints = train.Checkpoints{Folder: t.TempDir(), EverySteps: 1}
	run.PretrainEpochs = 0
	run.Schedule = func(step, _ int) float64 {
		if step == 4 {
			return math.Inf(1)
		}
		return 0.01
	}
	err := run.Fit(context.Background(), tinyClassifier(t, baselines.Deterministic{}, dtypes.Float32), colours(tinyImages))
	if !errors.Is(err, train.ErrDiverged) || !strings.Contains(err.Error(), "no numbers any more") {
		t.Errorf("the error is %v", err)
	}
	folder, err := checkpoint.Open(run.Checkpoints.Folder, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := folder.Close(); err != nil {
			t.Error(err)
		}
	}()
	found, err := folder.Restore(checkpoint.State{Store: model.NewStore(), Noise: tinyClassifier(t, baselines.Deterministic{}, dtypes.Float32).Host})
	if err != nil || found.Step != 4 {
		t.Errorf("the last checkpoint is of step %d, want 4 (%v)", found.Step, err)
	}

	run.Checkpoints = train.Checkpoints{}
	err = run.Fit(context.Background(), tinyClassifier(t, baselines.Deterministic{}, dtypes.Float32), colours(tinyImages))
	if !errors.Is(err, train.ErrDiverged) || !strings.Contains(err.Error(), "step 6: the objective is no number any more") {
		t.Errorf("without checkpoints the error is %v", err)
	}
}

func TestClassificationRejectsBadSettings(t *testing.T) {
	for want, change := range map[string]func(run *train.Classification, data *train.Images){
		"batch size is 0":    func(r *train.Classification, _ *train.Images) { r.BatchSize = 0 },
		"needs a Schedule":   func(r *train.Classification, _ *train.Images) { r.Schedule = nil },
		"none may be negati": func(r *train.Classification, _ *train.Images) { r.Epochs = -1 },
		"padding is -1":      func(r *train.Classification, _ *train.Images) { r.Padding = -1 },
		"Keep -1":            func(r *train.Classification, _ *train.Images) { r.Checkpoints.Keep = -1 },
		"has label 3":        func(_ *train.Classification, d *train.Images) { d.Labels[5] = 3 },
		"191 pixels, want":   func(_ *train.Classification, d *train.Images) { d.Labels, d.Pixels = d.Labels[:1], d.Pixels[:191] },
		"deviation of channel 1 is 0": func(_ *train.Classification, d *train.Images) {
			d.Standardization.Std = []float64{1, 0, 1}
		},
		"the order of epoch 0": func(r *train.Classification, _ *train.Images) {
			r.Order = func(_ uint64, _, n int) []int { return make([]int, n) }
		},
		"both must be from 0 to 2":                    func(r *train.Classification, _ *train.Images) { r.Padding = 1 },
		"no layer of the network has an energy model": func(*train.Classification, *train.Images) {},
	} {
		run, data := tinyRun(), colours(tinyImages)
		change(&run, &data)
		err := run.Fit(context.Background(), tinyClassifier(t, baselines.Deterministic{}, dtypes.Float32), data)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
}
