// Coefficients and margins over log-time.

import { axes, clip, line, placeholder } from "./draw.js";

const LN10 = Math.log(10);

function later(frames, networks) {
  return frames.filter((frame) => networks.some((name) => frame[name] && frame[name].log_time !== null));
}

/** From the first recorded time to the end of training, so that curves grow into the picture. */
function timeAxis(frames, networks, horizon) {
  const low = frames[0][networks[0]].log_time / LN10;
  const high = Math.max(horizon, frames[frames.length - 1][networks[0]].log_time / LN10);
  return { low, high: high > low ? high : low + 1, label: "time ηt", log: true };
}

/** Draw curves over time; the axis holds `initial` and all `values(view)`, `paint` draws the curves. */
function overTime(canvas, all, networks, shown, horizon, { label, initial, values, paint }) {
  const frames = later(all, networks);
  if (frames.length < 2) { placeholder(canvas, "press Train"); return; }
  let [low, high] = initial;
  for (const frame of frames) for (const name of networks) {
    for (const value of values(frame[name])) { low = Math.min(low, value); high = Math.max(high, value); }
  }
  const span = high - low || 1;
  const plane = axes(canvas, timeAxis(frames, networks, horizon), { low: low - 0.04 * span, high: high + 0.06 * span, label });
  clip(plane);
  paint(frames, plane, frames.map((f) => plane.x(f[networks[0]].log_time / LN10)));
  plane.context.restore();
  const now = shown?.[networks[0]]?.log_time ?? null;
  if (now === null) return;
  const x = plane.x(now / LN10);
  line(plane.context, [[x, plane.plot.top], [x, plane.plot.bottom]], { colour: plane.colour.quiet, width: 1.5, dash: [2, 3] });
}

/** Draw the coefficients, and lines that grow like log-time through those of the `guided` networks. */
export function drawCoefficients(canvas, all, networks, shown, horizon, guided) {
  const paint = (frames, { context, colour, x, y }, times) => {
    const last = frames[frames.length - 1];
    for (const name of networks) {
      last[name].own.forEach((row, r) => row.forEach((isOwn, j) => {
        const points = frames.map((f, i) => [times[i], y(f[name].lambda[r][j])]);
        line(context, points, isOwn
          ? { colour: colour[name], width: 1.6, alpha: 0.55 }
          : { colour: colour[name], width: 1.2, alpha: 0.35, dash: [1.5, 3] });
      }));
    }
    const ends = [frames[0], last].map((f) => f[networks[0]].log_time);
    if (guided.length) line(context, ends.map((t) => [x(t / LN10), y(t)]), { colour: colour.ink, width: 2 });
    for (const name of guided) {
      const values = last[name].lambda.flatMap((row, r) => row.filter((_, j) => last[name].own[r][j]));
      const mean = values.reduce((a, b) => a + b, 0) / values.length;
      line(context, ends.map((t) => [x(t / LN10), y(mean + t - ends[1])]), { colour: colour.ink, width: 1.8, dash: [7, 5] });
    }
  };
  overTime(canvas, all, networks, shown, horizon, { label: "λ", initial: [0, 0.1], values: (view) => view.lambda.flat(), paint });
}

export function drawMargins(canvas, all, networks, shown, horizon) {
  const paint = (frames, { context, colour, plot, y }, times) => {
    line(context, [[plot.left, y(0)], [plot.right, y(0)]], { colour: colour.quiet, width: 1 });
    for (const name of networks) {
      const at = (q) => frames.map((f, i) => [times[i], y(f[name].margins[q])]);
      context.fillStyle = colour[name];
      context.globalAlpha = 0.2;
      context.beginPath();
      [...at(0), ...at(2).reverse()].forEach(([x, height], i) => (i ? context.lineTo(x, height) : context.moveTo(x, height)));
      context.fill();
      context.globalAlpha = 1;
      line(context, at(1), { colour: colour[name], width: 2.4 });
      line(context, at(0), { colour: colour[name], width: 1.4, dash: [5, 3] });
    }
  };
  overTime(canvas, all, networks, shown, horizon, { label: "margin", initial: [0, 0], values: (view) => view.margins, paint });
}
