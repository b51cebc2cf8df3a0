package uci

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/dul/params"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

// What each experiment of the catalogue is for: the cells of the tables beside the paper's that change where its line is missing. The identities are
// pinned, since stored lines are found by them.
func TestCatalogue(t *testing.T) {
	all := results.Union(Sets()...)
	lines := made(all, func(e results.Experiment) map[string]float64 { // the paper's method is the best everywhere
		v := 2 + 0.1*float64(e.Split%3)
		if e.Method == "density" {
			v--
		}
		return map[string]float64{results.MetricNLL: v, results.MetricRMSE: v, results.MetricCoverage: v, results.MetricSpearman: v}
	})
	cells := func(lines []results.Result) map[string]string {
		texts := make(map[string]string)
		for _, named := range Tables() {
			if !slices.Contains([]string{"uci-nll", "uci-rmse", "uci-density", "uci-short", "uci-agreement", "uci-adam", "uci-released"}, named.Name) {
				continue // in the others a line is part of more cells than one would read
			}
			table := must.Get(named.Make(lines))(t)
			for n, row := range table.Rows {
				for i, c := range row.Cells {
					texts[fmt.Sprintf("%s/%d/%s/%s", table.Name, n, row.Name, table.Columns[i+1])] = strings.ReplaceAll(figtest.Text(c), "*", "") // whichever is bold then
				}
			}
		}
		return texts
	}
	whole := cells(lines)
	for _, c := range []struct {
		experiment, id string
		places         []string // table, row's name and column
	}{
		{"uci density on yacht gal split 3, 100 epochs, 10 samples, seed 3 (paper, full)", "5ff3ed776cbc35af", []string{
			"uci-nll, Yacht Hydrodynamics, Density Uncertainty", "uci-rmse, Yacht Hydrodynamics, Density Uncertainty",
			"uci-density, Yacht Hydrodynamics, NLL", "uci-density, Yacht Hydrodynamics, best NLL of ours",
			"uci-density, Yacht Hydrodynamics, RMSE", "uci-density, Yacht Hydrodynamics, best RMSE of ours",
			"uci-short, Yacht Hydrodynamics, NLL", "uci-short, Yacht Hydrodynamics, RMSE", "uci-short, Yacht Hydrodynamics, lowest NLL of ours", "uci-short, Yacht Hydrodynamics, lowest RMSE of ours",
			"uci-agreement, Density Uncertainty, Better", "uci-agreement, Density Uncertainty, Nothing to compare",
		}},
		{"uci mfvi on protein gal split 4, 100 epochs, 10 samples, seed 4 (paper, full)", "22c175cb8d93eb04", []string{
			"uci-nll, Protein Structure, MFVI", "uci-rmse, Protein Structure, MFVI",
			"uci-density, Protein Structure, best NLL of ours", "uci-density, Protein Structure, best RMSE of ours",
			"uci-short, Protein Structure, lowest NLL of ours", "uci-short, Protein Structure, lowest RMSE of ours",
		}},
		{"uci rank1 on year gal split 0, 100 epochs, 10 samples, seed 0 (paper, full)", "2dfd22f395eab70d", []string{
			"uci-nll, Year Prediction MSD, Rank-1 BNN", "uci-rmse, Year Prediction MSD, Rank-1 BNN",
			"uci-density, Year Prediction MSD, best NLL of ours", "uci-density, Year Prediction MSD, best RMSE of ours",
			"uci-short, Year Prediction MSD, lowest NLL of ours", "uci-short, Year Prediction MSD, lowest RMSE of ours",
		}},
		{"uci sngp on wine gal split 19, 100 epochs, 10 samples, seed 19 (paper, full)", "27129b34edd97674", []string{
			"uci-nll, Wine Quality Red, SNGP (not in the paper)", "uci-rmse, Wine Quality Red, SNGP (not in the paper)",
			"uci-adam, Wine Quality Red, NLL, SNGP", "uci-adam, Wine Quality Red, RMSE, SNGP",
		}},
		{"uci ensemble optimizer=adam on boston gal split 7, 100 epochs, 10 samples, seed 7 (paper, full)", "6baab99126aefb9f", []string{
			"uci-adam, Boston Housing, NLL, Deep Ensemble", "uci-adam, Boston Housing, RMSE, Deep Ensemble",
		}},
		{"uci rank1 on concrete random split 2, 100 epochs, 10 samples, seed 2 (released, full)", "bb83872c62a8314a", []string{
			"uci-released, Concrete Strength, NLL", "uci-released, Concrete Strength, RMSE",
			"uci-released, Concrete Strength, NLL, all splits", "uci-released, Concrete Strength, RMSE, all splits",
		}},
		// The authors' code was measured on the first 5 of 20 splits of concrete.
		{"uci rank1 on concrete random split 6, 100 epochs, 10 samples, seed 6 (released, full)", "b136da3c6bc7f622", []string{
			"uci-released, Concrete Strength, NLL, all splits", "uci-released, Concrete Strength, RMSE, all splits",
		}},
		// Quick runs are shown where there are no full ones.
		{"uci density on boston gal split 1, 20 epochs, 10 samples, seed 1 (paper, quick)", "c2b712aef06c172c", nil},
	} {
		t.Run(c.experiment, func(t *testing.T) {
			i := slices.IndexFunc(all, func(e results.Experiment) bool { return e.String() == c.experiment })
			if i < 0 {
				t.Fatal("it is not in the catalogue")
			}
			if got := all[i].ID(); got != c.id {
				t.Errorf("its identity is %s, want %s: stored lines would be lost", got, c.id)
			}
			part := cells(slices.Delete(slices.Clone(lines), i, i+1))
			var changed []string
			for place, text := range whole {
				if part[place] != text {
					p := strings.SplitN(place, "/", 4)
					changed = append(changed, p[0]+", "+p[2]+", "+p[3])
				}
			}
			slices.Sort(changed)
			slices.Sort(c.places)
			if changed = slices.Compact(changed); !slices.Equal(changed, c.places) {
				t.Errorf("it changes\n%s\nwant\n%s", strings.Join(changed, "\n"), strings.Join(c.places, "\n"))
			}
		})
	}
	seen := make(map[string]bool)
	for _, e := range all {
		if err := e.Validate(); err != nil {
			t.Errorf("%v: %v", e, err)
		}
		if _, _, err := ProtocolOf(e, methods.All()); err != nil {
			t.Errorf("it cannot be carried out: %v", err)
		}
		seen[e.ID()] = true
	}
	if len(seen) != len(all) || len(all) == 0 {
		t.Errorf("%d experiments with %d identities", len(all), len(seen))
	}
}

// Each set is one protocol at both scales.
func TestSets(t *testing.T) {
	for _, c := range []struct {
		name                 string
		methods, datasets    int
		full, quick          int // runs
		quickEpochs, quickOf int // epochs of a quick run, and its data sets
	}{
		{"uci", 5, 9, 5 * (8*20 + 5), 5 * 3 * 2, 20, 3},
		{"uci-year", 5, 1, 5, 0, 0, 0},
		{"uci-gp", 4, 6, 4 * 6 * 20, 4 * 3 * 2, 20, 3},
		{"uci-adam", 9, 6, 9 * 6 * 20, 9 * 3 * 2, 20, 3},
		{"uci-released", 4, 9, 4 * (8*20 + 5), 4 * 3 * 2, 20, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := set(t, c.name)
			names, data := make(map[string]bool), make(map[string]bool)
			for _, e := range s.At(results.Full) {
				names[e.Method], data[e.Dataset] = true, true
				if e.Epochs != 100 || e.Samples != 10 || e.Seed != uint64(e.Split) {
					t.Errorf("%v: %d epochs, %d samples", e, e.Epochs, e.Samples)
				}
			}
			small := make(map[string]bool)
			for _, e := range s.At(results.Quick) {
				small[e.Dataset] = true
				if e.Epochs != c.quickEpochs || e.Split > 1 {
					t.Errorf("%v: %d epochs", e, e.Epochs)
				}
			}
			if len(names) != c.methods || len(data) != c.datasets || len(s.At(results.Full)) != c.full || len(s.At(results.Quick)) != c.quick || len(small) != c.quickOf || s.Doc == "" {
				t.Errorf("methods %v, data sets %v, quick ones %v, %d full and %d quick runs", names, data, small, len(s.At(results.Full)), len(s.At(results.Quick)))
			}
		})
	}
}

// A table can be made of the set of its name alone, with nothing else in the store.
func TestSetsHaveTheirTables(t *testing.T) {
	for _, named := range Tables() {
		i := slices.IndexFunc(Sets(), func(s results.Set) bool { return s.Name == named.Name })
		if i < 0 {
			continue
		}
		t.Run(named.Name, func(t *testing.T) {
			table := must.Get(named.Make(made(Sets()[i].Experiments, func(results.Experiment) map[string]float64 {
				return map[string]float64{results.MetricNLL: 1, results.MetricRMSE: 1, results.MetricCoverage: 1, results.MetricSpearman: 1}
			})))(t)
			for _, row := range table.Rows {
				for k, c := range row.Cells {
					text := figtest.Text(c)
					for _, lacks := range []string{"not run", "quick", " of "} { // all, full ones, some
						if strings.Contains(text, lacks) {
							t.Errorf("%s: %s", place(row.Name, table.Columns[k+1]), text)
						}
					}
				}
			}
		})
	}
}

// The settings that the text and the code leave to the data set, the method or this project.
func TestProtocolOf(t *testing.T) {
	for _, c := range []struct {
		p       Protocol
		dataset string
		m       methods.Method
		want    string
	}{
		{Paper(), "yacht", methods.Density, "2 layers of 50, start 0.1, sgd 0.01, batches of 128, decay 0.0001 of weights, energies own, 10 epochs before 100"},
		{Paper(), "protein", methods.Density, "2 layers of 100, start 0.1, sgd 0.01, batches of 128, decay 0.0001 of weights, energies own, 10 epochs before 100"},
		{Paper(), Year, methods.Rank1, "2 layers of 100, start 0.1, sgd 0.01, batches of 128, decay 0.0001 of weights, energies own, 10 epochs before 100"},
		{Paper(), "boston", methods.MFVI, "2 layers of 50, start 0.1, sgd 0.01, batches of 128, decay 0.0001 of weights, energies own, 10 epochs before 100"},
		{Paper(), "boston", methods.SNGP, "2 layers of 50, start 0.1, adam 0.01, batches of 128, decay 0.0001 of weights, energies own, 10 epochs before 100"},
		{Paper(), "wine", methods.DUE, "2 layers of 50, start 0.1, adam 0.01, batches of 128, decay 0.0001 of weights, energies own, 10 epochs before 100"},
		{withAdam(), "boston", methods.Density, "2 layers of 50, start 0.1, adam 0.01, batches of 128, decay 0.0001 of weights, energies own, 10 epochs before 100"},
		{Paper().Quick(), "boston", methods.Density, "2 layers of 50, start 0.1, sgd 0.01, batches of 128, decay 0.0001 of weights, energies own, 10 epochs before 20"},
		{Released(), "yacht", methods.Density, "3 layers of 50, start 0.1, sgd 0.01, batches of 128, decay 0.0001 of all, energies joint, 10 epochs before 100"},
		{Released(), "protein", methods.Rank1, "3 layers of 50, start 0.1, sgd 0.01, batches of 128, decay 0.0001 of all, energies joint, 10 epochs before 100"},
		{Released(), "yacht", methods.MFVI, "3 layers of 50, start 0.1, sgd 0.01, batches of 128, decay 0.0001 of all, energies joint, 10 epochs before 100"},
	} {
		t.Run(c.p.Fidelity+" "+c.p.Scale+" "+c.dataset+" "+c.m.Name, func(t *testing.T) {
			p, m := must.Get2(ProtocolOf(c.p.On(c.dataset).Experiments(c.m)[0], methods.All()))(t)
			got := fmt.Sprintf("%d layers of %d, start %g, %s %g, batches of %d, decay %g of %s, energies %s, %d epochs before %d",
				p.HiddenLayers, p.Width, p.InitStd, p.Optimizer, p.LearningRate, p.BatchSize, p.WeightDecay, p.Decay, p.EnergyOptimizer, p.PretrainEpochs, p.Epochs)
			if got != c.want || m.Name != c.m.Name {
				t.Errorf("%s\n got %s\nwant %s", m.Name, got, c.want)
			}
		})
	}
}

// Every option changes what some method's network or training is.
func TestEveryOptionCounts(t *testing.T) {
	built := func(t *testing.T, p Protocol) string {
		var all strings.Builder
		for _, m := range methods.All() {
			p, m := must.Get2(ProtocolOf(p.On("yacht").Experiments(m)[0], methods.All()))(t)
			run := p.trainer(m)
			s := must.Get(load(t.Context(), p.Experiments(m)[0], p.EarlyStopping))(t)
			fmt.Fprintf(&all, "%d %#v %v %v %v %v %v %v\n", s.train.Len(), m.Network(p.Options, p.Width, p.HiddenLayers), run.LogLikelihoodScale, run.Epochs, run.BatchSize, run.PretrainEpochs, run.Groups, p.LearningRate)
		}
		return all.String()
	}
	other := map[string]string{"noise": "uniform01", "init_std": "0.2", "prior_std": "2", "clip": "true", "mean_energy": "true", "gradients": "detached", "variance": "half-d",
		"mixture_factors": "zeros", "mixture_fraction": "0.2", "dropout_rate": "0.3", "alpha": "0.4", "adaptive_alpha": "true", "optimizer": "adam",
		"learning_rate": "0.3", "batch_size": "7", "weight_decay": "0.5", "hidden_layers": "1", "width": "7", "energy_optimizer": "joint", "decay": "all", "pretrain_epochs": "0", "early_stopping": "true"}
	usual := built(t, Paper())
	for _, f := range methods.Fields(Paper(), results.UCI) {
		t.Run(f.Name, func(t *testing.T) {
			p := Paper()
			must.Do(t, methods.SetFor(results.UCI, &p, map[string]string{f.Name: other[f.Name]}))
			if built(t, p) == usual {
				t.Errorf("%s=%s changes nothing", f.Name, other[f.Name])
			}
		})
	}
}

// Weight decay reaches variational parameters only in the released protocol, and the energy models have an
// optimizer of their own only in the paper's. Adam is for weights and variational parameters alone.
func TestParameterGroups(t *testing.T) {
	sgd := func(decay float64) train.Optimizer { return train.SGD{Momentum: 0.9, Decay: decay} }
	adam := func(decay float64) train.Optimizer { return train.Adam{Decay: decay} }
	optimizers := func(weight, variational, likelihood, generative train.Optimizer) map[params.Role]train.Optimizer {
		return map[params.Role]train.Optimizer{params.Weight: weight, params.Variational: variational, params.Likelihood: likelihood, params.Generative: generative}
	}
	with := func(p Protocol, change func(*Protocol)) Protocol { change(&p); return p }
	toAdam := func(p *Protocol) { p.Optimizer = methods.Adam }
	for _, c := range []struct {
		name       string
		p          Protocol
		want       map[params.Role]train.Optimizer
		likelihood float64
	}{
		{"paper", Paper(), optimizers(sgd(1e-4), sgd(0), sgd(0), adam(1e-5)), 1},
		{"paper, adam", with(Paper(), toAdam), optimizers(adam(1e-4), adam(0), sgd(0), adam(1e-5)), 1},
		{"paper, decay of all", with(Paper(), func(p *Protocol) { p.Decay = methods.DecayAll }), optimizers(sgd(1e-4), sgd(1e-4), sgd(1e-4), adam(1e-5)), 1},
		{"paper, joint", with(Paper(), func(p *Protocol) { p.EnergyOptimizer = methods.JointOptimizer }), optimizers(sgd(1e-4), sgd(0), sgd(0), sgd(1e-4)), 0.01},
		{"paper, more decay", with(Paper(), func(p *Protocol) { p.WeightDecay = 0.5 }), optimizers(sgd(0.5), sgd(0), sgd(0), adam(1e-5)), 1},
		{"released", Released(), optimizers(sgd(1e-4), sgd(1e-4), sgd(1e-4), sgd(1e-4)), 0.01},
		{"released, adam", with(Released(), toAdam), optimizers(adam(1e-4), adam(1e-4), sgd(1e-4), sgd(1e-4)), 0.01},
		{"released, decay of weights", with(Released(), func(p *Protocol) { p.Decay = methods.DecayWeights }), optimizers(sgd(1e-4), sgd(0), sgd(0), sgd(1e-4)), 0.01},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, m := must.Get2(ProtocolOf(c.p.On("yacht").Experiments(methods.Density)[0], methods.All()))(t)
			run := p.trainer(m)
			got := make(map[params.Role]train.Optimizer)
			for _, g := range run.Groups {
				for _, role := range g.Roles {
					if _, taken := got[role]; !taken { // a parameter belongs to the first group that has it
						got[role] = g.Optimizer
					}
				}
			}
			if !maps.Equal(got, c.want) || run.LogLikelihoodScale != c.likelihood {
				t.Errorf("got %v, generative objective times %v; want %v, %v", got, run.LogLikelihoodScale, c.want, c.likelihood)
			}
			// Before, the energy models are trained alone.
			if g := run.PretrainGroups; len(g) != 1 || !slices.Equal(g[0].Roles, []params.Role{params.Generative}) || g[0].Optimizer != c.want[params.Generative] {
				t.Errorf("generative pretraining has the groups %v", g)
			}
		})
	}
}

// Methods with energy models are trained generatively first, one's own too, and the others are not.
func TestPretraining(t *testing.T) {
	list := append(methods.All(), methods.New("own", methods.Density.Layers(methods.PaperOptions())))
	for _, m := range list {
		t.Run(m.Name, func(t *testing.T) {
			p, m := must.Get2(ProtocolOf(Paper().On("yacht").Experiments(m)[0], list))(t)
			want := map[string]int{"density": 10, "density-rank1mix": 10, "density-diagonal": 10, "own": 10}[m.Name]
			if got := p.trainer(m).PretrainEpochs; got != want {
				t.Errorf("%d epochs of generative pretraining, want %d", got, want)
			}
		})
	}
}
