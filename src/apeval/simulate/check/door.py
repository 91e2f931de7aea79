"""A short check before a user's own problem runs: refuse one that would break later, or lie."""

from __future__ import annotations

from apeval.errors import ProblemError
from apeval.problem.problem import Problem
from apeval.simulate.check import check_problem

_EPISODES, _SECONDS = 16, 2.0


def require_sound(problem: Problem) -> None:
    """A `ProblemError` with the first thing to mend, where a short look finds one."""
    report = check_problem(problem, episodes=_EPISODES, seconds=_SECONDS)
    # whether episodes end cannot be told in so short a time; the run itself counts unresolved ones
    bad = [finding for finding in report.bad if finding.name != "ends"]
    if bad:
        found = f"{bad[0].name}: {bad[0].message}"
        found += "" if found.endswith((".", "?")) else "."
        raise ProblemError(
            f"{problem.name} cannot be evaluated as it is. {found} All checks: apeval check "
            f"{problem.name}"
        )
