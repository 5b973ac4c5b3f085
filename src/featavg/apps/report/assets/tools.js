// Small helpers. Text from runs only ever becomes text: nothing here parses HTML.
const SVG = "http://www.w3.org/2000/svg";

function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function draw(parent, name, attributes = {}, text = "") {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text) element.textContent = text;
  parent.append(element);
  return element;
}

const SUPERSCRIPTS = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

function powerOfTen(exponent) {
  return "10" + [...String(exponent)].map((sign) => SUPERSCRIPTS[sign]).join("");
}

// The same rule as `wording.number`.
function number(value, digits = null) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 5e-4 || size >= 1e6)) {
    const [mantissa, exponent] = value.toExponential(1).split("e").map(Number);
    return `${mantissa}·${powerOfTen(exponent)}`;
  }
  if (digits === null) digits = size >= 1000 ? 0 : size >= 10 ? 1 : 3;
  return value.toFixed(digits).replace(/^-(0(\.0*)?)$/, "$1");
}

function spread(mean, std) {
  if (mean === null || mean === undefined) return "–";
  if (std === null || std === undefined) return number(mean);
  const size = Math.abs(mean);
  return `${number(mean)} ± ${number(std, size >= 1000 ? 0 : size >= 10 ? 1 : 3)}`;
}

// Up to four digits and no trailing zeros: for radii and times.
function short(value) {
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e6) ? number(value) : String(Number(value.toPrecision(4)));
}

function slider(label, count, start, show) {
  const shown = make("output");
  const input = make("input", { type: "range", min: 0, max: count - 1, step: 1, value: start });
  const control = make("label", { class: "slider" }, make("span", {}, `${label} `, shown), input);
  const set = (position) => {
    input.value = Math.min(Math.max(position, 0), count - 1);
    const text = show(Number(input.value));
    shown.textContent = text;
    input.setAttribute("aria-valuetext", text);
  };
  input.addEventListener("input", () => set(Number(input.value)));
  return { control, input, set };
}
