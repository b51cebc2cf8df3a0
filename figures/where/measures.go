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
				if m.IsHole() {
					hole = "yes"
				}
				if m.Same != k {
					same = fmt.Sprintf("%v %d", kind, m.Same+1)
				}
				title := uci.DatasetTitle(dataset)
				if dataset == heating {
					title = bothLoads
				}
				t.Rows = append(t.Rows, report.Row{Group: title, Name: fmt.Sprintf("%v %d", kind, k+1), Cells: report.TextCells(fmt.Sprintf("%s, 1 in %d", m.Shape, m.Part), number(m.Distance), number(m.Beyond), hole, number(m.Energy), number(m.Outside), same)})
			}
		}
	}
	return t, nil
}

// distinctGaps are the gaps of question 1 with the differences to the mean energy.
func distinctGaps(x *tables.Index, s experiment.Grid) ([]measuredSplit, error) {
	sets := inGaps(s, methods.DensityMean).ofInputs(x, uci.SmallDatasets()...)
	for _, set := range sets {
		if len(set) == 0 {
			return nil, fmt.Errorf("where: the gaps of %d sets of inputs, with %s: %w", len(sets), s.Title, report.ErrNotRun)
		}
	}
	return slices.Concat(sets...), nil
}

func distance(m measuredSplit) float64       { return m.Distance }
func gaussianEnergy(m measuredSplit) float64 { return m.Energy }

// bothLoads is the title of heating and cooling.
const bothLoads = "Energy Efficiency (both loads)"

// linearNats is up to where the axes of differences are nearly even.
const linearNats = 0.01

// gapMarks are those of gaps whose energy is at least average, and below.
var gapMarks = []report.Mark{{Name: "one Gaussian finds the gap unlikely", Colour: report.Blue, Shape: draw.CircleGlyph{}}, {Name: "it finds the gap more likely than the training data", Colour: report.Orange, Shape: draw.PyramidGlyph{}}}

// gapPicture shows the differences to the mean energy on the distinct gaps, sorted, with their median, in a panel for each setting.
func gapPicture(x *tables.Index) (report.Figure, error) {
	f := report.Figure{Name: "where-gaps", Caption: prose.Caption("where-gaps picture", nil), Panels: make([][]*plot.Plot, 1), Width: vg.Points(620), Height: vg.Points(230), Legend: report.Legend(gapMarks...)}
	for _, s := range gapGrids {
		gaps, err := distinctGaps(x, s)
		if err != nil {
			return f, err
		}
		slices.SortFunc(gaps, func(a, b measuredSplit) int { return cmp.Compare(a.difference, b.difference) })
		p := report.New(s.Title, "gap, in order", "difference of NLL (nats)")
		for i, mark := range gapMarks {
			var at, differences []float64
			for k, g := range gaps {
				if (g.Energy < 1) == (i == 1) {
					at, differences = append(at, float64(k+1)), append(differences, g.difference)
				}
			}
			if err := mark.Draw(p, at, differences); err != nil {
				return f, err
			}
		}
		ends, middle := []float64{0, float64(len(gaps) + 1)}, median(valuesOf(gaps, difference)).Mean
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

// holesPicture shows the differences to the mean energy on the holes of question 11 against their distance and energy.
func holesPicture(x *tables.Index) (report.Figure, error) {
	marks := []report.Mark{{Name: holeGrids[0].Title, Colour: report.Navy, Shape: draw.CircleGlyph{}}, {Name: holeGrids[1].Title, Colour: report.Green, Shape: draw.BoxGlyph{}}}
	f := report.Figure{Name: "where-holes", Caption: prose.Caption("where-holes picture", nil), Panels: make([][]*plot.Plot, 1), Width: vg.Points(620), Height: vg.Points(250), Legend: report.Legend(marks...)}
	for _, axis := range []struct {
		label string
		of    func(m measuredSplit) float64
	}{{"distance of the hole, over the ordinary", distance}, {"energy of the hole, over the average", gaussianEnergy}} {
		p, all := report.New("", axis.label, "difference of NLL (nats)"), []float64(nil)
		for i, s := range holeGrids {
			holes := slices.Concat(comparison{s, uci.Hole, methods.Density, methods.DensityMean, false}.ofInputs(x, holeDatasets...)...)
			if len(holes) == 0 {
				return f, fmt.Errorf("where: no run on holes with %s; run: reproduce run where-holes: %w", s.Title, report.ErrNotRun)
			}
			at := valuesOf(holes, axis.of)
			if err := marks[i].Draw(p, at, valuesOf(holes, difference)); err != nil {
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
