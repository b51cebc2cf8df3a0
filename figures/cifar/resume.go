package cifar

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/nets"
	"densityuncertainty/environment/atomicfile"
)

// predictedSets are the predictions of a run, which on a processor take as long as some epochs: it keeps those of each
// set of images, and stopped and begun again it has them. Numbers come out as if it had not been stopped, since the
// state of the noise is kept, too.
type predictedSets struct {
	folder  string // "" keeps nothing
	network []byte // checksum
	members []*nets.Model
	next    int // set
	note    func(string)
}

// A predictedSet is the content of a file.
type predictedSet struct {
	Images     string   // name
	Network    []byte   // by which they were predicted
	Noise      [][]byte // of each member, afterwards
	Prediction imagePrediction
}

// predictedBefore are the sets that the run has predicted already.
func (x *experimentRun) predictedBefore(folder string) (*predictedSets, error) {
	p := &predictedSets{members: x.classifier.members, note: func(text string) { x.note(fmt.Sprintf("%v: %s", x.experiment, text)) }}
	if folder == "" {
		return p, nil
	}
	p.folder = filepath.Join(folder, "predicted")
	if err := os.MkdirAll(p.folder, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder for predicted sets: %w", err)
	}
	for _, member := range p.members {
		sum, err := checkpoint.Sum(member.Store)
		if err != nil {
			return nil, err
		}
		p.network = append(p.network, sum...)
	}
	return p, nil
}

// orNow returns the prediction of the next set as it is kept; one that is not, or is of other images or another network,
// is made now.
func (p *predictedSets) orNow(images *datasets.Images, predict func() (imagePrediction, error)) (imagePrediction, error) {
	if p.folder == "" {
		return predict()
	}
	file := filepath.Join(p.folder, fmt.Sprintf("set-%d.gob", p.next))
	p.next++
	before, err := readPredictedSet(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		p.note(fmt.Sprintf("%s cannot be read, its images are predicted again: %v", file, err))
	case before.Images == images.Name && bytes.Equal(before.Network, p.network) && len(before.Noise) == len(p.members):
		for i, member := range p.members {
			if err := member.SetNoiseState(before.Noise[i]); err != nil {
				return imagePrediction{}, fmt.Errorf("%s: %w", file, err)
			}
		}
		return before.Prediction, nil
	}
	now := predictedSet{Images: images.Name, Network: p.network}
	if now.Prediction, err = predict(); err != nil {
		return now.Prediction, err
	}
	for _, member := range p.members {
		state, err := member.NoiseState()
		if err != nil {
			return now.Prediction, err
		}
		now.Noise = append(now.Noise, state)
	}
	err = atomicfile.Write(file, func(w io.Writer) error { return gob.NewEncoder(w).Encode(now) })
	if err != nil {
		p.note(fmt.Sprintf("the run goes on, but stopped it would predict these images again: %v", err))
	}
	return now.Prediction, nil
}

func readPredictedSet(file string) (set predictedSet, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return set, err
	}
	return set, gob.NewDecoder(bytes.NewReader(content)).Decode(&set)
}
