// The address of the page, which is the link to share: the settings, and what is looked at.

import { source } from "./source.js";
import { position, state } from "./state.js";

const VIEW = ["at", "radius", "point", "token"]; // in the address beside the settings

/** The settings and the view that the address holds, and what is wrong with the view. */
export function readAddress() {
  const settings = new URLSearchParams(location.search);
  const text = Object.fromEntries(VIEW.map((name) => [name, settings.get(name)]));
  VIEW.forEach((name) => settings.delete(name));
  const complaints = [];
  /** A number of the address; null where there is none, or one that is refused: then `instead` is shown. */
  const value = (name, high, isWhole, instead) => {
    if (text[name] === null) return null;
    const found = /^\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text[name]) ? Number(text[name]) : NaN;
    if (found <= high && (!isWhole || Number.isInteger(found))) return found;
    const rule = isWhole ? `a whole number from 0 to ${high}` : "a number from 0";
    complaints.push(`${name} must be ${rule}, so ${instead} is shown; got '${text[name].slice(0, 40)}'.`);
    return null;
  };
  return { settings: settings.toString(), value, complaints, hasPosition: text.at !== null };
}

export function updateAddress() {
  if (source.isLesson) return; // a file is shared, not an address
  const query = new URLSearchParams(state.described.query);
  if (position() >= 0) query.set("at", position());
  if (state.radii && state.radius !== null) query.set("radius", state.radius);
  if (state.point) query.set("point", state.point);
  const text = query.toString();
  history.replaceState(null, "", text ? `?${text}` : location.pathname);
}
