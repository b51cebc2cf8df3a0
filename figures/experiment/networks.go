package experiment

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/spec"
	"densityuncertainty/figures/trained"
)

// The keys of the metadata of a trained network, beside those of package trained: the digest of its training, its number in an
// ensemble, and the identity of its experiment.
const trainingKey, memberKey, experimentKey = "training", "member", "experiment"

// NetworkFile is the name of the file in Engine.Networks with the trained network. An ensemble has a file
// for each member, from 0.
func (e Experiment) NetworkFile(member int) string { return e.Method.networkFile(e.ID(), member) }

// networkFile is NetworkFile for an experiment with this identity, which takes time to find for your own code.
func (m Method) networkFile(id string, member int) string {
	if m.members() == 1 {
		return id + trained.Extension
	}
	return fmt.Sprintf("%s-%d%s", id, member, trained.Extension)
}

// checkKept says which networks Engine.Networks cannot keep, and which curves Engine.Curves, before anything is trained.
func (r *run) checkKept() error {
	var all errorList
	for _, kept := range []struct {
		folder, what string
		file         func(e *entry) string
	}{
		{r.Networks, "network", func(e *entry) string { return e.Method.networkFile(e.id, 0) }},
		{r.Curves, "learning curve", func(e *entry) string { return e.id + csvExtension }},
	} {
		if kept.folder == "" {
			continue
		}
		err := os.MkdirAll(kept.folder, 0o777)
		all.need(err == nil, "making the folder of Engine.Networks or Curves: %w", err)
		for _, g := range r.groups {
			e := g.list[0]
			all.need(e.Method.Program == nil, "the %s of %s on %s cannot be kept: a %T trains the networks; leave Engine.Networks and Curves out, or run the others alone", kept.what, e.Method.Name, e.Task.Name, e.Method.Program)
		}
		for _, e := range r.order {
			if e.result == nil || e.result.Diverged {
				continue
			}
			if _, err := os.Stat(filepath.Join(kept.folder, kept.file(e))); err != nil {
				r.note(fmt.Sprintf("%v is in the store already, and is not trained again to keep its %s; use another store for that", e, kept.what))
			}
		}
	}
	if err := all.err(); err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	return nil
}

// keepNetworks keeps the trained networks, each in a file of its own.
func (j *job) keepNetworks(context.Context) error {
	if j.run.Networks == "" {
		return nil
	}
	for i, e := range j.list {
		if e.predictions.Diverged {
			continue
		}
		for member, training := range e.trainings(j.info.Version) {
			m, err := j.network(i*j.members() + member)
			if err == nil {
				metadata := map[string]string{experimentKey: e.id, memberKey: fmt.Sprint(member), trained.VersionKey: j.info.Version, trainingKey: training}
				err = trained.Save(filepath.Join(j.run.Networks, e.Method.networkFile(e.id, member)), m, e.Task.Likelihood, e.data.scale(), metadata)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// trainings are digests of what decides each trained network of an experiment, and not what only its predictions depend on: the
// number of draws, the batch, and the sets. They are "" where networks cannot predict again what they did in their own run.
func (e *entry) trainings(version string) []string {
	tree, digests := map[string]map[string]any{}, make([]string, e.Method.members())
	if e.Method.Program != nil || e.Method.IsProcess() || e.Recipe.SharedNoise || json.Unmarshal(e.group.line.Experiment, &tree) != nil {
		return digests
	}
	delete(tree["Task"], "Data")
	delete(tree["code"], "data")
	used := e.data.all()[:1] // to train on
	if e.Recipe.EarlyStopping {
		used = e.data.all()[:2] // and held out
	} else {
		for _, field := range []string{"Samples", "PredictBatch", "Coherent"} {
			delete(tree["Recipe"], field)
		}
	}
	text, err := json.Marshal(tree)
	data := Digest(used...)
	for member := 0; member < len(digests) && err == nil; member++ {
		digests[member] = spec.Digest(fmt.Appendln(text, version, data, spec.TextOf(e.data.likelihood), e.networkSeed(member)))
	}
	return digests
}

// keptNetworks are the files in Engine.Networks by the digests of their networks' trainings; see entry.trainings.
func (r *run) keptNetworks() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	entries, _ := os.ReadDir(r.Networks) // none without a folder
	kept := map[string]string{}
	for _, entry := range entries {
		path := filepath.Join(r.Networks, entry.Name())
		if _, seen := r.trainings[path]; !seen && filepath.Ext(path) == trained.Extension {
			metadata, _ := checkpoint.ReadMetadata(path) // nil for another kind of file
			r.trainings[path] = metadata[trainingKey]
		}
		kept[r.trainings[path]] = path
	}
	delete(kept, "")
	return kept
}

// keptIn are the files with the networks of an experiment, of each member, among keptNetworks; nil if one of them is missing.
func (e *entry) keptIn(kept map[string]string, version string) (files []string) {
	if len(kept) == 0 {
		return nil
	}
	for _, training := range e.trainings(version) {
		if files = append(files, kept[training]); kept[training] == "" {
			return nil
		}
	}
	return files
}

// readKept makes the models of an experiment's members from files.
func (j *job) readKept(context.Context) error {
	e := j.first()
	of := e.Experiment
	of.Task.Likelihood = j.likelihood()
	for member, file := range j.kept {
		named, _, err := checkpoint.ReadTensors(file)
		if err != nil {
			return err
		}
		m, err := of.Model(j.backend, member, named)
		if err != nil {
			return err
		}
		j.models = append(j.models, m)
	}
	j.run.note(fmt.Sprintf("%v is predicted by networks that were trained before, in %s", e, j.run.Networks))
	return nil
}

// Curve reads the learning curve of an experiment from the folder Engine.Curves; one that was not trained has no epochs.
// Losses are means over all experiments that were trained in one graph. Held-out losses use Recipe.Samples draws. They
// are NaN without held-out examples, in pretraining and, if there are more than 100 epochs, in epochs without a score.
func (e Experiment) Curve(folder string) ([]train.Epoch, error) {
	return train.ReadCurve(filepath.Join(folder, e.ID()+csvExtension))
}
