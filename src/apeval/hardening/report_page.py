"""A hardening as its report shows it."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from apeval.adapt.sb3 import load_model
from apeval.adapt.with_policy import PlannedProblem
from apeval.hardening.stored_rounds import read_hardening
from apeval.hardening.trainers import read_vecnormalize, statistics_file, with_statistics
from apeval.problem.problem import Problem
from apeval.results.report.rounds_page import TrainingRound, TrainingStory


def story_of(folder: Path, *, policies: bool) -> TrainingStory:
    """The rounds in a folder.

    Args:
        folder: Of a hardening.
        policies: Whether replays may load the rounds' policies, which executes code that their
            files hold.
    """
    found = read_hardening(folder)
    chosen = found.rounds[found.best or -1]
    return TrainingStory(
        verdict=f"{found.verdict}: {chosen.why}",
        best=found.best,
        rounds=[
            TrainingRound(
                steps=it.trained_steps,
                nominal_return=it.nominal_return.mean,
                return_error=it.nominal_return.standard_error,
                ratio=it.ratio,
                ratio_interval=it.ratio_interval,
                verdict=it.verdict,
                fits=_refit(folder / f"policy-{it.number}") if policies else None,
            )
            for it in found.rounds
        ],
    )


def _refit(path: Path) -> Callable[[Problem], Problem] | None:
    """A problem with the policy of a file in it; None where there is no such file."""
    if path.with_suffix(".zip").exists():
        return lambda problem: PlannedProblem.of(problem).with_policy(_model(path))
    if path.with_suffix(".pkl").exists():
        return lambda problem: PlannedProblem.of(problem).with_policy(
            pickle.loads(path.with_suffix(".pkl").read_bytes())
        )
    return None


def _model(path: Path) -> Any:
    model = load_model(path.with_suffix(".zip"))
    statistics = statistics_file(path)
    if not statistics.exists():
        return model
    return with_statistics(model, read_vecnormalize(statistics))
