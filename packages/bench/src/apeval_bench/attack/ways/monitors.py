# ruff: noqa: NPY002, T201
"""Signals of a specification that misbehave, and other parts of a problem whose failure is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import apeval

from . import walk as w
from .walk import Late, Way

SOON, LATER = 500, 5_000
TEXT = f"always (height < {w.TOP} or eventually[0,2] height < 0.0)"


def height(x: Any) -> Any:
    """The signal."""
    return x[:, 0]


def specified(**parts: Any) -> apeval.Problem:
    """The walk whose failure is a violated specification; `height` may be replaced."""
    signal = parts.pop("height", height)
    event = apeval.spec(TEXT, height=signal)
    return w.walk(**{"failed": event, "margin": None, **parts})


def _signal(bad: Callable[[Any], Any], good: Callable[[Any], Any] | None = None) -> Way:
    proper = {"height": good} if good else {}
    return Way(lambda: {"height": bad}, proper, specified)


def _late(after: int, change: Callable[[Any], Any]) -> Way:
    """A signal that answers otherwise after so many rows."""

    def make() -> dict[str, Any]:
        begun = Late(after)

        def signal(x: Any) -> Any:
            return change(height(x)) if begun(x) else height(x)

        return {"height": signal}

    return Way(make, build=specified)


def _buffered() -> dict[str, Any]:
    kept: dict[int, Any] = {}

    def signal(x: Any) -> Any:
        buffer = kept.setdefault(len(x), np.zeros(len(x)))
        buffer[:] = height(x)
        return buffer

    return {"height": signal}


def _remembering() -> dict[str, Any]:
    last = [0.0]

    def signal(x: Any) -> Any:
        value = height(x) + 0.2 * last[0]
        last[0] = float(x[0, 0])
        return value

    return {"height": signal}


def _largest() -> dict[str, Any]:
    """A signal that keeps the largest of all that it has seen."""
    seen = [0.0]

    def signal(x: Any) -> Any:
        seen[0] = max(seen[0], float(x.max()))
        return height(x) * (1.0 + 0.1 * seen[0])

    return {"height": signal}


def _scaled(x: Any) -> Any:
    x *= 1.1
    return x[:, 0]


def _scaled_well(x: Any) -> Any:
    return 1.1 * x[:, 0]


def _centred(x: Any) -> Any:
    return x[:, 0] - 0.5 * x.mean()


def _jittering(x: Any) -> Any:
    return x[:, 0] + 0.3 * np.random.normal(size=len(x))


def _talking(x: Any) -> Any:
    print("height")
    return x[:, 0]


def _one_nan(values: Any) -> Any:
    values = np.array(values)
    values[0] = np.nan
    return values


def _part(bad: dict[str, Any], good: dict[str, Any] | None = None) -> Way:
    return Way(lambda: bad, good or {}, specified)


def _moved(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
    chance = 0.1 * draws.normal(1)
    x[:] = 0.9 * x + a_A + a_E + chance
    return x


def _ended(x: Any) -> Any:
    x -= w.LOW
    return x[:, 0] < 0.0


def _seen(x: Any) -> Any:
    x *= 2.0
    return x


def _seen_well(x: Any) -> Any:
    return 2.0 * x


def _acted(x: Any) -> Any:
    x *= -0.2
    return x


def _law(x: Any, a_A: Any) -> Any:
    x *= 0.1
    return x


WAYS: dict[str, Way] = {
    "signal scales x in place": _signal(_scaled, _scaled_well),
    "signal writes over its last answer": Way(_buffered, build=specified),
    "signal remembers": Way(_remembering, build=specified),
    "signal keeps the largest of all": Way(_largest, build=specified),
    "signal depends on the batch": _signal(_centred),
    "signal asks np.random": _signal(_jittering),
    "signal prints": _signal(_talking),
    "signal drifts": _late(SOON, lambda h: 1.2 * h),
    "signal drifts late": _late(LATER, lambda h: 1.2 * h),
    "signal is NaN late": _late(LATER, lambda h: np.nan * h),
    "signal is NaN once late": _late(LATER, _one_nan),
    "signal is infinite late": _late(LATER, lambda h: np.inf + h),
    "signal loses a row late": _late(LATER, lambda h: h[1:]),
    "signal has columns late": _late(LATER, lambda h: h[:, None]),
    "signal is one number late": _late(LATER, lambda h: float(h[0])),
    "signal is text late": _late(LATER, lambda h: h.astype(str)),
    "signal is None late": _late(LATER, lambda h: None),
    "signal is half precision late": _late(LATER, lambda h: h.astype(np.float16)),
    "specified, step changes x and returns it": _part({"step": _moved}),
    "specified, done changes x": _part({"done": _ended}),
    "specified, view scales x in place": _part({"view": _seen}, {"view": _seen_well}),
    "specified, agent scales x in place": _part({"agent": _acted}),
    "specified, nominal's mean changes x": _part({"mean": _law}),
}
