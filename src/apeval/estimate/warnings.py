"""Diagnostics that speak: what a reader must know before believing the number."""

from __future__ import annotations

from apeval.estimate.interval import Estimate
from apeval.estimate.sample import Sample


def sample_warnings(
    sample: Sample, numbers: Estimate, value: float | None, kinds: tuple[str, ...]
) -> list[str]:
    """Plain-language warnings about a frozen sample, each with a remedy."""
    return []
