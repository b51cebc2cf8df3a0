package experiment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gomlx/compute"

	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/nets"
)

// networkFormat is the format of the files of trained networks: safetensors files with the parameters and running
// statistics of one network.
const networkFormat = "densityuncertainty network 1"

// The keys of the metadata of a trained network; formatKey is a further one.
const experimentKey, memberKey = "experiment", "member"

// VersionKey is the key under which the metadata of a trained network have the version of the program that trained it.
const VersionKey = "version"

// NetworkFile is the name of the file in Engine.Networks with the trained network of an experiment. An ensemble has a file
// for each member, from 0.
func NetworkFile(e Experiment, member int) string {
	if e.Method.members() == 1 {
		return e.ID() + ".safetensors"
	}
	return fmt.Sprintf("%s-%d.safetensors", e.ID(), member)
}

// LoadNetwork makes a trained network from the content of its file (see NetworkFile), to predict with it and to look into
// it. member counts the networks of an ensemble, and is else 0. metadata are the texts of the file; see VersionKey. A file
// of another experiment or member is an error. If the file has other parameters than the network, the first use of the
// model is an error.
func LoadNetwork(backend compute.Backend, e Experiment, member int, content []byte) (m *nets.Model, metadata map[string]string, err error) {
	fail := func(err error) (*nets.Model, map[string]string, error) {
		return nil, nil, e.problem(fmt.Errorf("loading network %d: %w", member, err))
	}
	if err := errors.Join(e.Check(), keepsNetworks(e, false)); err != nil {
		return fail(err)
	}
	named, metadata, err := checkpoint.ParseTensors(content)
	if err != nil {
		return fail(err)
	}
	for _, of := range []struct{ key, want string }{{formatKey, networkFormat}, {experimentKey, e.ID()}, {memberKey, fmt.Sprint(member)}} {
		if metadata[of.key] != of.want {
			return fail(fmt.Errorf("the file has the %s %q, want %q", of.key, metadata[of.key], of.want))
		}
	}
	network, err := e.Task.Network.Over(e.Method.Layers)
	if err != nil {
		return fail(err)
	}
	if m, err = nets.New(backend, network, e.Task.Likelihood, e.networkSeed(member)); err != nil {
		return fail(err)
	}
	if err := checkpoint.SetTensors(m.Store, named); err != nil {
		return fail(err)
	}
	return m, metadata, nil
}

// keepsNetworks says why the trained networks of an experiment cannot be kept; nil if they can.
func keepsNetworks(e Experiment, replicas bool) error {
	switch {
	case e.Task.Decision != nil:
		return fmt.Errorf("the networks of %s on %s cannot be kept: its Decision trains them again and again", e.Method.Name, e.Task.Name)
	case e.Method.Process != nil:
		return fmt.Errorf("the network of %s cannot be kept: its Gaussian process needs the training data", e.Method.Name)
	case replicas:
		return fmt.Errorf("the networks of %s on %s cannot be kept: they are trained as replicas of one graph", e.Method.Name, e.Task.Name)
	}
	return nil
}

// checkNetworks says which networks Engine.Networks cannot keep, before anything is trained.
func (r *run) checkNetworks() error {
	if r.Networks == "" {
		return nil
	}
	var all problems
	for _, g := range r.plan.groups {
		all.add(keepsNetworks(g.list[0].Experiment, g.replicas))
	}
	err := os.MkdirAll(r.Networks, 0o755)
	all.need(err == nil, "making the folder for networks: %w", err)
	if err := all.err(); err != nil {
		return fmt.Errorf("experiment: Engine.Networks: %w; leave Networks out, or run the others alone", err)
	}
	for _, e := range r.plan.order {
		if e.result != nil {
			r.note(fmt.Sprintf("%v is in the store already, so that no network of it is kept now", e))
		}
	}
	return nil
}

// keepNetworks keeps the trained networks of the fit's only experiment.
func (f *fit) keepNetworks() error {
	if f.Networks == "" || f.diverged[0] != "" {
		return nil
	}
	for member, m := range f.models {
		metadata := map[string]string{formatKey: networkFormat, experimentKey: f.list[0].id, memberKey: fmt.Sprint(member), VersionKey: f.info.Version}
		if err := checkpoint.Export(m.Store, filepath.Join(f.Networks, NetworkFile(f.first(), member)), metadata); err != nil {
			return fmt.Errorf("keeping the trained network: %w", err)
		}
	}
	return nil
}
