package train

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"densityuncertainty/environment/atomicfile"
)

// An Epoch is a point of a learning curve.
type Epoch struct {
	Model       int // which of several models, from 0, such as the members of an ensemble
	Epoch       int // from 1; the epochs of pretraining count too
	Pretraining bool
	// Losses are means over the steps of the epoch, and over the replicas that have not diverged.
	Losses
	// HeldOut is the negative log-likelihood of held-out examples after the epoch, or the loss of quantiles; NaN if unknown.
	HeldOut float64
}

const (
	// CurveHead is the first line of a learning curve's CSV file.
	CurveHead = "model,epoch,pretraining,objective,nll,kl,log_likelihood,accuracy,held_out\n"
	// curveLine is the format of the others. Older files lack the last column.
	curveLine = "%d,%d,%t,%g,%g,%g,%g,%g,%g\n"
)

// Append appends the epoch to a CSV file, which it creates if necessary, in a time that does not depend on its length.
func (e Epoch) Append(path string) error {
	line := fmt.Sprintf(curveLine, e.Model, e.Epoch, e.Pretraining, e.Total, e.NLL, e.KL, e.LogLikelihood, e.Accuracy, e.HeldOut)
	if _, missing := os.Stat(path); missing != nil {
		line = CurveHead + line
	}
	return atomicfile.Append(path, []byte(line))
}

// ReadCurve returns the epochs of a file of Append, sorted by model and epoch. Of repeated epochs, as after a run that was
// killed and resumed, the last counts. A missing file has no epochs; an invalid line is an error.
func ReadCurve(path string) ([]Epoch, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading a learning curve: %w", err)
	}
	last, line := map[[2]int]Epoch{}, 0
	for text := range strings.Lines(string(content)) {
		if line++; line == 1 && strings.HasPrefix(text, "model,") {
			continue
		}
		if strings.Count(text, ",") == 7 { // an older file
			text = strings.TrimSuffix(text, "\n") + ",NaN\n"
		}
		var p Epoch
		if _, err := fmt.Sscanf(text, curveLine, &p.Model, &p.Epoch, &p.Pretraining, &p.Total, &p.NLL, &p.KL, &p.LogLikelihood, &p.Accuracy, &p.HeldOut); err != nil {
			return nil, fmt.Errorf("the learning curve %s, line %d: %w; remove the line", path, line, err)
		}
		last[[2]int{p.Model, p.Epoch}] = p
	}
	return slices.SortedFunc(maps.Values(last), func(a, b Epoch) int { return cmp.Or(a.Model-b.Model, a.Epoch-b.Epoch) }), nil
}
