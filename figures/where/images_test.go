package where

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/cifar"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

func fewSample() fewImages {
	return fewImages{cifar.Images{Name: cifar.CIFAR10, Sample: true, TrainN: 40, TestN: 20, HeldOut: 20, Sets: []string{cifar.TestSet, cifar.CIFAR100}}}
}

// A run in small has the numbers of every set with labels, the mutual information, and no detection of corrupted images.
func TestFewImages(t *testing.T) {
	e := fewRuns(startingAt(methods.Density, 0.1))[0]
	e.Task.Data, e.Recipe.Epochs, e.Recipe.Samples = fewSample(), 1, 2
	e.Task.Network = must.Get(cifar.Small(fewSample().Images, methods.Density))(t).Task.Network
	all := must.Get(experiment.Engine{}.Run(t.Context(), e))(t)
	m := all[0].Metrics
	for _, name := range []string{"nll", "train_accuracy", "contrast-5_nll", "jpeg-5_ece10", corruptedNLL, corruptedECE, mutualInformation, "ood_cifar100_auroc"} {
		if _, has := m[name]; !has {
			t.Errorf("there is no %s among %v", name, m)
		}
	}
	sum, sets := 0.0, 0.0
	for name, value := range m {
		if strings.HasPrefix(name, "ood_") && !strings.HasPrefix(name, "ood_cifar100") {
			t.Errorf("%s: images with labels count as out of distribution", name)
		}
		if strings.HasSuffix(name, "_nll") && name != "train_nll" && name != corruptedNLL {
			sum, sets = sum+value, sets+1
		}
	}
	if got, want := m[corruptedNLL], sum/sets; sets != 5*3 || math.Abs(got-want) > 1e-9 {
		t.Errorf("%s is %g, the mean is %g", corruptedNLL, got, want)
	}
	if !(m[mutualInformation] > 0) {
		t.Errorf("draws with noise have the mutual information %g", m[mutualInformation])
	}
}

// Question 12 trains log-variances at two rates. An ensemble is made of the predictions of its plain networks, which have a line
// with a temperature, and nothing is said of corrupted images.
func TestAllImages(t *testing.T) {
	q := allStudy()
	for i, want := range map[int]float64{2: 2, 3: 2, 4: 200. / 30, 5: 200. / 30} {
		groups := q.arms[i][0].Recipe.Groups
		if last := groups[len(groups)-1]; last.Rate != want || last.Optimizer != (train.SGD{Momentum: 0.9, Decay: 1e-4}) {
			t.Errorf("%v: log-variances are trained by %+v", q.arms[i][0], last)
		}
	}
	small := func(e *experiment.Experiment) {
		e.Recipe.Epochs, e.Task.Data = 1, halfImages{cifar.Images{Name: cifar.CIFAR10, Sample: true, TrainN: 40, TestN: 20, HeldOut: 20, Sets: []string{cifar.TestSet, cifar.HeldOutSet, cifar.CIFAR100}}}
	}
	q.arms[0] = q.arms[0].Change(small)
	small(&q.ensemble)
	mild := q.arms[2][0]
	small(&mild)
	list := experiment.Experiments{q.arms[0][0], mild}
	for _, runs := range q.later {
		e := runs[0]
		small(&e)
		e.Recipe.Epochs, e.Task.Network = 4, nets.ResNet{Widths: []int{4}, Blocks: []int{1}}
		list = append(list, e)
	}
	found := must.Get(experiment.Engine{}.Run(t.Context(), list...))(t)
	for _, r := range found[1:] {
		for _, score := range q.scores { // but for house numbers, which are left out here
			name := strings.Replace(score.Name, cifar.SVHNExcerpt, cifar.CIFAR100, 1)
			closed := r.Method == methods.Laplace.Name && name == mutualInformation || r.Method != mild.Method.Name && strings.HasSuffix(name, cifar.ByEnergy)
			if _, has := r.Metrics[name]; has == closed {
				t.Errorf("%s has %s: %t", r.Method, name, has)
			}
		}
	}
	all, r := map[string]experiment.Result{}, found[0]
	r.Metrics[cifar.MetricTemperature], r.Metrics["nll"+cifar.TemperedEnding] = 2, 1
	for _, id := range q.arms[0].IDs() {
		r.ID = id
		all[id] = r
	}
	table := must.Get(q.table(tables.NewIndex(all)))(t)
	names, text := []string{}, ""
	for _, row := range table.Rows {
		names, text = append(names, row.Name), text+fmt.Sprint(row)
	}
	if want := []string{"Deterministic", "Deep Ensemble", "Deterministic, temperature"}; !slices.Equal(names, want) || strings.Contains(text, "NaN") {
		t.Errorf("the rows are %v", table.Rows)
	}
}

// Pixels are means of four, and the training images have the mean 0 and the deviation 1 in each channel.
func TestHalvedImages(t *testing.T) {
	d := must.Get(fewSample().Load(t.Context(), 0))(t)
	whole := must.Get(fewSample().Images.Load(t.Context(), 0))(t)
	small, large := d.Sets[0].Inputs.(nets.Pixels), whole.Sets[0].Inputs.(nets.Pixels)
	at := func(p nets.Pixels, image, channel, row, column int) int {
		return int(p.Bytes[((image*3+channel)*p.Height+row)*p.Width+column])
	}
	for _, c := range [][4]int{{0, 0, 0, 0}, {3, 1, 7, 15}, {19, 2, 15, 8}} {
		sum := 2
		for k := range 4 {
			sum += at(large, c[0], c[1], 2*c[2]+k/2, 2*c[3]+k%2)
		}
		if got := at(small, c[0], c[1], c[2], c[3]); got != sum/4 {
			t.Errorf("pixel %v is %d, want %d", c, got, sum/4)
		}
	}
	images := d.Train.Inputs.(nets.Pixels)
	for c, mean := range images.Standardization.Mean {
		sum := 0.0
		for i, v := range images.Bytes {
			if i/(side*side)%3 == c {
				sum += float64(v) / 255
			}
		}
		if got := sum / float64(len(images.Bytes)/3); math.Abs(got-mean) > 1e-9 {
			t.Errorf("channel %d: mean %g, want %g", c, mean, got)
		}
	}
	if d.Sets[0].Len() != whole.Sets[0].Len() || len(d.HeldOut.Inputs.(nets.Pixels).Bytes) != 20*3*side*side {
		t.Errorf("%d of %d test images", d.Sets[0].Len(), whole.Sets[0].Len())
	}
}

func TestFewImagesRefuses(t *testing.T) {
	d := fewSample()
	d.Sets = d.Sets[1:]
	if _, err := d.Load(t.Context(), 0); err == nil || !strings.Contains(err.Error(), `images of the set "test" are corrupted`) {
		t.Errorf("without test images: %v", err)
	}
}

// madeImages are made-up runs of question 10 or 12. Densities have a lower NLL and a higher area than the others, by 0.2, and
// trainings the variance 0.01^2 x 10/4. Without part b of the images the NLL of densities is higher by slope b.
func madeImages(q imageStudy, slope float64, change func(e experiment.Experiment, metrics map[string]float64)) *tables.Index {
	all := map[string]experiment.Result{}
	for _, runs := range q.arms {
		for _, e := range runs {
			by := 0.01 * (float64(e.Seed) - 2)
			found := map[string]float64{mutualInformation: 0.02, corruptedNLL: 2, corruptedECE: 0.1, "train_nll": 0.1, experiment.MetricAccuracy: 0.7}
			for _, s := range imageScores[:comparedScores] {
				found[s.Name] = 0.5 + by
				for part := range imageParts {
					found[withoutPart(s.Name, part)] = 0.5 + by
				}
			}
			if slices.ContainsFunc(q.levels, func(l imageLevel) bool { return l.ours[0].Method.Key == e.Method.Key }) {
				found[experiment.MetricNLL] -= 0.2
				found["ood_"+cifar.CIFAR100+"_auroc"] += 0.2
				for part := range imageParts {
					found[withoutPart(experiment.MetricNLL, part)] += slope * float64(part)
				}
			}
			if change != nil {
				change(e, found)
			}
			all[e.ID()] = experiment.Result{ID: e.ID(), Seed: e.Seed, Metrics: found}
		}
	}
	return tables.NewIndex(all)
}

// madePredictions are of 200 images in each set, in two classes.
func madePredictions(rng *rand.Rand) (p experiment.Predictions) {
	for _, name := range []string{cifar.TestSet, cifar.CIFAR100, cifar.SVHNExcerpt} {
		s := experiment.Prediction{Set: name}
		s.Width = 2
		for i := range 200 {
			first := 0.5 + 0.4*rng.Float64()
			s.Probabilities, s.MutualInformation = append(s.Probabilities, first, 1-first), append(s.MutualInformation, 0)
			if name == cifar.TestSet {
				s.Labels = append(s.Labels, i%2)
			}
		}
		p.Sets = append(p.Sets, s)
	}
	return p
}

// Scores without a part of the images are the scores of the others.
func TestImageParts(t *testing.T) {
	p := madePredictions(rand.New(rand.NewPCG(1, 1)))
	found := must.Get(withoutParts(&p))(t)
	if len(found) != comparedScores*imageParts {
		t.Errorf("there are %d scores", len(found))
	}
	for _, part := range []int{0, 7, imageParts - 1} {
		nll, inside, outside := 0.0, []float64(nil), []float64(nil)
		test, others := p.Sets[0], p.Sets[1]
		for i, label := range test.Labels {
			if i%imageParts != part {
				nll -= math.Log(test.Probabilities[2*i+label]) / 190
				inside, outside = append(inside, test.Probabilities[2*i]), append(outside, others.Probabilities[2*i])
			}
		}
		area := 0.0
		for _, a := range inside {
			for _, b := range outside {
				if a > b {
					area += 1. / 190 / 190
				}
			}
		}
		for name, want := range map[string]float64{experiment.MetricNLL: nll, "ood_" + cifar.CIFAR100 + "_auroc": area} {
			if got := found[withoutPart(name, part)]; math.Abs(got-want) > 1e-9 {
				t.Errorf("%s without part %d is %g, want %g", name, part, got, want)
			}
		}
	}
}

// rowsOf are the two differences.
func rowsOf(t *testing.T, q imageStudy, x *tables.Index) []report.Row {
	t.Helper()
	table := must.Get(q.table(x))(t)
	rows := table.Rows[len(table.Rows)-2:]
	if rows[0].Name != q.levels[0].name || rows[1].Name != q.levels[1].name {
		t.Fatalf("the last rows are %+v", rows)
	}
	return rows
}

// If networks say the same of all images, an interval has the spread of trainings alone, and otherwise that of images, too.
func TestImageTable(t *testing.T) {
	for _, slope := range []float64{0, 0.001} {
		for _, row := range rowsOf(t, fewStudy(), madeImages(fewStudy(), slope, nil)) {
			nll, ece, auroc := row.Cells[0], row.Cells[1], row.Cells[3]
			if nll.Verdict != report.Better || auroc.Verdict != report.Better || ece.Verdict != report.NotSignificant {
				t.Errorf("%s: the verdicts are %q, %q and %q", row.Name, nll.Verdict, auroc.Verdict, ece.Verdict)
			}
			// The numbers 0 to 19 have the variance (20^2-1)/12.
			se := math.Hypot(slope*math.Sqrt(19*399./12), 0.01*math.Sqrt(2.5*2/5))
			want := distuv.StudentsT{Sigma: 1, Nu: 19}.Quantile(0.975) * se
			if d := nll.Difference; math.Abs(d.Mean+0.2) > 1e-9 || math.Abs((d.High-d.Low)/2/want-1) > 1e-9 {
				t.Errorf("%s: the difference is %+v, and half the interval should be %g", row.Name, *d, want)
			}
		}
	}
}

func TestImageTableVerdicts(t *testing.T) {
	few, all := fewStudy(), allStudy()
	changed := func(key, metric string, value float64) func(experiment.Experiment, map[string]float64) {
		return func(e experiment.Experiment, found map[string]float64) {
			if e.Method.Key == key {
				found[metric] = value
			}
		}
	}
	for name, c := range map[string]struct {
		q            imageStudy
		change       func(e experiment.Experiment, found map[string]float64)
		first, later string
	}{
		"without noise": {few, changed(startingAt(methods.DensityMean, 0.01).Key, mutualInformation, 0.009), "", report.Better},
		"not too sure":  {few, changed(methods.Deterministic.Key, "train_nll", 0.45), "", ""},
		"diverged": {few, func(e experiment.Experiment, found map[string]float64) {
			if e.Method.Equal(methods.Rank1) && e.Seed == 3 {
				found[experiment.MetricNLL] = math.NaN()
			}
		}, "", ""},
		"without noise, mild": {all, changed("density-mild", mutualInformation, 0.009), "", report.Better},
		"ruined by noise":     {all, changed("density-full", experiment.MetricAccuracy, 0.669), report.Better, ""},
		"not ruined":          {all, changed("density-full", experiment.MetricAccuracy, 0.671), report.Better, report.Better},
	} {
		rows := rowsOf(t, c.q, madeImages(c.q, 0, c.change))
		if got, later := rows[0].Cells[0], rows[1].Cells[0]; got.Verdict != c.first || later.Verdict != c.later || got.Text != later.Text {
			t.Errorf("%s: %+v and %+v", name, got, later)
		}
	}
}
