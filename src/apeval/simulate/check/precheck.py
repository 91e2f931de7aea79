"""A short check before a user's own problem runs: refuse one that would break later, or lie."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from apeval.errors import ApevalError, ProblemError, user_frame
from apeval.problem.problem import Problem
from apeval.problem.types import IntArray
from apeval.remedies import Call
from apeval.simulate.audit import Kept, beginning, difference
from apeval.simulate.check import UNDISTURBED, check_problem
from apeval.simulate.check.report import CheckReport
from apeval.simulate.episodes import Episodes
from apeval.simulate.identity.reference import Reference, reference
from apeval.simulate.rollout import EpisodeObserver
from apeval.simulate.task import INTERNAL, Task, Trouble, attempt

_EPISODES, _SECONDS = 16, 1.0  # with 0.5 s for the reference decisions and 0.5 s after the run: 2 s


class PrecheckFindings(NamedTuple):
    """What a look at a problem found."""

    answers: Reference
    """What it does in the reference decisions."""
    bad: str | None
    """The first thing to mend, or None."""
    first: list[Kept]
    """A few nominal decisions, to be repeated after the run."""
    undisturbed: str | None = None
    """What is said of episodes that fail without disturbance; None where none was seen."""


def look(problem: Problem, key: IntArray, check: bool = True) -> PrecheckFindings:
    """Ask a problem what it does and, with `check`, look for what would spoil an estimate. What is
    to be repeated after the run comes first of all: what a problem remembers may settle down while
    it is looked at."""
    first = beginning(problem, key) if check else []
    answers = reference(problem)
    report = _short_check(problem) if check else None
    bad = None if report is None else _first_bad(report)
    bad = _settled(problem, key, first) if bad is None else bad
    remarks = [] if report is None else [f for f in report.remarks if f.name == UNDISTURBED]
    said = remarks[0].message if remarks else None
    return PrecheckFindings(answers, bad, first if bad is None else [], said)


def _settled(problem: Problem, key: IntArray, first: list[Kept]) -> str | None:
    """What became otherwise while the problem was looked at; None where nothing did."""
    for it in first[:1]:
        again = attempt(problem, key, it.task)
        differs = None if isinstance(again, Trouble) else difference(it.episode, again)
        if differs is not None:
            return (
                f"repeatable: the first episode came out otherwise after a few others ({differs}). "
                "No function, the policy either, may remember what it saw before, and reset must "
                "set every hidden state."
            )
    return None


def require_sound(problem: Problem) -> None:
    """A `ProblemError` with the first thing to mend, where a short look finds one."""
    refuse(problem, _first_bad(_short_check(problem)))


def refuse(problem: Problem, bad: str | None) -> None:
    """A `ProblemError`, where something is to be mended."""
    if bad is not None:
        raise ProblemError(
            f"{problem.name or 'the problem'} cannot be evaluated as it is. {bad} All checks: "
            f"{Call('check_problem', problem.name)}"
        )


def _short_check(problem: Problem) -> CheckReport:
    return check_problem(problem, episodes=_EPISODES, seconds=_SECONDS)


def _first_bad(report: CheckReport) -> str | None:
    # whether episodes end cannot be told in so short a time; the run itself counts unresolved ones
    bad = [finding for finding in report.bad if finding.name != "ends"]
    if not bad:
        return None
    found = f"{bad[0].name}: {bad[0].message}"
    return found if found.endswith((".", "?")) else f"{found}."


def attempt_apart(
    problem: Problem, key: IntArray, task: Task, watch: EpisodeObserver | None = None
) -> Episodes | Trouble:
    """`attempt` in a worker: an exception within apeval is looked into here, where the problem is
    in the state that led to it. The run's own copy has never been asked anything."""
    answer = attempt(problem, key, task, watch)
    if isinstance(answer, Episodes) or answer.what != INTERNAL:
        return answer
    try:
        require_sound(problem)
    except ProblemError as found:
        return replace(answer, found=str(found))
    except (Exception, SystemExit):  # whatever a user's simulator may raise
        pass
    return answer


@contextmanager
def explained(problem: Problem) -> Iterator[None]:
    """What a problem's functions return is not looked at decision by decision, which would cost
    time. So an exception within apeval itself is often theirs: then the check says whose, and what
    to mend. Where it finds nothing the exception passes, as do those of the user's own code."""
    try:
        yield
    except ApevalError:
        raise
    except Exception as error:
        if user_frame(error) is None:
            try:
                require_sound(problem)
            except ProblemError as found:
                raise found from error
        raise
