// The page: settings, training and event listeners.

import { Controls } from "./controls.js";
import { fixed } from "./format.js";
import { buttons, curvesAreDue, draw, drawRadius, hover, layout } from "./panels.js";
import { largestRadius } from "./robustness.js";
import { NO_ANSWER, changed, check, dropPending, queryOf, request, settled } from "./settings.js";
import { $, NETWORKS, isTraining, networks, newest, position, short, state, title } from "./state.js";
import { listen } from "./stream.js";

const VIEW = ["at", "radius", "point", "token"]; // in the address beside the settings

// ---- settings

function submit(name, query, onRefusal = () => {}) {
  const refused = (error) => { showMessage(error.message); onRefusal(); };
  return request(name, query, { accepted: adopt, refused });
}

function change(name, value) {
  submit(name, () => queryOf(changed(name, value)), () => state.controls.refuse(name, value, state.described.values));
}

function choose(preset) {
  dropPending();
  submit("preset", () => {
    state.radius = null;
    return preset.query;
  });
}

/** Show new settings, and drop everything that was trained before. */
function adopt(described) {
  stop();
  showMessage(null);
  // keep the radius relative to the predictions
  if (state.described && state.radius !== null) {
    state.radius = short(state.radius * (described.predicted.fine / state.described.predicted.fine));
  }
  state.described = described;
  Object.assign(state, { frames: [], glimpse: null, shown: null, radii: null, slices: {} });
  document.body.dataset.state = "idle";
  state.controls.show(described.values);
  const chosen = Number($("preset").value); // several presets can be the same settings
  const preset = state.about.presets[chosen]?.query === described.query
    ? chosen : state.about.presets.findIndex((p) => p.query === described.query);
  $("preset").value = preset < 0 ? "" : String(preset);
  $("note").textContent = preset < 0 ? "Your own settings. The address of the page holds them." : state.about.presets[preset].note;
  if (state.radius === null || state.radius > largestRadius(null, described.predicted)) {
    state.radius = short(0.5 * (described.predicted.coarse + described.predicted.fine));
  }
  updateAddress();
  layout();
  draw();
}

/** Write the address of the page, which is the link to share. */
function updateAddress() {
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
  showMessage(null);
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
    showMessage(NO_ANSWER);
  }
}

function receive(name, content) {
  if (name === "frame") {
    showMessage(null); // it may have said that it waits
    const wasMeasured = state.radii !== null;
    state.frames = state.frames.filter((frame) => frame.position < content.position);
    state.frames.push(content);
    Object.assign(state, { glimpse: null, radii: null, slices: {} }); // those were of another position
    if (wasMeasured) draw("robust", "slices");
    draw("heat", ...(curvesAreDue() ? ["curves"] : []));
  } else if (name === "glimpse") {
    state.glimpse = content;
    draw("heat");
  } else if (name === "radii") {
    state.radii = content;
    draw("robust", "curves");
  } else if (name === "slices") {
    state.slices = content;
    draw("slices");
  } else if (name === "refused" || name === "waiting") {
    showMessage(content.message);
  } else if (name === "done") {
    finish();
    const told = networks().map((n) => `${title(n)}: averaging index ${fixed(newest()[n].index, 2)}`);
    $("live").textContent = told.join("; ");
    draw("heat", "curves");
  }
}

function finish() {
  state.request = null;
  document.body.dataset.state = state.radii ? "measured" : "idle";
  updateAddress();
  buttons();
}

function stop() {
  state.request?.abort();
  state.request = null;
  buttons();
}

const actions = {
  async train() { if (await settled() && !isTraining()) train(state.described.end); },
  pause() { if (isTraining()) train("now"); },
  async step() { if (await settled() && !isTraining()) train(Math.max(position(), 0) + 1); },
  reset() { adopt(state.described); },
  async forward() {
    if (!await settled() || isTraining()) return;
    const { values } = state.described;
    const literal = Math.min(Math.max(position(), 0), values.literal);
    const steps = Math.min(values.steps * 100, state.about.knobs.steps.high);
    const query = queryOf({ ...values, steps, literal });
    if (await submit("forward", () => query)) train(state.described.end);
  },
};

function showMessage(message) {
  $("message").hidden = !message;
  $("message").textContent = message ? message[0].toUpperCase() + message.slice(1) : "";
}

function setRadius(radius) {
  state.radius = short(radius);
  drawRadius();
}

// ---- event listeners

function connect() {
  for (const [name, action] of Object.entries(actions)) $(name).addEventListener("click", action);
  $("scrub").addEventListener("input", () => {
    const value = Number($("scrub").value);
    state.shown = value >= state.frames.length - 1 ? null : value;
    draw("heat", "curves");
  });
  $("radius").addEventListener("input", () => {
    setRadius((Number($("radius").value) / 1000) * largestRadius(state.radii, state.described.predicted));
  });
  $("radius").addEventListener("change", updateAddress);
  const drag = (event) => {
    if (!state.scale || !(event.buttons & 1)) return;
    const x = event.clientX - $("robust").getBoundingClientRect().left;
    const share = (x - state.scale.left) / (state.scale.right - state.scale.left);
    setRadius(Math.min(Math.max(share, 0), 1) * state.scale.high);
  };
  $("robust").addEventListener("pointerdown", (event) => { $("robust").setPointerCapture(event.pointerId); drag(event); });
  $("robust").addEventListener("pointermove", drag);
  $("robust").addEventListener("pointerup", updateAddress);
  $("another").addEventListener("click", () => {
    state.point = (state.point + 1) % state.about.points;
    if (!isTraining() && position() >= 0) train("now"); else updateAddress();
  });
  for (const radio of document.getElementsByName("labels")) {
    radio.addEventListener("change", () => change("labels", radio.value));
  }
  $("preset").addEventListener("change", () => {
    const preset = state.about.presets[Number($("preset").value)];
    if (preset) choose(preset);
  });
  $("share").addEventListener("click", share);
  $("theme").addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
  new ResizeObserver(() => draw()).observe(document.body);
  for (const name of NETWORKS) hover(name);
  addEventListener("keydown", shortcut);
  setInterval(() => { if (position() >= 0) navigator.sendBeacon(`alive?tab=${state.tab}`); }, 15_000);
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
  updateAddress();
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
  const about = await fetch("about.json");
  state.about = await about.json();
  if (!about.ok) {
    showMessage(state.about.message);
    return;
  }
  $("version").textContent = `featavg ${state.about.version}`;
  fillPresets();
  state.controls = new Controls(state.about.knobs, change);
  if (matchMedia("(max-width: 760px)").matches) $("settings").open = false;
  const query = new URLSearchParams(location.search);
  const view = Object.fromEntries(VIEW.map((name) => [name, query.get(name)]));
  VIEW.forEach((name) => query.delete(name));
  const parsed = (text) => (text !== null && /^\d+(\.\d+)?(e[+-]?\d+)?$/.test(text) ? Number(text) : null);
  state.radius = parsed(view.radius);
  state.point = Math.min(parsed(view.point) ?? 0, state.about.points - 1);
  let refused = null, described;
  try { described = await check(query.toString()); } catch (error) {
    refused = error.message;
    described = await check("");
  }
  connect();
  adopt(described);
  if (refused) showMessage(refused);
  else if (parsed(view.at) !== null) train(Math.min(parsed(view.at), described.end));
}

start();
