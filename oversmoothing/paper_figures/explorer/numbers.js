"use strict";
// Numbers for the explorer, all in float64: seeded draws, eigenvalues, singular values.
// Everything hangs on the one name Explorer, so that a test can call it.
const Explorer = {};

// Draws that any machine repeats: mulberry32, and normal numbers from it by Box and Muller.
Explorer.normals = function (seed, count) {
  let state = (seed * 2654435761 + 1013904223) >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const found = new Float64Array(count);
  for (let k = 0; k < count; k += 2) {
    const radius = Math.sqrt(-2 * Math.log(1 - uniform()));
    const angle = 2 * Math.PI * uniform();
    found[k] = radius * Math.cos(angle);
    if (k + 1 < count) found[k + 1] = radius * Math.sin(angle);
  }
  return found;
};

// Eigenvalues of the complex m x m matrix re + i im (row by row; both are overwritten), as pairs
// [re, im]: rotations to Hessenberg form, then QR steps with Wilkinson's shift.
Explorer.eigenvalues = function (re, im, m) {
  for (let k = 0; k < m - 2; k += 1)
    for (let i = m - 1; i > k + 1; i -= 1) {
      const by = rotation(re, im, (i - 1) * m + k, i * m + k);
      turn(re, im, (i - 1) * m + k, i * m + k, 1, m - k, by);
      turn(re, im, i - 1, i, m, m, conjugate(by));
    }
  const found = [], size = (i, j) => Math.hypot(re[i * m + j], im[i * m + j]);
  const small = (i) => size(i, i - 1)
    <= Number.EPSILON * (size(i, i) + size(i - 1, i - 1) || 1);
  let high = m - 1, steps = 0;
  while (high >= 0) {
    let low = high;
    while (low > 0 && !small(low)) low -= 1;
    if (low === high) {
      found.push([re[high * m + high], im[high * m + high]]);
      high -= 1;
      steps = 0;
      continue;
    }
    steps += 1;
    if (steps > 300) throw new Error("the eigenvalues did not converge in 300 QR steps");
    qrStep(re, im, m, low, high,
      steps % 10 ? wilkinson(re, im, m, high) : [size(high, high - 1), 0]);
  }
  return found;
};

// The unitary rotation that takes the entry at q to 0 and leaves the one at p.
function rotation(re, im, p, q) {
  const size = Math.hypot(re[p], im[p], re[q], im[q]);
  return size ? [re[p] / size, im[p] / size, re[q] / size, im[q] / size] : [1, 0, 0, 0];
}

const conjugate = ([cr, ci, sr, si]) => [cr, -ci, sr, -si];

// Two rows (or columns) from their entries at u and v on, `step` apart: x, y become
// conj(c) x + conj(s) y and c y - s x.
function turn(re, im, u, v, step, count, [cr, ci, sr, si]) {
  for (let k = 0; k < count; k += 1, u += step, v += step) {
    const xr = re[u], xi = im[u], yr = re[v], yi = im[v];
    re[u] = cr * xr + ci * xi + sr * yr + si * yi;
    im[u] = cr * xi - ci * xr + sr * yi - si * yr;
    re[v] = cr * yr - ci * yi - sr * xr + si * xi;
    im[v] = cr * yi + ci * yr - sr * xi - si * xr;
  }
}

// The eigenvalue of the last 2 x 2 block that is nearer to its last entry.
function wilkinson(re, im, m, high) {
  const p = (high - 1) * m + high - 1, q = high * m + high, b = p + 1, c = q - 1;
  const hr = (re[p] - re[q]) / 2, hi = (im[p] - im[q]) / 2;
  const [rr, ri] = root(hr * hr - hi * hi + re[b] * re[c] - im[b] * im[c],
    2 * hr * hi + re[b] * im[c] + im[b] * re[c]);
  const sign = hr * rr + hi * ri > 0 ? -1 : 1;
  return [re[q] + hr + sign * rr, im[q] + hi + sign * ri];
}

function root(x, y) {
  const size = Math.hypot(x, y);
  const real = Math.sqrt((size + Math.abs(x)) / 2);
  if (real === 0) return [0, 0];
  return x >= 0 ? [real, y / (2 * real)] : [Math.abs(y) / (2 * real), y < 0 ? -real : real];
}

function qrStep(re, im, m, low, high, [tr, ti]) {
  for (let k = low; k <= high; k += 1) { re[k * m + k] -= tr; im[k * m + k] -= ti; }
  const turns = [];
  for (let k = low; k < high; k += 1) {
    const p = k * m + k, by = rotation(re, im, p, p + m);
    turn(re, im, p, p + m, 1, high - k + 1, by);
    turns.push(conjugate(by));
  }
  const from = low * m + low;
  turns.forEach((by, k) => turn(re, im, from + k, from + k + 1, m, k + 2, by));
  for (let k = low; k <= high; k += 1) { re[k * m + k] += tr; im[k * m + k] += ti; }
}

Explorer.squares = (X) => X.reduce((sum, x) => sum + x * x, 0);

// Singular values of X [rows, columns], row by row: a triangle, then one-sided
// Jacobi rotations of its rows.
Explorer.singularValues = function (X, rows, columns) {
  if (rows < columns) return Explorer.singularValues(Explorer.transposed(X, columns), columns, rows);
  const Y = triangle(X, rows, columns), d = columns;
  for (let sweep = 0; sweep < 30; sweep += 1) {
    let turned = false;
    for (let p = 0; p < d - 1; p += 1) {
      for (let q = p + 1; q < d; q += 1) {
        let a = 0, b = 0, c = 0;
        for (let i = 0; i < d; i += 1) {
          const x = Y[p * d + i], y = Y[q * d + i];
          a += x * x; b += y * y; c += x * y;
        }
        if (c * c <= 1e-28 * a * b) continue;
        turned = true;
        const z = (b - a) / (2 * c);
        const t = (z < 0 ? -1 : 1) / (Math.abs(z) + Math.sqrt(1 + z * z));
        const cosine = 1 / Math.sqrt(1 + t * t), sine = cosine * t;
        for (let i = 0; i < d; i += 1) {
          const x = Y[p * d + i], y = Y[q * d + i];
          Y[p * d + i] = cosine * x - sine * y; Y[q * d + i] = sine * x + cosine * y;
        }
      }
    }
    if (!turned) break;
  }
  const sizes = Float64Array.from({ length: d }, (_, p) =>
    Math.sqrt(Explorer.squares(Y.subarray(p * d, (p + 1) * d))));
  return sizes.sort().reverse();
};

// The upper triangle R of X = Q R, [columns, columns], by Gram and Schmidt on what is left.
function triangle(X, rows, columns) {
  const Y = Explorer.transposed(X, columns), R = new Float64Array(columns * columns);
  const dot = (k, j) => {
    let sum = 0;
    for (let i = 0; i < rows; i += 1) sum += Y[k * rows + i] * Y[j * rows + i];
    return sum;
  };
  for (let k = 0; k < columns; k += 1) {
    const size = R[k * columns + k] = Math.sqrt(dot(k, k));
    for (let j = k + 1; size > 0 && j < columns; j += 1) {
      const part = R[k * columns + j] = dot(k, j) / size;
      for (let i = 0; i < rows; i += 1) Y[j * rows + i] -= (part / size) * Y[k * rows + i];
    }
  }
  return R;
}
