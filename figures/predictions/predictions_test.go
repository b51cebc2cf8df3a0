package predictions

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/dul/metrics"
)

var update = flag.Bool("update", false, "write the file of testdata instead of reading it")

// The codes are evenly spaced in the logarithm and reach over all float32 numbers, and each is the code
// of its own number.
func TestSmallNumbers(t *testing.T) {
	if decodeSmall(0) != 0 || decodeSmall(1) != 1 || encodeSmall(0) != 0 || encodeSmall(1) != 1 || encodeSmall(-1e-9) != 0 || encodeSmall(1+1e-9) != 1 {
		t.Error("the ends of the range are not exact")
	}
	if smallest := decodeSmall(lastCode); smallest > math.SmallestNonzeroFloat32 || encodeSmall(1e-300) != lastCode {
		t.Errorf("the smallest number is %v, above the smallest float32", smallest)
	}
	for code := uint16(1); code <= lastCode; code++ {
		x := decodeSmall(code)
		if again := encodeSmall(x); again != code {
			t.Fatalf("code %d is %v, whose code is %d", code, x, again)
		}
		if code > 1 && x >= decodeSmall(code-1) {
			t.Fatalf("code %d is %v, not below code %d", code, x, code-1)
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100000 {
		x := math.Exp(-100 * rng.Float64())
		limit := 1.2e-4
		if x < 1.0/(1<<fineOctaves) {
			limit = 3e-3
		}
		if got := decodeSmall(encodeSmall(x)); math.Abs(got-x) > limit*x {
			t.Fatalf("%v comes back as %v", x, got)
		}
	}
}

// The predicted class survives, also among classes that are nearly or exactly as probable.
func TestRowsKeepTheirClass(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 20000 {
		classes := 2 + rng.IntN(20)
		row := make([]float64, classes)
		total := 0.0
		for c := range row {
			switch rng.IntN(4) {
			case 0:
				row[c] = 1
			case 1:
				row[c] = 1 + 1e-6*rng.NormFloat64()
			case 2:
				row[c] = math.Exp(-60 * rng.Float64())
			}
			total += row[c]
		}
		if total == 0 {
			row[0], total = 1, 1
		}
		for c := range row {
			row[c] = float64(float32(row[c] / total))
		}
		codes, got := make([]uint32, classes-1), make([]float64, classes)
		top := encodeRow(row, codes)
		decodeRow(got, top, codes)
		if want := firstLargest(row); top != want || firstLargest(got) != want {
			t.Fatalf("%v comes back as %v", row, got)
		}
		for c := range row {
			if math.Abs(got[c]-row[c]) > 2e-4 {
				t.Fatalf("%v comes back as %v", row, got)
			}
		}
	}
	uniform := slices.Repeat([]float64{1.0 / 256}, 256)
	codes, got := make([]uint32, 255), make([]float64, 256)
	decodeRow(got, encodeRow(uniform, codes), codes)
	if firstLargest(got) != 0 || math.Abs(got[0]-1.0/256) > 1e-6 {
		t.Errorf("256 equal classes: the first is %v", got[0])
	}
}

func read(t *testing.T, path string) *Predictions {
	t.Helper()
	p, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func written(t testing.TB, p *Predictions) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), FileName(p.Experiment))
	if err := Write(path, p); err != nil {
		t.Fatal(err)
	}
	return path
}

func scored(t *testing.T, p *Predictions) map[string]float64 {
	t.Helper()
	s, err := Score(p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What storage changes in the numbers: less than the last digit that tables show, and accuracy not at all.
func TestMetricsSurvive(t *testing.T) {
	for _, c := range []struct {
		classes, images, others int
		certainty               float64
	}{{10, 4000, 8000, 6}, {10, 4000, 8000, 25}, {100, 1500, 1500, 12}} {
		p := made(t, c.classes, c.images, c.others, c.certainty, 1)
		before, after := scored(t, p), scored(t, read(t, written(t, p)))
		if len(before) != len(after) || before["accuracy"] != after["accuracy"] {
			t.Errorf("%d metrics before, %d after; accuracy %v, %v", len(before), len(after), before["accuracy"], after["accuracy"])
		}
		for name, want := range before {
			limit := 5e-4
			switch {
			case name == "nll" || name == "brier" || name == "aurc" || strings.Contains(name, "_auroc") || strings.Contains(name, "_auprc"):
				limit = 5e-5
			case strings.Contains(name, "_fpr95"):
				limit = 3.1 / float64(c.images) // three examples
			}
			if got := after[name]; math.Abs(got-want) > limit {
				t.Errorf("%d classes: %s is %v, stored and read %v", c.classes, name, want, got)
			}
		}
	}
}

// What was read is stored as the same bytes, and lists survive as they should.
func TestRoundTrip(t *testing.T) {
	p := made(t, 10, 300, 500, 8, 2)
	path := written(t, p)
	q := read(t, path)
	again := read(t, written(t, q))
	if !reflect.DeepEqual(q, again) {
		t.Error("reading and writing changes what was read")
	}
	if q.Experiment != p.Experiment || q.Dataset != p.Dataset || q.Classes != p.Classes || q.Samples != p.Samples || !slices.Equal(q.Labels, p.Labels) {
		t.Errorf("got %s, %s, %d classes, %d samples", q.Experiment, q.Dataset, q.Classes, q.Samples)
	}
	h := p.header()
	columns, stored := p.columns(h), q.columns(h)
	for k, c := range columns {
		for i, want := range *c.list {
			got, limit := (*stored[k].list)[i], math.Abs(want)/(1<<16)
			if c.kind != energy {
				limit = 3e-3 * want
			}
			if math.Abs(got-want) > limit {
				t.Fatalf("%s of example %d is %v, was %v", c.name, i, got, want)
			}
		}
	}
	// Only what was given comes back.
	few := &Predictions{Experiment: "a", Dataset: "b", Classes: 2, Samples: 1, Labels: []int{1}, Probs: []float64{0.25, 0.75}, Others: []Set{{Name: "c", MaxProbability: []float64{0.5, 1}}}}
	if got := read(t, written(t, few)); got.MutualInformation != nil || got.Energy.Mean != nil || got.HeldOut.Once != nil || got.Others[0].Entropy != nil || got.Others[0].MaxProbability[1] != 1 {
		t.Errorf("got %+v", got)
	}
}

// The file in testdata was written by the first version of the format.
func TestFirstFormat(t *testing.T) {
	p := &Predictions{
		Experiment: "0123456789abcdef", Dataset: "cifar10", Classes: 3, Samples: 10,
		Labels: []int{0, 2}, Probs: []float64{0.5, 0.25, 0.25, 0.125, 1.0 / (1 << 20), 0.875 - 1.0/(1<<20)},
		MutualInformation: []float64{0.125, 0},
		Energy:            Energies{Mean: []float64{1024, -3}, Once: []float64{1000, 0}},
		HeldOut:           Energies{Mean: []float64{900, 901, 902}, Once: []float64{1, 2, 3}},
		Others: []Set{{Name: "svhn", MaxProbability: []float64{0.5, 1 - 1.0/(1<<30)}, Entropy: []float64{1, 0.25},
			Energy: Energies{Mean: []float64{1, 2}, Once: []float64{3, 4}}}},
	}
	path := filepath.Join("testdata", "first"+Extension)
	if *update {
		if err := Write(path, p); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, path); !reflect.DeepEqual(got, p) {
		t.Errorf("got %+v", got)
	}
}

func TestScore(t *testing.T) {
	p := made(t, 10, 500, 600, 8, 3)
	s := scored(t, p)
	want := []string{"accuracy", "adaptive_ece15", "aurc", "brier", "classwise_ece15", "ece10", "ece15", "nll"}
	for _, by := range []string{ByMaxProbability, ByEntropy, ByMutualInformation, ByEnergy, ByEnergyOnce} {
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
		t.Errorf("strange images are not found: %v", s)
	}
	p.HeldOut.Mean, p.Others[0].Entropy, p.MutualInformation = nil, nil, nil
	fewer := scored(t, p)
	for _, by := range []string{ByEntropy, ByMutualInformation, ByEnergy} {
		if _, there := fewer["ood_svhn_auroc"+by]; there {
			t.Errorf("a score%s without its lists", by)
		}
	}
	if fewer["ood_svhn_fpr95_energyonce"] != s["ood_svhn_fpr95_energyonce"] {
		t.Error("the energies of one sample changed")
	}
}

// By hand: two test images and two others, one of which is less certain than both.
func TestScoreByHand(t *testing.T) {
	p := &Predictions{Experiment: "a", Dataset: "b", Classes: 2, Samples: 1, Labels: []int{0, 0}, Probs: []float64{0.9, 0.1, 0.4, 0.6},
		Energy: Energies{Mean: []float64{4, 7}}, HeldOut: Energies{Mean: []float64{4, 6}},
		Others: []Set{{Name: "c", MaxProbability: []float64{0.5, 0.7}, Energy: Energies{Mean: []float64{2, 5}}}}}
	s := scored(t, p)
	for name, want := range map[string]float64{
		"accuracy": 0.5, "nll": -(math.Log(0.9) + math.Log(0.4)) / 2, "brier": (0.02 + 0.72) / 2,
		"ece10": 0.5*0.1 + 0.5*0.6, "aurc": (0 + 0.5) / 2,
		// 0.5 < 0.6 < 0.7 < 0.9: of the four pairs only that of 0.7 and 0.6 is in the wrong order.
		"ood_c_auroc": 0.75, "ood_c_fpr95": 0.5,
		// Distances from 5, squared: test 1, 4, other 9, 0.
		"ood_c_auroc_energy": 0.5, "ood_c_fpr95_energy": 1,
	} {
		if math.Abs(s[name]-want) > 1e-12 {
			t.Errorf("%s is %v, want %v", name, s[name], want)
		}
	}
}

func TestValidate(t *testing.T) {
	for name, spoil := range map[string]func(p *Predictions){
		"1 to 100 lower-case letters":         func(p *Predictions) { p.Experiment = "Ä" },
		"name \"\" of the data set":           func(p *Predictions) { p.Dataset = "" },
		"two sets are named":                  func(p *Predictions) { p.Others = append(p.Others, p.Others[0]) },
		"18 sets":                             func(p *Predictions) { p.Others = slices.Repeat(p.Others, 18); rename(p.Others) },
		"1 classes":                           func(p *Predictions) { p.Classes = 1 },
		"0 samples":                           func(p *Predictions) { p.Samples = 0 },
		"0 test examples":                     func(p *Predictions) { p.Labels = nil },
		"label 10 of example 1":               func(p *Predictions) { p.Labels[1] = 10 },
		"probabilities of example 0":          func(p *Predictions) { p.Probs[0]++ },
		"column \"mutual information\" has 7": func(p *Predictions) { p.MutualInformation = p.MutualInformation[:7] },
		"set \"svhn\" has 0 examples":         func(p *Predictions) { p.Others[0].MaxProbability = nil },
		"\"svhn entropy\" has the value -1":   func(p *Predictions) { p.Others[0].Entropy[2] = -1 },
		"\"svhn max probability\" has the":    func(p *Predictions) { p.Others[0].MaxProbability[2] = 1.1 },
		"\"energy once\" has the value NaN":   func(p *Predictions) { p.Energy.Once[3] = math.NaN() },
		"\"held-out energy\" has the value +": func(p *Predictions) { p.HeldOut.Mean[3] = math.Inf(1) },
		"none of a held-out set":              func(p *Predictions) { p.HeldOut = Energies{} },
	} {
		p := made(t, 10, 10, 8, 8, 4)
		spoil(p)
		for what, err := range map[string]error{"Validate": p.Validate(), "Write": Write(filepath.Join(t.TempDir(), "p"), p), "Score": second(Score(p))} {
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s, want %q: got %v", what, name, err)
			}
		}
	}
}

func rename(sets []Set) {
	for i := range sets {
		sets[i].Name = fmt.Sprintf("set%d", i)
	}
}

func second[T any](_ T, err error) error { return err }

// No flipped bit and no missing end goes unnoticed, except for bits without a meaning: gzip's header says
// when and where a file was packed, and its blocks end with padding.
func TestDamageIsNoticed(t *testing.T) {
	p := made(t, 3, 20, 20, 8, 5)
	path := written(t, p)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := read(t, path)
	attempt := func(what string, content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
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
	for i := range good {
		attempt(fmt.Sprintf("the first %d bytes", i), good[:i])
	}
	attempt("something after the end", append(bytes.Clone(good), 0))
	attempt("twice", append(bytes.Clone(good), good...))
	attempt("an empty member after the end", append(bytes.Clone(good), packed(t, nil)...))
	attempt("too much", packed(t, make([]byte, maxContent+1)))
	if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "bytes unpacked") {
		t.Errorf("too much: %v", err)
	}
}

func packed(t *testing.T, content []byte) []byte {
	t.Helper()
	var member bytes.Buffer
	z := gzip.NewWriter(&member)
	_, err := z.Write(content)
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return member.Bytes()
}

func TestWrongContent(t *testing.T) {
	good, err := encode(made(t, 3, 4, 5, 8, 6))
	if err != nil {
		t.Fatal(err)
	}
	change := func(from, to string) []byte {
		if !bytes.Contains(good, []byte(from)) {
			t.Fatalf("the header lacks %s: %q", from, good)
		}
		return bytes.Replace(bytes.Clone(good), []byte(from), []byte(to), 1)
	}
	start := bytes.IndexByte(good[len(formatLine):], '\n') + len(formatLine) + 1
	with := func(place int, value byte) []byte {
		bad := bytes.Clone(good)
		bad[start+place] = value
		return bad
	}
	sure := with(8, 0) // the first probability that is stored, its two bytes in two planes of 8
	sure[start+16] = 1
	for want, content := range map[string][]byte{
		"does not begin with":        change("predictions 1", "predictions 2"),
		"no header":                  good[:start-1],
		"not readable":               change(`"classes":3`, `"classes":"3"`),
		"unknown field":              change(`"classes"`, `"grades"`),
		"goes on after its end":      change(`]}`, `]}{`),
		"999 classes":                change(`"classes":3`, `"classes":999`),
		"bytes follow":               change(`"examples":4`, `"examples":5`),
		"more is missing":            nil,
		"out of order":               change(`"mutual information","energy"`, `"energy","mutual information"`),
		"predicted as class 3 of 3":  with(4, 3),
		"is more probable":           sure,
		"label 77":                   with(0, 77),
		"1048577 test examples":      change(`"examples":4`, `"examples":1048577`),
		"is wrong: set":              change(`"svhn","examples":5`, `"svhn","examples":0`),
		"not 1 to 100 lower-case":    change(`"svhn"`, `"SVHN"`),
		"less than 16384 bytes":      change("{", "{"+strings.Repeat(" ", maxHeader)),
		"has the value NaN at examp": append(bytes.Clone(good[:len(good)-15]), bytes.Repeat([]byte{0xff}, 15)...),
	} {
		if content == nil {
			content, want = good[:len(good)-1], "bytes follow"
		}
		if _, err := decode(content); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestFiles(t *testing.T) {
	p := made(t, 3, 4, 5, 8, 7)
	if _, err := Read(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDamaged) {
		t.Errorf("a missing file: %v", err)
	}
	if err := Write(filepath.Join(t.TempDir(), "missing", "file"), p); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
	path := written(t, p)
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
	large := &Predictions{Experiment: "a", Dataset: "b", Classes: 256, Samples: 1, Labels: make([]int, 1<<17), Probs: make([]float64, 1<<25)}
	for i := range large.Labels {
		large.Probs[256*i] = 1
	}
	if err := Write(path, large); err == nil || !strings.Contains(err.Error(), "more than a file can hold") {
		t.Errorf("too much for a file: %v", err)
	}
}

// What decodes is valid, can be scored, and decodes to itself after encoding. The body is made as long as
// the header wants it, so that more than the length is tried.
func FuzzContent(f *testing.F) {
	for seed := range uint64(3) {
		content, err := encode(made(f, 3, 4, 5, 8, seed))
		if err != nil {
			f.Fatal(err)
		}
		line, body, _ := bytes.Cut(content[len(formatLine):], []byte("\n"))
		f.Add(line, body)
	}
	f.Fuzz(func(t *testing.T, line, body []byte) {
		var h header
		if json.Unmarshal(line, &h) == nil && h.check() == nil {
			p := &Predictions{}
			for _, set := range h.Others {
				p.Others = append(p.Others, Set{Name: set.Name})
			}
			if size := h.size(p.columns(h)); size < 1<<14 {
				body = slices.Concat(body, make([]byte, size))[:size]
			}
		}
		p, err := decode(slices.Concat([]byte(formatLine), line, []byte("\n"), body))
		if err != nil {
			return
		}
		if _, err := Score(p); err != nil {
			t.Errorf("no score: %v", err)
		}
		again, err := encode(p)
		if err != nil {
			t.Fatalf("cannot be encoded: %v", err)
		}
		q, err := decode(again)
		if err != nil {
			t.Fatalf("cannot be decoded again: %v", err)
		}
		if !slices.Equal(q.Labels, p.Labels) {
			t.Errorf("labels %v, decoded again %v", p.Labels, q.Labels)
		}
	})
}

// Nothing packed makes the reader fail in another way than by an error.
func FuzzFile(f *testing.F) {
	content, err := os.ReadFile(written(f, made(f, 3, 4, 5, 8, 1)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Fuzz(func(t *testing.T, packed []byte) {
		content, err := unpack(bytes.NewReader(packed))
		if err != nil {
			return
		}
		if p, err := decode(content); err == nil && p.Validate() != nil {
			t.Error("not valid")
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	for _, classes := range []int{10, 100} {
		p := made(b, classes, testImages, svhnImages, 12, 1)
		path := filepath.Join(b.TempDir(), "p")
		b.Run(fmt.Sprintf("classes=%d", classes), func(b *testing.B) {
			for b.Loop() {
				if err := Write(path, p); err != nil {
					b.Fatal(err)
				}
			}
			info, err := os.Stat(path)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(info.Size()), "bytes/file")
		})
	}
}

func BenchmarkReadAndScore(b *testing.B) {
	for _, classes := range []int{10, 100} {
		path := written(b, made(b, classes, testImages, svhnImages, 12, 1))
		b.Run(fmt.Sprintf("classes=%d", classes), func(b *testing.B) {
			for b.Loop() {
				p, err := Read(path)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := Score(p); err != nil {
					b.Fatal(err)
				}
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

// Labels and probabilities of held-out images, and scores of the logits, survive.
func TestRoundTripOfWhatSomeMethodsHave(t *testing.T) {
	p := withHeldOut(t, made(t, 10, 300, 500, 8, 2))
	p.DempsterShafer, p.Others[0].DempsterShafer = make([]float64, 300), make([]float64, 500)
	for i := range p.DempsterShafer {
		p.DempsterShafer[i] = 1 / float64(i+1)
	}
	p.Others[0].DempsterShafer[7] = 1e-9
	q := read(t, written(t, p))
	if !slices.Equal(q.HeldOutLabels, p.HeldOutLabels) || len(q.HeldOutProbs) != len(p.HeldOutProbs) {
		t.Fatalf("%d labels of %d, %d probabilities of %d", len(q.HeldOutLabels), len(p.HeldOutLabels), len(q.HeldOutProbs), len(p.HeldOutProbs))
	}
	for name, lists := range map[string][2][]float64{
		"held-out probabilities":           {p.HeldOutProbs, q.HeldOutProbs},
		"Dempster-Shafer":                  {p.DempsterShafer, q.DempsterShafer},
		"Dempster-Shafer, the other set's": {p.Others[0].DempsterShafer, q.Others[0].DempsterShafer},
	} {
		for i, want := range lists[0] {
			if got := lists[1][i]; math.Abs(got-want) > 3e-3*want {
				t.Fatalf("%s, number %d: %v, was %v", name, i, got, want)
			}
		}
	}
	if again := read(t, written(t, q)); !reflect.DeepEqual(q, again) {
		t.Error("reading and writing changes what was read")
	}
	before, after := scored(t, p), scored(t, q)
	if math.Abs(before["temperature"]-after["temperature"]) > 1e-3 || math.Abs(before["nll_scaled"]-after["nll_scaled"]) > 1e-4 {
		t.Errorf("temperature %v, NLL %v; stored and read %v, %v", before["temperature"], before["nll_scaled"], after["temperature"], after["nll_scaled"])
	}
	content, err := encode(p)
	if err != nil {
		t.Fatal(err)
	}
	missing := bytes.Replace(content, []byte(`"held_out_classes":true`), []byte(`"held_out_classes":false`), 1)
	if _, err := decode(missing); err == nil || !strings.Contains(err.Error(), "bytes follow") {
		t.Errorf("held-out images that the header does not know: %v", err)
	}
	for want, spoil := range map[string]func(p *Predictions){
		"label 10 of example 1": func(p *Predictions) { p.HeldOutLabels[1] = 10 },
		"149 labels of held-out": func(p *Predictions) {
			p.HeldOutLabels, p.HeldOutProbs = p.HeldOutLabels[:149], p.HeldOutProbs[:1490]
		},
		"the held-out images":                 func(p *Predictions) { p.HeldOutLabels = nil },
		"\"dempster-shafer\" has the value 2": func(p *Predictions) { p.DempsterShafer[0] = 2 },
	} {
		p := read(t, written(t, q))
		spoil(p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
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
				p, err := metrics.Softmax(logits, classes, temperature)
				if err != nil {
					t.Fatal(err)
				}
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
	nll, err := metrics.CategoricalNLL(right, classes, p.Labels)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(s["temperature"]-2) > 0.08 || math.Abs(s["nll_scaled"]-nll) > 0.002 || s["nll"]-s["nll_scaled"] < 0.05 || s["ece15_scaled"] > 0.02 || s["ece15"] < 0.05 {
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
