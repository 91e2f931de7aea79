"""What a problem does, as numbers: a few reference decisions from fixed random numbers.

They tell apart problems that no file describes, and those whose code is the same while something
that it reads is not. Numbers are kept, not only their hash: another machine may round otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from time import monotonic
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from apeval.errors import one_line
from apeval.problem.argument_copies import own
from apeval.problem.draws import NATURE, Draws, make_key
from apeval.problem.problem import Problem
from apeval.problem.types import Array, FloatArray

_SEED = 2**31 - 1
_EPISODES, _DECISIONS = 8, 6
_SECONDS = 0.5  # after which no further decision is made; one is made in any case
_PUSHES = (0.0, 0.0, 3.0, -3.0, 4.5, -4.5, 6.0, -6.0)  # standard deviations, of all components
_KEPT = 12  # numbers that stand for one array
_RELATIVE, _ABSOLUTE = 1e-6, 1e-9

Reference = dict[str, Any]


def reference(problem: Problem) -> Reference:
    """The problem's answers in a few decisions, some of them under strong disturbances.

    Args:
        problem: Any problem; what it raises is kept as one of its answers.

    Returns:
        Plain data: for each decision the state in every view, the agent's action, the nominal
        law, failures, ends and margins, each array as a few numbers.
    """
    decisions: list[dict[str, Any]] = []
    key, ends = make_key(_SEED), monotonic() + _SECONDS
    try:
        for answers in _decisions(problem, key):
            decisions.append(answers)
            if monotonic() > ends:
                break
    except Exception as error:  # whatever a user's simulator may raise
        decisions.append({"raised": [type(error).__name__, one_line(str(error))[:200]]})
    return {"seed": _SEED, "episodes": _EPISODES, "decisions": decisions}


def _decisions(problem: Problem, key: Any) -> Any:
    ids = np.arange(_EPISODES)
    draws, push = Draws(key, ids), np.array(_PUSHES)
    if problem.initial is None:
        x = problem.reset(draws)
    else:
        law = problem.initial.given(None, None)
        a_0 = law.sample(_uniforms(draws, problem.initial.dim, push))
        x = problem.reset(draws, a_0)
    for t in range(min(_DECISIONS, problem.longest)):
        draws = Draws(key, ids, t)
        answers = {f"view {k}": np.array(view(own(x))) for k, view in problem.views.items()}
        a_A = np.array(problem.act(x, draws))
        law = problem.law(x, a_A)
        a_E = law.sample(_uniforms(draws, problem.nominal.dim, push))
        x = problem.step(x, a_A, a_E, draws)
        answers |= {"a_A": a_A, "a_E": a_E, "log_p": law.log_prob(a_E)}
        kind = np.asarray(problem.failed(x))
        done = np.zeros(len(ids), bool) if problem.done is None else np.asarray(problem.done(x))
        answers |= {"failed": kind, "done": done}
        if problem.margin is not None:
            answers["margin"] = np.asarray(problem.margin(x))
        yield {name: _numbers(value) for name, value in answers.items()}
        going = ~(np.asarray(done, bool) | (kind > 0)) if kind.shape == ids.shape else None
        if going is None or not going.any():
            return
        if not going.all():
            x, ids, push = x[going], ids[going], push[going]


def _uniforms(draws: Draws, dim: int, push: FloatArray) -> FloatArray:
    """Each episode's uniforms, moved by so many standard deviations."""
    u: FloatArray = ndtr(ndtri(draws.stream(NATURE, dim)) + push[:, None])
    return np.clip(u, 1e-15, 1.0 - 1e-15)


def _numbers(values: Array) -> list[Any]:
    """Shape, then the values themselves or, of many, sums with fixed weights."""
    array = np.asarray(own(values), np.float64)
    flat = array.ravel()
    if len(flat) > _KEPT * _EPISODES:
        weights = np.random.default_rng(_SEED).standard_normal((_KEPT, len(flat)))
        with np.errstate(all="ignore"):
            flat = weights @ flat
    return [list(array.shape), [float(v) if math.isfinite(v) else str(v) for v in flat]]


def differing_answers(one: Mapping[str, Any], other: Mapping[str, Any]) -> str | None:
    """The first answer that is not the same in both, in words; None where all are.

    Of two problems that took their time one may have fewer decisions: the common ones count.
    """
    pairs = zip(_list(one.get("decisions")), _list(other.get("decisions")), strict=False)
    for t, (a, b) in enumerate(pairs, start=1):
        if not isinstance(a, Mapping) or not isinstance(b, Mapping):
            return f"reference decision {t} is not readable"
        if set(a) != set(b):
            return f"what can be asked at reference decision {t}"
        for name in a:
            if not _same(a[name], b[name]):
                return f"{_NAMES.get(name, name)} at reference decision {t}"
    return None


_NAMES = {
    "a_A": "the agent's action",
    "a_E": "the nominal disturbance",
    "log_p": "the nominal density",
    "failed": "which episodes fail",
    "done": "which episodes end",
    "margin": "the margin",
    "raised": "what the problem raises",
}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _same(a: Any, b: Any) -> bool:
    if a == b:
        return True
    try:
        shape_a, flat_a = a
        shape_b, flat_b = b
        x, y = (np.array([float(v) for v in flat]) for flat in (flat_a, flat_b))
        if shape_a != shape_b or x.shape != y.shape:
            return False
        if len(shape_a) == 2 and math.prod(shape_a) == len(x):  # components differ in size
            x, y = x.reshape(shape_a), y.reshape(shape_a)
    except (TypeError, ValueError):
        return False
    scale = np.abs(np.where(np.isfinite(x), x, 0.0)).max(axis=0, initial=0.0)
    near = np.isclose(x, y, _RELATIVE, _ABSOLUTE + _RELATIVE * scale, equal_nan=True)
    return bool(near.all())
