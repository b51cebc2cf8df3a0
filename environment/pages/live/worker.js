// Runs the Go program (figures/cmd/live) in a worker. It takes {module}, then one {request}
// after the other, and {stop: true}; it answers {ready: true}, and the replies to each request.
globalThis.ready = () => postMessage({ ready: true });

onmessage = async ({ data }) => {
  if (data.module) {
    const go = new Go();
    go.run(await WebAssembly.instantiate(data.module, go.importObject));
  } else if (data.stop) {
    stop();
  } else {
    live(JSON.stringify(data.request), (reply) => postMessage(JSON.parse(reply)));
  }
};
