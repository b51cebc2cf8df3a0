package experiment

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/environment/atomicfile"
)

// A keptSet is a set that a run predicted before it was stopped. On a processor predictions of images take as long as
// some epochs.
type keptSet struct {
	Network []byte   `json:"network"` // checksum of the parameters
	Noise   [][]byte `json:"noise"`   // of each model, where it was afterwards
	Found   []byte   `json:"found"`   // Predictions of this set alone
}

// keptSet returns set number k as an earlier process predicted it by these networks, or else as predict does now, and
// keeps that. Either way the noise is afterwards where predict leaves it. Networks that are replicas predict faster
// than files are written, and keep nothing.
func (f *fit) keptSet(k int, predict func() ([]Prediction, error)) ([]Prediction, error) {
	if f.folder == "" || f.group.replicas {
		return predict()
	}
	file := filepath.Join(f.folder, fmt.Sprintf("set-%d.json", k))
	var now keptSet
	for _, m := range f.models {
		sum, err := checkpoint.Sum(m.Store)
		if err != nil {
			return nil, err
		}
		now.Network = append(now.Network, sum...)
	}
	found, err := f.readKeptSet(file, now.Network)
	if found != nil || err != nil {
		return found, err
	}
	if found, err = predict(); err != nil {
		return nil, err
	}
	for _, m := range f.models {
		state, err := m.NoiseState()
		if err != nil {
			return nil, err
		}
		now.Noise = append(now.Noise, state)
	}
	content, err := (&Predictions{Sets: found}).encode()
	if err != nil {
		return nil, err
	}
	now.Found = content
	line, err := seal(now)
	if err == nil {
		err = atomicfile.WriteBytes(file, line)
	}
	if err != nil {
		f.note(fmt.Sprintf("%v: the run goes on, but stopped it would predict this set again: %v", f.first(), err))
	}
	return found, nil
}

// readKeptSet reads a set that was predicted before; nil where there is none of these networks.
func (f *fit) readKeptSet(file string, network []byte) ([]Prediction, error) {
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var before keptSet
	if err == nil {
		before, err = unseal[keptSet](bytes.TrimSuffix(content, []byte("\n")))
	}
	var p *Predictions
	if err == nil {
		p, err = decodePredictions(before.Found)
	}
	if err != nil {
		f.note(fmt.Sprintf("%s cannot be read, and its set is predicted again: %v", file, err))
		return nil, nil
	}
	if !bytes.Equal(before.Network, network) || len(before.Noise) != len(f.models) {
		return nil, nil
	}
	for i, m := range f.models {
		if err := m.SetNoiseState(before.Noise[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return p.Sets, nil
}
