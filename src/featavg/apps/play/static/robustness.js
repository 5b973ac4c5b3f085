// The exact robustness curve, and the plane through one point.

import { axes, clip, colours, font, line, placeholder, surface } from "./draw.js";
import { number, percent } from "./format.js";
import { drawLawSteps } from "./worlds.js";

/** The share of points that no perturbation of this norm can turn; null is an infinite radius. */
export function accuracyAt(radii, radius) {
  if (!radii || !radii.points) return null;
  return radii.upper.filter((r) => r === null || r > radius).length / radii.points;
}

export function largestRadius(radii, predicted) {
  const found = Object.values(radii ?? {}).flatMap((r) => r.upper.filter((v) => v !== null));
  return 1.12 * Math.max(predicted.fine, predicted.coarse, ...found);
}

/** Draw the curves; returns the scale, so that the radius can be dragged in the picture. */
export function drawRobustness(canvas, radii, networks, about, radius) {
  if (!radii) { placeholder(canvas, "computed exactly\nwhen training ends or pauses"); return null; }
  const high = largestRadius(radii, about.predicted);
  const frame = axes(canvas, { low: 0, high, label: "radius of the attack" },
    { low: 0, high: 1, label: "", format: percent });
  const { context, colour, plot, size } = frame;
  marks(frame, about, high);
  clip(frame);
  if (about.law) drawLawSteps(frame, about.law);
  for (const name of networks) {
    const { upper, points } = radii[name];
    const path = [[frame.x(0), frame.y(upper.filter((r) => r === null || r > 0).length / points)]];
    upper.forEach((r, i) => {
      if (r === null || r === 0) return;
      path.push([frame.x(r), frame.y((points - i) / points)], [frame.x(r), frame.y((points - i - 1) / points)]);
    });
    path.push([plot.right, path[path.length - 1][1]]);
    line(context, path, { colour: colour[name], width: 2.8 });
  }
  context.restore();
  line(context, [[frame.x(radius), plot.top], [frame.x(radius), plot.bottom]], { colour: colour.ink, width: 2 });
  for (const name of networks) {
    context.fillStyle = colour[name];
    context.strokeStyle = colour.card;
    context.lineWidth = 2;
    context.beginPath();
    context.arc(frame.x(radius), frame.y(accuracyAt(radii[name], radius)), 0.42 * size, 0, 7);
    context.fill();
    context.stroke();
  }
  return { left: plot.left, right: plot.right, high };
}

function marks(frame, about, high) {
  const { context, colour, plot, width } = frame;
  const found = ["coarse", "fine"].filter((name) => about.predicted[name] <= high).map((name) => {
    const x = frame.x(about.predicted[name]);
    line(context, [[x, plot.top], [x, plot.bottom]], { colour: colour[name], width: 1.5, dash: [6, 4] });
    const text = `${about.formulas[name]} = ${number(about.predicted[name], 3)}`;
    const long = context.measureText(text).width;
    return { name, text, long, left: Math.min(Math.max(x - long / 2, 0), width - long) };
  });
  if (found.length === 2) { // side by side where they would overlap
    const [first, second] = found;
    const overlap = first.left + first.long + 10 - second.left;
    if (overlap > 0) {
      second.left = Math.min(second.left + overlap / 2, width - second.long);
      first.left = Math.max(0, second.left - 10 - first.long);
    }
  }
  context.textBaseline = "bottom";
  context.textAlign = "left";
  for (const mark of found) {
    context.fillStyle = colour[mark.name];
    context.fillText(mark.text, mark.left, plot.top - 3);
  }
}

/** Draw the plane of a point, its averaged attack (to the right) and its exact perturbation. */
export function drawSlice(canvas, slice, name) {
  if (!slice) { placeholder(canvas, slice === null ? "nothing to turn here" : "after training"); return; }
  const { context, width, height } = surface(canvas);
  const colour = colours();
  const size = font(context);
  const rows = slice.scores.length;
  const x = (u) => ((u - slice.u[0]) / (slice.u[1] - slice.u[0])) * width;
  const y = (v) => height - ((v - slice.v[0]) / (slice.v[1] - slice.v[0])) * height;
  const scale = width / (slice.u[1] - slice.u[0]);
  context.fillStyle = colour.own;
  context.fillRect(0, 0, width, height);
  turnedArea(context, slice.scores, rows, width, height, colour);
  context.strokeStyle = colour.third;
  context.lineWidth = 1.6;
  context.beginPath();
  context.arc(x(0), y(0), slice.radius * scale, 0, 7);
  context.stroke();
  averagedWay(context, slice, x, y, width, colour, size);
  arrow(context, [x(0), y(0)], [x(slice.tip[0]), y(slice.tip[1])], colour.third, [], size);
  context.fillStyle = colour[name];
  context.beginPath();
  context.arc(x(0), y(0), 0.4 * size, 0, 7);
  context.fill();
  context.fillStyle = colour.quiet;
  label(context, "kept", slice.scores, (score) => score > 0, ["left top", "left bottom", "right top"], width, height);
  label(context, "turned", slice.scores, (score) => score < 0, ["right bottom", "right top", "left top"], width, height);
}

/** Draw the way along the averaged direction, up to where it turns the point or to the edge. */
function averagedWay(context, slice, x, y, width, colour, size) {
  const isInside = slice.averaged !== null && x(slice.averaged) <= width;
  const end = isInside ? x(slice.averaged) : width - 3;
  arrow(context, [x(0), y(0)], [end, y(0)], colour.ink, [6, 4], size);
  if (isInside) return;
  context.fillStyle = colour.ink;
  context.textAlign = "right";
  context.textBaseline = "top";
  context.strokeStyle = colour.own; // so that the circle does not cross the words
  context.lineWidth = 5;
  const words = slice.averaged === null ? "never" : `at ${number(slice.averaged, 3)}`;
  for (const paint of ["strokeText", "fillText"]) context[paint](words, width - 4, y(0) + 0.55 * size);
}

/** Write a word into the first corner in which it is true of all points under the word. */
function label(context, word, scores, isTrue, corners, width, height) {
  const last = scores.length - 1, inset = Math.round(last / 12);
  for (const corner of corners) {
    const [side, end] = corner.split(" ");
    const row = end === "top" ? last - inset : inset;
    const long = Math.min(last, Math.ceil(((context.measureText(word).width + 14) / width) * last));
    const under = side === "left" ? scores[row].slice(0, long) : scores[row].slice(last - long);
    if (!under.every(isTrue)) continue;
    context.textAlign = side;
    context.textBaseline = end;
    context.fillText(word, side === "left" ? 7 : width - 7, end === "top" ? 7 : height - 6);
    return;
  }
}

/** Fill where the score is below 0 and draw its border, by marching over small squares. */
function turnedArea(context, scores, rows, width, height, colour) {
  const cell = [width / (rows - 1), height / (rows - 1)];
  const border = [];
  context.fillStyle = colour.other;
  for (let i = 0; i < rows - 1; i += 1) {
    for (let j = 0; j < rows - 1; j += 1) {
      const corners = [[i, j], [i, j + 1], [i + 1, j + 1], [i + 1, j]].map(([a, b]) => ({
        x: b * cell[0], y: height - a * cell[1], s: scores[a][b],
      }));
      const polygon = [], cuts = [];
      corners.forEach((p, n) => {
        const q = corners[(n + 1) % 4];
        if (p.s < 0) polygon.push(p);
        if (p.s < 0 !== q.s < 0) {
          const share = p.s / (p.s - q.s);
          const cut = { x: p.x + share * (q.x - p.x), y: p.y + share * (q.y - p.y) };
          polygon.push(cut);
          cuts.push(cut);
        }
      });
      if (polygon.length > 2) {
        context.beginPath();
        polygon.forEach((p, n) => (n ? context.lineTo(p.x, p.y) : context.moveTo(p.x, p.y)));
        context.closePath();
        context.fill();
        context.strokeStyle = colour.other;
        context.lineWidth = 0.6;
        context.stroke();
      }
      if (cuts.length >= 2) border.push([cuts[0], cuts[1]]);
    }
  }
  context.strokeStyle = colour.ink;
  context.lineWidth = 2;
  context.beginPath();
  for (const [a, b] of border) { context.moveTo(a.x, a.y); context.lineTo(b.x, b.y); }
  context.stroke();
}

function arrow(context, from, to, colour, dash, size) {
  const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
  line(context, [from, to], { colour, width: 2.6, dash });
  context.fillStyle = colour;
  context.beginPath();
  for (const turn of [0, 2.6, -2.6]) {
    const length = turn ? 0.75 * size : 0;
    context.lineTo(to[0] + length * Math.cos(angle + turn), to[1] + length * Math.sin(angle + turn));
  }
  context.fill();
}
