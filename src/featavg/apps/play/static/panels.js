// The panels: when each picture is drawn, and the text beside it.

import { drawCoefficients, drawMargins } from "./curves.js";
import { fixed, number, percent } from "./format.js";
import { drawData } from "./geometry.js";
import { term } from "./glossary.js";
import { describeCell, drawHeatMap } from "./heatmap.js";
import { accuracyAt, drawRobustness, drawSlice, largestRadius } from "./robustness.js";
import { $, NETWORKS, isTraining, measured, networks, newest, position, state, title, visible } from "./state.js";
import { drawLaw } from "./worlds.js";

const ALL = ["data", "heat", "curves", "robust", "slices"];
const CURVES_EVERY = 150; // milliseconds while training; the heat maps are drawn each time
const wanted = new Set();
let curvesDrawn = 0;

export const curvesAreDue = () => performance.now() - curvesDrawn > CURVES_EVERY;

/** Draw some pictures, or all, at most once for each frame of the screen. */
export function draw(...pictures) {
  const isWaiting = wanted.size > 0;
  for (const name of pictures.length ? pictures : ALL) wanted.add(name);
  if (isWaiting) return;
  requestAnimationFrame(() => {
    const now = new Set(wanted);
    wanted.clear();
    drawNow(now);
  });
}

/** The networks whose coefficients grow like log-time, as the theorems say of gradient descent. */
const guided = () => (state.described.can_forward ? networks() : []);

export function layout() {
  const shown = networks();
  for (const name of NETWORKS) {
    for (const element of [$(`panel-${name}`), $(`slice-${name}`).parentElement, $(`accuracy-${name}`).parentElement]) {
      element.hidden = !shown.includes(name);
    }
  }
  $("panels").classList.toggle("single", shown.length === 1);
  for (const name of NETWORKS) {
    $(`heading-${name}`).textContent = state.described.headings[name];
    $(`heading-${name}`).dataset.explain = `Of each training point this network is told ${state.described.told[name]}. Decisions are about the side.`;
  }
  $("fine-name").textContent = title("fine");
  const keys = (kinds) => kinds.map(([kind, text, name]) => {
    const key = name ? term(name, text) : document.createElement("span");
    key.classList.add("key", ...(kind ? [kind] : []));
    key.textContent = text;
    return key;
  });
  const { steps, learning_rate: rate } = state.described.values;
  $("lambda-legend").replaceChildren(...keys([
    ...shown.map((n) => [n, `${title(n)}, own`, "own"]), ["dotted", "other centres, mean and range", "other"],
    ...(guided().length ? [["dashed", "log ηt + const", "growth"]] : []), ...(guided().length && steps * rate > 1 ? [["", "log ηt", "growth"]] : []),
  ]));
  $("margins-legend").replaceChildren(...keys([
    ...shown.map((n) => [n, `${title(n)}, median`]), ["dashed", "smallest"], ["band", "all"],
  ]));
}

function drawNow(pictures) {
  const view = visible();
  if (pictures.has("data") && !$("data").hidden) drawGeometry();
  if (pictures.has("heat")) { networks().forEach((name) => drawHeat(name, view?.[name])); drawClock(view); }
  if (pictures.has("curves")) drawCurves(view);
  if (pictures.has("robust")) drawRadius();
  if (pictures.has("slices")) networks().forEach(drawPlane);
  buttons();
}

function drawGeometry() {
  drawData($("data"), state.data, state.described.signs);
  const names = state.data?.clusters.map((j) => j + 1).join(", ");
  $("data").setAttribute("aria-label", names ? `Training points of the clusters ${names} in two dimensions` : "The data is not drawn yet");
}

function drawHeat(name, seen) {
  const { by_side: bySide, columns, signs } = state.described;
  const canvas = $(`heat-${name}`);
  state.grid[name] = drawHeatMap(canvas, seen, signs, bySide[name], columns[name]);
  $(`index-${name}`).textContent = seen ? fixed(seen.index, 2) : "–";
  $(`loss-${name}`).textContent = seen ? number(seen.log_loss === null ? 0 : Math.exp(seen.log_loss), 2) : "–";
  $(`fresh-${name}`).textContent = percent(seen?.accuracy);
  const told = seen ? `averaging index ${fixed(seen.index, 2)}` : "not trained yet";
  canvas.setAttribute("aria-label", `Heat map of cosines, ${title(name)} labels, ${told}`);
}

function drawCurves(view) {
  curvesDrawn = performance.now();
  const { steps, learning_rate: rate } = state.described.values;
  const horizon = Math.log10(steps) + Math.log10(rate);
  drawCoefficients($("lambda"), state.frames, networks(), view, horizon, guided());
  drawMargins($("margins"), state.frames, networks(), view, horizon);
  $("lambda").setAttribute("aria-label", "Coefficients of features in the weights over the logarithm of time");
  $("margins").setAttribute("aria-label", "Smallest, median and largest margin of the training points over the logarithm of time");
}

function drawPlane(name) {
  const slice = state.slices[name];
  const canvas = $(`slice-${name}`);
  drawSlice(canvas, slice, name);
  const averaged = slice && (slice.averaged === null ? "never" : number(slice.averaged, 3));
  $(`slice-facts-${name}`).textContent = `${title(name)}: exact ${slice ? number(slice.radius, 3) : "–"}, averaged ${averaged ?? "–"}`;
  canvas.setAttribute("aria-label", slice
    ? `Decision around point ${slice.point + 1}: the smallest perturbation has norm ${number(slice.radius, 4)}, along the averaged direction ${averaged}`
    : "Not computed yet");
}

export function drawRadius() {
  const { radii: found, isOld } = measured();
  const high = largestRadius(found, state.described.predicted);
  const radius = Math.min(state.radius, high);
  state.scale = drawRobustness($("robust"), found, networks(), state.described, radius);
  if (state.scale) { // the slider is as long as the axis above it
    $("radius").style.marginLeft = `${state.scale.left - 8}px`;
    $("radius").style.width = `${state.scale.right - state.scale.left + 16}px`;
  }
  $("radius").value = String((1000 * radius) / high);
  $("radius").disabled = !found;
  $("radius").setAttribute("aria-valuetext", number(radius, 3));
  $("radius-value").textContent = number(radius, 3);
  const told = [];
  for (const name of networks()) {
    const radii = found?.[name];
    $(`accuracy-${name}`).textContent = percent(accuracyAt(radii, radius));
    if (radii) told.push(`${number(radii.median, 3)}${radii.exact < radii.points ? ` (${radii.exact} exact)` : ""}`);
  }
  drawLaw(state.described, found?.fine);
  $("robust").setAttribute("aria-label", `Robust accuracy against radius; median radius ${told.join(" and ")}`);
  $("robust-facts").textContent = told.length
    ? `${Math.min(...networks().map((n) => found[n].points))} fresh points, median radius ${told.join(" and ")}${state.described.law ? " · dotted: the granularity law" : ""}`
    : `median radius ${networks().map(() => "–").join(" and ")}`;
  const hasOldPlanes = state.shown !== null && networks().some((name) => state.slices[name]);
  for (const [name, isLate] of [["robust", isOld], ["slice", hasOldPlanes]]) {
    $(`panel-${name}`).classList.toggle("old", isLate);
    $(`late-${name}`).textContent = isLate ? `At t = ${number(newest()[networks()[0]].steps, 4)}, where training is now.` : "";
  }
}

function drawClock(view) {
  const seen = view?.[networks()[0]];
  const last = Math.max(state.frames.length - 1, 0);
  $("scrub").max = last;
  $("scrub").value = state.shown ?? last;
  const time = seen && seen.log_time !== null ? Math.exp(seen.log_time) : 0;
  const { steps } = state.described.values;
  $("time").textContent = [
    seen ? `t = ${number(seen.steps, 4)} of ${number(steps, 4)} · ηt = ${number(time, 3)}` : `T = ${number(steps, 4)} steps to go`,
    ...working(),
  ].join(" · ");
}

/** What is being done, and for how long if that is more than a moment. */
function working() {
  if (!isTraining()) return [];
  const seconds = Math.floor((performance.now() - state.began) / 1000);
  const what = position() >= state.described.end ? "measuring" : visible() ? "training" : "drawing points";
  return [seconds ? `${what}, ${seconds} s` : what];
}

export function buttons() {
  if (!state.described) return;
  const finished = position() >= state.described.end;
  const { steps } = state.described.values, most = state.about.knobs.steps.high;
  $("forward-text").textContent = finished && steps < most ? `To T = ${number(Math.min(100 * steps, most), 4)}` : "Fast-forward";
  $("train").disabled = isTraining() || finished;
  $("pause").disabled = !isTraining();
  $("step").disabled = isTraining() || finished;
  $("forward").disabled = isTraining() || !state.described.can_forward || (finished && steps >= most);
  $("scrub").disabled = state.frames.length < 2;
}

/** Show the value of the cell under the pointer, or of the one chosen by the arrow keys. */
export function hover(name) {
  const canvas = $(`heat-${name}`);
  let cell = [0, 0];
  const show = (i, j, x, y) => {
    const seen = visible()?.[name], grid = state.grid[name];
    const inside = seen && grid && i >= 0 && j >= 0 && i < grid.rows && j < grid.columns;
    $("tip").hidden = !inside;
    if (!inside) return;
    cell = [i, j];
    $("tip").textContent = describeCell(seen, i, j);
    $("tip").style.left = `${Math.max(4, Math.min(x + 14, innerWidth - 330))}px`;
    $("tip").style.top = `${y + 18}px`;
  };
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect(), grid = state.grid[name];
    if (!grid) return;
    const j = Math.floor((event.clientX - box.left - grid.left) / grid.cellX);
    const i = Math.floor((event.clientY - box.top - grid.top) / grid.cellY);
    show(i, j, event.clientX, event.clientY);
  });
  for (const leaving of ["pointerleave", "blur"]) canvas.addEventListener(leaving, () => { $("tip").hidden = true; });
  canvas.addEventListener("keydown", (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    const grid = state.grid[name];
    if (!move || !grid) return;
    event.preventDefault();
    const i = Math.min(Math.max(cell[0] + move[0], 0), grid.rows - 1);
    const j = Math.min(Math.max(cell[1] + move[1], 0), grid.columns - 1);
    const box = canvas.getBoundingClientRect();
    show(i, j, box.left + grid.left + j * grid.cellX, box.top + grid.top + i * grid.cellY);
    $("live").textContent = $("tip").textContent;
  });
}
