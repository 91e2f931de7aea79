"""Symbols in the tables that commands wrote, set as formulae on the site.

A command prints π_E,gt to a terminal, and the same text is included in a page. mkdocs loads this
file as a hook (see mkdocs.yml); pages that are written by hand have LaTeX of their own.
"""

from __future__ import annotations

import html
import re
from typing import Any

SYMBOLS = {
    "|v(n′) − v(n)| < 1% of v(n)": r"|v(n') - v(n)| < 0.01\, v(n)",
    "x' ~ N(x − 0.04, 0.1²)": r"x' \sim \mathcal N(x - 0.04,\, 0.1^2)",
    "|log10(estimate / truth)|": r"|\log_{10}(\text{estimate}/\text{truth})|",
    "MSE = √(Bias² + Std²)": r"\text{MSE} = \sqrt{\text{Bias}^2 + \text{Std}^2}",
    "KL(π_E‖π_E,gt)": r"\mathrm{KL}(\pi_E \,\|\, \pi_{E,gt})",
    "N(mean, spread²)": r"\mathcal N(\text{mean},\, \text{spread}^2)",
    "√(−log p / N)": r"\sqrt{-\log p / N}",
    "(E w)²/E w²": r"(\mathbb E\, w)^2 / \mathbb E\, w^2",
    "∝ (1 − γ)^1.00": r"\propto (1 - \gamma)^{1.00}",
    "0.1 < β ≤ 1": r"0.1 < \beta \le 1",
    "∝ h^0.99": r"\propto h^{0.99}",
    "N(1, 2²)": r"\mathcal N(1, 2^2)",
    "α_π = 0.01": r"\alpha_\pi = 0.01",
    "β ≤ 0.1": r"\beta \le 0.1",
    "1 < β": r"1 < \beta",
    "σ = 0.4": r"\sigma = 0.4",
    "M = 128": "M = 128",
    "v*(s0)": r"v^\star(s_0)",
    "π_E,gt": r"\pi_{E,gt}",
    "π_E,θ": r"\pi_{E,\theta}",
    "m/s²": r"\mathrm{m/s^2}",
    "v(s0)": "v(s_0)",
    "v(s1)": "v(s_1)",
    "v(s2)": "v(s_2)",
    "v(s3)": "v(s_3)",
    "π_E*": r"\pi_E^\star",
    "π_E": r"\pi_E",
    "a_E": "a_E",
    "v*": r"v^\star",
    "β": r"\beta",
    "γ": r"\gamma",
}
TOKEN = re.compile("|".join(rf"(?<![\w`\\]){re.escape(it)}(?!\w)" for it in SYMBOLS))
TAG = re.compile(r"(<[^>]+>)")
AS_IT_IS = re.compile(r'<(code|pre|script|style|(?:span|div) class="arithmatex")[ >]?')


def set_as_formulae(content: str) -> str:
    """A page's HTML with these symbols in the form that KaTeX sets; code and formulae stay.

    >>> set_as_formulae("<p>from π_E,gt, <code>a_E</code></p>")
    '<p>from <span class="arithmatex">\\\\(\\\\pi_{E,gt}\\\\)</span>, <code>a_E</code></p>'
    """
    parts, ends = TAG.split(content), ""
    for k, part in enumerate(parts):
        if not k % 2:
            if not ends:
                parts[k] = _with_formulae(part)
        elif ends:
            ends = "" if part == ends else ends
        elif found := AS_IT_IS.match(part):
            ends = f"</{found[1].split()[0]}>"
    return "".join(parts)


def _with_formulae(part: str) -> str:
    text, done, at = html.unescape(part), "", 0
    for found in TOKEN.finditer(text):
        latex = html.escape(SYMBOLS[found[0]], quote=False)
        before = html.escape(text[at : found.start()], quote=False)
        done += rf'{before}<span class="arithmatex">\({latex}\)</span>'
        at = found.end()
    return done + html.escape(text[at:], quote=False) if at else part


def on_page_content(content: str, **rest: Any) -> str:
    """What mkdocs calls for every page."""
    return set_as_formulae(content)
