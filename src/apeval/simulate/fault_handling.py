"""What is done when a simulator raises, hangs, dies or returns values that are not finite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from apeval import validate
from apeval.errors import ProblemError, SimulationError, blame, unknown
from apeval.problem.problem import Problem
from apeval.problem.types import IntArray
from apeval.remedies import Option
from apeval.simulate.backends import WorkerPool
from apeval.simulate.episodes import Episodes, join
from apeval.simulate.isolation import EpisodeIsolation, InOwnProcess, InThisProcess
from apeval.simulate.partial_episode import FaultyEpisode
from apeval.simulate.task import BREACH, INTERNAL, LATE, RAISED, Task, Trouble

STOP, UNRESOLVED = "stop", "unresolved"
_ROUNDS = 3  # times that a block is tried again whose episodes all come back alone
_NEARLY_ALL, _FEWEST = 0.5, 10  # share and number of unresolved episodes at which a run gives up


@dataclass(frozen=True)
class FaultPolicy:
    """What the user wants done with faults."""

    on_fault: str = STOP
    """stop the run, or count the episode as unresolved."""
    retries: int = 1
    """Times that a block is tried again, with the same random numbers."""
    time_limit: float | None = None
    """Seconds that an episode may take."""

    @property
    def expected(self) -> bool:
        """Whether the simulator may raise, hang or die, as it may not in a check."""
        return self.on_fault == UNRESOLVED or self.time_limit is not None

    def __post_init__(self) -> None:
        if self.on_fault not in (STOP, UNRESOLVED):
            raise unknown("value of on_fault", str(self.on_fault), (STOP, UNRESOLVED))
        object.__setattr__(self, "retries", validate.whole("retries", self.retries, 0, 100))
        if self.time_limit is not None:
            limit = validate.seconds("time_limit", self.time_limit)
            object.__setattr__(self, "time_limit", limit)


@dataclass
class FaultHandler:
    """Turns a block that did not come back into episodes, or stops the run."""

    problem: Problem
    key: IntArray
    policy: FaultPolicy
    note: Callable[[dict[str, Any]], None]
    """Gets every fault, as plain data."""
    faulty: int = 0
    like: Episodes | None = field(default=None, repr=False)
    """An episode that came back."""

    def seen(self, episodes: Episodes) -> None:
        """Remember what an episode that comes back looks like."""
        if self.like is None:
            self.like = episodes

    def mend(self, pool: WorkerPool, task: Task, trouble: Trouble, simulated: int) -> Episodes:
        """The block after all: whole, on another attempt; or episode by episode, with those that
        do not come back unresolved. `simulated` episodes came before it."""
        attempts = 1
        # a block that hangs would hang again for as long: its episodes alone tell sooner
        alone_first = trouble.what == LATE
        for turn in range(_ROUNDS):
            # episodes that all come back alone do not replace the block: their last digits, and
            # what each may take of the budget, are those of a block
            again = max(self.policy.retries, int(turn > 0))
            for _ in range(0 if alone_first else again):
                self._refuse(trouble)
                answer = pool.result(pool.submit(task))
                attempts += 1
                if isinstance(answer, Episodes):
                    self.note(_passed(task, trouble, attempts))
                    return answer
                trouble = answer
            self._refuse(trouble)
            alone = self._alone(pool, task, attempts)
            attempts += 1
            if any(isinstance(it, FaultyEpisode) for it in alone):
                return self._settle(alone, attempts, simulated)
            alone_first = False
        if trouble.what == RAISED and self.policy.on_fault == STOP:
            raise SimulationError(
                f"{trouble.text} (episodes {task.first} … {task.first + task.n - 1}, {attempts} "
                "times together and never alone): the problem keeps something between episodes, or "
                f"counts its calls. Mend it there, or add {Option('on_fault', UNRESOLVED)}"
            )
        self.note(_passed(task, trouble, attempts))
        return join([it for it in alone if isinstance(it, Episodes)])

    def _refuse(self, trouble: Trouble) -> None:
        """What no other attempt would mend; who asked for the run finds out whose mistake it is."""
        if trouble.what == BREACH:
            raise ProblemError(trouble.text)
        if trouble.what == INTERNAL and self.policy.on_fault == STOP:
            if trouble.found:
                raise ProblemError(trouble.found) from RuntimeError(trouble.trace)
            raise RuntimeError(trouble.text) from RuntimeError(trouble.trace)

    def _alone(self, pool: WorkerPool, task: Task, attempts: int) -> list[Episodes | FaultyEpisode]:
        cell: EpisodeIsolation = InThisProcess(self.problem, self.key)
        if pool.expendable:
            cell = InOwnProcess(self.problem, self.key, self.policy.time_limit)
        found: list[Episodes | FaultyEpisode] = []
        try:
            for single in task.alone():
                found.append(it := cell.run(single))
                if isinstance(it, FaultyEpisode) and self.policy.on_fault == STOP:
                    self.note(self._entry(it, attempts + 1, "stopped"))
                    raise _stopped(it, attempts + 1)
        finally:
            cell.close()
        return found

    def _settle(
        self, alone: list[Episodes | FaultyEpisode], attempts: int, simulated: int
    ) -> Episodes:
        like = next((it for it in alone if isinstance(it, Episodes)), self.like)
        faulty = [it for it in alone if isinstance(it, FaultyEpisode)]
        self.faulty += len(faulty)
        for it in faulty:
            self.note(self._entry(it, attempts, UNRESOLVED))
        if like is None:
            raise self._hopeless(simulated + len(alone), _said(faulty[0]))
        self._give_up(simulated + len(alone), _said(faulty[0]))
        return join(
            [
                it.partial.unresolved(it.task, like) if isinstance(it, FaultyEpisode) else it
                for it in alone
            ]
        )

    def lost(self, error: Exception, episode: int, decision: int) -> None:
        """An episode that a learner simulates by itself, decision by decision, did not come back:
        it stops the run, or teaches nothing more."""
        if self.policy.on_fault == STOP or isinstance(error, ProblemError):
            raise error
        self.faulty += 1
        said = f"episode {episode}, decision {decision}: {blame(error)}"
        self.note(
            {
                "episode": episode,
                "decision": decision,
                "what": RAISED,
                "message": blame(error),
                "attempts": 1,
                "outcome": UNRESOLVED,
            }
        )
        self._give_up(episode + 1, said)

    def _give_up(self, drawn: int, said: str) -> None:
        """Where nearly all episodes are lost, more of them are of no use."""
        if self.faulty >= max(_FEWEST, _NEARLY_ALL * drawn):
            raise self._hopeless(drawn, said)

    def _hopeless(self, drawn: int, said: str) -> SimulationError:
        return SimulationError(
            f"{self.faulty} of {drawn} episodes do not come back ({said}): so many unresolved "
            "episodes tell nothing of the failure probability. Mend the simulator"
        )

    def _entry(self, it: FaultyEpisode, attempts: int, outcome: str) -> dict[str, Any]:
        return {
            "episode": it.task.first,
            "decision": len(it.partial.seen),
            "what": it.trouble.what,
            "message": it.trouble.text,
            "attempts": attempts,
            "outcome": outcome,
            "record": it.partial.record(it.task, self.key).as_json(),
        }


def _passed(task: Task, trouble: Trouble, attempts: int) -> dict[str, Any]:
    """A fault that went away: of the whole block, as nobody knows whose it was."""
    return {
        "episode": task.first,
        "episodes": task.n,
        "what": trouble.what,
        "message": trouble.text,
        "attempts": attempts,
        "outcome": "passed",
    }


def _said(it: FaultyEpisode) -> str:
    return f"episode {it.task.first}, decision {len(it.partial.seen)}: {it.trouble.text}"


def _stopped(it: FaultyEpisode, attempts: int) -> SimulationError:
    error = SimulationError(
        f"{it.trouble.text} (episode {it.task.first}, decision {len(it.partial.seen)}; {attempts} "
        "times with the same random numbers): mend it, or add "
        f"{Option('on_fault', UNRESOLVED)}, which counts such episodes and widens the interval"
    )
    if it.trouble.trace:
        error.__cause__ = RuntimeError(it.trouble.trace)
    return error
