"use strict";
// The page at work: what the reader changes becomes a state, a state becomes what is seen.
(function () {
  const { find, add, number } = Page;
  const PRESETS = Page.data("presets-data");
  // What a hand moves has the four decimals that are shown, and so has the link.
  const tidy = (x) => Math.round(x * 1e4) / 1e4;
  let state, result, dirty = true, layer = 0, playing = false, before = 0;

  const plane = new Explorer.Plane(find("plane"), (k, re, im, by) => {
    const h = state.h[k];
    const to = by ? [h.re + re, h.im + im] : [re, im];
    const moved = { ...h, re: tidy(to[0]), im: h.pair ? Math.max(0, tidy(to[1])) : 0 };
    change({ h: state.h.map((one, j) => (j === k ? moved : one)) });
  });
  const charts = {
    ratio: new Page.Chart(find("chart-ratio"), ["first", "predicted"]),
    cosine: new Page.Chart(find("chart-cosine"), ["first", "second"]),
    rank: new Page.Chart(find("chart-rank"), ["first"]),
  };

  function change(more) {
    state = Explorer.legal({ ...state, ...more });
    find("trouble").hidden = true;
    layer = Math.min(layer, state.depth);
    dirty = true;
  }

  // So many digits that the two radii differ, and their quotient from 1.
  const digits = (a) => Math.min(17, Math.max(3,
    1 - Math.floor(Math.log10(Math.min(Math.abs(a.consensus - a.quotient), Math.abs(1 - a.rate))))));
  const SAID = {
    SMOOTHING: ["It smooths", (a) => `Consensus grows fastest: \u03c1<sub>C</sub> = ${number(a.consensus, digits(a))} exceeds `
      + `\u03c1<sub>Q</sub> = ${number(a.quotient, digits(a))}, so for almost every start the differences between tokens vanish beside their mean (HFC/LFC), in the long run by the `
      + `factor r = \u03c1<sub>Q</sub>/\u03c1<sub>C</sub> = ${number(a.rate, digits(a))} a layer.`],
    NON_SMOOTHING: ["It does not smooth", (a) => `Another mode grows faster than consensus: \u03c1<sub>Q</sub> = `
      + `${number(a.quotient, digits(a))} exceeds \u03c1<sub>C</sub> = ${number(a.consensus, digits(a))}, so for almost every start the differences between tokens (HFC) do not vanish beside their mean (LFC).`],
    TOO_CLOSE: ["Too close for float64", (a) => `\u03c1<sub>C</sub> and \u03c1<sub>Q</sub> agree to the threshold of this page (both `
      + `${number(a.consensus, 6)}): a tie, or nearly one. At a tie Jordan blocks and the start decide (T4, T6).`],
    NOT_COMPUTED: ["No verdict here", () => "Heads that attend differently, and weights that rotate: for both together "
      + "this page has no closed form. The curves show what the layers did."],
  };

  function say() {
    const { answer, run } = result, [word, why] = SAID[answer.verdict];
    const box = find("verdict");
    if (box.dataset.verdict !== answer.verdict) {
      box.dataset.verdict = answer.verdict;
      find("verdict-word").textContent = word;
    }
    find("verdict-why").innerHTML = why(answer); // subscripts, and no word of a reader
    const last = run.log.length - 1;
    find("said-ratio").textContent = `${number(run.log[0], 2)} at the start, ${number(run.log[last], 2)} after `
      + `${last} layers${answer.verdict === "SMOOTHING" ? "; dotted: the slope log\u2081\u2080 r that the spectrum predicts" : ""}.`;
    find("said-cosine").textContent = `After ${last} layers: mean ${number(run.cosMean[last], 3)}, smallest `
      + `${number(run.cosMin[last], 3)}${Number.isNaN(run.cosMin[last]) && run.rank[last] > 0
        ? ": a token is too small beside the others for float64 to know its direction" : ""}.`;
    find("said-rank").textContent = `${number(run.rank[0], 2)} at the start, ${number(run.rank[last], 2)} after ${last} layers.`;
    const preset = PRESETS.find((one) => one.link === Explorer.toLink(state));
    find("preset").value = preset ? preset.key : "";
    find("preset-says").textContent = preset ? preset.says : "Your own state. Choose an example to return to one.";
    find("exact").hidden = !(preset && preset.exact);
    if (preset && preset.exact) {
      find("exact-verdict").textContent = preset.exact.verdict;
      find("exact-why").textContent = preset.exact.reason;
    }
    const one = new Set(result.spectra).size === 1 && state.turn === 0;
    find("case").disabled = find("python").disabled = !one;
    find("discs-note").textContent = state.turn !== 0
      ? "The weights rotate, so the discs (dashed) no longer decide: compare the two radii."
      : state.heads > 1 ? "A disc counts for the eigenvalues of its head; head k owns the eigenvalues k, k + heads, ..., and a chain that begins there" : "";
    find("link").setAttribute("href", Explorer.toLink(state));
  }

  function showControls() {
    for (const name of ["n", "seed", "share", "heads", "skew", "turn", "depth"]) {
      const input = find(name);
      if (document.activeElement !== input || Number(input.value) !== state[name]) input.value = state[name];
      find(`${name}-value`).textContent = number(state[name], Number.isInteger(state[name]) ? 0 : 2);
    }
    find("temperature").value = Math.log10(state.temperature);
    find("temperature-value").textContent = number(state.temperature, 2);
    find("kind").value = state.kind;
    find("given").disabled = state.kind !== "given";
    find("causal").checked = state.causal;
    find("chain").checked = state.chain;
    find("row-temperature").hidden = !Explorer.DRAWN.includes(state.kind);
    find("row-share").hidden = !["averaging", "circle"].includes(state.kind);
    find("layer").max = state.depth;
    const full = Explorer.size(state.h);
    find("d-value").textContent = `${full} of ${Explorer.LIMITS.d[1]}`;
    find("add-real").disabled = full + 1 > Explorer.LIMITS.d[1];
    find("add-pair").disabled = full + 2 > Explorer.LIMITS.d[1];
    find("remove").disabled = state.h.length < 2;
    showEigenvalues();
  }

  // The eigenvalues as numbers, for who does not drag.
  function showEigenvalues() {
    const list = find("eigenvalues");
    while (list.children.length > state.h.length) list.lastChild.remove();
    state.h.forEach((h, k) => {
      let row = list.children[k];
      if (!row) {
        row = add(list, "li");
        for (const part of ["re", "im"]) {
          const [low, high] = Explorer.LIMITS[part];
          const input = add(row, "input", { type: "number", min: low, max: high, step: 0.01, className: part });
          input.setAttribute("aria-label", `${part === "re" ? "real" : "imaginary"} part of eigenvalue ${k + 1}`);
          input.addEventListener("change", () => {
            const value = input.valueAsNumber;
            if (value >= low && value <= high) {
              change({ h: state.h.map((one, j) => (j === k ? { ...one, [part]: value } : one)) });
              return;
            }
            input.value = state.h[k][part];
            complain(`Eigenvalue ${k + 1} takes a number from ${low} to ${high} there. It stays as it was.`);
          });
        }
      }
      for (const part of ["re", "im"]) {
        const input = row.querySelector(`.${part}`);
        if (document.activeElement !== input) input.value = Math.round(h[part] * 1e4) / 1e4;
        input.hidden = part === "im" && !h.pair;
      }
    });
  }

  function drawLayer() {
    Explorer.drawTokens(find("tokens"), result.run, state, result.value.d, layer);
    for (const chart of Object.values(charts)) chart.at(layer);
    find("layer").value = Math.floor(layer);
    find("layer-value").textContent = Math.floor(layer);
  }

  // Everything that one change asks for, from arithmetic to picture.
  Explorer.refresh = function () {
    result = Explorer.compute(state);
    plane.drawDiscs(result.spectra, state.turn !== 0);
    plane.drawHandles(state, result.spectra, result.value);
    Explorer.drawMetrics(charts, result, state);
    showControls();
    say();
    drawLayer();
    dirty = false;
  };
  Explorer.change = change;
  Explorer.state = () => state;

  let saved = 0;
  function frame(now) {
    let seen = false;
    if (playing) {
      layer += Math.min(100, now - before) * 0.008;
      if (layer >= state.depth) layer = 0;
      seen = true;
    }
    before = now;
    if (dirty) {
      Explorer.refresh();
      saved = now + 250;
    } else if (seen) drawLayer();
    if (saved && now > saved) {
      history.replaceState(null, "", Explorer.toLink(state));
      saved = 0;
    }
    requestAnimationFrame(frame);
  }

  function play(on) {
    playing = on;
    find("play").textContent = on ? "Pause" : "Play";
  }

  function complain(words) {
    find("trouble").textContent = words;
    find("trouble").hidden = false;
  }

  function read() {
    const link = window.location.hash;
    find("trouble").hidden = true;
    try {
      start(link.length > 1 ? link : PRESETS[0].link);
    } catch (error) {
      complain(`This link cannot be read: ${error.message}. The first example is shown instead.`);
      start(PRESETS[0].link);
    }
  }

  function start(link) {
    state = Explorer.fromLink(link);
    layer = 0;
    dirty = true;
  }

  for (const name of ["n", "seed", "share", "heads", "skew", "turn", "depth"]) {
    find(name).addEventListener("input", (event) => {
      if (Number.isFinite(event.target.valueAsNumber)) change({ [name]: tidy(event.target.valueAsNumber) });
    });
  }
  find("temperature").addEventListener("input", (event) => {
    change({ temperature: Number((10 ** event.target.valueAsNumber).toPrecision(4)) });
  });
  find("kind").addEventListener("change", (event) => change({ kind: event.target.value }));
  for (const name of ["causal", "chain"]) {
    find(name).addEventListener("change", (event) => change({ [name]: event.target.checked }));
  }
  find("add-real").addEventListener("click", () => change({ h: [...state.h, { re: -0.5, im: 0, pair: false }] }));
  find("add-pair").addEventListener("click", () => change({ h: [...state.h, { re: -0.5, im: 0.5, pair: true }] }));
  find("remove").addEventListener("click", () => change({ h: state.h.slice(0, -1) }));
  find("preset").addEventListener("change", (event) => {
    const preset = PRESETS.find((one) => one.key === event.target.value);
    if (preset) start(preset.link);
  });
  find("play").addEventListener("click", () => play(!playing));
  find("layer").addEventListener("input", (event) => {
    play(false);
    layer = event.target.valueAsNumber;
    drawLayer();
  });
  function matrices() {
    const rows = (M, m) => Array.from({ length: M.length / m }, (_, i) => Array.from(M.slice(i * m, (i + 1) * m)));
    const d = result.value.d;
    return { A: rows(result.attentions[0], state.n), H: rows(result.value.H, d), X0: rows(Explorer.start(state, d), d) };
  }

  // The three lines that ask Python for this verdict.
  Explorer.python = function () {
    const { A, H } = matrices();
    return `import oversmoothing\nA, H = ${JSON.stringify(A)}, ${JSON.stringify(H)}\n`
      + "print(oversmoothing.verdict(A=A, H=H))\n";
  };
  find("python").addEventListener("click", () => {
    const said = find("python-said");
    navigator.clipboard.writeText(Explorer.python()).then(
      () => { said.textContent = "Copied: paste it into Python."; },
      () => { said.textContent = "This browser does not let the page copy: use Save as case.json."; });
  });
  find("case").addEventListener("click", () => {
    const text = JSON.stringify({ comment: "written by the explorer", ...matrices() });
    const href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    Object.assign(document.createElement("a"), { href, download: "case.json" }).click();
    setTimeout(() => URL.revokeObjectURL(href), 1000);
  });
  window.addEventListener("hashchange", () => {
    if (window.location.hash !== Explorer.toLink(state)) read();
  });
  read();
  Explorer.refresh();
  play(!window.matchMedia("(prefers-reduced-motion: reduce)").matches);
  requestAnimationFrame(frame);
}());
