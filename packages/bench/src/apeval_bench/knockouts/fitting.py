"""Knock-outs of what is fitted: pushes, answers to the state, covariances, mixtures, delays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

import numpy as np

from apeval.problem.types import FloatArray, IntArray
from apeval_bench.knockouts.problems import CONTINUOUS, DISCRETE, LONG, MODES, SEQUENCE, START
from apeval_bench.knockouts.replacing import KnockOut, put, use

_NONE = 1e-4
_CONTINUOUS, _DISCRETE = frozenset({CONTINUOUS}), frozenset({DISCRETE})
_LATE = frozenset({CONTINUOUS, LONG})
_SEQUENCE, _PUSHES = frozenset({SEQUENCE}), frozenset({SEQUENCE, CONTINUOUS})
_MODES = frozenset({MODES})


def _all_believed(was: Callable[..., Any]) -> Callable[..., Any]:
    def believed(effect: FloatArray, variance: FloatArray) -> FloatArray:
        return np.ones(effect.shape)

    return believed


def _fixed(was: Callable[..., Any]) -> Callable[..., Any]:
    """No search: as many cosines as the middle choice, and one prior for all problems."""

    def _search(normal: Any, pushes: list[int], answers: list[int]) -> Any:
        from apeval.learn.ape.regression import Smoothness

        return Smoothness(pushes[len(pushes) // 2], 0.0, answers[0], 1.0, 0.5, 0.2, 0.0)

    return _search


def _never_fast(was: Callable[..., Any]) -> Callable[..., Any]:
    """Fast changes of the push stay unlikely."""

    @wraps(was)
    def evidence(self: Any, smooth: Any) -> float:
        return -np.inf if smooth.fast > 0.0 else float(was(self, smooth))

    return evidence


def _unit(was: Callable[..., Any]) -> Callable[..., Any]:
    def _covariances(S: FloatArray, count: FloatArray) -> FloatArray:
        T, d, _ = S.shape
        return np.broadcast_to(np.eye(d), (T, d, d)).copy()

    return _covariances


def _no_start(was: Callable[..., Any]) -> Callable[..., Any]:
    def _fit_start(z_0: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        d = z_0.shape[1]
        return np.zeros(d), np.eye(d)

    return _fit_start


def _as_fitted(was: Callable[..., Any]) -> Callable[..., Any]:
    """The fitted shares: s' = s/2 + 1/(2M) undone."""

    @wraps(was)
    def fit_mixture(*arguments: Any, **named: Any) -> Any:
        found = was(*arguments, **named)
        shares = found.fit.shares
        own = np.maximum(2.0 * shares - 1.0 / len(shares), 1e-6)
        return replace(found, fit=replace(found.fit, shares=own / own.sum()))

    return fit_mixture


def _at_random(was: Callable[..., Any]) -> Callable[..., Any]:
    def _start(rows: Any, size: int, times: int, rng: np.random.Generator) -> FloatArray:
        label: IntArray = rng.integers(0, size, rows.n)
        return np.asarray(np.eye(size)[label])

    return _start


def _nothing_kept(was: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(was)
    def _fit(*arguments: Any, **named: Any) -> Any:
        tilt, theta = was(*arguments, **named)
        return replace(tilt, kept=1e-9), theta

    return _fit


def _straight(was: Callable[..., Any]) -> Callable[..., Any]:
    def waving_design(x: FloatArray) -> FloatArray:
        from apeval.learn.ape.regression import design

        return design(x)

    return waving_design


_NO_WAVES = (
    put("regression._WAVE", (0.0,)),
    use("tilt.waving_design", _straight, "no waves"),
)
_NO_TANH = (put("regression._CURVE", (_NONE,)), put("tilt._CURVE", _NONE))

KNOCK_OUTS = (
    KnockOut(
        "random features", "30 random cosines over the state (`waves`)", "none", _NO_WAVES,
        needs=_SEQUENCE,
    ),
    KnockOut(
        "saturation", "tanh 3x of every component of the state", "none", _NO_TANH, needs=_SEQUENCE
    ),
    KnockOut(
        "random features and saturation", "both", "the push is linear in the state",
        (*_NO_WAVES, *_NO_TANH), needs=_SEQUENCE, kind="group",
    ),
    KnockOut(
        "feedback", "the push answers to the state", "it depends on time alone",
        (
            *_NO_WAVES, *_NO_TANH, put("regression._SLOPE", (_NONE, _NONE)),
            put("tilt._SLOPE", _NONE),
        ),
        needs=_SEQUENCE, kind="group",
    ),
    KnockOut(
        "change over time", "push and answer change over time, by cosines",
        "the same at all times",
        (
            put("regression._BASES", (1,)), put("regression._EVERY_TIME", 0),
            put("regression._EVERY_ANSWER", 0), put("tilt._BASES", 1),
        ),
        needs=_SEQUENCE,
    ),
    KnockOut(
        "answers at every time", "up to six decisions, the answer has each time its own value",
        "six cosines at most", (put("regression._EVERY_ANSWER", 0),), needs=_PUSHES,
    ),
    KnockOut(
        "pushes at every time", "up to twelve decisions, the push has each time its own value",
        "six cosines at most", (put("regression._EVERY_TIME", 0),), needs=_PUSHES,
    ),
    KnockOut(
        "fast changes", "the evidence may hold fast changes of the push as likely as slow ones",
        "it may not", (use("regression._Normal.evidence", _never_fast, "slow"),),
        needs=_PUSHES,
    ),
    KnockOut(
        "evidence", "smoothness and priors are chosen by evidence", "one choice for all",
        (use("regression._search", _fixed, "middle cosines, 1, 0.5, 0.2, no waves"),),
        needs=_PUSHES,
    ),
    KnockOut(
        "doubtful pushes", "pushes that chance explains are taken back (`sparse`)",
        "all are believed", (use("regression.believed", _all_believed, "all"),),
        needs=_CONTINUOUS,
    ),
    KnockOut(
        "covariances", "covariances are fitted", "those of π_E,gt",
        (use("gaussian_part._covariances", _unit, "identity"),), needs=_CONTINUOUS,
    ),
    KnockOut(
        "shape of covariances", "covariances have a shape", "a scale alone",
        (put("gaussian_part._PRIOR", (30.0, 1e9, 12.0)),), needs=_CONTINUOUS,
    ),
    KnockOut(
        "covariances over time", "covariances change over time", "one for all times",
        (put("gaussian_part._PRIOR", (30.0, 3.0, 1e9)),), needs=_PUSHES,
    ),
    KnockOut(
        "inflation", "covariances are inflated by up to 32 %", "not at all",
        (put("gaussian_part._INFLATE", 0.0),), needs=_CONTINUOUS,
    ),
    KnockOut(
        "bounded eigenvalues", "eigenvalues of covariances lie in [0.2, 4]", "in [0.01, 100]",
        (put("gaussian_part._EIGENVALUES", (0.01, 100.0)),), needs=_CONTINUOUS,
    ),
    KnockOut(
        "start", "an initial disturbance is learned", "left to π_E,gt",
        (use("gaussian_part._fit_start", _no_start, "nominal"),),
        needs=frozenset({CONTINUOUS, START}),
    ),
    KnockOut("mixture", "up to eight parts", "one", (put("mixture_fit._SIZES", (1,)),)),
    KnockOut(
        "eight parts", "up to eight parts", "up to two", (put("mixture_fit._SIZES", (1, 2)),),
        needs=_MODES,
    ),
    KnockOut(
        "balanced parts", "shares half-way between fitted and equal", "as fitted",
        (use("mixture_fit.fit_mixture", _as_fitted, "fitted shares"),), needs=_MODES,
    ),
    KnockOut(
        "half of BIC", "parts pay half of BIC's penalty", "all of it",
        (put("mixture_fit._PENALTY", 1.0),), needs=_MODES,
    ),
    KnockOut(
        "k-means start", "k-means++ on cumulated disturbances starts a mixture", "chance does",
        (use("mixture_fit._start", _at_random, "random labels"),), needs=_MODES,
    ),
    KnockOut(
        "smoothness anew", "smoothness is chosen again in the fourth round of a mixture", "once",
        (put("mixture_fit._CHOOSE_AT", (0,)),), needs=frozenset({CONTINUOUS, MODES, SEQUENCE}),
    ),
    KnockOut(
        "failures per part", "a part needs five effective failures", "one",
        (put("mixture_fit._PER_PART", 1.0),), needs=_MODES,
    ),
    KnockOut(
        "waiting", "pushes that take turns with π_E,gt (`experts`), from ten decisions on", "none",
        settings={"learner": "feedback"}, needs=_LATE,
    ),
    KnockOut(
        "pushes by a potential", "a push may follow a potential, from ten decisions on",
        "every channel answers for itself",
        (use("learner.fit_model", lambda was: lambda rows: None, "no model"),), needs=_LATE,
    ),
    KnockOut(
        "later beginnings", "fits that begin later, from ten decisions on", "none",
        (put("learner._LATE", 0.0), put("proposal_choice._DELAYS", ())),
        needs=frozenset({LONG}),
    ),
    KnockOut(
        "waiting and later beginnings", "both", "none", (put("learner._LONG", 1e9),), needs=_LATE,
        kind="group",
    ),
    KnockOut(
        "kept of π_E,gt", "every discrete decision keeps 5 or 10 % of π_E,gt", "nothing",
        (use("tilt._fit", _nothing_kept, "nothing"), put("tilt._KEPT", 1e-9)), needs=_DISCRETE,
    ),
    KnockOut(
        "upright tilts", "down to η = 0.85 only the kept part grows", "the tilt shrinks at once",
        (put("tilt._UPRIGHT", 2.0),), needs=_DISCRETE,
    ),
)  # fmt: skip
