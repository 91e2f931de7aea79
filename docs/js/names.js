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
