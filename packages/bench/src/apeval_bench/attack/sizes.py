"""How large an attack is: all cases, a sample of them by a fixed rule, or the few of the tests."""

from __future__ import annotations

from collections import defaultdict

SMALL, SAMPLE, ALL = "small", "sample", "all"
SIZES = (SMALL, SAMPLE)
"""Rows that stand for a size of every part, or of one (`users:sample`)."""
_CASES = {"folders": 1_080, "lines": 510, "kills": 204}
_USERS = 40  # cases of users' code besides the ways that are tried in every backend


def select(part: str, cases: list[str]) -> list[str]:
    """The sample: cases at equal distances in the list of all; of users' code, every way that is
    tried with Ray in each backend besides.

    Args:
        part: the part of the attack.
        cases: all of its cases.

    Returns:
        Those of the sample, in the same order.
    """
    if part != "users":
        return evenly(cases, _CASES[part])
    backends: dict[str, dict[str, str]] = defaultdict(dict)
    for case in cases:
        _, way, _, backend, _ = case.split(":")
        backends[way].setdefault(backend, case)
    chosen = {it for found in backends.values() if "ray" in found for it in found.values()}
    chosen |= set(evenly([it for it in cases if it not in chosen], _USERS))
    return [it for it in cases if it in chosen]


def evenly(cases: list[str], most: int) -> list[str]:
    """So many at equal distances, beginning with the first; all where there are fewer."""
    most = min(most, len(cases))
    return [cases[k * len(cases) // most] for k in range(most)]
