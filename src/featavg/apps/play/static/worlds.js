// The worlds beyond the paper: their menus, and the granularity law beside what is measured.

import { colours, font, line, placeholder, surface, ticks } from "./draw.js";
import { number } from "./format.js";
import { $ } from "./state.js";

const GROUPING = "grouping";
const PAPER = { optimiser: "gd", loss: "entropy", objective: "loss", grouping: "", fine_share: 1, adversarial: 0 };

/** Add a menu for each choice, and the field for label groups, above the sliders of the worlds. */
export function addWorlds(about, onChange) {
  const rows = Object.entries(about.choices).map(([name, choice]) => {
    const menu = document.createElement("select");
    menu.append(...Object.entries(choice.options).map(([value, text]) => new Option(text, value)));
    menu.addEventListener("change", () => onChange(name, menu.value));
    return row(name, choice.label, choice.help, menu);
  });
  const field = document.createElement("input");
  Object.assign(field, { type: "text", autocomplete: "off", spellcheck: false, placeholder: "1,4|2,3" });
  field.addEventListener("change", () => onChange(GROUPING, field.value.trim()));
  rows.push(row(GROUPING, "label groups", about.grouping_help, field));
  $("worlds").prepend(...rows);
}

function row(name, text, help, control) {
  const element = document.createElement("div");
  element.className = "choice";
  element.title = help;
  const label = document.createElement("label");
  label.textContent = text;
  label.htmlFor = control.id = `choice-${name}`;
  control.name = name;
  element.append(label, control);
  return element;
}

/** Show the chosen options; unfold them where one of them is not the paper's. */
export function showWorlds(values) {
  for (const control of $("worlds").querySelectorAll(".choice > :last-child")) {
    control.value = values[control.name];
    control.removeAttribute("aria-invalid");
  }
  const isPaper = Object.entries(PAPER).every(([name, value]) => values[name] === value);
  if (!isPaper) $("beyond").open = true;
}

/** Keep refused label groups so that they can be corrected; whether it was these. */
export function refuseWorld(name, value) {
  if (name !== GROUPING) return false;
  $(`choice-${GROUPING}`).value = value;
  $(`choice-${GROUPING}`).setAttribute("aria-invalid", "true");
  return true;
}

/** Draw the robust accuracy that the granularity law gives, in steps: one for each label. */
export function drawLawSteps({ context, colour, plot, x, y }, law) {
  const clusters = law.reduce((sum, { size }) => sum + size, 0);
  const path = [[x(0), y(1)]];
  let kept = 1;
  for (const { size, radius } of [...law].sort((a, b) => a.radius - b.radius)) {
    path.push([x(radius), y(kept)]);
    kept -= size / clusters;
    path.push([x(radius), y(kept)]);
  }
  path.push([plot.right, y(0)]);
  line(context, path, { colour: colour.ink, width: 1.8, dash: [2, 3] });
}

/** Draw the median radius of each label, from a tenth to nine tenths, and what the law says. */
export function drawLaw({ law, predicted, formulas }, measured) {
  $("panel-law").hidden = !law;
  if (!law) return;
  const groups = measured?.groups ?? [];
  const told = law.flatMap(({ radius }, i) => (groups[i] ? [`${number(groups[i][1], 3)} (${number(radius, 3)})`] : []));
  const facts = `measured (law): ${told.join(", ")}`;
  $("law-facts").textContent = told.length ? facts : "";
  $("law").setAttribute("aria-label", `Median radius of each label, ${told.length ? facts : "not measured yet"}`);
  if (!told.length) { placeholder($("law"), "after training"); return; }
  const ends = [predicted.coarse, predicted.fine], seen = groups.flatMap((group) => group ?? []).filter((r) => r !== null);
  const low = 0.92 * Math.min(...ends, ...seen), high = 1.04 * Math.max(...ends, ...seen);
  const frame = plane(law, low, high);
  const { context, colour, x, top, bottom, size } = frame;
  ["coarse", "fine"].forEach((name, i) => {
    line(context, [[x(ends[i]), top], [x(ends[i]), bottom]], { colour: colour[name], width: 1.5, dash: [6, 4] });
    context.fillStyle = colour[name];
    context.textAlign = i ? "right" : "left";
    context.textBaseline = "bottom";
    context.fillText(formulas[name], x(ends[i]), top - 3);
  });
  law.forEach(({ radius }, i) => {
    const y = frame.y(i), tall = Math.min(0.36 * frame.step, 1.1 * size);
    line(context, [[x(radius), y - tall], [x(radius), y + tall]], { colour: colour.ink, width: 3 });
    if (!groups[i]) return;
    const [first, median, last] = groups[i].map((r) => x(r ?? high));
    line(context, [[first, y], [last, y]], { colour: colour.fine, width: 3, alpha: 0.55 });
    context.fillStyle = colour.fine;
    context.beginPath();
    context.arc(median, y, 0.38 * size, 0, 7);
    context.fill();
  });
}

/** A row for each label, and an axis of radii. */
function plane(law, low, high) {
  const { context, width, height } = surface($("law"));
  const colour = colours();
  const size = font(context);
  const names = law.map(({ size: q, sign }) => `${sign > 0 ? "+" : "−"} ${q} cluster${q > 1 ? "s" : ""}`);
  const left = 12 + Math.max(...names.map((name) => context.measureText(name).width)), right = width - 12;
  const top = 1.6 * size, bottom = height - 2.7 * size, step = (bottom - top) / law.length;
  const x = (radius) => left + ((radius - low) / (high - low)) * (right - left);
  const y = (i) => top + (i + 0.5) * step;
  context.fillStyle = colour.quiet;
  context.textBaseline = "middle";
  context.textAlign = "right";
  names.forEach((name, i) => {
    line(context, [[left, y(i)], [right, y(i)]], { colour: colour.line, width: 1 });
    context.fillText(name, left - 8, y(i));
  });
  context.textBaseline = "top";
  context.fillText("radius", right, bottom + 6 + 1.25 * size);
  context.textAlign = "center";
  const room = Math.max(2, Math.floor((right - left) / (3 * size)));
  for (const tick of ticks({ low, high }, room)) context.fillText(tick.text, x(tick.value), bottom + 6);
  return { context, colour, size, x, y, step, top, bottom };
}
