package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"densityuncertainty/dul/train"
)

// An Epoch is a point of a learning curve.
type Epoch struct {
	Model       int // which member of an ensemble, from 0; members that are trained in one graph are one model
	Epoch       int // from 1, with those of the pretraining
	Pretraining bool
	// Losses are means over the steps of the epoch, and over all experiments that are trained in one graph.
	train.Losses
}

// The first line of a file of Engine.Curves, and the format of the others.
const (
	curveHead = "model,epoch,pretraining,objective,nll,kl,log_likelihood,accuracy\n"
	curveLine = "%d,%d,%t,%g,%g,%g,%g,%g\n"
)

func curveFile(folder, id string) string { return filepath.Join(folder, id+".csv") }

// Curve reads the learning curve of an experiment from the folder Engine.Curves, model by model. A training that was killed
// and resumed has written some epochs twice; the last counts. An experiment that was not trained has no epochs.
func Curve(folder string, e Experiment) ([]Epoch, error) {
	file := curveFile(folder, e.ID())
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("experiment: reading a learning curve: %w", err)
	}
	last, line := map[[2]int]Epoch{}, 0
	for text := range strings.Lines(string(content)) {
		if line++; line == 1 && text == curveHead {
			continue
		}
		var p Epoch
		if _, err := fmt.Sscanf(text, curveLine, &p.Model, &p.Epoch, &p.Pretraining, &p.Total, &p.NLL, &p.KL, &p.LogLikelihood, &p.Accuracy); err != nil {
			return nil, fmt.Errorf("experiment: the learning curve %s, line %d: %w; remove the line", file, line, err)
		}
		last[[2]int{p.Model, p.Epoch}] = p
	}
	return slices.SortedFunc(maps.Values(last), func(a, b Epoch) int { return cmp.Or(a.Model-b.Model, a.Epoch-b.Epoch) }), nil
}
