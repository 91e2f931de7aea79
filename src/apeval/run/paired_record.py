"""Pairs of episodes as a comparison keeps them, so that it can be judged again."""

from __future__ import annotations

from dataclasses import dataclass

from apeval.estimate.sample import Sample


@dataclass(frozen=True)
class PairedRecord:
    """Two samples whose episodes are pairs, in the same order."""

    a: Sample
    """Episodes of A."""
    b: Sample
    """Episodes of B, with the random numbers of A's."""
    planned: int | None = None
    """How many pairs there might have been, where the intervals hold at all looks at once."""
