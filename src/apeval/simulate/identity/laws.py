"""A nominal disturbance as plain data: what a run folder says of it, and what two runs compare."""

from __future__ import annotations

from typing import Any

import numpy as np

from apeval.problem.laws import Categorical, Disturbance, Normal, TruncatedNormal

BY_STATE = "by the state"
_MOST = 1_000  # numbers of one parameter that are kept


def describe(nominal: Disturbance | None) -> dict[str, Any] | None:
    """The law's class, width and constant parameters, and the same in words.

    Args:
        nominal: π_E,gt, or the law of a controlled start; None where there is none.

    Returns:
        Plain data. A parameter that is a function of the state is named as such: what it does is
        told by the reference decisions.

    >>> describe(Normal(0.0, 0.5))["std"]
    [0.5]
    """
    if nominal is None:
        return None
    kind = type(nominal)
    parameters = {k: v for k, v in vars(nominal).items() if not k.startswith("_") and k != "dim"}
    return {
        "class": kind.__qualname__,
        "dim": int(nominal.dim),
        **{name: _value(value) for name, value in sorted(parameters.items())},
        "words": in_words(nominal),
    }


def _value(value: Any) -> Any:
    if isinstance(value, Disturbance):
        return describe(value)
    if callable(value):
        return BY_STATE
    if isinstance(value, list | tuple) and any(isinstance(v, Disturbance) for v in value):
        return [_value(v) for v in value]
    try:
        numbers = np.asarray(value, np.float64).ravel()[:_MOST]
    except (TypeError, ValueError):
        return type(value).__name__
    return [float(v) if np.isfinite(v) else str(v) for v in numbers]


def in_words(nominal: Disturbance) -> str:
    """π_E,gt as a report says it.

    >>> in_words(Normal(0.0, [0.5, 0.5]))
    'Gaussian, 2 components, mean 0, σ 0.5'
    """
    if isinstance(nominal, Categorical):
        text = f"one of {nominal.outcomes} outcomes"
        if callable(nominal.probabilities):
            return text + " whose probabilities depend on the state"
        shares = ", ".join(f"{p:.3g}" for p in _flat(nominal.probabilities)[:12])
        return f"{text}, with probabilities {shares}"
    size = f"{nominal.dim} component{'s' if nominal.dim > 1 else ''}"
    if isinstance(nominal, Normal | TruncatedNormal):
        text = (
            f"Gaussian, {size}, {_parameter('mean', nominal.mean)}, {_parameter('σ', nominal.std)}"
        )
        if isinstance(nominal, TruncatedNormal):
            text += f", cut at {_parameter('', nominal.low)} and {_parameter('', nominal.high)}"
        return text
    return f"{type(nominal).__name__}, {size}"


def _flat(value: Any) -> list[float]:
    return [float(v) for v in np.asarray(value, np.float64).ravel()]


def _parameter(name: str, value: Any) -> str:
    if callable(value):
        return f"{name} {BY_STATE}".strip()
    values = _flat(value)
    same = len(set(values)) == 1
    shown = f"{values[0]:.4g}" if same else "(" + ", ".join(f"{v:.4g}" for v in values[:6]) + ")"
    return f"{name} {shown}".strip()
