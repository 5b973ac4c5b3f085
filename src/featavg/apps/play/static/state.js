// What the page knows.

export const $ = (id) => document.getElementById(id);
export const NETWORKS = ["coarse", "fine"];

export const state = {
  about: null, // sliders and presets
  described: null, // the settings, complete, and what follows from them
  frames: [], // what was seen, in order of position
  glimpse: null, // the newest, between two frames
  shown: null, // which frame is looked at; null is the newest
  radii: null, slices: {}, radius: null, point: 0, grid: {}, scale: null,
  request: null, // what is being trained
  tab: [...crypto.getRandomValues(new Uint8Array(8))].map((b) => b.toString(16).padStart(2, "0")).join(""),
};

export const short = (radius) => Number(radius.toPrecision(4)); // as the address holds it
export const networks = () => state.described.networks;
export const isTraining = () => state.request !== null;
export const newest = () => state.frames[state.frames.length - 1] ?? null;
export const position = () => newest()?.position ?? -1;
export const visible = () => (state.shown === null ? state.glimpse ?? newest() : state.frames[state.shown]);
export const title = (name) => (name === "coarse" ? "2-class" : `${state.described.values.clusters}-class`);
