// The page: settings, event listeners and the start.

import { readAddress, updateAddress } from "./address.js";
import { Controls } from "./controls.js";
import { connectGlossary } from "./glossary.js";
import { hideMessage, sentence, showMessage } from "./messages.js";
import { draw, drawRadius, hover, layout } from "./panels.js";
import { largestRadius } from "./robustness.js";
import { changed, dropPending, queryOf, request, settled } from "./settings.js";
import { source } from "./source.js";
import { $, NETWORKS, isTraining, measured, position, short, state } from "./state.js";
import { connectTour, showIntroduction } from "./tour.js";
import { fastForward, renumbered, stop, train } from "./training.js";

// ---- settings

function submit(name, query, { onRefusal = () => {}, kept = [] } = {}) {
  const refused = (error) => { showMessage(error.message); onRefusal(); };
  return request(name, query, { accepted: (described) => adopt(described, kept), refused });
}

function change(name, value) {
  const onRefusal = () => state.controls.refuse(name, value, state.described.values);
  submit(name, () => queryOf(changed(name, value)), { onRefusal });
}

async function choose(preset) {
  dropPending();
  const isAccepted = await submit("preset", () => {
    state.radius = null;
    return preset.query;
  });
  if (isAccepted && source.isLesson) train(state.described.end, { isAtOnce: true });
}

/** Show new settings; of what was trained before, keep these frames. */
function adopt(described, kept = []) {
  stop();
  hideMessage("refusal", "waiting", "news", "address");
  // keep the radius relative to the predictions
  if (state.described && state.radius !== null) {
    state.radius = short(state.radius * (described.predicted.fine / state.described.predicted.fine));
  }
  state.described = described;
  Object.assign(state, { glimpse: null, shown: null, radii: null, slices: {}, frames: renumbered(kept, described) });
  if (!kept.length) state.data = null;
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
  showIntroduction();
  draw();
}

const actions = {
  async train() { if (await settled() && !isTraining()) train(state.described.end); },
  pause() { if (isTraining()) train("now"); },
  async step() { if (await settled() && !isTraining()) train(Math.max(position(), 0) + 1); },
  reset() { adopt(state.described); },
  forward() { fastForward(submit); },
};

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
    showIntroduction();
    draw("heat", "curves", "robust", "slices");
  });
  $("radius").addEventListener("input", () => {
    setRadius((Number($("radius").value) / 1000) * largestRadius(measured().radii, state.described.predicted));
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
  connectTour();
  connectGlossary();
  addEventListener("keydown", shortcut);
  setInterval(() => { if (isTraining()) draw("heat"); }, 1000); // the clock of a training that is silent
  setInterval(() => { if (position() >= 0) source.alive(state.tab); }, 15_000);
  addEventListener("pagehide", () => source.leave(state.tab));
}

function shortcut(event) {
  const isTyping = event.target.matches("input[type=text], select, button, summary, input[type=radio], input[type=checkbox], .term");
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

// ---- the start

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

/** In a lesson the settings are read, not changed. */
function showAsLesson() {
  document.body.classList.add("lesson");
  $("kind").textContent = "lesson";
  for (const control of $("settings").querySelectorAll("input, select")) control.disabled = true;
  $("origin").textContent = "This page is a recording: it needs no server and no network.";
}

/** Show what the address holds; without settings in it, the paper's setting, trained. */
async function open() {
  const { settings, value, complaints, hasPosition } = readAddress();
  let described, isRefused = false;
  try { described = await source.check(settings); } catch (error) {
    isRefused = true;
    complaints.push(`${error.message} This is the paper's setting instead.`);
    described = await source.check("");
  }
  const at = isRefused ? null : value("at", described.end, true, "the end of training");
  state.radius = value("radius", 1e30, false, "the usual radius");
  state.point = value("point", state.about.points - 1, true, "the first point") ?? 0;
  connect();
  adopt(described);
  const isTrained = settings === "" || isRefused || hasPosition || source.isLesson;
  if (complaints.length) showMessage(complaints.map(sentence).join(" "), "address");
  if (isTrained) train(at ?? described.end, { isAtOnce: true });
}

async function start() {
  state.about = await source.about();
  $("version").textContent = `featavg ${state.about.version}`;
  fillPresets();
  state.controls = new Controls(state.about.knobs, change);
  if (matchMedia("(max-width: 760px)").matches) $("settings").open = false;
  if (source.isLesson) showAsLesson();
  await open();
}

start().catch((error) => showMessage(error.message));
