// The line below the buttons: refusals, waiting, news, and bad values of the address.

import { $ } from "./state.js";

let shown = null; // the kind of the message that is shown

export function showMessage(text, kind = "refusal") {
  shown = kind;
  $("message").hidden = false;
  $("message").dataset.kind = kind;
  $("message").textContent = sentence(text);
}

export const sentence = (text) => text[0].toUpperCase() + text.slice(1);

/** Hide the message if it is of one of these kinds. */
export function hideMessage(...kinds) {
  if (kinds.includes(shown)) $("message").hidden = true;
}
