package main

import (
	"strings"
	"testing"

	"densityuncertainty/environment"
)

func TestRun(t *testing.T) {
	for _, c := range []struct {
		name, backend string
		args          []string
		status        int
		stdout        string
		stderr        string
	}{
		{"backend", environment.GoSequential, nil, 0, environment.GoSequential, ""},
		{"no such backend", "none", nil, 1, "", `error: no compute backend: GOMLX_BACKEND="none"`},
		{"help", "", []string{"--help"}, 0, "usage: backend\n", ""},
		{"unknown flag", "", []string{"--nope"}, 2, "", `error: backend takes no argument "--nope"`},
		{"argument", "", []string{"go"}, 2, "", `error: backend takes no argument "go"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(environment.ConfigVariable, c.backend)
			var stdout, stderr strings.Builder
			status := run(c.args, &stdout, &stderr)
			if status != c.status || !strings.Contains(stdout.String(), c.stdout) || !strings.Contains(stderr.String(), c.stderr) || (stderr.String() == "") != (c.stderr == "") {
				t.Errorf("status %d, want %d\n%s\n%s", status, c.status, stdout.String(), stderr.String())
			}
		})
	}
}
