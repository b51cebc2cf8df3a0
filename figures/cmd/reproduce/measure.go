package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/results"
)

type measureCommand struct {
	selection
	Metrics []string `placeholder:"NAMES" help:"Compare these metrics alone, separated by commas (default: all)."`
	storeFlag
}

// Help implements kong.HelpProvider.
func (measureCommand) Help() string {
	return "Trains nothing. It says how many results have the metrics that their predictions give now, lists those that have not, and counts those without predictions. " +
		"Its exit status is 1 if a result differs."
}

// Run compares stored metrics with those that kept predictions give.
func (m measureCommand) Run(c command) error {
	list, index, err := stored(c, m.selection, m.storeFlag)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(e experiment.Experiment) bool { line, _ := index.Find(e); return line.Diverged })
	store, err := m.open()
	if err != nil {
		return err
	}
	found, missing, err := store.Measure(list)
	if err != nil {
		return err
	}
	var text strings.Builder
	names := map[string]bool{}
	agree, differ, unmeasured := 0, 0, map[string]int{}
	for _, e := range list {
		now, has := found[e.ID()]
		if !has {
			continue
		}
		line, _ := index.Find(e)
		differing := differences(line.Metrics, now)
		for name := range now {
			names[name] = true
			if _, has := line.Metrics[name]; !has && m.wants(name) {
				unmeasured[name]++
			}
		}
		differing = slices.DeleteFunc(differing, func(d difference) bool { return !m.wants(d.metric) })
		if len(differing) == 0 {
			agree++
			continue
		}
		differ++
		for _, d := range differing {
			fmt.Fprintf(&text, "%v: %v\n", e, d)
		}
	}
	for _, name := range m.Metrics {
		if len(names) > 0 && !names[name] {
			return usagef("--metrics: these experiments have no metric %q, but %s", name, inWords(slices.Sorted(maps.Keys(names))))
		}
	}
	fmt.Fprintf(&text, "%d of %s the metrics that their predictions give\n", agree, results.Counted(agree+differ, "result has", "results have"))
	for _, name := range slices.Sorted(maps.Keys(unmeasured)) {
		fmt.Fprintf(&text, "%s lack the metric %s\n", results.Counted(unmeasured[name], "result", "results"), name)
	}
	text.WriteString(withoutPredictions(missing))
	if err := c.say(text.String()); err != nil {
		return err
	}
	if differ > 0 {
		return fmt.Errorf("%s from what the predictions give", results.Counted(differ, "result differs", "results differ"))
	}
	return nil
}

// wants says whether a metric is compared.
func (m measureCommand) wants(name string) bool {
	return len(m.Metrics) == 0 || slices.Contains(m.Metrics, name)
}

// withoutPredictions counts experiments whose predictions are not kept, by their groups.
func withoutPredictions(list []experiment.Experiment) string {
	var groups []string
	count := map[string]int{}
	for _, e := range list {
		name := fmt.Sprintf("%s on %s (%s)", e.Method.Name, e.Task.Name, e.Preset)
		if count[name] == 0 {
			groups = append(groups, name)
		}
		count[name]++
	}
	if len(list) == 0 {
		return ""
	}
	text := results.Counted(len(list), "result has", "results have") + " no predictions here:\n"
	for _, name := range groups {
		text += fmt.Sprintf("  %s: %d\n", name, count[name])
	}
	return text
}
