"""Values that hang on what is still to come.

The robustness of a formula that looks ahead without an end is not known while an episode runs: it
is a function of k unknowns, each ahead of the last moment. With minimum and maximum alone such a
function is fixed by what it gives where every unknown is −∞ or +∞ (Goodstein, 1967), so a value is
kept as those 2ᵏ numbers, on the last axis; entry c is for the unknowns whose bits in c are set at
+∞ and the others at −∞. Minimum and maximum of two functions are those of their entries.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from apeval.problem.types import Array, FloatArray

Unknowns = tuple[int, ...]
"""Numbers of the operators whose future a value hangs on, in order."""


def unknown(which: int, unknowns: Unknowns, n: int) -> FloatArray:
    """One of the unknowns itself, (n, 2ᵏ)."""
    bit = 1 << unknowns.index(which)
    row = [np.inf if corner & bit else -np.inf for corner in range(2 ** len(unknowns))]
    return np.tile(np.array(row), (n, 1))


@functools.lru_cache
def _places(few: Unknowns, many: Unknowns) -> tuple[int, ...]:
    bits = [many.index(it) for it in few]
    return tuple(
        sum(1 << k for k, bit in enumerate(bits) if corner >> bit & 1)
        for corner in range(2 ** len(many))
    )


def extended(value: FloatArray, few: Unknowns, many: Unknowns) -> FloatArray:
    """A value of few unknowns as one of more: (…, 2ᵏ) to (…, 2ᵐ)."""
    return value if few == many else value[..., _places(few, many)]


def put(value: FloatArray, answers: Sequence[FloatArray]) -> FloatArray:
    """A value with its k unknowns replaced by values of their own.

    Args:
        value: The values, (n, 2ᵏ) or (n, L, 2ᵏ).
        answers: One for each unknown, (n, 2ᵐ), all of the same m unknowns.

    Returns:
        Values of these, (n, 2ᵐ) or (n, L, 2ᵐ).
    """
    if not answers:
        return value
    inner = tuple(range(1, value.ndim - 1))
    result: Array | None = None
    for corner in range(value.shape[-1]):
        term = value[..., corner, None]
        for bit, answer in enumerate(answers):
            if corner >> bit & 1:
                term = np.minimum(term, np.expand_dims(answer, inner))
        result = term if result is None else np.maximum(result, term)
    width = answers[0].shape[-1]
    return np.broadcast_to(np.asarray(result), (*value.shape[:-1], width))
