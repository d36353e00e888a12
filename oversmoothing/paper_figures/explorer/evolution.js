"use strict";
// The tokens layer by layer, and the three metrics. HFC and the mean are iterated apart, each with
// its own power of two, since they part by more than the range of a float (T1c, T11.9).

Explorer.evolve = function (state, attentions, value) {
  const { n } = state, { d } = value, plain = state.skew === 0;
  const turning = state.turn !== 0 && d > 1, R = Explorer.rotation(state, d);
  const fromInverse = Explorer.transposed(value.inverse, d);
  const onward = Explorer.transposed(Explorer.product(value.S, value.D, d), d); // D^T S^T
  const couplings = attentions.map((A) => coupling(A, n));
  const owned = attentions.map((_, head) =>
    Int32Array.from([...value.owner.keys()].filter((j) => value.owner[j] === head)));
  const feeds = couplings.some((g) => g !== null);
  let hfc = Explorer.start(state, d).slice();
  normalise(hfc); // no metric depends on the size of the start, whose squares may leave the floats
  let mean = centre(hfc, n, d);
  let hScale = 0, mScale = 0, turn = Explorer.rotation({ turn: 0 }, d);
  const back = Explorer.transposed(R, d);
  const found = { log: [], cosMean: [], cosMin: [], rank: [], tokens: [] };
  for (let layer = 0; ; layer += 1) {
    const dense = joined(hfc, hScale, mean, mScale, n, d);
    measure(found, hfc, hScale, mean, mScale, dense, n, d);
    found.tokens.push(turning ? Explorer.product(dense, turn, d) : dense);
    if (layer === state.depth) break;
    const U = plain ? hfc : Explorer.product(hfc, fromInverse, d);
    const V = new Float64Array(n * d), fed = new Float64Array(d);
    owned.forEach((columns, head) => attend(attentions[head], U, V, columns, n, d));
    for (let j = 0; feeds && j < d; j += 1) {
      const g = couplings[value.owner[j]];
      if (g) for (let k = 0; k < n; k += 1) fed[j] += g[k] * U[k * d + j];
    }
    let next = Explorer.product(V, onward, d);
    for (let k = 0; k < next.length; k += 1) next[k] += hfc[k];
    // P(HFC + A HFC W): what A HFC has of a mean goes to the mean, and no rounding of it stays here,
    // where it would outlive an HFC that decays.
    centre(next, n, d);
    const coordinates = plain ? mean : Explorer.product(mean, fromInverse, d);
    let nextMean = Explorer.product(coordinates, onward, d);
    for (let k = 0; k < d; k += 1) nextMean[k] += mean[k];
    if (feeds) {
      const more = Explorer.product(fed, onward, d), zero = nextMean.every((x) => x === 0);
      if (zero) mScale = hScale;
      const factor = 2 ** Math.max(hScale - mScale, -1074);
      for (let k = 0; k < d; k += 1) if (more[k] !== 0) nextMean[k] += factor * more[k];
    }
    if (turning) {
      next = Explorer.product(next, R, d);
      nextMean = Explorer.product(nextMean, R, d);
      turn = Explorer.product(back, turn, d);
    }
    hScale += normalise(next);
    mScale += normalise(nextMean);
    hfc = next;
    mean = nextMean;
  }
  return found;
};

// V = A U in some columns.
function attend(A, U, V, columns, n, d) {
  const count = columns.length;
  for (let i = 0; i < n; i += 1)
    for (let k = 0; k < n; k += 1) {
      const a = A[i * n + k], from = k * d, to = i * d;
      for (let c = 0; c < count; c += 1) V[to + columns[c]] += a * U[from + columns[c]];
    }
}

// (1/n) 1^T A - 1/n: what HFC feeds to the mean; null where A is doubly stochastic up to rounding,
// since then it feeds nothing.
function coupling(A, n) {
  const g = new Float64Array(n);
  for (let i = 0; i < n; i += 1) for (let j = 0; j < n; j += 1) g[j] += A[i * n + j];
  for (let j = 0; j < n; j += 1) g[j] = (g[j] - 1) / n;
  return g.every((x) => Math.abs(x) <= 2 ** -50) ? null : g;
}

// Take the mean token out of X, in place; it is returned.
function centre(X, n, d) {
  const mean = new Float64Array(d);
  X.forEach((x, k) => { mean[k % d] += x; });
  mean.forEach((sum, j) => { mean[j] = sum / n; });
  X.forEach((_, k) => { X[k] -= mean[k % d]; });
  return mean;
}

// Divide by a power of two, in place; its exponent is returned.
function normalise(X) {
  const top = X.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
  if (top === 0 || !Number.isFinite(top)) return 0;
  const exponent = Math.max(-1022, Math.floor(Math.log2(top)));
  const factor = 2 ** -exponent;
  for (let k = 0; k < X.length; k += 1) X[k] *= factor;
  return exponent;
}

// X up to a power of two.
function joined(hfc, hScale, mean, mScale, n, d) {
  const anyH = hfc.some((x) => x !== 0), anyM = mean.some((x) => x !== 0);
  const top = Math.max(anyH ? hScale : -Infinity, anyM ? mScale : -Infinity);
  const X = new Float64Array(n * d);
  if (top === -Infinity) return X;
  const fh = anyH ? 2 ** Math.max(hScale - top, -1074) : 0;
  const fm = anyM ? 2 ** Math.max(mScale - top, -1074) : 0;
  for (let i = 0; i < n; i += 1)
    for (let j = 0; j < d; j += 1) X[i * d + j] = hfc[i * d + j] * fh + mean[j] * fm;
  return X;
}

// A token below this share of the longest is a difference of HFC and mean: its direction is rounding.
const CANCELLED = 1e-10;

// log10 HFC/LFC; mean and minimum of the signed cosine over pairs of distinct non-zero tokens;
// effective rank, exp of the entropy of the normalised singular values. NaN where undefined, and the
// cosines also where a token has cancelled.
function measure(found, hfc, hScale, mean, mScale, X, n, d) {
  const high = Math.sqrt(Explorer.squares(hfc)), low = Math.sqrt(n * Explorer.squares(mean));
  found.log.push(high === 0 && low === 0 ? NaN
    : Math.log10(high) - Math.log10(low) + (hScale - mScale) * Math.log10(2));
  const rows = Array.from({ length: n }, (_, i) => X.subarray(i * d, (i + 1) * d));
  const sizes = rows.map((row) => Math.hypot(...row)), floor = CANCELLED * Math.max(...sizes);
  // A token of 0 is one in the start, and is left out; later it is what cancelled.
  const lost = sizes.some((size) => size < floor && (size > 0 || found.tokens.length > 0));
  const unit = rows.flatMap((row, i) => (sizes[i] > 0 && !lost ? [row.map((x) => x / sizes[i])] : []));
  let sum = 0, least = 1;
  for (let i = 0; i < unit.length; i += 1)
    for (let k = i + 1; k < unit.length; k += 1) {
      const u = unit[i], v = unit[k];
      let c = 0;
      for (let j = 0; j < d; j += 1) c += u[j] * v[j];
      c = Math.max(-1, Math.min(1, c));
      sum += c;
      if (c < least) least = c;
    }
  const pairs = (unit.length * (unit.length - 1)) / 2;
  found.cosMean.push(pairs ? sum / pairs : NaN);
  found.cosMin.push(pairs ? least : NaN);
  const sigma = Explorer.singularValues(X, n, d), total = sigma.reduce((a, b) => a + b, 0);
  let entropy = 0;
  for (const s of sigma) if (s > 0) entropy -= (s / total) * Math.log(s / total);
  found.rank.push(total > 0 ? Math.exp(entropy) : NaN);
}

// All that the page shows of a state. What has not changed since the last call is kept.
const kept = { key: null };
Explorer.compute = function (state) {
  const { n, seed, kind, temperature, share, causal, heads, A } = state;
  const key = JSON.stringify([n, seed, kind, temperature, share, causal, heads, A]);
  if (kept.key !== key) {
    kept.attentions = Explorer.attentions(state);
    const spectra = new Map();
    kept.spectra = kept.attentions.map((B) => {
      if (!spectra.has(B)) spectra.set(B, Explorer.spectrum(state, B));
      return spectra.get(B);
    });
    kept.key = key;
  }
  const value = Explorer.value(state);
  const answer = Explorer.dominance(state, kept.spectra, value);
  const run = Explorer.evolve(state, kept.attentions, value);
  return { attentions: kept.attentions, spectra: kept.spectra, value, answer, run };
};
