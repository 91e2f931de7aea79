// A quantity over two components of the state: colours (cividis), lines of equal value, samples.
const CIVIDIS = [[0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115], [138, 134, 120], [165, 156, 116], [195, 179, 105], [225, 204, 85], [254, 232, 56]];
function colour(share) {
  const at = Math.min(Math.max(share, 0), 1) * (CIVIDIS.length - 1);
  const k = Math.min(Math.floor(at), CIVIDIS.length - 2);
  return `rgb(${CIVIDIS[k].map((c, i) => Math.round(c + (at - k) * (CIVIDIS[k + 1][i] - c))).join(",")})`;
}

// Marching squares: the segments along which the grid z equals `level`, in cells.
function contour(z, level) {
  const found = [];
  for (let i = 0; i + 1 < z.length; i += 1) {
    for (let j = 0; j + 1 < z[0].length; j += 1) {
      const corner = [[i, j], [i, j + 1], [i + 1, j + 1], [i + 1, j]];
      const cuts = [];
      corner.forEach(([a, b], k) => {
        const [c, d] = corner[(k + 1) % 4];
        const [v, w] = [z[a][b] - level, z[c][d] - level];
        if (v > 0 !== w > 0) cuts.push([a + (c - a) * (v / (v - w)), b + (d - b) * (v / (v - w))]);
      });
      for (let k = 0; k + 1 < cuts.length; k += 2) found.push([cuts[k], cuts[k + 1]]);
    }
  }
  return found;
}

function drawHeat(place, chart) {
  const wide = Math.max(260, place.clientWidth);
  const xs = chart.x.values;
  const ys = chart.y.values;
  const label = Math.max(3, ...linear(ys[0], ys.at(-1), 1, 0).ticks(9).map((v) => format(v).length));
  const height = Math.min(360, Math.max(250, wide * 0.8)) + 46;
  const { root, box } = frame(place, chart, height, 30 + 6.6 * label);
  box.bottom -= 46;
  const X = linear(xs[0], xs.at(-1), box.left, box.right);
  const Y = linear(ys[0], ys.at(-1), box.bottom, box.top);
  const share = (v) => (v - chart.low) / (chart.high - chart.low || 1);
  const [dx, dy] = [(box.right - box.left) / xs.length, (box.bottom - box.top) / ys.length];
  const cells = svg("g", { "shape-rendering": "crispEdges" });
  chart.z.forEach((line, i) => line.forEach((v, j) => cells.append(svg("rect", {
    x: (box.left + j * dx).toFixed(1), y: (box.bottom - (i + 1) * dy).toFixed(1), width: dx + 0.6, height: dy + 0.6, fill: colour(share(v)),
  }))));
  root.append(cells);
  const at = ([i, j]) => [box.left + (j + 0.5) * dx, box.bottom - (i + 0.5) * dy];
  const stride = Math.max(1, Math.ceil((chart.high - chart.low) / 7));
  const named = [];
  for (let level = Math.ceil(chart.low / stride) * stride; level < chart.high; level += stride) {
    const parts = contour(chart.z, level);
    if (!parts.length) continue;
    root.append(svg("path", { class: "contour", d: parts.map(([a, b]) => `M${at(a)}L${at(b)}`).join("") }));
    const free = ([x, y]) => named.every(([u, v]) => Math.abs(u - x) > 34 || Math.abs(v - y) > 14);
    const spots = parts.map(([a]) => at(a)).filter(free);
    if (!spots.length) continue;
    const [x, y] = spots[Math.floor(spots.length / 2)];
    named.push([x, y]);
    root.append(svg("text", { x: Math.min(x, box.right - 18), y: y + 4, "text-anchor": "middle", class: "contour-label" }, `10${raised(level)}`));
  }
  const inside = (x, y) => x >= xs[0] && x <= xs.at(-1) && y >= ys[0] && y <= ys.at(-1);
  for (const name of ["survived", "failed"]) {
    const [px, py] = chart.dots[name] || [[], []];
    const d = px.map((v, k) => {
      if (!inside(v, py[k])) return "";
      const [x, y] = [X.at(v).toFixed(1), Y.at(py[k]).toFixed(1)];
      return name === "failed" ? `M${x} ${y}m-3.2 -3.2l6.4 6.4m0 -6.4l-6.4 6.4` : `M${x} ${y}m-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0`;
    }).join("");
    const kind = name === "failed" ? "cross" : "ring";
    root.append(svg("path", { d, class: `${kind}-back` }), svg("path", { d, class: kind }));
  }
  axes(root, box, chart, X, Y);
  root.querySelectorAll(".gridline").forEach((line) => line.remove());
  root.append(svg("text", { transform: `translate(12 ${(box.top + box.bottom) / 2}) rotate(-90)`, "text-anchor": "middle", class: "label" }, chart.y.label));
  const bar = height - 28;
  for (let k = 0; k < 40; k += 1) {
    root.append(svg("rect", { x: box.left + ((box.right - box.left) * k) / 40, y: bar, width: (box.right - box.left) / 40 + 0.6, height: 9, fill: colour((k + 0.5) / 40) }));
  }
  root.append(
    svg("text", { x: box.left, y: bar + 23 }, format(10 ** chart.low, 2)),
    svg("text", { x: box.right, y: bar + 23, "text-anchor": "end" }, format(10 ** chart.high, 2)),
    svg("text", { x: (box.left + box.right) / 2, y: bar + 23, "text-anchor": "middle" }, wide > 330 ? chart.zlabel : ""),
  );
  const tell = (i, j, x, y) => showTip([`x: ${format(xs[j])}, y: ${format(ys[i])}`, `${chart.zlabel}: ${format(10 ** chart.z[i][j], 2)}`], x, y);
  const limit = (v, n) => Math.min(Math.max(v, 0), n - 1);
  root.addEventListener("pointermove", (event) => {
    const rect = root.getBoundingClientRect();
    const scale = wide / rect.width;
    const j = Math.floor(((event.clientX - rect.left) * scale - box.left) / dx);
    const i = Math.floor((box.bottom - (event.clientY - rect.top) * scale) / dy);
    if (i < 0 || j < 0 || i >= ys.length || j >= xs.length) return hideTip();
    return tell(i, j, event.clientX, event.clientY);
  });
  root.addEventListener("pointerleave", hideTip);
  root.addEventListener("blur", hideTip);
  let here = [Math.floor(ys.length / 2), Math.floor(xs.length / 2)];
  root.addEventListener("keydown", (event) => {
    const move = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [1, 0], ArrowDown: [-1, 0] }[event.key];
    if (event.key === "Escape") hideTip();
    if (!move) return;
    event.preventDefault();
    here = [limit(here[0] + move[0], ys.length), limit(here[1] + move[1], xs.length)];
    const rect = root.getBoundingClientRect();
    const [x, y] = at(here);
    tell(...here, rect.left + (x * rect.width) / wide, rect.top + (y * rect.width) / wide);
  });
}
