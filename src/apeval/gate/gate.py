"""The gate itself: evaluate and keep the run, or judge the one that is kept."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apeval.errors import ApevalError
from apeval.gate.outcomes import (
    REFUTED,
    SHOWN,
    UNDECIDED,
    GateRecord,
    GateRefutedError,
    GateUndecidedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from apeval.problem.problem import Problem
    from apeval.results.folder import Run
    from apeval.run.result import Result
    from apeval.run.target_answers import BelowAnswer


class Gate:
    """What the fixture `apeval_gate` is.

    Args:
        folder: Where the test's runs are kept; a second gate of the same test has its own.
        rejudge: Whether stored runs are judged instead of simulating.
        tell: Is told what each gate found.
    """

    def __init__(self, folder: Path, rejudge: bool, tell: Callable[[GateRecord], None]) -> None:
        self.folder, self.rejudge, self.tell = folder, rejudge, tell
        self._used = 0

    def __call__(
        self,
        problem: Problem,
        *,
        below: float,
        target_error: float | None = None,
        budget: int | None = None,
        **options: Any,
    ) -> Result:
        """Pass where the problem's failure probability is shown to be below a bound.

        Args:
            problem: What to evaluate.
            below: The bound.
            target_error: The run ends as soon as the interval's half-width is at most this part of
                the estimate.
            budget: Decisions that the run may take; in episodes, give ``episodes=`` instead.
            **options: Further options of `apeval.evaluate`: `method`, `seed`, `confidence`, …

        Returns:
            The result, where the gate passes.

        Raises:
            GateRefutedError: The probability is shown to be above the bound.
            GateUndecidedError: Neither is shown, or the result is not trusted; the message has the
                budget that would decide.
            ApevalError: An argument is wrong, or the stored run is one of another problem.
        """
        from apeval.results.folder import load
        from apeval.run.bound_verdict import judge

        __tracebackhide__ = True  # pytest shows the user's line
        folder, self._used = self._next_folder(), self._used + 1
        if self.rejudge:
            run = self._stored(folder, problem)
        else:
            self._simulate(folder, problem, below, target_error, budget, options)
            run = load(folder)
        result = run.result
        answer = judge(run, below, confidence=options.get("confidence"))
        found = GateRecord(
            verdict=answer.verdict if result.trusted else UNDECIDED,
            problem=result.problem,
            below=answer.below,
            estimate=result.estimate,
            interval=result.interval,
            confidence=result.confidence,
            bound=answer.bound,
            budget=answer.budget,
            unit=answer.unit,
            target_error=_smaller_target(result, answer),
            trusted=result.trusted,
            warnings=result.warnings,
            folder=str(folder),
            simulated=not self.rejudge,
        )
        self.tell(found)
        if found.verdict == REFUTED:
            raise GateRefutedError(found)
        if found.verdict != SHOWN:
            raise GateUndecidedError(found)
        return result

    def _next_folder(self) -> Path:
        """One for each gate that a test has."""
        return self.folder if not self._used else Path(f"{self.folder}-{self._used + 1}")

    def _simulate(
        self,
        folder: Path,
        problem: Problem,
        below: float,
        target_error: float | None,
        budget: int | None,
        options: dict[str, Any],
    ) -> None:
        from apeval.results.recorder import Recorder
        from apeval.run.evaluate import evaluate

        if budget is not None and "steps" in options:
            raise ApevalError("budget and steps are the same: give one of them")
        given = {**options, "below": below, "target_error": target_error}
        if budget is not None:
            given["steps"] = budget
        evaluate(problem, recorder=Recorder(folder, careful=False), **given)

    def _stored(self, folder: Path, problem: Problem) -> Run:
        """The run that is kept, of the same problem."""
        from apeval.results.folder import load
        from apeval.simulate.identity.identity import in_short

        if not folder.exists():
            raise ApevalError(
                f"there is no run in {folder} to judge again: run without --apeval-rejudge first"
            )
        run = load(folder)
        # a file may have changed: the bound may stand in the same one as the problem
        found = run.differs_from(problem)
        if found:
            raise ApevalError(
                f"the run in {folder} is one of another problem ({in_short(found)}): run without "
                "--apeval-rejudge"
            )
        return run


def _smaller_target(result: Result, answer: BelowAnswer) -> float | None:
    """The target error that goes with the budget that would decide, where the run ended early
    because it had reached its own: it shrinks like the root of the episodes."""
    target = result.target
    if answer.budget is None or target is None or not target.met or not target.reached:
        return None
    steps = answer.unit == "steps"
    frozen, spent = (
        (result.final.steps, result.steps) if steps else (result.final.episodes, result.episodes)
    )
    longer = max(1.0, (answer.budget - (spent - frozen)) / frozen)
    return float(0.99 * target.reached / math.sqrt(longer))
