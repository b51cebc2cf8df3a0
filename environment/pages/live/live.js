// The page live.html: Figure 1 on the reader's own points, and one layer with two inputs.
"use strict";

const byId = (id) => document.getElementById(id);
const say = (text) => (byId("said").textContent = text);
const METHODS = {
  density: "Density uncertainty",
  locations: "Location mixture",
  mfvi: "MFVI",
  rank1: "Rank-1 BNN",
  mcdropout: "MC dropout",
  ensemble: "Deep ensemble",
};

const SHORT = { density: "density", locations: "the location mixture", mfvi: "MFVI", rank1: "Rank-1", mcdropout: "MC dropout", ensemble: "the ensemble" };

// The marks of the methods, as in the project's pictures; their colours are in live.css.
const MARKS = { density: "●", locations: "◆", mfvi: "■", rank1: "■", mcdropout: "●", ensemble: "▲" };
const LESSONS = {
  gap: "Between the points nothing is known. There HMC’s band is 6.3 times as wide as at the points, density’s 2.2 times (2.8 times with the location mixture, under Methods); MFVI, Rank-1 and MC dropout narrow. The ensemble’s ratio is 21 because its five networks nearly agree at the points (sd 0.4): in the gap its band is about as wide as HMC’s.",
  side: "All points lie on the right. At x = −3 HMC’s band is 129 wide, MC dropout’s 101, the location mixture’s 112, density’s 72, MFVI’s 64, the ensemble’s 55 and Rank-1’s 25.",
  thin: "Six points in the middle are enough: at 0 HMC’s band is 6 wide, and was 21 without them. Density’s is 10 wide, still more than at the other points; the other methods’ bands are 2 to 3 wide.",
  outlier: "One point at (0, 60) pulls the curve up. At 0 HMC’s band is between 41 and 55. Density, Rank-1 and the ensemble are near it, MFVI is too low (22 to 25), and MC dropout ignores the point (1 to 4).",
  moons: "The stronger the blue, the less certain the class. Density, MFVI, Rank-1 and the ensemble are uncertain along the boundary, which fans out, and certain elsewhere, however far from the points: far away their mean entropy is 0.05 to 0.09 of at most 0.69 nats, the location mixture’s 0.12. MC dropout’s is 0.19, as much as at the points. SNGP and DUE, which this page does not train, reach 0.69.",
};
// The settings of Figure 1, of two moons, and of what is stored.
const USUAL = { seed: 0, noise: -2, pretraining: 2000, width: 50, steps: 4000 };
const USUAL_MOONS = { ...USUAL, pretraining: 500, steps: 1000 };

// Makes an element with attributes and children.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Calls draw before the next frame, however often it is asked to.
function drawing(draw) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
    });
  };
}

// Shows a slider's value beside it, in the words of text, and calls changed after each move.
function slider(id, text, changed) {
  const input = byId(id);
  const show = () => {
    document.querySelector(`output[for=${id}]`).textContent = text(Number(input.value));
    input.setAttribute("aria-valuetext", text(Number(input.value)));
  };
  input.addEventListener("input", () => {
    show();
    changed();
  });
  input.addEventListener("reset", show);
  show();
  return input;
}

// Connects the buttons of a tab that change points.
function pointButtons(tab, points, center) {
  const button = (name) => tab.querySelector(`[data-do=${name}]`);
  const update = () => {
    button("remove").disabled = points.selected < 0;
    button("undo").disabled = points.past.length === 0;
  };
  button("add").addEventListener("click", () => points.add(center()));
  button("remove").addEventListener("click", () => points.remove());
  button("undo").addEventListener("click", () => points.undo());
  points.addEventListener("change", update);
  points.addEventListener("select", update);
  update();
}

// A panel shows one method: the points, the band, and the standard deviation relative to the one at the data. Of a classifier
// it shows the points and the map in the place of a band.
class Panel {
  constructor(method, figure) {
    this.figure = figure;
    this.method = method;
    this.stop = () => {};
    this.stale = true; // whether the band is not of these points and settings
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.plot = make("div", { class: "plot", tabindex: "0", role: "application", "aria-label": `Points and band of ${METHODS[method]}`, "aria-describedby": "keys" }, this.canvas);
    this.ratio = make("output", { "aria-label": `Result of ${METHODS[method]}` }, "–");
    this.what = make("span");
    this.progress = make("progress", { max: "1", value: "0", "aria-label": `Training of ${METHODS[method]}` });
    this.status = make("p", { class: "status" });
    const mark = make("span", { class: "mark", style: `color: var(--${method})`, "aria-hidden": "true" }, MARKS[method]);
    const head = make("header", {}, make("h2", {}, mark, METHODS[method]), make("p", { class: "ratio" }, this.what, this.ratio));
    this.element = make("section", { class: "panel", id: `panel-${method}` }, head, this.plot, this.progress, this.status);
    const left = 38;
    const width = () => this.canvas.clientWidth - left - 8;
    const main = () => this.canvas.clientHeight - (figure.plane ? 24 : 118);
    this.axes = new Axes([-6, 6], [-100, 100], () => ({ left, top: 6, width: width(), height: main() }));
    this.strip = new Axes([-6, 6], [0, 4], () => ({ left, top: main() + 20, width: width(), height: 74 }));
    this.draw = drawing(() => this.paint());
    edit(this.plot, this.canvas, figure.points, this.axes, {
      holes: true,
      say,
      sweeping: () => byId("sweep").getAttribute("aria-pressed") === "true",
      swept: (from, to) => {
        figure.hole = from === undefined ? null : [from, to];
        if (!figure.hole) byId("sweep").setAttribute("aria-pressed", "false");
        figure.draw();
      },
    });
    new ResizeObserver(this.draw).observe(this.canvas);
  }

  train() {
    this.stop();
    this.stale = true;
    this.wrong("");
    this.status.textContent = "Waiting for a free core";
    this.progress.value = 0;
    this.running = true;
    const request = this.figure.request(this.method);
    // A preview first: all methods have one before any of them is trained to the end.
    this.stop = program.run({ train: { ...request, preview: true } }, (reply) => {
      if (!reply.end) this.replied(reply, true);
      else this.stop = program.run({ train: request }, (next) => this.replied(next));
    });
    this.draw();
  }

  // Shows a band that was computed before.
  show(band) {
    this.stop();
    this.running = false;
    this.wrong("");
    this.replied({ phase: "stored", step: 1, steps: 1, band });
  }

  replied(reply, preview = false) {
    if (reply.end || reply.error) {
      this.running = false;
      if (reply.error) this.wrong(reply.error);
      this.figure.changed();
      return;
    }
    const { phase, step, steps, seconds } = reply;
    const band = reply.band ?? reply.map;
    const atData = band?.entropy ? `entropy at the points ${band.atData.toFixed(2)}` : `sd at the data ${band?.dataStd.toFixed(2)}`;
    const draws = this.method === "ensemble" ? "5 networks" : `${this.figure.draws()} draws`;
    this.progress.value = step / steps;
    this.status.textContent = {
      pretraining: `Generative pretraining, step ${step} of ${steps}`,
      training: `Training, step ${step} of ${steps}`,
      drawing: `Drawing functions`,
      stored: `Trained before, ${atData}`,
      done: `Trained in ${Math.round(seconds)} s, ${draws}, ${atData}`,
    }[phase];
    if (preview) this.status.textContent = `Preview: ${steps} quick steps`;
    if (band) {
      this.band = band;
      this.stale = false;
      band.ratio ??= band.far;
      this.ratio.textContent = band.ratio > 0 ? (preview ? "≈\u2009" : "") + band.ratio.toFixed(2) : "–";
      this.draw();
      this.figure.tell();
      document.documentElement.dataset.firstBand ??= Math.round(performance.now());
    }
    if (!preview && (phase === "done" || phase === "stored")) {
      this.element.dataset.ratio = band.ratio;
      if (phase === "done") say(`${METHODS[this.method]} is trained: ${this.what.textContent}${this.ratio.textContent}.`);
    } else delete this.element.dataset.ratio;
  }

  halt() {
    this.stop();
    if (this.running) this.status.textContent = "Stopped";
    this.running = false;
  }

  wrong(text) {
    this.status.classList.toggle("wrong", text !== "");
    this.status.textContent = text.replace(/^live: /, "");
  }

  paint() {
    if (this.canvas.clientWidth === 0) return;
    const { axes, strip: below, band, figure } = this;
    this.element.classList.toggle("stale", this.stale);
    const c = prepare(this.canvas);
    const colour = figure.colour;
    if (figure.plane) {
      within(c, axes, () => {
        c.globalAlpha = this.stale ? 0.35 : 1;
        if (band) shade(c, axes, band.entropy, 0, Math.LN2, colour);
        c.globalAlpha = 1;
        if (figure.hole) strip(c, axes, ...figure.hole, colour.band);
        dots(c, axes, figure.points, colour);
      });
      frame(c, axes, colour, [-2, 0, 2], [-2, 0, 2]);
      return;
    }
    const mine = colour[this.method];
    const gaps = (!this.stale && band?.gaps) || []; // null where there are none
    const exact = figure.exact();
    within(c, axes, () => {
      for (const gap of gaps) strip(c, axes, ...gap, colour.gap);
      if (figure.hole) strip(c, axes, ...figure.hole, colour.band);
      const xs = Array.from({ length: 121 }, (_, i) => -6 + i / 10);
      stroke(c, colour.muted, 1.5, () => path(c, axes, xs, xs.map((x) => x ** 3)), [5, 4]);
      if (exact) {
        c.fillStyle = colour.line;
        c.beginPath();
        path(c, axes, [...exact.x, ...exact.x.toReversed()], [...exact.low, ...exact.high.toReversed()]);
        c.fill();
      }
      if (band) {
        c.globalAlpha = this.stale ? 0.1 : 0.3;
        c.fillStyle = mine;
        c.beginPath();
        path(c, axes, [...band.x, ...band.x.toReversed()], [...band.low, ...band.high.toReversed()]);
        c.fill();
        c.globalAlpha = this.stale ? 0.35 : 1;
        for (const draw of band.functions) stroke(c, mine, 0.8, () => path(c, axes, band.x, draw));
        stroke(c, mine, 2, () => path(c, axes, band.x, band.mean));
        c.globalAlpha = 1;
      }
      dots(c, axes, figure.points, colour);
    });
    frame(c, axes, colour, [], [-80, -40, 0, 40, 80]);
    within(c, below, () => {
      for (const gap of gaps) strip(c, below, ...gap, colour.gap);
      stroke(c, colour.muted, 1, () => path(c, below, [-6, 6], [1, 1]), [2, 3]);
      if (!band || !(band.dataStd > 0)) return;
      c.globalAlpha = this.stale ? 0.35 : 1;
      const relative = band.std.map((v) => v / band.dataStd);
      stroke(c, mine, 2, () => path(c, below, band.x, relative));
      for (const [from, to] of gaps) {
        const quarter = (to - from) / 4;
        stroke(c, colour.ink, 3, () => path(c, below, [from + quarter, to - quarter], [Math.min(band.ratio, 3.9), Math.min(band.ratio, 3.9)]));
      }
      c.globalAlpha = 1;
    });
    frame(c, below, colour, [-4, -2, 0, 2, 4], [1, 3], (y) => `×${y}`);
  }
}

// The first tab.
class Figure {
  constructor() {
    this.points = new Points();
    this.panels = [];
    this.hole = null; // that is being swept
    this.held = false; // by the button Stop
    const asked = new URLSearchParams(location.hash.slice(1));
    if (asked.get("preset") in LESSONS) byId("preset").value = asked.get("preset");
    for (const [id, value] of Object.entries(this.usual())) byId(id).value = asked.get(id) ?? value;
    const restart = () => this.restart();
    this.noise = slider("noise", (v) => (10 ** v).toPrecision(2), restart);
    this.pretraining = slider("pretraining", String, restart);
    this.width = slider("width", String, restart);
    this.steps = slider("steps", String, restart);
    byId("seed").addEventListener("change", () => this.load());
    byId("preset").addEventListener("change", () => this.reset());
    this.draw = drawing(() => {
      this.colour = colours();
      for (const panel of this.shown()) panel.paint();
    });
    this.colour = colours();
    for (const method of Object.keys(METHODS)) {
      const panel = new Panel(method, this);
      this.panels.push(panel);
      document.querySelector(".legend").before(panel.element);
      const box = make("input", { type: "checkbox", id: `show-${method}` });
      box.checked = !asked.has("methods") ? method !== "locations" : asked.get("methods").split(" ").includes(method);
      panel.element.hidden = !box.checked;
      byId("methods").append(make("label", {}, box, METHODS[method]));
      box.addEventListener("change", () => {
        panel.element.hidden = !box.checked;
        if (!box.checked) panel.halt();
        else if (!this.held) this.train();
        this.changed();
      });
    }
    pointButtons(byId("figure"), this.points, () => this.panels[0].axes.center());
    this.points.addEventListener("change", () => {
      for (const panel of this.panels) panel.stale = true;
      this.draw();
      this.restart();
    });
    this.points.addEventListener("select", this.draw);
    byId("sweep").addEventListener("click", ({ currentTarget }) => currentTarget.setAttribute("aria-pressed", currentTarget.getAttribute("aria-pressed") !== "true"));
    byId("reset").addEventListener("click", () => this.reset());
    byId("train").addEventListener("click", () => {
      this.held = this.running();
      if (this.held) for (const panel of this.panels) panel.halt();
      else this.train(true);
      this.changed();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", this.draw);
    const points = (asked.get("points") ?? "").split(" ").map((text) => text.split(",").map(Number)).filter(([x, y]) => Number.isFinite(x) && Number.isFinite(y));
    this.load(points.map(([x, y, label]) => ({ x, y, label })));
  }

  shown() {
    return this.panels.filter((panel) => !panel.element.hidden);
  }

  running() {
    return this.timer !== undefined || this.panels.some((panel) => panel.running);
  }

  // Gets the data of the preset from the program, and shows them, or others.
  load(others = []) {
    const preset = byId("preset").value;
    byId("lesson").style.minHeight = "";
    byId("lesson").textContent = LESSONS[preset];
    byId("lesson").style.minHeight = `${byId("lesson").offsetHeight}px`; // so that panels stay where they are
    const plane = preset === "moons";
    if (plane !== this.plane) {
      this.plane = plane;
      this.points.list = [];
      byId("figure").classList.toggle("plane", plane);
      for (const panel of this.panels) {
        panel.halt();
        panel.band = null;
        panel.what.textContent = plane ? "entropy far away " : "gap ratio ";
        Object.assign(panel.axes, plane ? { xs: [-2.5, 3.5], ys: [-2.75, 3.25] } : { xs: [-6, 6], ys: [-100, 100] });
      }
    }
    const show = ({ x, y, labels }) => {
      this.data = x.map((one, i) => ({ x: one, y: y[i], label: labels?.[i] }));
      this.points.show(others.length > 0 ? others : this.data, -1);
      this.train();
    };
    const asked = { seed: Number(byId("seed").value), preset };
    if (asked.seed === 0) show(STORED[asked.preset].points);
    else program.run({ points: asked }, (reply) => (reply.error ? refuse(reply.error) : reply.x && show(reply)));
  }

  // The settings that what is stored of the preset was trained with.
  usual() {
    return byId("preset").value === "moons" ? USUAL_MOONS : USUAL;
  }

  isUsual() {
    return Object.entries(this.usual()).every(([id, value]) => Number(byId(id).value) === value);
  }

  // Shows the preset with its usual settings.
  reset() {
    for (const [id, value] of Object.entries(this.usual())) {
      byId(id).value = value;
      byId(id).dispatchEvent(new Event("reset"));
    }
    this.held = false;
    this.load();
  }

  // What is stored of the points, if they are those of a preset.
  stored() {
    const known = this.points.list === this.data && byId("seed").value === "0";
    return known ? STORED[byId("preset").value] : undefined;
  }

  // HMC's band, which holds for networks of the usual width.
  exact() {
    return Number(this.width.value) === USUAL.width ? this.stored()?.hmc : undefined;
  }

  // Puts what is shown into the address, to share.
  remember() {
    const state = new URLSearchParams();
    for (const id of ["preset", ...Object.keys(USUAL)]) state.set(id, byId(id).value);
    state.set("methods", this.shown().map((panel) => panel.method).join(" "));
    if (this.points.list !== this.data) state.set("points", this.points.list.map(({ x, y, label }) => `${x.toFixed(2)},${y.toFixed(2)}${label === undefined ? "" : `,${label}`}`).join(" "));
    history.replaceState(null, "", `#${state}`);
  }

  // Says what is seen: the lesson of a preset, or else what the methods have in the gap.
  tell() {
    const fresh = this.shown().filter((panel) => panel.band && !panel.stale);
    const whose = this.points.list === this.data ? "the" : "your";
    const each = (first, other) => fresh.map(({ method, ratio }, i) => `${SHORT[method]} ${(i === 0 ? first : other).replace("#", ratio.textContent)}`).join(", ");
    let text = this.held ? `Train shows what is learned from ${whose} points.` : `Training on ${whose} points …`;
    if (this.isUsual() && this.stored()) text = LESSONS[byId("preset").value];
    else if (fresh.length > 0 && this.plane) text = `Far from ${whose} points the mean entropy of ${each("is # of at most 0.69 nats", "#")}.`;
    else if (fresh.length > 0 && !fresh[0].band.gaps) text = `There is no gap: no stretch of at least 0.8 without points.`;
    else if (fresh.length > 0) text = `In the ${fresh[0].band.gaps.length > 1 ? "gaps" : "gap"} ${each(`is # times as wide as at ${whose} points`, "# times")}.`;
    byId("lesson").textContent = text;
  }

  request(method) {
    const { list } = this.points;
    return {
      method, x: list.map(({ x }) => x), y: list.map(({ y }) => y), labels: this.plane ? list.map(({ label }) => label) : undefined, seed: Number(byId("seed").value),
      width: Number(this.width.value), initStd: 10 ** this.noise.value,
      steps: Number(this.steps.value), pretrainSteps: Number(this.pretraining.value), samples: this.draws(),
    };
  }

  draws() {
    return this.plane ? 100 : 1000;
  }

  // Trains again once points and sliders have rested for a moment.
  restart() {
    clearTimeout(this.timer);
    this.timer = undefined;
    for (const panel of this.panels) {
      panel.stale = true;
      delete panel.element.dataset.ratio;
    }
    this.draw();
    if (!this.held && this.data) this.timer = setTimeout(() => this.train(), 300);
    this.changed();
  }

  // Trains, or shows what is stored of these points and settings, unless it is to train anew.
  train(anew = false) {
    clearTimeout(this.timer);
    this.timer = undefined;
    const stored = this.isUsual() && !anew ? this.stored() : undefined;
    for (const panel of this.panels) panel.stop();
    for (const panel of this.shown()) stored ? panel.show(stored[panel.method]) : panel.train();
    this.changed();
  }

  changed() {
    if (this.data) {
      this.remember();
      this.tell();
    }
    byId("train").textContent = this.running() ? "Stop" : "Train";
  }
}

// The second tab.
class Layer {
  constructor() {
    this.points = new Points();
    this.canvas = byId("map").querySelector("canvas");
    const side = () => this.canvas.clientWidth - 38;
    this.axes = new Axes([-4, 4], [-4, 4], () => ({ left: 30, top: 6, width: side(), height: side() }));
    this.paintSoon = drawing(() => this.paint());
    this.gamma = slider("gamma", (v) => v.toFixed(2), () => this.fit());
    this.beta = slider("beta", (v) => v.toFixed(2), () => this.fit());
    edit(byId("map"), this.canvas, this.points, this.axes, { say });
    pointButtons(byId("layer"), this.points, () => ({ x: 2, y: -2 }));
    this.points.addEventListener("change", () => {
      this.paintSoon();
      this.fit();
    });
    this.points.addEventListener("select", () => {
      this.paintSoon();
      const point = this.points.list[this.points.selected];
      if (point) this.probe(point);
    });
    byId("restart").addEventListener("click", () => this.points.set(cloud()));
    byId("moons").addEventListener("click", () => this.points.set(moons()));
    this.canvas.addEventListener("pointermove", ({ offsetX, offsetY }) => this.axes.inside([offsetX, offsetY]) && this.probe(this.axes.toData([offsetX, offsetY])));
    new ResizeObserver(this.paintSoon).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", this.paintSoon);
    this.points.show(cloud(), -1);
  }

  request() {
    const { list } = this.points;
    return { x: list.map(({ x }) => x), y: list.map(({ y }) => y), gamma: this.gamma.value ** 2, beta: this.beta.value ** 2, side: 61, extent: 4 };
  }

  // Fits the Gaussian to the points; what changes meanwhile is fitted afterwards.
  fit() {
    this.wanted = true;
    if (this.running || byId("layer").hidden) return;
    this.running = true;
    this.wanted = false;
    program.run({ layer: this.request() }, (reply) => {
      if (reply.precision) {
        this.map = reply;
        this.paintSoon();
        return;
      }
      byId("fitted").textContent = reply.error?.replace(/^live: /, "") ?? "";
      this.running = false;
      if (this.wanted) this.fit();
    }, true);
  }

  energy({ x, y }) {
    const [a, b, c] = this.map.precision;
    return (a * x * x + 2 * b * x * y + c * y * y) / 2;
  }

  probe(at) {
    if (!this.map) return;
    const energy = this.energy(at);
    const sd = Math.sqrt(this.gamma.value ** 2 * energy + this.beta.value ** 2);
    byId("probe").textContent = `At (${at.x.toFixed(1)}, ${at.y.toFixed(1)}): energy ${energy.toFixed(1)}, sd ${sd.toFixed(2)}`.replaceAll("-", "−");
  }

  paint() {
    if (this.canvas.clientWidth === 0) return;
    const { axes, map } = this;
    const c = prepare(this.canvas);
    const colour = colours();
    within(c, axes, () => {
      if (map) {
        const [low, high] = [Math.min(...map.std), Math.max(...map.std)];
        shade(c, axes, map.std, low, high, colour);
        byId("least").textContent = `sd ${low.toFixed(2)}`;
        byId("most").textContent = high.toFixed(2);
        [0.5, 0.95, 0.99].forEach((mass, i) => stroke(c, colour.contour, 2.5 - i * 0.7, () => this.contour(c, -Math.log(1 - mass))));
      }
      dots(c, axes, this.points, colour);
    });
    frame(c, axes, colour, [-4, -2, 0, 2, 4], [-4, -2, 0, 2, 4]);
  }

  // Where the energy has a value: along the direction u it is at the distance sqrt(energy / E(u)).
  contour(c, energy) {
    const angles = Array.from({ length: 181 }, (_, i) => (i * Math.PI) / 90);
    const radius = angles.map((a) => Math.sqrt(energy / this.energy({ x: Math.cos(a), y: Math.sin(a) })));
    path(c, this.axes, angles.map((a, i) => radius[i] * Math.cos(a)), angles.map((a, i) => radius[i] * Math.sin(a)));
  }
}

// Fills axes with a square of values, from the lowest row up, between two colours.
function shade(c, axes, values, low, high, colour) {
  const side = Math.sqrt(values.length);
  const canvas = make("canvas", { width: side, height: side });
  const square = canvas.getContext("2d");
  const ends = [colour.low, colour.high].map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  const pixels = square.createImageData(side, side);
  values.forEach((value, i) => {
    const part = high > low ? (value - low) / (high - low) : 0;
    const at = 4 * ((side - 1 - Math.floor(i / side)) * side + (i % side));
    ends[0].forEach((from, k) => (pixels.data[at + k] = from + part * (ends[1][k] - from)));
    pixels.data[at + 3] = 255;
  });
  square.putImageData(pixels, 0, 0);
  const { left, top, width, height } = axes.box();
  c.drawImage(canvas, left, top, width, height);
}

// Forty correlated points around zero, always the same ones.
function cloud() {
  let state = 7;
  const uniform = () => (state = (state * 48271) % 2147483647) / 2147483647;
  const normal = () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
  return Array.from({ length: 40 }, () => {
    const [a, b] = [normal(), normal()];
    return { x: 0.9 * a, y: 0.6 * a + 0.5 * b };
  });
}

// Two moons of twenty points each.
function moons() {
  return Array.from({ length: 40 }, (_, i) => {
    const [side, angle] = [i % 2 ? -1 : 1, (Math.PI * Math.floor(i / 2)) / 19];
    return { x: 1.6 * side * Math.cos(angle) - 0.8 * side, y: 1.6 * side * Math.sin(angle) - 0.4 * side };
  });
}

// Tabs as the keyboard expects them: arrows go from one to the other.
function tabs() {
  const all = [...document.querySelectorAll("[role=tab]")];
  const open = (tab) => {
    for (const one of all) {
      const chosen = one === tab;
      one.setAttribute("aria-selected", chosen);
      one.tabIndex = chosen ? 0 : -1;
      byId(one.getAttribute("aria-controls")).hidden = !chosen;
    }
    byId("hole-key").hidden = tab.id !== "tab-figure";
    if (tab.id === "tab-layer") {
      layer ??= new Layer();
      layer.fit();
    }
  };
  all.forEach((tab, i) => {
    tab.addEventListener("click", () => open(tab));
    tab.addEventListener("keydown", ({ key }) => {
      if (key !== "ArrowLeft" && key !== "ArrowRight") return;
      const next = all[(i + 1) % all.length];
      open(next);
      next.focus();
    });
  });
}

// Says why the page cannot be used, in the place of what it would show.
function refuse(why) {
  byId("refused").textContent = why;
  byId("refused").hidden = false;
}

let program, figure, layer;
if (typeof WebAssembly !== "object" || typeof DecompressionStream !== "function" || typeof Worker !== "function") {
  refuse("This browser cannot run WebAssembly in the background, so nothing can be trained here. Firefox, Chrome, Edge and Safari of 2023 or later can.");
} else {
  document.querySelector("main").hidden = false;
  document.body.classList.toggle("present", new URLSearchParams(location.search).has("present"));
  program = new Program(Math.min(navigator.hardwareConcurrency || 2, 3));
  figure = new Figure();
  tabs();
}
