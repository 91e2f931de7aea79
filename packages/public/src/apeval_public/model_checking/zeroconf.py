"""`zeroconf`: the IPv4 zero-configuration protocol (QVBS, mdp/zeroconf) under a fixed scheduler.

Kwiatkowska, Norman, Parker and Sproston, "Performance analysis of probabilistic timed automata
using digital clocks", 2006. A host picks one of 65,024 addresses, of which n are in use, sends
`probes` probes and two gratuitous messages, and uses the address unless an answer tells it that it
is taken. A message, and an answer, is lost with 0.1.

The set's model leaves open when messages travel and in which order. Here every message travels at
once and is answered at once, and the host gives way to any answer: the scheduler of the set's
property `correct_min`. All probes and the first gratuitous message are then in time to be
answered; the host wrongly uses an address if it is in use and none of these `probes` + 1 is.
Picking the address is one decision of nature, and so is each message.
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

ADDRESSES, LOSS = 65_024, 0.1
UNANSWERED = LOSS + (1.0 - LOSS) * LOSS
CHOOSING, USES_FRESH = -1, -2
SOURCE = "https://qcomp.org/benchmarks, mdp/zeroconf, property correct_min"
PUBLISHED = {
    (20, 2): 2.110327218406747e-06,
    (20, 4): 7.618296755164084e-08,
    (20, 6): 2.7502053305694086e-09,
    (20, 8): 9.928241269674567e-11,
    (1000, 2): 0.0001071202246404347,
    (1000, 4): 3.867439434957333e-06,
    (1000, 6): 1.396150840625425e-07,
    (1000, 8): 5.040105212929839e-09,
}
"""What the set has for (n, probes): results of Storm."""


def closed_form(n: int, probes: int) -> float:
    """The probability that the host uses an address that is taken.

    Args:
        n: Addresses in use.
        probes: Probes before the address is used.

    Returns:
        The probability, exact to rounding.

    >>> f"{closed_form(20, 8):.9e}"
    '9.928241270e-11'
    """
    taken, silent = n / ADDRESSES, UNANSWERED ** (probes + 1)
    return taken * silent / (1.0 - taken * (1.0 - silent))


@register("zeroconf", description="IPv4 zeroconf protocol of QVBS, a taken address in use (7.6e-8)")
def zeroconf(n: int = 20, probes: int = 4) -> Problem:
    """n addresses are in use, and the host sends this many probes before it takes one."""
    if not 0 < n < ADDRESSES or probes < 0:
        raise ProblemError(
            f"n must lie between 0 and {ADDRESSES}, probes be ≥ 0; got {n}, {probes}"
        )
    messages, taken = probes + 1, n / ADDRESSES
    known = Truth(
        closed_form(n, probes),
        0.0,
        "closed form",
        {"source": SOURCE, "published": PUBLISHED.get((n, probes))},
    )

    def probabilities(x: Array, a_A: Array) -> FloatArray:
        """All is well (a fresh address, an answer), or not."""
        bad = np.where(x[:, 0] == CHOOSING, taken, UNANSWERED)
        return np.stack([1.0 - bad, bad], axis=1)

    def step(x: Array, a_A: Array, a_E: Array, draws: Draws) -> Array:
        bad, choosing = a_E[:, 0] == 1, x[:, 0] == CHOOSING
        silent = np.where(choosing, 0, x[:, 0] + 1)
        well = np.where(choosing, USES_FRESH, CHOOSING)
        return np.where(bad, silent, well)[:, None]

    def verify(full: bool, seed: int) -> Mapping[str, Any]:
        from apeval_public.truth.enumeration import agreement

        return agreement(problem, known)

    problem = Problem(
        nominal=Categorical(probabilities, outcomes=2),
        reset=lambda draws: np.full((draws.n, 1), CHOOSING),
        step=step,
        failed=lambda x: x[:, 0] == messages,
        done=lambda x: x[:, 0] == USES_FRESH,
        margin=lambda x: (messages - np.maximum(x[:, 0], CHOOSING)).astype(np.float64),
        horizon=None,
        chunk=2048,
        name="zeroconf",
        description="a host configures itself with an address that is taken",
        parameters={"n": n, "probes": probes},
        truth=lambda: known,
        verify=verify,
    )
    return problem
