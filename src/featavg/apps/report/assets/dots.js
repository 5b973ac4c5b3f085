// Named rows with a dot in each of several panels; pointing at a row reads all of its dots off.
const ROW = 26;
const SPREAD = 0.4; // the share of a row over which its dots are spread, where it has several
const NARROWEST_PANEL = 200;
const DOT_MARKERS = {
  dot: (parent, x, y, name) => draw(parent, "circle", { class: `full ${name}`, cx: x, cy: y, r: 4.5 }),
  ring: (parent, x, y, name) => draw(parent, "circle", { class: `open ${name}`, cx: x, cy: y, r: 4 }),
  square: (parent, x, y, name) => draw(parent, "rect", { class: `open ${name}`, x: x - 3.5, y: y - 3.5, width: 7, height: 7 }),
  bar: (parent, x, y, name) => draw(parent, "path", { class: `line ${name}`, d: `M${x} ${y - 9}V${y + 9}` }),
};

function drawDots(container, view) {
  const space = make("div", { class: "dots" });
  const heading = make("caption");
  const body = make("tbody");
  const table = make("table", { class: "readouts", "aria-live": "polite" }, heading, body);
  container.append(legend(view), space, table);
  const seeds = view.panels.some((panel) => panel.series.some((one) => one.std)) ? "Means ± standard deviations over seeds. " : "";
  const hint = "Point at a row, or use the arrow keys, to read it off.";
  container.append(make("p", { class: "hint" }, [view.note, seeds + hint].filter(Boolean).join(" ")));
  let chosen = 0;
  const choose = (row) => {
    chosen = Math.min(Math.max(row, 0), view.rows.length - 1);
    for (const stripe of space.querySelectorAll("[data-row]")) stripe.classList.toggle("chosen", Number(stripe.dataset.row) === chosen);
    heading.textContent = view.rows[chosen];
    body.replaceChildren(...readings(view, chosen));
  };
  let width = 0;
  const redraw = () => {
    if (space.clientWidth === width) return;
    width = space.clientWidth;
    space.replaceChildren(...rowsOfPanels(view, width, choose, () => chosen));
    for (const label of space.querySelectorAll(".name")) shorten(label, width);
    choose(chosen);
  };
  redraw();
  new ResizeObserver(redraw).observe(space);
}

function legend(view) {
  const found = new Map();
  for (const one of view.panels.flatMap((panel) => panel.series)) if (one.label && !found.has(one.label)) found.set(one.label, one);
  const entries = [...found.values()].map((one) => {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", "0 0 20 20");
    svg.setAttribute("aria-hidden", "true");
    DOT_MARKERS[one.marker](svg, 10, 10, `role-${one.role}`);
    return make("li", {}, svg, one.label);
  });
  return make("ul", { class: "legend" }, ...entries);
}

function readings(view, row) {
  return view.panels.flatMap((panel) => panel.series.filter((one) => one.mean[row] !== null).map((one) => {
    const name = [panel.title || panel.x, one.label].filter(Boolean).join(", ");
    return make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, spread(one.mean[row], one.std?.[row])));
  }));
}

// As many panels side by side as there is room for, with the names of the rows at the left.
function rowsOfPanels(view, width, choose, chosen) {
  const longest = Math.max(...view.rows.map((name) => name.length), ...view.groups.map((name) => name.length));
  const left = Math.min(7.6 * longest + 16, 0.42 * width);
  const beside = Math.min(Math.max(Math.floor((width - left) / NARROWEST_PANEL), 1), view.panels.length);
  const made = [];
  for (let first = 0; first < view.panels.length; first += beside) {
    made.push(sharedRows(view, view.panels.slice(first, first + beside), width, left, beside, choose, chosen));
  }
  return made;
}

function sharedRows(view, panels, width, left, beside, choose, chosen) {
  const svg = document.createElementNS(SVG, "svg");
  const { places, headings, count } = heights(view);
  const top = 56;
  const bottom = top + count * ROW;
  svg.setAttribute("viewBox", `0 0 ${width} ${bottom + 46}`);
  svg.setAttribute("tabindex", "0");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${panels.map((panel) => panel.title).join(", ")} of ${view.rows.length} rows; arrow keys read them off`);
  const middle = (place) => top + (place + 0.5) * ROW;
  for (const { place, name } of headings) draw(svg, "text", { class: "tick end name heading", x: left - 8, y: middle(place) }, name);
  places.forEach((place, row) => {
    draw(svg, "rect", { class: "stripe", "data-row": row, x: 0, y: top + place * ROW, width, height: ROW });
    draw(svg, "text", { class: "tick end name", x: left - 8, y: middle(place) }, view.rows[row]);
  });
  const each = (width - left) / beside;
  panels.forEach((panel, i) => {
    const frame = { start: left + i * each + 10, end: left + (i + 1) * each - 18, top, bottom, middles: places.map(middle) };
    dotPanel(svg, panel, frame);
  });
  const follow = (event) => event.target.dataset?.row && choose(Number(event.target.dataset.row));
  svg.addEventListener("pointermove", follow);
  svg.addEventListener("pointerdown", follow);
  svg.addEventListener("keydown", (event) => {
    const move = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!move) return;
    event.preventDefault();
    choose(chosen() + move);
  });
  return svg;
}

// The place of each row, with a place for the heading of each group.
function heights(view) {
  const headings = [];
  let count = 0;
  const places = view.rows.map((_, row) => {
    if (view.groups.length && view.groups[row] !== headings.at(-1)?.name) headings.push({ place: count++, name: view.groups[row] });
    return count++;
  });
  return { places, headings, count };
}

function dotPanel(svg, panel, frame) {
  const [low, high] = reachOf(panel);
  const scale = axis(panel.scale, low, high, frame.start, frame.end);
  draw(svg, "text", { class: "middle panel-title", x: (frame.start + frame.end) / 2, y: 14 }, panel.title);
  for (const y of frame.middles) draw(svg, "path", { class: "grid", d: `M${frame.start} ${y}H${frame.end}` });
  draw(svg, "path", { class: "stop", d: `M${frame.start} ${frame.bottom}H${frame.end}` });
  for (const { at, text } of ticks(scale, Math.max(4, Math.floor((frame.end - frame.start) / 60)))) {
    draw(svg, "path", { class: "stop", d: `M${scale.to(at)} ${frame.bottom}v5` });
    draw(svg, "text", { class: "tick middle", x: scale.to(at), y: frame.bottom + 16 }, text);
  }
  draw(svg, "text", { class: "tick middle", x: (frame.start + frame.end) / 2, y: frame.bottom + 36 }, panel.x);
  for (const mark of panel.marks) {
    const at = scale.to(mark.at);
    if (at === null) continue;
    draw(svg, "path", { class: "mark", d: `M${at} ${frame.top - 6}V${frame.bottom}` });
    draw(svg, "text", { class: `tick ${at > frame.end - 50 ? "end" : "middle"}`, x: at > frame.end - 50 ? frame.end + 14 : at, y: frame.top - 16 }, mark.label);
  }
  const spreadOut = panel.series.filter((one) => one.marker !== "bar");
  for (const one of panel.series) {
    const rank = spreadOut.indexOf(one);
    const aside = rank < 0 || spreadOut.length < 2 ? 0 : ROW * SPREAD * (rank / (spreadOut.length - 1) - 0.5);
    frame.middles.forEach((y, row) => drawDot(svg, scale, one, row, y + aside));
  }
}

function drawDot(svg, scale, one, row, y) {
  const x = scale.to(one.mean[row]);
  if (x === null) return;
  const std = one.std?.[row] ?? 0;
  if (std && one.marker !== "bar") {
    const start = scale.to(one.mean[row] - std) ?? scale.to(scale.low);
    draw(svg, "path", { class: `line error role-${one.role}`, d: `M${start} ${y}H${scale.to(one.mean[row] + std)}` });
  }
  DOT_MARKERS[one.marker](svg, x, y, `role-${one.role}`);
}

// The same ends as in the saved figure: dots, deviations and marks, and some space.
function reachOf(panel) {
  const log = panel.scale === "log";
  const values = panel.marks.map((mark) => mark.at);
  for (const one of panel.series) {
    one.mean.forEach((mean, row) => mean !== null && values.push(mean - (one.std?.[row] ?? 0), mean + (one.std?.[row] ?? 0)));
  }
  const usable = values.filter((value) => !log || value > 0);
  let [low, high] = usable.length ? [Math.min(...usable), Math.max(...usable)] : log ? [0.1, 1] : [0, 1];
  if (log) return [low / 1.3, high * 1.3];
  if (panel.zero) low = Math.min(low, 0);
  const space = 0.06 * (high - low || Math.abs(high) || 1);
  return [low - space, high + space];
}

// Names that are too long for the screen end in an ellipsis; the table has them whole.
function shorten(label, width) {
  const most = Math.min(Number(label.getAttribute("x")), 0.42 * width);
  while (label.textContent.length > 2 && label.getComputedTextLength() > most) label.textContent = label.textContent.slice(0, -2) + "…";
}
