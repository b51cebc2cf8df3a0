package where

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"

	"densityuncertainty/dul/metrics"
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
	must.Near(t, m[corruptedNLL], sum/(5*3), 1e-9, corruptedNLL)
	must.Near(t, sets, 5*3, 0, "sets")
	if !(m[mutualInformation] > 0) {
		t.Errorf("draws with noise have the mutual information %g", m[mutualInformation])
	}
}

// Question 12 trains log-variances at two rates. With a store of small runs the table has every reported number, and an ensemble
// of the plain networks' predictions.
func TestAllImages(t *testing.T) {
	q := allStudy()
	for i, want := range map[int]float64{2: 2, 3: 2, 4: 200. / 30, 5: 200. / 30} {
		groups := q.arms[i][0].Recipe.Groups
		if last := groups[len(groups)-1]; last.Rate != want || last.Optimizer != (train.SGD{Momentum: 0.9, Decay: 1e-4}) {
			t.Errorf("%v: log-variances are trained by %+v", q.arms[i][0], last)
		}
	}
	small := func(e *experiment.Experiment) {
		e.Recipe.Epochs, e.Task.Data = 4, halfImages{cifar.Images{Name: cifar.CIFAR10, Sample: true, TrainN: 40, TestN: 20, HeldOut: 20, Sets: []string{cifar.TestSet, cifar.HeldOutSet, cifar.CIFAR100}}}
		e.Task.Network = nets.ResNet{Widths: []int{4}, Blocks: []int{1}}
	}
	q.arms[0] = q.arms[0].Change(small)
	small(&q.ensemble)
	for i, score := range q.scores { // house numbers are left out here
		q.scores[i].Name = strings.Replace(score.Name, cifar.SVHNExcerpt, cifar.CIFAR100, 1)
	}
	list := q.arms[0]
	for i, runs := range append(q.later, q.arms[2]) {
		list = append(list, runs[:1].Change(small)...)
		if i < len(q.later) {
			q.later[i] = list[len(list)-1:]
		}
	}
	store := &experiment.Store{Folder: t.TempDir()}
	must.Get(experiment.Engine{Store: store}.Run(t.Context(), list...))(t)
	all := must.Get(store.Results())(t)
	for _, e := range list {
		for _, score := range q.scores {
			name, has := score.Name, true
			switch e.Method.Key {
			case methods.Density.Key + "-mild":
			case methods.Laplace.Key:
				has = name != mutualInformation && !strings.HasSuffix(name, cifar.ByEnergy) // closed form
			default:
				has = !strings.HasSuffix(name, cifar.ByEnergy)
			}
			if _, found := all[e.ID()].Metrics[name]; found != has {
				t.Errorf("%v has %s: %t", e, name, found)
			}
		}
	}
	var mixed []float64
	var labels []int
	for _, e := range q.arms[0] {
		test := must.Get(must.Get(all[e.ID()].Predictions())(t).Set(cifar.TestSet))(t)
		labels = test.Labels
		mixed = append(mixed, make([]float64, len(test.Probabilities)-len(mixed))...)
		floats.AddScaled(mixed, 1./fewSeeds, test.Probabilities)
	}
	table := must.Get(q.table(tables.Of(slices.Collect(maps.Values(all)))))(t)
	names, text := []string{}, ""
	for _, row := range table.Rows {
		names, text = append(names, row.Name), text+fmt.Sprint(row)
		if row.Name == methods.Ensemble.Name {
			must.Near(t, row.Cells[0].Value.Mean, metrics.CategoricalNLL(mixed, 10, labels), 1e-9, "the ensemble's NLL")
		}
	}
	want := []string{methods.Deterministic.Name, methods.Laplace.Name, methods.LaplaceDraws.Name, methods.SWAG.Name, methods.Ensemble.Name, "Deterministic, temperature"}
	if !slices.Equal(names, want) || strings.Contains(text, "NaN") {
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
		must.Near(t, sum/float64(len(images.Bytes)/3), mean, 1e-9, "channel %d: the mean", c)
	}
	if d.Sets[0].Len() != whole.Sets[0].Len() || len(d.HeldOut.Inputs.(nets.Pixels).Bytes) != 20*3*side*side {
		t.Errorf("%d of %d test images", d.Sets[0].Len(), whole.Sets[0].Len())
	}
}

func TestFewImagesRefuses(t *testing.T) {
	d := fewSample()
	d.Sets = d.Sets[1:]
	must.GetErr(d.Load(t.Context(), 0))(t, `images of the set "test" are corrupted`)
}

// madeImages are made-up runs of question 10 or 12. Densities have a lower NLL and a higher area than the others, by 0.2, and
// trainings the variance 0.01^2 x 10/4. Without part b of the images the NLL of densities is higher by slope b.
func madeImages(q imageStudy, slope float64, change func(e experiment.Experiment, metrics map[string]float64)) *tables.Index {
	var all []experiment.Result
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
			all = append(all, experiment.Result{ID: e.ID(), Seed: e.Seed, Metrics: found})
		}
	}
	return tables.Of(all)
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
			must.Near(t, found[withoutPart(name, part)], want, 1e-9, "%s without part %d", name, part)
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
			d := nll.Difference
			must.Near(t, d.Mean, -0.2, 1e-9, "%s: the difference", row.Name)
			must.Near(t, (d.High-d.Low)/2/want, 1, 1e-9, "%s: half the difference's interval over what it should be", row.Name)
		}
	}
}

func TestImageTableVerdicts(t *testing.T) {
	changed := func(key, metric string, value float64) func(experiment.Experiment, map[string]float64) {
		return func(e experiment.Experiment, found map[string]float64) {
			if e.Method.Key == key {
				found[metric] = value
			}
		}
	}
	for name, c := range map[string]struct {
		change       func(e experiment.Experiment, found map[string]float64)
		first, later string
	}{
		"without noise": {changed(startingAt(methods.DensityMean, 0.01).Key, mutualInformation, 0.009), "", report.Better},
		"not too sure":  {changed(methods.Deterministic.Key, "train_nll", 0.45), "", ""},
		"diverged": {func(e experiment.Experiment, found map[string]float64) {
			if e.Method.Equal(methods.Rank1) && e.Seed == 3 {
				found[experiment.MetricNLL] = math.NaN()
			}
		}, "", ""},
	} {
		rows := rowsOf(t, fewStudy(), madeImages(fewStudy(), 0, c.change))
		if got, later := rows[0].Cells[0], rows[1].Cells[0]; got.Verdict != c.first || later.Verdict != c.later || got.Text != later.Text {
			t.Errorf("%s: %+v and %+v", name, got, later)
		}
	}
}

// Question 12 can have each of its answers, whatever the calibration.
func TestAllImagesAnswer(t *testing.T) {
	svhn := "ood_" + cifar.SVHNExcerpt + "_auroc"
	for name, c := range map[string]struct {
		mild, full map[string]float64 // density less mean, which has 0.02 nats of mutual information and the plain networks' accuracy
		spread     float64            // of seeds
		diverged   string
		want       string
	}{
		"equal":                     {spread: 0.001, want: "amount"},
		"equal in means":            {spread: 0.01, want: "undecided"},
		"small and significant":     {mild: map[string]float64{svhn: 0.0095}, spread: 0.001, want: "place"},
		"not bounded, not decided":  {mild: map[string]float64{svhn: 0.0095}, spread: 0.004, want: "undecided"},
		"a lower NLL":               {mild: map[string]float64{"nll": -0.02}, spread: 0.001, want: "place"},
		"a lower area as well":      {mild: map[string]float64{"nll": -0.02}, full: map[string]float64{svhn: -0.02}, spread: 0.001, want: "worse"},
		"which is void":             {mild: map[string]float64{"nll": -0.02}, full: map[string]float64{svhn: -0.02, experiment.MetricAccuracy: -0.031}, spread: 0.001, want: "place"},
		"almost ruined":             {full: map[string]float64{svhn: -0.02, experiment.MetricAccuracy: -0.029}, spread: 0.001, want: "worse"},
		"void is not bounded":       {full: map[string]float64{"nll": -0.02, mutualInformation: -0.011}, spread: 0.001, want: "amount"},
		"no noise, and ruined":      {mild: map[string]float64{mutualInformation: -0.011}, full: map[string]float64{experiment.MetricAccuracy: -0.031}, spread: 0.001, want: "void"},
		"calibration":               {mild: map[string]float64{experiment.MetricECE: 0.2, "brier": 0.2}, spread: 0.001, want: "amount"},
		"significant but for Holm":  {mild: map[string]float64{"nll": -0.0070}, spread: 0.0032, want: "undecided"}, // p = 0.04
		"where full is void":        {mild: map[string]float64{"nll": -0.0070}, full: map[string]float64{mutualInformation: -0.011}, spread: 0.0032, want: "place"},
		"a run of dropout diverged": {spread: 0.001, diverged: methods.MCDropout.Key},
	} {
		q := allStudy()
		x := madeImages(q, 0, func(e experiment.Experiment, found map[string]float64) {
			by := map[string]map[string]float64{"density-mild": c.mild, "density-full": c.full}[e.Method.Key]
			found[mutualInformation] += by[mutualInformation]
			found[experiment.MetricAccuracy] += by[experiment.MetricAccuracy]
			for _, s := range imageScores[:comparedScores] {
				found[s.Name] = 0.5 + by[s.Name] + c.spread*(float64(e.Seed)-2)
				for part := range imageParts {
					found[withoutPart(s.Name, part)] = found[s.Name]
				}
			}
			if e.Method.Key == c.diverged && e.Seed == 4 {
				found[experiment.MetricNLL] = math.NaN()
			}
		})
		table := must.Get(q.table(x))(t)
		if got, want := table.Measured[len(table.Measured)-1], "Answer, by the rule: "+c.want+"."; (got == want) != (c.want != "") || c.want == "" && strings.HasPrefix(got, "Answer") {
			t.Errorf("%s: %s Want %s", name, got, want)
		}
		for _, row := range table.Rows[len(table.Rows)-2:] {
			if row.Cells[1].Difference != nil || row.Cells[2].Difference != nil || c.want == "" && row.Cells[0].Difference != nil {
				t.Errorf("%s: a verdict in %+v", name, row)
			}
		}
	}
}
