// Drawing on canvases.
"use strict";

// The colours of the page, light or dark.
function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  const names = ["ink", "paper", "muted", "line", "band", "gap", "low", "high", "contour", "density", "locations", "mfvi", "rank1", "mcdropout", "ensemble"];
  return Object.fromEntries(names.map((name) => [name, of(name)]));
}

// A rectangle of a canvas with axes from xs[0] to xs[1] and from ys[0] to ys[1]. box() gives the rectangle in pixels.
class Axes {
  constructor(xs, ys, box) {
    Object.assign(this, { xs, ys, box });
  }

  toPixels({ x, y }) {
    const { left, top, width, height } = this.box();
    return [left + (width * (x - this.xs[0])) / (this.xs[1] - this.xs[0]), top + (height * (this.ys[1] - y)) / (this.ys[1] - this.ys[0])];
  }

  toData([x, y]) {
    const { left, top, width, height } = this.box();
    return { x: this.xs[0] + ((x - left) * (this.xs[1] - this.xs[0])) / width, y: this.ys[1] - ((y - top) * (this.ys[1] - this.ys[0])) / height };
  }

  inside([x, y]) {
    const { left, top, width, height } = this.box();
    return x >= left && x <= left + width && y >= top && y <= top + height;
  }

  clamp({ x, y }) {
    const within = (v, [low, high]) => Math.min(Math.max(v, low), high);
    return { x: within(x, this.xs), y: within(y, this.ys) };
  }

  size() {
    return { width: this.xs[1] - this.xs[0], height: this.ys[1] - this.ys[0] };
  }

  center() {
    return { x: (this.xs[0] + this.xs[1]) / 2, y: (this.ys[0] + this.ys[1]) / 2 };
  }
}

// Fits a canvas to its place and to the screen's pixels, and returns what to draw with, in the page's own pixels.
function prepare(canvas) {
  const { clientWidth: width, clientHeight: height } = canvas;
  const scale = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const c = canvas.getContext("2d");
  c.setTransform(scale, 0, 0, scale, 0, 0);
  c.clearRect(0, 0, width, height);
  c.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  return c;
}

// Draws what is inside of axes and nothing beyond them.
function within(c, axes, draw) {
  const { left, top, width, height } = axes.box();
  c.save();
  c.beginPath();
  c.rect(left, top, width, height);
  c.clip();
  draw();
  c.restore();
}

function path(c, axes, xs, ys) {
  xs.forEach((x, i) => {
    const at = axes.toPixels({ x, y: ys[i] });
    if (i === 0) c.moveTo(...at);
    else c.lineTo(...at);
  });
}

function stroke(c, colour, width, draw, dash = []) {
  c.strokeStyle = colour;
  c.lineWidth = width;
  c.setLineDash(dash);
  c.beginPath();
  draw();
  c.stroke();
  c.setLineDash([]);
}

// The frame of axes, with numbers at the ticks.
function frame(c, axes, colour, xTicks, yTicks, yText = String) {
  const { left, top, width, height } = axes.box();
  stroke(c, colour.line, 1, () => c.rect(left + 0.5, top + 0.5, width - 1, height - 1));
  c.fillStyle = colour.muted;
  c.textAlign = "center";
  c.textBaseline = "top";
  for (const x of xTicks) c.fillText(String(x).replace("-", "−"), axes.toPixels({ x, y: 0 })[0], top + height + 5);
  c.textAlign = "right";
  c.textBaseline = "middle";
  for (const y of yTicks) c.fillText(yText(y).replace("-", "−"), left - 6, axes.toPixels({ x: 0, y })[1]);
}

// Points, hollow in class 1.
function dots(c, axes, points, colour) {
  const radius = points.list.length > 200 ? 2 : 3;
  points.list.forEach((point, i) => {
    const at = axes.toPixels(point);
    c.fillStyle = point.label ? colour.paper : colour.ink;
    c.beginPath();
    c.arc(...at, radius, 0, 2 * Math.PI);
    c.fill();
    stroke(c, point.label ? colour.ink : colour.paper, 1, () => c.arc(...at, radius + 0.5, 0, 2 * Math.PI));
    if (i === points.selected) stroke(c, colour.ink, 2, () => c.arc(...at, 7, 0, 2 * Math.PI));
  });
}

// A vertical strip of axes.
function strip(c, axes, from, to, colour) {
  const { top, height } = axes.box();
  const [left] = axes.toPixels({ x: Math.min(from, to), y: 0 });
  const [right] = axes.toPixels({ x: Math.max(from, to), y: 0 });
  c.fillStyle = colour;
  c.fillRect(left, top, right - left, height);
}
