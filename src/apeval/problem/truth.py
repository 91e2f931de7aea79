"""A known failure probability, with where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Truth:
    """A known failure probability v*(s0), with where it comes from."""

    value: float
    """The probability."""
    standard_error: float
    """Its standard error; 0: exact to rounding."""
    method: str
    """How it was obtained, in words."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """What it takes to obtain it again: seeds, episodes, command."""

    def as_json(self) -> dict[str, Any]:
        """Plain data, for the command line and for files.

        Returns:
            The fields, with those of `provenance` beside them.
        """
        return {
            "value": self.value,
            "standard_error": self.standard_error,
            "method": self.method,
            **self.provenance,
        }


@dataclass(frozen=True)
class Computed:
    """A truth that takes long to compute: a run does not wait for it, `apeval truth` does."""

    compute: Callable[[], Truth]

    def __call__(self) -> Truth:
        """Compute it."""
        return self.compute()
