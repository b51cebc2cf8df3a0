package cifar

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

// madeUpGrid are lines of the whole grid in which the value at place best has the lowest NLL.
func madeUpGrid(best int) []results.Result {
	var lines []results.Result
	for _, n := range searches {
		for i, value := range n.values {
			nll := 1.5
			if i == best {
				nll = 1.25
			}
			measured := func(results.Experiment) map[string]float64 {
				return map[string]float64{results.MetricAccuracy: 0.5, results.MetricECE: 0.02, results.MetricNLL: nll}
			}
			lines = append(lines, linesOf(measured, []results.Experiment{n.candidate(value)})...)
		}
	}
	return lines
}

// The committed choice is that of the committed runs.
func TestChosenOptions(t *testing.T) {
	lines := must.Get(results.Committed())(t)
	file, missing, err := ChosenOptions(lines)
	if err != nil || !bytes.Equal(file, chosenText) {
		t.Errorf("figures/cifar/chosen.csv is\n%s, but the committed runs choose\n%s, without %v (error %v); write it with \"reproduce choose images figures/cifar/chosen.csv\"",
			chosenText, file, missing, err)
	}
	if c := committedChoice(); len(c)+len(missing) != len(searches) {
		t.Errorf("%d methods are chosen for and %d missing, of %d", len(c), len(missing), len(searches))
	}
}

func TestChoiceOfNoise(t *testing.T) {
	lines := madeUpGrid(2)
	file, missing, err := ChosenOptions(lines)
	if err != nil || len(missing) > 0 {
		t.Fatalf("missing %v, error %v", missing, err)
	}
	c := must.Get(decodeChosen(bytes.NewReader(file)))(t)
	for _, n := range searches {
		if c[n.method.Name] != n.values[2] {
			t.Errorf("%s: chosen %q, want %q", n.method.Name, c[n.method.Name], n.values[2])
		}
	}

	equal := slices.Clone(lines)
	equal[1].Metrics = equal[2].Metrics // the first method's second value is as good as its third
	if file, _, err := ChosenOptions(equal); err != nil || !strings.Contains(string(file), "density,init_std,0.003,") {
		t.Errorf("of equals it does not choose the smaller: %s, %v", file, err)
	}
	diverged := slices.Clone(lines)
	diverged[2].Diverged, diverged[2].Metrics = true, nil
	if file, missing, err := ChosenOptions(diverged); err != nil || len(missing) > 0 || !strings.Contains(string(file), "density,init_std,0.001,") {
		t.Errorf("with a run that diverged: %s, missing %v, %v", file, missing, err)
	}
	for i := range 4 {
		diverged[i].Diverged = true
	}
	if _, _, err := ChosenOptions(diverged); err == nil || !strings.Contains(err.Error(), "all runs of density") {
		t.Errorf("with all diverged: %v", err)
	}
	without := slices.Clone(lines)
	without[0].Metrics = nil
	if _, _, err := ChosenOptions(without); err == nil || !strings.Contains(err.Error(), "no metric") {
		t.Errorf("without an NLL: %v", err)
	}
	if file, missing, err := ChosenOptions(lines[1:]); err != nil || !slices.Equal(missing, []string{"density"}) || strings.Contains(string(file), "density,") {
		t.Errorf("without one run: %s, missing %v, %v", file, missing, err)
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
		{"twice", begin + "density,init_std,0.001,1\ndensity,init_std,0.003,1\n", "two rows"},
		{"fields", begin + "density,init_std\n", "wrong number of fields"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := decodeChosen(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// With nothing chosen there are the methods without an option to choose, and the set says what it lacks. With all chosen
// each method has its value.
func TestProcessorSet(t *testing.T) {
	some := processorSet(nil)
	var names []string
	for _, e := range some.Experiments {
		names = append(names, e.Method)
	}
	if want := []string{"deterministic", "deterministic", "deterministic", "deterministic", "deterministic"}; !slices.Equal(names, want) ||
		!strings.Contains(some.Lacks, "density, density-constant, rank1, mfvi, mcdropout, vdropout, density-rank1mix, density-diagonal, sngp, due are not chosen") {
		t.Errorf("without a choice: %v, lacks %q", names, some.Lacks)
	}
	all := make(chosen)
	for _, n := range searches {
		all[n.method.Name] = n.values[3]
	}
	full := processorSet(all)
	if len(full.Experiments) != 19 || full.Lacks != "" {
		t.Fatalf("%d experiments, want 19, lacks %q", len(full.Experiments), full.Lacks)
	}
	hundred := processorSet100(all)
	if lacks := processorSet100(nil); len(lacks.Experiments) != 1 || !strings.HasPrefix(lacks.Lacks, "the options of density, density-constant, rank1 are not chosen") || len(hundred.Experiments) != 4 || hundred.Lacks != "" {
		t.Fatalf("on CIFAR-100 there are %d experiments, want 4, and 1 without a choice: %d", len(hundred.Experiments), len(lacks.Experiments))
	}
	weights := 0
	for _, e := range slices.Concat(full.Experiments, hundred.Experiments) {
		if n, has := searchOf(e.Method); has && e.Options[n.option] != n.values[3] {
			t.Errorf("%v has not the value %s", e, n.values[3])
		}
		if e.Scale != results.Processor || e.Epochs != 10 || e.HeldOut != 5000 || e.TrainN != 0 || e.TestN != 0 || (e.Dataset == CIFAR100) != slices.ContainsFunc(hundred.Experiments, func(h results.Experiment) bool { return h.ID() == e.ID() }) {
			t.Errorf("%+v", e)
		}
		if e.Options["decay"] != string(methods.DecayAll) {
			weights++
		}
		p, err := ProtocolOf(e)
		m, _ := methods.All().Named(e.Method)
		if err != nil || p.Check(m) != nil || e.Validate() != nil || p.Experiments(m)[0].ID() != e.ID() {
			t.Errorf("%v cannot be run: %v, %v, %v", e, err, p.Check(m), e.Validate())
		}
	}
	if weights != 1 {
		t.Errorf("%d experiments with decay on weights alone, want 1", weights)
	}
}

func TestProcessorTables(t *testing.T) {
	grid := tableOf(t, "cifar-processor-grid", madeUpGrid(1))
	if len(grid.Rows) != 40 {
		t.Fatalf("%d rows, want 40", len(grid.Rows))
	}
	for _, c := range []struct{ row, nll string }{
		{"Density Uncertainty decay=all init_std=0.003", "*1.2500*"}, {"Density Uncertainty decay=all init_std=0.01", "1.5000"},
		{"MC Dropout decay=all dropout_rate=0.1", "*1.2500*"},
	} {
		if got := figtest.Cell(t, grid, c.row, "NLL"); got != c.nll {
			t.Errorf("%s: %s, want %s", c.row, got, c.nll)
		}
	}

	p := Paper(CIFAR10, ResNet14).Processor()
	density := searches[0].with(p, "0.01")
	weights := density
	weights.Decay = methods.DecayWeights
	lines := linesOf(func(e results.Experiment) map[string]float64 {
		return map[string]float64{results.MetricAccuracy: 0.8, results.MetricNLL: 0.6, results.MetricECE: 0.02, "brier": 0.3, "aurc": 0.06,
			"ood_cifar100_auroc": 0.7, "ood_cifar100_auroc_energy": 0.75, results.MetricPosteriorStd: 0.02, results.MetricSecondsPerEpoch: 80}
	}, density.Experiments(methods.Density), weights.Experiments(methods.Density))
	scaled := linesOf(func(e results.Experiment) map[string]float64 {
		return map[string]float64{results.MetricAccuracy: 0.81, results.MetricNLL: 0.7, results.MetricNLL + "_scaled": 0.65, results.MetricAccuracy + "_scaled": 0.81}
	}, p.Experiments(methods.Deterministic))
	table := tableOf(t, "cifar-processor", slices.Concat(lines, scaled))
	var got [][]string
	for _, row := range table.Rows {
		got = append(got, texts(row)[1:6])
	}
	want := [][]string{
		{"Deterministic", "–", "1", "81.00", "0.7000"}, {"Deterministic, temperature scaled", "–", "1", "81.00", "0.6500"},
		{"Density Uncertainty", "init_std = 0.01", "1", "80.00", "0.6000"}, {"Density Uncertainty, decay on weights alone", "init_std = 0.01", "1", "80.00", "0.6000"},
	}
	if !slices.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("rows %q\nwant %q", got, want)
	}
	if got := texts(table.Rows[2])[9:12]; !slices.Equal(got, []string{"0.700", "0.750", "0.02"}) {
		t.Errorf("detection and posterior: %q", got)
	}
}
