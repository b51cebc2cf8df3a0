package baselines_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/environment/backendtest"
)

// The values and gradients of all families are tested against recorded cases,
// finite differences and closed-form moments in dul/internal/fixtures; here are
// the properties that a user of the package sees.
func TestFamilies(t *testing.T) {
	backend := backendtest.Open(t)
	for _, c := range []struct {
		name          string
		layers        nets.Layers
		hasKL, random bool
	}{
		{"Deterministic", baselines.Deterministic{}, false, false},
		{"MFVI", baselines.MFVI{}, true, true},
		{"Rank1", baselines.Rank1{}, true, true},
		{"VDropout", baselines.VDropout{}, true, true},
		{"MCDropout", baselines.MCDropout{Rate: 0.5}, false, true},
		{"density", dul.Density{}, true, true},
	} {
		for _, dims := range [][]int{{5, 4}, {2, 5, 4}} {
			t.Run(fmt.Sprintf("%s/%v", c.name, dims), func(t *testing.T) {
				hasKL := false
				exec, err := model.NewExec(backend, model.NewStore(), func(s *model.Scope, x *graph.Node) *graph.Node {
					y := c.layers.Dense(s.In("layer"), x, 3)
					kl := stochastic.TallyOf(x.Graph()).KL
					if hasKL = kl != nil; hasKL {
						kl.AssertDims(append(slices.Clone(dims[:len(dims)-2]), 1, 1)...)
					}
					return y
				})
				if err != nil {
					t.Fatal(err)
				}
				x := make([]float32, product(dims))
				for i := range x {
					x[i] = float32(i%7) - 3
				}
				input := tensors.FromFlatDataAndDimensions(x, dims...)
				var outputs [][]float32
				for range 2 {
					y, err := exec.Call1(input)
					if err != nil {
						t.Fatal(err)
					}
					if want := append(slices.Clone(dims[:len(dims)-1]), 3); !slices.Equal(y.Shape().Dimensions, want) {
						t.Fatalf("the output has shape %v, want %v", y.Shape(), want)
					}
					flat, err := tensors.CopyFlatData[float32](y)
					if err != nil {
						t.Fatal(err)
					}
					outputs = append(outputs, flat)
				}
				if hasKL != c.hasKL {
					t.Errorf("the layer has a KL: %t, want %t", hasKL, c.hasKL)
				}
				if differ := !slices.Equal(outputs[0], outputs[1]); differ != c.random {
					t.Errorf("two executions differ: %t, want %t", differ, c.random)
				}
			})
		}
	}
}

func product(dims []int) int {
	size := 1
	for _, d := range dims {
		size *= d
	}
	return size
}

// A network of any family is built in the same way.
func ExampleMFVI() {
	backend, err := compute.NewWithConfig("go:ops_sequential")
	if err != nil {
		fmt.Println(err)
		return
	}
	network := nets.MLP{Layers: baselines.MFVI{}, Widths: []int{50, 50}}
	y, err := model.CallOnce(backend, model.NewStore(), func(s *model.Scope, x *graph.Node) *graph.Node {
		return network.Apply(s, x, 1)
	}, [][]float32{{1, 2, 3}, {4, 5, 6}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(y.Shape())
	// Output: (Float32)[2, 1]
}
