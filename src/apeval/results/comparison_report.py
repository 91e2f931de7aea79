"""The page of a stored comparison: one HTML file that opens offline."""

from __future__ import annotations

import io
import re
from html import escape
from pathlib import Path

from apeval import validate
from apeval.atomic_files import write_bytes
from apeval.results.comparison_folder import load_comparison
from apeval.version import __version__

_STYLE = """
:root { color-scheme: light dark }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 62rem; padding: 1rem }
h1 { font-size: 1.4rem; line-height: 1.3 }
.picture { background: #fff; border-radius: .4rem; overflow-x: auto; padding: .5rem }
.picture svg { height: auto; max-width: 100% }
table { display: block; overflow-x: auto }
footer { font-size: .85rem; margin-top: 2rem; opacity: .7 }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def write_comparison_report(path: Path | str, out: Path | str) -> Path:
    """Write the page of a comparison.

    Args:
        path: The folder of the comparison.
        out: The HTML file.

    Returns:
        The file.

    Raises:
        ApevalError: There is no comparison, it is damaged, or the file cannot be written.
    """
    found = load_comparison(path)
    drawn = io.StringIO()
    found.plot().savefig(drawn, format="svg", metadata={"Date": None})
    svg = drawn.getvalue()
    svg = re.sub(r"(?s)<metadata>.*?</metadata>", "", svg[svg.index("<svg") :])
    title = f"{found.a} against {found.b}"
    page = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{escape(title)} · report</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{escape(found.in_words())}</h1>
{found._repr_html_()}
<div class="picture">{svg}</div>
<footer>apeval {escape(__version__)}; all numbers follow from the pairs in the folder.</footer>
</body>
</html>
"""
    target = validate.output_file("out", out)
    target.parent.mkdir(parents=True, exist_ok=True)
    return write_bytes(target, page.encode("utf-8", "replace"))
