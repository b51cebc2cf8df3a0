// Xlaplugin installs XLA's plugin for NVIDIA GPUs, checked against the Python package index:
//
//	go run ./environment/cmd/xlaplugin cuda13   from Turing on (compute capability 7.5)
//	go run ./environment/cmd/xlaplugin cuda12   for all, such as a Titan X, P100 or V100
//
// A second argument names a folder other than ~/.local/lib/go-xla, where programs look for the plugin.
package main

import (
	"errors"
	"fmt"
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

var errUsage = errors.New("usage: xlaplugin cuda12|cuda13 [FOLDER]")

func main() {
	http.DefaultTransport = fromIndex{http.DefaultTransport} // which go-xla uses
	if len(os.Args) == 2 && (os.Args[1] == "--help" || os.Args[1] == "-h") {
		fmt.Println(errUsage)
		return
	}
	err := run(os.Args[1:])
	if errors.Is(err, errUsage) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run installs what the arguments ask for.
func run(args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return fmt.Errorf("%w: got %d arguments", errUsage, len(args))
	}
	if args[0] != "cuda12" && args[0] != "cuda13" {
		return fmt.Errorf("%w: no plugin %q", errUsage, args[0])
	}
	var folder string
	if len(args) == 2 {
		folder = args[1]
	} else {
		libraries, err := installer.DefaultHomeLibPath()
		if err != nil {
			return fmt.Errorf("finding the folder for plugins: %w; name one as the second argument", err)
		}
		folder = filepath.Join(libraries, "go-xla")
	}
	if err := installCUDA(args[0], folder); err != nil {
		return fmt.Errorf("installing the XLA plugin %q into %s: %w", args[0], folder, err)
	}
	return nil
}
