"""A problem's parts, looked at without simulating: is each of the kind that it must be?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from apeval.errors import ProblemError
from apeval.problem.agent import Deterministic, Stochastic
from apeval.problem.laws import Disturbance

if TYPE_CHECKING:
    from apeval.problem.problem import Problem

_MOST = 10**12  # decisions or episodes, as of budgets


def check_parts(p: Problem) -> None:
    """A `ProblemError` that names the first part of the wrong kind."""
    _disturbance("nominal", p.nominal)
    if p.initial is not None:
        _disturbance("initial", p.initial)
    for part, call in (("reset", p.reset), ("step", p.step), ("failed", p.failed),
                       ("agent", _policy(p.agent))):  # fmt: skip
        _function(part, call)
    for part, call in (("done", p.done), ("margin", p.margin), ("truth", p.truth),
                       ("verify", p.verify)):  # fmt: skip
        if call is not None:
            _function(part, call)
    if not isinstance(p.views, Mapping) or not p.views:
        raise ProblemError(
            f"`views` is {_a(p.views)}, expected names with functions, "
            "such as {'state': lambda x: x}"
        )
    for name, view in p.views.items():
        if not isinstance(name, str):
            raise ProblemError(f"`views` names a view {name!r}, expected a text")
        _function(f"view '{name}'", view)
    for part, size in (("cap", p.cap), ("chunk", p.chunk)):
        _whole(part, size, 1)
    if p.horizon is not None:
        _whole("horizon", p.horizon, 1, " decisions, or None")
    _names(p)


def _names(p: Problem) -> None:
    kinds: Any = p.kinds
    if not isinstance(kinds, tuple | list) or not all(isinstance(k, str) for k in kinds):
        raise ProblemError(f"`kinds` is {kinds!r}, expected names of failures: kinds=('crash',)")
    if not kinds or len(set(kinds)) != len(kinds):
        raise ProblemError(f"`kinds` must name at least one failure, and none twice; got {kinds!r}")
    _whole("horizon_kind", p.horizon_kind, 0)
    if p.horizon_kind > len(kinds):
        raise ProblemError(
            f"horizon_kind={p.horizon_kind} names no failure kind; kinds are {p.kinds}"
        )
    if not isinstance(p.judge_at_end, bool | np.bool_):
        raise ProblemError(f"`judge_at_end` must be True or False; got {p.judge_at_end!r}")
    for part, text in (("name", p.name), ("description", p.description), ("view", p.view)):
        if not isinstance(text, str):
            raise ProblemError(f"`{part}` is {_a(text)}, expected a text")
    if not isinstance(p.parameters, Mapping):
        raise ProblemError(f"`parameters` is {_a(p.parameters)}, expected names and values")


def _disturbance(part: str, law: Any) -> None:
    if not isinstance(law, Disturbance):
        raise ProblemError(
            f"`{part}` is {_a(law)}, expected a disturbance with samples and density: Normal, "
            "TruncatedNormal, FromScipy, Categorical, or a subclass of Disturbance"
        )
    _whole(f"{part}.dim", getattr(law, "dim", None), 1)


def _function(part: str, call: Any) -> None:
    if not callable(call):
        raise ProblemError(f"`{part}` is {_a(call)}, expected a function")


def _whole(part: str, size: Any, least: int, rest: str = "") -> None:
    whole = isinstance(size, int | np.integer) and not isinstance(size, bool)
    if not whole or not least <= size <= _MOST:
        raise ProblemError(
            f"`{part}` must be a whole number of at least {least}{rest}; got {size!r}"
        )


def _policy(agent: Any) -> Any:
    if isinstance(agent, Deterministic):
        return agent.policy
    return agent.probabilities if isinstance(agent, Stochastic) else agent.act


def _a(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
