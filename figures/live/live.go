// Package live computes what the page live.html shows: Figure 1 and two moons on points that the reader moves (Training), and
// what one density layer does with two inputs (Layer). Requests and replies are JSON; see Serve.
package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"densityuncertainty/datasets"
)

// A request asks for one of three things; exactly one field must be set.
type request struct {
	Points *points   `json:"points,omitempty"` // replied to with a dataset
	Train  *training `json:"train,omitempty"`  // replied to with updates; the last one is Done
	Layer  *layer    `json:"layer,omitempty"`  // replied to with a layerMap
}

// points asks for the training data of Figure 1, drawn with a seed, or for what a preset makes of them.
type points struct {
	Seed   uint64 `json:"seed"`
	Preset string `json:"preset,omitempty"` // gap (or nothing), side, thin, outlier or moons
}

// data are the points, or an error for a preset that is not there.
func (p points) data() (dataset, error) {
	cubic := datasets.ToyCubic(examples, noiseStd, p.Seed)
	d := dataset{X: cubic.X, Y: cubic.Y}
	switch p.Preset {
	case "", "gap":
	case "side":
		d = dataset{}
		for i, x := range cubic.X {
			if x > 0 {
				d.X, d.Y = append(d.X, x), append(d.Y, cubic.Y[i])
			}
		}
	case "thin":
		for _, x := range []float64{-1.5, -0.9, -0.3, 0.3, 0.9, 1.5} {
			d.X, d.Y = append(d.X, x), append(d.Y, x*x*x)
		}
	case "outlier":
		d.X, d.Y = append(d.X, 0), append(d.Y, 60)
	case "moons":
		d = dataset{}
		var points []float64
		points, d.Labels = datasets.TwoMoons(moonsExamples, moonsNoise, p.Seed)
		for i := range d.Labels {
			d.X, d.Y = append(d.X, points[2*i]), append(d.Y, points[2*i+1])
		}
	default:
		return d, fmt.Errorf("live: there is no preset %q; want gap, side, thin, outlier or moons", p.Preset)
	}
	return d, nil
}

// A dataset is points (X[i], Y[i]), of two moons with their classes.
type dataset struct {
	X      []float64 `json:"x"`
	Y      []float64 `json:"y"`
	Labels []int     `json:"labels,omitempty"`
}

// The data of Figure 1. The paper states neither number; these are customary for the cubic.
const (
	examples = 100
	noiseStd = 3.0
)

// Serve carries out a request in JSON and sends each reply. Fields that it does not have are an error. Serve ends
// early, with the context's error, when ctx is cancelled.
func Serve(ctx context.Context, text []byte, send func(reply any)) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var r request
	if err := decoder.Decode(&r); err != nil {
		return fmt.Errorf("live: reading the request: %w", err)
	}
	switch {
	case r.Points != nil:
		data, err := r.Points.data()
		if err == nil {
			send(data)
		}
		return err
	case r.Train != nil:
		return r.Train.Run(ctx, func(u update) { send(u) })
	case r.Layer != nil:
		found, err := r.Layer.Fit(ctx)
		if err == nil {
			send(found)
		}
		return err
	}
	return errors.New("live: the request asks for nothing; set points, train or layer")
}
