// Matrices with a cell that is read off: by pointing at it, or with the arrow keys.
const VIRIDIS = [
  [68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142],
  [31, 158, 137], [53, 183, 121], [110, 206, 88], [181, 222, 43], [253, 231, 37],
];
const CELL = 40;
const FRAME_MILLISECONDS = 180;

function viridis(share) {
  const place = Math.min(Math.max(share, 0), 1) * (VIRIDIS.length - 1);
  const below = Math.min(Math.floor(place), VIRIDIS.length - 2);
  const mixed = VIRIDIS[below].map((c, i) => Math.round(c + (place - below) * (VIRIDIS[below + 1][i] - c)));
  return `rgb(${mixed.join(",")})`;
}

function drawHeatMaps(container, view) {
  const panels = make("div", { class: "panels maps" });
  const maps = view.panels.map((matrix) => heatMap(panels, view, matrix, (r, c) => choose(r, c)));
  let frame = view.frames.length - 1;
  let chosen = [0, 0];
  const choose = (row, column) => {
    chosen = [row, column];
    for (const map of maps) map.mark(row, column, frame);
  };
  if (view.frames.length > 1) {
    const { control, input, set } = slider(view.frame, view.frames.length, frame, (position) => {
      frame = position;
      for (const map of maps) map.paint(frame);
      choose(...chosen);
      return view.frames[position];
    });
    container.append(make("div", { class: "controls" }, control, player(input, set)));
    set(frame);
  } else {
    for (const map of maps) map.paint(frame);
    choose(...chosen);
  }
  container.append(panels, colourScale(view));
  const seeds = view.panels.some((matrix) => matrix.std) ? "Means ± standard deviations over seeds. " : "";
  const hint = "Point at a cell, or use the arrow keys, to read it off.";
  container.append(make("p", { class: "hint" }, [view.note, seeds + hint].filter(Boolean).join(" ")));
}

function player(input, set) {
  const button = make("button", { type: "button" }, "Play");
  let timer = null;
  const stop = () => {
    clearInterval(timer);
    timer = null;
    button.textContent = "Play";
  };
  button.addEventListener("click", () => {
    if (timer !== null) return stop();
    if (input.value === input.max) set(0);
    button.textContent = "Pause";
    timer = setInterval(() => {
      set(Number(input.value) + 1);
      if (input.value === input.max) stop();
    }, FRAME_MILLISECONDS);
  });
  input.addEventListener("input", stop);
  return button;
}

function heatMap(parent, view, matrix, choose) {
  const rows = matrix.mean[0].length;
  const columns = matrix.mean[0][0].length;
  const rowName = (r) => view.row_names[r] ?? String(r + 1);
  const columnName = (c) => view.column_names[c] ?? String(c + 1);
  const left = view.row_names.length ? 96 : 44;
  const readout = make("output", { class: "readout", "aria-live": "polite" });
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${left + columns * CELL + 4} ${rows * CELL + 46}`);
  svg.setAttribute("tabindex", "0");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${matrix.title}: ${view.value} of each ${view.rows} and ${view.columns}; arrow keys read it off`);
  const cells = axes(svg, view, rows, columns, left, rowName, columnName);
  const outline = draw(svg, "rect", { class: "outline", width: CELL, height: CELL, x: left, y: 2 });
  let at = [0, 0];
  svg.addEventListener("pointermove", (event) => {
    if (event.target.dataset?.row) choose(Number(event.target.dataset.row), Number(event.target.dataset.column));
  });
  svg.addEventListener("pointerdown", (event) => {
    if (event.target.dataset?.row) choose(Number(event.target.dataset.row), Number(event.target.dataset.column));
  });
  svg.addEventListener("keydown", (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!move) return;
    event.preventDefault();
    choose(Math.min(Math.max(at[0] + move[0], 0), rows - 1), Math.min(Math.max(at[1] + move[1], 0), columns - 1));
  });
  parent.append(make("figure", { class: "heat-map" }, make("figcaption", {}, matrix.title), svg, readout));
  return {
    paint(frame) {
      cells.forEach(({ box, text }, index) => {
        const value = matrix.mean[frame][Math.floor(index / columns)][index % columns];
        const share = value === null ? 0 : (value - view.low) / (view.high - view.low);
        box.setAttribute("fill", value === null ? "none" : viridis(share));
        if (!text) return;
        text.textContent = value === null ? "–" : value.toFixed(2).replace(/^-(0\.00)$/, "$1");
        text.setAttribute("fill", share > 0.6 ? "#000" : "#fff");
      });
    },
    mark(row, column, frame) {
      if (row >= rows || column >= columns) return;
      at = [row, column];
      outline.setAttribute("x", left + column * CELL);
      outline.setAttribute("y", 2 + row * CELL);
      const std = matrix.std ? matrix.std[frame][row][column] : null;
      readout.textContent = `${view.rows} ${rowName(row)}, ${view.columns} ${columnName(column)}: ${view.value} ${spread(matrix.mean[frame][row][column], std)}`;
    },
  };
}

function axes(svg, view, rows, columns, left, rowName, columnName) {
  const every = (count) => Math.max(1, Math.ceil(count / 12));
  const cells = [];
  for (let r = 0; r < rows; r++) {
    const y = 2 + r * CELL;
    if (r % every(rows) === 0) draw(svg, "text", { class: "tick end", x: left - 8, y: y + CELL / 2 }, rowName(r).slice(0, 12));
    for (let c = 0; c < columns; c++) {
      const x = left + c * CELL;
      const place = { x, y, width: CELL, height: CELL, "data-row": r, "data-column": c };
      const box = draw(svg, "rect", place);
      const written = Math.max(rows, columns) <= 12;
      cells.push({ box, text: written ? draw(svg, "text", { class: "entry", x: x + CELL / 2, y: y + CELL / 2 }) : null });
    }
  }
  const bottom = 2 + rows * CELL;
  for (let c = 0; c < columns; c += every(columns)) {
    draw(svg, "text", { class: "tick middle", x: left + (c + 0.5) * CELL, y: bottom + 14 }, columnName(c).slice(0, 6));
  }
  draw(svg, "text", { class: "tick middle", x: left + (columns * CELL) / 2, y: bottom + 36 }, view.columns);
  const middle = 2 + (rows * CELL) / 2;
  draw(svg, "text", { class: "tick middle", x: 10, y: middle, transform: `rotate(-90 10 ${middle})` }, view.rows);
  return cells;
}

function colourScale(view) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "colour-scale");
  svg.setAttribute("viewBox", "0 0 360 20");
  svg.setAttribute("aria-hidden", "true");
  for (let i = 0; i < 40; i++) draw(svg, "rect", { x: 40 + i * 4, y: 4, width: 4.5, height: 12, fill: viridis(i / 39) });
  draw(svg, "text", { class: "tick end", x: 34, y: 10 }, short(view.low));
  draw(svg, "text", { class: "tick", x: 208, y: 10 }, `${short(view.high)} ${view.value}`);
  return svg;
}
