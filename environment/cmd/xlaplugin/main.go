// Xlaplugin installs XLA's plugin for NVIDIA GPUs, checked against the Python package index:
//
//	go run ./environment/cmd/xlaplugin cuda13   from Turing on (compute capability 7.5)
//	go run ./environment/cmd/xlaplugin cuda12   for all, such as a Titan X, P100 or V100
//
// A second argument names a folder other than ~/.local/lib/go-xla, where programs look for the plugin.
package main

import (
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	"github.com/gomlx/go-xla/installer"
)

// jaxVersion is the release of JAX whose CUDA plugin is installed. PJRT, the
// interface between the two, admits plugins somewhat newer than go-xla.
const jaxVersion = "0.11.0"

// fromIndex fetches what mirrors of the Python package index name relative to a package's page there.
type fromIndex struct{ http.RoundTripper }

// page is that of any package.
var page = &url.URL{Scheme: "https", Host: "pypi.org", Path: "/pypi/package/json"}

// RoundTrip carries out the request.
func (t fromIndex) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Host == "" {
		request = request.Clone(request.Context())
		request.URL = page.ResolveReference(request.URL)
	}
	return t.RoundTripper.RoundTrip(request)
}

func main() {
	http.DefaultTransport = fromIndex{http.DefaultTransport} // which go-xla uses
	if len(os.Args) < 2 || len(os.Args) > 3 || os.Args[1] != "cuda12" && os.Args[1] != "cuda13" {
		fmt.Fprintln(os.Stderr, "usage: xlaplugin cuda12|cuda13 [FOLDER]")
		os.Exit(2)
	}
	var folder string
	if len(os.Args) == 3 {
		folder = os.Args[2]
	} else {
		libraries, err := installer.DefaultHomeLibPath()
		if err != nil {
			log.Fatalf("finding the folder for plugins: %v; name one as the second argument", err)
		}
		folder = filepath.Join(libraries, "go-xla")
	}
	if err := installCUDA(os.Args[1], folder); err != nil {
		log.Fatalf("installing the XLA plugin %q into %s: %v", os.Args[1], folder, err)
	}
}
