package checkpoint

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/gomlx/gomlx/core/tensors"

	"densityuncertainty/environment/atomicfile"
)

// WriteTensors writes named tensors, and texts about them, to one safetensors file, as a whole or not at all: for
// data beside models, in a form that other programs read.
func WriteTensors(path string, named map[string]*tensors.Tensor, metadata map[string]string) error {
	var list []namedTensor
	for name, t := range named {
		list = append(list, namedTensor{name, t})
	}
	err := atomicfile.Write(path, func(file io.Writer) error {
		w := bufio.NewWriterSize(file, bufferSize)
		return errors.Join(writeTensors(w, list, metadata), w.Flush())
	})
	if err != nil {
		return fmt.Errorf("checkpoint: writing tensors: %w", err)
	}
	return nil
}

// ReadTensors reads the file at path that WriteTensors or another program wrote. The format has no checksum: that
// the numbers are those that were written is for the caller to find out.
func ReadTensors(path string) (named map[string]*tensors.Tensor, metadata map[string]string, err error) {
	list, metadata, _, err := readModel(path)
	if err != nil {
		return nil, nil, fmt.Errorf("checkpoint: reading tensors of %s: %w", path, err)
	}
	return byName(list), metadata, nil
}

// ParseTensors is ReadTensors of the content of a file.
func ParseTensors(content []byte) (named map[string]*tensors.Tensor, metadata map[string]string, err error) {
	list, metadata, err := readTensors(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, nil, fmt.Errorf("checkpoint: reading tensors: %w", err)
	}
	return byName(list), metadata, nil
}

func byName(list []namedTensor) map[string]*tensors.Tensor {
	named := make(map[string]*tensors.Tensor, len(list))
	for _, t := range list {
		named[t.name] = t.tensor
	}
	return named
}
