package predictions

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/float16"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"

	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/methods"
)

// The predicted class survives, also among classes that are nearly or exactly as probable, and the rest to float32.
func TestRowsKeepTheirClass(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 20000 {
		classes := 2 + rng.IntN(20)
		row, total := make([]float64, classes), 0.0
		for c := range row {
			switch rng.IntN(4) {
			case 0:
				row[c] = 1
			case 1:
				row[c] = 1 + 1e-8*rng.NormFloat64()
			case 2:
				row[c] = math.Exp(-60 * rng.Float64())
			}
			total += row[c]
		}
		if total == 0 {
			row[0], total = 1, 1
		}
		for c := range row {
			row[c] /= total
		}
		got := exponentials(logProbabilities(row, classes))
		if first := func(v []float64) int { return slices.Index(v, slices.Max(v)) }; first(got) != first(row) {
			t.Fatalf("%v comes back as %v", row, got)
		}
		for c, p := range row {
			if math.Abs(got[c]-p) > 1e-5*p {
				t.Fatalf("%v comes back as %v", row, got)
			}
		}
	}
}

// In half precision, too, and rows sum to 1; the largest is what the others leave. Rows of about equal probabilities are
// the worst of them: each is rounded to the same side.
func TestHalfRowsKeepTheirClass(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 2))
	for i := range 4000 {
		classes := 2 + rng.IntN(maxClasses-1)
		row, spread := make([]float64, classes), []float64{0, 1e-8, 1e-3, 1, 5}[i%5]
		for c := range row {
			row[c] = math.Exp(spread * rng.NormFloat64())
		}
		if i%3 == 0 {
			row[rng.IntN(classes)] *= math.Exp(30 * rng.Float64())
		}
		if i%7 == 0 {
			row[rng.IntN(classes)] = 0
		}
		floats.Scale(1/floats.Sum(row), row)
		got := halfExponentials(halfLogProbabilities(row, classes), classes)
		if first := func(v []float64) int { return slices.Index(v, slices.Max(v)) }; first(got) != first(row) || math.Abs(floats.Sum(got)-1) > 1e-14 {
			t.Fatalf("%v comes back as %v, which sums to 1%+g", row, got, floats.Sum(got)-1)
		}
		top := slices.Max(row)
		for c, p := range row {
			// Half a unit in the last place of the logarithm, and one more where the next number was taken.
			if limit := 1.5 / 1024 * math.Abs(math.Log(p)) * p; p > 0 && p < top && math.Abs(got[c]-p) > limit || p == 0 && got[c] != 0 {
				t.Fatalf("%d classes: %v comes back as %v", classes, p, got[c])
			}
		}
		if limit := 1e-15 + entropy(row)/1024; math.Abs(slices.Max(got)-top) > limit {
			t.Fatalf("%d classes: the largest, 1 - %v, comes back as 1 - %v", classes, 1-top, 1-slices.Max(got))
		}
	}
}

func entropy(row []float64) (sum float64) {
	for _, p := range row {
		if p > 0 {
			sum -= p * math.Log(p)
		}
	}
	return sum
}

// Of certain predictions it is the distance from 1 that is kept: their order is what AUROC is about.
func TestCertainPredictionsKeepTheirOrder(t *testing.T) {
	p := small(t)
	p.Others[0].MaxProbability = []float64{1 - 3e-13, 1 - 2e-13, 1 - 1e-13, 1, 1 - 1e-9, 1 - 1e-8, 0.5, 0.1}
	q := read(t, written(t, p))
	for i, want := range p.Others[0].MaxProbability {
		if got := q.Others[0].MaxProbability[i]; math.Abs(got-want) > 1e-6*(1-want)+2e-16 {
			t.Errorf("1 - %v comes back as 1 - %v", 1-want, 1-got)
		}
	}
}

func read(t *testing.T, path string) *Predictions {
	t.Helper()
	p := must.Get(Read(path))(t)
	return p
}

func written(t testing.TB, p *Predictions) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), FileName(p.Experiment))
	must.Do(t, Write(path, p))
	return path
}

func scored(t *testing.T, p *Predictions) map[string]float64 {
	t.Helper()
	s := must.Get(Score(p))(t)
	return s
}

// What storage changes in the numbers: far less than the last digit that tables show, also in half precision, and
// accuracy not at all. Two neighbours whose order changes by rounding move a rate by one in so many images.
func TestMetricsSurvive(t *testing.T) {
	for _, c := range []struct {
		classes, images, others int
		certainty, limit        float64
	}{{10, 4000, 8000, 6, 2e-6}, {10, 4000, 8000, 25, 2e-6}, {fewClasses, 1500, 1500, 8, 2e-6}, {100, 1500, 1500, 12, 2e-5}} {
		t.Run(fmt.Sprintf("%d classes, certainty %v", c.classes, c.certainty), func(t *testing.T) {
			p := made(t, c.classes, c.images, c.others, c.certainty, 1)
			before, after := scored(t, p), scored(t, read(t, written(t, p)))
			if len(before) != len(after) || before["accuracy"] != after["accuracy"] {
				t.Errorf("%d metrics before, %d after; accuracy %v, %v", len(before), len(after), before["accuracy"], after["accuracy"])
			}
			for name, want := range before {
				limit := c.limit
				if strings.Contains(name, "_fpr95") {
					limit = 1.1 / float64(c.images)
				}
				if got := after[name]; math.Abs(got-want) > limit {
					t.Errorf("%s is %v, stored and read %v", name, want, got)
				}
			}
		})
	}
}

// Lists survive to float32, what was read is stored as the same bytes, and only what was given comes back.
func TestRoundTrip(t *testing.T) {
	p := withHeldOut(t, made(t, 10, 300, 500, 8, 2))
	p.DempsterShafer, p.Others[0].DempsterShafer = make([]float64, 300), make([]float64, 500)
	for i := range p.DempsterShafer {
		p.DempsterShafer[i] = 1 / float64(i+1)
	}
	p.Others[0].DempsterShafer[7] = 1e-9
	p.Others[0].Probs = slices.Concat(p.Probs, p.Probs[:2000])
	path := written(t, p)
	q := read(t, path)
	again := written(t, q)
	if a, b := content(t, path), content(t, again); !bytes.Equal(a, b) || !reflect.DeepEqual(q, read(t, again)) {
		t.Error("reading and writing changes what was read")
	}
	if q.Experiment != p.Experiment || q.Dataset != p.Dataset || q.Classes != p.Classes || q.Samples != p.Samples ||
		!slices.Equal(q.Labels, p.Labels) || !slices.Equal(q.HeldOutLabels, p.HeldOutLabels) || len(q.HeldOutProbs) != len(p.HeldOutProbs) {
		t.Errorf("got %s, %s, %d classes, %d samples, %d labels and %d of held-out images",
			q.Experiment, q.Dataset, q.Classes, q.Samples, len(q.Labels), len(q.HeldOutLabels))
	}
	columns, stored := p.columns(), q.columns()
	columns = append(columns, column{name: "probabilities", list: &p.Probs}, column{name: "held-out probabilities", list: &p.HeldOutProbs},
		column{name: "further probabilities", list: &p.Others[0].Probs})
	stored = append(stored, column{list: &q.Probs}, column{list: &q.HeldOutProbs}, column{list: &q.Others[0].Probs})
	for k, c := range columns {
		for i, want := range *c.list {
			if got := (*stored[k].list)[i]; math.Abs(got-want) > 3e-6*math.Abs(want) {
				t.Fatalf("%s of example %d is %v, was %v", c.name, i, got, want)
			}
		}
	}
	many := withHeldOut(t, made(t, 100, 200, 100, 8, 2))
	many.Others[0].Probs = many.Probs[:100*100]
	path = written(t, many)
	named, _ := must.Get2(checkpoint.ReadTensors(path))(t)
	for _, name := range []string{testProbs, heldOutProbs, setProbs("svhn")} {
		if got := named[name].DType(); got != dtypes.Float16 {
			t.Errorf("%s of 100 classes is of type %s", name, got)
		}
	}
	if q := read(t, path); !bytes.Equal(content(t, path), content(t, written(t, q))) {
		t.Error("reading and writing 100 classes changes what was read")
	}
	few := &Predictions{Experiment: "a", Dataset: "b", Classes: 2, Samples: 1, Labels: []int{1}, Probs: []float64{0, 1},
		Others: []Set{{Name: "c", MaxProbability: []float64{0.5, 1}}}}
	got := read(t, written(t, few))
	got.Others[0].MaxProbability[0] = 0.5 // of which the logarithm is rounded
	if !reflect.DeepEqual(got, few) {
		t.Errorf("got %+v", got)
	}
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	bytes := must.Get(os.ReadFile(path))(t)
	return bytes
}

func TestScore(t *testing.T) {
	p := made(t, 10, 500, 600, 8, 3)
	s := scored(t, p)
	want := []string{"accuracy", "adaptive_ece15", "aurc", "brier", "classwise_ece15", "ece10", "ece15", "nll"}
	for _, by := range []string{ByMaxProbability, methods.ByEntropy, methods.ByMutualInformation, methods.ByEnergy, ByEnergyOnce} {
		for _, metric := range []string{"auroc", "auprc", "ap", "fpr95"} {
			want = append(want, "ood_svhn_"+metric+by)
		}
	}
	if got := slices.Sorted(maps.Keys(s)); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("scores %v", got)
	}
	for range 3 {
		if !maps.Equal(s, scored(t, p)) {
			t.Error("the same predictions have different scores")
		}
	}
	if s["ood_svhn_auroc"] <= 0.5 || s["ood_svhn_auroc_energy"] <= 0.7 {
		t.Errorf("images out of distribution are not found: %v", s)
	}
	p.HeldOut.Mean, p.Others[0].Entropy, p.MutualInformation = nil, nil, nil
	fewer := scored(t, p)
	for _, by := range []string{methods.ByEntropy, methods.ByMutualInformation, methods.ByEnergy} {
		if _, there := fewer["ood_svhn_auroc"+by]; there {
			t.Errorf("a score%s without its lists", by)
		}
	}
	if fewer["ood_svhn_fpr95_energyonce"] != s["ood_svhn_fpr95_energyonce"] {
		t.Error("the energies of one sample changed")
	}
	if _, _, err := p.oodScores(p.Others[0], "none"); err == nil || !strings.Contains(err.Error(), `"none"`) {
		t.Errorf("an unknown score: %v", err)
	}
}

// By hand: two test images and two others, one of which is less certain than both.
func TestScoreByHand(t *testing.T) {
	p := &Predictions{Experiment: "a", Dataset: "b", Classes: 2, Samples: 1, Labels: []int{0, 0}, Probs: []float64{0.9, 0.1, 0.4, 0.6},
		Energy: Energies{Mean: []float64{4, 7}}, HeldOut: Energies{Mean: []float64{4, 6}},
		Others: []Set{{Name: "c", MaxProbability: []float64{0.5, 0.7}, Energy: Energies{Mean: []float64{2, 5}}}}}
	s := scored(t, p)
	for _, c := range []struct {
		name string
		want float64
	}{
		{"accuracy", 0.5}, {"nll", -(math.Log(0.9) + math.Log(0.4)) / 2}, {"brier", (0.02 + 0.72) / 2},
		{"ece10", 0.5*0.1 + 0.5*0.6}, {"aurc", (0 + 0.5) / 2},
		// 0.5 < 0.6 < 0.7 < 0.9: of the four pairs only that of 0.7 and 0.6 is in the wrong order.
		{"ood_c_auroc", 0.75}, {"ood_c_fpr95", 0.5},
		// Distances from 5, squared: test 1, 4, other 9, 0.
		{"ood_c_auroc_energy", 0.5}, {"ood_c_fpr95_energy", 1},
	} {
		if math.Abs(s[c.name]-c.want) > 1e-12 {
			t.Errorf("%s is %v, want %v", c.name, s[c.name], c.want)
		}
	}
}

// small are predictions of a few images.
func small(t testing.TB) *Predictions { return made(t, 10, 10, 8, 8, 4) }

// withLayers gives energies of two layers: as at the last convolution, and backwards.
func withLayers(p *Predictions) *Predictions {
	p.Layers = []string{"stem", "stage_0_block_1/conv_2"}
	for _, e := range p.energies() {
		backwards := slices.Clone(e.Mean)
		slices.Reverse(backwards)
		e.Layers = [][]float64{slices.Clone(e.Mean), backwards}
	}
	return p
}

// What the layers and the features' Gaussians say comes back, and is scored.
func TestLayersAndDistances(t *testing.T) {
	p := withLayers(small(t))
	p.Distances = Distances{One: []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, Class: slices.Repeat([]float64{1}, 10)}
	p.Others[0].Distances = Distances{One: slices.Repeat([]float64{8.5}, 8), Class: slices.Repeat([]float64{2}, 8)}
	q := read(t, written(t, p))
	if !slices.Equal(q.Layers, p.Layers) || !reflect.DeepEqual(q.Distances, p.Distances) {
		t.Errorf("layers %q and distances %v come back as %q and %v", p.Layers, p.Distances, q.Layers, q.Distances)
	}
	for l := range p.Layers {
		for i, want := range p.Others[0].Energy.Layers[l] {
			if got := q.Others[0].Energy.Layers[l][i]; math.Abs(got-want) > 1e-6*math.Abs(want) {
				t.Errorf("layer %d, image %d: %v comes back as %v", l, i, want, got)
			}
		}
	}
	s := scored(t, q)
	for name, want := range map[string]float64{
		"ood_svhn_auroc_gaussian": 0.9, "ood_svhn_auroc_classgaussian": 1,
		"ood_svhn_auroc_energy@stem": s["ood_svhn_auroc_energy"], "ood_svhn_auprc_energy@stage_0_block_1/conv_2": s["ood_svhn_auprc_energy"],
	} {
		if got, has := s[name]; !has || math.Abs(got-want) > 1e-12 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if _, has := s["ood_svhn_fpr95_energy@stem"]; has {
		t.Error("a layer has more than AUROC and AUPRC")
	}
	if got := read(t, written(t, small(t))); got.Layers != nil || got.Energy.Layers != nil {
		t.Errorf("without layers there are %q", got.Layers)
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		want  string
		spoil func(p *Predictions)
	}{
		{"1 to 100 lower-case letters", func(p *Predictions) { p.Experiment = "Ä" }},
		{"name \"\" of the data set", func(p *Predictions) { p.Dataset = "" }},
		{"name \"S\" of a set", func(p *Predictions) { p.Others[0].Name = "S" }},
		{"two sets are named", func(p *Predictions) { p.Others = append(p.Others, p.Others[0]) }},
		{"18 sets", func(p *Predictions) {
			p.Others = slices.Repeat(p.Others, 18)
			for i := range p.Others {
				p.Others[i].Name = "set" + strconv.Itoa(i)
			}
		}},
		{"1 classes", func(p *Predictions) { p.Classes = 1 }},
		{"257 classes", func(p *Predictions) { p.Classes = 257 }},
		{"0 samples", func(p *Predictions) { p.Samples = 0 }},
		{"0 test examples", func(p *Predictions) { p.Labels = nil }},
		{"1048577 test examples", func(p *Predictions) { p.Labels = make([]int, 1<<20+1) }},
		{"label 10 of example 1", func(p *Predictions) { p.Labels[1] = 10 }},
		{"probabilities of example 0", func(p *Predictions) { p.Probs[0]++ }},
		{"column \"test.mutual_information\" has 7", func(p *Predictions) { p.MutualInformation = p.MutualInformation[:7] }},
		{"set \"svhn\" has 0 examples", func(p *Predictions) { p.Others[0].MaxProbability = nil }},
		{"\"ood.svhn.entropy\" has the value -1", func(p *Predictions) { p.Others[0].Entropy[2] = -1 }},
		{"\"ood.svhn.log_max_probability\" has the", func(p *Predictions) { p.Others[0].MaxProbability[2] = 1.1 }},
		{"\"test.dempster_shafer\" has the value 2", func(p *Predictions) { p.DempsterShafer = slices.Repeat([]float64{2}, 10) }},
		{"\"test.energy_once\" has the value NaN", func(p *Predictions) { p.Energy.Once[3] = math.NaN() }},
		{"\"held_out.energy\" has the value +", func(p *Predictions) { p.HeldOut.Mean[3] = math.Inf(1) }},
		{"none of a held-out set", func(p *Predictions) { p.HeldOut = Energies{} }},
		{"name \"Conv\" of layer 1", func(p *Predictions) { withLayers(p).Layers[1] = "Conv" }},
		{"or is that of another layer", func(p *Predictions) { withLayers(p).Layers[1] = p.Layers[0] }},
		{"energies of 1 layers, and names of 2", func(p *Predictions) { withLayers(p).HeldOut.Layers = p.HeldOut.Layers[:1] }},
		{"\"ood.svhn.energy.stem\" has 3 values", func(p *Predictions) { withLayers(p).Others[0].Energy.Layers[0] = []float64{1, 2, 3} }},
		{"\"test.gaussian\" has the value -1", func(p *Predictions) { p.Distances.One = slices.Repeat([]float64{-1}, 10) }},
		{"set \"svhn\": metrics: ", func(p *Predictions) { p.Others[0].Probs = []float64{0.5, 0.6, 0, 0, 0, 0, 0, 0, 0, 0} }},
		{"set \"svhn\" has probabilities of 2 examples, and the largest ones of 8", func(p *Predictions) { p.Others[0].Probs = slices.Repeat([]float64{0.1}, 20) }},
		{"the held-out images: ", func(p *Predictions) { withHeldOut(t, p).HeldOutLabels = nil }},
		{"the held-out images: metrics: label 10 of example 1", func(p *Predictions) { withHeldOut(t, p).HeldOutLabels[1] = 10 }},
		{"4 labels of held-out images and 5 energies", func(p *Predictions) {
			withHeldOut(t, p)
			p.HeldOutLabels, p.HeldOutProbs = p.HeldOutLabels[:4], p.HeldOutProbs[:40]
		}},
	} {
		t.Run(c.want, func(t *testing.T) {
			p := small(t)
			c.spoil(p)
			path := filepath.Join(t.TempDir(), "p")
			_, scoreErr := Score(p)
			for _, found := range []struct {
				what string
				err  error
			}{{"Validate", p.Validate()}, {"Write", Write(path, p)}, {"Score", scoreErr}} {
				if found.err == nil || !strings.Contains(found.err.Error(), c.want) {
					t.Errorf("%s: got %v", found.what, found.err)
				}
			}
			if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a file was written: %v", err)
			}
		})
	}
}

// No flipped bit and no missing end goes unnoticed, but for a space at the end of the header, which means nothing.
func TestDamageIsNoticed(t *testing.T) {
	path := written(t, made(t, 3, 20, 20, 8, 5))
	good, want := content(t, path), read(t, path)
	attempt := func(what string, bad []byte) {
		must.Do(t, os.WriteFile(path, bad, 0o600))
		got, err := Read(path)
		if err != nil && errors.Is(err, ErrDamaged) && strings.Contains(err.Error(), path) && got == nil {
			return
		}
		if err != nil || !reflect.DeepEqual(got, want) || !strings.HasPrefix(what, "flipped") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1 << (i % 8)
		attempt(fmt.Sprintf("flipped byte %d", i), bad)
	}
	for i := 0; i < len(good); i += 5 {
		attempt(fmt.Sprintf("the first %d bytes", i), good[:i])
	}
	attempt("something after the end", append(bytes.Clone(good), 0))
	attempt("twice", append(bytes.Clone(good), good...))
}

// What other programs write, with the right checksum, is not taken for what it is not.
func TestWrongContent(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(named map[string]*tensors.Tensor, metadata map[string]string)
	}{
		{`its format is "another"`, func(_ map[string]*tensors.Tensor, m map[string]string) { m[keyFormat] = "another" }},
		{`its number of classes is "ten"`, func(_ map[string]*tensors.Tensor, m map[string]string) { m[keyClasses] = "ten" }},
		{"999 classes", func(_ map[string]*tensors.Tensor, m map[string]string) { m[keyClasses] = "999" }},
		{`two sets are named "svhn"`, func(_ map[string]*tensors.Tensor, m map[string]string) { m[keySets] = "svhn,svhn" }},
		{`tensor "ood.svhn.energy" of type Float32, which is unknown`, func(_ map[string]*tensors.Tensor, m map[string]string) { m[keySets] = "" }},
		{`tensor "more" of type Float32`, func(n map[string]*tensors.Tensor, _ map[string]string) {
			n["more"] = tensors.FromFlatDataAndDimensions([]float32{1}, 1)
		}},
		{`tensor "test.labels" of type Float32`, func(n map[string]*tensors.Tensor, _ map[string]string) {
			n[testLabels] = tensors.FromFlatDataAndDimensions([]float32{1}, 1)
		}},
		{`tensor "test.energy" of type Float16`, func(n map[string]*tensors.Tensor, _ map[string]string) {
			n["test.energy"] = tensors.FromFlatDataAndDimensions([]float16.Float16{0, 1, 2, 3}, 4)
		}},
		// Of which the others leave less than nothing to the largest.
		{"are negative", func(n map[string]*tensors.Tensor, _ map[string]string) {
			n[testProbs] = tensors.FromFlatDataAndDimensions(make([]float16.Float16, 12), 4, 3)
		}},
		{"label 77", func(n map[string]*tensors.Tensor, _ map[string]string) {
			n[testLabels] = tensors.FromFlatDataAndDimensions([]uint8{77, 0, 1, 2}, 4)
		}},
		{`column "test.energy" has 1 values`, func(n map[string]*tensors.Tensor, _ map[string]string) {
			n["test.energy"] = tensors.FromFlatDataAndDimensions([]float32{1}, 1)
		}},
		{"0 test examples", func(n map[string]*tensors.Tensor, _ map[string]string) { delete(n, testLabels) }},
	} {
		t.Run(c.want, func(t *testing.T) {
			path := written(t, made(t, 3, 4, 5, 8, 6))
			named, metadata := must.Get2(checkpoint.ReadTensors(path))(t)
			delete(metadata, keySum)
			c.change(named, metadata)
			metadata[keySum] = must.Get(checksum(named, metadata))(t)
			must.Do(t, checkpoint.WriteTensors(path, named, metadata))
			if _, err := Read(path); err == nil || !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestFiles(t *testing.T) {
	p := made(t, 3, 4, 5, 8, 7)
	if _, err := Read(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDamaged) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := Read(t.TempDir()); err == nil || errors.Is(err, ErrDamaged) {
		t.Errorf("a folder: %v", err)
	}
	if err := Write(filepath.Join(t.TempDir(), "missing", "file"), p); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
	path := written(t, p)
	if _, err := ReadOf(path, "another"); err == nil || !strings.Contains(err.Error(), path+" are of experiment "+p.Experiment+", not of another") {
		t.Errorf("predictions of another experiment: %v", err)
	}
	p.Samples = 20
	if err := Write(path, p); err != nil || read(t, path).Samples != 20 {
		t.Errorf("replacing a file: %v", err)
	}
	p.Samples = 0
	if err := Write(path, p); err == nil || read(t, path).Samples != 20 {
		t.Errorf("predictions that are not valid replaced a file: %v", err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("files left: %v, %v", entries, err)
	}
}

func BenchmarkWrite(b *testing.B) {
	for _, classes := range []int{10, 100} {
		p := made(b, classes, testImages, svhnImages, 12, 1)
		path := filepath.Join(b.TempDir(), "p")
		b.Run(fmt.Sprintf("classes=%d", classes), func(b *testing.B) {
			for b.Loop() {
				must.Do(b, Write(path, p))
			}
			info := must.Get(os.Stat(path))(b)
			b.ReportMetric(float64(info.Size()), "bytes/file")
		})
	}
}

func BenchmarkReadAndScore(b *testing.B) {
	for _, classes := range []int{10, 100} {
		path := written(b, made(b, classes, testImages, svhnImages, 12, 1))
		b.Run(fmt.Sprintf("classes=%d", classes), func(b *testing.B) {
			for b.Loop() {
				p := must.Get(Read(path))(b)
				must.Get(Score(p))(b)
			}
		})
	}
}

func ExampleScore() {
	p := &Predictions{
		Experiment: "0123456789abcdef", Dataset: "cifar10", Classes: 2, Samples: 10,
		Labels: []int{0, 1, 1}, Probs: []float64{0.9, 0.1, 0.2, 0.8, 0.6, 0.4},
		Others: []Set{{Name: "svhn", MaxProbability: []float64{0.5, 0.7}}},
	}
	s, err := Score(p)
	fmt.Printf("%.3f %.3f %.3f %v\n", s["accuracy"], s["nll"], s["ood_svhn_auroc"], err)
	// Output: 0.667 0.415 0.833 <nil>
}

// withHeldOut adds labels and probabilities of as many held-out images as there are energies.
func withHeldOut(t testing.TB, p *Predictions) *Predictions {
	t.Helper()
	held := made(t, p.Classes, len(p.HeldOut.Mean), 1, 2, 99)
	p.HeldOutLabels, p.HeldOutProbs = held.Labels, held.Probs
	return p
}

// A network whose logits are twice too large gets the temperature 2, and the metrics of logits of the
// right size.
func TestTemperature(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const classes, n = 4, 20000
	draw := func() (labels []int, right, sharp []float64) {
		for range n {
			logits := make([]float64, classes)
			for c := range logits {
				logits[c] = 2 * rng.NormFloat64()
			}
			row := func(temperature float64) []float64 {
				p := must.Get(metrics.Softmax(logits, classes, temperature))(t)
				return p
			}
			p, u, label := row(1), rng.Float64(), 0
			for ; label < classes-1 && u >= p[label]; label++ {
				u -= p[label]
			}
			labels, right, sharp = append(labels, label), append(right, p...), append(sharp, row(0.5)...)
		}
		return labels, right, sharp
	}
	p := &Predictions{Experiment: "a", Dataset: "b", Classes: classes, Samples: 1}
	var right []float64
	p.Labels, right, p.Probs = draw()
	p.HeldOutLabels, _, p.HeldOutProbs = draw()
	s := scored(t, p)
	nll := must.Get(metrics.CategoricalNLL(right, classes, p.Labels))(t)
	if math.Abs(s["temperature"]-2) > 0.08 || math.Abs(s["nll_scaled"]-nll) > 0.002 || s["nll"]-s["nll_scaled"] < 0.05 ||
		s["ece15_scaled"] > 0.02 || s["ece15"] < 0.05 {
		t.Errorf("temperature %v, NLL %v from %v (right %v), ECE %v from %v", s["temperature"], s["nll_scaled"], s["nll"], nll, s["ece15_scaled"], s["ece15"])
	}
	if s["accuracy"] != s["accuracy_scaled"] {
		t.Errorf("accuracy %v, scaled %v", s["accuracy"], s["accuracy_scaled"])
	}
	// A network that is right about all of them, or knows nothing, has no temperature, and no scaled metrics.
	for i, label := range p.HeldOutLabels {
		row := p.HeldOutProbs[i*classes : (i+1)*classes]
		clear(row)
		row[label] = 1
	}
	if s := scored(t, p); len(s) != 8 || s["nll"] == 0 {
		t.Errorf("without a temperature: %v", s)
	}
}
