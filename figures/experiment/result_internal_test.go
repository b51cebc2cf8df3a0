package experiment

import (
	"errors"
	"math"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/results"
)

// A line of a later version is said to be one, whether it is of a later format or has a field that is not known.
func TestLinesOfNewerVersions(t *testing.T) {
	for name, line := range map[string]any{
		"a later format": map[string]any{"format": lineFormat + 1, "id": "x"},
		"a new field":    map[string]any{"format": lineFormat, "future": 1},
	} {
		t.Run(name, func(t *testing.T) {
			text := must.Get(seal(line))(t)
			if _, err := decodeResult(text[:len(text)-1]); !errors.Is(err, results.ErrNewer) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// Every changed bit of a line is noticed, but for one that a newline would follow.
func TestEveryBitOfALineCounts(t *testing.T) {
	r := Result{Group: "g", Metrics: map[string]float64{"nll": 1.5}, Backend: "go", Batched: 1}
	r.ID = idOf(r.Group, r.Split, r.Seed)
	line := must.Get(r.encode())(t)
	line = line[:len(line)-1]
	if got := must.Get(decodeResult(line))(t); got.Metrics["nll"] != 1.5 || got.ID != r.ID {
		t.Errorf("read back: %+v", got)
	}
	for i := range line {
		for bit := range 8 {
			line[i] ^= 1 << bit
			if _, err := decodeResult(line); err == nil {
				t.Errorf("bit %d of byte %d does not count", bit, i)
			}
			line[i] ^= 1 << bit
		}
	}
}

func TestResultsThatCannotBeKept(t *testing.T) {
	good := Result{Group: "g"}
	good.ID = idOf("g", 0, 0)
	for name, change := range map[string]func(r *Result){
		"NaN":              func(r *Result) { r.Metrics = map[string]float64{"nll": math.NaN()} },
		"another identity": func(r *Result) { r.Split = 1 },
	} {
		bad := good
		change(&bad)
		if _, err := bad.encode(); err == nil {
			t.Errorf("%s was kept", name)
		}
	}
	if _, err := good.encode(); err != nil {
		t.Error(err)
	}
}

// What a group line says of its parameters is compared by name.
func TestSameParameters(t *testing.T) {
	now := groupLine{Parameters: map[string]string{"a": "weight [1]", "b": "weight [2]"}}
	for _, c := range []struct {
		stored map[string]string
		want   string
	}{
		{nil, ""}, {map[string]string{"a": "weight [1]", "b": "weight [2]"}, ""},
		{map[string]string{"a": "weight [1]", "b": "weight [3]"}, `parameter b is "weight [2]", and in the stored results "weight [3]"`},
		{map[string]string{"a": "weight [1]", "b": "weight [2]", "c": ""}, "the network has 2 parameters, and in the stored results 3"},
	} {
		err := now.sameParameters(groupLine{Parameters: c.stored})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("the error is %v, want %q", err, c.want)
		}
	}
}
