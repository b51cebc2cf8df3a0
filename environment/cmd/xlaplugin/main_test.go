package main

import (
	"net/http"
	"testing"
)

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
