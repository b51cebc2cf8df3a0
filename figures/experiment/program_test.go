package experiment_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/spec"
)

// said is a Program that has its numbers already, or fails.
type said struct {
	Parts int
	Fails string
}

func (s said) Check(experiment.Experiment) error { return nil }

func (s said) Run(_ context.Context, e experiment.Experiment, d experiment.Data, progress func(float64, string)) (*experiment.Predictions, error) {
	if s.Fails == "says nothing" {
		return nil, nil
	}
	progress(0.5, "half of it")
	numbers := map[string]float64{"part": 1 / float64(s.Parts), "seed": float64(e.Seed), "examples": float64(d.Train.Len())}
	return &experiment.Predictions{Metrics: numbers}, map[string]error{"diverges": train.ErrDiverged, "is infinite": metrics.ErrValue, "gives up": errors.New("it gave up")}[s.Fails]
}

// deciding are experiments by a Program, one for each split.
func deciding(d experiment.Program) experiment.Experiments {
	e := small(baselines.Deterministic{})
	e.Method.Program, e.Task.Metrics = d, nil
	return allSplits(e)
}

// The numbers of a Program are the results, and a store keeps them. Another Program is another experiment.
func TestProgram(t *testing.T) {
	list := deciding(said{Parts: 4})
	e := experiment.Engine{Store: &experiment.Store{Folder: t.TempDir()}}
	first := must.Get(e.Run(context.Background(), list...))(t)
	for i, r := range first {
		if len(r.Metrics) != 3 || r.Metrics["part"] != 0.25 || r.Metrics["seed"] != float64(list[i].Seed) || r.Metrics["examples"] < 20 {
			t.Errorf("the numbers are %v", r.Metrics)
		}
	}
	again := must.Get(e.Run(context.Background(), list...))(t)
	if d := again[0].Difference(first[0]); d != "" || !again[0].Finished.Equal(first[0].Finished) {
		t.Errorf("the stored result is another: %s", d)
	}
	if deciding(said{Parts: 2})[0].Group() == list[0].Group() {
		t.Error("another Program has the same identity")
	}
}

// What diverges is noted, and what else fails is an error that names it.
func TestProgramFails(t *testing.T) {
	for _, fails := range []string{"diverges", "is infinite"} {
		if r := must.Get(experiment.Run(context.Background(), deciding(said{1, fails})...))(t)[0]; !r.Diverged || len(r.Metrics) > 0 {
			t.Errorf("a program that %s has the numbers %v", fails, r.Metrics)
		}
	}
	measured := deciding(said{Parts: 1})[0]
	measured.Task.Metrics = []experiment.Metric{experiment.Regression}
	for says, e := range map[string]experiment.Experiment{
		"it gave up":                       deciding(said{1, "gives up"})[0],
		"neither Predictions nor an error": deciding(said{1, "says nothing"})[0],
		"none of the 0 sets":               measured,
		"nil *said pointer":                deciding((*said)(nil))[0],
	} {
		must.GetErr(experiment.Run(context.Background(), e))(t, says)
	}
	must.GetErr((experiment.Engine{Networks: t.TempDir()}).Run(context.Background(), deciding(said{Parts: 1})...))(t, "cannot be kept: a experiment_test.said trains the networks")
}

// fits is a Program that predicts as the engine does, unless it stops before.
type fits struct {
	stops func() bool
	heard *[]string
}

func (fits) Identity() spec.Identity { return spec.Identity{} }

func (fits) Check(experiment.Experiment) error { return nil }

func (f fits) Run(ctx context.Context, e experiment.Experiment, d experiment.Data, _ func(float64, string)) (*experiment.Predictions, error) {
	*f.heard = nil
	hear := func(_ float64, note string) {
		*f.heard = append(*f.heard, note)
		if _, err := experiment.FitOne(ctx, e, d, nil, nil); strings.Contains(note, "training") && (err == nil || !strings.Contains(err.Error(), "one after the other")) {
			panic("two trainings of a Program at once")
		}
	}
	if f.stops() {
		_, err := experiment.FitOne(ctx, e, d, hear, nil)
		return nil, errors.Join(err, errors.New("it stops"))
	}
	sets, err := experiment.PredictOne(ctx, e, d, hear)
	return &experiment.Predictions{Sets: sets}, err
}

// A Program's networks are those of the engine. After a stop, those that were trained are not trained again.
func TestFitOne(t *testing.T) {
	e := adapted(t, dul.Density{InitStd: 0.1})
	e.Method.Members = 2
	want := setOf(t, must.Get(experiment.Run(t.Context(), e))(t)[0], "test").Mean
	stops, heard := true, []string(nil)
	e.Method.Program = fits{func() bool { return stops }, &heard}
	engine := experiment.Engine{Store: &experiment.Store{Folder: t.TempDir()}}
	for _, stops = range []bool{true, false} {
		found, err := engine.Run(t.Context(), e)
		if trained := strings.Contains(strings.Join(heard, " "), "training"); trained != stops || (err == nil) == stops {
			t.Fatalf("stops %t: trained %t: %v", stops, trained, err)
		}
		if err == nil && !reflect.DeepEqual(setOf(t, found[0], "test").Mean, want) {
			t.Error("the networks are not the engine's")
		}
	}
	e.Recipe.Samples = 0
	must.GetErr(experiment.FitOne(t.Context(), e, experiment.Data{}, nil, nil))(t, "with the Data that an Engine gave it")
}
