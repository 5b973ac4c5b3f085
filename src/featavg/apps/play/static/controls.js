// The sliders: each with a field for typing, logarithmic where the range is wide.

import { number } from "./format.js";
import { state } from "./state.js";
import { addWorlds, refuseWorld, showWorlds } from "./worlds.js";

const PARTS = 1000;

function toSlider(knob, value) {
  if (!knob.log) return value;
  const share = Math.log(value / knob.low) / Math.log(knob.high / knob.low);
  return Math.round(PARTS * share);
}

function fromSlider(knob, text) {
  if (!knob.log) return Number(text);
  const value = knob.low * (knob.high / knob.low) ** (Number(text) / PARTS);
  const short = Number(value.toPrecision(2));
  return knob.whole ? Math.min(Math.max(Math.round(short), knob.low), knob.high) : short;
}

/** Parse a typed number, such as 1e12, 10^12 or 3·10⁻⁴. */
function typed(text) {
  const plain = text.trim().replace(/[,\s]/g, "").replace("−", "-")
    .replace(/[⁻⁰¹²³⁴-⁹]+/g, (run) => "^" + [...run].map((c) => "⁰¹²³⁴⁵⁶⁷⁸⁹".includes(c) ? "⁰¹²³⁴⁵⁶⁷⁸⁹".indexOf(c) : "-").join(""))
    .replace(/^10\^(-?\d+)$/, "1e$1").replace(/[·*x]10\^(-?\d+)$/, "e$1");
  return plain !== "" && Number.isFinite(Number(plain)) ? Number(plain) : text;
}

export class Controls {
  constructor(knobs, onChange) {
    this.knobs = knobs;
    this.rows = {};
    for (const [name, knob] of Object.entries(knobs)) {
      document.getElementById(knob.world ? "worlds" : knob.extra ? "extra" : "knobs").append(this.#row(name, knob, onChange));
    }
    addWorlds(state.about, onChange);
    this.#tie();
  }

  #row(name, knob, onChange) {
    const row = document.createElement("div");
    row.className = "knob";
    row.title = knob.help;
    const label = document.createElement("label");
    label.textContent = knob.label;
    label.htmlFor = `knob-${name}`;
    const symbol = document.createElement("i");
    symbol.textContent = knob.symbol;
    label.append(symbol);
    const field = document.createElement("input");
    Object.assign(field, { type: "text", id: `knob-${name}`, autocomplete: "off", spellcheck: false });
    field.inputMode = "decimal";
    const slider = document.createElement("input");
    Object.assign(slider, { type: "range", id: `slider-${name}` });
    slider.setAttribute("aria-label", knob.label);
    slider.min = knob.log ? 0 : knob.low;
    slider.max = knob.log ? PARTS : knob.high;
    slider.step = knob.log || knob.whole ? 1 : 0.01;
    slider.addEventListener("input", () => onChange(name, fromSlider(knob, slider.value)));
    field.addEventListener("change", () => onChange(name, typed(field.value)));
    row.append(label, field, slider);
    this.rows[name] = { field, slider, row };
    return row;
  }

  /** Add the checkbox below the dimension: whether to keep η·d and σ_w·d when it changes. */
  #tie() {
    const label = document.createElement("label");
    label.className = "tie";
    this.tie = document.createElement("input");
    Object.assign(this.tie, { type: "checkbox", id: "tie", checked: true });
    label.append(this.tie, "keep η·d and σ_w·d");
    this.rows.dim.row.append(label);
  }

  show(values) {
    const lowest = values.clusters > 1 ? -1 / (values.clusters - 1) : -1;
    this.rows.positive.slider.max = values.clusters - 1;
    this.rows.cosine.slider.min = Math.ceil(lowest * 100) / 100;
    for (const [name, { field, slider }] of Object.entries(this.rows)) {
      const value = values[name];
      slider.value = toSlider(this.knobs[name], value);
      slider.setAttribute("aria-valuetext", number(value, 4));
      if (document.activeElement !== field || field.getAttribute("aria-invalid") !== "true") field.value = number(value, 4);
      field.removeAttribute("aria-invalid");
    }
    showWorlds(values);
    for (const radio of document.getElementsByName("labels")) radio.checked = radio.value === values.labels;
  }

  /** Keep a refused number so that it can be corrected; reset a refused choice. */
  refuse(name, value, current) {
    const row = this.rows[name];
    if (refuseWorld(name, value)) return;
    if (!row) { this.show(current); return; }
    row.field.value = typeof value === "number" ? number(value, 4) : value;
    row.field.setAttribute("aria-invalid", "true");
  }
}
