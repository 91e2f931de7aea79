"""Rare-event algorithms of OpenTURNS, held to a number of simulated episodes."""

from __future__ import annotations

import importlib
from typing import Any

from apeval.errors import unknown
from apeval.problem.problem import Problem
from apeval_bench.peers.algorithms import PEERS, PeerResult
from apeval_bench.peers.limit_state import LimitState

_BLOCK, _QUANTILE, _Z95 = 1_000, 0.1, 1.959963984540054
_TRIALS, _ENOUGH, _FIRST_LEVELS = 5, 0.8, 6


def run(peer: str, problem: Problem, episodes: int, seed: int) -> PeerResult:
    """At most `episodes` in the reported run.

    These algorithms take a sample size per level and then need as many levels as they need. The
    size is found by trial runs that are not counted, so that the reported run uses 80–100 % of
    the budget where possible: an advantage over a user, who would have to pay for the trials.
    """
    if peer not in PEERS:
        raise unknown("peer", peer, PEERS)
    ot = _openturns()
    ot.Log.Show(ot.Log.NONE)
    ot.TBB.Disable()
    g = LimitState(problem)
    size, best = max(2, episodes // _FIRST_LEVELS), None
    for _ in range(_TRIALS):
        found = _once(peer, g, size, seed, 2 * episodes)
        if found.episodes <= episodes and (best is None or found.episodes > best.episodes):
            best = found
        if best is not None and best.episodes >= _ENOUGH * episodes:
            break
        changed = int(size * 0.97 * episodes / max(found.episodes, 1))
        if changed == size or changed < 2:
            break
        size = changed
    if best is None:
        told = f"no run within {episodes:,} episodes"
        return PeerResult(0.0, (0.0, 1.0), 0, 0.0, error=told)
    return best


class _TooLongError(Exception):
    """The run has used far more than its budget."""


def _once(peer: str, g: LimitState, size: int, seed: int, most: int) -> PeerResult:
    """One run with `size` episodes per level."""
    g.restart()

    def margins(u: Any) -> Any:
        if g.episodes > most:
            raise _TooLongError
        return g(u)[:, None]

    ot = _openturns()
    ot.RandomGenerator.SetSeed(seed)
    function = ot.PythonFunction(g.dim, 1, func_sample=margins)
    inputs = ot.RandomVector(ot.Normal(g.dim))
    event = ot.ThresholdEvent(ot.CompositeRandomVector(function, inputs), ot.LessOrEqual(), 0.0)
    algorithm = _algorithm(peer, event)
    blocks = -(-size // _BLOCK)
    algorithm.setBlockSize(size // blocks)
    algorithm.setMaximumOuterSampling(blocks)
    algorithm.setMaximumCoefficientOfVariation(-1.0)  # never stop before the sample is complete
    try:
        algorithm.run()
        result = algorithm.getResult()
        p, cv = result.getProbabilityEstimate(), result.getCoefficientOfVariation()
    except Exception as error:  # OpenTURNS raises its own types, and none for a wrapped one
        rate = g.failures / max(g.episodes, 1)
        told = str(error).splitlines()[0][:200]
        return PeerResult(0.0, (0.0, 1.0), g.episodes, rate, g.steps, told)
    half = _Z95 * p * max(cv, 0.0)
    interval = (max(0.0, p - half), min(1.0, p + half))
    return PeerResult(p, interval, g.episodes, g.failures / max(g.episodes, 1), g.steps)


def _openturns() -> Any:
    """Imported when a peer runs: the extra `peers` need not be installed."""
    return importlib.import_module("openturns")


def _algorithm(peer: str, event: Any) -> Any:
    ot = _openturns()
    if peer == "ot-subset":
        return ot.SubsetSampling(event)
    if peer == "ot-nais":
        return ot.NAIS(event, _QUANTILE)
    return ot.StandardSpaceCrossEntropyImportanceSampling(event, _QUANTILE)
