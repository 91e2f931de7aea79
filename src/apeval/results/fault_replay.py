"""A fault of the simulator, let happen once more where it can do no harm."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from apeval.errors import ApevalError
from apeval.results.dataclass_json import build
from apeval.results.fault_log import FAULTS, Fault, FaultRecord, read_faults
from apeval.results.inputs import read_inputs
from apeval.results.problem_rebuild import build_again
from apeval.simulate.adversary import only
from apeval.simulate.branches import replayed
from apeval.simulate.isolation import InOwnProcess
from apeval.simulate.partial_episode import FaultyEpisode
from apeval.simulate.replay import Record, script
from apeval.simulate.task import Task

_PATIENCE = 60.0  # seconds, where the run had no time limit


@dataclass(frozen=True)
class FaultAgain:
    """What was recorded, and what happens now."""

    fault: Fault
    now: str | None
    """The trouble of this time; None where the episode comes through."""
    a_E: tuple[tuple[float, ...], ...]

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "episode": self.fault.episode,
            "decision": self.fault.decision,
            "recorded": self.fault.message,
            "now": self.now,
            "a_E": [list(row) for row in self.a_E],
        }

    def __str__(self) -> str:
        lines = [f"episode {self.fault.episode}, decision {self.fault.decision}"]
        for t, row in enumerate(self.a_E, start=1):
            lines.append(f"  decision {t:<4} a_E  {', '.join(f'{v:.6g}' for v in row)}")
        lines.append(f"  recorded       {self.fault.message}")
        lines.append(f"  now            {self.now or 'it comes through'}")
        return "\n".join(lines)


def replay_fault(folder: Path, number: int, address: str | None = None) -> FaultAgain:
    """Fault 1, 2, … of a run, in a process of its own: it may hang or die."""
    read = read_inputs(folder)
    asked, time_limit = read.inputs, read.options.time_limit
    faults = [build(Fault, entry, folder / FAULTS) for entry in read_faults(folder)]
    if not faults:
        raise ApevalError(f"the run in {folder} had no fault")
    if not 1 <= number <= len(faults):
        raise ApevalError(f"the fault must be from 1 to {len(faults)}; got {number}")
    fault = faults[number - 1]
    if fault.record is None:
        raise ApevalError(
            f"fault {number} of {folder} went away when its block of {fault.episodes} episodes was "
            "tried again: there is nothing to replay"
        )
    problem = build_again(asked.problem, asked.parameters, address, folder).seen_as(asked.view)
    record = _record(fault.record)
    total = len(record.a_E) + (0 if problem.initial is None else 1)
    branch = None if record.drawn_with is None else replayed(record.drawn_with)
    task = Task(only(script(problem, record)), record.id, 0, 1, max(total, 1), branch)
    cell = InOwnProcess(problem.blind(), np.array(record.key, np.uint64), time_limit or _PATIENCE)
    try:
        again = cell.run(task)
    finally:
        cell.close()
    now = again.trouble.text if isinstance(again, FaultyEpisode) else None
    return FaultAgain(fault, now, fault.record.a_E)


def _record(it: FaultRecord) -> Record:
    if not all(0 <= word < 2**32 for word in it.key) or it.id < 0:
        raise ApevalError(f"{FAULTS} is damaged: a replay record names no episode")
    return Record.from_json({**vars(it), "a_E": [list(row) for row in it.a_E]})
