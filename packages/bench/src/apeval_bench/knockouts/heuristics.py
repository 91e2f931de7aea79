"""Every heuristic of `ape`, with its knock-out; and groups of them."""

from __future__ import annotations

from apeval.errors import unknown
from apeval_bench.knockouts import deciding, exploring, fitting
from apeval_bench.knockouts.replacing import AS_IT_IS, KnockOut, together

SINGLE = {k.name: k for k in (*exploring.KNOCK_OUTS, *fitting.KNOCK_OUTS, *deciding.KNOCK_OUTS)}


def _all(name: str, instead: str, *members: str) -> KnockOut:
    words = ", ".join(members)
    return together(name, words, instead, [SINGLE[member] for member in members])


GROUPS = {
    k.name: k
    for k in (
        _all(
            "chance", "nothing is known of chance", "failures played again", "odds", "giving up"
        ),
        _all(
            "choice", "all the way, with a tenth of π_E,gt, judged by itself",
            "how far", "share of π_E,gt", "halves",
        ),
        _all(
            "small print of covariances", "one covariance, as fitted",
            "covariances over time", "inflation", "bounded eigenvalues",
        ),
        _all(
            "additions since the recipe", "none of them",
            "random features", "doubtful pushes", "failures played again",
            "fallback to Monte Carlo", "averaging", "waiting and later beginnings",
        ),
    )
}  # fmt: skip

KNOCK_OUTS = SINGLE | GROUPS

MAIN = frozenset(
    (
        *GROUPS, "exploration", "more exploration", "common pushes", "tilted outcomes", "levels",
        "level kept", "failures per parameter", "last levels look on", "fits by kind", "tempering",
        "weights by all proposals", "many fits",
        "random features", "saturation", "feedback", "change over time", "evidence",
        "doubtful pushes", "covariances", "start", "mixture", "balanced parts", "waiting",
        "pushes by a potential",
        "later beginnings", "waiting and later beginnings", "kept of π_E,gt", "how far",
        "share of π_E,gt", "halves", "averaging", "batches count", "weights of batches",
        "end of learning", "failures played again", "fallback to Monte Carlo",
    )
)  # fmt: skip
"""Those that problems with slow runs are asked about."""


def find(name: str) -> KnockOut:
    """A knock-out by name, or the method as it is."""
    if name == AS_IT_IS.name:
        return AS_IT_IS
    if name not in KNOCK_OUTS:
        raise unknown("knock-out", name, KNOCK_OUTS)
    return KNOCK_OUTS[name]
