// Formatting of numbers.

const SUPERSCRIPTS = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

export function power(exponent) {
  return "10" + [...String(exponent)].map((sign) => SUPERSCRIPTS[sign]).join("");
}

/** A number with about so many digits, as a person would write it. */
export function number(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const sign = value < 0 ? "−" : "";
  if (size >= 1e6 || size < 1e-4) {
    let exponent = Math.floor(Math.log10(size) + 1e-12);
    let mantissa = (size / 10 ** exponent).toPrecision(digits);
    if (Number(mantissa) >= 10) { mantissa = (1).toPrecision(digits); exponent += 1; }
    mantissa = String(Number(mantissa));
    return sign + (mantissa === "1" ? "" : mantissa + "·") + power(exponent);
  }
  const text = size >= 10 ** digits ? Math.round(size).toLocaleString("en") : String(Number(size.toPrecision(digits)));
  return sign + text;
}

export function fixed(value, decimals) {
  if (value === null || value === undefined) return "–";
  const text = value.toFixed(decimals);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

export function percent(share) {
  return share === null || share === undefined ? "–" : `${Math.round(100 * share)}\u00a0%`;
}
