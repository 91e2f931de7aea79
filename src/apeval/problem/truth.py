"""A known failure probability, with where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Truth:
    """v*(s0) with its standard error (0: exact to rounding) and its provenance."""

    value: float
    standard_error: float
    method: str
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Plain data, for the command line and for files."""
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
