// Points that the reader adds, moves and removes, with a pointer or with keys.
"use strict";

// The points that all plots of a tab show. "change" is called after each change, "select" when another point is chosen.
class Points extends EventTarget {
  constructor(list = []) {
    super();
    this.list = list; // of {x, y}
    this.selected = -1;
    this.past = []; // lists, for undo
  }

  // Replaces the list; what was there can be had again by undo.
  set(list, selected = -1) {
    this.past.push(this.list);
    this.past.splice(0, this.past.length - 100);
    this.show(list, selected);
  }

  show(list, selected) {
    this.list = list;
    this.selected = selected;
    this.dispatchEvent(new Event("change"));
  }

  undo() {
    if (this.past.length > 0) this.show(this.past.pop(), -1);
  }

  // Adds a point of the nearest one's class, a little to the right where there is one already.
  add({ x, y }) {
    while (this.list.some((point) => Math.hypot(point.x - x, point.y - y) < 0.05)) x += 0.2;
    const distance = (point) => Math.hypot(point.x - x, point.y - y);
    const [nearest] = this.list.toSorted((a, b) => distance(a) - distance(b));
    this.set([...this.list, { ...nearest, x, y }], this.list.length);
  }

  remove(index = this.selected) {
    if (index >= 0) this.set(this.list.filter((_, i) => i !== index));
  }

  // Removes the points with from <= x <= to, and says how many these were.
  sweep(from, to) {
    const left = this.list.filter(({ x }) => x < from || x > to);
    const removed = this.list.length - left.length;
    if (removed > 0) this.set(left);
    return removed;
  }

  // Moves a point. The moves of one drag are undone together: only the first of them begins.
  move(index, point, begins = true) {
    const list = this.list.with(index, { ...this.list[index], ...point });
    if (begins) this.set(list, index);
    else this.show(list, index);
  }

  select(index) {
    this.selected = index;
    this.dispatchEvent(new Event("select"));
  }

  // Chooses the next point to the right, or with -1 to the left.
  step(direction) {
    const order = this.list.map((_, i) => i).sort((a, b) => this.list[a].x - this.list[b].x);
    const at = order.indexOf(this.selected);
    if (order.length > 0) this.select(order.at(at < 0 ? (direction > 0 ? 0 : -1) : (at + direction) % order.length));
  }
}

// Makes an element with a canvas a place to change points in. The plot maps coordinates: toPixels({x, y}) and toData([left,
// top]) in the canvas' own pixels, clamp(point); element is what keys are pressed in. sweeping() says whether a drag makes a
// hole, swept(from, to) shows one that is being made. say tells what happened to those who do not see it.
function edit(element, canvas, points, plot, { sweeping = () => false, swept = () => {}, say, holes = false }) {
  let drag = null; // {index} of a point, {from, to} of a hole, {add: position} of a click

  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const near = (at, reach) => {
    let found = -1;
    points.list.forEach((point, i) => {
      const [left, top] = plot.toPixels(point);
      const distance = Math.hypot(left - at[0], top - at[1]);
      if (distance < reach) [found, reach] = [i, distance];
    });
    return found;
  };
  const reach = (event) => (event.pointerType === "mouse" ? 10 : 20);

  canvas.addEventListener("pointerdown", (event) => {
    const at = place(event);
    if (event.button !== 0 || !plot.inside(at)) return;
    const index = near(at, reach(event));
    if (holes && (event.shiftKey || sweeping())) drag = { from: plot.toData(at).x };
    else if (index >= 0) {
      drag = { index, begins: true };
      points.select(index);
    } else drag = { add: at };
    canvas.setPointerCapture(event.pointerId);
    element.focus({ preventScroll: true });
    event.preventDefault();
  });
  canvas.addEventListener("pointermove", (event) => {
    const at = place(event);
    canvas.style.cursor = holes && (event.shiftKey || sweeping()) ? "col-resize" : near(at, 10) >= 0 ? "grab" : "crosshair";
    if (!drag) return;
    if ("from" in drag) {
      drag.to = plot.toData(at).x;
      swept(drag.from, drag.to);
    } else if ("index" in drag) {
      points.move(drag.index, plot.clamp(plot.toData(at)), drag.begins);
      drag.begins = false;
    }
  });
  canvas.addEventListener("pointerup", (event) => {
    if (!drag) return;
    const at = place(event);
    const { add, from, to } = drag;
    drag = null;
    if (from !== undefined) {
      swept();
      const removed = points.sweep(Math.min(from, to ?? from), Math.max(from, to ?? from));
      say(`${removed} points removed.`);
    } else if (add && Math.hypot(at[0] - add[0], at[1] - add[1]) < 8) points.add(plot.clamp(plot.toData(at)));
  });
  canvas.addEventListener("pointercancel", () => {
    drag = null;
    swept();
  });
  // A finger scrolls the page, unless it is on a point or makes a hole.
  canvas.addEventListener(
    "touchstart",
    (event) => {
      const at = place(event.touches[0]);
      if (plot.inside(at) && (sweeping() || near(at, 20) >= 0)) event.preventDefault();
    },
    { passive: false },
  );

  const describe = () => {
    const point = points.list[points.selected];
    const among = `of ${points.list.length}`;
    say(point ? `Point ${points.selected + 1} ${among}: ${point.x.toFixed(2)}, ${point.y.toFixed(2)}` : `No point chosen ${among}`);
  };
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const point = points.list[points.selected];
    const { key } = event;
    if (key === "PageUp" || key === "PageDown") points.step(key === "PageUp" ? -1 : 1);
    else if (key === "Escape") points.select(-1);
    else if (key === "a" || key === "Enter") points.add(plot.center());
    else if ((key === "Delete" || key === "Backspace") && point) points.remove();
    else if (key === "h" && holes && point) points.sweep(point.x - 0.5, point.x + 0.5);
    else if (steps[key] && point) {
      const [right, up] = steps[key].map((n) => n * (event.shiftKey ? 0.05 : 0.01));
      const { width, height } = plot.size();
      points.move(points.selected, plot.clamp({ x: point.x + right * width, y: point.y + up * height }), !event.repeat);
    } else return;
    event.preventDefault();
    describe();
  });
}
