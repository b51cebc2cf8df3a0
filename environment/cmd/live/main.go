//go:build !js

// Live answers a request of the page live.html: JSON on standard input (live.Request), replies on standard output, one a
// line. Compiled with GOOS=js GOARCH=wasm it is the program of the page.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"densityuncertainty/environment/live"
)

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// serve carries out the request that in has.
func serve(in io.Reader, out io.Writer) error {
	request, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	lines := json.NewEncoder(out)
	err = live.Serve(ctx, request, func(reply any) {
		if err := lines.Encode(reply); err != nil {
			cancel(fmt.Errorf("writing a reply: %w", err))
		}
	})
	if failed := context.Cause(ctx); failed != nil {
		return failed
	}
	return err
}
