"use strict";
// The three metrics against depth, and the tokens in motion, on a canvas.

Explorer.drawMetrics = function (charts, result, state) {
  const { log, cosMean, cosMin, rank } = result.run, { rate, verdict } = result.answer;
  const finite = log.filter(Number.isFinite);
  const low = Math.max(-400, Math.min(-2, ...finite)), high = Math.min(400, Math.max(1, ...finite));
  const scale = Page.scale(low, high);
  // A line of the predicted slope log10 r through the last layer.
  const last = log[log.length - 1], slope = Math.log10(rate);
  const predicted = verdict === "SMOOTHING" && Number.isFinite(last) && Number.isFinite(slope)
    ? log.map((_, layer) => last + slope * (layer - state.depth)) : [NaN];
  const within = predicted.map((x) => (x > scale.high ? NaN : x));
  charts.ratio.draw([log, within], scale.low, scale.high, scale.ticks);
  charts.cosine.draw([cosMean, cosMin], -1, 1, [[-1, "\u22121"], [0, "0"], [1, "1"]]);
  const d = Math.max(2, Math.min(state.n, result.value.d));
  const ticks = [[1, "1"]];
  for (let k = 2; k <= d; k += d > 4 ? 2 : 1) ticks.push([k, String(k)]);
  charts.rank.draw([rank], 0.9, d, ticks);
};

// Tokens seen along two fixed directions of feature space, each layer divided by its largest token.
Explorer.drawTokens = function (canvas, run, state, d, layer) {
  const context = canvas.getContext("2d"), size = canvas.width, n = state.n;
  const css = getComputedStyle(canvas);
  const faint = css.getPropertyValue("--line"), light = css.getPropertyValue("--token");
  context.clearRect(0, 0, size, size);
  context.strokeStyle = faint;
  context.lineWidth = size / 400;
  context.beginPath();
  context.moveTo(size / 2, 0); context.lineTo(size / 2, size);
  context.moveTo(0, size / 2); context.lineTo(size, size / 2);
  context.stroke();
  const first = Math.max(0, Math.floor(layer) - 12), last = Math.ceil(layer);
  const points = [];
  for (let l = first; l <= last; l += 1) points.push(seen(run.tokens[l], n, d));
  for (let i = 0; i < n; i += 1) {
    const colour = `hsl(${Math.round((300 * i) / Math.max(1, n - 1))} 70% ${light})`;
    const part = layer - Math.floor(layer), newest = points.length - 1;
    const to = points[newest], from = points[Math.max(0, newest - (part > 0 ? 1 : 0))];
    const weight = part > 0 ? part : 1;
    const x = from[2 * i] + weight * (to[2 * i] - from[2 * i]);
    const y = from[2 * i + 1] + weight * (to[2 * i + 1] - from[2 * i + 1]);
    context.strokeStyle = context.fillStyle = colour;
    context.globalAlpha = 0.35;
    context.beginPath();
    for (let p = 0; p < newest; p += 1) {
      context.lineTo(place(points[p][2 * i], size), place(-points[p][2 * i + 1], size));
    }
    context.lineTo(place(x, size), place(-y, size));
    context.stroke();
    context.globalAlpha = 1;
    context.beginPath();
    context.arc(place(x, size), place(-y, size), size / 65, 0, 2 * Math.PI);
    context.fill();
  }
};

const place = (x, size) => size / 2 + x * size * 0.46;

function seen(X, n, d) {
  const found = new Float64Array(2 * n);
  let top = 0;
  for (let i = 0; i < n; i += 1) top = Math.max(top, Math.hypot(...X.subarray(i * d, (i + 1) * d)));
  for (let i = 0; top > 0 && i < n; i += 1)
    for (let j = 0; j < d; j += 1) {
      const [u, v] = direction(j, d);
      found[2 * i] += (u * X[i * d + j]) / top;
      found[2 * i + 1] += (v * X[i * d + j]) / top;
    }
  // One feature: it is drawn upward, the tokens side by side.
  if (d === 1) for (let i = 0; i < n; i += 1) found[2 * i] = n > 1 ? (1.6 * i) / (n - 1) - 0.8 : 0;
  return found;
}

// Feature j as a point of the picture: two features as they are, more spread over a half circle.
function direction(j, d) {
  if (d === 1) return [0, 1];
  if (d === 2) return j ? [0, 1] : [1, 0];
  const angle = (Math.PI * j) / d, size = Math.sqrt(2 / d);
  return [size * Math.cos(angle), size * Math.sin(angle)];
}
