"""What a user sees when something is wrong: one line, with the remedy in it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ApevalError(Exception):
    """A mistake at the door: bad input, an unusable file, an impossible request."""


class UnknownNameError(ApevalError):
    """A name that no registry knows."""


class ProblemError(ApevalError):
    """A problem whose parts contradict each other or the contract of `Problem`."""


class SimulationError(ApevalError):
    """A simulator that returned something no estimate can be built on."""


def unknown(kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """The error for an unknown name, with the nearest known one in it.

    >>> str(unknown("method", "ape-tabluar", ["ape-tabular", "mc"]))
    "unknown method 'ape-tabluar'. Did you mean 'ape-tabular'?"
    """
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"Did you mean '{near[0]}'?" if near else f"Known: {', '.join(known)}."
    return UnknownNameError(f"unknown {kind} '{name}'. {hint}")
