// What the page does once it is there.
const views = JSON.parse(document.getElementById("views").textContent);
for (const container of document.querySelectorAll("[data-view]")) {
  const view = views[Number(container.dataset.view)];
  ({ "heat-maps": drawHeatMaps, curves: drawCurves, dots: drawDots })[view.kind](container, view);
}

const theme = document.getElementById("theme");
theme.hidden = false;
theme.addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});

for (const button of document.querySelectorAll("button.copy")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.previousElementSibling.textContent);
    button.textContent = "Copied";
  });
}

for (const claims of document.querySelectorAll(".claims")) {
  filterable(claims);
  sortable(claims);
}

function filterable(claims) {
  const form = claims.querySelector("form");
  const rows = [...claims.querySelectorAll("tbody tr")];
  const words = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  const update = () => {
    const verdict = form.querySelector("input[type=radio]:checked").value;
    const section = form.querySelector("select").value;
    const sought = form.querySelector("input[type=search]").value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      row.hidden = (verdict !== "" && row.dataset.verdict !== verdict)
        || (section !== "" && row.dataset.section !== section)
        || !sought.every((word) => words.get(row).includes(word));
    }
    form.querySelector("output").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} claims`;
  };
  form.hidden = false;
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  update();
}

function sortable(claims) {
  const body = claims.querySelector("tbody");
  const headings = [...claims.querySelectorAll("thead th")];
  for (const heading of headings) {
    const button = make("button", { type: "button" }, heading.textContent);
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = heading.getAttribute("aria-sort") !== "ascending";
      for (const other of headings) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", up ? "ascending" : "descending");
      body.append(...[...body.rows].sort(by(heading.dataset.key, up)));
    });
  }
}

// Numbers by size, texts by letter; what has none comes last either way.
function by(key, up) {
  const numeric = ["measured", "limit", "slack"].includes(key);
  return (a, b) => {
    const [x, y] = [a.dataset[key], b.dataset[key]];
    if (x === "" || y === "") return (x === "") - (y === "");
    const order = numeric ? Number(x) - Number(y) : x.localeCompare(y, "en", { numeric: true });
    return up ? order : -order;
  };
}

// Paper cannot unfold anything.
const unfolded = [];
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details:not([open])")) {
    details.open = true;
    unfolded.push(details);
  }
});
addEventListener("afterprint", () => {
  for (const details of unfolded.splice(0)) details.open = false;
});
