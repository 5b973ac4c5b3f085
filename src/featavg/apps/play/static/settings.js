// Settings: the server completes and checks them, in the order in which they were requested.

import { source } from "./source.js";
import { $, state } from "./state.js";

export function queryOf(values) {
  return new URLSearchParams(Object.entries(values).filter(([, value]) => value !== null)).toString();
}

/** The settings with one of them changed; those that follow from it are left to the server. */
export function changed(name, value) {
  const old = state.described.values;
  const values = { ...old, [name]: value };
  if (name !== "labels") values.literal = null;
  if (name === "clusters") values.positive = null;
  if (name === "clusters" || name === "positive") values.grouping = null; // it is for the old sides
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

const pending = new Map(); // by name: of a slider that is dragged only the newest value
let answering = null; // a promise while requests are pending

/**
 * Request settings. `query()` is called after earlier requests are answered, so it can build on
 * them. The promise tells whether the last request was accepted.
 */
export function request(name, query, { accepted, refused }) {
  pending.set(name, { query, accepted, refused });
  answering ??= answerAll();
  return answering;
}

/** Drop all pending requests. */
export function dropPending() {
  pending.clear();
}

/** Wait for pending requests; false if the last one was refused. */
export async function settled() {
  return answering === null || answering;
}

async function answerAll() {
  let isAccepted = true;
  while (pending.size) {
    const [[name, { query, accepted, refused }]] = pending;
    pending.delete(name);
    const answer = await source.check(query()).then((described) => ({ described }), (error) => ({ error }));
    isAccepted = !answer.error;
    if (pending.has(name)) continue; // a newer request of the same name
    if (isAccepted) accepted(answer.described); else refused(answer.error);
  }
  answering = null;
  return isAccepted;
}
