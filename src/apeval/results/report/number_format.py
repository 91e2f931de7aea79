"""Numbers as people read them."""

from __future__ import annotations

import math
from typing import Any

from apeval.run.result_text import in_words

__all__ = ["count", "in_words", "number", "one_in", "percent", "plain", "sentence", "span"]

_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def number(x: float | None, digits: int = 3) -> str:
    r"""To a few digits, with a power of ten where the number is far from 1.

    >>> number(1.698e-6)
    '1.70\xa0×\xa010⁻⁶'
    >>> number(0.0125), number(0.0), number(None), number(1234.5)
    ('0.0125', '0', '–', '1,230')
    """
    if x is None or not math.isfinite(x):
        return "–"
    if x == 0.0:
        return "0"
    size = math.floor(math.log10(abs(float(f"{x:.{digits - 1}e}"))))
    if -3 <= size < 6:
        rounded = round(x, digits - 1 - size)
        return f"{rounded:,.{max(0, digits - 1 - size)}f}"
    return f"{x / 10.0**size:.{digits - 1}f}\u00a0×\u00a010{str(size).translate(_RAISED)}"


def count(n: float) -> str:
    """A whole number.

    >>> count(12_345)
    '12,345'
    """
    return f"{round(n):,}"


def percent(x: float | None) -> str:
    r"""A share.

    >>> percent(0.5), percent(0.0123), percent(0.0004)
    ('50\xa0%', '1.2\xa0%', 'under 0.1\xa0%')
    """
    if x is None:
        return "–"
    if 0.9995 <= x < 1.0 - 1e-9:
        return "over 99.9\u00a0%"
    if 0.0 < x < 0.001:
        return "under 0.1\u00a0%"
    digits = 1 if 0.0 < x < 0.1 or 0.9 < x < 0.9995 else 0
    return f"{100.0 * x:.{digits}f}\u00a0%"


def span(interval: Any) -> str:
    r"""An interval.

    >>> span([1.0e-6, 2.0e-6])
    '1.00\xa0×\xa010⁻⁶ to 2.00\xa0×\xa010⁻⁶'
    """
    lo, hi = interval
    return f"{number(lo)} to {number(hi)}"


def sentence(text: str) -> str:
    """With a capital and a full stop.

    >>> sentence("raise the budget")
    'Raise the budget.'
    """
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!", ")")) else ".")


def plain(value: Any) -> str:
    """A setting or a version as text."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return ", ".join(f"{k} {plain(v)}" for k, v in value.items())
    if isinstance(value, list | tuple):
        return " ".join(plain(v) for v in value)
    return str(value)


def one_in(p: float) -> str:
    """A probability as a frequency.

    >>> one_in(1.7e-6), one_in(0.0), one_in(0.8)
    ('1 in 590,000', 'never', '80% of all')
    """
    if p <= 0.0:
        return "never"
    if p < 1e-9:
        return f"1 in {number(1.0 / p, 2)}"
    return (
        in_words(p, 1.0)
        .removeprefix("about ")
        .removesuffix(" episodes")
        .replace("% of", "% of all")
    )
