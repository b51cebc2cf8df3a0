package report

import (
	"bytes"
	"math"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"densityuncertainty/environment/must"
)

func ExampleShow() {
	p := New("the loss", "epoch", "nats")
	Show(p)
	Show(plot.New())
	// Output:
	// [picture: the loss: nats over epoch]
	// [picture: a plot]
}

func TestShow(t *testing.T) {
	p := plot.New()
	p.Y.Label.Text = "nats"
	p.Add(must.Get(plotter.NewLine(plotter.XYs{{X: 0, Y: 1}, {X: 1, Y: 2}}))(t))
	if got := describe(p); got != "nats over x" {
		t.Errorf("described as %q", got)
	}
	if svg := must.Get(showable(p).Bytes(SVG))(t); !bytes.Contains(svg, []byte("nats")) {
		t.Errorf("the drawing has no label: %.300s", svg)
	}
	bad := plot.New()
	bad.X.Min, bad.X.Max = math.NaN(), 1
	for name, p := range map[string]*plot.Plot{"nil": nil, "NaN": bad} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			Show(p)
		})
	}
}
