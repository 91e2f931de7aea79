// Sets what pymdownx.arithmatex marked: \( … \) in a line, \[ … \] on a line of its own.
for (const element of document.querySelectorAll(".arithmatex")) {
  const source = element.textContent.trim();
  katex.render(source.slice(2, -2), element, {
    displayMode: source.startsWith("\\["),
    throwOnError: false,
  });
  const next = element.nextSibling;
  if (next && next.nodeType === Node.TEXT_NODE && /^[.,:;)]/.test(next.data)) {
    next.data = "\u2060" + next.data; // no new line before a full stop
  }
}
