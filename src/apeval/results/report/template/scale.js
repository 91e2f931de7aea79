// Numbers, scales, SVG elements and the tooltip.
const NS = "http://www.w3.org/2000/svg";

function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function html(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

const raised = (n) => String(n).replace(/[-0-9]/g, (c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]));

function format(x, digits = 3) {
  if (x === null || x === undefined) return "–";
  if (x === 0) return "0";
  const power = Math.floor(Math.log10(Math.abs(Number(x.toPrecision(digits)))));
  if (power >= -3 && power < 6) {
    return Number(x.toPrecision(digits)).toLocaleString("en-GB", { maximumFractionDigits: 8 }).replace("-", "−");
  }
  const head = Number((x / 10 ** power).toPrecision(digits));
  return head === 1 ? `10${raised(power)}` : `${String(head).replace("-", "−")} × 10${raised(power)}`;
}

// A scale maps data to pixels: `at` (clamped to the domain), `ticks`, `domain`.
function linear(low, high, from, to) {
  if (!(high > low)) [low, high] = [low - 1, high + 1];
  const at = (v) => from + ((to - from) * (Math.min(Math.max(v, low), high) - low)) / (high - low);
  const ticks = (most, whole = false) => {
    const raw = Math.max((high - low) / Math.max(1, most), whole ? 1 : 0);
    const base = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * base).find((s) => s >= raw * 0.999);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) {
      found.push(Number((k * step).toPrecision(12)));
    }
    return found;
  };
  return { at, ticks, domain: [low, high] };
}

function logarithmic(low, high, from, to) {
  if (!(high > low)) [low, high] = [low / 3, high * 3];
  const l = Math.log10(low);
  const h = Math.log10(high);
  const at = (v) => {
    const place = v > 0 ? Math.log10(v) : l;
    return from + ((to - from) * (Math.min(Math.max(place, l), h) - l)) / (h - l);
  };
  const ticks = (most) => {
    const found = [];
    const stride = Math.max(1, Math.ceil((h - l) / Math.max(1, most)));
    const heads = h - l < 0.6 ? [1, 1.5, 2, 3, 4, 5, 6, 8] : h - l < 1.2 ? [1, 2, 3, 5] : h - l < 2.5 ? [1, 2, 5] : [1];
    for (let d = Math.floor(l); d <= Math.ceil(h); d += 1) {
      if (heads.length === 1 && d % stride !== 0) continue;
      for (const m of heads) {
        const v = Number(`${m}e${d}`);
        if (v >= low * 0.999 && v <= high * 1.001) found.push(v);
      }
    }
    return found;
  };
  return { at, ticks, domain: [low, high] };
}

const finite = (values) => values.filter((v) => v !== null && v !== undefined && Number.isFinite(v));

// The domain of an axis: all that is drawn, a little air, and what the chart asks for.
function domain(axis, values, air = 0.04) {
  let found = finite(values);
  if (axis.log) found = found.filter((v) => v > 0);
  let low = found.length ? Math.min(...found) : axis.log ? 0.1 : 0;
  let high = found.length ? Math.max(...found) : 1;
  if (axis.log) {
    const room = 10 ** Math.max(0.06, air * Math.log10(high / low || 1));
    [low, high] = [low / room, high * room];
    if (found.length && Math.max(...found) <= 1) high = Math.min(high, 1);
  } else {
    const room = (high - low || Math.abs(high) || 1) * air;
    [low, high] = [low - room, high + room];
  }
  if (axis.low !== undefined) low = axis.low;
  if (axis.high !== undefined) high = axis.high;
  if (axis.whole) {
    const room = (high - low || 1) * 0.05;
    [low, high] = [low - room, high + room];
  }
  return [low, high];
}

const tip = document.getElementById("tip");
function showTip(lines, x, y) {
  tip.replaceChildren(...lines.flatMap((line, k) => (k ? [html("br"), line] : [line])));
  tip.hidden = false;
  const wide = document.documentElement.clientWidth;
  const left = Math.min(Math.max(x + 12, 8), wide - tip.offsetWidth - 8);
  tip.style.left = `${left + window.scrollX}px`;
  tip.style.top = `${Math.max(y - tip.offsetHeight - 12, 4) + window.scrollY}px`;
}
const hideTip = () => { tip.hidden = true; };
