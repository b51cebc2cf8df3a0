package main

import (
	"errors"
	"testing"
)

func TestRunRejectsWrongArguments(t *testing.T) {
	for _, args := range [][]string{nil, {"tpu"}, {"cpu", "folder", "more"}} {
		if err := run(args); !errors.Is(err, errUsage) {
			t.Errorf("%q: error %v, want errUsage", args, err)
		}
	}
}
