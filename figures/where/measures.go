package where

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
	"densityuncertainty/figures/uci"
)

// splitsTable has the measures of all gap splits of the nine data sets and of the holes of question 11, which figures/uci/holes.csv has
// as data.
func splitsTable(*tables.Index) (report.Table, error) {
	t := prose.Table("where-splits", nil)
	t.Columns = []string{"Split", "Rows", "Distance", "Beyond", "Hole", "Energy", "Outside", "Same as"}
	for _, dataset := range slices.Concat(uci.SmallDatasets(), otherDatasets) {
		for _, kind := range []uci.Splits{uci.Gap, uci.Hole} {
			if dataset == cooling {
				continue
			}
			for k, m := range (uci.Data{Name: dataset, Kind: kind}).Measured() {
				number := func(v float64) string { return fmt.Sprintf("%.2f", v) }
				hole, same := "", ""
				if m.Is() {
					hole = "yes"
				}
				if m.Same != k {
					same = fmt.Sprintf("%v %d", kind, m.Same+1)
				}
				title := uci.DatasetTitle(dataset)
				if dataset == heating {
					title = "Energy Efficiency (both loads)"
				}
				t.Rows = append(t.Rows, report.Row{Group: title, Name: fmt.Sprintf("%v %d", kind, k+1), Cells: report.TextCells(fmt.Sprintf("%s, 1 in %d", m.Shape, m.Part), number(m.Distance), number(m.Beyond), hole, number(m.Energy), number(m.Outside), same)})
			}
		}
	}
	return t, nil
}

// A measuredGap is a distinct gap with the difference of density to a control.
type measuredGap struct {
	uci.Measured
	difference float64
}

// measuredGaps are the distinct gaps of question 1, of all data sets.
func (s gapSetting) measuredGaps(x *tables.Index, control experiment.Method) (all []measuredGap, err error) {
	for _, dataset := range uci.SmallDatasets() {
		of := []string{dataset}
		switch dataset {
		case cooling:
			continue
		case heating:
			of = append(of, cooling)
		}
		differences := s.differences(x, control, of...)
		if len(differences) == 0 {
			return nil, fmt.Errorf("where: no run of %s on gaps of %s: %w", s.title, dataset, report.ErrNotRun)
		}
		for gap, m := range (uci.Data{Name: dataset, Kind: uci.Gap}).Measured() {
			if d, has := differences[gap]; has {
				all = append(all, measuredGap{m, d})
			}
		}
	}
	return all, nil
}

// linearNats is up to where the axes of differences are nearly even.
const linearNats = 0.01

// gapMarks are those of gaps whose energy is at least average, and below.
var gapMarks = []report.Mark{{Name: "one Gaussian finds the gap unlikely", Colour: report.Blue, Shape: draw.CircleGlyph{}}, {Name: "it finds the gap more likely than the training data", Colour: report.Orange, Shape: draw.PyramidGlyph{}}}

// gapPicture shows the differences to the mean energy on the distinct gaps, sorted, with their median, in a panel for each setting.
func gapPicture(x *tables.Index) (report.Figure, error) {
	f := report.Figure{Name: "where-gaps", Caption: prose.Caption("where-gaps picture", nil), Panels: make([][]*plot.Plot, 1), Width: vg.Points(620), Height: vg.Points(230), Key: report.Key(gapMarks...)}
	for _, s := range gapSettings {
		gaps, err := s.measuredGaps(x, methods.DensityMean)
		if err != nil {
			return f, err
		}
		slices.SortFunc(gaps, func(a, b measuredGap) int { return cmp.Compare(a.difference, b.difference) })
		p, list := report.New(s.title, "gap, in order", "difference of NLL (nats)"), []float64(nil)
		for _, g := range gaps {
			list = append(list, g.difference)
		}
		for i, mark := range gapMarks {
			var at, difference []float64
			for k, g := range gaps {
				if (g.Energy < 1) == (i == 1) {
					at, difference = append(at, float64(k+1)), append(difference, g.difference)
				}
			}
			if err := report.Marks(p, at, difference, mark); err != nil {
				return f, err
			}
		}
		ends, middle := []float64{0, float64(len(gaps) + 1)}, median(list).Mean
		if err := errors.Join(report.Line(p, "", ends, []float64{0, 0}, report.Grey), report.Dashes(p, "", ends, []float64{middle, middle}, report.Red)); err != nil {
			return f, err
		}
		report.SymmetricLogAxis(&p.Y, linearNats)
		p.Y.Min, p.Y.Max = -10, 1
		f.Panels[0] = append(f.Panels[0], p)
		report.ShareAxes(p, true, len(f.Panels[0]) == 1)
	}
	return f, nil
}

// gapMeasuresPicture shows the same differences against the gaps' distance and energy.
func gapMeasuresPicture(x *tables.Index) (report.Figure, error) {
	marks := []report.Mark{{Name: gapSettings[1].title, Colour: report.Navy, Shape: draw.CircleGlyph{}}, {Name: gapSettings[2].title, Colour: report.Green, Shape: draw.BoxGlyph{}}}
	f := report.Figure{Name: "where-gap-measures", Caption: prose.Caption("where-gap-measures picture", nil), Panels: make([][]*plot.Plot, 1), Width: vg.Points(620), Height: vg.Points(250), Key: report.Key(marks...)}
	for _, axis := range []struct {
		label string
		of    func(m uci.Measured) float64
	}{
		{"distance of the gap, over the ordinary", func(m uci.Measured) float64 { return m.Distance }},
		{"energy of the gap, over the average", func(m uci.Measured) float64 { return m.Energy }},
	} {
		p, all := report.New("", axis.label, "difference of NLL (nats)"), []float64(nil)
		for i, s := range gapSettings[1:] {
			gaps, err := s.measuredGaps(x, methods.DensityMean)
			if err != nil {
				return f, err
			}
			var at, difference []float64
			for _, g := range gaps {
				at, difference = append(at, axis.of(g.Measured)), append(difference, g.difference)
			}
			if err := report.Marks(p, at, difference, marks[i]); err != nil {
				return f, err
			}
			all = append(all, at...)
		}
		report.LogAxis(&p.X, all)
		report.SymmetricLogAxis(&p.Y, linearNats)
		if err := report.Line(p, "", []float64{p.X.Min, p.X.Max}, []float64{0, 0}, report.Grey); err != nil {
			return f, err
		}
		p.Y.Min, p.Y.Max = -10, 1
		f.Panels[0] = append(f.Panels[0], p)
		report.ShareAxes(p, true, len(f.Panels[0]) == 1)
	}
	return f, nil
}
