// The data in two dimensions: two clusters of each side, projected onto their centres.

import { colours, font, line, placeholder, surface } from "./draw.js";

export function drawData(canvas, data, signs) {
  if (!data) { placeholder(canvas, "drawn when\ntraining starts"); return; }
  const { context, width, height } = surface(canvas);
  const colour = colours();
  const size = font(context);
  const places = [...data.centers, ...data.points.flat()];
  const reach = 1.36 * Math.max(...places.flat().map(Math.abs));
  const unit = Math.min(width, height) / (2 * reach);
  const at = ([u, v]) => [width / 2 + u * unit, height / 2 - v * unit];
  sides(context, colour, width, height, size);
  const origin = at([0, 0]);
  data.centers.forEach((center, i) => {
    const side = signs[data.clusters[i]] > 0 ? colour.plus : colour.minus;
    line(context, [origin, at(center)], { colour: colour.quiet, width: 1.2 });
    context.fillStyle = side;
    context.globalAlpha = 0.55;
    for (const point of data.points[i]) {
      const [x, y] = at(point);
      context.fillRect(x - 2, y - 2, 4, 4);
    }
    context.globalAlpha = 1;
  });
  data.centers.forEach((center, i) => {
    const [x, y] = at(center);
    const [right, up] = [x - origin[0], origin[1] - y];
    const away = Math.hypot(right, up) || 1;
    context.fillStyle = colour.ink;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.font = context.font.replace(/^(bold )?/, "bold ");
    const name = `${signs[data.clusters[i]] > 0 ? "+" : "−"}${data.clusters[i] + 1}`;
    context.fillText(name, x + (2.1 * size * right) / away, y - (1.9 * size * up) / away);
  });
}

/** Shade the two sides: points above the diagonal are positive. */
function sides(context, colour, width, height, size) {
  const half = Math.max(width, height);
  const [x, y] = [width / 2, height / 2];
  context.fillStyle = colour.own;
  context.fillRect(0, 0, width, height);
  context.fillStyle = colour.other;
  context.beginPath();
  for (const [u, v] of [[-1, -1], [1, 1], [-3, 1]]) context.lineTo(x + u * half, y + v * half);
  context.fill();
  line(context, [[x - half, y - half], [x + half, y + half]], { colour: colour.quiet, width: 1.2, dash: [5, 4] });
  context.fillStyle = colour.quiet;
  context.textBaseline = "top";
  context.textAlign = "right";
  context.fillText("positive side", width - 6, 6);
  context.textBaseline = "bottom";
  context.textAlign = "left";
  context.fillText("negative side", 6, height - 6);
  font(context, 0.85);
}
