package notebook

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Slider is a number that a reader of a notebook moves, with the mouse or with the keys of the arrows. Its
// positions are Min, Min+Step, Min+2*Step and so on, up to Max.
type Slider struct {
	Name           string // for example "γ"
	Min, Max, Step float64
	Start          float64 // where it is at first
	// Shown are positions that stand for all of them where nothing can be moved. None: Min, Start and Max, or
	// all of a [Choice].
	Shown []float64

	labels []string // of a Choice, one for each position
}

// Choice is a slider over things that have names. Its positions are their numbers, 0, 1 and so on; it starts at one of them.
func Choice(name string, start int, labels ...string) Slider {
	return Slider{Name: name, Max: float64(len(labels) - 1), Step: 1, Start: float64(start), labels: labels}
}

// check says what is wrong with the slider.
func (s Slider) check() error {
	fail := func(format string, values ...any) error {
		return fmt.Errorf("slider %q: %s", s.Name, fmt.Sprintf(format, values...))
	}
	switch {
	case strings.TrimSpace(s.Name) == "":
		return fmt.Errorf("a slider from %g to %g has no name", s.Min, s.Max)
	case !(s.Min < s.Max) || math.IsInf(s.Max-s.Min, 0):
		return fail("from %g to %g is no range", s.Min, s.Max)
	case !(s.Step > 0) || s.Step > s.Max-s.Min:
		return fail("steps of %g do not fit from %g to %g", s.Step, s.Min, s.Max)
	}
	for i, v := range append([]float64{s.Start}, s.Shown...) {
		what := "the start"
		if i > 0 {
			what = fmt.Sprintf("position %d of those shown", i-1)
		}
		if !(v >= s.Min && v <= s.Max) {
			return fail("%s, %g, is not from %g to %g", what, v, s.Min, s.Max)
		}
		// Without the numbers lost in adding up steps such as 0.1.
		if steps := (v - s.Min) / s.Step; math.Abs(steps-math.Round(steps)) > 1e-6 {
			return fail("%s, %g, is between two positions: they are %g apart, from %g", what, v, s.Step, s.Min)
		}
	}
	return nil
}

// text is a position in words.
func (s Slider) text(v float64) string {
	if s.labels != nil {
		return s.labels[int(math.Round(v))]
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

// shown are the positions that stand for all of them.
func (s Slider) shown() []float64 {
	if len(s.Shown) > 0 {
		return s.Shown
	}
	if s.labels != nil {
		var all []float64
		for i := range s.labels {
			all = append(all, float64(i))
		}
		return all
	}
	few := []float64{s.Min}
	if s.Start > s.Min && s.Start < s.Max {
		few = append(few, s.Start)
	}
	return append(few, s.Max)
}

// sliders are moved together.
type sliders []Slider

func (all sliders) check() error {
	if len(all) == 0 {
		return fmt.Errorf("there is no slider")
	}
	for _, s := range all {
		if err := s.check(); err != nil {
			return err
		}
	}
	return nil
}

// start is where the sliders are at first.
func (all sliders) start() []float64 {
	var at []float64
	for _, s := range all {
		at = append(at, s.Start)
	}
	return at
}

// text is where the sliders are, in words: "γ 0.5, β 9".
func (all sliders) text(at []float64) string {
	var words []string
	for i, s := range all {
		words = append(words, s.Name+" "+s.text(at[i]))
	}
	return strings.Join(words, ", ")
}

// Positions are the positions of sliders that stand for all where nothing can be moved: those that each shows, with the
// others at their start.
func Positions(controls ...Slider) [][]float64 { return slices.Concat(sliders(controls).rows()...) }

// rows are the positions that stand for all: a row for each slider, in which it moves and the others are at their start.
func (all sliders) rows() [][][]float64 {
	rows := make([][][]float64, len(all))
	for i, s := range all {
		for _, v := range s.shown() {
			at := all.start()
			at[i] = v
			rows[i] = append(rows[i], at)
		}
	}
	return rows
}

// move is what the page says of the sliders: its number, and where they are.
type move struct {
	number int
	at     []float64
}

// parseMove reads a move, as "3 0.5 9" is for the third one of two sliders.
func (all sliders) parseMove(text string) (move, error) {
	words := strings.Fields(text)
	if len(words) != 1+len(all) {
		return move{}, fmt.Errorf("the page says %q, want a number and %d positions", text, len(all))
	}
	number, err := strconv.Atoi(words[0])
	if err != nil || number < 0 {
		return move{}, fmt.Errorf("the page says %q, which does not begin with a number from 0", text)
	}
	m := move{number: number}
	for i, s := range all {
		v, err := strconv.ParseFloat(words[1+i], 64)
		if err != nil || !(v >= s.Min && v <= s.Max) {
			return move{}, fmt.Errorf("the page says that slider %q is at %q, which is not from %g to %g", s.Name, words[1+i], s.Min, s.Max)
		}
		m.at = append(m.at, v)
	}
	return m, nil
}
