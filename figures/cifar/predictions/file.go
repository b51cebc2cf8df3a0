package predictions

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/float16"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"

	"densityuncertainty/dul/checkpoint"
)

// A file is a safetensors file, which other programs read too:
//
//	test.labels                     [N]     bytes
//	test.log_probabilities          [N, C]  float32; float16 of more than 32 classes
//	held_out.labels, .log_probabilities     of the held-out images, where they are given
//	ood.SET.log_probabilities               of a further set, where they are given
//	test.COLUMN, held_out.COLUMN, ood.SET.COLUMN    float32, those that are given
//
// with texts about the run, and the checksum of everything, in its metadata.
//
// Probabilities are stored by their logarithms. Most predictions are so certain that the largest probability itself
// is 1 in float32, and the order of those images, which AUROC is about, would be lost; log p is about -(1 - p), to a
// relative precision of 6e-8 at both ends. Of many classes, whose tables are large, the logarithms are rounded to half
// precision, 5e-4 of themselves, and the largest probability of an image is what the others leave to 1: rows sum to 1
// again, and the distance from 1 keeps the precision of the others.

// Extension is the ending of a file's name.
const Extension = ".safetensors"

// FileName is the name of the file of an experiment.
func FileName(experiment string) string { return experiment + Extension }

// Folder is the name of the folder of files beside the result lines.
const Folder = "predictions"

// In finds the file of an experiment in the folders of predictions of stores of result lines; found is false where it is
// in none.
func In(stores ...string) func(experiment string) (file string, found bool) {
	return func(experiment string) (file string, found bool) {
		for _, store := range stores {
			file := filepath.Join(store, Folder, FileName(experiment))
			if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
				return file, true
			}
		}
		return "", false
	}
}

const formatName = "densityuncertainty predictions 2"

// The keys of the metadata.
const (
	keyFormat     = "format"
	keyExperiment = "experiment"
	keyDataset    = "dataset"
	keyClasses    = "classes"
	keySamples    = "samples"
	keySets       = "sets"   // their names, separated by commas
	keyLayers     = "layers" // the same; missing for none
	keySum        = "sha256"
)

// The names of the tensors that are not columns.
const (
	testLabels, testProbs       = "test.labels", "test.log_probabilities"
	heldOutLabels, heldOutProbs = "held_out.labels", "held_out.log_probabilities"
)

// setProbs is the name of the tensor of a further set's probabilities.
func setProbs(set string) string { return setPrefix(set) + "log_probabilities" }

// ErrDamaged is wrapped by the error for a file that is not what Write wrote.
var ErrDamaged = errors.New("not a file of predictions, or a damaged one; restore it, or remove it and run the experiment again")

// Write stores p at path as a whole or not at all. What is stored is rounded to float32, probabilities by their
// logarithms, and those of more than 32 classes to half precision; the predicted classes stay what they are. Predictions that Validate rejects are refused.
func Write(path string, p *Predictions) error {
	if err := p.Validate(); err != nil {
		return fmt.Errorf("predictions: writing %s: %w", path, err)
	}
	var sets []string
	for _, set := range p.Others {
		sets = append(sets, set.Name)
	}
	metadata := map[string]string{
		keyFormat: formatName, keyExperiment: p.Experiment, keyDataset: p.Dataset,
		keyClasses: strconv.Itoa(p.Classes), keySamples: strconv.Itoa(p.Samples), keySets: strings.Join(sets, ","),
	}
	if p.Layers != nil {
		metadata[keyLayers] = strings.Join(p.Layers, ",")
	}
	logs := logProbabilities
	if p.Classes > fewClasses {
		logs = halfLogProbabilities
	}
	named := map[string]*tensors.Tensor{testLabels: bytesOf(p.Labels), testProbs: logs(p.Probs, p.Classes)}
	if p.HeldOutLabels != nil {
		named[heldOutLabels], named[heldOutProbs] = bytesOf(p.HeldOutLabels), logs(p.HeldOutProbs, p.Classes)
	}
	for _, set := range p.Others {
		if set.Probs != nil {
			named[setProbs(set.Name)] = logs(set.Probs, p.Classes)
		}
	}
	for _, c := range p.columns() {
		if *c.list != nil {
			named[c.name] = c.tensor()
		}
	}
	sum, err := checksum(named, metadata)
	if err != nil {
		return fmt.Errorf("predictions: writing %s: %w", path, err)
	}
	metadata[keySum] = sum
	if err := checkpoint.WriteTensors(path, named, metadata); err != nil {
		return fmt.Errorf("predictions: %w", err)
	}
	return nil
}

// Read returns the predictions in the file at path, which Validate accepts. Of a file that is damaged, cut short, or
// of another kind it says so with ErrDamaged; of one that cannot be read, why.
func Read(path string) (*Predictions, error) {
	named, metadata, err := checkpoint.ReadTensors(path)
	var p *Predictions
	if err == nil {
		p, err = decode(named, metadata)
	}
	var unreadable *fs.PathError
	switch {
	case errors.As(err, &unreadable):
		return nil, fmt.Errorf("predictions: %w", err)
	case err != nil:
		return nil, fmt.Errorf("predictions: reading %s: %w: %w", path, err, ErrDamaged)
	}
	return p, nil
}

// ReadOf is Read of a file that must be of an experiment, by its identity.
func ReadOf(path, experiment string) (*Predictions, error) {
	p, err := Read(path)
	if err == nil && p.Experiment != experiment {
		return nil, fmt.Errorf("predictions: those in %s are of experiment %s, not of %s", path, p.Experiment, experiment)
	}
	return p, err
}

// decode is the inverse of what Write does before it writes.
func decode(named map[string]*tensors.Tensor, metadata map[string]string) (*Predictions, error) {
	if metadata[keyFormat] != formatName {
		return nil, fmt.Errorf("its format is %q, want %q", metadata[keyFormat], formatName)
	}
	sum := metadata[keySum]
	delete(metadata, keySum)
	if want, err := checksum(named, metadata); err != nil || sum != want {
		return nil, errors.Join(errors.New("its content does not have the checksum that it names"), err)
	}
	p := &Predictions{Experiment: metadata[keyExperiment], Dataset: metadata[keyDataset]}
	for _, number := range []struct {
		key string
		to  *int
	}{{keyClasses, &p.Classes}, {keySamples, &p.Samples}} {
		var err error
		if *number.to, err = strconv.Atoi(metadata[number.key]); err != nil {
			return nil, fmt.Errorf("its number of %s is %q", number.key, metadata[number.key])
		}
	}
	if sets := metadata[keySets]; sets != "" {
		for name := range strings.SplitSeq(sets, ",") {
			p.Others = append(p.Others, Set{Name: name})
		}
	}
	if layers := metadata[keyLayers]; layers != "" {
		if p.Layers = strings.Split(layers, ","); len(p.Layers) > maxLayers {
			return nil, fmt.Errorf("it has %d layers, more than %d", len(p.Layers), maxLayers)
		}
		p.makeLayers()
	}
	// A tensor is known by its name and type.
	type tensor struct {
		name string
		of   dtypes.DType
	}
	known := make(map[tensor]func(*tensors.Tensor))
	labels := func(name string, to *[]int) {
		known[tensor{name, dtypes.Uint8}] = func(t *tensors.Tensor) { *to = intsOf(t) }
	}
	probs := func(name string, to *[]float64) {
		known[tensor{name, dtypes.Float32}] = func(t *tensors.Tensor) { *to = exponentials(t) }
		known[tensor{name, dtypes.Float16}] = func(t *tensors.Tensor) { *to = halfExponentials(t, p.Classes) }
	}
	labels(testLabels, &p.Labels)
	labels(heldOutLabels, &p.HeldOutLabels)
	probs(testProbs, &p.Probs)
	probs(heldOutProbs, &p.HeldOutProbs)
	for i := range p.Others {
		probs(setProbs(p.Others[i].Name), &p.Others[i].Probs)
	}
	for _, c := range p.columns() {
		known[tensor{c.name, dtypes.Float32}] = c.set
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		t := named[name]
		set := known[tensor{name, t.DType()}]
		if set == nil {
			return nil, fmt.Errorf("it has a tensor %q of type %s, which is unknown", name, t.DType())
		}
		set(t)
	}
	p.dropLayers()
	return p, p.Validate()
}

// energies are those of all sets.
func (p *Predictions) energies() []*Energies {
	list := []*Energies{&p.Energy, &p.HeldOut}
	for i := range p.Others {
		list = append(list, &p.Others[i].Energy)
	}
	return list
}

// makeLayers makes room for the energies of each layer.
func (p *Predictions) makeLayers() {
	for _, e := range p.energies() {
		e.Layers = make([][]float64, len(p.Layers))
	}
}

// dropLayers takes the room away again where the file had none of them.
func (p *Predictions) dropLayers() {
	for _, e := range p.energies() {
		if !slices.ContainsFunc(e.Layers, func(layer []float64) bool { return layer != nil }) {
			e.Layers = nil
		}
	}
}

// checksum is the SHA-256 of tensors and texts with their names, in hexadecimal digits.
func checksum(named map[string]*tensors.Tensor, metadata map[string]string) (string, error) {
	sum := sha256.New()
	add := func(text string) { writeTo(sum, []byte(strconv.Quote(text))) }
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		add(key)
		add(metadata[key])
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		add(name)
		add(named[name].Shape().String())
		if err := named[name].ConstBytes(func(data []byte) { writeTo(sum, data) }); err != nil {
			return "", fmt.Errorf("tensor %s: %w", name, err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func writeTo(sum hash.Hash, data []byte) {
	_, _ = sum.Write(data) // a hash's Write never fails
}

func bytesOf(labels []int) *tensors.Tensor {
	bytes := make([]uint8, len(labels))
	for i, label := range labels {
		bytes[i] = uint8(label)
	}
	return tensors.FromFlatDataAndDimensions(bytes, len(bytes))
}

func intsOf(t *tensors.Tensor) []int {
	bytes := tensors.MustCopyFlatData[uint8](t)
	labels := make([]int, len(bytes))
	for i, b := range bytes {
		labels[i] = int(b)
	}
	return labels
}

// logProbabilities are the logarithms of rows of probabilities. Where rounding makes a class before the predicted one
// as probable as that, it is taken down to the next number, since of equals the first is predicted.
func logProbabilities(probs []float64, classes int) *tensors.Tensor {
	logs := make([]float32, 0, len(probs))
	for row := range slices.Chunk(probs, classes) {
		top := slices.Index(row, slices.Max(row))
		largest := float32(math.Log(row[top]))
		for c, p := range row {
			log := float32(math.Log(p))
			if c < top && log >= largest {
				log = math.Nextafter32(largest, float32(math.Inf(-1)))
			}
			logs = append(logs, log)
		}
	}
	return tensors.FromFlatDataAndDimensions(logs, len(logs)/classes, classes)
}

func exponentials(t *tensors.Tensor) []float64 {
	values := floatsOf(t)
	for i, v := range values {
		values[i] = math.Exp(v)
	}
	return values
}

// fewClasses is the number of classes up to which probabilities are stored in single precision.
const fewClasses = 32

// halfLogProbabilities are logProbabilities in half precision, but for the largest of each row, which is the rest that
// the others leave to 1 as they are stored. Where that makes another class the predicted one, it is taken down to the next
// number, as there.
func halfLogProbabilities(probs []float64, classes int) *tensors.Tensor {
	logs := make([]float16.Float16, 0, len(probs))
	for row := range slices.Chunk(probs, classes) {
		top := slices.Index(row, slices.Max(row))
		stored, values := make([]float16.Float16, classes), make([]float64, classes)
		store := func(c int, log float16.Float16) { stored[c], values[c] = log, math.Exp(log.Float64()) }
		for c, p := range row {
			store(c, float16.FromFloat64(math.Log(p)))
		}
		for {
			complete(values, top)
			stored[top] = float16.FromFloat64(math.Log(values[top]))
			// The largest of those that are not behind the predicted class.
			first := top
			for c := range stored {
				behind := func(a, b float64) bool { return a < b || a == b && c > top }
				if c != top && !(behind(values[c], values[top]) && behind(stored[c].Float64(), stored[top].Float64())) &&
					(first == top || values[c] > values[first]) {
					first = c
				}
			}
			if first == top {
				break
			}
			store(first, float16.FromBits(stored[first].Bits()+1)) // the next one down, of negative numbers
		}
		logs = append(logs, stored...)
	}
	return tensors.FromFlatDataAndDimensions(logs, len(logs)/classes, classes)
}

// halfExponentials is the inverse of halfLogProbabilities.
func halfExponentials(t *tensors.Tensor, classes int) []float64 {
	logs := tensors.MustCopyFlatData[float16.Float16](t)
	values := make([]float64, len(logs))
	for i, log := range logs {
		values[i] = math.Exp(log.Float64())
	}
	for row := range slices.Chunk(values, max(classes, 1)) {
		complete(row, slices.Index(row, slices.Max(row)))
	}
	return values
}

// complete makes one probability of a row what the others leave to 1.
func complete(row []float64, top int) {
	row[top] = 0
	row[top] = 1 - floats.Sum(row)
}

func floatsOf(t *tensors.Tensor) []float64 {
	narrow := tensors.MustCopyFlatData[float32](t)
	values := make([]float64, len(narrow))
	for i, v := range narrow {
		values[i] = float64(v)
	}
	return values
}

// tensor is the column as it is stored.
func (c column) tensor() *tensors.Tensor {
	narrow := make([]float32, len(*c.list))
	for i, v := range *c.list {
		if c.kind == probability {
			v = math.Log(v)
		}
		narrow[i] = float32(v)
	}
	return tensors.FromFlatDataAndDimensions(narrow, len(narrow))
}

// set is the inverse of tensor.
func (c column) set(t *tensors.Tensor) {
	*c.list = floatsOf(t)
	if c.kind == probability {
		*c.list = exponentials(t)
	}
}
