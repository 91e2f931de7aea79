// Runs in a page of the site: what is cut off, unreadable or not set. See site_check.py.
(least) => {
  const found = [];
  const say = (what, it, more) => found.push(
    `${what}: <${it.tagName.toLowerCase()} class="${String(it.className).slice(0, 40)}"> ` +
    `${(it.textContent || it.src || "").trim().replace(/\s+/g, " ").slice(0, 70)} ${more || ""}`);
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth)
    found.push(`the page scrolls sideways: ${root.scrollWidth} > ${root.clientWidth}`);
  const article = document.querySelector("article");
  if (!article) return found;

  const scrolls = (it) => ["auto", "scroll"].includes(getComputedStyle(it).overflowX);
  const hidden = (it) => it.closest(
    ".katex-mathml, .md-clipboard, .md-code__nav, .headerlink, details:not([open]) > :not(summary)");
  for (const it of article.querySelectorAll("*")) {
    if (hidden(it) || it.parentElement.closest("svg")) continue;  // KaTeX draws long roots and cuts them
    const box = it.getBoundingClientRect();
    if (!box.width || !box.height) continue;
    let inside = false, limit = root.clientWidth;
    for (let up = it; up && up !== document.body; up = up.parentElement) {
      if (scrolls(up)) { inside = true; break; }
    }
    if (!inside && box.right > limit + 1) say("cut off", it, `(right edge ${Math.round(box.right)})`);
    const style = getComputedStyle(it);
    if (!it.closest(".katex") && ["hidden", "clip"].includes(style.overflowX) && it.scrollWidth > it.clientWidth + 1
        && it.clientWidth > 1 && !["svg", "SVG"].includes(it.tagName))
      say("hidden", it, `(${it.scrollWidth} > ${it.clientWidth})`);
    if (it.tagName === "IMG" && (!it.complete || !it.naturalWidth)) say("missing picture", it, it.src);
  }

  for (const it of article.querySelectorAll(".katex-error")) say("formula with an error", it);
  for (const it of article.querySelectorAll(".arithmatex"))
    if (!it.querySelector(".katex")) say("formula not set", it);
  const walk = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
  const latex = /\\[a-zA-Z]{2,}|\$[^$\s][^$]*\$|[A-Za-zπσμθ]_\{|\^\{|[πσαρθψ]_|\ba_[AE]\b|v\*|v\(s\d/;
  const colour = (text) => {
    const n = (text.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
    return text.startsWith("color(") ? [n[0] * 255, n[1] * 255, n[2] * 255, n.length > 3 ? n[3] : 1]
                                     : [n[0], n[1], n[2], n.length > 3 ? n[3] : 1];
  };
  const over = (top, below) => top.slice(0, 3).map((v, k) => v * top[3] + below[k] * (1 - top[3]));
  const light = (rgb) => {
    const [r, g, b] = rgb.map((v) => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const behind = (it) => {
    const layers = [];
    for (let up = it; up; up = up.parentElement) {
      layers.push(colour(getComputedStyle(up).backgroundColor));
      if (layers[layers.length - 1][3] === 1) break;
    }
    let rgb = [255, 255, 255];
    for (const layer of layers.reverse()) rgb = over(layer, rgb);
    return rgb;
  };
  const seen = new Set();
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const it = node.parentElement;
    if (!node.textContent.trim() || hidden(it) || it.closest("script, style")) continue;
    if (!it.closest("code, pre, .katex, .doc-object-name") && latex.test(node.textContent)) say("plain formula", it);
    if (it.closest("svg")) continue;
    const box = it.getBoundingClientRect();
    if (!box.width) continue;
    const back = behind(it), text = over(colour(getComputedStyle(it).color), back);
    const [a, b] = [light(text), light(back)].sort((x, y) => y - x);
    const ratio = (a + .05) / (b + .05);
    const key = `${text}|${back}`;
    if (ratio < least && !seen.has(key)) { seen.add(key); say("contrast", it, `(${ratio.toFixed(2)})`); }
  }
  return found;
}
