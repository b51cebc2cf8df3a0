package main

import (
	"errors"
	"net/http"
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
	if got, err := pinned([]installer.PipReleaseInfo{file("other", strings.Repeat("0", 64)), file("this", cpuSHA256)}); err != nil || got != "this" {
		t.Errorf("got %q, want this, %v", got, err)
	}
	if _, err := pinned([]installer.PipReleaseInfo{file("other", strings.Repeat("0", 64)), {URL: "none"}}); err == nil || !strings.Contains(err.Error(), cpuSHA256) {
		t.Errorf("another file: error %v", err)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func TestFromIndex(t *testing.T) {
	var asked string
	client := http.Client{Transport: fromIndex{transport(func(r *http.Request) (*http.Response, error) {
		asked = r.URL.String()
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	})}}
	for address, want := range map[string]string{
		"https://files.example/this.whl": "https://files.example/this.whl",
		"../../packages/this.whl":        "https://pypi.org/packages/this.whl",
	} {
		response, err := client.Get(address)
		if err != nil || asked != want || response.Body.Close() != nil {
			t.Errorf("%s: asked for %s, want %s, %v", address, asked, want, err)
		}
	}
}
