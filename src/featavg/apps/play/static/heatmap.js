// The cosines of centres and weights.

import { colours, font, placeholder, surface } from "./draw.js";
import { fixed } from "./format.js";
import { hint } from "./state.js";

// viridis, which colour-blind readers can tell apart and which is ordered by lightness
const STOPS = [
  [68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142],
  [31, 158, 137], [53, 183, 121], [109, 205, 89], [180, 222, 44], [253, 231, 37],
];

function viridis(value) {
  const at = Math.min(Math.max(value, 0), 1) * (STOPS.length - 1);
  const i = Math.min(Math.floor(at), STOPS.length - 2);
  const mix = STOPS[i].map((a, c) => Math.round(a + (at - i) * (STOPS[i + 1][c] - a)));
  return `rgb(${mix.join(" ")})`;
}

/** Draw the matrix, clusters by neurons; returns where its cells are, for hovering. */
export function drawHeatMap(canvas, view, signs, bySide, name) {
  if (!view) { placeholder(canvas, hint()); return null; }
  const { context, width, height } = surface(canvas);
  const colour = colours();
  const size = font(context);
  const rows = view.cosines.length, columns = view.cosines[0].length;
  const bar = 3.4 * size;
  const left = 2.4 * size, top = 1.7 * size;
  const cellX = (width - left - bar) / columns, cellY = (height - top) / rows;
  const gap = columns > 24 || rows > 24 ? 0 : 1;
  context.textBaseline = "middle";
  context.textAlign = "center";
  const small = font(context, Math.min(0.9, cellX / 36, cellY / 17));
  const withNumbers = small >= 8.5;
  for (let i = 0; i < rows; i += 1) {
    for (let j = 0; j < columns; j += 1) {
      const value = view.cosines[i][j];
      // whole pixels, or else faint lines show between cells
      const x = Math.round(left + j * cellX), y = Math.round(top + i * cellY);
      const right = Math.round(left + (j + 1) * cellX), below = Math.round(top + (i + 1) * cellY);
      context.fillStyle = viridis(value);
      context.fillRect(x, y, right - x - gap, below - y - gap);
      if (withNumbers && Math.abs(value) >= 0.095) {  // numbers near 0 would only be clutter
        context.fillStyle = value > 0.6 ? "#000" : "#fff";
        context.fillText(fixed(value, 2).replace("0.", "."), x + (cellX - gap) / 2, y + cellY / 2, cellX - gap - 2);
      }
    }
  }
  font(context);
  context.fillStyle = colour.quiet;
  const every = Math.max(1, Math.ceil((1.3 * size) / cellY));
  context.textAlign = "right";
  for (let i = 0; i < rows; i += every) {
    context.fillText(`${signs[i] > 0 ? "+" : "−"}${i + 1}`, left - 5, top + (i + 0.5) * cellY);
  }
  context.textAlign = "center";
  context.textBaseline = "top";
  if (bySide) {
    const [plus, minus] = (columns * cellX > 20 * size ? ["positive", "negative"] : ["+", "−"]).map((side) => `${side} ${name}`);
    context.fillText(plus, left + (columns * cellX) / 4, 0);
    context.fillText(minus, left + (3 * columns * cellX) / 4, 0);
    context.fillStyle = colour.card;
    context.fillRect(left + (columns / 2) * cellX - 1.5, top, 2.5, height - top);
  } else {
    context.fillText(name, left + (columns * cellX) / 2, 0);
  }
  drawBar(context, colour, width - bar + 0.9 * size, top, height - top, size);
  return { left, top, cellX, cellY, rows, columns };
}

function drawBar(context, colour, x, y, height, size) {
  const wide = 0.7 * size;
  for (let i = 0; i < height; i += 1) {
    context.fillStyle = viridis(1 - i / height);
    context.fillRect(x, y + i, wide, 1.5);
  }
  context.fillStyle = colour.quiet;
  context.textAlign = "left";
  for (const [value, place] of [[1, "top"], [0.5, "middle"], [0, "bottom"]]) {
    context.textBaseline = place;
    context.fillText(value, x + wide + 4, y + (1 - value) * height);
  }
}

export function describeCell(view, i, j) {
  const index = view.neuron_index[j];
  const tail = index === null ? "" : `, averaging index of w${j + 1} ${fixed(index, 2)}`;
  return `cos(μ${i + 1}, w${j + 1}) = ${fixed(view.cosines[i][j], 3)}${tail}`;
}
