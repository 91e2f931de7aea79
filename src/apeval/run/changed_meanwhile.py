"""Workers have copies of the problem: is it still the one that they were given?

In the run's own process nobody asks it anything meanwhile. What it holds may change all the same,
by a thread of its own: then the copies are of one moment, and the number is that moment's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apeval.errors import ApevalError
from apeval.problem.problem import Problem
from apeval.remedies import Note
from apeval.simulate.episode_source import EpisodeSource
from apeval.simulate.episodes import Episodes
from apeval.simulate.identity.identity import CODE, changes_by_itself, code_of
from apeval.simulate.isolation import InOwnProcess
from apeval.simulate.task import Task, Trouble

RESTLESS = (
    "what it holds changes while nobody asks it anything, as by a thread of its own, and each "
    "worker would get another one. An episode must follow from its seed alone"
)
"""Said of such a problem before a run and after it."""


def changed_meanwhile(
    problem: Problem, identity: Mapping[str, Any], source: EpisodeSource
) -> list[Note]:
    """What is to be said of a problem after a run with workers.

    Args:
        problem: As the user gave it.
        identity: Its fingerprint from before the run.
        source: Whose audit kept episodes of the run, and some from before it.

    Returns:
        A serious remark where the problem goes on changing, or where it has changed and episodes
        come out otherwise with it as it is now: a cache that has filled makes no difference.
    """
    if changes_by_itself(problem):
        return [Note(f"the problem is not to be trusted with workers: {RESTLESS}")]
    if code_of(problem) == identity[CODE]["sha256"]:
        return []
    differs = _with_it_as_it_is_now(problem, source)
    if differs is None:
        return []
    return [
        Note(
            f"the problem changed during the run while nobody asked it anything ({differs} with it "
            "as it is now), as by a thread of its own: an episode must follow from its seed alone; "
            "the number cannot be trusted"
        )
    ]


def _with_it_as_it_is_now(problem: Problem, source: EpisodeSource) -> str | None:
    """What comes out otherwise in a process that gets the problem only now."""
    try:
        cell = InOwnProcess(problem.blind(), source.key, source.policy.time_limit)
    except ApevalError:  # it cannot be sent any more; the run's workers have told the rest
        return None

    def again(task: Task) -> Episodes | Trouble:
        found = cell.run(task)
        return found if isinstance(found, Episodes) else found.trouble

    try:
        return source.audit.repeat(again, 0.0)
    except ApevalError:
        return None
    finally:
        cell.close()
