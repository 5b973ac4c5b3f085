// Training: what the buttons do, and what becomes of the events.

import { updateAddress } from "./address.js";
import { fixed, number } from "./format.js";
import { hideMessage, showMessage } from "./messages.js";
import { buttons, curvesAreDue, draw } from "./panels.js";
import { queryOf, settled } from "./settings.js";
import { source } from "./source.js";
import { $, isTraining, networks, newest, position, state, title } from "./state.js";
import { showIntroduction } from "./tour.js";

const FORWARD = 100; // how many times as many steps after the end

/** Train up to a position, or stay "now" where training is, and measure there. */
export async function train(until, { isAtOnce = false } = {}) {
  stop();
  hideMessage("refusal", "waiting");
  const controller = new AbortController();
  Object.assign(state, { request: controller, began: performance.now(), shown: null });
  const query = new URLSearchParams(state.described.query);
  query.set("tab", state.tab);
  query.set("until", until);
  query.set("since", position());
  query.set("point", state.point);
  document.body.dataset.state = "training";
  buttons();
  showIntroduction();
  draw();
  const onEvent = (name, content) => { if (state.request === controller) receive(name, content); };
  try {
    await source.run(query.toString(), { signal: controller.signal, onEvent, isAtOnce });
    if (state.request === controller) finish();
  } catch (error) {
    if (error.name === "AbortError") return;
    finish();
    showMessage(error.message);
  }
}

function receive(name, content) {
  if (name === "data") {
    state.data = content;
    draw("data");
  } else if (name === "frame") {
    hideMessage("waiting");
    if (isBehind(content)) return;
    state.frames = state.frames.filter((frame) => frame.position < content.position);
    state.frames.push(content);
    // radii and planes were of another position
    const wasMeasured = state.radii !== null;
    Object.assign(state, { glimpse: null, radii: content.radii ?? null, slices: {} });
    if (wasMeasured || state.radii) draw("robust", "slices");
    draw("heat", ...(curvesAreDue() ? ["curves"] : []));
  } else if (name === "glimpse") {
    if (isBehind(content)) return;
    state.glimpse = content;
    draw("heat");
  } else if (name === "radii") {
    state.radii = content;
    if (newest()) newest().radii = content;
    draw("robust", "curves");
  } else if (name === "slices") {
    state.slices = content;
    draw("slices");
  } else if (name === "refused") {
    showMessage(content.message);
  } else if (name === "waiting") {
    showMessage(content.message, "waiting");
  } else if (name === "done") {
    finish();
    const told = networks().map((n) => `${title(n)}: averaging index ${fixed(newest()[n].index, 2)}`);
    $("live").textContent = told.join("; ");
    draw();
  }
}

/** Whether it is of an earlier time than what is shown: a training that was opened again catches up. */
function isBehind(content) {
  const last = newest();
  return last !== null && networks().some((n) => content[n].steps < last[n].steps);
}

function finish() {
  state.request = null;
  document.body.dataset.state = state.radii ? "measured" : "idle";
  updateAddress();
  buttons();
  showIntroduction();
}

export function stop() {
  state.request?.abort();
  state.request = null;
  buttons();
}

/**
 * Take the remaining steps, or after the end 100 times as many, as many at once as leave the
 * gradient as it is. What was trained is kept.
 */
export async function fastForward(submit) {
  if (!await settled() || isTraining()) return;
  const { values, end } = state.described;
  const isOver = position() >= end;
  const literal = Math.min(Math.max(position(), 0), values.literal);
  if (!isOver && literal === values.literal) { train(end); return; } // it leaps already
  const steps = isOver ? Math.min(values.steps * FORWARD, state.about.knobs.steps.high) : values.steps;
  const frames = state.frames;
  if (!await submit("forward", () => queryOf({ ...values, steps, literal }), { kept: frames })) return;
  if (isOver) {
    showMessage(`T is now ${number(steps, 4)}, ${number(steps / values.steps, 3)} times as many steps; `
      + `the first ${number(values.steps, 4)} are kept.`, "news");
  }
  train(state.described.end);
}

/** Frames with the positions that they have in the new settings. */
export function renumbered(frames, { values, goals }) {
  const time = (frame) => frame[networks()[0]].steps;
  return frames.map((frame) => ({
    ...frame,
    position: frame.position <= values.literal
      ? frame.position : values.literal + goals.filter((goal) => goal <= time(frame)).length,
  }));
}
