// Short names and options, such as --target-error, stay on one line; long ones may break.
for (const code of document.querySelectorAll(".md-typeset :not(pre) > code")) {
  if (code.textContent.length <= 26 && !/\s/.test(code.textContent)) {
    code.style.whiteSpace = "nowrap";
  }
}
