// Settings: asked of the server, which completes and checks them, in the order they were wished.

import { $, state } from "./state.js";

export const SILENCE = "The playground does not answer; is it still running?";

export async function check(query) {
  const response = await fetch(`check?${query}`).catch(() => { throw new Error(SILENCE); });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.message);
  return answer;
}

export function queryOf(values) {
  return new URLSearchParams(Object.entries(values).filter(([, value]) => value !== null)).toString();
}

/** The settings with one of them changed, and with what follows from it left to the server. */
export function changed(name, value) {
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
  return values;
}

const wishes = new Map(); // by what is wished: of a slider that is dragged only the newest
let granting = null; // a promise while wishes are on their way

/**
 * Wish for settings. `query()` is called when those wished before are answered, so it can build on
 * them. The promise tells whether the last wish was granted.
 */
export function wish(name, query, { granted, refused }) {
  wishes.set(name, { query, granted, refused });
  granting ??= grant();
  return granting;
}

/** Nothing that was wished so far matters any more. */
export function forget() {
  wishes.clear();
}

/** Wait for what is on its way; false where it was refused. */
export async function settled() {
  return granting === null || granting;
}

async function grant() {
  let isGranted = true;
  while (wishes.size) {
    const [[name, { query, granted, refused }]] = wishes;
    wishes.delete(name);
    const answer = await check(query()).then((described) => ({ described }), (error) => ({ error }));
    isGranted = !answer.error;
    if (wishes.has(name)) continue; // a newer one of the same kind waits
    if (isGranted) granted(answer.described); else refused(answer.error);
  }
  granting = null;
  return isGranted;
}
