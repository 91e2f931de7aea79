"""What learns a part: interchangeable, one file each (`feedback`, `spline`, `tilt`)."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from apeval.errors import ApevalError
from apeval.learn.ape.decision_rows import DecisionRows
from apeval.learn.ape.local_model import LocalModel
from apeval.learn.ape.proposal_part import ProposalPart
from apeval.problem.types import FloatArray

FitPart = Callable[[DecisionRows, FloatArray, int, Any], tuple[ProposalPart, Any]]
"""``fit(rows, w, times, smooth)``: a part from weighted episodes, and what is needed to repeat
the fit on other weights (None: choose it)."""
FinishPart = Callable[[DecisionRows, FloatArray, int, Any], ProposalPart]
"""``finish(rows, w, times, smooth)``: the part that proposes, with all that is too slow for every
round of a mixture's fit."""
SteeredPart = Callable[..., ProposalPart]
"""``finish(rows, w, times, smooth, model=…)``: `FinishPart` with a `LocalModel`."""
WholePart = Callable[
    [DecisionRows, FloatArray, int, ProposalPart | None, ProposalPart | None], ProposalPart | None
]
"""``whole(rows, w, times, before, plain)``: one part for all episodes, which may wait, from an
earlier one where there is one; None where waiting cannot help the `plain` one, fitted if None."""


@dataclass(frozen=True)
class PartLearner:
    """Fits parts round by round, and once more when it is known which episodes are theirs."""

    fit: FitPart
    finish: FinishPart
    whole: WholePart | None = None
    steer: SteeredPart | None = None
    """What finishes a part where it is known how the state answers to disturbances."""

    def knowing(self, model: LocalModel | None) -> PartLearner:
        """The same with a model of how the state answers to disturbances."""
        if model is None or self.steer is None:
            return self
        return replace(self, finish=partial(self.steer, model=model))


def find_part_learner(name: str, discrete: bool) -> PartLearner:
    """The learner in the module of that name; 'auto' is the quick one for the disturbance."""
    chosen = ("tilt" if discrete else "experts") if name == "auto" else name
    if discrete and chosen != "tilt":
        chosen = "tilt" if chosen in ("feedback", "experts") else chosen
        if chosen != "tilt":
            raise ApevalError(f"learner={name} needs continuous disturbances: use learner=auto")
    try:
        module = importlib.import_module(f"apeval.learn.ape.{chosen}")
    except ModuleNotFoundError as error:
        raise ApevalError(
            f"learner={name} needs {error.name}: pip install 'apeval[scalable]'"
        ) from None
    learner: PartLearner = module.LEARNER
    return learner
