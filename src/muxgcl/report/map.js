"use strict";
// A map of many nodes on a canvas. Positions and colours live in typed arrays; dots are blended into
// one picture a frame; a grid over the plane finds the node under the pointer.

const NONE = 0xffff;
const CELLS = 96; // the grid that finds the node under the pointer has CELLS x CELLS cells

function unpack(text, Kind) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Kind(bytes.buffer);
}

class NodeMap {
  // `places`: Float32Array of x, y in [0, 1] for each node. `on`: { hover(node), choose(node) }.
  constructor(canvas, places, on) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.n = places.length / 2;
    this.places = places.slice();
    this.on = on;
    this.order = shuffled(this.n); // so that no group lies on top of all others
    this.colours = ["#888888"];
    this.colourOf = new Uint16Array(this.n);
    this.isFocus = null; // (node) => boolean: the others fade
    this.chosen = -1;
    this.hovered = -1;
    this.near = [];
    this.links = [];
    this.view = { x: 0.5, y: 0.5, zoom: 1 };
    this.frame = 0;
    this.gliding = 0;
    this.index();
    this.listen();
    new ResizeObserver(() => this.resize()).observe(canvas);
    this.resize();
  }

  // where things are ---------------------------------------------------------------------------

  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.ratio = ratio;
    this.draw();
  }

  get unit() { // pixels for one unit of the plane
    return Math.min(this.width, this.height) * 0.93 * this.view.zoom;
  }

  screen(node) {
    const { x, y } = this.view, unit = this.unit;
    return [
      (this.places[2 * node] - x) * unit + this.width / 2,
      (y - this.places[2 * node + 1]) * unit + this.height / 2,
    ];
  }

  plane(sx, sy) {
    const unit = this.unit;
    return [(sx - this.width / 2) / unit + this.view.x, this.view.y - (sy - this.height / 2) / unit];
  }

  index() { // nodes sorted by cell: those of cell c are members[starts[c]] .. members[starts[c + 1] - 1]
    const cellOf = new Uint16Array(this.n);
    this.starts = new Uint32Array(CELLS * CELLS + 1);
    for (let i = 0; i < this.n; i++) {
      cellOf[i] = cell(this.places[2 * i + 1]) * CELLS + cell(this.places[2 * i]);
      this.starts[cellOf[i] + 1]++;
    }
    for (let c = 0; c < CELLS * CELLS; c++) this.starts[c + 1] += this.starts[c];
    const next = this.starts.slice();
    this.members = new Uint32Array(this.n);
    for (let i = 0; i < this.n; i++) this.members[next[cellOf[i]]++] = i;
  }

  at(sx, sy, reach = 12) { // the node nearest to a point of the screen, or -1
    const [px, py] = this.plane(sx, sy), r = reach / this.unit;
    let best = -1, least = r * r;
    for (let row = cell(py - r); row <= cell(py + r); row++) {
      for (let column = cell(px - r); column <= cell(px + r); column++) {
        const c = row * CELLS + column;
        for (let k = this.starts[c]; k < this.starts[c + 1]; k++) {
          const i = this.members[k];
          if (this.isFocus && !this.isFocus(i)) continue;
          const dx = this.places[2 * i] - px, dy = this.places[2 * i + 1] - py;
          const d = dx * dx + dy * dy;
          if (d <= least) { least = d; best = i; }
        }
      }
    }
    return best;
  }

  // drawing ------------------------------------------------------------------------------------

  draw() {
    if (!this.frame) this.frame = requestAnimationFrame(() => { this.frame = 0; this.paint(); });
  }

  get radius() {
    const base = Math.max(1.7, 5.4 - Math.log10(this.n));
    return Math.min(9, base * Math.min(1, Math.max(0.62, this.height / 560)) * this.view.zoom ** 0.28);
  }

  paint() {
    if (!this.canvas.width || !this.canvas.height) return; // not laid out yet
    const style = getComputedStyle(this.canvas);
    this.ink = style.color;
    this.fill(style.backgroundColor);
    if (this.isFocus) {
      this.dots(0.1, (i) => !this.isFocus(i));
      this.dots(0.9, this.isFocus);
    } else {
      this.dots(this.chosen >= 0 ? 0.55 : 0.85, null);
    }
    this.pen.putImageData(this.picture, 0, 0);
    this.pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    if (this.chosen >= 0) this.paintChosen();
    if (this.hovered >= 0) this.ring(this.hovered, 3);
  }

  fill(colour) {
    if (!this.picture || this.picture.width !== this.canvas.width || this.picture.height !== this.canvas.height) {
      this.picture = this.pen.createImageData(this.canvas.width, this.canvas.height);
    }
    const [r, g, b] = channels(colour);
    new Uint32Array(this.picture.data.buffer).fill(((255 << 24) | (b << 16) | (g << 8) | r) >>> 0);
  }

  dots(alpha, keep) { // blended into the picture, pixel by pixel: far quicker than drawing discs
    const { places, order, colourOf, ratio, picture } = this, pixels = picture.data;
    const { size, cover } = disc(this.radius * ratio);
    const table = this.colours.map(channels);
    const unit = this.unit * ratio, half = size / 2, right = picture.width, bottom = picture.height;
    const ox = (this.width / 2) * ratio - this.view.x * unit - half + 0.5;
    const oy = (this.height / 2) * ratio + this.view.y * unit - half + 0.5;
    for (let k = 0; k < order.length; k++) {
      const i = order[k];
      const x = Math.floor(places[2 * i] * unit + ox), y = Math.floor(oy - places[2 * i + 1] * unit);
      if (x <= -size || y <= -size || x >= right || y >= bottom || (keep && !keep(i))) continue;
      const [r, g, b, faint] = table[colourOf[i]], strength = alpha * faint;
      const left = Math.max(0, -x), end = Math.min(size, right - x), last = Math.min(size, bottom - y);
      for (let row = Math.max(0, -y); row < last; row++) {
        let p = 4 * ((y + row) * right + x + left);
        for (let column = left; column < end; column++, p += 4) {
          const a = cover[row * size + column] * strength;
          pixels[p] += (r - pixels[p]) * a;
          pixels[p + 1] += (g - pixels[p + 1]) * a;
          pixels[p + 2] += (b - pixels[p + 2]) * a;
        }
      }
    }
  }

  paintChosen() {
    const pen = this.pen, [x, y] = this.screen(this.chosen);
    pen.strokeStyle = this.ink;
    pen.globalAlpha = 0.45;
    pen.lineWidth = 1;
    pen.beginPath();
    for (const other of this.links) {
      pen.moveTo(x, y);
      pen.lineTo(...this.screen(other));
    }
    pen.stroke();
    pen.globalAlpha = 1;
    for (const node of [...this.links, ...this.near, this.chosen]) {
      pen.fillStyle = this.colours[this.colourOf[node]];
      pen.beginPath();
      pen.arc(...this.screen(node), this.radius, 0, 7);
      pen.fill();
    }
    for (const other of this.near) this.ring(other, 1, 1);
    this.ring(this.chosen, 4);
  }

  ring(node, gap, width = 1.6) {
    const pen = this.pen;
    pen.strokeStyle = this.ink;
    pen.lineWidth = width;
    pen.beginPath();
    pen.arc(...this.screen(node), this.radius + gap, 0, 7);
    pen.stroke();
  }

  // changing what is shown ---------------------------------------------------------------------

  colour(colours, colourOf) {
    this.colours = colours;
    this.colourOf = colourOf;
    this.draw();
  }

  focus(isFocus) {
    this.isFocus = isFocus;
    this.draw();
  }

  choose(node, near = [], links = []) {
    Object.assign(this, { chosen: node, near, links });
    this.draw();
  }

  goTo(node) { // bring a node into the middle, near enough to see those around it
    this.view = { x: this.places[2 * node], y: this.places[2 * node + 1], zoom: Math.max(3, this.view.zoom) };
    this.draw();
  }

  reset() {
    this.view = { x: 0.5, y: 0.5, zoom: 1 };
    this.draw();
  }

  zoomBy(factor, sx = this.width / 2, sy = this.height / 2) {
    const [px, py] = this.plane(sx, sy);
    this.view.zoom = Math.min(400, Math.max(0.4, this.view.zoom * factor));
    const unit = this.unit;
    this.view.x = px - (sx - this.width / 2) / unit;
    this.view.y = py + (sy - this.height / 2) / unit;
    this.draw();
  }

  move(dx, dy) {
    const unit = this.unit;
    this.view.x -= dx / unit;
    this.view.y += dy / unit;
    this.draw();
  }

  moveTo(places) { // nodes glide to their places on another map
    const from = this.places.slice(), start = performance.now();
    const span = matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 600; // milliseconds
    const step = (now) => {
      const t = span ? Math.min(1, Math.max(0, (now - start) / span)) : 1, s = t * t * (3 - 2 * t);
      for (let k = 0; k < places.length; k++) this.places[k] = from[k] + (places[k] - from[k]) * s;
      this.gliding = t < 1 ? requestAnimationFrame(step) : 0;
      if (!this.gliding) this.index();
      this.draw();
    };
    cancelAnimationFrame(this.gliding);
    this.hover(-1);
    step(start);
  }

  hover(node) {
    if (node === this.hovered) return;
    this.hovered = node;
    this.canvas.classList.toggle("over", node >= 0);
    this.on.hover(node);
    this.draw();
  }

  // what the reader does -----------------------------------------------------------------------

  listen() {
    const canvas = this.canvas, fingers = new Map();
    let moved = 0;
    const spot = (event) => [event.offsetX, event.offsetY];
    canvas.addEventListener("pointerdown", (event) => {
      fingers.set(event.pointerId, spot(event));
      moved = fingers.size > 1 ? 99 : 0;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = fingers.get(event.pointerId), now = spot(event);
      if (!before) return this.hover(this.at(...now));
      const [dx, dy] = [now[0] - before[0], now[1] - before[1]];
      moved += Math.abs(dx) + Math.abs(dy);
      if (moved < 4) return;
      canvas.classList.add("moving");
      if (fingers.size === 2) {
        const other = [...fingers].find(([id]) => id !== event.pointerId)[1];
        const apart = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
        this.zoomBy(apart(now) / apart(before), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
      }
      this.move(dx / fingers.size, dy / fingers.size);
      fingers.set(event.pointerId, now);
    });
    const lift = (event) => {
      const pressed = fingers.delete(event.pointerId);
      if (!fingers.size) canvas.classList.remove("moving");
      if (pressed && event.type === "pointerup" && moved < 4) this.on.choose(this.at(...spot(event)));
    };
    canvas.addEventListener("pointerup", lift);
    canvas.addEventListener("pointercancel", lift);
    canvas.addEventListener("pointerleave", () => this.hover(-1));
    canvas.addEventListener("dblclick", (event) => this.zoomBy(2, ...spot(event)));
    canvas.addEventListener("wheel", (event) => {
      // until the map was clicked, the wheel scrolls the page
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
      event.preventDefault();
      this.zoomBy(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0018)), ...spot(event));
    }, { passive: false });
    const keys = {
      ArrowLeft: () => this.move(50, 0), ArrowRight: () => this.move(-50, 0),
      ArrowUp: () => this.move(0, 50), ArrowDown: () => this.move(0, -50),
      "+": () => this.zoomBy(1.4), "=": () => this.zoomBy(1.4), "-": () => this.zoomBy(1 / 1.4),
      0: () => this.reset(), Escape: () => this.on.choose(-1),
    };
    canvas.addEventListener("keydown", (event) => {
      if (!(event.key in keys) || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      keys[event.key]();
    });
  }
}

function disc(radius) { // how much of each pixel of a square a disc in its middle covers, 0 to 1
  const size = 2 * Math.ceil(radius) + 1, cover = new Float32Array(size * size);
  for (let row = 0; row < size; row++) {
    for (let column = 0; column < size; column++) {
      const far = Math.hypot(row - (size - 1) / 2, column - (size - 1) / 2);
      cover[row * size + column] = Math.min(1, Math.max(0, radius + 0.5 - far));
    }
  }
  return { size, cover };
}

function channels(colour) { // "#rrggbb", "#rrggbbaa" or "rgb(r, g, b)" as r, g, b and the share that covers
  if (!colour.startsWith("#")) return [...colour.match(/\d+/g).slice(0, 3).map(Number), 1];
  const [r, g, b, a] = colour.match(/[\da-f]{2}/gi).map((digits) => parseInt(digits, 16));
  return [r, g, b, a === undefined ? 1 : a / 255];
}

function cell(coordinate) {
  return Math.min(CELLS - 1, Math.max(0, Math.floor(coordinate * CELLS)));
}

function shuffled(n) { // the same order every time
  const order = Uint32Array.from({ length: n }, (_, i) => i);
  let state = 12345;
  for (let i = n - 1; i > 0; i--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const j = state % (i + 1);
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

function plainPlaces(text) {
  return Float32Array.from(unpack(text, Uint16Array), (v) => v / 65535);
}

// colours --------------------------------------------------------------------------------------

// What a column gives each node: a colour, and the words for it.
function colouring(column, data) {
  const grey = "#8d95a5", faint = "#8d95a555";
  if (column.names) {
    const codes = column.codes, many = data.palette.length;
    const colours = [...data.palette, grey, faint];
    const place = (code) => (code === NONE ? many + 1 : Math.min(code, many));
    return {
      colours,
      colourOf: Uint16Array.from(codes, place),
      colour: (i) => colours[place(codes[i])],
      text: (i) => (codes[i] === NONE ? "none" : column.names[codes[i]]),
    };
  }
  const last = data.ramp.length - 1, span = column.high - column.low || 1;
  const colours = [...data.ramp, faint];
  const place = (v) =>
    Number.isFinite(v) ? Math.round(Math.min(1, Math.max(0, (v - column.low) / span)) * last) : last + 1;
  return {
    colours,
    colourOf: Uint16Array.from(column.values, place),
    colour: (i) => colours[place(column.values[i])],
    text: (i) => (Number.isFinite(column.values[i]) ? number(column.values[i]) : "none"),
  };
}

function number(value) {
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(4)));
}

// small things of the page ---------------------------------------------------------------------

// An element; text is always set as text, so that nothing in the data can become markup.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "colour") element.style.background = value;
    else if (value !== null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

function tipAt(tip, map, node, ...lines) { // beside the node, inside the stage
  tip.hidden = node < 0;
  if (node < 0) return;
  tip.replaceChildren(...lines);
  const [x, y] = map.screen(node);
  const left = x + 14 + tip.offsetWidth > map.width ? x - 14 - tip.offsetWidth : x + 14;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.min(Math.max(4, y + 12), map.height - tip.offsetHeight - 4)}px`;
}

function themeButton(button, changed) {
  const dark = () => {
    const chosen = document.documentElement.style.colorScheme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  const name = () => { button.textContent = dark() ? "Light" : "Dark"; changed(); };
  button.addEventListener("click", () => {
    document.documentElement.style.colorScheme = dark() ? "light" : "dark";
    name();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
  name();
}
