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

function marker(frame, at) {
  if (at === null) return;
  line(frame.context, [[frame.x(at), frame.plot.top], [frame.x(at), frame.plot.bottom]], {
    colour: frame.colour.quiet, width: 1.5, dash: [2, 3],
  });
}

function shownTime(shown, networks) {
  const view = shown && shown[networks[0]];
  return view && view.log_time !== null ? view.log_time / LN10 : null;
}

export function drawCoefficients(canvas, all, networks, shown, horizon) {
  const frames = later(all, networks);
  if (frames.length < 2) { placeholder(canvas, "press Train"); return; }
  const last = frames[frames.length - 1];
  let low = 0, high = 0.1;
  for (const frame of frames) for (const name of networks) {
    for (const row of frame[name].lambda) for (const value of row) { low = Math.min(low, value); high = Math.max(high, value); }
  }
  const span = high - low;
  const frame = axes(canvas, timeAxis(frames, networks, horizon), { low: low - 0.04 * span, high: high + 0.06 * span, label: "λ" });
  const { context, colour } = frame;
  const times = frames.map((f) => frame.x(f[networks[0]].log_time / LN10));
  clip(frame);
  for (const name of networks) {
    const own = last[name].own;
    own.forEach((row, r) => row.forEach((isOwn, j) => {
      const points = frames.map((f, i) => [times[i], frame.y(f[name].lambda[r][j])]);
      line(context, points, isOwn
        ? { colour: colour[name], width: 1.6, alpha: 0.55 }
        : { colour: colour[name], width: 1.2, alpha: 0.35, dash: [1.5, 3] });
    }));
  }
  const ends = [frames[0], last].map((f) => f[networks[0]].log_time);
  line(context, ends.map((t) => [frame.x(t / LN10), frame.y(t)]), { colour: colour.ink, width: 2 });
  for (const name of networks) {
    const values = last[name].lambda.flatMap((row, r) => row.filter((_, j) => last[name].own[r][j]));
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    line(context, ends.map((t) => [frame.x(t / LN10), frame.y(mean + t - ends[1])]), { colour: colour.ink, width: 1.8, dash: [7, 5] });
  }
  context.restore();
  marker(frame, shownTime(shown, networks));
}

export function drawMargins(canvas, all, networks, shown, horizon) {
  const frames = later(all, networks);
  if (frames.length < 2) { placeholder(canvas, "press Train"); return; }
  let low = 0, high = 0;
  for (const frame of frames) for (const name of networks) {
    low = Math.min(low, frame[name].margins[0]);
    high = Math.max(high, frame[name].margins[2]);
  }
  const span = high - low || 1;
  const frame = axes(canvas, timeAxis(frames, networks, horizon), { low: low - 0.04 * span, high: high + 0.06 * span, label: "margin" });
  const { context, colour } = frame;
  const times = frames.map((f) => frame.x(f[networks[0]].log_time / LN10));
  clip(frame);
  line(context, [[frame.plot.left, frame.y(0)], [frame.plot.right, frame.y(0)]], { colour: colour.quiet, width: 1 });
  for (const name of networks) {
    const at = (q) => frames.map((f, i) => [times[i], frame.y(f[name].margins[q])]);
    context.fillStyle = colour[name];
    context.globalAlpha = 0.2;
    context.beginPath();
    [...at(0), ...at(2).reverse()].forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.fill();
    context.globalAlpha = 1;
    line(context, at(1), { colour: colour[name], width: 2.4 });
    line(context, at(0), { colour: colour[name], width: 1.4, dash: [5, 3] });
  }
  context.restore();
  marker(frame, shownTime(shown, networks));
}
