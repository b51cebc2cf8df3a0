package cifar

import (
	"context"
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
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/environment/atomicfile"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/experiment/methods"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// The trained networks that are part of the program: a file for each, NAME.safetensors, and the list of them.
//
//go:embed networks
var networkFiles embed.FS

// The folder of networks, their list, and the ending of their files.
const networksFolder, networksList, networkExtension = "networks", "networks.json", ".safetensors"

// A listedNetwork is a trained network that is part of the program.
type listedNetwork struct {
	Name       string             `json:"name"`       // of the method
	SHA256     string             `json:"sha256"`     // of the file
	Experiment string             `json:"experiment"` // the identity of the experiment that trained it
	Metrics    map[string]float64 `json:"metrics"`    // of the experiment's result
	nets.Standardization
}

// exported are the methods whose networks are part of the program, each by its experiment of Processor with seed 0.
var exported = []experiment.Method{methods.Deterministic, methods.Rank1, methods.Density, methods.DensityConstant}

// exportedExperiment is the experiment whose network is part of the program.
func exportedExperiment(m experiment.Method) experiment.Experiment {
	return list(Chosen(Processor), ten, 1, m)[0]
}

// listed lists the trained networks in a folder of a file system.
func listed(files fs.FS, folder string) ([]listedNetwork, error) {
	text, err := fs.ReadFile(files, path.Join(folder, networksList))
	var all []listedNetwork
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	return all, err
}

// A Classifier is a trained network that is part of the program.
type Classifier struct {
	// Origin says how the network was made and what it scored.
	Origin string
	// Progress, if not nil, hears how predictions go, from 0 to 1 for each set of images.
	Progress func(done float64, note string)

	model           *nets.Model
	standardization nets.Standardization
	energies        bool
}

// Trained is one of the trained networks that are part of the program, by its name, such as "density": a classifier of
// CIFAR-10 with ResNet-14, trained by the preset Processor. An error says which networks there are (fs.ErrNotExist), or
// what is wrong with the file.
func Trained(backend compute.Backend, name string) (*Classifier, error) {
	return trainedIn(networkFiles, backend, name)
}

// trainedIn is Trained with the folder of networks of a file system.
func trainedIn(files fs.FS, backend compute.Backend, name string) (*Classifier, error) {
	c, err := readNetwork(files, backend, name)
	if err != nil {
		return nil, fmt.Errorf("cifar: the trained network %q: %w", name, err)
	}
	return c, nil
}

func readNetwork(files fs.FS, backend compute.Backend, name string) (*Classifier, error) {
	all, err := listed(files, networksFolder)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(n listedNetwork) bool { return n.Name == name })
	if i < 0 {
		var names []string
		for _, n := range all {
			names = append(names, n.Name)
		}
		return nil, fmt.Errorf("there is none of that name, there are %q: %w", names, fs.ErrNotExist)
	}
	n := all[i]
	content, err := fs.ReadFile(files, path.Join(networksFolder, name+networkExtension))
	if err != nil {
		return nil, err
	}
	if sum := sumOf(content); sum != n.SHA256 {
		return nil, fmt.Errorf("its file has the SHA-256 %s, but the list %s", sum, n.SHA256)
	}
	named, _, err := checkpoint.ParseTensors(content)
	if err != nil {
		return nil, err
	}
	k := slices.IndexFunc(exported, func(m experiment.Method) bool { return methods.NameOf(m) == name })
	if k < 0 {
		return nil, errors.New("there is no such method")
	}
	e := exportedExperiment(exported[k])
	if e.ID() != n.Experiment {
		return nil, fmt.Errorf("the list has it as the network of the experiment %s, and the preset makes %s of it; export it again", n.Experiment, e.ID())
	}
	network, err := e.Task.Network.Over(e.Method.Layers)
	if err != nil {
		return nil, err
	}
	m, err := nets.New(backend, network, e.Task.Likelihood, e.Seed)
	if err == nil {
		err = checkShapes(m, named)
	}
	if err == nil {
		err = checkpoint.SetTensors(m.Store, named)
	}
	if err != nil {
		return nil, err
	}
	d := e.Task.Data.(Images)
	origin := fmt.Sprintf("%s: %d epochs of %s images of %s, seed %d; on %s test images accuracy %.1f %%, NLL %.3f, ECE %.3f", name, e.Recipe.Epochs, d.trainedOn(),
		titleOf(d.Name), e.Seed, d.testedOn(), 100*n.Metrics[results.MetricAccuracy], n.Metrics[results.MetricNLL], n.Metrics[results.MetricECE])
	return &Classifier{Origin: origin, model: m, standardization: n.Standardization, energies: e.Recipe.LogLikelihoodScale > 0}, nil
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

// Predict predicts images, which may be of classes that the network does not know, by the mean of so many draws, together
// with the energies if it has any.
func (c *Classifier) Predict(ctx context.Context, images *datasets.Images, draws int) (*Predictions, error) {
	if images.N == 0 {
		return nil, fmt.Errorf("cifar: there are no images of %s to predict", images.Name)
	}
	batch := deviceBatch
	if c.model.Host != nil {
		batch = hostBatch
	}
	options := predict.Options{Samples: draws, BatchSize: min(batch, images.N), Energies: c.energies}
	if c.Progress != nil {
		options.Progress = func(done, total int) { c.Progress(float64(done)/float64(total), "predicting "+images.Name) }
	}
	said, err := predict.Sample(ctx, c.model, pixels(images, c.standardization), options)
	if err != nil {
		return nil, fmt.Errorf("cifar: predicting %s: %w", images.Name, err)
	}
	names, err := datasets.CIFARClasses(c.model.Likelihood.Outputs())
	return &Predictions{Images: images, Names: names, Prediction: *said}, err
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// versionKey is the key of the metadata of a kept network with the version of the program that trained it.
const versionKey = "version"

// ExportNetworks makes the folder of trained networks that are part of the program, figures/cifar/networks, of those that
// an experiment.Engine kept in a folder and of their results. It returns the names of the networks, and the names of those
// that are missing there or have no result. It is an error if a network is of another version of the program than its
// result, since it is then of another training, and if the folder would lose a network that it has now.
func ExportNetworks(x *tables.Index, kept, to string) (names, missing []string, err error) {
	return exportNetworks(x, kept, to, func(e experiment.Experiment) (nets.Standardization, error) {
		d, err := e.Task.Data.Load(context.Background(), e.Split)
		if err != nil {
			return nets.Standardization{}, err
		}
		return d.Train.Inputs.(nets.Pixels).Standardization, nil
	})
}

// exportNetworks is ExportNetworks, which asks for the standardization of the training images.
func exportNetworks(x *tables.Index, kept, to string, standardization func(e experiment.Experiment) (nets.Standardization, error)) (names, missing []string, err error) {
	fail := func(err error) ([]string, []string, error) {
		return nil, nil, fmt.Errorf("cifar: exporting networks to %s: %w", to, err)
	}
	before, err := listed(os.DirFS(to), ".")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail(err)
	}
	var all []listedNetwork
	files := map[string][]byte{}
	for _, m := range exported {
		name, e := methods.NameOf(m), exportedExperiment(m)
		r, has := x.Find(e)
		content, err := os.ReadFile(filepath.Join(kept, e.ID()+networkExtension))
		if !has || r.Diverged || errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, name)
			continue
		}
		var metadata map[string]string
		if err == nil {
			_, metadata, err = checkpoint.ParseTensors(content)
		}
		if err != nil {
			return fail(fmt.Errorf("%s: %w", name, err))
		}
		if trained := metadata[versionKey]; trained != r.Version {
			return fail(fmt.Errorf("the network of %v is of version %q and its result of %q, so they are of two trainings; name the folder of networks of that run", e, trained, r.Version))
		}
		standard, err := standardization(e)
		if err != nil {
			return fail(err)
		}
		files[name+networkExtension] = content
		shown := map[string]float64{}
		for _, metric := range []string{results.MetricAccuracy, results.MetricNLL, results.MetricECE} {
			shown[metric] = r.Metrics[metric]
		}
		all = append(all, listedNetwork{name, sumOf(content), e.ID(), shown, standard})
		names = append(names, name)
	}
	if len(all) == 0 {
		return nil, missing, nil
	}
	for _, n := range before {
		if slices.Contains(missing, n.Name) {
			return fail(fmt.Errorf("it has the network of %s, which is missing in %s or has no result; the folder stays as it is: remove it first, or name another", n.Name, kept))
		}
	}
	text, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return fail(err)
	}
	files[networksList] = append(text, '\n')
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fail(err)
	}
	for file, content := range files {
		if err := atomicfile.WriteBytes(filepath.Join(to, file), content); err != nil {
			return fail(err)
		}
	}
	return names, missing, nil
}
