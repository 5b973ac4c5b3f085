// Helpers of all pictures: sharp canvases, colours of the theme, axes.

import { number, power } from "./format.js";

export function colours() {
  const style = getComputedStyle(document.documentElement);
  const get = (name) => style.getPropertyValue(`--${name}`).trim();
  return Object.fromEntries(
    ["card", "ink", "quiet", "line", "coarse", "fine", "own", "other", "third", "plus", "minus"].map((n) => [n, get(n)]),
  );
}

/** Clear a canvas and return its context in CSS pixels, with the size. */
export function surface(canvas) {
  const box = canvas.getBoundingClientRect();
  const ratio = window.devicePixelRatio || 1;
  const width = Math.max(1, box.width), height = Math.max(1, box.height);
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

export function font(context, size = 0.82) {
  const root = parseFloat(getComputedStyle(document.documentElement).fontSize);
  context.font = `${size * root}px system-ui, "DejaVu Sans", sans-serif`;
  return size * root;
}

export function placeholder(canvas, text) {
  const { context, width, height } = surface(canvas);
  const colour = colours();
  context.strokeStyle = colour.line;
  context.setLineDash([5, 5]);
  context.strokeRect(0.5, 0.5, width - 1, height - 1);
  context.setLineDash([]);
  context.fillStyle = colour.quiet;
  context.textAlign = "center";
  context.textBaseline = "middle";
  const size = font(context, 0.95);
  const lines = text.split("\n");
  lines.forEach((part, i) => context.fillText(part, width / 2, height / 2 + (i - (lines.length - 1) / 2) * 1.4 * size));
}

function niceStep(range, wanted) {
  const rough = range / wanted;
  const base = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((m) => m * base).find((step) => step >= rough) ?? 10 * base;
}

const BEND = 5; // a bent axis is about linear up to here
const bend = (value) => Math.asinh(value / BEND);

/**
 * A frame with axes; returns the two scales. `x` and `y` are {low, high, label, log, format}, with
 * `first` where a logarithmic axis begins if the time 0 is to the left of it, and `bent` for an axis
 * that is linear near 0 and logarithmic further away.
 */
export function axes(canvas, x, y) {
  const { context, width, height } = surface(canvas);
  const colour = colours();
  const size = font(context);
  const ticksY = ticks(y, Math.max(2, Math.floor(height / (4 * size))));
  const left = 10 + Math.max(...ticksY.map((t) => context.measureText(t.text).width));
  const plot = { left, right: width - 12, top: 1.6 * size, bottom: height - 2.7 * size };
  const scaleX = (v) => plot.left + ((v - x.low) / (x.high - x.low)) * (plot.right - plot.left);
  const height01 = y.bent
    ? (v) => (bend(v) - bend(y.low)) / (bend(y.high) - bend(y.low)) : (v) => (v - y.low) / (y.high - y.low);
  const scaleY = (v) => plot.bottom - height01(v) * (plot.bottom - plot.top);
  context.lineWidth = 1;
  context.strokeStyle = colour.line;
  context.fillStyle = colour.quiet;
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (const tick of ticksY) {
    const at = Math.round(scaleY(tick.value)) + 0.5;
    context.beginPath();
    context.moveTo(plot.left, at);
    context.lineTo(plot.right, at);
    context.stroke();
    context.fillText(tick.text, plot.left - 7, at);
  }
  context.textBaseline = "top";
  const room = Math.max(2, Math.floor((plot.right - plot.left) / (5 * size)));
  for (const tick of ticks(x, room)) {
    const at = scaleX(tick.value);
    const half = context.measureText(tick.text).width / 2;
    context.textAlign = at + half > width ? "right" : "center";
    context.fillText(tick.text, context.textAlign === "right" ? width : at, plot.bottom + 6);
  }
  context.textAlign = "right";
  context.fillText(x.label, plot.right, plot.bottom + 6 + 1.25 * size);
  context.textAlign = "left";
  context.textBaseline = "top";
  context.fillText(y.label, 0, 0);
  return { context, plot, x: scaleX, y: scaleY, colour, size, width, height };
}

/** The ticks of an axis {low, high, log, format}: values and texts, at most about so many. */
export function ticks(axis, wanted) {
  const found = [];
  if (axis.bent) {
    const powers = Array.from({ length: 12 }, (_, i) => 10 ** (i + 1));
    return [...powers.map((p) => -p), 0, ...powers].filter((p) => p >= axis.low && p <= axis.high)
      .map((value) => ({ value, text: number(value, 3) }));
  }
  if (axis.log) {
    const first = axis.first ?? axis.low;
    if (axis.first !== undefined) found.push({ value: axis.low, text: "0" });
    const step = Math.max(1, Math.ceil((axis.high - first) / wanted));
    for (let e = Math.ceil(first - 1e-4); e <= axis.high + 1e-4; e += step) found.push({ value: e, text: power(e) });
    return found;
  }
  const step = niceStep(axis.high - axis.low, wanted);
  for (let i = Math.ceil(axis.low / step - 1e-9); i * step <= axis.high + 1e-9 * step; i += 1) {
    const value = i * step;
    found.push({ value, text: axis.format ? axis.format(value) : number(value, 3) });
  }
  return found;
}

export function line(context, points, { colour, width = 2, dash = [], alpha = 1 }) {
  context.save();
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.globalAlpha = alpha;
  context.setLineDash(dash);
  context.lineJoin = "round";
  context.beginPath();
  points.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.stroke();
  context.restore();
}

export function clip(frame) {
  const { context, plot } = frame;
  context.save();
  context.beginPath();
  context.rect(plot.left, plot.top - 4, plot.right - plot.left + 6, plot.bottom - plot.top + 5);
  context.clip();
}
