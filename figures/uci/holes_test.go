package uci

import (
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/environment/must"
)

// holes.csv has the measures of its splits, and which of them are nearly the same. The holes of question 11 are what questions.md says
// of them, by inputs alone: holes, of which distance and energy are unrelated and no two are nearly one.
func TestMeasuredSplits(t *testing.T) {
	for of, list := range measured() {
		name, kind, _ := strings.Cut(of, " ")
		set := must.Get(datasets.UCI(name))(t)
		splits := datasets.GapSplits(set)
		if kind == Hole.String() {
			z := standardised(set)
			splits = splits[:0]
			var distances, energies []float64
			for _, m := range list {
				splits, distances, energies = append(splits, m.split(set, z)), append(distances, m.Distance), append(energies, m.Energy)
			}
			if rho := metrics.Spearman(distances, energies); len(list) != 12 || !scalar.EqualWithinAbs(rho, 0, 0.01) {
				t.Errorf("%s: %d holes, rank correlation %.3f", of, len(list), rho)
			}
		}
		for k, m := range list {
			same, most := k, 0.0
			for l := range k {
				share := splits[k].Overlap(splits[l])
				if most = max(most, share); share > 0.8 {
					same = min(same, list[l].Same)
				}
			}
			if m.Same != same || kind == Hole.String() && (most > 0.615 || !m.IsHole()) || kind == Gap.String() && m.Number != k {
				t.Errorf("%s, split %d: %+v; it shares %.2f with another, and is as %d", of, k, m, most, same)
			}
		}
		if set.N > 5000 && testing.Short() || name == "energy-cooling" {
			continue
		}
		if set.N > 5000 { // which take a second each, and more; all were measured once
			splits = splits[:1]
		}
		for k, h := range must.Get(datasets.Holes(set, splits...))(t) {
			m := list[k]
			for _, off := range []float64{h.Distance - m.Distance, h.Beyond - m.Beyond, h.Energy - m.Energy, h.Outside - m.Outside} {
				must.Near(t, off, 0, 1e-4, "%s, split %d: a number of %+v less that of holes.csv, %+v", of, k, h, m.Hole)
			}
		}
	}
}
