package layertest_test

import (
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/layertest"
	"densityuncertainty/dul/layertest/fixtures"
)

// unwritten is a family that panics with a text.
type unwritten struct{}

func (unwritten) Dense(*model.Scope, *graph.Node, int) *graph.Node { panic("not written yet") }

func (unwritten) Conv(*model.Scope, *graph.Node, conv.Spec) *graph.Node { panic("not written yet") }

// A family that panics fails in every check, and each says whose panic it is.
func TestFamilyThatPanics(t *testing.T) {
	for want, checks := range map[string]func(t testing.TB){
		"Dense of layers of type layertest_test.unwritten: not written yet": func(t testing.TB) { layertest.Dense(t, unwritten{}) },
		"Conv of layers of type layertest_test.unwritten: not written yet":  func(t testing.TB) { layertest.Conv(t, unwritten{}) },
	} {
		err := layertest.Failures(checks)
		if err == nil {
			t.Fatal("nothing fails")
		}
		lines := strings.Split(err.Error(), "\n")
		for _, line := range lines {
			if !strings.HasSuffix(line, ": "+want) {
				t.Errorf("there is %q, want %q", line, want)
			}
		}
		if len(lines) < 10 {
			t.Errorf("%d checks fail, want all: %v", len(lines), err)
		}
	}
}

// What a function panics with is a failure of what builds a graph of it.
func TestFunctionsThatPanic(t *testing.T) {
	x := fixtures.Values{"x": fixtures.Zeros(1, 1)}
	for name, checks := range map[string]func(t testing.TB){
		"Evaluate": func(t testing.TB) {
			fixtures.Evaluate(t, dtypes.Float64, x, nil, func(*model.Scope, fixtures.Nodes) []*graph.Node { panic("not written yet") })
		},
		"Explore": func(t testing.TB) {
			fixtures.Explore(t, x, func(*model.Scope, fixtures.Nodes) *graph.Node { panic("not written yet") })
		},
		"Gradients": func(t testing.TB) {
			layertest.Gradients(t, x["x"], func(*model.Scope, *graph.Node) *graph.Node { panic("not written yet") })
		},
	} {
		if err := layertest.Failures(checks); err == nil || err.Error() != "building the graph: not written yet" {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

// A check may panic, and the others go on.
func TestChecksThatPanic(t *testing.T) {
	err := layertest.Failures(func(t testing.TB) {
		layertest.Checks{Moments: func(testing.TB, fixtures.Values) (mean, variance []float64) { panic("no moments") }}.Dense(t, additive{})
		panic("at the end")
	})
	const want = "moments/host: panic: no moments\nmoments/graph: panic: no moments\npanic: at the end"
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %q", err, want)
	}
}
