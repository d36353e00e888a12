"use strict";
// The complex plane of the eigenvalues of H, as SVG: discs of the attention, handles to drag.

const { make } = Page;

Explorer.complexText = (re, im) => {
  const minus = (x) => x.toFixed(2).replace("-", "\u2212");
  return im ? `${minus(re)} \u00b1 ${minus(Math.abs(im))}i` : minus(re);
};

// move(number, re, im) is called as a handle is dragged or moved by an arrow key.
Explorer.Plane = class {
  constructor(svg, move) {
    this.svg = svg;
    this.move = move;
    this.shown = null;
    const [left, right] = Explorer.LIMITS.re, top = Explorer.LIMITS.im[1];
    const grid = make("g", { class: "grid" }, svg);
    for (let x = left; x <= right; x += 1) {
      make("line", { x1: x, x2: x, y1: -top, y2: top, class: x === 0 ? "axis" : "" }, grid);
      if (x !== 0 && x > left && x < right) this.label(grid, x, 0.22, String(x).replace("-", "\u2212"));
    }
    for (let y = -2; y <= 2; y += 1) {
      make("line", { x1: left, x2: right, y1: y, y2: y, class: y === 0 ? "axis" : "" }, grid);
      if (y !== 0) this.label(grid, 0.14, -y + 0.06, `${String(y).replace("-", "\u2212")}i`, "start");
    }
    this.label(grid, right - 0.1, -0.1, "Re h", "end");
    this.label(grid, 0.14, -top + 0.2, "Im h", "start");
    this.discs = make("g", { class: "discs" }, svg);
    make("circle", { cx: -0.5, cy: 0, r: 0.5, class: "universal" }, svg);
    this.handles = make("g", {}, svg);
  }

  label(parent, x, y, text, anchor = "middle") {
    make("text", { x, y, "text-anchor": anchor }, parent, text);
  }

  drawDiscs(spectra, turning) {
    this.discs.setAttribute("class", turning ? "discs off" : "discs");
    if (this.shown === spectra) return;
    this.shown = spectra;
    this.discs.replaceChildren();
    [...new Set(spectra)].forEach((spectrum, head) => {
      const group = make("g", { style: `--colour: var(--head-${head + 1})` }, this.discs);
      const seen = new Set();
      for (const a of spectrum) {
        const disc = Explorer.disc(a), key = a.join(" ");
        if (disc === null || seen.has(key)) continue;
        seen.add(key);
        make("circle", { cx: disc.re, cy: -disc.im, r: disc.radius }, group);
      }
    });
  }

  // One handle an eigenvalue; filled where a mode of its head beats consensus at it.
  drawHandles(state, spectra, { entries, owner }) {
    while (this.handles.children.length > state.h.length) this.handles.lastChild.remove();
    state.h.forEach((h, number) => {
      const handle = this.handles.children[number] || this.newHandle(number);
      const head = owner[entries.findIndex((entry) => entry.number === number)];
      const lost = spectra[head].some((a) => Explorer.inDisc(h.re, h.im, a)
        || (h.pair && Explorer.inDisc(h.re, -h.im, a)));
      const said = `${Explorer.complexText(h.re, h.pair ? h.im : 0)}, ${lost ? "inside" : "outside"}`
        + " the discs";
      handle.setAttribute("transform", `translate(${h.re} ${-h.im})`);
      handle.setAttribute("class", `handle ${lost ? "lost" : "won"}`);
      handle.setAttribute("aria-valuenow", h.re.toFixed(2));
      handle.setAttribute("aria-valuetext", said);
      handle.setAttribute("aria-label", `eigenvalue ${number + 1}${h.pair ? " and its conjugate" : ""}`);
      const mirror = handle.querySelector(".mirror");
      mirror.setAttribute("visibility", h.pair ? "visible" : "hidden");
      mirror.setAttribute("cy", 2 * h.im);
      handle.querySelector("text").textContent = number + 1;
    });
  }

  newHandle(number) {
    const [low, high] = Explorer.LIMITS.re;
    const handle = make("g", {
      class: "handle", role: "slider", tabindex: 0, "aria-valuemin": low, "aria-valuemax": high,
      "aria-orientation": "horizontal", "data-number": number,
    }, this.handles);
    make("circle", { r: 0.3, class: "reach" }, handle);
    make("circle", { r: 0.1, class: "mirror" }, handle);
    make("circle", { r: 0.15, class: "knob" }, handle);
    make("text", { y: 0.07, "text-anchor": "middle" }, handle);
    handle.addEventListener("pointerdown", (event) => {
      handle.setPointerCapture(event.pointerId);
      handle.focus({ preventScroll: true });
      event.preventDefault();
    });
    handle.addEventListener("pointermove", (event) => {
      if (!handle.hasPointerCapture(event.pointerId)) return;
      const at = Page.within(this.svg, event);
      this.move(number, at.x, -at.y);
    });
    handle.addEventListener("keydown", (event) => {
      const step = event.shiftKey ? 0.2 : 0.02;
      const by = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step],
        ArrowDown: [0, -step] }[event.key];
      if (!by) return;
      event.preventDefault();
      this.move(number, by[0], by[1], true);
    });
    return handle;
  }
};
