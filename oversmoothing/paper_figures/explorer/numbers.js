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
// [re, im]: Householder reflections to Hessenberg form, then QR steps with Wilkinson's shift.
Explorer.eigenvalues = function (re, im, m) {
  hessenberg(re, im, m);
  const found = [];
  const cr = new Float64Array(m), ci = new Float64Array(m);
  const sr = new Float64Array(m), si = new Float64Array(m);
  let high = m - 1, steps = 0;
  while (high >= 0) {
    let low = high;
    while (low > 0) {
      const size = Math.hypot(re[low * m + low], im[low * m + low])
        + Math.hypot(re[(low - 1) * m + low - 1], im[(low - 1) * m + low - 1]);
      const below = Math.hypot(re[low * m + low - 1], im[low * m + low - 1]);
      if (below <= Number.EPSILON * (size || 1)) break;
      low -= 1;
    }
    if (low === high) {
      found.push([re[high * m + high], im[high * m + high]]);
      high -= 1;
      steps = 0;
      continue;
    }
    steps += 1;
    if (steps > 300) throw new Error("the eigenvalues did not converge in 300 QR steps");
    const [tr, ti] = steps % 10 ? wilkinson(re, im, m, high)
      : [Math.abs(re[high * m + high - 1]) + Math.abs(im[high * m + high - 1]), 0];
    qrStep(re, im, m, low, high, tr, ti, cr, ci, sr, si);
  }
  return found;
};

function hessenberg(re, im, m) {
  const vr = new Float64Array(m), vi = new Float64Array(m);
  for (let k = 0; k < m - 2; k += 1) {
    let norm = 0;
    for (let i = k + 1; i < m; i += 1) norm = Math.hypot(norm, re[i * m + k], im[i * m + k]);
    if (norm === 0) continue;
    const ar = re[(k + 1) * m + k], ai = im[(k + 1) * m + k], size = Math.hypot(ar, ai);
    const pr = size ? ar / size : 1, pi = size ? ai / size : 0;
    let length = 0;
    for (let i = k + 1; i < m; i += 1) {
      vr[i] = re[i * m + k] + (i === k + 1 ? pr * norm : 0);
      vi[i] = im[i * m + k] + (i === k + 1 ? pi * norm : 0);
      length += vr[i] * vr[i] + vi[i] * vi[i];
    }
    const factor = 2 / length;
    for (let j = k; j < m; j += 1) {
      let xr = 0, xi = 0;
      for (let i = k + 1; i < m; i += 1) {
        xr += vr[i] * re[i * m + j] + vi[i] * im[i * m + j];
        xi += vr[i] * im[i * m + j] - vi[i] * re[i * m + j];
      }
      xr *= factor; xi *= factor;
      for (let i = k + 1; i < m; i += 1) {
        re[i * m + j] -= vr[i] * xr - vi[i] * xi;
        im[i * m + j] -= vr[i] * xi + vi[i] * xr;
      }
    }
    for (let i = 0; i < m; i += 1) {
      let xr = 0, xi = 0;
      for (let j = k + 1; j < m; j += 1) {
        xr += re[i * m + j] * vr[j] - im[i * m + j] * vi[j];
        xi += re[i * m + j] * vi[j] + im[i * m + j] * vr[j];
      }
      xr *= factor; xi *= factor;
      for (let j = k + 1; j < m; j += 1) {
        re[i * m + j] -= xr * vr[j] + xi * vi[j];
        im[i * m + j] -= xi * vr[j] - xr * vi[j];
      }
    }
  }
}

// The eigenvalue of the last 2 x 2 block that is nearer to its last entry.
function wilkinson(re, im, m, high) {
  const p = (high - 1) * m + high - 1, q = high * m + high;
  const hr = (re[p] - re[q]) / 2, hi = (im[p] - im[q]) / 2;
  const br = re[p + 1], bi = im[p + 1], cr = re[q - 1], ci = im[q - 1];
  const productR = br * cr - bi * ci, productI = br * ci + bi * cr;
  let [rr, ri] = root(hr * hr - hi * hi + productR, 2 * hr * hi + productI);
  if (hr * rr + hi * ri < 0) { rr = -rr; ri = -ri; }
  const dr = hr + rr, di = hi + ri, size = dr * dr + di * di;
  if (size === 0) return [re[q], im[q]];
  return [re[q] - (productR * dr + productI * di) / size,
    im[q] - (productI * dr - productR * di) / size];
}

function root(x, y) {
  const size = Math.hypot(x, y);
  const real = Math.sqrt((size + Math.abs(x)) / 2);
  if (real === 0) return [0, 0];
  return x >= 0 ? [real, y / (2 * real)] : [Math.abs(y) / (2 * real), y < 0 ? -real : real];
}

function qrStep(re, im, m, low, high, tr, ti, cr, ci, sr, si) {
  for (let k = low; k <= high; k += 1) { re[k * m + k] -= tr; im[k * m + k] -= ti; }
  for (let k = low; k < high; k += 1) {
    const u = k * m, v = u + m;
    const size = Math.hypot(re[u + k], im[u + k], re[v + k], im[v + k]);
    cr[k] = size ? re[u + k] / size : 1; ci[k] = size ? im[u + k] / size : 0;
    sr[k] = size ? re[v + k] / size : 0; si[k] = size ? im[v + k] / size : 0;
    for (let j = k; j <= high; j += 1) {
      const xr = re[u + j], xi = im[u + j], yr = re[v + j], yi = im[v + j];
      re[u + j] = cr[k] * xr + ci[k] * xi + sr[k] * yr + si[k] * yi;
      im[u + j] = cr[k] * xi - ci[k] * xr + sr[k] * yi - si[k] * yr;
      re[v + j] = cr[k] * yr - ci[k] * yi - sr[k] * xr + si[k] * xi;
      im[v + j] = cr[k] * yi + ci[k] * yr - sr[k] * xi - si[k] * xr;
    }
  }
  for (let k = low; k < high; k += 1) {
    for (let i = low; i <= k + 1; i += 1) {
      const u = i * m + k, xr = re[u], xi = im[u], yr = re[u + 1], yi = im[u + 1];
      re[u] = xr * cr[k] - xi * ci[k] + yr * sr[k] - yi * si[k];
      im[u] = xr * ci[k] + xi * cr[k] + yr * si[k] + yi * sr[k];
      re[u + 1] = yr * cr[k] + yi * ci[k] - xr * sr[k] - xi * si[k];
      im[u + 1] = yi * cr[k] - yr * ci[k] - xi * sr[k] + xr * si[k];
    }
  }
  for (let k = low; k <= high; k += 1) { re[k * m + k] += tr; im[k * m + k] += ti; }
}

// Singular values of X [rows, columns], row by row: a triangle by Householder reflections, then
// one-sided Jacobi rotations of its rows.
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
  const found = new Float64Array(d);
  for (let p = 0; p < d; p += 1) {
    for (let i = 0; i < d; i += 1) found[p] += Y[p * d + i] * Y[p * d + i];
    found[p] = Math.sqrt(found[p]);
  }
  return found.sort().reverse();
};

// The upper triangle R of X = Q R, [columns, columns].
function triangle(X, rows, columns) {
  const Y = X.slice();
  for (let k = 0; k < columns && k < rows - 1; k += 1) {
    let size = 0;
    for (let i = k; i < rows; i += 1) size += Y[i * columns + k] * Y[i * columns + k];
    size = Math.sqrt(size);
    if (size === 0) continue;
    const top = Y[k * columns + k], sign = top < 0 ? -1 : 1, first = top + sign * size;
    const factor = 1 / (size * (size + Math.abs(top)));
    for (let j = k + 1; j < columns; j += 1) {
      let sum = first * Y[k * columns + j];
      for (let i = k + 1; i < rows; i += 1) sum += Y[i * columns + k] * Y[i * columns + j];
      sum *= factor;
      Y[k * columns + j] -= sum * first;
      for (let i = k + 1; i < rows; i += 1) Y[i * columns + j] -= sum * Y[i * columns + k];
    }
    Y[k * columns + k] = -sign * size;
  }
  const R = new Float64Array(columns * columns);
  for (let i = 0; i < columns; i += 1)
    for (let j = i; j < columns; j += 1) R[i * columns + j] = Y[i * columns + j];
  return R;
}
