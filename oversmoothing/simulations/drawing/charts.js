"use strict";
// Lines and bands against depth, as SVG, with the values of a layer under the pointer.

Page.Chart = class {
  // series: names of the lines, each a class of the style sheet. pad: room at both ends of the axis.
  constructor(svg, series, pad = 0) {
    this.svg = svg;
    this.pad = pad;
    this.grid = Page.make("g", { class: "grid" }, svg);
    this.bands = series.map((name) => Page.make("path", { class: `band ${name}` }, svg));
    this.bars = Page.make("g", { class: "bars" }, svg);
    this.cursor = Page.make("line", { class: "cursor", y1: 8, y2: 112 }, svg);
    this.lines = series.map((name) => Page.make("path", { class: `series ${name}` }, svg));
    this.range = "";
  }

  // values: of each line by layer from 0 (one gives the depth of bars alone); ticks: [[value, text], ...]; bands: [low, high] of a line, or [].
  draw(values, low, high, ticks, bands = []) {
    const depth = values[0].length - 1;
    const range = [low, high, depth, ticks.length].join(" ");
    this.depth = depth;
    this.step = (260 - 2 * this.pad) / Math.max(1, depth);
    this.x = (layer) => 34 + this.pad + this.step * layer;
    this.y = (value) => 112 - (104 * (value - low)) / (high - low);
    if (range !== this.range) {
      this.range = range;
      this.grid.replaceChildren();
      for (const [value, text] of ticks) {
        Page.make("line", { x1: 34, x2: 294, y1: this.y(value), y2: this.y(value) }, this.grid);
        this.text(30, this.y(value) + 3, text, "end");
      }
      for (const layer of new Set([0, Math.round(depth / 2), depth])) {
        this.text(this.x(layer), 124, String(layer), layer === depth && !this.pad ? "end" : "middle");
      }
    }
    this.lines.forEach((line, k) => line.setAttribute("d", this.path(values[k])));
    bands.forEach(([lower = [], upper = []], k) => {
      const there = lower.map((_, layer) => layer)
        .filter((layer) => Number.isFinite(lower[layer]) && Number.isFinite(upper[layer]));
      const points = [...there.map((l) => this.point(l, upper[l])),
        ...there.reverse().map((l) => this.point(l, lower[l]))];
      this.bands[k].setAttribute("d", points.length ? `M${points.join("L")}Z` : "");
    });
  }

  path(line) {
    let path = "", on = false;
    line.forEach((value, layer) => {
      if (Number.isFinite(value)) path += `${on ? "L" : "M"}${this.point(layer, value)}`;
      on = Number.isFinite(value);
    });
    return path;
  }

  point(layer, value) {
    const shown = Math.min(1e4, Math.max(-1e4, this.y(value)));
    return `${this.x(layer).toFixed(1)} ${shown.toFixed(1)}`;
  }

  // parts: [style, values by layer] of each, stacked upward and downward by their sign.
  stack(parts) {
    const width = Math.min(0.8 * this.step, 2 * this.pad);
    for (let layer = 0; layer <= this.depth; layer += 1) {
      const ends = [0, 0]; // upward and downward
      for (const [style, values] of parts) {
        const value = values[layer];
        if (!Number.isFinite(value) || value === 0) continue;
        const side = value > 0 ? 0 : 1, from = ends[side], to = from + value;
        ends[side] = to;
        Page.make("rect", { style, x: this.x(layer) - width / 2, width,
          y: this.y(Math.max(from, to)), height: Math.abs(this.y(from) - this.y(to)) }, this.bars);
      }
    }
  }

  text(x, y, text, anchor) {
    Page.make("text", { x, y, "text-anchor": anchor }, this.grid, text);
  }

  at(layer) {
    this.cursor.setAttribute("x1", this.x(layer));
    this.cursor.setAttribute("x2", this.x(layer));
  }

  // seen(layer) as the pointer moves over the chart, seen(null) as it leaves; chosen(layer) at a click.
  follow(seen, chosen) {
    const layer = (event) => {
      const found = Math.round((Page.within(this.svg, event).x - this.x(0)) / this.step);
      return Math.min(this.depth, Math.max(0, found));
    };
    this.svg.addEventListener("pointermove", (event) => seen(layer(event)));
    this.svg.addEventListener("pointerleave", () => seen(null));
    this.svg.addEventListener("click", (event) => chosen(layer(event)));
  }
};

// Round numbers that span [low, high]: [[value, text], ...] and the range they span.
Page.scale = function (low, high) {
  const size = high - low || Math.abs(high) || 1;
  let digits = 0, step = 500;
  for (let power = -12; power <= 2; power += 1) {
    const found = [1, 2, 5].find((s) => size / (s * 10 ** power) <= 5);
    if (!found) continue;
    step = Number(`${found}e${power}`);
    digits = Math.max(0, -power);
    break;
  }
  const from = Math.floor(low / step), to = Math.max(from + 1, Math.ceil(high / step)), ticks = [];
  for (let k = from; k <= to; k += 1) ticks.push([k * step, Page.number(k * step, digits)]);
  return { low: from * step, high: to * step, ticks };
};

// The same for logarithms to base 10, with the numbers themselves as text: 1, 2, 5, 10.
Page.logScale = function (low, high) {
  if (high - low > 2) {
    const whole = Page.scale(Math.floor(low), Math.ceil(high));
    return { ...whole, ticks: whole.ticks.filter(([k]) => Number.isInteger(k)).map(([k]) => [k, Page.power(k)]) };
  }
  const steps = high - low > 0.5 ? [1, 2, 5] : [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8];
  const all = [];
  for (let k = Math.floor(low); k <= Math.ceil(high); k += 1) {
    for (const s of steps) all.push([k + Math.log10(s), s, k]);
  }
  const from = Math.max(0, all.findIndex(([value]) => value > low) - 1);
  const to = all.findIndex(([value], index) => index > from && value >= high);
  const kept = all.slice(from, to < 0 ? all.length : to + 1);
  return { low: kept[0][0], high: kept[kept.length - 1][0], ticks: kept.map(([value, s, k]) => [value, Page.power(k, s)]) };
};

// s times 10 to the power k, written as a reader would.
Page.power = (k, s = 1) => (Math.abs(k) <= 3 ? String(Number(`${s}e${k}`)) : `${s}e${k}`.replace("-", "\u2212"));
