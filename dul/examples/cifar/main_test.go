package main

import (
	"bytes"
	"context"
	"regexp"
	"testing"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/environment/must"
)

// The quick mode goes from the data to the scores, of which the same seed gives the same.
func TestQuick(t *testing.T) {
	fixtures.SkipShortOffGo(t) // its parts have tests there, and compiling the whole takes long
	scores := func(layers string) string {
		var out bytes.Buffer
		must.Do(t, run(context.Background(), &out, layers, true, 1, 1, ""))
		return out.String()
	}
	const first = `test accuracy \d+\.\d%, ECE \d+\.\d%\nSVHN told from CIFAR-10 by unlikely classes: AUROC 0\.\d+\n`
	for layers, want := range map[string]string{"density": first + `SVHN told from CIFAR-10 by energies: AUROC [01]\.\d+\n`, "plain": first} {
		t.Run(layers, func(t *testing.T) {
			got := scores(layers)
			if !regexp.MustCompile("^" + want + "$").MatchString(got) {
				t.Errorf("%q, want %q", got, want)
			}
			if layers == "plain" && scores(layers) != got {
				t.Error("two runs of one seed differ")
			}
		})
	}
	must.Err(t, run(context.Background(), &bytes.Buffer{}, "dense", true, 1, 1, ""), `no layers "dense"`)
}

func TestTold(t *testing.T) {
	var out bytes.Buffer
	told(&out, "a score", []float64{1, 2}, []float64{3, 1.5})
	if want := "SVHN told from CIFAR-10 by a score: AUROC 0.750\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
