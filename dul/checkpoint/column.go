package checkpoint

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"densityuncertainty/dul/params"
)

// Column returns the list that a *[]float64, *[][]float64 or *[]int points to as a tensor, [N] or [rows, columns]; nil
// for a nil list and for any other type. Rows must be equally long. Numbers become float32 if that loses nothing, as
// for outputs of networks, else float64; integers become int32.
func Column(list any) *tensors.Tensor {
	values, dims := []float64(nil), []int(nil)
	switch list := list.(type) {
	case *[]int:
		if *list == nil {
			return nil
		}
		narrow := make([]int32, len(*list))
		for i, v := range *list {
			narrow[i] = int32(v)
		}
		return tensors.FromFlatDataAndDimensions(narrow, len(narrow))
	case *[]float64:
		values, dims = *list, []int{len(*list)}
	case *[][]float64:
		if *list != nil {
			values, dims = slices.Concat(*list...), []int{len(*list), len((*list)[0])}
		}
	}
	if values == nil {
		return nil
	}
	dtype := dtypes.Float32
	if slices.ContainsFunc(values, func(v float64) bool { return math.Float64bits(float64(float32(v))) != math.Float64bits(v) }) {
		dtype = dtypes.Float64
	}
	return params.FromFloat64(shapes.Make(dtype, dims...), values)
}

// SetColumn sets the nil list that a pointer to one of these types points to from a tensor of Column. It is an error
// if the tensor has another type or shape.
func SetColumn(list any, t *tensors.Tensor) error {
	if labels, is := list.(*[]int); is {
		return tensors.ConstFlatData(t, func(narrow []int32) {
			for _, v := range narrow {
				*labels = append(*labels, int(v))
			}
		})
	}
	values, err := params.ToFloat64(t)
	if err != nil {
		return err
	}
	switch list := list.(type) {
	case *[]float64:
		*list = values
	case *[][]float64:
		if t.Rank() != 2 || t.Shape().Dim(1) == 0 {
			return fmt.Errorf("its shape is %s; want rows of numbers", t.Shape())
		}
		*list = slices.Collect(slices.Chunk(values, t.Shape().Dim(1)))
	}
	return nil
}
