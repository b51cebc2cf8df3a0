//go:build !js

// Live answers a request of the page live.html: JSON on standard input (request in figures/live), replies on standard output, one a
// line. Compiled with GOOS=js GOARCH=wasm it is the program of the page.
package main

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"os"

	"densityuncertainty/figures/live"
)

func main() {
	request, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	lines := json.NewEncoder(os.Stdout)
	if err := live.Serve(context.Background(), request, func(reply any) {
		if err := lines.Encode(reply); err != nil {
			log.Fatal(err)
		}
	}); err != nil {
		log.Fatal(err)
	}
}
