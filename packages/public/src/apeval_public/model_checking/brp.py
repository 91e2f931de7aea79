"""`brp`: the bounded retransmission protocol (QVBS, dtmc/brp).

D'Argenio, Jeannet, Jensen and Larsen, "Reachability analysis of probabilistic systems by successive
refinements", PAPM-PROBMIV 2001. A file is sent in N chunks. The channel loses a chunk with 0.02 and
its acknowledgement with 0.01; a chunk that is not acknowledged is sent again, MAX times at the
most, then the sender gives up. One attempt is one decision of nature.

Properties, by their names in the set: `p1` the sender reports no success, `p2` it is uncertain
(gives up at the last chunk), `p4` the receiver got no chunk at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from apeval.errors import ProblemError
from apeval.problem.draws import Draws
from apeval.problem.laws import Categorical
from apeval.problem.problem import Problem
from apeval.problem.registry import register
from apeval.problem.truth import Truth
from apeval.problem.types import Array, FloatArray

MESSAGE_LOST, ACKNOWLEDGEMENT_LOST = 0.02, 0.01
ARRIVES, LOST, UNACKNOWLEDGED = 0, 1, 2
CHUNK, LOSSES, RECEIVED, GAVE_UP = 0, 1, 2, 3
SOURCE = "https://qcomp.org/benchmarks, dtmc/brp"
PUBLISHED = {
    ("p1", 16, 2): 0.0004233334437734179,
    ("p2", 16, 2): 2.6453089120221642e-05,
    ("p4", 16, 2): 8e-06,
    ("p1", 64, 4): 1.5040454939350575e-06,
    ("p1", 64, 5): 4.482058790996953e-08,
    ("p2", 64, 5): 7.003216706440841e-10,
    ("p4", 64, 5): 6.4e-11,
}
"""What the set has for some sizes: exact rational results of Storm."""


def closed_form(property: str, n: int, retransmissions: int) -> float:
    """The probability of a property.

    Args:
        property: p1, p2 or p4.
        n: Chunks.
        retransmissions: MAX.

    Returns:
        The probability, exact to rounding.

    >>> f"{closed_form('p1', 64, 5):.9e}"
    '4.482058791e-08'
    """
    q = MESSAGE_LOST + (1.0 - MESSAGE_LOST) * ACKNOWLEDGEMENT_LOST
    gives_up = q ** (retransmissions + 1)
    if property == "p1":
        return float(-np.expm1(n * np.log1p(-gives_up)))
    if property == "p2":
        return float(np.exp((n - 1) * np.log1p(-gives_up)) * gives_up)
    return float(MESSAGE_LOST ** (retransmissions + 1))


@register("brp", description="bounded retransmission protocol of QVBS, p1, p2 or p4 (1.5e-6)")
def brp(n: int = 64, retransmissions: int = 4, property: str = "p1") -> Problem:
    """A file of n chunks, each sent up to retransmissions + 1 times; property is p1 (no success
    reported), p2 (uncertain) or p4 (nothing received)."""
    if property not in ("p1", "p2", "p4"):
        raise ProblemError(f"property must be p1, p2 or p4; got {property!r}")
    if n < 1 or retransmissions < 0:
        raise ProblemError(f"n must be at least 1, retransmissions 0; got {n}, {retransmissions}")
    limit = retransmissions + 1
    known = Truth(
        closed_form(property, n, retransmissions),
        0.0,
        "closed form",
        {"source": SOURCE, "published": PUBLISHED.get((property, n, retransmissions))},
    )

    def step(x: Array, a_A: Array, a_E: Array, draws: Draws) -> Array:
        outcome = a_E[:, 0]
        arrives = outcome == ARRIVES
        x[:, RECEIVED] |= outcome != LOST
        x[:, LOSSES] = np.where(arrives, 0, x[:, LOSSES] + 1)
        x[:, CHUNK] += arrives
        x[:, GAVE_UP] = x[:, LOSSES] >= limit
        return x

    def counts(x: Array) -> Array:
        """Whether giving up in this state is what the property speaks of."""
        if property == "p2":
            return np.asarray(x[:, CHUNK] == n)
        return np.asarray(x[:, RECEIVED] == 0) if property == "p4" else np.ones(len(x), bool)

    def done(x: Array) -> Array:
        over: Array = (x[:, CHUNK] > n) | (x[:, GAVE_UP] == 1)
        return over | ~counts(x) if property == "p4" else over

    def margin(x: Array) -> FloatArray:
        m: FloatArray = np.where(counts(x), limit - x[:, LOSSES], limit).astype(np.float64)
        return m

    def verify(full: bool, seed: int) -> Mapping[str, Any]:
        from apeval_public.truth.enumeration import agreement

        return agreement(problem, known)

    problem = Problem(
        nominal=Categorical(
            [
                (1.0 - MESSAGE_LOST) * (1.0 - ACKNOWLEDGEMENT_LOST),
                MESSAGE_LOST,
                (1.0 - MESSAGE_LOST) * ACKNOWLEDGEMENT_LOST,
            ]
        ),
        reset=lambda draws: np.tile(np.array([1, 0, 0, 0]), (draws.n, 1)),
        step=step,
        failed=lambda x: (x[:, GAVE_UP] == 1) & counts(x),
        done=done,
        margin=margin,
        horizon=n * limit,
        chunk=2048,
        name="brp",
        description=f"bounded retransmission protocol, property {property}",
        parameters={"n": n, "retransmissions": retransmissions, "property": property},
        truth=lambda: known,
        verify=verify,
    )
    return problem
