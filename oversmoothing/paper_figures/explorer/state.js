"use strict";
// The state of the page: its limits, and the link that keeps it.

Explorer.LIMITS = {
  n: [2, 32], d: [1, 8], heads: [1, 4], temperature: [0.05, 20], share: [-1, 0.999],
  skew: [0, 1], turn: [0, 180], depth: [5, 200], seed: [0, 999], re: [-4, 2], im: [0, 2.5],
};
Explorer.KINDS = ["softmax", "psd", "symmetric", "averaging", "circle", "given"];

Explorer.DEFAULT = {
  n: 32, seed: 1, kind: "softmax", temperature: 1, share: 0.5, causal: false, heads: 1,
  h: [
    { re: -0.5, im: 0, pair: false }, { re: 0.5, im: 0, pair: false },
    { re: -0.6, im: 0.4, pair: true }, { re: -1.1, im: 0.5, pair: true },
    { re: -0.3, im: 0.9, pair: true },
  ],
  chain: false, skew: 0.2, turn: 0, depth: 60, A: null, X: null,
};

Explorer.size = (h) => h.reduce((sum, one) => sum + (one.pair ? 2 : 1), 0);

const NUMBERS = ["n", "heads", "depth", "seed", "temperature", "skew", "turn", "share"];
const clamp = (x, [low, high]) => Math.min(high, Math.max(low, x));

// A state within the limits: a given matrix or start of another size is dropped for a drawn one,
// and the share keeps every weight positive.
Explorer.legal = function (state) {
  const s = { ...state };
  for (const name of ["n", "heads", "depth", "seed"]) s[name] = Math.round(clamp(s[name], Explorer.LIMITS[name]));
  for (const name of ["temperature", "skew", "turn"]) s[name] = clamp(s[name], Explorer.LIMITS[name]);
  s.h = s.h.map(({ re, im, pair }) => ({
    re: clamp(re, Explorer.LIMITS.re), im: pair ? clamp(im, Explorer.LIMITS.im) : 0, pair,
  }));
  while (Explorer.size(s.h) > Explorer.LIMITS.d[1]) s.h.pop();
  if (s.A && s.A.length !== s.n) s.A = null;
  if (s.X && (s.X.length !== s.n || s.X[0].length !== Explorer.size(s.h))) s.X = null;
  if (s.kind === "given" && !s.A) s.kind = "softmax";
  if (s.kind !== "given") s.A = null;
  const least = s.kind === "averaging" ? -0.999 / (s.n - 1) : 0;
  s.share = clamp(s.share, [least, Explorer.LIMITS.share[1]]);
  return s;
};

const written = (h) => (h.pair ? `${h.re}${h.im < 0 ? "-" : "+"}${Math.abs(h.im)}i` : String(h.re));
const matrix = (rows) => rows.map((row) => row.join(",")).join(";");

Explorer.toLink = function (s) {
  const words = [`n=${s.n}`, `h=${s.h.map(written).join(",")}`, `attention=${s.kind}`];
  if (Explorer.DRAWN.includes(s.kind)) words.push(`temperature=${s.temperature}`);
  if (s.kind === "averaging" || s.kind === "circle") words.push(`share=${s.share}`);
  if (s.causal) words.push("causal=1");
  if (s.chain) words.push("chain=1");
  words.push(`heads=${s.heads}`, `skew=${s.skew}`, `turn=${s.turn}`, `depth=${s.depth}`,
    `seed=${s.seed}`);
  if (s.A) words.push(`A=${matrix(s.A)}`);
  if (s.X) words.push(`X=${matrix(s.X)}`);
  return `#${words.join("&")}`;
};

const refuse = (wrong, words) => { if (wrong) throw new Error(words); };

// Throws with one sentence where the link is none.
Explorer.fromLink = function (link) {
  const s = { ...Explorer.DEFAULT, share: 0.5, skew: 0 };
  const number = (name, text) => {
    const value = Number(text), none = text.trim() === "" || !Number.isFinite(value);
    refuse(none, `the link says ${name}=${text.slice(0, 20)}, which is no number`);
    return value;
  };
  const rows = (name, text) => {
    const found = text.split(";").map((row) => row.split(",").map((x) => number(name, x)));
    const differ = found.some((row) => row.length !== found[0].length);
    refuse(differ, `the rows of ${name} in the link differ in length`);
    return found;
  };
  for (const word of decodeURIComponent(link.replace(/^#/, "")).split("&")) {
    const [name, text = ""] = word.split(/=(.*)/s);
    if (name === "h") s.h = text.split(",").map(eigenvalue);
    else if (name === "attention") {
      refuse(!Explorer.KINDS.includes(text),
        `the link asks for attention '${text.slice(0, 20)}'; there are ${Explorer.KINDS.join(", ")}`);
      s.kind = text;
    } else if (name === "causal" || name === "chain") {
      refuse(text !== "0" && text !== "1", `the link says ${name}=${text.slice(0, 20)}; it is 0 or 1`);
      s[name] = text === "1";
    } else if (name === "A" || name === "X") s[name] = rows(name, text);
    else if (NUMBERS.includes(name)) s[name] = number(name, text);
    else refuse(true, `the link has '${name.slice(0, 20)}', which this page does not know`);
  }
  refuse(s.A && (s.A.length !== s.A[0].length
    || s.A.some((row) => row.some((x) => x < 0) || Math.abs(row.reduce((a, b) => a + b) - 1) > 1e-9)),
  "the matrix A of the link is not square with rows >= 0 that sum to 1");
  // What this page does not show is refused, never shown as something else.
  const within = (name, x, [low, high]) =>
    refuse(x < low || x > high, `the link says ${name}=${x}; this page takes ${low} to ${high}`);
  for (const name of NUMBERS) within(name, s[name], Explorer.LIMITS[name]);
  for (const { re, im } of s.h) {
    within("Re h", re, Explorer.LIMITS.re);
    within("Im h", im, Explorer.LIMITS.im);
  }
  within("the number of eigenvalues", Explorer.size(s.h), Explorer.LIMITS.d);
  const kept = Explorer.legal(s);
  for (const name of ["n", "heads", "depth", "seed", "share", "A", "X", "kind"])
    refuse(kept[name] !== s[name], `the link's ${name} does not fit the rest of it or is not whole`);
  return kept;
};

function eigenvalue(text) {
  const found = /^([+-]?[\d.]+(?:e[+-]?\d+)?)(?:([+-][\d.]+(?:e[+-]?\d+)?)i)?$/i.exec(text.trim());
  refuse(!found || !Number.isFinite(Number(found[1])) || Number.isNaN(Number(found[2] || 0)),
    `the link has the eigenvalue '${text.slice(0, 20)}': write -0.5 or -0.5+0.2i`);
  const pair = found[2] !== undefined;
  return { re: Number(found[1]), im: pair ? Math.abs(Number(found[2])) : 0, pair };
}
