// A number such as 1.02e-03 does not break behind its sign.
for (const cell of document.querySelectorAll(".md-typeset td")) {
  const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walk.nextNode()) texts.push(walk.currentNode);
  for (const text of texts) {
    if (!/\de-\d/.test(text.data) || text.parentElement.closest("code, .arithmatex")) continue;
    const parts = text.data.split(/(\S*\de-\d+\S*)/).map((part, k) => {
      if (k % 2 === 0) return part;
      const whole = document.createElement("span");
      whole.style.whiteSpace = "nowrap";
      whole.textContent = part;
      return whole;
    });
    text.replaceWith(...parts);
  }
}
// Short names and options, such as --target-error, stay on one line; long ones may break, in a table
// after a dot or a slash, so that no column is wider than it must be.
const short = window.innerWidth < 600 ? 16 : 26;
for (const code of document.querySelectorAll(".md-typeset :not(pre) > code")) {
  if (/\s/.test(code.textContent)) continue;
  if (code.textContent.length <= short) {
    code.style.whiteSpace = "nowrap";
  } else if (code.closest("td")) {
    code.innerHTML = code.innerHTML.replace(/([./_(=])(?=\w)/g, "$1<wbr>");
  }
}
