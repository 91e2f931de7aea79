// Sets what pymdownx.arithmatex marked: \( … \) in a line, \[ … \] on a line of its own.
for (const element of document.querySelectorAll(".arithmatex")) {
  const source = element.textContent.trim();
  katex.render(source.slice(2, -2), element, {
    displayMode: source.startsWith("\\["),
    throwOnError: false,
  });
}
