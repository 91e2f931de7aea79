"""What a run hands to whoever keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from apeval.estimate.sample import Sample
from apeval.problem.types import IntArray
from apeval.run.result import Result
from apeval.simulate.adversary import Mixture
from apeval.simulate.simulation import Journal


@dataclass(frozen=True)
class Outcome:
    """A finished run."""

    result: Result
    sample: Sample
    """What the estimate was computed from."""
    ids: IntArray
    """Numbers of the sample's episodes, (n,)."""
    proposal: Mixture
    """The frozen proposal."""


class Recorder(Journal, Protocol):
    """Gets every batch as it returns, then the outcome."""

    def finish(self, outcome: Outcome) -> None:
        """The run is over."""
        ...
