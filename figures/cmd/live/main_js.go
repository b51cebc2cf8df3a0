// Live is the program of the page live.html, in a worker of the browser.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"syscall/js"
	"time"

	"densityuncertainty/figures/live"
)

// main gives the worker two functions and calls its function ready.
//
//	live(request, reply) carries out a request in JSON (request in figures/live) and stops the one before. It calls reply with each
//	reply in JSON, and at the end with {"end": true}, or {"error": "...", "stopped": true if stop ended it}.
//	stop() stops the request that is being carried out.
func main() {
	debug.SetGCPercent(400) // there is one thread for training and collecting alike
	cancel := func() {}
	js.Global().Set("live", js.FuncOf(func(_ js.Value, arguments []js.Value) any {
		cancel()
		var ctx context.Context
		ctx, cancel = context.WithCancel(context.Background())
		go serve(ctx, arguments[0].String(), arguments[1])
		return nil
	}))
	js.Global().Set("stop", js.FuncOf(func(js.Value, []js.Value) any {
		cancel()
		return nil
	}))
	js.Global().Call("ready")
	select {}
}

// serve carries out a request. Go and the worker's own events share a thread, so after each reply serve sleeps for a
// moment, in which the worker hears of a stop.
func serve(ctx context.Context, request string, reply js.Value) {
	send := func(value any) {
		text, err := json.Marshal(value)
		if err != nil {
			text = fmt.Appendf(nil, `{"error": %q}`, err.Error())
		}
		reply.Invoke(string(text))
		time.Sleep(time.Millisecond)
	}
	if err := live.Serve(ctx, []byte(request), send); err != nil {
		send(map[string]any{"error": err.Error(), "stopped": ctx.Err() != nil})
		return
	}
	send(map[string]any{"end": true})
}
