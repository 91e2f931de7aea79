"""Knock-outs of what is decided: how far to go, what counts, when to stop, and chance."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from apeval_bench.knockouts.problems import CHANCE, CONTINUOUS, IN_STEPS, NOT_RARE, OFTEN
from apeval_bench.knockouts.replacing import KnockOut, put, use

_NEVER = 10**9
_CHANCE, _IN_STEPS = frozenset({CHANCE}), frozenset({CHANCE, IN_STEPS})
_NOT_RARE = frozenset({NOT_RARE})
_GUESSED = frozenset({CHANCE, CONTINUOUS})


def _by_itself(was: Callable[..., Any]) -> Callable[..., Any]:
    """A fit is judged by the failures that it was fitted to."""

    def refit(self: Any, rows: Any, w: Any, learner: Any, times: int) -> Any:
        return self.fit

    return refit


def _as_far_as_it_goes(was: Callable[..., Any]) -> Callable[..., Any]:
    def furthest_eta(rate: float) -> float:
        return 1.0

    return furthest_eta


def _nothing_counts(was: Callable[..., Any]) -> Callable[..., Any]:
    def _credit(self: Any, n: int, left: int) -> float:
        return 0.0

    return _credit


def _square_root(was: Callable[..., Any]) -> Callable[..., Any]:
    """Weights that grow as the root of the number of episodes so far (Owen and Zhou, 2020), once
    fits are judged by failures."""

    def _credit(self: Any, n: int, left: int) -> float:
        drawn = sum(self.memory.drawn)
        worth = n * float(np.sqrt(drawn / (drawn + n + left)))
        if self.choice is None:
            worth = 0.0
        return float((1.0 - sum(c.share for c in self._counted)) * worth / (worth + left))

    return _credit


def _all_alike(was: Callable[..., Any]) -> Callable[..., Any]:
    def credit(variance: float, ess: float) -> float:
        return 1.0 if ess >= 4.0 else 0.0

    return credit


def _not_asked(was: Callable[..., Any]) -> Callable[..., Any]:
    def ask(question: Any, memory: Any, simulation: Any) -> bool:
        return False

    return ask


def _no(result: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A function that does nothing and gives this."""

    def make(was: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(was)
        def nothing(*arguments: Any, **named: Any) -> Any:
            return result

        return nothing

    return make


_NO_FALLBACK = (
    use(
        "monte_carlo_fallback.MonteCarloFallback.serves",
        lambda was: property(lambda self: False),
        "never",
    ),
    use("monte_carlo_fallback.MonteCarloFallback.prefers", _no(False), "never"),
    use("monte_carlo_fallback.MonteCarloFallback.goes_on", _no(False), "never"),
    use("monte_carlo_fallback.MonteCarloFallback.settles", _no(False), "never"),
)

KNOCK_OUTS = (
    KnockOut(
        "how far", "how far to go towards the fit is chosen (η)", "all the way",
        (put("proposal_choice._ETAS", (1.0,)),),
    ),
    KnockOut(
        "share of π_E,gt", "the share of π_E,gt is chosen", "a tenth",
        (put("proposal_choice.NOMINAL", (0.1,)), put("probit.NOMINAL", (0.1,))),
    ),
    KnockOut(
        "halves", "two halves of the failures judge each other's fits", "the fit judges itself",
        (use("mixture_fit.FittedMixture.refit", _by_itself, "itself"),),
    ),
    KnockOut(
        "worth learning", "a fit must beat Monte Carlo by 20 %", "just beat it",
        (put("proposal_choice._WORTH_LEARNING", 1.0),), needs=_NOT_RARE,
    ),
    KnockOut(
        "less far where failures stay rare", "η ends earlier where chance decides",
        "it does not", (use("learner.furthest_eta", _as_far_as_it_goes, "1"),), needs=_CHANCE,
    ),
    KnockOut(
        "averaging", "three fits sample together", "the last one alone", settings={"average": 1}
    ),
    KnockOut(
        "defensive share", "5 % of learned episodes still explore", "1 %",
        settings={"defensive_share": 0.01},
    ),
    KnockOut(
        "larger defensive share", "5 % of learned episodes still explore", "20 %",
        settings={"defensive_share": 0.2}, kind="other value",
    ),
    KnockOut(
        "batches count", "batches of learning count", "the frozen stage alone does",
        (use("learner.ApeLearner._credit", _nothing_counts, "0"),),
    ),
    KnockOut(
        "weights of batches", "what a batch counts follows from five constants",
        "the square-root rule",
        (use("learner.ApeLearner._credit", _square_root, "square root"),),
    ),
    KnockOut(
        "weights of batches, alike", "what a batch counts follows from five constants",
        "all alike from four effective failures on",
        (use("learner.batch_weight", _all_alike, "alike"),),
    ),
    KnockOut(
        "end of learning", "learning ends when the predicted price stops falling",
        "at 80 % of the budget", (put("learner._NO_PROGRESS", _NEVER),),
    ),
    KnockOut(
        "shorter learning", "learning ends at 80 % of the budget at the latest", "at 50 %",
        settings={"learn_share": 0.5}, kind="other value",
    ),
    KnockOut(
        "failures played again", "failures are played again to see whether chance decides",
        "never: no odds, no giving up", (use("learner.run_test", _not_asked, "never"),),
    ),
    KnockOut(
        "asking again", "the question is asked again after five vain batches", "once",
        (put("uncontrolled_randomness._IN_VAIN", _NEVER),),
    ),
    KnockOut(
        "odds", "a probit model pushes where chance decides", "the fit does",
        (use("learner.ApeLearner._by_odds", _no(None), "never"),), needs=_GUESSED,
    ),
    KnockOut(
        "odds only where they explain", "odds need three slopes and 30 % of the deviance",
        "they always push", (put("learner._EXPLAINED", -1e9), put("learner._SLOPES", 1e9)),
        needs=_GUESSED,
    ),
    KnockOut(
        "odds near π_E,gt", "far-out episodes count little in odds", "all alike",
        (put("learner._NEAR", 0.0),), needs=_GUESSED,
    ),
    KnockOut(
        "doubt of odds", "the push is averaged over how far odds may be off", "taken at its word",
        (use("probit._POINTS", lambda was: np.zeros_like(was), "no spread"),), needs=_GUESSED,
    ),
    KnockOut(
        "giving up", "hopeless episodes are given up", "none is",
        (use("learner.ApeLearner._learn_roulette", _no(None), "never"),), needs=_IN_STEPS,
    ),
    KnockOut(
        "unusual states go on", "episodes in unusual states are never given up", "they are",
        (put("russian_roulette._USUAL", 1.0),), needs=_IN_STEPS,
    ),
    KnockOut(
        "fallback to Monte Carlo", "episodes are counted where nothing beats Monte Carlo", "never",
        _NO_FALLBACK,
    ),
    KnockOut(
        "counting early", "π_E,gt draws until fits can be judged, where it shows failures", "never",
        _NO_FALLBACK[:1], needs=_NOT_RARE,
    ),
    KnockOut(
        "end by Monte Carlo", "six fits worth less than Monte Carlo end learning", "they do not",
        _NO_FALLBACK[3:], needs=_NOT_RARE,
    ),
    KnockOut(
        "stuck levels", "three fits that do not come nearer hand over to π_E,gt", "never",
        (put("monte_carlo_fallback._LEVELS", _NEVER),),
    ),
    KnockOut(
        "frequent failures", "a quarter of failures in the pilot ends learning", "never",
        (put("learner._FREQUENT", 2.0),), needs=frozenset({OFTEN}),
    ),
)  # fmt: skip
