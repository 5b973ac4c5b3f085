// The page: what is set, what was seen, and who draws it.

import { Controls } from "./controls.js";
import { drawCoefficients, drawMargins } from "./curves.js";
import { fixed, number, percent } from "./format.js";
import { describeCell, drawHeatMap } from "./heatmap.js";
import { accuracyAt, drawRobustness, drawSlice, largestRadius } from "./robustness.js";
import { listen } from "./stream.js";

const $ = (id) => document.getElementById(id);
const NETWORKS = ["coarse", "fine"];
const VIEW = ["at", "radius", "point"]; // in the address, but no settings

const state = {
  about: null, // sliders and presets
  described: null, // the settings, complete, and what follows from them
  frames: [], // what was seen, in order of position
  glimpse: null, // the newest, between two frames
  shown: null, // which frame is looked at; null is the newest
  radii: null, slices: {}, radius: null, point: 0, grid: {}, scale: null,
  request: null, // what is being trained
  tab: [...crypto.getRandomValues(new Uint8Array(8))].map((b) => b.toString(16).padStart(2, "0")).join(""),
};

const short = (radius) => Number(radius.toPrecision(4)); // as the address holds it
const networks = () => state.described.networks;
const isTraining = () => state.request !== null;
const newest = () => state.frames[state.frames.length - 1] ?? null;
const position = () => newest()?.position ?? -1;
const visible = () => (state.shown === null ? state.glimpse ?? newest() : state.frames[state.shown]);

// ---- settings

async function check(query) {
  const response = await fetch(`check?${query}`);
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.message);
  return answer;
}

function queryOf(values) {
  return new URLSearchParams(Object.entries(values).filter(([, value]) => value !== null)).toString();
}

let newestCheck = 0;

async function change(name, value) {
  const old = state.described.values;
  const values = { ...old, [name]: value };
  if (name !== "labels") values.literal = null;
  if (name === "clusters") values.positive = null;
  if (name === "clusters" && old.cosine < 0) values.cosine = 0;
  if (name === "weight_scale") values.bias_scale = null;
  if (name === "dim" && $("tie").checked && value > 0) {
    const keep = (key) => Number(Math.min(Math.max(old[key] * (old.dim / value), state.about.knobs[key].low), state.about.knobs[key].high).toPrecision(4));
    values.learning_rate = keep("learning_rate");
    values.weight_scale = keep("weight_scale");
    values.bias_scale = null;
  }
  newestCheck += 1;
  const turn = newestCheck;
  try {
    const described = await check(queryOf(values));
    if (turn !== newestCheck) return;
    adopt(described);
  } catch (error) {
    if (turn !== newestCheck) return;
    say(error.message);
    state.controls.refuse(name, value);
  }
}

/** Take new settings; what was trained before is gone. */
function adopt(described, { keep = false } = {}) {
  stop();
  say(null);
  // the radius stays where it is relative to the predictions
  if (state.described && state.radius !== null) {
    state.radius = short(state.radius * (described.predicted.fine / state.described.predicted.fine));
  }
  state.described = described;
  if (!keep) Object.assign(state, { frames: [], glimpse: null, shown: null, radii: null, slices: {} });
  state.controls.show(described.values);
  const preset = state.about.presets.findIndex((p) => p.query === described.query);
  $("preset").value = preset < 0 ? "" : String(preset);
  $("note").textContent = preset < 0 ? "Your own settings. The address of the page holds them." : state.about.presets[preset].note;
  if (state.radius === null || state.radius > largestRadius(null, described.predicted)) {
    state.radius = short(0.5 * (described.predicted.coarse + described.predicted.fine));
  }
  remember();
  layout();
  draw();
}

/** Write the address of the page, which is the link to share. */
function remember() {
  const query = new URLSearchParams(state.described.query);
  if (position() >= 0) query.set("at", position());
  if (state.radii && state.radius !== null) query.set("radius", state.radius);
  if (state.point) query.set("point", state.point);
  const text = query.toString();
  history.replaceState(null, "", text ? `?${text}` : location.pathname);
}

// ---- training

async function train(until) {
  stop();
  say(null);
  const controller = new AbortController();
  state.request = controller;
  state.shown = null;
  const query = new URLSearchParams(state.described.query);
  query.set("tab", state.tab);
  query.set("until", until);
  query.set("since", position());
  query.set("point", state.point);
  document.body.dataset.state = "training";
  buttons();
  try {
    await listen(`run?${query}`, controller.signal, (name, content) => {
      if (state.request === controller) receive(name, content);
    });
    if (state.request === controller) finish();
  } catch (error) {
    if (error.name === "AbortError") return;
    finish();
    say("The playground does not answer; is it still running?");
  }
}

function receive(name, content) {
  if (name === "frame") {
    state.frames = state.frames.filter((frame) => frame.position < content.position);
    state.frames.push(content);
    state.glimpse = null;
    state.radii = null;
    state.updates = (state.updates ?? 0) + 1;
  } else if (name === "glimpse") {
    state.glimpse = content;
  } else if (name === "slices") {
    state.slices = content;
  } else if (name === "radii") {
    state.radii = content;
  } else if (name === "refused") {
    say(content.message);
  } else if (name === "done") {
    finish();
    const told = networks().map((n) => `${title(n)}: averaging index ${fixed(newest()[n].index, 2)}`);
    $("live").textContent = told.join("; ");
  }
  draw();
}

function finish() {
  state.request = null;
  document.body.dataset.state = state.radii ? "measured" : "idle";
  remember();
  buttons();
}

function stop() {
  state.request?.abort();
  state.request = null;
  buttons();
}

const actions = {
  train() { if (!isTraining()) train(state.described.end); },
  pause() { if (isTraining()) train("now"); },
  step() { if (!isTraining()) train(Math.max(position(), 0) + 1); },
  reset() { adopt(state.described); document.body.dataset.state = "idle"; draw(); },
  async forward() {
    const { values } = state.described;
    const literal = Math.min(Math.max(position(), 0), values.literal);
    const steps = Math.min(values.steps * 100, state.about.knobs.steps.high);
    try {
      const described = await check(queryOf({ ...values, steps, literal }));
      adopt(described);
      train(described.end);
    } catch (error) { say(error.message); }
  },
};

function buttons() {
  const finished = state.described && position() >= state.described.end;
  $("train").disabled = isTraining() || finished;
  $("pause").disabled = !isTraining();
  $("step").disabled = isTraining() || finished;
  $("forward").disabled = isTraining();
  $("scrub").disabled = state.frames.length < 2;
}

function say(message) {
  $("message").hidden = !message;
  $("message").textContent = message ? message[0].toUpperCase() + message.slice(1) : "";
}

// ---- pictures

let waiting = false;

/** Draw all, at most once for each frame of the screen. */
function draw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; drawNow(); });
}

const title = (name) => (name === "coarse" ? "2-class" : `${state.described.values.clusters}-class`);

function layout() {
  const shown = networks();
  for (const name of NETWORKS) {
    for (const element of [$(`panel-${name}`), $(`slice-${name}`).parentElement, $(`accuracy-${name}`).parentElement]) {
      element.hidden = !shown.includes(name);
    }
  }
  $("panels").classList.toggle("single", shown.length === 1);
  $("classes").textContent = state.described.values.clusters;
  $("fine-name").textContent = title("fine");
  const keys = (kinds) => kinds.map(([kind, text]) => {
    const key = document.createElement("span");
    key.className = `key ${kind}`;
    key.textContent = text;
    return key;
  });
  $("lambda-legend").replaceChildren(...keys([
    ...shown.map((n) => [n, `${title(n)}, own`]), ["dotted", "other centres"], ["dashed", "log ηt + const"],
    ...(state.described.values.steps * state.described.values.learning_rate > 1 ? [["", "log ηt"]] : []),
  ]));
  $("margins-legend").replaceChildren(...keys([
    ...shown.map((n) => [n, `${title(n)}, median`]), ["dashed", "smallest"], ["band", "all"],
  ]));
}

function drawNow() {
  const view = visible();
  const shown = networks();
  const { values, signs } = state.described;
  for (const name of shown) {
    const seen = view?.[name];
    state.grid[name] = drawHeatMap($(`heat-${name}`), seen, signs, name, values.clusters);
    $(`index-${name}`).textContent = seen ? fixed(seen.index, 2) : "–";
    $(`facts-${name}`).textContent = seen
      ? `loss ${number(Math.exp(seen.log_loss), 2)} · fresh accuracy ${percent(seen.accuracy)}`
      : "cosine of each centre and each neuron";
    $(`heat-${name}`).setAttribute("aria-label", `Heat map, ${title(name)} labels, ${seen ? `averaging index ${fixed(seen.index, 2)}` : "not trained yet"}`);
    const slice = state.slices[name];
    drawSlice($(`slice-${name}`), slice, name);
    $(`slice-facts-${name}`).textContent = slice
      ? `${title(name)}: exact ${number(slice.radius, 3)}, averaged ${slice.averaged === null ? "never" : number(slice.averaged, 3)}` : title(name);
    $(`slice-${name}`).setAttribute("aria-label", slice ? `Decision around point ${slice.point + 1}: the smallest perturbation has norm ${number(slice.radius, 4)}` : "Not computed yet");
  }
  drawCoefficients($("lambda"), state.frames, shown, view);
  drawMargins($("margins"), state.frames, shown, view);
  $("lambda").setAttribute("aria-label", "Coefficients of features in the weights over the logarithm of time");
  $("margins").setAttribute("aria-label", "Smallest, median and largest margin of the training points over the logarithm of time");
  drawRadius();
  drawClock(view);
  buttons();
}

function drawRadius() {
  const high = largestRadius(state.radii, state.described.predicted);
  const radius = Math.min(state.radius, high);
  state.scale = drawRobustness($("robust"), state.radii, networks(), state.described, radius);
  if (state.scale) { // the slider is as long as the axis above it
    $("radius").style.marginLeft = `${state.scale.left - 8}px`;
    $("radius").style.width = `${state.scale.right - state.scale.left + 16}px`;
  }
  $("radius").value = String((1000 * radius) / high);
  $("radius").disabled = !state.radii;
  $("radius").setAttribute("aria-valuetext", number(radius, 3));
  $("radius-value").textContent = number(radius, 3);
  const told = [];
  for (const name of networks()) {
    const radii = state.radii?.[name];
    $(`accuracy-${name}`).textContent = percent(accuracyAt(radii, radius));
    if (radii) told.push(`${number(radii.median, 3)}${radii.exact < radii.points ? ` (${radii.exact} exact)` : ""}`);
  }
  $("robust").setAttribute("aria-label", `Robust accuracy against radius; median radius ${told.join(" and ")}`);
  $("robust-facts").textContent = told.length
    ? `${Math.min(...networks().map((n) => state.radii[n].points))} fresh points, median radius ${told.join(" and ")}`
    : "the share of fresh points that nothing of this norm can turn";
}

function drawClock(view) {
  const seen = view?.[networks()[0]];
  const last = Math.max(state.frames.length - 1, 0);
  $("scrub").max = last;
  $("scrub").value = state.shown ?? last;
  const time = seen && seen.log_time !== null ? Math.exp(seen.log_time) : 0;
  $("time").textContent = seen
    ? `t = ${number(seen.steps, 4)} of ${number(state.described.values.steps, 4)} · ηt = ${number(time, 3)}`
    : `T = ${number(state.described.values.steps, 4)} steps to go`;
}

function setRadius(radius) {
  state.radius = short(radius);
  drawRadius();
}

// ---- who listens to what

function connect() {
  for (const [name, action] of Object.entries(actions)) $(name).addEventListener("click", action);
  $("scrub").addEventListener("input", () => {
    const value = Number($("scrub").value);
    state.shown = value >= state.frames.length - 1 ? null : value;
    draw();
  });
  $("radius").addEventListener("input", () => {
    setRadius((Number($("radius").value) / 1000) * largestRadius(state.radii, state.described.predicted));
  });
  $("radius").addEventListener("change", remember);
  const drag = (event) => {
    if (!state.scale || !(event.buttons & 1)) return;
    const x = event.clientX - $("robust").getBoundingClientRect().left;
    const share = (x - state.scale.left) / (state.scale.right - state.scale.left);
    setRadius(Math.min(Math.max(share, 0), 1) * state.scale.high);
  };
  $("robust").addEventListener("pointerdown", (event) => { $("robust").setPointerCapture(event.pointerId); drag(event); });
  $("robust").addEventListener("pointermove", drag);
  $("robust").addEventListener("pointerup", remember);
  $("another").addEventListener("click", () => {
    state.point = (state.point + 1) % state.about.points;
    if (!isTraining() && position() >= 0) train("now"); else remember();
  });
  for (const radio of document.getElementsByName("labels")) {
    radio.addEventListener("change", () => change("labels", radio.value));
  }
  $("preset").addEventListener("change", async () => {
    const preset = state.about.presets[Number($("preset").value)];
    if (preset) { state.radius = null; adopt(await check(preset.query)); }
  });
  $("share").addEventListener("click", share);
  $("theme").addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  new ResizeObserver(draw).observe(document.body);
  for (const name of NETWORKS) hover(name);
  addEventListener("keydown", shortcut);
  addEventListener("pagehide", () => navigator.sendBeacon(`leave?tab=${state.tab}`));
}

function shortcut(event) {
  const isTyping = event.target.matches("input[type=text], select, button, summary, input[type=radio], input[type=checkbox]");
  if (event.ctrlKey || event.metaKey || event.altKey || (isTyping && (event.key === " " || event.target.type === "text"))) return;
  const action = { s: "step", f: "forward", r: "reset", " ": isTraining() ? "pause" : "train" }[event.key];
  if (!action) return;
  event.preventDefault();
  if (!$(action).disabled) actions[action]();
}

async function share() {
  remember();
  try {
    await navigator.clipboard.writeText(location.href);
    $("share").textContent = "Copied";
  } catch { $("share").textContent = "It is in the address bar"; }
  setTimeout(() => { $("share").textContent = "Copy link"; }, 1800);
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  draw();
}

/** The cell under the pointer, or the one that the arrow keys have moved to. */
function hover(name) {
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

function fillPresets() {
  const groups = new Map();
  const own = new Option("your own", "");
  own.hidden = true;
  $("preset").append(own);
  state.about.presets.forEach((preset, i) => {
    if (!groups.has(preset.group)) {
      const group = document.createElement("optgroup");
      group.label = preset.group;
      groups.set(preset.group, group);
      $("preset").append(group);
    }
    groups.get(preset.group).append(new Option(preset.name, String(i)));
  });
}

async function start() {
  state.about = await (await fetch("about.json")).json();
  $("version").textContent = `featavg ${state.about.version}`;
  fillPresets();
  state.controls = new Controls(state.about.knobs, change);
  if (matchMedia("(max-width: 760px)").matches) $("settings").open = false;
  const query = new URLSearchParams(location.search);
  const view = Object.fromEntries(VIEW.map((name) => [name, query.get(name)]));
  VIEW.forEach((name) => query.delete(name));
  const number0 = (text) => (text !== null && /^\d+(\.\d+)?(e[+-]?\d+)?$/.test(text) ? Number(text) : null);
  state.radius = number0(view.radius);
  state.point = Math.min(number0(view.point) ?? 0, state.about.points - 1);
  let refused = null, described;
  try { described = await check(query.toString()); } catch (error) {
    refused = error.message;
    described = await check("");
  }
  connect();
  adopt(described);
  document.body.dataset.state = "idle";
  if (refused) say(refused);
  else if (number0(view.at) !== null) train(Math.min(number0(view.at), described.end));
}

start();
