"use strict";
// From a state of the explorer to the matrices of X' = X + sum_h A_h X W_h, H = W^T.

// Row-stochastic attention of every head, row by row. Drawn kinds differ by head; averaging, circle
// and given are the same in each.
Explorer.attentions = function (state) {
  const drawn = Explorer.DRAWN.includes(state.kind), first = attention(state, 0);
  return Array.from({ length: state.heads }, (_, head) => (drawn && head ? attention(state, head) : first));
};

Explorer.DRAWN = ["softmax", "psd", "symmetric"];

function attention(state, head) {
  const n = state.n, A = new Float64Array(n * n), drawn = Explorer.DRAWN.includes(state.kind);
  const logits = drawn ? Explorer.logits(state, head) : null;
  for (let i = 0; i < n; i += 1) {
    const seen = state.causal ? i + 1 : n, row = A.subarray(i * n, i * n + seen);
    const scores = drawn ? logits.subarray(i * n, i * n + seen) : [0], top = Math.max(...scores);
    let total = 0;
    for (let j = 0; j < seen; j += 1)
      total += row[j] = drawn ? Math.exp(scores[j] - top) : weight(state, i, j);
    if (!drawn && !state.causal) continue;
    // A mask takes weight away: the rest is divided by its sum. Row 1 sees itself alone.
    if (total > 0) for (let j = 0; j < seen; j += 1) row[j] /= total;
    else row[i] = 1;
  }
  return A;
}

function weight(state, i, j) {
  const n = state.n;
  if (state.kind === "given") return state.A[i][j];
  if (state.kind === "averaging") return (1 - state.share) / n + (i === j ? state.share : 0);
  return j === (i + 1) % n ? state.share : (1 - state.share) / (n - 1); // circle
}

// Scores before the softmax, divided by the temperature. psd: W_Q = W_K, so A has its spectrum in
// [0, 1]; symmetric: W_Q W_K^T symmetric, a real spectrum (T1g).
Explorer.logits = function (state, head) {
  const n = state.n, k = 8, draw = Explorer.normals(1000 * (head + 1) + state.seed, 2 * n * k);
  const scores = new Float64Array(n * n);
  for (let i = 0; i < n; i += 1) {
    for (let j = 0; j < n; j += 1) {
      let sum = 0;
      for (let f = 0; f < k; f += 1) {
        const other = state.kind === "softmax" ? n * k : 0;
        const sign = state.kind === "symmetric" && f % 2 ? -1 : 1;
        sum += sign * draw[i * k + f] * draw[other + j * k + f];
      }
      scores[i * n + j] = sum / Math.sqrt(k) / state.temperature;
    }
  }
  return scores;
};

// H = S D S^-1 with D from the eigenvalues, S unit upper triangular. Also which head owns which
// column of D: head k owns the eigenvalues k, k + heads, ... so that H_h = S D_h S^-1 and sum to H.
Explorer.value = function (state) {
  const entries = [];
  state.h.forEach((h, number) => {
    entries.push({ number, re: h.re, im: h.pair ? h.im : 0, first: true, pair: h.pair });
    if (h.pair) entries.push({ number, re: h.re, im: h.im, first: false, pair: true });
  });
  const d = entries.length, D = new Float64Array(d * d), owner = [];
  entries.forEach((entry, k) => {
    D[k * d + k] = entry.re;
    if (entry.pair && entry.first) { D[k * d + k + 1] = -entry.im; D[(k + 1) * d + k] = entry.im; }
    owner.push(entry.number % state.heads);
    const before = entries[k - 1];
    if (state.chain && before && !entry.pair && !before.pair && before.re === entry.re) {
      D[(k - 1) * d + k] = 1; // a Jordan block: one head owns all of it
      owner[k] = owner[k - 1];
    }
  });
  const S = new Float64Array(d * d), inverse = new Float64Array(d * d);
  const draw = Explorer.normals(77 + state.seed, d * d);
  for (let i = 0; i < d; i += 1) {
    S[i * d + i] = 1;
    for (let j = i + 1; j < d; j += 1) S[i * d + j] = state.skew ? state.skew * draw[i * d + j] : 0;
  }
  for (let j = 0; j < d; j += 1) {
    inverse[j * d + j] = 1;
    for (let i = j - 1; i >= 0; i -= 1) {
      let sum = 0;
      for (let k = i + 1; k <= j; k += 1) sum += S[i * d + k] * inverse[k * d + j];
      inverse[i * d + j] = -sum;
    }
  }
  return { d, D, S, inverse, owner, H: product(product(S, D, d), inverse, d), entries };
};

function product(X, Y, d) {
  const Z = new Float64Array(X.length), length = X.length;
  for (let i = 0; i < length; i += d)
    for (let k = 0; k < d; k += 1) {
      const x = X[i + k], from = k * d;
      if (x !== 0) for (let j = 0; j < d; j += 1) Z[i + j] += x * Y[from + j];
    }
  return Z;
}
Explorer.product = product;

Explorer.transposed = function (X, d) {
  const Y = new Float64Array(X.length), n = X.length / d;
  for (let i = 0; i < n; i += 1) for (let j = 0; j < d; j += 1) Y[j * n + i] = X[i * d + j];
  return Y;
};

// The rotation by `turn` degrees in the planes of features (1, 2), (3, 4), ...; W_l = R^l W R^-l.
Explorer.rotation = function (state, d) {
  const R = new Float64Array(d * d), t = (state.turn * Math.PI) / 180;
  for (let k = 0; k < d; k += 1) R[k * d + k] = 1;
  for (let k = 0; state.turn !== 0 && k + 1 < d; k += 2) {
    R[k * d + k] = R[(k + 1) * d + k + 1] = Math.cos(t);
    R[k * d + k + 1] = -Math.sin(t);
    R[(k + 1) * d + k] = Math.sin(t);
  }
  return R;
};

Explorer.start = function (state, d) {
  return state.X ? Float64Array.from(state.X.flat())
    : Explorer.normals(500000 + state.seed, state.n * d);
};
