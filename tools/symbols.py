"""The paper's symbols in docstrings, set as formulae on the pages of the API.

A docstring is read in an editor, where π_E,gt is plainer than its LaTeX. On the site both would
stand side by side. mkdocs loads this file (see mkdocs.yml).
"""

from __future__ import annotations

import re
from typing import Any

import griffe

SYMBOLS = {
    "π_E,gt(a_E | s, a_A)": r"\pi_{E,gt}(a_E \mid s, a_A)",
    "π_E,gt(· | s_n, a_A,n)": r"\pi_{E,gt}(\cdot \mid s_n, a_{A,n})",
    "π_E,gt(· | s, a_A)": r"\pi_{E,gt}(\cdot \mid s, a_A)",
    "π_A(action | obs)": r"\pi_A(\text{action} \mid \text{obs})",
    "π_A(a_A | x)": r"\pi_A(a_A \mid x)",
    "π_A(a_A | s)": r"\pi_A(a_A \mid s)",
    "a_A ~ π_A(· | x)": r"a_A \sim \pi_A(\cdot \mid x)",
    "N(mean(obs), std(obs)²)": r"\mathcal N(\text{mean}(\text{obs}),\, \text{std}(\text{obs})^2)",
    "f_E(s, a_A, a_E)": "f_E(s, a_A, a_E)",
    "p(τ) / Σ_j (n_j/n) q_j(τ)": r"p(\tau) / \sum_j (n_j/n)\, q_j(\tau)",
    "Σ λ_b v̂_b": r"\sum_b \lambda_b \hat v_b",
    "λ_b ∝": r"\lambda_b \propto",
    "(Σw)²/Σw²": r"(\sum w)^2 / \sum w^2",
    "P(margin ≤ m)": r"P(\text{margin} \le m)",
    "mean ± bound": r"\text{mean} \pm \text{bound}",
    "v*(s0)": r"v^\star(s_0)",
    "log v(s, t)": r"\log v(s, t)",
    "log q_j(τ)": r"\log q_j(\tau)",
    "log q(τ)": r"\log q(\tau)",
    "log p(τ)": r"\log p(\tau)",
    "log λ": r"\log\lambda",
    "v(s0)": "v(s_0)",
    "π_E,gt": r"\pi_{E,gt}",
    "0 … K−1": r"0 \ldots K - 1",
    "−1 − k": "-1 - k",
    "n/n_j": "n/n_j",
    "a_A,n": "a_{A,n}",
    "a_E,n": "a_{E,n}",
    "π_A": r"\pi_A",
    "π_E": r"\pi_E",
    "d_E": "d_E",
    "f_E": "f_E",
    "a_A": "a_A",
    "a_E": "a_E",
    "a_0": "a_0",
    "s_n": "s_n",
    "s0": "s_0",
    "m = 0": "m = 0",
    "≤ 0": r"\le 0",
    "≥ 0": r"\ge 0",
    "> 0": "> 0",
    "−∞": r"-\infty",
    "∞": r"\infty",
    "λ": r"\lambda",
    "∝": r"\propto",
}
SHAPE = re.compile(r"\((?:[nNMSAEK]|d_\w)(?:, (?:d_\w|[MSAEK1]))*,?\)")  # (n,), (n, d_E), …
LETTER = r"(?<![\w(`])(?:{})(?![\w(`])"
TOKEN = re.compile("|".join(LETTER.format(re.escape(it)) for it in SYMBOLS))
SECTION = re.compile(r"(``[^`]+``|`[^`]+`|^\s*(?:>>>|\.\.\.).*$|^\s+\**\w+:(?= ))", re.MULTILINE)


def set_as_formulae(text: str) -> str:
    """A docstring with its symbols as LaTeX; code, examples and names of arguments stay.

    >>> set_as_formulae("Law of `a_E`: π_E,gt, shape (n, d_E).")
    'Law of `a_E`: $\\\\pi_{E,gt}$, shape $(n, d_E)$.'
    """
    parts = SECTION.split(text)
    return "".join(part if k % 2 else _plain(part) for k, part in enumerate(parts))


def _plain(text: str) -> str:
    text = SHAPE.sub(lambda found: f"${found[0]}$", text)
    pieces = re.split(r"(\$[^$]+\$)", text)
    return "".join(
        piece if k % 2 else TOKEN.sub(lambda found: f"${SYMBOLS[found[0]]}$", piece)
        for k, piece in enumerate(pieces)
    )


class Symbols(griffe.Extension):
    """Passes every docstring through `set_as_formulae` once."""

    def on_object(self, *, obj: griffe.Object, **rest: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = set_as_formulae(obj.docstring.value)
