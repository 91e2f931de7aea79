"""The problem that is spoilt: a walk with a policy, a start, a view, chance that nobody controls,
and about one failure in a hundred episodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import apeval

TOP, LOW = 2.2, -3.0


def mean(x: Any, a_A: Any) -> Any:
    """The nominal's mean."""
    return 0.1 * x


def reset(draws: Any, a_0: Any) -> Any:
    """Where an episode starts."""
    return a_0 + 0.0


def step(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
    """One decision."""
    return 0.9 * x + a_A + a_E + 0.1 * draws.normal(1)


def agent(x: Any) -> Any:
    """The policy."""
    return -0.2 * x


def failed(x: Any) -> Any:
    """The event."""
    return x[:, 0] > TOP


def done(x: Any) -> Any:
    """Far on the other side nothing happens any more."""
    return x[:, 0] < LOW


def margin(x: Any) -> Any:
    """Distance to failure."""
    return TOP - x[:, 0]


def view(x: Any) -> Any:
    """What a method sees."""
    return 1.0 * x


def walk(**parts: Any) -> apeval.Problem:
    """The problem, with some of its parts replaced; `mean` and `view` may be among them."""
    law, seen = parts.get("mean", mean), parts.get("view", view)
    others = {k: v for k, v in parts.items() if k not in ("mean", "view")}
    given: dict[str, Any] = {
        "nominal": apeval.Normal(law, 0.5, dim=1),
        "initial": apeval.Normal(0.0, 0.5),
        "reset": reset,
        "step": step,
        "agent": agent,
        "failed": failed,
        "done": done,
        "margin": margin,
        "views": {"state": seen},
        "horizon": 6,
        "chunk": 64,
    }
    return apeval.Problem(**{**given, **others})


class Late:
    """False until it has been asked about so many rows, then true."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, x: Any) -> bool:
        self.left -= len(np.asarray(x))
        return self.left < 0


@dataclass(frozen=True)
class Way:
    """Parts that misbehave, and the same written properly."""

    bad: Callable[[], dict[str, Any]]
    """Made anew for every problem, so that its state is its own."""
    good: dict[str, Any] = field(default_factory=dict)
    build: Callable[..., apeval.Problem] = walk
    """Makes the problem of these parts."""

    def problem(self, proper: bool) -> apeval.Problem:
        """The problem, or the same written properly."""
        return self.build(**(self.good if proper else self.bad()))


def instead(
    bad: dict[str, Any],
    good: dict[str, Any] | None = None,
    build: Callable[..., apeval.Problem] = walk,
) -> Way:
    """A way without a state of its own."""
    return Way(lambda: bad, good or {}, build)
