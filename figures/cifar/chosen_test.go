package cifar

import (
	"slices"
	"strings"
	"testing"

	"densityuncertainty/dul"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

// madeUpGrid are results of the whole search in which the value at place best has the lowest NLL.
func madeUpGrid(best int) []experiment.Result {
	var found []experiment.Result
	for _, s := range searches {
		for i, e := range s.candidates() {
			nll := 1.5
			if i == best {
				nll = 1.25
			}
			found = append(found, resultsOf(func(experiment.Experiment) map[string]float64 {
				return map[string]float64{results.MetricAccuracy: 0.5, results.MetricECE: 0.02, results.MetricNLL: nll}
			}, experiment.Experiments{e})...)
		}
	}
	return found
}

// The committed choice is that of the committed results; with -update it becomes so.
func TestCommittedChoice(t *testing.T) {
	file, missing := must.Get2(Choose(must.Get(committed())(t)))(t)
	figtest.GoldenText(t, "chosen.csv", string(file))
	if c := must.Get(chosen())(t); len(c)+len(missing) != len(searches) {
		t.Errorf("%d methods are chosen for and %d missing, of %d", len(c), len(missing), len(searches))
	}
}

func TestChoose(t *testing.T) {
	grid := madeUpGrid(2)
	file, missing, err := Choose(index(grid...))
	if err != nil || len(missing) > 0 {
		t.Fatalf("missing %v, error %v", missing, err)
	}
	c := must.Get(decodeChoice(file))(t)
	for _, s := range searches {
		if got := c[methods.NameOf(s.method)]; got != s.values[2] {
			t.Errorf("%s: chosen %v, want %v", s.method.Name, got, s.values[2])
		}
	}
	for _, test := range []struct {
		name       string
		change     func(all []experiment.Result) []experiment.Result
		want, lost string // in the file, in the error
		missing    []string
	}{
		{"of equals the smaller", func(all []experiment.Result) []experiment.Result { all[1].Metrics = all[2].Metrics; return all }, "density,init_std,0.003,", "", nil},
		{"one diverged", func(all []experiment.Result) []experiment.Result {
			all[2].Diverged, all[2].Metrics = true, nil
			return all
		}, "density,init_std,0.001,", "", nil},
		{"all diverged", func(all []experiment.Result) []experiment.Result {
			for i := range 4 {
				all[i].Diverged = true
			}
			return all
		}, "", "all runs of density ", nil},
		{"without an NLL", func(all []experiment.Result) []experiment.Result { all[0].Metrics = nil; return all }, "", "no metric", nil},
		{"without one run", func(all []experiment.Result) []experiment.Result { return all[1:] }, "rank1,", "", []string{"density"}},
	} {
		file, missing, err := Choose(index(test.change(slices.Clone(grid))...))
		if test.lost != "" {
			fails(t, test.name, err, test.lost)
		} else if err != nil || !slices.Equal(missing, test.missing) || !strings.Contains(string(file), test.want) {
			t.Errorf("%s: %s, missing %v, %v", test.name, file, missing, err)
		}
	}
}

func TestWrongChoices(t *testing.T) {
	const begin = "method,option,value,held_out_nll\n"
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "does not begin with"},
		{"columns", "method,value\n", "does not begin with"},
		{"method", begin + "due,init_std,0.001,1\n", "not among the choices"},
		{"option", begin + "density,alpha,0.001,1\n", "not among the choices"},
		{"value", begin + "density,init_std,0.5,1\n", "not among the choices"},
		{"number", begin + "density,init_std,x,1\n", "not among the choices"},
		{"twice", begin + "density,init_std,0.001,1\ndensity,init_std,0.003,1\n", "two rows"},
		{"fields", begin + "density,init_std\n", "wrong number of fields"},
	} {
		_, err := decodeChoice([]byte(c.text))
		fails(t, c.name, err, c.want)
	}
}

// Without a choice there are the methods without an option to choose, and the set says what it lacks. With a choice each
// method has its value.
func TestProcessorSet(t *testing.T) {
	for _, e := range processorExperiments(nil) {
		if e.Method.Name != methods.Deterministic.Name {
			t.Errorf("without a choice there is %v", e)
		}
	}
	if got := choice(nil).lacking(allMethods()...); !strings.Contains(got, "density, density-constant, rank1, mfvi, mcdropout, vdropout, density-rank1mix, density-diagonal, sngp, due are not chosen") {
		t.Errorf("without a choice the set says %q", got)
	}
	all := choice{}
	for _, s := range searches {
		all[methods.NameOf(s.method)] = s.values[3]
	}
	full, weights := processorExperiments(all), 0
	for _, e := range full {
		if err := e.Check(); err != nil || e.Recipe.Epochs != 10 || e.Task.Data.(Images).HeldOut != 5000 {
			t.Errorf("%v: %v", e, err)
		}
		if l, is := e.Method.Layers.(dul.Density); is && l.InitStd != 0.03 {
			t.Errorf("%v starts with %g, want 0.03", e, l.InitStd)
		}
		if strings.HasSuffix(e.Preset, "changed") {
			weights++
		}
	}
	if len(full) != 19 || weights != 1 || all.lacking(allMethods()...) != "" {
		t.Errorf("%d experiments, want 19, %d of them with weight decay on weights alone, want 1", len(full), weights)
	}
}

// The runs of a comparison are in rows by their methods and variants, with the option that was chosen.
func TestComparisonTable(t *testing.T) {
	found := resultsOf(func(experiment.Experiment) map[string]float64 {
		return map[string]float64{results.MetricAccuracy: 0.8, results.MetricNLL: 0.6, results.MetricECE: 0.02, "brier": 0.3, "aurc": 0.06, results.MetricPosteriorStd: 0.02}
	}, list(Chosen(Processor), ten, 1, methods.Density), list(Chosen(onProcessor.withDecay(false)), ten, 1, methods.Density))
	found = append(found, resultsOf(func(experiment.Experiment) map[string]float64 {
		return map[string]float64{results.MetricAccuracy: 0.81, results.MetricNLL: 0.7, results.MetricECE: 0.03, "brier": 0.25, "aurc": 0.07}
	}, list(Processor, ten, 1, methods.Deterministic))...)
	same(t, lines(tableOf(t, "cifar-processor", found...)), []string{
		"CIFAR-10 | Deterministic | 1 | *81.00* | 0.7000 | 0.0300 | 0.2500 | 0.0700 | – | –",
		"CIFAR-10 | Density Uncertainty | 1 | 80.00 | *0.6000* | *0.0200* | 0.3000 | 0.0600 | 0.02 | init_std = 0.001",
		"CIFAR-10 | Density Uncertainty, decay on weights alone | 1 | 80.00 | 0.6000 | 0.0200 | 0.3000 | 0.0600 | 0.02 | init_std = 0.001",
	})
}
