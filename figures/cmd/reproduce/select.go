package main

import (
	"slices"
	"strconv"
	"strings"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/tables"
)

// A selection says which experiments a command is about.
type selection struct {
	Name     string   `arg:"" help:"The table or figure whose runs are meant, or all. \"reproduce list\" shows them."`
	Methods  []string `sep:"none" placeholder:"NAMES" help:"Only these methods, separated by commas."`
	Datasets []string `sep:"none" placeholder:"NAMES" help:"Only these data sets, separated by commas."`
	Splits   []string `sep:"none" placeholder:"NUMBERS" help:"Only these splits, such as 0,3,7."`
	Seeds    []string `sep:"none" placeholder:"NUMBERS" help:"Only these seeds."`
}

// experiments are the selected ones, each once. It is an error if one of the names or numbers selects nothing.
func (s selection) experiments(c command) (experiment.Experiments, error) {
	exhibits, err := selected("table or figure", c.exhibits, slices.Clone, s.Name)
	if err != nil {
		return nil, err
	}
	var list experiment.Experiments
	for _, e := range exhibits {
		list = append(list, e.Runs()...)
	}
	for _, by := range []struct {
		flag   string
		wanted []string
		of     func(experiment.Experiment) string
	}{
		{"methods", s.Methods, func(e experiment.Experiment) string { return e.Method.ID() }},
		{"datasets", s.Datasets, datasetOf},
		{"splits", s.Splits, func(e experiment.Experiment) string { return strconv.Itoa(e.Split) }},
		{"seeds", s.Seeds, func(e experiment.Experiment) string { return strconv.FormatUint(e.Seed, 10) }},
	} {
		if len(by.wanted) == 0 {
			continue
		}
		wanted := strings.Split(strings.Join(by.wanted, ","), ",")
		if slices.Contains(wanted, "") {
			return nil, usagef("--%s is empty, as a variable of a shell that is not set, or has two commas in a row or one at an end: %q", by.flag, strings.Join(by.wanted, ","))
		}
		var there []string
		list = slices.DeleteFunc(list, func(e experiment.Experiment) bool {
			value := by.of(e)
			if !slices.Contains(there, value) {
				there = append(there, value)
			}
			return !slices.Contains(wanted, value)
		})
		for _, value := range wanted {
			if !slices.Contains(there, value) {
				return nil, usagef("--%s: %s has no experiments of %q; with the other flags there are %s", by.flag, s.Name, value, strings.Join(there, ", "))
			}
		}
	}
	return tables.Union(list), nil
}

// datasetOf is the name of the data set of an experiment: the name of its task without what follows a comma, such as the
// kind of splits.
func datasetOf(e experiment.Experiment) string {
	name, _, _ := strings.Cut(e.Task.Name, ",")
	return strings.ReplaceAll(name, " ", "-")
}

// selected returns what choose makes of the exhibit or part that is asked for, or of the whole list. kind says what that is.
func selected(kind string, list tables.Exhibits, choose func(tables.Exhibits) tables.Exhibits, asked string) (tables.Exhibits, error) {
	found := list
	if asked != "all" {
		one, _ := list.Named(asked)
		found = tables.Exhibits{one}
	}
	if found = choose(found); len(found) > 0 && found[0].Name != "" {
		return found, nil
	}
	var names []string
	for _, one := range choose(list) {
		names = append(names, one.Name)
	}
	return nil, usagef("unknown %s %q, want %s or all", kind, asked, strings.Join(names, ", "))
}
