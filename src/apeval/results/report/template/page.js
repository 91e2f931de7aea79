// Puts everything in its place.
const charts = JSON.parse(document.getElementById("data").textContent);
const DRAW = { xy: drawXY, forest: drawForest, heat: drawHeat };

// The chart's numbers as a table, for those who cannot see it or want to copy them.
function tableOf(chart) {
  const rows = [];
  if (chart.kind === "xy") {
    rows.push([chart.x.label, "series", chart.y.label, "low", "high"]);
    for (const s of chart.series) s.x.forEach((v, i) => rows.push([format(v, 4), s.name, format(s.y[i], 4), s.lo ? format(s.lo[i], 4) : "", s.hi ? format(s.hi[i], 4) : ""]));
  } else if (chart.kind === "forest") {
    rows.push(["name", chart.x.label, "low", "high"]);
    for (const r of chart.rows) rows.push([r.name, format(r.value, 4), format(r.lo, 4), format(r.hi, 4)]);
  } else {
    rows.push(["y \\ x", ...chart.x.values.filter((_, j) => j % 4 === 0).map((v) => format(v))]);
    chart.z.forEach((line, i) => { if (i % 4 === 0) rows.push([format(chart.y.values[i]), ...line.filter((_, j) => j % 4 === 0).map((v) => format(10 ** v, 2))]); });
  }
  const [head, ...body] = rows;
  return html("div", { class: "wide" }, html("table", {},
    html("thead", {}, html("tr", {}, ...head.map((t) => html("th", { scope: "col" }, t)))),
    html("tbody", {}, ...body.map((r) => html("tr", {}, ...r.map((t) => html("td", {}, t)))))));
}

const redraws = [];
for (const place of document.querySelectorAll("[data-chart]")) {
  const chart = charts[Number(place.dataset.chart)];
  if (chart.kind === "replay") {
    redraws.push([place, drawReplay(place, chart)]);
    continue;
  }
  const draw = () => DRAW[chart.kind](place, chart);
  draw();
  redraws.push([place, draw]);
  const details = html("details", { class: "data-table" }, html("summary", {}, "Show as table"));
  details.addEventListener("toggle", () => { if (details.open && details.children.length === 1) details.append(tableOf(chart)); });
  place.closest("figure").append(details);
}
const widths = new Map(redraws.map(([place]) => [place, place.clientWidth]));
const drawAgain = new Map(redraws);
const observer = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.clientWidth === widths.get(target) || !target.clientWidth) continue;
    widths.set(target, target.clientWidth);
    drawAgain.get(target)();
  }
});
redraws.forEach(([place]) => observer.observe(place));

for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.querySelectorAll("thead th")];
  heads.forEach((head, column) => head.firstChild.addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    heads.forEach((other) => other.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => row.cells[column].dataset.key;
    const compare = (a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x !== undefined && y !== undefined) return Number(x) - Number(y);
      return a.cells[column].textContent.localeCompare(b.cells[column].textContent);
    };
    const rows = [...table.tBodies[0].rows].sort((a, b) => (up ? 1 : -1) * compare(a, b));
    table.tBodies[0].append(...rows);
  }));
}

const theme = document.getElementById("theme");
const prefers = matchMedia("(prefers-color-scheme: dark)");
let chosen = null;
try { chosen = localStorage.getItem("apeval-theme"); } catch { /* a page without storage follows the system */ }
function paint() {
  const dark = chosen ? chosen === "dark" : prefers.matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  theme.textContent = dark ? "Light" : "Dark";
  theme.setAttribute("aria-label", `Switch to ${dark ? "light" : "dark"} colours`);
}
theme.addEventListener("click", () => {
  chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  try { localStorage.setItem("apeval-theme", chosen); } catch { /* as above */ }
  paint();
});
prefers.addEventListener("change", paint);
paint();

const contents = document.getElementById("contents");
const roomy = matchMedia("(min-width: 64rem)");
const unfold = () => { contents.open = roomy.matches; };
roomy.addEventListener("change", unfold);
unfold();
addEventListener("beforeprint", () => document.querySelectorAll("main details:not(.data-table)").forEach((d) => { d.open = true; }));
