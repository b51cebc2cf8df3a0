package uci

import (
	"testing"

	"gonum.org/v1/plot/vg"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/report"
)

// Lines end with an arrowhead at the height where they leave, and begin again where they come back.
func TestDrawBelow(t *testing.T) {
	p := report.New("Up to 2", "x", "y")
	p.Y.Max = 2.2
	for _, curve := range []curve{
		{x: []float64{0, 1, 2, 3}, y: []float64{1, 2, 0, 1}, Mark: report.Mark{Colour: report.Blue}},     // stays, and touches
		{x: []float64{0, 1, 2, 3}, y: []float64{0, 4, 1, 1.5}, Mark: report.Mark{Colour: report.Orange}}, // comes back
		{x: []float64{0, 1, 2, 3}, y: []float64{5, 4, 4, 1}, Mark: report.Mark{Colour: report.Green}},    // begins above
		{x: []float64{2, 3}, y: []float64{3, 4}, Mark: report.Mark{Colour: report.Red}},                  // is not seen
	} {
		must.Do(t, curve.drawBelow(p, 2))
	}
	f := report.Single("leaving", p, vg.Points(150), vg.Points(120))
	f.Caption = "Lines that leave."
	figtest.Golden(t)(f, nil)
}
