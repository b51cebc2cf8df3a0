package experiment

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/environment/atomicfile"
)

// Set returns the prediction of a set, or an error that names the sets that there are.
func (p *Predictions) Set(name string) (*Prediction, error) {
	var names []string
	for i := range p.Sets {
		if p.Sets[i].Set == name {
			return &p.Sets[i], nil
		}
		names = append(names, p.Sets[i].Set)
	}
	part := ""
	if p.partial {
		part = ", and this store keeps only what tables and pictures need: run the experiment with another store for all"
	}
	return nil, fmt.Errorf("experiment: there are no predictions of a set %q; there are some of %s%s", name, strings.Join(names, ", "), part)
}

// Data loads the data of the experiment. It is an error where the predictions were read without their experiment.
func (p *Predictions) Data(ctx context.Context) (Data, error) {
	if p.experiment == nil {
		return Data{}, errors.New("experiment: these predictions were read from a file without their experiment, and so have no data; use Result.Predictions or Measure")
	}
	return p.experiment.Task.Data.Load(ctx, p.experiment.Split)
}

// NLL returns the mean negative log-likelihood of the answers, in nats, for any likelihood but Quantiles, for which it is
// an error. Pass Predictions.Unit as unit to get the NLL of real targets in the data's own units.
func (p *Prediction) NLL(unit float64) (float64, error) {
	if p.LogLikelihood == nil {
		return p.Prediction.NLL(p.Targets, p.Labels, unit)
	}
	columns := float64(len(p.Targets)) / float64(len(p.LogLikelihood)) // 0 for labels
	return -stat.Mean(p.LogLikelihood, nil) + columns*math.Log(unit), nil
}

// LogDensities are log p(y_i | x_i) of each example, the logarithm of the mean over the draws, [N], in the network's
// units and whatever the likelihood. It is an error for a set without answers, and for quantiles.
func (p *Prediction) LogDensities() ([]float64, error) {
	if p.LogLikelihood != nil {
		return p.LogLikelihood, nil
	}
	return p.Prediction.LogDensities(p.Targets, p.Labels)
}

// loss is what early stopping compares: the NLL, or of quantiles their pinball loss.
func (p *Prediction) loss() (float64, error) {
	if _, is := p.Likelihood.(likelihood.Quantiles); is {
		d, err := p.Predictive()
		if err != nil {
			return 0, err
		}
		return d.Pinball(p.Targets)
	}
	return p.NLL(1)
}

// FunctionQuantile is Mixture.FunctionQuantile. If a store keeps only some quantiles of the draws, it panics for others.
func (p *Prediction) FunctionQuantile(q float64) []float64 {
	if kept := p.PerExample[quantileName(q)]; kept != nil {
		return slices.Clone(kept)
	}
	if p.Mean == nil && p.PerExample["mean"] != nil {
		panic(fmt.Sprintf("experiment: of this prediction the store keeps the quantiles %v and not %v: run the experiment with another store for all draws", curveQuantiles, q))
	}
	return p.Mixture.FunctionQuantile(q)
}

// curveQuantiles are those that pictures of the function show.
var curveQuantiles = []float64{0.005, 0.025, 0.975, 0.995}

// quantileName names the curve of a quantile in PerExample, beside "mean" and "std".
func quantileName(q float64) string { return fmt.Sprint("q", q) }

// Moments are the mean and the standard deviation of the function at each input.
func (p *Prediction) Moments() (mean, std []float64) {
	if p.Mean == nil && p.PerExample["mean"] != nil {
		return slices.Clone(p.PerExample["mean"]), slices.Clone(p.PerExample["std"])
	}
	return p.Prediction.Moments()
}

// notFinite says where the first number is that is not finite; "" for none.
func (p *Prediction) notFinite() string {
	row, value := p.Prediction.NotFinite(max(len(p.Targets), len(p.Labels)), p.LogLikelihood)
	if row < 0 {
		return ""
	}
	return fmt.Sprintf("at row %d of the set %q a prediction is %g", row, p.Set, value)
}

// A file of predictions is a safetensors file, compressed by gzip, which has a checksum of it. A tensor is called by the number of
// its set and its column, such as "0/mean" (see column). Some committed files have logarithms of probabilities instead.

// predictionsExtension ends the names of files of predictions.
const predictionsExtension = ".safetensors.gz"

// predictionsFormat is the version of the format.
const predictionsFormat = "densityuncertainty predictions 3"

// The keys of a file's metadata.
const formatKey, headKey = "format", "predictions"

// predictionsHead is what of Predictions is no list of numbers.
type predictionsHead struct {
	Predictions
	// Partial says that some sets, draws or columns were left out of a committed store, which has what tables and pictures need.
	Partial bool      `json:"partial,omitempty"`
	Sets    []setHead `json:"sets"`
}

// setHead is what of a Prediction is no list of numbers.
type setHead struct {
	Name            string   `json:"name"`
	Width           int      `json:"width,omitempty"`
	LastConvolution int      `json:"last_convolution"`
	Layers          []string `json:"layers,omitempty"` // of the energies
}

// columns are the lists of numbers of a prediction, by their names in a file. Each is a *[]float64, a *[][]float64 or, for
// labels, a *[]int. Energies are copied to or from the given list.
func (p *Prediction) columns(energies *[][]float64) map[string]any {
	return map[string]any{
		"targets": &p.Targets, "labels": &p.Labels, "log_likelihood": &p.LogLikelihood, "probabilities": &p.Probabilities,
		"mutual_information": &p.MutualInformation, "outputs": &p.Outputs, "parameters": &p.Parameters, "mean": &p.Mean, "std": &p.Std,
		"noise_std": &p.NoiseStd, "energies": energies,
	}
}

// The name of probabilities that are kept as logarithms, and what the names of PerExample begin with.
const logProbabilities, extraPrefix = "log_probabilities", "extra/"

// encode writes the content of the file of predictions.
func (p *Predictions) encode(w io.Writer) error {
	z := gzip.NewWriter(w)
	return errors.Join(p.write(z), z.Close())
}

// write writes the file of predictions without compression.
func (p *Predictions) write(w io.Writer) error {
	head := predictionsHead{Predictions: *p, Partial: p.partial}
	named := map[string]*tensors.Tensor{}
	for i := range p.Sets {
		s := &p.Sets[i]
		h := setHead{Name: s.Set, Width: s.Width, LastConvolution: s.LastConvolution}
		var energies [][]float64
		for _, layer := range s.Energies {
			h.Layers, energies = append(h.Layers, layer.Layer), append(energies, layer.Mean)
		}
		head.Sets = append(head.Sets, h)
		columns := s.columns(&energies)
		for name, values := range s.PerExample {
			columns[extraPrefix+name] = &values
		}
		for name, list := range columns {
			if t := column(list); t != nil {
				named[fmt.Sprintf("%d/%s", i, name)] = t
			}
		}
	}
	head.Metrics = maps.Clone(p.Metrics)
	maps.DeleteFunc(head.Metrics, func(_ string, v float64) bool { return !finite(v) }) // which JSON does not have; the result does
	text, err := json.Marshal(head)
	if err != nil {
		return err
	}
	return checkpoint.EncodeTensors(w, named, map[string]string{formatKey: predictionsFormat, headKey: string(text)})
}

// rest marks the one class of a row whose probability is not stored: it is 1 minus the others. Logarithms of probabilities
// are never positive, so 1 is free.
const rest = 1

// exponentials turns rows of logarithms into rows of probabilities.
func exponentials(logs []float64, width int) []float64 {
	probabilities := make([]float64, len(logs))
	for i, log := range logs {
		if log != rest {
			probabilities[i] = math.Exp(log)
		}
	}
	for i, log := range logs {
		if log == rest {
			row := probabilities[i-i%width:][:width]
			row[i%width] = 1 - floats.Sum(row)
		}
	}
	return probabilities
}

// decodePredictions is the inverse of encode.
func decodePredictions(content []byte) (*Predictions, error) {
	unpacked, err := atomicfile.Unzipped(content)
	if err != nil {
		return nil, err
	}
	named, metadata, err := checkpoint.ParseTensors(unpacked)
	if err != nil {
		return nil, err
	}
	if metadata[formatKey] != predictionsFormat {
		return nil, fmt.Errorf("its format is %q, and this program reads %q", metadata[formatKey], predictionsFormat)
	}
	var head predictionsHead
	if err := json.Unmarshal([]byte(metadata[headKey]), &head); err != nil {
		return nil, err
	}
	p := &head.Predictions
	p.partial = head.Partial
	for i, h := range head.Sets {
		s := Prediction{Set: h.Name, Prediction: predict.Prediction{Width: h.Width, LastConvolution: h.LastConvolution}}
		var energies [][]float64
		var logs []float64
		columns := s.columns(&energies)
		columns[logProbabilities] = &logs
		for name, t := range named {
			name, is := strings.CutPrefix(name, fmt.Sprint(i, "/"))
			if !is {
				continue
			}
			list := columns[name] // nil, which takes nothing, for a column of another version
			var values []float64
			extra, is := strings.CutPrefix(name, extraPrefix)
			if is {
				list = &values
			}
			if err := setColumn(list, t); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if is {
				if s.PerExample == nil {
					s.PerExample = map[string][]float64{}
				}
				s.PerExample[extra] = values
			}
		}
		if logs != nil {
			s.Probabilities = exponentials(logs, s.Width)
		}
		for l, name := range h.Layers {
			s.Energies = append(s.Energies, predict.LayerEnergy{Layer: name, Mean: energies[l]})
		}
		p.Sets = append(p.Sets, s)
	}
	return p, nil
}

// diverge notes the first reason why the predictions are none.
func (p *Predictions) diverge(reason string) {
	p.Diverged, p.Reason = true, cmp.Or(p.Reason, reason)
}

// column returns the list that a *[]float64, *[][]float64 or *[]int points to as a tensor, [N] or [rows, columns]; nil
// for a nil list and for any other type. Rows must be equally long. Numbers become float32 if that loses nothing, as
// for outputs of networks, else float64; integers become int32.
func column(list any) *tensors.Tensor {
	values, dims := []float64(nil), []int(nil)
	switch list := list.(type) {
	case *[]int:
		if *list == nil {
			return nil
		}
		narrow := make([]int32, len(*list))
		for i, v := range *list {
			narrow[i] = int32(v)
		}
		return tensors.FromFlatDataAndDimensions(narrow, len(narrow))
	case *[]float64:
		values, dims = *list, []int{len(*list)}
	case *[][]float64:
		if *list != nil {
			values, dims = slices.Concat(*list...), []int{len(*list), len((*list)[0])}
		}
	}
	if values == nil {
		return nil
	}
	dtype := dtypes.Float32
	if slices.ContainsFunc(values, func(v float64) bool { return math.Float64bits(float64(float32(v))) != math.Float64bits(v) }) {
		dtype = dtypes.Float64
	}
	return params.FromFloat64(shapes.Make(dtype, dims...), values)
}

// setColumn sets the nil list that a pointer to one of these types points to from a tensor of column. It is an error
// if the tensor has another type or shape.
func setColumn(list any, t *tensors.Tensor) error {
	if labels, is := list.(*[]int); is {
		return tensors.ConstFlatData(t, func(narrow []int32) {
			for _, v := range narrow {
				*labels = append(*labels, int(v))
			}
		})
	}
	values, err := params.ToFloat64(t)
	if err != nil {
		return err
	}
	switch list := list.(type) {
	case *[]float64:
		*list = values
	case *[][]float64:
		if t.Rank() != 2 || t.Shape().Dim(1) == 0 {
			return fmt.Errorf("its shape is %s; want rows of numbers", t.Shape())
		}
		*list = slices.Collect(slices.Chunk(values, t.Shape().Dim(1)))
	}
	return nil
}
