package report

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"
	"gonum.org/v1/plot"

	"densityuncertainty/environment/must"
)

// The area of a histogram is the share of the values that are on the axis.
func TestOutline(t *testing.T) {
	p := New("", "", "")
	must.Do(t, outline(p, "", []float64{0, 0.5, 0.5, 1, 3}, 0, 2, 4, Blue))
	if p.X.Min != 0 || p.X.Max != 2 || p.Y.Max != 0.8 {
		t.Errorf("from %g to %g, and %g high", p.X.Min, p.X.Max, p.Y.Max)
	}
	for _, size := range []float64{1e300, math.MaxFloat64} {
		if Histogram(p, "", []float64{size, size}, 4, Blue) == nil || Histogram(p, "", []float64{-size, size}, 4, Blue) == nil && size > 1e300 {
			t.Errorf("a histogram of values of %g was drawn", size)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		marker    plot.Ticker
		low, high float64
		want      string
	}{
		{roundTicks{}, 0, 1, "0.0 0.5 1.0"},
		{roundTicks{}, 2.2, 6.7, "3 4 5 6"},
		{roundTicks{}, 3.558, 3.570, "3.560 3.565 3.570"},
		{roundTicks{}, -127, 133, "-100 0 100"},
		{roundTicks{}, -6, 6, "-5 0 5"},
		{roundTicks{}, 0.3, 0.5, "0.3 0.4 0.5"},
		{roundTicks{}, -0.004, 0.004, "-0.004 -0.002 0.000 0.002 0.004"},
		{roundTicks{}, 1, 1, ""},
		{powerTicks{}, -2.5, 4.2, "0.01 1 100 10000"},
		{powerTicks{}, -7, 7, "1e-6 0.001 1 1000 1e6"},
		{powerTicks{}, 0.1, 3.9, "10 100 1000"},
		{powerTicks{}, -0.2, 0.6, "1 2"},
		{powerTicks{}, -0.4, 0.8, "0.5 1 2 5"},
		{powerTicks{}, 2, 2.5, "100 200"},
		{logTicks{}, 2.1, 4.9, "2.5 3.0 3.5 4.0 4.5"},
		{logTicks{}, 5.5, 9.5, "6 7 8 9"},
		{logTicks{}, 1.01, 1.05, "1.01 1.02 1.03 1.04 1.05"},
		{logTicks{}, 1.5, 4, "2 3 4"},
		{logTicks{}, 2.2, 4.8, "2.5 3.0 3.5 4.0 4.5"},
	} {
		t.Run(fmt.Sprintf("%T %v to %v", c.marker, c.low, c.high), func(t *testing.T) {
			var labels []string
			for _, tick := range c.marker.Ticks(c.low, c.high) {
				labels = append(labels, tick.Label)
			}
			if got := strings.Join(labels, " "); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// A threshold has the asked fraction of the test set beyond it, on the strange side.
func TestThresholdOfASeparation(t *testing.T) {
	for _, c := range []struct {
		rate      float64
		threshold float64
		want      []string
	}{
		{0, 4, []string{"in, FPR 0%", "out, TPR 33%"}},
		{0.25, 3, []string{"in, FPR 25%", "out, TPR 67%"}},
		{1, 1, []string{"in, FPR 75%", "out, TPR 100%"}}, // beyond the smallest
	} {
		s := Separation{Inside: Sample{"in", []float64{3, 1, 4, 2}}, Outside: []Sample{{"out", []float64{2, 3.5, 7}}}}
		if got := s.threshold(c.rate); got != c.threshold {
			t.Errorf("%+v: threshold %g", c, got)
		}
		for _, s.Log = range []bool{false, true} {
			svg := must.Get(must.Get(OODThreshold("n", []Separation{s}, c.rate))(t).Bytes(SVG))(t)
			for _, want := range c.want {
				if !bytes.Contains(svg, []byte(want)) {
					t.Errorf("%+v: the legend lacks %q", c, want)
				}
			}
		}
	}
}

// The live page has the colours of the pictures.
func TestLivePageHasTheColours(t *testing.T) {
	style := string(must.Get(os.ReadFile("../../environment/pages/live/live.css"))(t))
	for name, method := range map[string]string{"density": "Density Uncertainty", "mfvi": "MFVI", "rank1": "Rank-1 BNN", "mcdropout": "MC Dropout", "ensemble": "Deep Ensemble"} {
		r, g, b, _ := MarkOf(method, 0).Colour.RGBA()
		if want := fmt.Sprintf(" --%s: #%02x%02x%02x;", name, r>>8, g>>8, b>>8); !strings.Contains(style, want) {
			t.Errorf("%s: no %q in live.css", method, want)
		}
	}
}

// On a symmetric logarithmic axis 0 is in the middle of -10 and 10, and ticks are the powers of ten on both sides.
func TestSymmetricLogAxis(t *testing.T) {
	p := New("", "", "")
	SymmetricLogAxis(&p.Y, 0.1)
	var labels []string
	for _, tick := range p.Y.Tick.Marker.Ticks(-10, 1) {
		labels = append(labels, tick.Label)
	}
	if want := []string{"0", "0.1", "-0.1", "1", "-1", "-10"}; !slices.Equal(labels, want) {
		t.Errorf("ticks %q, want %q", labels, want)
	}
	at := func(v float64) float64 { return p.Y.Scale.Normalize(-10, 10, v) }
	if at(0) != 0.5 || at(-10) != 0 || at(10) != 1 || !scalar.EqualWithinAbs(at(10)-at(1), at(1)-at(0.1), 0.02) {
		t.Errorf("places %g %g %g %g", at(0), at(0.1), at(1), at(10))
	}
}
