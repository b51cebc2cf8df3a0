package main

import (
	"strings"
	"testing"

	"densityuncertainty/figures/cifar"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/spec"
	"densityuncertainty/figures/uci"
)

// The help of a command fits on a screen.
func TestHelp(t *testing.T) {
	for _, line := range []string{"--help", "list --help", "run -h", "run few --help", "again --help", "table --help", "figure --help"} {
		help := ends(t, exitOK, "Usage: reproduce", "", strings.Fields(line)...)
		if n := strings.Count(help, "\n"); n > 40 {
			t.Errorf("%s: %d lines", line, n)
		}
	}
}

func TestWrongUsage(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"", `expected one of "list", "run"`},
		{"rnu few", `unexpected argument rnu, did you mean "run"?`},
		{"run", `expected "<set>"`},
		{"run fwe", `unknown set "fwe", want few, slow or all`},
		{"run few slow", "unexpected argument slow"},
		{"run few --sotre a", "unknown flag --sotre, did you mean"},
		{"run few --store a --store b", "--store is given twice"},
		{"run few --store=", "--store: the name is empty"},
		{"list --store=", "--store: the name is empty"},
		{"run few --methods denisty", `--methods: few has no experiments of "denisty"; with the other flags there are density, mcdropout`},
		{"run few --datasets yacht,bostn", `--datasets: few has no experiments of "bostn"; with the other flags there are yacht, boston`},
		{"run few --splits 0,2", `--splits: few has no experiments of "2"; with the other flags there are 0, 1`},
		{"run few --set Recipe.Epochs", `--set: "Recipe.Epochs" is not PATH=VALUE`},
		{"run few --set Recipe.Epochs=1 --set Recipe.Epochs=2", "the path is given twice"},
		{"run few --set Recipe.Epoch=1", `Recipe, of type experiment.Recipe, has no field "Epoch" that can be set; it has Epochs, BatchSize`},
		{"run few --set Recipe.Groups.Rate=2", `Groups has no entry "Rate"; it is a list of 3, numbered from 0`},
		{"run few --set Recipe.Epochs=0", "--set Recipe.Epochs=0: experiment: Density Uncertainty on yacht"},
		{"run few --set Method.Layers.InitStd=0.05", `MC Dropout on yacht, split 0, seed 0 (uci.Paper): Layers, of type baselines.MCDropout, has no field "InitStd"`},
		{"list few", "unexpected argument few"},
		{"table nl", `unknown table "nl", want nll, same or all`},
		{"table nll --format docx", `--format: unknown "docx", want md, latex, csv`},
		{"table nll --out a.txt", "--out: a.txt has the ending .txt"},
		{"table nll --out a.tex --format md", "--out: a.tex has the ending of the format latex, and --format is md"},
		{"figure curve --format gif", `--format: unknown "gif"`},
	} {
		t.Run(c.line, func(t *testing.T) { ends(t, exitUsage, "", c.want, strings.Fields(c.line)...) })
	}
	ends(t, exitFailure, "", "the store: stat none: no such file", "table", "nll", "--store", "none")
}

// cross are experiments of split 0.
func cross(t *testing.T, preset experiment.Preset, data experiment.Source, list ...experiment.Method) experiment.Experiments {
	t.Helper()
	all, err := experiment.Cross(preset, []experiment.Source{data}, list...)
	if err != nil {
		t.Fatal(err)
	}
	return all.OnSplits(0)
}

func TestChanged(t *testing.T) {
	yacht, images := uci.Data{Name: "yacht"}, cifar.Images{Name: cifar.CIFAR10}
	density, small := cross(t, uci.Paper, yacht, methods.Density), cross(t, cifar.Small, images, methods.Density)
	for _, c := range []struct {
		list       experiment.Experiments
		change     string
		is, failed string // the one difference, or the error
	}{
		{density, "Recipe.Epochs=3", "Recipe.Epochs 3", ""},
		{density, "Recipe.Epochs=100", "", ""}, // as it was
		{density, "Recipe.EarlyStopping=true", "Recipe.EarlyStopping true", ""},
		{density, "Recipe.Groups[1].Rate=0.5", "Recipe.Groups[1].Rate 0.5", ""},
		{density, "Recipe.Groups[1].Optimizer.Momentum=0", "Recipe.Groups[1].Optimizer.Momentum 0", ""},
		{density, "Method.Layers.InitStd=0.05", "Method.Layers.InitStd 0.05", ""},
		{density, "Method.Layers.Gradients=attached", `Method.Layers.Gradients "attached"`, ""},
		{density, "Method.Members=5", "Method.Members 5", ""},
		{density, "Task.Network.Widths=[50,60]", "Task.Network.Widths[1] 60", ""},
		{density, "Task.Network.Widths[0]=60", "Task.Network.Widths[0] 60", ""},
		{density, "Seed=7", "Seed 7", ""},
		{density, "Task.Data.Kind=random", `Task.Data.Kind "random"`, ""},
		{small, "Task.Data.TrainN=1000", "Task.Data.TrainN 1000", ""},
		{density, "Split=20", "", "Split is 20"},
		{density, "Recipe.Epochs=many", "", `Epochs cannot be "many"; it is of type int`},
		{density, "Recipe.Schedule.Start=NaN", "", `Start cannot be "NaN"`},
		{density, "Method.Layers.InitStd=1e-400", "", "InitStd cannot be 1e-400; a float64 so near 0 would be 0"},
		{density, "Method.Layers.InitStd=1e400", "", `InitStd cannot be "1e400"`},
		{density, "Recipe.Groups[1].Optimizer.Momentum=0.0E-400", "Recipe.Groups[1].Optimizer.Momentum 0", ""},
		{density, "Recipe.Groups[9].Rate=1", "", `Groups has no entry "9"; it is a list of `},
		{density, "Recipe.Schedule=1", "", "Schedule is of type train.Cosine; set one of its fields: Start"},
		{density, "Method.Layers.Gradients=none", "", `Gradients cannot be "none"; it can be paper, detached, attached`},
		{density, "Method.Process.Inducing=3", "", `Process, of type experiment.Process, has no field "Inducing"`},
		{density, "Task.Name=mine", "", `Task, of type experiment.Task, has no field "Name" that can be set; it has Data, Network, Likelihood`},
	} {
		t.Run(c.change, func(t *testing.T) {
			before := c.list[0].ID()
			got, err := changed(c.list, []string{c.change})
			if c.failed != "" || err != nil {
				if err == nil || c.failed == "" || !strings.Contains(err.Error(), c.failed) {
					t.Errorf("error %v, want %q", err, c.failed)
				}
				return
			}
			found, err := spec.Differences(got[0], c.list[0])
			if err != nil || len(found) > 1 || len(found) == 1 && found[0].Path+" "+found[0].Is != c.is || len(found) == 0 && c.is != "" || c.list[0].ID() != before {
				t.Errorf("%v, %v; want %s, and the experiment itself as it was", found, err, c.is)
			}
			if want := c.list[0].Preset + map[bool]string{true: changedMark}[c.is != ""]; got[0].Preset != want {
				t.Errorf("preset %q, want %q", got[0].Preset, want)
			}
		})
	}
}
