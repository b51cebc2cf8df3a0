package fetch_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"densityuncertainty/datasets/fetch"
)

// Get a file whose checksum is published; a server on this machine stands in for
// the publisher's.
func ExampleFetcher_Get() {
	publisher := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "1 2 3\n")
	}))
	defer publisher.Close()
	cache, err := os.MkdirTemp("", "example-*")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(cache)

	f := &fetch.Fetcher{
		Cache:    cache,
		Progress: func(p fetch.Progress) { fmt.Printf("%s: %d of %d bytes\n", p.Name, p.Done, p.Total) },
	}
	path, err := f.Get(context.Background(), fetch.File{
		Name:   "numbers.txt",
		URL:    publisher.URL + "/numbers.txt",
		SHA256: "1def07dbe06eeb097aafec8a40329937cd20c93a83634b8221ea2b41a894310c",
	})
	fmt.Println(filepath.Base(path), err)
	// Output:
	// numbers.txt: 0 of 6 bytes
	// numbers.txt: 6 of 6 bytes
	// numbers.txt <nil>
}
