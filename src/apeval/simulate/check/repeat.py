"""Is an episode a function of its seed alone: the same again, and the same without company?"""

from __future__ import annotations

import numpy as np

from apeval.problem.types import Array, IntArray
from apeval.simulate.check.contract import Contract
from apeval.simulate.check.report import Finding
from apeval.simulate.check.traced_episodes import Trace, walk

_TOGETHER, _ALONE = 8, 3
_LEAST, _MOST = 3, 200  # decisions per episode
_ROUNDING = 1e-5  # relative; single precision in a network gives 1e-7 at the first difference


def check_repeats(contract: Contract, key: IntArray, affordable: int) -> list[Finding]:
    """The same episodes twice, then some of them alone, in about `affordable` decisions."""
    ids = np.arange(_TOGETHER)
    limit = min(_MOST, max(_LEAST, affordable // (2 * _TOGETHER + _ALONE)))
    first = walk(contract, key, ids, limit)
    walk(contract, key, ids[:1], 1)  # what counts its calls must not count on in step
    again = walk(contract, key, ids, limit)
    found = _difference(first, again, ids)
    if found:
        message = (
            f"the same seed gave another episode: {found[0]}. All randomness must come from "
            "`draws` (uniform, normal, seeds, generators), reset must set every hidden state, and "
            "no function, the policy either, may remember what it saw before (a policy with memory "
            "hands it on: reset() -> state, act(obs, state) -> (action, state)); "
            "with from_env, from the seed of the environment's reset, and a random policy is a "
            "DiscretePolicy or GaussianPolicy"
        )
        return [Finding("repeatable", False, message)]
    told = f"{_TOGETHER} episodes came out the same twice, bit by bit"
    findings = [Finding("repeatable", True, told)]
    alone = [(i, walk(contract, key, ids[i : i + 1], limit)) for i in range(_ALONE)]
    differ = [d for i, trace in alone if (d := _difference(first, trace, ids[i : i + 1]))]
    rough = [text for text, rounding in differ if not rounding]
    if rough:
        message = (
            f"an episode depends on the batch it runs in: {rough[0]}. No function may mix rows "
            "(x.mean(), x[0] for all), or draw random numbers from anything but `draws`"
        )
        return [*findings, Finding("batching", False, message)]
    told = f"{_ALONE} episodes came out the same alone as among {_TOGETHER}"
    if differ:
        told += (
            f", up to rounding ({differ[0][0]}): matrix products round by batch size, so a replay "
            "may differ in its last digits"
        )
    return [*findings, Finding("batching", True, told)]


def _difference(one: Trace, other: Trace, ids: IntArray) -> tuple[str, bool] | None:
    """The first difference between two traces of the same episodes, and whether it is of the
    size of rounding."""
    for i in ids:
        a, b = one.episode(int(i)), other.episode(int(i))
        for t in range(max(len(a["s"]), len(b["s"]))):
            for name in a:
                if t >= len(a[name]) or t >= len(b[name]):
                    return f"episode {i} ended after {t} decisions in one run only", False
                if not np.array_equal(a[name][t], b[name][t]):
                    what = _NAMES.get(name, name)
                    near = _near(a[name][t], b[name][t])
                    return f"{what} of episode {i} differs first at decision {t}", near
    return None


_NAMES = {"s_next": "the next state", "s": "the initial state", "kind": "the failure"}


def _near(a: Array, b: Array) -> bool:
    if a.shape != b.shape or a.dtype.kind != "f":
        return False
    scale = max(float(np.abs(a).max(initial=0.0)), 1e-12)
    return bool(np.abs(a - b).max(initial=0.0) <= _ROUNDING * scale)
