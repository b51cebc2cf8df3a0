package cifar

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"densityuncertainty/dul/checkpoint"
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

// networkFile is the name of the file of an experiment's network; of an ensemble that of a member, from 0 on.
func networkFile(e results.Experiment, member, members int) string {
	if members == 1 {
		return e.ID() + ".safetensors"
	}
	return fmt.Sprintf("%s-member-%d.safetensors", e.ID(), member)
}

// keepNetworks writes the trained networks to the runner's folder for them, if it has one.
func (x *experimentRun) keepNetworks() error {
	if x.Networks == "" {
		return nil
	}
	if err := os.MkdirAll(x.Networks, 0o755); err != nil {
		return fmt.Errorf("making the folder for networks: %w", err)
	}
	c := x.classifier
	for i, member := range c.members {
		metadata := map[string]string{keyFormat: networkFormat, keyVersion: x.Machine.Info.Version}
		for key, value := range map[string]any{keyExperiment: x.experiment, keyStandard: c.Standardization} {
			text, err := json.Marshal(value)
			if err != nil {
				return fmt.Errorf("describing the network: %w", err)
			}
			metadata[key] = string(text)
		}
		if err := checkpoint.Export(member.Store, filepath.Join(x.Networks, networkFile(x.experiment, i, len(c.members))), metadata); err != nil {
			return err
		}
	}
	return nil
}
