"""A stored failure, simulated once more and compared with what was recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from apeval import validate
from apeval.errors import ApevalError
from apeval.problem.problem import Problem
from apeval.problem.types import Array, IntArray
from apeval.results.animation import save_gif, save_pictures
from apeval.results.episode_scene import outcome_of, scene_of
from apeval.results.files import finite
from apeval.results.folder import Run
from apeval.results.own_pictures import own_pictures
from apeval.simulate.episodes import Episodes
from apeval.simulate.replay import record as as_record
from apeval.simulate.replay import replay

_MOST_COLUMNS = 12  # of a table that a terminal can show
_CLOSE = (1e-6, 1e-9)  # a network's last digits may depend on its batch


@dataclass(frozen=True)
class Replayed:
    """One episode, alone."""

    problem: Problem
    key: IntArray
    episodes: Episodes

    @property
    def outcome(self) -> str:
        """How it ends."""
        return outcome_of(self.problem, self.episodes, 0)

    def __str__(self) -> str:
        return table(self.problem, self.episodes)

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        e = self.episodes
        margin = float(e.margin[0])
        return {
            "problem": self.problem.name,
            "id": int(e.ids[0]),
            "outcome": self.outcome,
            "length": int(e.length[0]),
            "margin": finite(margin),
            "a_0": e.a_0[0].tolist(),
            "decisions": [
                {"s": s, "a_A": a, "a_E": d}
                for s, a, d in zip(e.s.tolist(), e.a_A.tolist(), e.a_E.tolist(), strict=True)
            ],
            "s_end": e.s_end[0].tolist(),
        }

    def film(self, path: Path | str) -> Path:
        """Write an animated GIF: the problem's drawing, the environment's own pictures, or the
        series of states and disturbances."""
        path = validate.output_file("path", path)
        if path.suffix.lower() != ".gif":
            raise ApevalError(f"an animation is a GIF: name it {path.with_suffix('.gif')}")
        scene = scene_of(self.problem, self.episodes, 0, self.key)
        own = None if scene.drawable else own_pictures(self.problem, self.episodes, self.key)
        return save_gif(scene, path) if own is None else save_pictures(own.pictures, path)


def replay_failure(run: Run, number: int, problem: Problem) -> Replayed:
    """Failure 1, 2, … of those recorded."""
    if not run.records:
        raise ApevalError(f"the run in {run.path} has no failure to replay: raise its budget")
    if not 1 <= number <= len(run.records):
        raise ApevalError(f"the failure must be from 1 to {len(run.records)}; got {number}")
    return replay_record(run, run.records[number - 1], problem)


def replay_mode(run: Run, number: int, problem: Problem) -> Replayed:
    """The most likely failure of mode 1, 2, …"""
    modes = run.result.modes
    if not 1 <= number <= len(modes):
        raise ApevalError(f"the mode must be from 1 to {len(modes)}; got {number}")
    return replay_record(run, modes[number - 1].most_likely, problem)


def replay_record(run: Run, record: Mapping[str, Any], problem: Problem) -> Replayed:
    """The recorded episode again; an `ApevalError` where it goes otherwise than recorded."""
    recorded = _recorded(run, record)
    it = as_record(recorded, 0, run.key)
    again = replay(problem, it)
    differs = _difference(recorded, again)
    if differs is not None:
        raise ApevalError(
            f"episode {it.id} goes otherwise than recorded ({differs}): the problem, its policy or "
            "a library has changed since the run (provenance.json has the versions)"
        )
    return Replayed(problem, run.key, again)


def _recorded(run: Run, record: Mapping[str, Any]) -> Episodes:
    """The episode that a replay record names, as it stands in the journal."""
    number = record.get("id")
    if isinstance(number, bool) or not isinstance(number, int) or abs(number) >= 2**63:
        raise ApevalError(f"{run.path} is damaged: a replay record names no episode")
    mine = run.episodes.ids == number
    if int(mine.sum()) != 1:
        raise ApevalError(f"{run.path} is damaged: episode {number} was not recorded")
    found = run.episodes.take(mine)
    for name in ("a_0", "a_E"):
        if not _same_numbers(record.get(name), getattr(as_record(found, 0, run.key), name)):
            raise ApevalError(
                f"{run.path} is damaged: {name} of a replay record is not that of episode {number}"
            )
    return found


def _same_numbers(one: Any, other: Any) -> bool:
    """Whether two nested lists hold the same numbers; an empty one has no shape."""
    try:
        a, b = np.asarray(one, np.float64), np.asarray(other, np.float64)
    except (TypeError, ValueError):
        return False
    return bool(a.size == b.size == 0 or np.array_equal(a, b))


def _difference(recorded: Episodes, again: Episodes) -> str | None:
    if int(recorded.kind[0]) != int(again.kind[0]):
        return "it does not end alike"
    if int(recorded.length[0]) != int(again.length[0]):
        return f"it takes {int(again.length[0])} decisions, not {int(recorded.length[0])}"
    for name, what in (("s", "states"), ("a_A", "the agent's actions"), ("a_E", "disturbances")):
        one, other = getattr(recorded, name), getattr(again, name)
        if one.shape != other.shape or not np.allclose(one, other, *_CLOSE):
            return f"{what} differ"
    return None


def table(problem: Problem, it: Episodes) -> str:
    """The trajectory in columns: decision, state, the agent's action, the disturbance."""
    parts = {"s": it.s, "a_A": it.a_A, "a_E": it.a_E}
    room = _MOST_COLUMNS
    shown: list[tuple[str, Array]] = []
    left_out = 0
    for name in ("a_E", "a_A", "s"):  # the disturbance matters most, the state is often wide
        values = parts[name]
        kept = min(values.shape[1], room)
        wide = values.shape[1] > 1
        shown[:0] = [(f"{name}_{j}" if wide else name, values[:, j]) for j in range(kept)]
        room, left_out = room - kept, left_out + values.shape[1] - kept
    titles = ["decision", *(name for name, _ in shown)]
    rows = [
        [str(int(t) + 1), *(_number(column[k]) for _, column in shown)] for k, t in enumerate(it.t)
    ]
    widths = [max(len(row[j]) for row in [titles, *rows]) for j in range(len(titles))]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in [titles, *rows]
    ]
    name = problem.name or "problem"
    head = f"{name} · episode {int(it.ids[0])}: {outcome_of(problem, it, 0)} after "
    head += f"{int(it.length[0])} decisions"
    if np.isfinite(it.margin[0]):
        head += f", margin {it.margin[0]:.3g}"
    start = [f"a_0: {', '.join(_number(v) for v in it.a_0[0])}"] if it.a_0.shape[1] else []
    rest = [f"({left_out} of the state's components are not shown)"] if left_out else []
    return "\n".join([head, *start, *lines, *rest])


def _number(value: Any) -> str:
    return f"{value:.4g}" if np.asarray(value).dtype.kind == "f" else str(int(value))
