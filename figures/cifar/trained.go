package cifar

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/environment/atomicfile"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

// networkFormat is that of the files of trained networks: safetensors files with the parameters and running statistics
// of one network, and in their metadata what else a classifier needs.
const networkFormat = "densityuncertainty image classifier 1"

// The keys of the metadata of a trained network.
const (
	keyFormat     = "format"
	keyExperiment = "experiment" // results.Experiment as JSON: how the network was made
	keyStandard   = "standard"   // the channels' means and deviations, nets.Standardization as JSON
	keyVersion    = "version"    // of the program that trained it
)

// NetworkFile is the name of the file in which a run keeps its trained network, given a folder for networks (see
// Runner); of an ensemble that of a member, from 0 on.
func NetworkFile(e results.Experiment, member, members int) string {
	if members == 1 {
		return e.ID() + ".safetensors"
	}
	return fmt.Sprintf("%s-member-%d.safetensors", e.ID(), member)
}

// keepNetworks writes the trained networks to the runner's folder for them, if it has one, with the version of the program
// that trained them.
func (x *experimentRun) keepNetworks(version string) error {
	if x.Networks == "" {
		return nil
	}
	if err := os.MkdirAll(x.Networks, 0o755); err != nil {
		return fmt.Errorf("making the folder for networks: %w", err)
	}
	c := x.classifier
	for i, member := range c.members {
		metadata := map[string]string{keyFormat: networkFormat, keyVersion: version}
		for key, value := range map[string]any{keyExperiment: x.experiment, keyStandard: c.Standardization} {
			text, err := json.Marshal(value)
			if err != nil {
				return fmt.Errorf("describing the network: %w", err)
			}
			metadata[key] = string(text)
		}
		if err := checkpoint.Export(member.Store, filepath.Join(x.Networks, NetworkFile(x.experiment, i, len(c.members))), metadata); err != nil {
			return err
		}
	}
	return nil
}

// LoadClassifier reads a trained network from a file that a run kept ("reproduce run --networks"), to predict with it
// and to look into it; an ensemble from those of all its members. The methods are those that there may be, none for all
// of package methods. An error says what of a file is missing, of another shape, or not from such a run, and names
// networks with a Gaussian process, which cannot be loaded: they need their training data.
func LoadClassifier(backend compute.Backend, files []string, list ...methods.Method) (*Classifier, error) {
	var c *Classifier
	for i, file := range files {
		if slices.Contains(files[:i], file) {
			return nil, fmt.Errorf("cifar: loading networks: %s is named twice", file)
		}
		named, metadata, err := checkpoint.ReadTensors(file)
		if err == nil {
			c, err = c.with(backend, named, metadata, list)
		}
		if err != nil {
			return nil, fmt.Errorf("cifar: loading the network in %s: %w", file, err)
		}
	}
	if c == nil || len(c.members) != c.Method.Networks() {
		return nil, fmt.Errorf("cifar: loading a network of %d files; give one, or of an ensemble one for each member", len(files))
	}
	return c, nil
}

// with is the classifier with a further member, of the tensors and texts of a file; c may be nil.
func (c *Classifier) with(backend compute.Backend, named map[string]*tensors.Tensor, metadata map[string]string, list methods.List) (*Classifier, error) {
	if metadata[keyFormat] != networkFormat {
		return nil, fmt.Errorf("its format is %q, want %q", metadata[keyFormat], networkFormat)
	}
	var e results.Experiment
	var standard nets.Standardization
	if err := errors.Join(json.Unmarshal([]byte(metadata[keyExperiment]), &e), json.Unmarshal([]byte(metadata[keyStandard]), &standard)); err != nil {
		return nil, fmt.Errorf("reading how it was made: %w", err)
	}
	if len(standard.Mean) != datasets.ImageChannels || len(standard.Std) != datasets.ImageChannels {
		return nil, fmt.Errorf("it has means and deviations of %d and %d channels, want %d", len(standard.Mean), len(standard.Std), datasets.ImageChannels)
	}
	if len(list) == 0 {
		list = methods.All()
	}
	m, has := list.Named(e.Method)
	if !has {
		return nil, fmt.Errorf("it is of the method %q; there are %s", e.Method, strings.Join(list.Names(), ", "))
	}
	if m.Process != nil {
		return nil, fmt.Errorf("it is of the method %s, whose Gaussian process needs its training data", e.Method)
	}
	p, err := ProtocolOf(e)
	if err != nil {
		return nil, err
	}
	_, network, err := p.recipe(m)
	if err != nil {
		return nil, err
	}
	classes, err := datasets.CIFARClasses(p.classes())
	if err != nil {
		return nil, err
	}
	if c == nil {
		c = &Classifier{Method: m, Classes: classes, Standardization: standard, Origin: e.String(), progress: func(float64, string) {}}
	}
	if c.Method.Name != m.Name || len(c.Classes) != len(classes) {
		return nil, fmt.Errorf("it is of the method %s with %d classes, the first file of %s with %d", m.Name, len(classes), c.Method.Name, len(c.Classes))
	}
	if c.Origin != e.String() {
		return nil, fmt.Errorf("it is of another run than the first file: %s, and that of %s", e, c.Origin)
	}
	member, err := nets.New(backend, network, likelihood.Categorical{Classes: len(classes)}, methods.Seed(e, len(c.members)))
	if err != nil {
		return nil, err
	}
	if err := checkShapes(member, named); err != nil {
		return nil, err
	}
	if err := checkpoint.SetTensors(member.Store, named); err != nil {
		return nil, err
	}
	c.members = append(c.members, member)
	return c, nil
}

// checkShapes says which variable of a network a file lacks, has in another shape, or has too much.
func checkShapes(m *nets.Model, named map[string]*tensors.Tensor) error {
	want, err := m.VariableShapes(datasets.ImageChannels, datasets.ImageSide, datasets.ImageSide)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		switch t := named[strings.TrimPrefix(name, model.RootScopePath)]; {
		case t == nil:
			return fmt.Errorf("the network has variable %s, the file has not", name)
		case !t.Shape().Equal(want[name]):
			return fmt.Errorf("variable %s has the shape %s in the file, want %s", name, t.Shape(), want[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if _, has := want[model.RootScopePath+name]; !has {
			return fmt.Errorf("the file has variable %s, the network has not", model.RootScopePath+name)
		}
	}
	return nil
}

// The trained networks that are part of the program: a file for each, and the list of them.
//
//go:embed networks
var networkFiles embed.FS

// networksList is the name of the list, NetworksFolder/networks.json.
const networksList = "networks.json"

// A trainedNetwork is a trained network that is part of the program.
type trainedNetwork struct {
	Name   string         `json:"name"`   // of the method
	SHA256 string         `json:"sha256"` // of its file, Name.safetensors
	Line   results.Result `json:"line"`   // the result of the run that trained it
}

// String says how the network was made and what it scored, on one line.
func (n trainedNetwork) String() string {
	e := n.Line.Experiment
	return fmt.Sprintf("%s: %d epochs of %s images of %s, seed %d; on %s test images accuracy %.1f %%, NLL %.3f, ECE %.3f", n.Name, e.Epochs, trainedOn(e),
		title(e.Dataset), e.Seed, orAll(e.TestN), 100*n.Line.Metrics[results.MetricAccuracy], n.Line.Metrics[results.MetricNLL], n.Line.Metrics[results.MetricECE])
}

// listed lists the trained networks in a folder of a file system.
func listed(files fs.FS, folder string) ([]trainedNetwork, error) {
	text, err := fs.ReadFile(files, path.Join(folder, networksList))
	var list []trainedNetwork
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	return list, err
}

// Trained is one of the trained networks that are part of the program, by its name, such as "density": a classifier of
// CIFAR-10 with ResNet-14, trained by the protocol processor. An error says which there are (fs.ErrNotExist), or what of
// the file is not as the list says.
func Trained(backend compute.Backend, name string) (*Classifier, error) {
	return trainedIn(networkFiles, backend, name)
}

// trainedIn is Trained with the folder networks of a file system.
func trainedIn(files fs.FS, backend compute.Backend, name string) (*Classifier, error) {
	fail := func(err error) (*Classifier, error) {
		return nil, fmt.Errorf("cifar: the trained network %q: %w", name, err)
	}
	list, err := listed(files, "networks")
	if err != nil {
		return fail(err)
	}
	i := slices.IndexFunc(list, func(n trainedNetwork) bool { return n.Name == name })
	if i < 0 {
		var names []string
		for _, n := range list {
			names = append(names, n.Name)
		}
		return fail(fmt.Errorf("there is none of that name, there are %q: %w", names, fs.ErrNotExist))
	}
	content, err := fs.ReadFile(files, path.Join("networks", name+".safetensors"))
	if err != nil {
		return fail(err)
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != list[i].SHA256 {
		return fail(fmt.Errorf("its file has the SHA-256 %x, but the list %s", sum, list[i].SHA256))
	}
	named, metadata, err := checkpoint.ParseTensors(content)
	if err != nil {
		return fail(err)
	}
	var e results.Experiment
	if err := json.Unmarshal([]byte(metadata[keyExperiment]), &e); err != nil {
		return fail(fmt.Errorf("reading how it was made: %w", err))
	}
	if e.Method != name || e.ID() != list[i].Line.ID {
		return fail(fmt.Errorf("its file is of experiment %s, %v, but the list has the result of %s", e.ID(), e, list[i].Line.ID))
	}
	var none *Classifier
	c, err := none.with(backend, named, metadata, nil)
	if err != nil {
		return fail(err)
	}
	c.Origin = list[i].String()
	return c, nil
}

// exported are the methods whose networks are part of the program, each by its run of the protocol processor with seed 0.
var exported = methods.List{methods.Deterministic, methods.Rank1, methods.Density, methods.DensityConstant}

// ExportNetworks makes the folder of trained networks that are part of the program, figures/cifar/networks, of those that
// runs of the protocol processor kept in a folder and of their result lines. It returns the names of the networks, and
// of those that are missing there or in the lines. A network of another version than its line, which is of another
// training then, is an error, and so is one that the folder has now and would have no more.
func ExportNetworks(lines []results.Result, kept, to string) (names, missing []string, err error) {
	fail := func(err error) ([]string, []string, error) {
		return nil, nil, fmt.Errorf("cifar: exporting networks to %s: %w", to, err)
	}
	var before []trainedNetwork
	if before, err = listed(os.DirFS(to), "."); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail(err)
	}
	list := []trainedNetwork{}
	files := make(map[string][]byte)
	for _, m := range exported {
		i := slices.IndexFunc(lines, func(line results.Result) bool {
			e := line.Experiment
			return e.Scale == results.Processor && e.Method == m.Name && e.Seed == 0 && e.Dataset == CIFAR10 && e.Options["decay"] == string(methods.DecayAll) &&
				hasChosen(e) && !line.Diverged
		})
		if i < 0 {
			missing = append(missing, m.Name)
			continue
		}
		content, err := os.ReadFile(filepath.Join(kept, NetworkFile(lines[i].Experiment, 0, 1)))
		if errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, m.Name)
			continue
		}
		if err != nil {
			return fail(err)
		}
		_, metadata, err := checkpoint.ParseTensors(content)
		if err != nil {
			return fail(fmt.Errorf("%s: %w", m.Name, err))
		}
		if trained := metadata[keyVersion]; trained != lines[i].Version {
			return fail(fmt.Errorf("the network of %v is of version %q and its line of %q, so they are of two trainings; name the folder of networks of that run",
				lines[i].Experiment, trained, lines[i].Version))
		}
		files[filepath.Join(to, m.Name+".safetensors")] = content
		sum := sha256.Sum256(content)
		list = append(list, trainedNetwork{Name: m.Name, SHA256: hex.EncodeToString(sum[:]), Line: lines[i]})
		names = append(names, m.Name)
	}
	if len(list) == 0 {
		return nil, missing, nil
	}
	for _, n := range before {
		if slices.Contains(missing, n.Name) {
			return fail(fmt.Errorf("it has the network of %s, which is missing in %s or has no line; the folder stays as it is: remove it first, or name another", n.Name, kept))
		}
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fail(err)
	}
	for file, content := range files {
		if err := atomicfile.WriteBytes(file, content); err != nil {
			return fail(err)
		}
	}
	text, err := json.MarshalIndent(list, "", "\t")
	if err != nil {
		return fail(err)
	}
	if err := atomicfile.WriteBytes(filepath.Join(to, networksList), append(text, '\n')); err != nil {
		return fail(err)
	}
	return names, missing, nil
}
