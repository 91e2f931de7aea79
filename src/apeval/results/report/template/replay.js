// A recorded failure: the scene as it moves, its series with a cursor, and the controls.
function shapeOf(shape, thin) {
  const points = shape.points.map((p) => p.join(",")).join(" ");
  const node = svg(shape.closed ? "polygon" : "polyline", { points, class: `shape role-${shape.role}${shape.closed ? "" : " open"}` });
  node.setAttribute("stroke-width", thin);
  node.setAttribute("vector-effect", "non-scaling-stroke");
  return node;
}

// The picture; the returned function moves it to a frame.
function picture(scene, live) {
  const [x0, y0, x1, y1] = scene.bounds;
  const root = svg("svg", {
    viewBox: `${x0} ${-y1} ${x1 - x0} ${y1 - y0}`, class: live ? "stage live" : "stage", role: "img", "aria-label": scene.alt,
    preserveAspectRatio: "xMidYMid meet",
  });
  const world = svg("g", { transform: "scale(1 -1)" }, ...scene.static.map((s) => shapeOf(s, 1.2)));
  const movers = scene.movers.map((m) => svg("g", { class: "mover" }, ...m.shapes.map((s) => shapeOf(s, 1.4))));
  world.append(...movers);
  root.append(world);
  if (scene.unit) {
    const size = (x1 - x0) * 0.2;
    const base = 10 ** Math.floor(Math.log10(size));
    const long = [5, 2, 1].map((m) => m * base).find((v) => v <= size);
    const [x, y, em] = [x0 + (x1 - x0) * 0.03, -y0 - (y1 - y0) * 0.04, Math.max(x1 - x0, y1 - y0) * 0.035];
    root.append(
      svg("path", { d: `M${x} ${y - em * 0.4}v${em * 0.4}h${long}v${-em * 0.4}`, class: "ruler", "vector-effect": "non-scaling-stroke" }),
      svg("text", { x: x + long / 2, y: y - em * 0.6, "font-size": em, "text-anchor": "middle", class: "ruler-label" }, `${format(long)} ${scene.unit}`),
    );
  }
  const show = (k) => scene.movers.forEach((m, i) => {
    const [x, y, heading] = m.pose[k];
    const seen = (!m.visible || m.visible[k]) && x !== null;
    movers[i].setAttribute("visibility", seen ? "visible" : "hidden");
    if (seen) movers[i].setAttribute("transform", `translate(${x} ${y}) rotate(${(heading * 180) / Math.PI})`);
  });
  return [root, show];
}

// Pictures that the environment drew of itself, one per frame.
function film(scene, live) {
  const [width, height] = scene.size;
  const image = html("img", { class: live ? "stage own live" : "stage own", alt: scene.alt, width, height });
  return [image, (k) => { image.src = scene.pictures[k]; }];
}

const unitOf = (s) => (s.unit ? ` (${s.unit})` : "");

// One series over time; the returned function moves its cursor and tells its value.
function trace(scene, s) {
  const value = html("b");
  const name = html("p", { class: "trace-name" }, html("span", {}, `${s.name}${unitOf(s)}`), value);
  const place = html("div", { class: "plot" });
  let cursor;
  let X;
  const end = scene.time.at(-1);
  const draw = () => {
    const height = 104;
    const [low, high] = domain({}, s.value, 0.08);
    const trial = linear(low, high, 1, 0);
    const left = 12 + 6.6 * Math.max(3, ...trial.ticks(2).map((v) => format(v).length));
    const { root, box } = frame(place, { alt: `${s.name}${unitOf(s)} over time` }, height, left);
    root.removeAttribute("tabindex");
    box.bottom = height - 34;
    X = linear(scene.time[0], end, box.left, box.right);
    const Y = linear(low, high, box.bottom, box.top);
    axes(root, box, { x: { label: "", whole: scene.time_unit !== "s" } }, X, { ...Y, ticks: () => Y.ticks(2) });
    root.append(svg("text", { x: (box.left + box.right) / 2, y: box.bottom + 30, "text-anchor": "middle" }, scene.time_unit === "s" ? "time (s)" : "decisions taken"));
    const points = s.time.map((t, i) => [X.at(t), s.value[i] === null ? null : Y.at(s.value[i])]);
    if (s.held) {
      const stepped = points.flatMap(([x, y], i) => [[x, y], [i + 1 < points.length ? points[i + 1][0] : X.at(end), y]]);
      root.append(svg("path", { d: path(stepped), class: "series slot1" }));
    } else root.append(svg("path", { d: path(points), class: "series slot0" }));
    cursor = svg("line", { y1: box.top, y2: box.bottom, class: "cursor" });
    root.append(cursor);
  };
  const show = (t) => {
    if (!cursor) return;
    cursor.setAttribute("x1", X.at(t));
    cursor.setAttribute("x2", X.at(t));
    let i = 0;
    while (i + 1 < s.time.length && s.time[i + 1] <= t + 1e-9) i += 1;
    value.textContent = format(s.value[i]);
  };
  return [[name, place], draw, show];
}

function drawReplay(place, scene) {
  const frames = scene.time.length;
  const drawable = scene.bounds && scene.movers.length;
  const drawn = drawable ? picture : scene.pictures ? film : null;
  const [stage, move] = drawn ? drawn(scene, true) : [null, () => {}];
  const traces = scene.series.map((s) => trace(scene, s));
  const play = html("button", { type: "button" }, "Play");
  const slider = html("input", { type: "range", min: 0, max: frames - 1, step: 1, value: 0, "aria-label": `Moment of ${scene.alt}` });
  const speed = html("select", { "aria-label": "Speed" }, ...[["0.5", "½ ×"], ["1", "1 ×"], ["2", "2 ×"]].map(([v, t]) => html("option", { value: v, ...(v === "1" ? { selected: "" } : {}) }, t)));
  const clock = html("p", { class: "clock" });
  const last = scene.decision.at(-1);
  const when = (k) => (scene.time_unit === "s" ? `${scene.time[k].toFixed(1)} s, ` : "") + `decision ${Math.max(1, scene.decision[k])} of ${last}`;
  let now = 0;
  const show = (k) => {
    now = k;
    move(k);
    traces.forEach(([, , at]) => at(scene.time[k]));
    slider.value = k;
    clock.textContent = when(k) + (k === frames - 1 ? `: ${scene.outcome}` : "");
    slider.setAttribute("aria-valuetext", clock.textContent);
    place.dataset.frame = k;
  };
  let timer = 0;
  const stop = () => { cancelAnimationFrame(timer); timer = 0; play.textContent = "Play"; };
  const duration = scene.time.at(-1) - scene.time[0] || 1;
  const seconds = scene.time_unit === "s" ? Math.min(Math.max(duration, 4), 12) : Math.min(Math.max(duration * 0.5, 3), 12);
  const start = () => {
    if (now >= frames - 1) show(0);
    play.textContent = "Pause";
    let before = performance.now();
    let t = scene.time[now];
    const tick = (instant) => {
      t += ((instant - before) / 1000) * (duration / seconds) * Number(speed.value);
      before = instant;
      let k = now;
      while (k + 1 < frames && scene.time[k + 1] <= t) k += 1;
      if (k !== now) show(k);
      if (k >= frames - 1) stop();
      else timer = requestAnimationFrame(tick);
    };
    timer = requestAnimationFrame(tick);
  };
  play.addEventListener("click", () => (timer ? stop() : start()));
  slider.addEventListener("input", () => { stop(); show(Number(slider.value)); });
  const roles = new Map();
  for (const m of scene.movers) if (m.name && m.shapes.length) roles.set(m.name, m.shapes[0].role);
  const names = html("ul", { class: "legend" }, ...[...roles].map(([name, role]) => html("li", {}, svg("svg", { viewBox: "0 0 30 12", "aria-hidden": "true" }, svg("g", { class: "mover" }, svg("rect", { x: 4, y: 1, width: 22, height: 10, class: `shape role-${role}`, "stroke-width": 1.4 }))), name)));
  const keys = html("div", { class: "keyframes" });
  if (drawn) {
    for (const k of new Set([0, 1, 2, 3].map((q) => Math.round((q * (frames - 1)) / 3)))) {
      const [still, set] = drawn(scene, false);
      set(k);
      keys.append(html("figure", {}, still, html("figcaption", {}, when(k))));
    }
  }
  place.setAttribute("role", "group");
  place.setAttribute("aria-label", scene.alt);
  const [wide, high] = drawable ? [scene.bounds[2] - scene.bounds[0], scene.bounds[3] - scene.bounds[1]] : scene.size || [2, 1];
  const compact = drawn && wide <= 1.5 * high;
  const view = html("div", { class: compact && traces.length ? "beside" : "" },
    html("div", {},
      ...(stage ? [names, stage] : [html("p", { class: "small" }, scene.remark || "There is no picture of this problem: the replay shows its recorded quantities.")]),
      html("div", { class: "controls" }, play, slider, speed), clock),
    html("div", { class: "traces" }, ...traces.map(([nodes]) => html("div", {}, ...nodes))));
  place.replaceChildren(
    view, keys,
    ...(scene.left_out ? [html("p", { class: "small" }, `${scene.left_out} more quantities are in the run folder.`)] : []),
  );
  const redraw = () => { traces.forEach(([, draw]) => draw()); show(now); };
  redraw();
  return redraw;
}
