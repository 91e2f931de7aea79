"""The parameters of laws: numbers, one per component, or a function of the situation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from apeval.errors import ApevalError, ProblemError
from apeval.problem.types import FloatArray

Parameter = float | Sequence[float] | FloatArray | Callable[[Any, Any], FloatArray]
BY_STATE = "by the state"


def sum_columns(terms: FloatArray) -> FloatArray:
    """Row sums in a fixed order, so that a row's sum never depends on the batch around it.

    Args:
        terms: Shape (n, d).

    Returns:
        Shape (n,).
    """
    total: FloatArray = terms[:, 0].copy()
    for j in range(1, terms.shape[1]):
        total += terms[:, j]
    return total


def parameter_rows(value: Parameter, x: Any, a_A: Any, dim: int) -> FloatArray:
    """A parameter in n situations, (1 or n, dim).

    Args:
        value: A number, one per component, or a function of x and a_A.
        x: The simulator's state, n episodes.
        a_A: The agent's actions.
        dim: Components of the disturbance.

    Returns:
        Shape (1 or n, dim).
    """
    if callable(value):
        rows = np.array(value(x, a_A), dtype=np.float64)  # a copy: f_E may change x in place
        if rows.ndim not in (1, 2):
            raise ProblemError(
                "a function that gives a parameter of a nominal law returned an array of the shape "
                f"{rows.shape}, expected a row per episode: (n,) or (n, {dim})"
            )
        return rows[:, None] if rows.ndim == 1 else rows
    if isinstance(value, float | int):
        return np.full((1, dim), value, np.float64)
    constant = np.array(value, dtype=np.float64)
    if constant.shape == (dim,):
        return constant[None]
    return np.broadcast_to(constant, (1, dim)).copy()


def kept_parameter(value: Parameter) -> Parameter:
    """A parameter that later changes of the caller's array do not reach."""
    return value if callable(value) else np.array(value, np.float64) if np.ndim(value) else value


def common_width(*values: Parameter) -> int:
    """The number of components that constant parameters have."""
    return max(np.size(np.asarray(v)) for v in values if not callable(v))


def moved_columns(
    value: FloatArray, move: Callable[[FloatArray], FloatArray], index: int | None
) -> FloatArray:
    """A parameter (1 or n, d) after a change of component `index` (from 1), or of all.

    Args:
        value: Shape (1 or n, d).
        move: What happens to the chosen values.
        index: The component, from 1; None: all of them.

    Returns:
        A changed copy.

    Raises:
        ApevalError: There is no such component.
    """
    if index is None:
        return move(value)
    d = value.shape[1]
    if not 1 <= index <= d:
        raise ApevalError(f"the law has components 1 … {d}, no {index}")
    after = value.copy()
    after[:, index - 1] = move(value[:, index - 1])
    return after


def moved_outcome(
    p: FloatArray, move: Callable[[FloatArray], FloatArray], index: int | None
) -> FloatArray:
    """Probabilities (1 or n, K) after a change of outcome `index`; the others keep their
    proportions.

    Args:
        p: Shape (1 or n, K).
        move: What happens to the chosen probability.
        index: The outcome, from 0.

    Returns:
        A changed copy whose rows sum to 1.

    Raises:
        ApevalError: There is no such outcome, or a probability would leave [0, 1].
    """
    K = p.shape[1]
    if index is None or index >= K:
        raise ApevalError(
            f"say which outcome, from probabilities[0] to probabilities[{K - 1}]; "
            "the others keep their proportions"
        )
    wanted = move(p[:, index])
    rest = 1.0 - p[:, index]
    if np.any(wanted < 0.0) or np.any(wanted > 1.0) or np.any((rest <= 0.0) & (wanted < 1.0)):
        raise ApevalError("a probability would leave [0, 1]")
    scale = np.divide(1.0 - wanted, rest, out=np.ones_like(rest), where=rest > 0.0)
    after = p * scale[:, None]
    after[:, index] = wanted
    return after


def numbers_of(value: Any) -> list[float]:
    """A constant parameter as plain numbers."""
    return [float(v) for v in np.asarray(value, np.float64).ravel()]


def parameter_in_words(name: str, value: Any) -> str:
    """A parameter with its value, such as 'σ 0.5'."""
    if callable(value):
        return f"{name} {BY_STATE}".strip()
    values = numbers_of(value)
    same = len(set(values)) == 1
    shown = f"{values[0]:.4g}" if same else "(" + ", ".join(f"{v:.4g}" for v in values[:6]) + ")"
    return f"{name} {shown}".strip()
