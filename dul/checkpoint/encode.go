package checkpoint

import (
	"fmt"
	"io"

	"github.com/gomlx/gomlx/core/tensors"
)

// EncodeTensors is WriteTensors to a writer, such as one that compresses; ParseTensors reads what was written.
func EncodeTensors(w io.Writer, named map[string]*tensors.Tensor, metadata map[string]string) error {
	var list []namedTensor
	for name, t := range named {
		list = append(list, namedTensor{name, t})
	}
	if err := writeTensors(w, list, metadata); err != nil {
		return fmt.Errorf("checkpoint: encoding tensors: %w", err)
	}
	return nil
}
