package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/gomlx/go-xla/installer"
)

func TestRunRejectsWrongArguments(t *testing.T) {
	for _, args := range [][]string{nil, {"tpu"}, {"cpu", "folder", "more"}} {
		if err := run(args); !errors.Is(err, errUsage) {
			t.Errorf("%q: error %v, want errUsage", args, err)
		}
	}
}

func TestPinned(t *testing.T) {
	file := func(address, hash string) installer.PipReleaseInfo {
		return installer.PipReleaseInfo{URL: address, Digests: map[string]string{"sha256": hash}}
	}
	for address, want := range map[string]string{
		"https://files.example/this.whl": "https://files.example/this.whl",
		"../../packages/this.whl":        "https://pypi.org/packages/this.whl",
	} {
		if got, err := pinned([]installer.PipReleaseInfo{file("other", strings.Repeat("0", 64)), file(address, cpuSHA256)}); err != nil || got != want {
			t.Errorf("got %q, want %q, %v", got, want, err)
		}
	}
	if _, err := pinned([]installer.PipReleaseInfo{file("other", strings.Repeat("0", 64)), {URL: "none"}}); err == nil || !strings.Contains(err.Error(), cpuSHA256) {
		t.Errorf("another file: error %v", err)
	}
}
