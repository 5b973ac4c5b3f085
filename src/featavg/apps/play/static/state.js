// The state of the page.

export const $ = (id) => document.getElementById(id);
export const NETWORKS = ["coarse", "fine"];

export const state = {
  about: null, // sliders and presets
  described: null, // all settings, and what follows from them
  frames: [], // in order of position
  glimpse: null, // the newest state between two frames
  shown: null, // the index of the frame that is shown; null for the newest
  data: null, // training points in two dimensions
  radii: null, slices: {}, radius: null, point: 0, grid: {}, scale: null,
  began: 0, // when the present request was sent
  request: null, // the AbortController of the training request
  tab: [...crypto.getRandomValues(new Uint8Array(8))].map((b) => b.toString(16).padStart(2, "0")).join(""),
};

export const short = (radius) => Number(radius.toPrecision(4)); // as the address holds it
export const networks = () => state.described.networks;
export const isTraining = () => state.request !== null;
export const hint = () => (isTraining() ? "training …" : "press Train"); // in a picture that is empty
export const newest = () => state.frames[state.frames.length - 1] ?? null;
export const position = () => newest()?.position ?? -1;
export const visible = () => (state.shown === null ? state.glimpse ?? newest() : state.frames[state.shown]);
/** The radii that belong to what is shown; `isOld` if they are those of a later time. */
export const measured = () => {
  const shown = state.shown === null ? null : state.frames[state.shown];
  const own = shown ? shown.radii : state.radii;
  return { radii: own ?? state.radii, isOld: Boolean(shown && !own && state.radii) };
};
export const title = (name) => state.described.titles[name];
