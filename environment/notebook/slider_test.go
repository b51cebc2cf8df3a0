package notebook

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestSliderErrors(t *testing.T) {
	good := Slider{Name: "γ", Min: -1, Max: 2, Step: 0.1, Start: 0.3, Shown: []float64{-1, 0.7, 2}}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		name   string
		change func(*Slider)
		want   string
	}{
		{"no name", func(s *Slider) { s.Name = " " }, "a slider from -1 to 2 has no name"},
		{"backwards", func(s *Slider) { s.Max = -2 }, `"γ": from -1 to -2 is no range`},
		{"a point", func(s *Slider) { s.Min = 2 }, "from 2 to 2 is no range"},
		{"NaN", func(s *Slider) { s.Min = math.NaN() }, "is no range"},
		{"without end", func(s *Slider) { s.Max = math.Inf(1) }, "is no range"},
		{"no step", func(s *Slider) { s.Step = 0 }, "steps of 0 do not fit from -1 to 2"},
		{"a long step", func(s *Slider) { s.Step = 3.5 }, "steps of 3.5 do not fit"},
		{"a start outside", func(s *Slider) { s.Start = 2.1 }, "the start, 2.1, is not from -1 to 2"},
		{"a start of NaN", func(s *Slider) { s.Start = math.NaN() }, "the start, NaN, is not from"},
		{"a start between", func(s *Slider) { s.Start = 0.35 }, "the start, 0.35, is between two positions: they are 0.1 apart, from -1"},
		{"shown outside", func(s *Slider) { s.Shown = []float64{0, -2} }, "position 1 of those shown, -2, is not from -1 to 2"},
		{"a choice of nothing", func(s *Slider) { *s = Choice("set", 0) }, "from 0 to -1 is no range"},
		{"a choice outside", func(s *Slider) { *s = Choice("set", 2, "a", "b") }, "the start, 2, is not from 0 to 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := good
			c.change(&s)
			err := sliders{Choice("other", 0, "a", "b"), s}.check()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v: %v, want %q", s, err, c.want)
			}
		})
	}
	if err := (sliders{}).check(); err == nil {
		t.Error("no sliders: no error")
	}
}

func TestSliderPositions(t *testing.T) {
	all := sliders{
		{Name: "γ", Max: 2, Step: 0.1, Start: 0.3},
		{Name: "β", Min: 1, Max: 3, Step: 1, Start: 3},
		Choice("energy", 1, "diagonal", "full"),
		{Name: "x", Max: 9, Step: 1, Shown: []float64{8}},
	}
	var got strings.Builder
	for _, row := range all.rows() {
		for _, at := range row {
			got.WriteString(all.text(at) + "\n")
		}
	}
	const want = "γ 0, β 3, energy full, x 0\nγ 0.3, β 3, energy full, x 0\nγ 2, β 3, energy full, x 0\n" +
		"γ 0.3, β 1, energy full, x 0\nγ 0.3, β 3, energy full, x 0\n" +
		"γ 0.3, β 3, energy diagonal, x 0\nγ 0.3, β 3, energy full, x 0\n" +
		"γ 0.3, β 3, energy full, x 8\n"
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
	if got := all[0].text(0.1 + 0.2); got != "0.3" {
		t.Errorf("a sum of tenths: %q", got)
	}
}

func TestParseMove(t *testing.T) {
	all := sliders{{Name: "γ", Max: 2, Step: 0.5}, Choice("energy", 0, "a", "b")}
	m, err := all.parseMove("7 1.5 1")
	if got := fmt.Sprint(m, err); got != "{7 [1.5 1]} <nil>" {
		t.Errorf("got %s", got)
	}
	for _, text := range []string{"", "1", "1 0", "1 0 0 0", "x 0 0", "-1 0 0", "1 2.5 0", "1 NaN 0", "1 0 y"} {
		if m, err := all.parseMove(text); err == nil {
			t.Errorf("%q: %v, no error", text, m)
		}
	}
}

// What is read lies where the sliders go, whatever a page may send.
func FuzzParseMove(f *testing.F) {
	f.Add("7 1.5 1")
	f.Add("0 +1e-3 0x1p-1")
	f.Add("end")
	all := sliders{{Name: "γ", Max: 2, Step: 0.5}, Choice("energy", 0, "a", "b")}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := all.parseMove(text)
		if err != nil {
			return
		}
		if len(m.at) != 2 || m.number < 0 || !(m.at[0] >= 0 && m.at[0] <= 2) || !(m.at[1] >= 0 && m.at[1] <= 1) {
			t.Errorf("%q: %+v", text, m)
		}
		if words := all.text(m.at); !strings.Contains(words, "energy ") {
			t.Errorf("%q: %q", text, words)
		}
	})
}
