"use strict";
// Which mode wins: rho_C = max |1 + h| of consensus against rho_Q = max |1 + h a| of the rest (T2,
// T3), and for weights that rotate the same in the rotating frame (T7b).

// Thresholds below which two radii are called too close, relative: no bounds of the rounding.
Explorer.CLOSE = { tied: 1e-9, turning: 1e-6 };

// Eigenvalues of one attention without its 1, as pairs [re, im].
Explorer.spectrum = function (state, A) {
  const n = state.n;
  // Triangular, by a mask or as given: the diagonal (T1h): QR would lose half the digits of equal ones.
  const lower = A.every((a, k) => a === 0 || k % n <= Math.floor(k / n));
  if (lower) return Array.from({ length: n - 1 }, (_, i) => [A[(i + 1) * (n + 1)], 0]);
  if (state.kind === "averaging") return Array.from({ length: n - 1 }, () => [state.share, 0]);
  if (state.kind === "circle") {
    const size = state.share - (1 - state.share) / (n - 1);
    return Array.from({ length: n - 1 }, (_, k) => {
      const angle = (2 * Math.PI * (k + 1)) / n;
      return [size * Math.cos(angle), 2 * (k + 1) === n ? 0 : size * Math.sin(angle)];
    });
  }
  // B'_ij = A_ij - A_nj has the eigenvalues of A without its 1 (T1c).
  const m = n - 1, B = new Float64Array(m * m);
  for (let i = 0; i < m; i += 1)
    for (let j = 0; j < m; j += 1) B[i * m + j] = A[i * n + j] - A[m * n + j];
  const real = state.kind === "psd" || state.kind === "symmetric"; // T1g
  return Explorer.eigenvalues(B, new Float64Array(m * m), m).map(([x, y]) =>
    [x, real || Math.abs(y) < 1e-13 ? 0 : y]);
};

// D(a): the open disc of those h at which mode a beats consensus (T3b); null unless |a| < 1.
Explorer.disc = function ([x, y]) {
  const gap = 1 - x * x - y * y;
  if (!(gap > 0)) return null;
  if (y === 0) return { re: -1 / (1 + x), im: 0, radius: 1 / (1 + x) };
  return { re: -(1 - x) / gap, im: -y / gap, radius: Math.hypot(1 - x, y) / gap };
};

// |h|^2 (1 - |a|^2) + 2 Re(h (1 - a)) < 0: h lies in D(a).
Explorer.inDisc = function (re, im, [x, y]) {
  return (re * re + im * im) * (1 - x * x - y * y) + 2 * (re * (1 - x) + im * y) < 0;
};

Explorer.dominance = function (state, spectra, value) {
  const turning = state.turn !== 0 && value.d > 1;
  const several = new Set(spectra).size > 1;
  if (turning && several) return { verdict: "NOT_COMPUTED", consensus: NaN, quotient: NaN, rate: NaN };
  const { consensus, quotient } = turning ? turningRadii(state, spectra[0], value)
    : tiedRadii(spectra, value);
  const close = turning ? Explorer.CLOSE.turning : Explorer.CLOSE.tied;
  const gap = (consensus - quotient) / Math.max(consensus, quotient);
  // NaN where both radii are 0.
  const verdict = !(Math.abs(gap) > close) ? "TOO_CLOSE" : gap > 0 ? "SMOOTHING" : "NON_SMOOTHING";
  return { verdict, consensus, quotient, rate: quotient / consensus };
};

function tiedRadii(spectra, value) {
  let consensus = 0, quotient = 0;
  value.entries.forEach(({ re, im, first }, k) => {
    if (!first) return;
    consensus = Math.max(consensus, Math.hypot(1 + re, im));
    for (const [x, y] of spectra[value.owner[k]]) {
      quotient = Math.max(quotient, Math.hypot(1 + re * x - im * y, re * y + im * x));
      quotient = Math.max(quotient, Math.hypot(1 + re * x + im * y, re * y - im * x));
    }
  });
  return { consensus, quotient };
}

// In the frame X_l R^l one layer is X -> (X + A X W) R: mode a sees (I + a W) R.
function turningRadii(state, spectrum, { d, H }) {
  const R = Explorer.rotation(state, d);
  const seen = new Map();
  const radius = ([x, y]) => {
    const key = `${x} ${Math.abs(y)}`; // a and its conjugate have one radius
    if (seen.has(key)) return seen.get(key);
    const re = new Float64Array(d * d), im = new Float64Array(d * d);
    for (let i = 0; i < d; i += 1)
      for (let j = 0; j < d; j += 1) {
        re[i * d + j] = (i === j ? 1 : 0) + x * H[j * d + i];
        im[i * d + j] = Math.abs(y) * H[j * d + i];
      }
    const values = Explorer.eigenvalues(Explorer.product(re, R, d), Explorer.product(im, R, d), d);
    const found = Math.max(...values.map(([u, v]) => Math.hypot(u, v)));
    seen.set(key, found);
    return found;
  };
  return { consensus: radius([1, 0]), quotient: Math.max(...spectrum.map(radius)) };
}
