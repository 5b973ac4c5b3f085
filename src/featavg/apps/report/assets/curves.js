// Curves with one slider: drag it, or the picture, and every curve is read off at that place.
const MARGIN = { left: 56, right: 26, top: 30, bottom: 44 };
const DASHES = { solid: "", dashed: "8 5", dotted: "2 4", "dash-dot": "9 4 2 4", points: "", squares: "" };
const MARKERS = {
  points: (parent, x, y, name) => draw(parent, "circle", { class: name, cx: x, cy: y, r: 3.5 }),
  squares: (parent, x, y, name) => draw(parent, "rect", { class: name, x: x - 3, y: y - 3, width: 6, height: 6 }),
};

function drawCurves(container, view) {
  const stops = stopsOf(view);
  if (!stops.length) return;
  const grid = make("div", { class: view.panels.length > 1 ? "panels" : "panels single" });
  const panels = view.panels.map((panel) => curvePanel(grid, view, panel, (x) => set(nearest(stops, x, view.x_scale))));
  const start = view.start === null ? Math.floor(stops.length / 2) : nearest(stops, view.start, view.x_scale);
  const { control, set } = slider(`${view.x} =`, stops.length, start, (position) => {
    for (const panel of panels) panel.read(stops[position]);
    return short(stops[position]);
  });
  container.append(make("div", { class: "controls" }, control), grid);
  if (view.note) container.append(make("p", { class: "hint" }, view.note));
  const redraw = () => {
    for (const panel of panels) panel.redraw(stops);
    set(Number(control.querySelector("input").value));
  };
  redraw();
  let width = grid.clientWidth;
  new ResizeObserver(() => {
    if (grid.clientWidth === width) return;
    width = grid.clientWidth;
    redraw();
  }).observe(grid);
}

// Where the slider can stop: wherever one of our own curves has a point.
function stopsOf(view) {
  const places = view.panels.flatMap((panel) => panel.lines.filter((line) => line.role !== "paper").flatMap((line) => line.x));
  const usable = places.filter((x) => x !== null && (view.x_scale !== "log" || x > 0));
  return [...new Set(usable)].sort((a, b) => a - b);
}

function nearest(places, x, scale) {
  const place = (value) => (scale === "log" ? Math.log(value) : value);
  let best = 0;
  places.forEach((value, index) => {
    if (Math.abs(place(value) - place(x)) < Math.abs(place(places[best]) - place(x))) best = index;
  });
  return best;
}

function curvePanel(parent, view, panel, drag) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "curve");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${panel.title} over ${view.x}; the numbers are in the table beside it`);
  const cells = panel.lines.map(() => make("td"));
  const rows = panel.lines.map((line, i) => make("tr", {}, make("th", { scope: "row" }, swatch(line), line.label), cells[i]));
  const table = make("table", { class: "readouts" }, make("tbody", {}, ...rows));
  parent.append(make("figure", {}, make("figcaption", {}, panel.title), svg, table));
  let frame = null;
  let cursor = null;
  const follow = (event) => drag(frame.fromX(event.clientX - svg.getBoundingClientRect().left));
  svg.addEventListener("pointerdown", (event) => {
    svg.setPointerCapture(event.pointerId);
    follow(event);
  });
  svg.addEventListener("pointermove", (event) => event.buttons && follow(event));
  return {
    redraw(stops) {
      svg.replaceChildren();
      frame = frameOf(svg, view, panel, stops);
      drawAxes(svg, frame, view, panel);
      for (const line of panel.lines) drawLine(svg, frame, line);
      cursor = draw(svg, "g", { class: "cursor" });
    },
    read(x) {
      cursor.replaceChildren();
      draw(cursor, "path", { d: `M${frame.x(x)} ${MARGIN.top}V${frame.bottom}` });
      panel.lines.forEach((line, i) => {
        const found = valueAt(line, x, view.x_scale);
        cells[i].replaceChildren(found ? spread(line.mean[found.index], line.std?.[found.index]) : "–");
        if (!found) return;
        if (line.low) cells[i].append(make("small", {}, ` (${number(line.low[found.index])} to ${number(line.high[found.index])})`));
        if (!found.exact) cells[i].append(make("small", {}, ` at ${short(line.x[found.index])}`));
        const y = frame.y(line.mean[found.index]);
        if (y !== null) draw(cursor, "circle", { class: `role-${line.role}`, cx: frame.x(line.x[found.index]), cy: y, r: 4.5 });
      });
    },
  };
}

// The point of a curve at x, or the nearest one it has; none beyond its ends.
function valueAt(line, x, scale) {
  const known = line.x.map((place, index) => ({ place, index })).filter(({ place, index }) => place !== null && (scale !== "log" || place > 0) && line.mean[index] !== null);
  if (!known.length || x < known[0].place * (1 - 1e-9) - 1e-12 || x > known.at(-1).place * (1 + 1e-9) + 1e-12) return null;
  const best = known[nearest(known.map(({ place }) => place), x, scale)];
  return { index: best.index, exact: Math.abs(best.place - x) <= 1e-6 * Math.max(1, Math.abs(x)) };
}

function frameOf(svg, view, panel, stops) {
  const width = Math.max(svg.parentElement.clientWidth > 700 ? svg.clientWidth : svg.parentElement.clientWidth, 240);
  const height = Math.round(Math.min(Math.max(width * 0.62, 240), 430));
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const bottom = height - MARGIN.bottom;
  const xs = axis(view.x_scale, stops[0], stops.at(-1), MARGIN.left, width - MARGIN.right);
  const [low, high] = rangeOf(view, panel);
  const ys = axis(panel.y_scale, low, high, bottom, MARGIN.top);
  return { width, height, bottom, xs, ys, x: xs.to, y: ys.to, fromX: xs.from };
}

// The ends of the y axis. Panels with the same y have one scale, so that they can be compared.
function rangeOf(view, panel) {
  const log = panel.y_scale === "log";
  const same = view.panels.filter((p) => p === panel || (p.y && p.y === panel.y && p.y_scale === panel.y_scale));
  const values = same.flatMap((p) => p.lines.flatMap((line) => [...line.mean, ...(line.low ?? []), ...(line.high ?? [])]).concat(p.marks.filter((m) => m.axis === "y").map((m) => m.at)));
  const usable = values.filter((value) => value !== null && (!log || value > 0));
  let low = Math.min(...usable);
  let high = Math.max(...usable);
  if (!usable.length) [low, high] = log ? [0.1, 1] : [0, 1];
  if (log) return [low / 1.3, high * 1.3];
  if (low > 0 && low < 0.9 * high) low = 0;
  const space = (high - low || Math.abs(high) || 1) * 0.05;
  return [low === 0 ? 0 : low - space, high + space];
}

function axis(scale, low, high, start, end) {
  const log = scale === "log";
  const place = (value) => (log ? Math.log10(value) : value);
  const [a, b] = [place(low), place(high) === place(low) ? place(low) + 1 : place(high)];
  return {
    low, high, log,
    to: (value) => (value === null || (log && value <= 0) ? null : start + ((place(value) - a) / (b - a)) * (end - start)),
    from: (pixel) => {
      const value = a + ((pixel - start) / (end - start)) * (b - a);
      return log ? 10 ** value : value;
    },
  };
}

function ticks({ low, high, log }, most) {
  if (log) {
    const [a, b] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
    if (b <= a) return [low, high].map((at) => ({ at, text: short(Number(at.toPrecision(2))) }));
    const step = Math.max(1, Math.ceil((b - a) / most));
    return Array.from({ length: Math.floor((b - a) / step) + 1 }, (_, i) => a + i * step).map((e) => ({ at: 10 ** e, text: e >= -2 && e <= 3 ? short(10 ** e) : powerOfTen(e) }));
  }
  const rough = (high - low) / most;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((f) => f * unit).find((s) => s >= rough) ?? 10 * unit;
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push({ at: i * step, text: short(i * step) });
  return found;
}

function drawAxes(svg, frame, view, panel) {
  for (const { at, text } of ticks(frame.ys, 6)) {
    draw(svg, "path", { class: "grid", d: `M${MARGIN.left} ${frame.y(at)}H${frame.width - MARGIN.right}` });
    draw(svg, "text", { class: "tick end", x: MARGIN.left - 8, y: frame.y(at) }, text);
  }
  for (const { at, text } of ticks(frame.xs, frame.width < 420 ? 5 : 8)) {
    draw(svg, "path", { class: "stop", d: `M${frame.x(at)} ${frame.bottom}v5` });
    draw(svg, "text", { class: "tick middle", x: frame.x(at), y: frame.bottom + 16 }, text);
  }
  draw(svg, "path", { class: "stop", d: `M${MARGIN.left} ${frame.bottom}H${frame.width - MARGIN.right}` });
  draw(svg, "text", { class: "tick middle", x: (MARGIN.left + frame.width) / 2, y: frame.height - 8 }, view.x);
  for (const mark of panel.marks) {
    const across = mark.axis === "y";
    const at = across ? frame.y(mark.at) : frame.x(mark.at);
    if (at === null || !Number.isFinite(at)) continue;
    draw(svg, "path", { class: "mark", d: across ? `M${MARGIN.left} ${at}H${frame.width - MARGIN.right}` : `M${at} ${MARGIN.top}V${frame.bottom}` });
    draw(svg, "text", across ? { class: "tick end", x: frame.width - MARGIN.right - 2, y: at - 9 } : { class: "tick middle", x: at, y: MARGIN.top - 12 }, mark.label);
  }
}

function drawLine(svg, frame, line) {
  const points = line.x.map((x, i) => ({ x: frame.x(x), y: frame.y(line.mean[i]), i })).filter(({ x }) => x !== null && x <= frame.width - MARGIN.right + 0.5);
  const seen = points.filter(({ y }) => y !== null);
  if (line.dash in MARKERS) {
    for (const { x, y } of seen) MARKERS[line.dash](svg, x, y, `open role-${line.role}`);
    return;
  }
  if (line.std || line.low) {
    const ends = line.low ? [line.low, line.high] : [-1, 1].map((sign) => line.mean.map((mean, i) => mean + sign * (line.std[i] ?? 0)));
    const edge = (i, end) => frame.y(ends[end][i] ?? line.mean[i]) ?? frame.bottom;
    const up = seen.map(({ x, i }) => `${x},${Math.max(edge(i, 1), MARGIN.top)}`);
    const down = seen.map(({ x, i }) => `${x},${Math.min(edge(i, 0), frame.bottom)}`).reverse();
    draw(svg, "polygon", { class: `band role-${line.role}`, points: [...up, ...down].join(" ") });
  }
  let path = "";
  let pen = "M";
  for (const { x, y } of points) {
    if (y !== null) path += `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = y === null ? "M" : "L";
  }
  draw(svg, "path", { class: `line role-${line.role}`, d: path, "stroke-dasharray": DASHES[line.dash] });
}

function swatch(line) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "swatch");
  svg.setAttribute("viewBox", "0 0 34 12");
  svg.setAttribute("aria-hidden", "true");
  if (line.dash in MARKERS) MARKERS[line.dash](svg, 17, 6, `open role-${line.role}`);
  else draw(svg, "path", { class: `line role-${line.role}`, d: "M1 6H33", "stroke-dasharray": DASHES[line.dash] });
  return svg;
}
