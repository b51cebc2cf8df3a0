package train

import (
	"strings"
	"testing"
	"time"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/nets"
)

func TestCheckpointDefaults(t *testing.T) {
	for _, c := range []struct{ given, want Checkpoints }{
		{Checkpoints{}, Checkpoints{Every: 10 * time.Minute, Keep: 2}},
		{Checkpoints{EverySteps: 7}, Checkpoints{EverySteps: 7, Keep: 2}},
		{Checkpoints{Every: time.Hour, Keep: 1}, Checkpoints{Every: time.Hour, Keep: 1}},
	} {
		if got := c.given.withDefaults(); got != c.want {
			t.Errorf("%+v becomes %+v, want %+v", c.given, got, c.want)
		}
	}
}

// A network's description is short however many numbers it starts from, and
// changes with any of them.
func TestDescribe(t *testing.T) {
	network := func(change func(z *baselines.Inducing)) string {
		z := baselines.Inducing{Points: make([]float64, 100*640), LengthScale: 2}
		change(&z)
		return describe(nets.ResNet14(baselines.DUE{Start: []baselines.Inducing{z}}))
	}
	plain := network(func(*baselines.Inducing) {})
	if len(plain) > 1000 || !strings.Contains(plain, "Points: [64000 entries, SHA-256 ") || !strings.Contains(plain, "LengthScale: 2") || !strings.Contains(plain, "Blocks: [2, 2, 2]") {
		t.Errorf("described as %.1200s", plain)
	}
	if again := network(func(*baselines.Inducing) {}); again != plain {
		t.Errorf("the same is described as %s and %s", plain, again)
	}
	seen := map[string]bool{plain: true}
	for _, c := range []struct {
		name   string
		change func(z *baselines.Inducing)
	}{
		{"a number", func(z *baselines.Inducing) { z.Points[33333] = 1e-300 }},
		{"its place", func(z *baselines.Inducing) { z.Points[33334] = 1e-300 }},
		{"the count", func(z *baselines.Inducing) { z.Points = z.Points[1:] }},
		{"a scale", func(z *baselines.Inducing) { z.LengthScale = 3 }},
	} {
		if text := network(c.change); seen[text] {
			t.Errorf("%s changes nothing: %s", c.name, text)
		} else {
			seen[text] = true
		}
	}
	if short := describe([]float64{1, 0.5}); short != "[1, 0.5]" {
		t.Errorf("a short list: %s", short)
	}
}
