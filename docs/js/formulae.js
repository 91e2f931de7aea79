// Sets what pymdownx.arithmatex marked: \( … \) in a line, \[ … \] on a line of its own.
for (const element of document.querySelectorAll(".arithmatex")) {
  const source = element.textContent.trim();
  katex.render(source.slice(2, -2), element, {
    displayMode: source.startsWith("\\["),
    throwOnError: false,
  });
  // a comma or full stop goes into the formula's last part: no line begins with it
  const next = element.nextSibling;
  const part = [...element.querySelectorAll(".katex-html > .katex-base")].pop();
  const sign = next && next.nodeType === Node.TEXT_NODE && next.data.match(/^[.,:;)]+/);
  if (part && sign) {
    part.append(sign[0]);
    next.data = next.data.slice(sign[0].length);
  }
}
