"""The data files of the truths, and what a recomputed value is compared with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from apeval.problem.truth import Truth

if TYPE_CHECKING:
    from apeval_paper.environments.intersection.sampling import Sampled


def stored(name: str) -> dict[str, Any]:
    """The data file of int-v0, int-v1 or int-multi."""
    text = files(__package__).joinpath("truths", f"{name}.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def as_truth(data: Mapping[str, Any]) -> Truth:
    """A data file as a `Truth`."""
    provenance = {k: v for k, v in data.items() if k not in ("value", "standard_error", "method")}
    return Truth(data["value"], data["standard_error"], data["method"], provenance)


def enough(stated: Truth, target: float) -> int:
    """Episodes for which Monte Carlo has this relative standard error."""
    return int((1.0 - stated.value) / stated.value / target**2) + 1


def compared(name: str, stated: Truth, method: str, s: Sampled, seed: int) -> dict[str, Any]:
    """A recomputed value beside the stated one: they agree within 3 standard errors."""
    sigma = (s.standard_error**2 + stated.standard_error**2) ** 0.5
    distance = abs(s.value - stated.value) / sigma
    return {
        "problem": name,
        "stated": stated.value,
        "stated_error": stated.standard_error,
        "method": method,
        "value": s.value,
        "standard_error": s.standard_error,
        "relative_error": s.relative_error,
        "episodes": s.episodes,
        "seed": seed,
        "distance_in_standard_errors": distance,
        "agrees": distance <= 3.0,
    }
