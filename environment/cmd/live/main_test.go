//go:build !js

package main

import (
	"errors"
	"strings"
	"testing"
)

// full is a writer without room.
type full struct{}

var errFull = errors.New("no room")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestServe(t *testing.T) {
	var out strings.Builder
	if err := serve(strings.NewReader(`{"layer": {"x": [1, 0], "y": [0, 1], "gamma": 0, "beta": 4, "side": 2, "extent": 1}}`), &out); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasSuffix(got, `"std":[2,2,2,2]}`+"\n") || strings.Count(got, "\n") != 1 {
		t.Errorf("the reply is %q", got)
	}
	if err := serve(strings.NewReader(`{}`), &out); err == nil {
		t.Error("a request for nothing was carried out")
	}
	if err := serve(strings.NewReader(`{"points": {}}`), full{}); !errors.Is(err, errFull) {
		t.Errorf("%v, want %v", err, errFull)
	}
}
