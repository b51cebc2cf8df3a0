package report

import (
	"cmp"
	"errors"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"densityuncertainty/dul/metrics"
)

// A Mark is how one series of numbers is drawn: its name in the legend, colour and shape.
type Mark struct {
	Name   string
	Colour color.Color
	Shape  draw.GlyphDrawer
}

// methodMarks are the colours and shapes of methods, the same in all pictures.
var methodMarks = map[string]Mark{
	"Density Uncertainty":        {Colour: Blue, Shape: draw.CircleGlyph{}},
	"Density, detached energies": {Colour: Blue, Shape: draw.PyramidGlyph{}},
	"Density, mean energy":       {Colour: Navy, Shape: draw.PyramidGlyph{}},
	"Density, constant":          {Colour: Grey, Shape: draw.BoxGlyph{}},
	"Density, diagonal":          {Colour: sky, Shape: draw.BoxGlyph{}},
	"Density, rank-1 mixture":    {Colour: Green, Shape: draw.PyramidGlyph{}},
	"MFVI":                       {Colour: brown, Shape: draw.BoxGlyph{}},
	"MC Dropout":                 {Colour: Orange, Shape: draw.CircleGlyph{}},
	"Variational Dropout":        {Colour: purple, Shape: draw.PyramidGlyph{}},
	"Rank-1 BNN":                 {Colour: Red, Shape: draw.BoxGlyph{}},
	"Deterministic":              {Colour: color.Black, Shape: draw.CircleGlyph{}},
	"Deep Ensemble":              {Colour: color.Black, Shape: draw.PyramidGlyph{}},
	"Last-layer Laplace":         {Colour: Navy, Shape: draw.BoxGlyph{}},
	"SWAG":                       {Colour: purple, Shape: draw.CircleGlyph{}},
	"SNGP":                       {Colour: Green, Shape: draw.CircleGlyph{}},
	"DUE":                        {Colour: Green, Shape: draw.BoxGlyph{}},
}

// MarkOf returns the mark of a method by its Name, also after "Against ", so that it looks alike in all pictures. Another name
// gets mark k of a sequence of colours and shapes.
func MarkOf(name string, k int) Mark {
	colours, shapes := append(Palette(), color.Black), []draw.GlyphDrawer{draw.CircleGlyph{}, draw.PyramidGlyph{}, draw.BoxGlyph{}}
	m, known := methodMarks[strings.TrimPrefix(name, "Against ")]
	if !known {
		m = Mark{Colour: colours[k%len(colours)], Shape: shapes[(k+k/len(colours))%len(shapes)]}
	}
	m.Name = name
	return m
}

// hollow has the outlines of the shapes of marks.
var hollow = map[draw.GlyphDrawer]draw.GlyphDrawer{draw.CircleGlyph{}: draw.RingGlyph{}, draw.PyramidGlyph{}: draw.TriangleGlyph{}, draw.BoxGlyph{}: draw.SquareGlyph{}}

// Legend returns a legend of marks.
func Legend(marks ...Mark) *plot.Legend {
	key := New("", "", "").Legend
	key.Left = true
	for _, m := range marks {
		key.Add(m.Name, &plotter.Scatter{GlyphStyle: draw.GlyphStyle{Color: m.Colour, Radius: vg.Points(2.4), Shape: m.Shape}})
	}
	return &key
}

// ErrNotRun is wrapped by the error for a picture whose runs are missing.
var ErrNotRun = errors.New("its runs are missing")

// A Forest draws the differences in a table, or its Numbers: a panel for each group of rows, a line for each row, a mark
// for each column, with its interval. A mark is filled if its cell has a verdict, usually that the difference is
// significant, and hollow if not. With Numbers, all marks are filled.
type Forest struct {
	Axis    string // what the differences are, such as "change of NLL (nats)"
	Columns int    // panels beside each other; 0 means all of them
	// ByColumn has a panel for each column, with all groups, for columns of different units. The colours are those of the
	// verdicts.
	ByColumn bool
	// Shades has marks in black and grey, for columns that are no methods, such as settings.
	Shades bool
	// Within, if not 0, is how far axes go from 0. What is beyond is drawn at the edge. Least, if not 0, is where they begin.
	Within, Least float64
	// Numbers draws the numbers of cells with their spreads in the place of differences.
	Numbers bool
	Line    *float64 // where numbers have a dashed line, such as chance, 0.5; nil for none
}

// drawn is the mark and bar of a cell: its difference or, with Numbers, its number and spread. It is nil if there is none.
func (f Forest) drawn(c Cell) *metrics.Difference {
	if !f.Numbers {
		return c.Difference
	}
	if c.Value == nil {
		return nil
	}
	mean, std := c.Value.Mean, c.Value.Std
	if math.IsNaN(std) {
		std = 0
	}
	return &metrics.Difference{Mean: mean, Low: mean - std, High: mean + std}
}

// byVerdict are the marks of a Forest by columns.
var byVerdict = map[string]Mark{
	Better:         {Name: "better", Colour: Palette()[0], Shape: draw.CircleGlyph{}},
	Worse:          {Name: "worse", Colour: Palette()[1], Shape: draw.PyramidGlyph{}},
	NotSignificant: {Name: "not significant", Colour: Grey, Shape: draw.CircleGlyph{}},
}

// The sizes of a Forest, in points.
const (
	forestWidth = 760
	forestRow   = 7  // the height of a mark in a row
	forestRest  = 62 // title, axis and labels of a row of panels
)

// Of draws a table. Groups, and names of rows, without anything to draw are left out. If nothing is left, that is an
// error.
func (f Forest) Of(t Table) (Figure, error) {
	marks, columns, err := f.columns(t)
	if err != nil {
		return Figure{}, err
	}
	var panels []*plot.Plot
	var groups [][]Row
	drawn := map[string]bool{} // groups and names of rows, with differences
	for _, row := range t.Rows {
		if slices.ContainsFunc(columns, func(i int) bool { return f.drawn(row.Cells[i]) != nil }) {
			drawn["group "+row.Group], drawn["row "+row.Name] = true, true
		}
	}
	for _, row := range t.Rows {
		if !drawn["group "+row.Group] || !drawn["row "+row.Name] {
			continue
		}
		if len(groups) == 0 || row.Group != groups[len(groups)-1][0].Group {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], row)
	}
	beside := f.Columns
	if f.ByColumn {
		return f.byColumn(t, groups, marks, columns)
	}
	if beside == 0 {
		beside, groups = len(groups), alike(groups)
	}
	most := 0
	for n, rows := range groups {
		p, err := f.panel(rows, marks, columns, n%beside == 0 || !sameNames(rows, groups[n-1]))
		if err != nil {
			return Figure{}, err
		}
		panels, most = append(panels, p), max(most, len(rows))
	}
	lines := (len(groups) + beside - 1) / beside
	tall := max(len(columns), 2)
	if f.Numbers {
		tall = min(tall, 3) // they seldom hide each other
	}
	height := float64(lines) * (forestRest + forestRow*float64(most*tall))
	picture := Figure{
		Name: t.Name, Panels: InRows(panels, beside, nil), LikeWidths: f.Numbers, Width: vg.Points(forestWidth), Height: vg.Points(height + 12*float64(len(marks))),
	}
	if len(marks) > 1 {
		picture.Legend = Legend(marks...)
	}
	return picture, nil
}

// byColumn draws the rows of all groups in a panel for each column. Where there are several, the group's name stands above its rows.
func (f Forest) byColumn(t Table, groups [][]Row, marks []Mark, columns []int) (Figure, error) {
	var rows []Row
	for _, group := range groups {
		if name := group[0].Group; name != "" && len(groups) > 1 {
			rows = append(rows, Row{Name: name + ":", Cells: make([]Cell, len(t.Columns)-1)})
		}
		rows = append(rows, group...)
	}
	var panels []*plot.Plot
	for k := range columns {
		p, err := f.panel(rows, marks[k:k+1], columns[k:k+1], k == 0)
		if err != nil {
			return Figure{}, err
		}
		p.Title.Text = marks[k].Name
		panels = append(panels, p)
	}
	height := forestRest + 2*forestRow*float64(len(rows)) + 36
	picture := Figure{Name: t.Name, Panels: [][]*plot.Plot{panels}, LikeWidths: true, Width: vg.Points(forestWidth), Height: vg.Points(height)}
	if !f.Numbers {
		open := byVerdict[NotSignificant]
		open.Shape = draw.RingGlyph{}
		picture.Legend = Legend(byVerdict[Better], byVerdict[Worse], open)
	}
	return picture, nil
}

// columns are the columns with differences, and their marks.
func (f Forest) columns(t Table) (marks []Mark, columns []int, err error) {
	for i, name := range t.Columns[1:] {
		if !slices.ContainsFunc(t.Rows, func(r Row) bool { return f.drawn(r.Cells[i]) != nil }) {
			continue
		}
		mark := MarkOf(name, len(columns))
		if f.Shades {
			mark.Colour = color.Gray{uint8(60 * len(columns))}
		}
		marks, columns = append(marks, mark), append(columns, i)
	}
	if len(columns) == 0 {
		return nil, nil, fmt.Errorf("report: the table %s has nothing to draw: %w", t.Name, ErrNotRun)
	}
	return marks, columns, nil
}

// alike are groups that all have the rows of the first, empty where they had none, so that one column of names is enough;
// as they are, if one has a row that the first lacks.
func alike(groups [][]Row) [][]Row {
	var all [][]Row
	for _, group := range groups {
		var rows []Row
		found := 0
		for _, first := range groups[0] {
			row := Row{Group: group[0].Group, Name: first.Name, Cells: make([]Cell, len(first.Cells))}
			if i := slices.IndexFunc(group, func(r Row) bool { return r.Name == first.Name }); i >= 0 {
				row, found = group[i], found+1
			}
			rows = append(rows, row)
		}
		if found < len(group) {
			return groups
		}
		all = append(all, rows)
	}
	return all
}

func sameNames(a, b []Row) bool {
	return slices.EqualFunc(a, b, func(a, b Row) bool { return a.Name == b.Name })
}

// panel draws the rows of a group.
func (f Forest) panel(rows []Row, marks []Mark, columns []int, labelled bool) (*plot.Plot, error) {
	const apart = 0.34 // of the height of a row, from the first to the last mark on it
	p := New(rows[0].Group, f.Axis, "")
	p.Title.TextStyle.Font.Size = vg.Points(LabelSize)
	low, high := math.Inf(-1), math.Inf(1)
	if f.Within > 0 {
		low, high = cmp.Or(f.Least, -f.Within), f.Within
	}
	var ticks []plot.Tick
	for i, row := range rows {
		middle := float64(len(rows) - 1 - i)
		label := " "
		if labelled {
			label = row.Name
		}
		ticks = append(ticks, plot.Tick{Value: middle, Label: label})
		for k, m := range marks {
			c := row.Cells[columns[k]]
			d := f.drawn(c)
			if d == nil {
				continue
			}
			y := middle + apart*(float64(len(marks)-1)-2*float64(k))/float64(len(marks))
			switch {
			case f.ByColumn && f.Numbers:
				m.Colour, m.Shape = Blue, draw.CircleGlyph{}
			case f.ByColumn:
				m = byVerdict[c.Verdict]
			}
			shape := m.Shape
			if !f.Numbers && c.Verdict != Better && c.Verdict != Worse {
				shape = hollow[m.Shape]
			}
			clip := func(x float64) float64 { return max(low, min(high, x)) }
			at, from, to := clip(d.Mean), clip(d.Low), clip(d.High)
			if err := finite("the bar of "+row.Name, "end or middle", []float64{from, at, to}); err != nil {
				return nil, err
			}
			errorBar(p, plotter.XYs{{X: at, Y: y}}, plotter.XErrors{{Low: at - from, High: to - at}}, m.Colour, shape)
		}
	}
	height := []float64{-0.6, float64(len(rows)) - 0.4}
	line := f.Line
	if !f.Numbers {
		line = new(float64)
	}
	if line != nil {
		if err := Dashes(p, "", []float64{*line, *line}, height, Grey); err != nil {
			return nil, err
		}
	}
	if f.Within > 0 {
		p.X.Min, p.X.Max = low, high
	} else {
		room := 0.03 * (p.X.Max - p.X.Min) // beside the ends of intervals
		p.X.Min, p.X.Max = p.X.Min-room, p.X.Max+room
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	p.Y.Min, p.Y.Max = height[0], height[1]
	return p, nil
}
