"""Public tools side by side: rare-event algorithms of OpenTURNS on the same problems.

They see a problem as a function of T·d_E whitened disturbances (and of the controlled start),
which must have a margin and no chance of its own. OpenTURNS is the optional extra `peers`.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from apeval.problem.problem import Problem
from apeval_bench.peers.algorithms import PEERS as PEERS
from apeval_bench.peers.algorithms import PeerResult

LARGEST = {"ot-nais": 12_000}
"""Episodes beyond which a peer is left out: the time of NAIS grows with their square."""
MISSING = "OpenTURNS is not installed, so its rows are left out: pip install 'apeval-bench[peers]'"


def available() -> bool:
    """Whether the peers can run."""
    return find_spec("openturns") is not None


def why_not(peer: str, problem: Problem, episodes: int) -> str | None:
    """Why a peer cannot treat a problem, or None where it can."""
    from apeval.learn.whitened import can_whiten

    if not (can_whiten(problem.nominal) and can_whiten(problem.initial)):
        return f"{peer} needs a continuous disturbance"
    if problem.margin is None:
        return f"{peer} needs a margin"
    if problem.horizon is None:
        return f"{peer} needs a fixed number of decisions"
    if episodes > LARGEST.get(peer, episodes):
        return f"{peer} takes too long beyond {LARGEST[peer]:,} episodes"
    return None


def run_peer(peer: str, problem: Problem, episodes: int, seed: int, **options: Any) -> PeerResult:
    """A peer's estimate from at most this many simulated episodes."""
    from apeval_bench.peers.openturns import run

    return run(peer, problem, episodes, seed, **options)
