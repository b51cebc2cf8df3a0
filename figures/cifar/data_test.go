package cifar

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/datasets"
	"densityuncertainty/datasets/fetch"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

// A grid run is measured on training images that it was not trained on, and on nothing else. The held-out images
// depend on neither seed nor method.
func TestImagesOfExperiments(t *testing.T) {
	r, _ := withMadeUpImages(t)
	of := func(e results.Experiment, stats ChannelStats) (imageData, error) {
		return r.images.of(context.Background(), e, stats, false, func(text string) { t.Log(text) })
	}
	e := tiny(methods.VDropout)
	e.Scale, e.TrainN, e.TestN = results.Grid, 0, 0
	d := must.Get(of(e, ComputedStats))(t)
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
	small := tiny(methods.Density)
	small.Seed = 5
	part := must.Get(of(small, ComputedStats))(t)
	if !slices.Equal(part.heldOut.Pixels, d.test.Pixels) || part.train.N != 16 || part.test.N != 8 {
		t.Errorf("%d training, %d test and %d held-out images", part.train.N, part.test.N, part.heldOut.N)
	}
	mean := 0.0
	for _, v := range part.train.Pixels {
		mean += float64(v) / 255 / float64(len(part.train.Pixels))
	}
	if got := (part.stats.Mean[0] + part.stats.Mean[1] + part.stats.Mean[2]) / 3; math.Abs(got-mean) > 1e-9 {
		t.Errorf("the mean of the images to train on is %v, standardised by %v", mean, got)
	}
	if part, err := of(small, ReleasedStats); err != nil || part.stats.Mean[0] != 0.4914 {
		t.Errorf("released statistics: %v (error %v)", part.stats, err)
	}
	for _, c := range []struct {
		name   string
		change func(*results.Experiment)
	}{
		{"too many to train on", func(e *results.Experiment) { e.TrainN = 55 }},
		{"all held out", func(e *results.Experiment) { e.TrainN, e.HeldOut = 0, 60 }},
		{"too many to test on", func(e *results.Experiment) { e.TestN = 13 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := small
			c.change(&e)
			if _, err := of(e, ComputedStats); err == nil || !strings.Contains(err.Error(), "held out") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A run of the table of out-of-distribution detection does not begin without SVHN, unless it was told to.
func TestDetectionNeedsSVHN(t *testing.T) {
	for _, set := range []results.Set{detectionSet(), gaussianProcessSet()} {
		if !needsSVHN(set.At(results.Full)[0]) || needsSVHN(set.At(results.Quick)[0]) {
			t.Errorf("the set %s: full runs need no SVHN, or quick ones do", set.Name)
		}
	}
	e := detectionSet().At(results.Full)[0]
	for _, c := range []struct {
		want    string
		missing error
	}{{"no network", errors.New("no network")}, {"there is no such file", nil}} {
		t.Run(c.want, func(t *testing.T) {
			r, _ := withMadeUpImages(t)
			r.images.files.svhn = func(context.Context, bool) (*datasets.Images, error) { return nil, c.missing }
			_, err := r.Run(context.Background(), []results.Experiment{e}, func(_ float64, note string) {
				if note != "reading images" {
					t.Fatalf("it went on: %s", note)
				}
			})
			fails(t, "without SVHN", err, c.want, "--without-svhn", "test_32x32.mat")
			small := e
			small.Scale = results.Small
			for _, goesOn := range []struct {
				e       results.Experiment
				without bool
			}{{e, true}, {small, false}} {
				d, err := r.images.of(context.Background(), goesOn.e, ComputedStats, goesOn.without, func(string) {})
				if err != nil || len(d.others) != 1 {
					t.Errorf("%v without %v: %d sets, error %v", goesOn.e, goesOn.without, len(d.others), err)
				}
			}
		})
	}
}

// An experiment whose tables have a column for the excerpt of SVHN says that it goes on without.
func TestMissingExcerptIsNoted(t *testing.T) {
	for scale, want := range map[string]bool{results.Processor: true, results.Small: false} {
		r, _ := withMadeUpImages(t)
		e := Paper(CIFAR10, ResNet14).Processor().Experiments(methods.Density)[0]
		e.Scale, e.HeldOut, e.TrainN, e.TestN = scale, 4, 8, 4
		var notes []string
		d := must.Get(r.images.of(t.Context(), e, ComputedStats, false, func(text string) { notes = append(notes, text) }))(t)
		said := len(notes) == 1 && strings.Contains(notes[0], "goes on without svhn-first1083, whose columns stay empty: there is no train_first1083_32x32.mat in the folder of data")
		if said != want || !want && len(notes) > 0 || len(d.others) > 2 {
			t.Errorf("%s: %d further sets, notes %q", scale, len(d.others), notes)
		}
	}
}

// Without being told to download, optional sets are taken from the local folder or left out.
func TestOptionalSets(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(fetch.EnvData, folder)
	if m, err := officialFiles.svhn(context.Background(), false); m != nil || err != nil {
		t.Errorf("SVHN that is not there: %v, %v", m, err)
	}
	if m, err := officialFiles.excerpt(context.Background()); m != nil || err != nil {
		t.Errorf("an excerpt that is not there: %v, %v", m, err)
	}
	must.Do(t, os.Mkdir(filepath.Join(folder, "svhn"), 0o755))
	for _, name := range []string{"test_32x32.mat", "svhn/train_first1083_32x32.mat"} {
		must.Do(t, os.WriteFile(filepath.Join(folder, name), []byte("damaged"), 0o600))
	}
	fails(t, "a damaged SVHN", errorOf(officialFiles.svhn(context.Background(), false)), "test_32x32.mat")
	fails(t, "a damaged excerpt", errorOf(officialFiles.excerpt(context.Background())), "train_first1083_32x32.mat")
}
