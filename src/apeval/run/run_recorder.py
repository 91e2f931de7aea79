"""What a run hands to whoever keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from apeval.estimate.sample import Sample
from apeval.problem.types import IntArray
from apeval.run.result import Result
from apeval.simulate.adversary import Mixture
from apeval.simulate.episode_source import Journal

IDENTITY = "identity"


@dataclass(frozen=True)
class FinishedRun:
    """A finished run."""

    result: Result
    sample: Sample
    """What the estimate was computed from."""
    ids: IntArray
    """Numbers of the sample's episodes, (n,)."""
    proposal: Mixture
    """The frozen proposal."""


class RunRecorder(Journal, Protocol):
    """Gets the inputs, then every batch as it returns, then the outcome."""

    def begin(self, inputs: Mapping[str, Any]) -> None:
        """A run of these inputs starts; under `IDENTITY` they hold the problem's fingerprint."""
        ...

    def detour(self) -> None:
        """Learning was stopped early: what follows is no part of the run's own course, and goes
        when it is resumed."""
        ...

    def finish(self, outcome: FinishedRun) -> None:
        """The run is over."""
        ...

    def close(self) -> None:
        """Nothing more will come, finished or not."""
        ...
