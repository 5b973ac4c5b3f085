// Coefficients and margins over log-time.

import { axes, clip, line, placeholder } from "./draw.js";
import { hint } from "./state.js";

const LN10 = Math.log(10);
const WIDE = 40; // values that range further are drawn on a bent axis
const GAP = 0.13; // share of the axis between the time 0 and the first step

const logTime = (frame, networks) => frame[networks[0]].log_time;

/** From the time 0, in a gap of its own, to the end of training, so that curves grow into the picture. */
function timeAxis(frames, networks, horizon) {
  const first = Math.min(...frames.map((f) => logTime(f, networks)).filter((time) => time !== null)) / LN10;
  const last = Math.max(horizon, logTime(frames[frames.length - 1], networks) / LN10);
  const high = last > first ? last : first + 1;
  return { low: first - GAP * (high - first), first, high, label: "time ηt", log: true };
}

/** Draw curves over time; the axis holds `initial` and all `values(view)`, `paint` draws the curves. */
function overTime(canvas, frames, networks, shown, horizon, { label, initial, values, paint }) {
  if (frames.length < 2) { placeholder(canvas, hint()); return; }
  let [low, high] = initial;
  for (const frame of frames) for (const name of networks) {
    for (const value of values(frame[name])) { low = Math.min(low, value); high = Math.max(high, value); }
  }
  const span = high - low || 1;
  const time = timeAxis(frames, networks, horizon);
  const bent = span > WIDE;
  const plane = axes(canvas, time, { low: low - 0.04 * span, high: high + 0.06 * span, label: bent ? `${label}, axis bent like a logarithm` : label, bent });
  const at = (frame) => plane.x(logTime(frame, networks) === null ? time.low : logTime(frame, networks) / LN10);
  clip(plane);
  paint(frames, plane, frames.map(at));
  plane.context.restore();
  if (!shown?.[networks[0]]) return;
  const x = at(shown);
  line(plane.context, [[x, plane.plot.top], [x, plane.plot.bottom]], { colour: plane.colour.quiet, width: 1.5, dash: [2, 3] });
}

/** Draw the coefficients, and lines that grow like log-time through those of the `guided` networks. */
export function drawCoefficients(canvas, all, networks, shown, horizon, guided) {
  const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
  const split = (view, isOwn) => view.lambda.flatMap((row, r) => row.filter((_, j) => Boolean(view.own[r][j]) === isOwn));
  const paint = (frames, { context, colour, x, y }, times) => {
    const last = frames[frames.length - 1];
    for (const name of networks) {
      const others = frames.map((f) => split(f[name], false));
      if (others[0].length) { // so many lines that only their range can be read
        const along = (of) => others.map((values, i) => [times[i], y(of(values))]);
        band(context, along((values) => Math.min(...values)), along((values) => Math.max(...values)), colour[name]);
        line(context, along(mean), { colour: colour[name], width: 1.8, dash: [1.5, 3] });
      }
      last[name].own.forEach((row, r) => row.forEach((isOwn, j) => {
        const points = frames.map((f, i) => [times[i], y(f[name].lambda[r][j])]);
        if (isOwn) line(context, points, { colour: colour[name], width: 1.6, alpha: 0.55 });
      }));
    }
    const [start, end] = [Math.min(...frames.map((f) => logTime(f, networks) ?? Infinity)), logTime(last, networks)];
    const grown = Array.from({ length: 41 }, (_, i) => start + (i / 40) * (end - start));
    if (guided.length) line(context, grown.map((t) => [x(t / LN10), y(t)]), { colour: colour.ink, width: 2 });
    for (const name of guided) {
      const reached = mean(split(last[name], true));
      line(context, grown.map((t) => [x(t / LN10), y(reached + t - end)]), { colour: colour.ink, width: 1.8, dash: [7, 5] });
    }
  };
  overTime(canvas, all, networks, shown, horizon, { label: "λ", initial: [0, 0.1], values: (view) => view.lambda.flat(), paint });
}

/** Fill what lies between two lines. */
function band(context, below, above, colour) {
  context.fillStyle = colour;
  context.globalAlpha = 0.2;
  context.beginPath();
  for (const [x, y] of [...below, ...above.reverse()]) context.lineTo(x, y);
  context.fill();
  context.globalAlpha = 1;
}

export function drawMargins(canvas, all, networks, shown, horizon) {
  const paint = (frames, { context, colour, plot, y }, times) => {
    line(context, [[plot.left, y(0)], [plot.right, y(0)]], { colour: colour.quiet, width: 1 });
    for (const name of networks) {
      const at = (q) => frames.map((f, i) => [times[i], y(f[name].margins[q])]);
      band(context, at(0), at(2), colour[name]);
      line(context, at(1), { colour: colour[name], width: 2.4 });
      line(context, at(0), { colour: colour[name], width: 1.4, dash: [5, 3] });
    }
  };
  overTime(canvas, all, networks, shown, horizon, { label: "margin", initial: [0, 0], values: (view) => view.margins, paint });
}
