// The Go program in workers: program.run(request, reply) carries out a request (request in figures/live) as soon as a worker is free.
// program-data.js holds the compiled program, compressed, and the source of the workers, since a page that is a file can
// load neither by itself.
"use strict";

class Program {
  // Further workers are started when they are needed. At most so many of them train; one more is for requests that are urgent.
  constructor(most) {
    this.most = most;
    this.workers = [];
    this.waiting = [];
    this.source = URL.createObjectURL(new Blob([PROGRAM.worker], { type: "text/javascript" }));
    this.module = fetch(`data:application/gzip;base64,${PROGRAM.wasm}`).then((packed) => {
      const unpacked = packed.body.pipeThrough(new DecompressionStream("gzip"));
      return WebAssembly.compileStreaming(new Response(unpacked, { headers: { "Content-Type": "application/wasm" } }));
    });
    this.start(); // the first training shall not wait for it
  }

  // Calls reply with each reply, of which the last one has end or error. Returns a function that stops it; then no
  // further reply comes. Send one urgent request at a time.
  run(request, reply, urgent = false) {
    const job = { request, reply, urgent };
    this.waiting.push(job);
    this.next();
    return () => {
      job.reply = () => {};
      if (this.waiting.includes(job)) this.waiting.splice(this.waiting.indexOf(job), 1);
      else if (job.worker?.job === job) job.worker.postMessage({ stop: true });
    };
  }

  // Gives waiting requests to workers without one.
  next() {
    for (const job of [...this.waiting]) {
      const busy = this.workers.filter((one) => one.job && !one.job.urgent);
      if (!job.urgent && busy.length >= this.most) continue;
      const worker = this.workers.find((one) => !one.job) ?? this.start();
      this.waiting.splice(this.waiting.indexOf(job), 1);
      job.worker = worker;
      worker.job = job;
      worker.ready.then(
        () => worker.postMessage({ request: job.request }),
        (error) => this.ended(worker, { error: `The program did not start: ${error.message}` }),
      );
    }
  }

  start() {
    const worker = new Worker(this.source);
    worker.ready = new Promise((done, failed) => {
      this.module.then((module) => worker.postMessage({ module }), failed);
      worker.onmessage = ({ data }) => (data.ready ? done() : this.replied(worker, data));
      worker.onerror = (event) => {
        event.preventDefault();
        failed(event);
        this.workers.splice(this.workers.indexOf(worker), 1); // what crashed is replaced when it is needed
        this.ended(worker, { error: `The program ended: ${event.message}` });
      };
    });
    this.workers.push(worker);
    return worker;
  }

  replied(worker, reply) {
    if (reply.end || reply.error) this.ended(worker, reply);
    else worker.job?.reply(reply);
  }

  ended(worker, reply) {
    const { job } = worker;
    worker.job = null;
    job?.reply(reply);
    this.next();
  }
}
