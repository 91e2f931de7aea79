// Charts of series over x, and forest plots. Each drawing function empties and fills its place.
const MARKERS = [
  (x, y) => svg("circle", { cx: x, cy: y, r: 3.6 }),
  (x, y) => svg("rect", { x: x - 3.3, y: y - 3.3, width: 6.6, height: 6.6 }),
  (x, y) => svg("path", { d: `M${x} ${y - 4.6}L${x + 4.4} ${y + 3.4}H${x - 4.4}Z` }),
  (x, y) => svg("path", { d: `M${x} ${y - 4.8}L${x + 4.8} ${y}L${x} ${y + 4.8}L${x - 4.8} ${y}Z` }),
];
function marker(slot, x, y) {
  const node = MARKERS[slot % 4](x, y);
  node.setAttribute("class", `marker fill${slot}`);
  return node;
}

function frame(place, chart, height, left) {
  const width = Math.max(260, place.clientWidth);
  const box = { left, right: width - 8, top: 10, bottom: height - 40 };
  const root = svg("svg", {
    viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": chart.alt, tabindex: 0,
  });
  place.replaceChildren(root);
  return { root, box, width };
}

function axes(root, box, chart, X, Y) {
  const wide = box.right - box.left;
  let end = -Infinity;
  for (const v of X.ticks(Math.min(8, wide / 62), chart.x.whole)) {
    const label = format(v);
    const half = label.length * 3.4;
    const at = X.at(v);
    root.append(svg("line", { x1: at, x2: at, y1: box.bottom, y2: box.bottom + 4, class: "axis" }));
    if (at - half < end + 6 || at + half > box.right + 10) continue;
    root.append(svg("text", { x: at, y: box.bottom + 17, "text-anchor": "middle" }, label));
    end = at + half;
  }
  for (const v of Y ? Y.ticks((box.bottom - box.top) / 38) : []) {
    root.append(svg("line", { x1: box.left, x2: box.right, y1: Y.at(v), y2: Y.at(v), class: "gridline" }));
    root.append(svg("text", { x: box.left - 6, y: Y.at(v) + 4, "text-anchor": "end" }, format(v)));
  }
  root.append(svg("line", { x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom, class: "axis" }));
  root.append(svg("text", { x: (box.left + box.right) / 2, y: box.bottom + 35, "text-anchor": "middle", class: "label" }, chart.x.label));
}

const path = (points) => {
  let d = "";
  let pen = false;
  for (const [x, y] of points) {
    if (y === null) { pen = false; continue; }
    d += `${pen ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = true;
  }
  return d;
};

function legend(place, entries) {
  place.prepend(html("ul", { class: "legend" }, ...entries.map(([slot, mark, name]) => {
    const icon = svg("svg", { viewBox: "0 0 30 12", "aria-hidden": "true" });
    if (mark === "bars") icon.append(svg("rect", { x: 6, y: 1, width: 18, height: 10, class: `bar fill${slot}` }));
    else icon.append(svg("line", { x1: 0, x2: 30, y1: 6, y2: 6, class: `series slot${slot}` }), marker(slot, 15, 6));
    return html("li", {}, icon, name);
  })));
}

function drawXY(place, chart) {
  const ys = chart.series.flatMap((s) => [...s.y, ...(s.lo || []), ...(s.hi || [])]);
  const [low, high] = domain(chart.y, [...ys, ...chart.rules.map((r) => r.y)]);
  let lowest = low;
  if (chart.y.log) { // an interval that reaches to 0 must not stretch the axis
    const least = Math.min(...finite(chart.series.flatMap((s) => [...s.y, ...(s.hi || [])])).filter((v) => v > 0));
    if (Number.isFinite(least)) lowest = Math.max(low, least / 1000);
  }
  const make = (axis) => (axis.log ? logarithmic : linear);
  const height = place.clientWidth < 480 ? 250 : 300;
  const wide = Math.max(260, place.clientWidth);
  const trial = make(chart.y)(lowest, high, 1, 0);
  const left = 14 + 6.6 * Math.max(...trial.ticks(6).map((v) => format(v).length), 3);
  const { root, box } = frame(place, chart, height, left + 16);
  const Y = make(chart.y)(lowest, high, box.bottom, box.top);
  const half = (chart.width || 0) / 2;
  const xs = finite(chart.series.flatMap((s) => s.x));
  const ends = chart.zones.flatMap((z) => [z.from, z.to]);
  const span = domain(chart.x, [...xs.map((v) => v - half), ...xs.map((v) => v + half), ...ends], ends.length ? 0 : 0.02);
  const X = make(chart.x)(...span, box.left, box.right);
  chart.zones.forEach((zone, k) => {
    const [a, b] = [X.at(zone.from), X.at(zone.to)];
    root.append(svg("rect", { x: a, y: box.top, width: Math.max(0, b - a), height: box.bottom - box.top, class: k ? "zone second" : "zone" }));
  });
  axes(root, box, chart, X, Y);
  root.append(svg("text", { transform: `translate(12 ${(box.top + box.bottom) / 2}) rotate(-90)`, "text-anchor": "middle", class: "label" }, chart.y.label));
  chart.zones.forEach((zone) => {
    const middle = (X.at(zone.from) + X.at(zone.to)) / 2;
    if (X.at(zone.to) - X.at(zone.from) > zone.name.length * 6.5) root.append(svg("text", { x: middle, y: box.top + 13, "text-anchor": "middle", class: "halo" }, zone.name));
  });
  const shift = (s) => (s.mark === "dots" ? (s.slot - 1) * 7 : 0);
  for (const s of chart.series) {
    const at = s.x.map((v) => X.at(v) + shift(s));
    if (s.lo && s.mark === "line") {
      const kept = at.map((x, i) => [x, s.lo[i], s.hi[i]]).filter(([, a, b]) => a !== null && b !== null);
      const d = path([...kept.map(([x, , b]) => [x, Y.at(b)]), ...kept.reverse().map(([x, a]) => [x, Y.at(a)])]);
      if (d) root.append(svg("path", { d: `${d}Z`, class: `band fill${s.slot}`, opacity: chart.series.length > 2 ? 0.12 : 0.18 }));
    }
    if (s.mark === "bars") {
      s.x.forEach((v, i) => {
        const [a, b] = [X.at(v - half), X.at(v + half)];
        root.append(svg("rect", { x: a + 0.5, width: Math.max(1, b - a - 1), y: Y.at(s.y[i]), height: box.bottom - Y.at(s.y[i]), class: `bar fill${s.slot}` }));
      });
      continue;
    }
    const points = at.map((x, i) => [x, s.y[i] === null ? null : Y.at(s.y[i])]);
    if (s.mark === "line") root.append(svg("path", { d: path(points), class: `series slot${s.slot}` }));
    const few = s.mark === "dots" || points.length === 1 || chart.series.length > 1;
    points.forEach(([x, y], i) => {
      if (y === null || !few || (s.mark === "line" && i % Math.ceil(points.length / 8))) return;
      if (s.lo && s.mark === "dots") root.append(svg("line", { x1: x, x2: x, y1: Y.at(s.lo[i]), y2: Y.at(s.hi[i]), class: `whisker slot${s.slot}` }));
      root.append(marker(s.slot, x, y));
    });
  }
  for (const rule of chart.rules) {
    const flat = rule.y !== undefined;
    const at = flat ? Y.at(rule.y) : X.at(rule.x);
    root.append(svg("line", flat ? { x1: box.left, x2: box.right, y1: at, y2: at, class: "rule" } : { x1: at, x2: at, y1: box.top, y2: box.bottom, class: "rule" }));
    root.append(svg("text", flat
      ? { x: box.right - 4, y: at - 5, "text-anchor": "end", class: "rule-label halo" }
      : { x: at > box.right - 70 ? at - 5 : at + 5, y: box.top + 12, "text-anchor": at > box.right - 70 ? "end" : "start", class: "rule-label halo" }, rule.name));
  }
  if (chart.series.length > 1 || chart.series[0].lo) legend(place, chart.series.map((s) => [s.slot, s.mark, s.name]));
  hover(root, box, wide, [...new Set(xs)].sort((a, b) => a - b), X, (v) => [
    `${chart.x.label}: ${format(v, 4)}`,
    ...chart.series.flatMap((s) => {
      const i = s.x.indexOf(v);
      if (i < 0 || (s.y[i] === null && !(s.hi && s.hi[i] !== null))) return [];
      const value = s.y[i] === null ? "none" : format(s.y[i]);
      return [`${s.name.replace(/ with .*interval$/, "")}: ${value}${s.lo && s.lo[i] !== null ? ` (${format(s.lo[i])} to ${format(s.hi[i])})` : ""}`];
    }),
  ]);
}

// A cursor that follows the pointer, or the arrow keys, and says what stands there.
function hover(root, box, width, stops, X, describe) {
  if (!stops.length) return;
  const cursor = svg("line", { y1: box.top, y2: box.bottom, class: "cursor", visibility: "hidden" });
  root.append(cursor);
  let now = -1;
  const show = (k) => {
    now = k;
    const at = X.at(stops[k]);
    const rect = root.getBoundingClientRect();
    cursor.setAttribute("x1", at);
    cursor.setAttribute("x2", at);
    cursor.setAttribute("visibility", "visible");
    showTip(describe(stops[k]), rect.left + (at * rect.width) / width, rect.top + rect.height * 0.3);
  };
  const hide = () => { cursor.setAttribute("visibility", "hidden"); hideTip(); };
  root.addEventListener("pointermove", (event) => {
    const rect = root.getBoundingClientRect();
    const x = ((event.clientX - rect.left) * width) / rect.width;
    show(stops.reduce((best, v, k) => (Math.abs(X.at(v) - x) < Math.abs(X.at(stops[best]) - x) ? k : best), 0));
  });
  root.addEventListener("pointerleave", hide);
  root.addEventListener("blur", hide);
  root.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Escape") hide();
    if (!step) return;
    event.preventDefault();
    show(Math.min(Math.max(now + step, 0), stops.length - 1));
  });
}

function drawForest(place, chart) {
  const row = 46;
  const { root, box, width } = frame(place, chart, chart.rows.length * row + 52, 10);
  const values = chart.rows.flatMap((r) => [r.value, r.lo, r.hi, r.truth]);
  let [low, high] = domain(chart.x, values);
  const least = Math.min(...finite(chart.rows.flatMap((r) => [r.value, r.hi])).filter((v) => v > 0));
  if (Number.isFinite(least)) low = chart.rows.some((r) => !(r.lo > 0)) ? least / 20 : Math.max(low, least / 1000);
  const X = logarithmic(low, high, box.left, box.right);
  axes(root, box, chart, X, null);
  chart.rows.forEach((r, k) => {
    const y = box.top + k * row + 30;
    const most = Math.floor(width / 6.8);
    const name = r.name.length > most ? `${r.name.slice(0, most - 1)}…` : r.name;
    root.append(svg("text", { x: box.left, y: y - 14, class: "rule-label" }, name));
    root.append(svg("line", { x1: X.at(r.lo), x2: X.at(r.hi), y1: y, y2: y, class: "whisker slot0" }));
    for (const end of [r.lo, r.hi]) if (end > 0) root.append(svg("line", { x1: X.at(end), x2: X.at(end), y1: y - 5, y2: y + 5, class: "whisker slot0" }));
    if (!(r.lo > 0)) root.append(svg("path", { d: `M${box.left} ${y}l7 -4v8Z`, class: "fill0" }));
    if (r.value > 0) root.append(svg("rect", { x: X.at(r.value) - 4, y: y - 4, width: 8, height: 8, class: "fill0" }));
    if (r.truth > 0) root.append(svg("path", { d: `M${X.at(r.truth)} ${y - 8}v16`, class: "rule" }));
    const hit = svg("rect", { x: 0, y: y - 28, width, height: row, fill: "transparent" });
    hit.addEventListener("pointermove", (e) => showTip([r.name, `${format(r.value)} (${format(r.lo)} to ${format(r.hi)})`, ...(r.truth ? [`known truth ${format(r.truth)}`] : [])], e.clientX, e.clientY));
    hit.addEventListener("pointerleave", hideTip);
    root.append(hit);
  });
}
