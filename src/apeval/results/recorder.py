"""Keeps a run in a folder while it happens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from apeval.errors import ApevalError, StorageError
from apeval.results import journal
from apeval.results.extension import EXTENSION
from apeval.results.faults import FAULTS, read_faults, write_faults
from apeval.results.files import write_json
from apeval.results.inputs import INPUTS, read_inputs, write_inputs
from apeval.results.manifest import (
    HASHED,
    MANIFEST,
    PROVENANCE,
    read_state,
    write_finished,
    write_unfinished,
)
from apeval.results.model import model_of, write_model
from apeval.results.provenance import now
from apeval.results.recorded import Recorded, usable
from apeval.results.samples import write_sample
from apeval.results.store import prepare, save
from apeval.run.recorder import Outcome
from apeval.simulate.episodes import Episodes


class Recorder:
    """Writes a run folder: every batch as it returns, then the outcome.

    >>> import apeval, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> result = apeval.evaluate(
    ...     apeval.make("walk", top=5), steps=2_000, recorder=apeval.Recorder(folder)
    ... )
    >>> apeval.load(folder).result.estimate == result.estimate
    True
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        command: Sequence[str] | None = None,
        files: Sequence[str | Path] = (),
        extends: Sequence[str] = (),
        careful: bool = False,
    ) -> None:
        """An earlier run in the folder is replaced; with `careful` not if it can be resumed.
        Other files there are left alone. `command` and the hashes of `files` (a problem's code, a
        policy) go into provenance.json."""
        self.folder = prepare(folder)
        journal.refuse_link(self._journal)
        self.command = command
        self.files = [Path(file) for file in files]
        self.extends = tuple(extends)
        self.careful = careful
        self.batches = 0
        self.note: str | None = None
        """What was dropped of an interrupted run."""
        self._course: int | None = None
        self._faults: list[dict[str, Any]] = []
        self._recorded: Recorded | None = None
        self._untouched = False
        self._about: Mapping[str, Any] = {}

    @staticmethod
    def resuming(folder: str | Path) -> Recorder:
        """Goes on with an interrupted run: what it simulated is used, up to a torn last file. The
        folder stays as it is until there is something new to write: a result that the run has so
        far must not go because its continuation is refused."""
        recorder = Recorder(folder)
        recorder._go_on()
        return recorder

    @property
    def _journal(self) -> Path:
        return self.folder / journal.JOURNAL

    def _go_on(self) -> None:
        self.files, self.extends = [], ()
        state = read_state(self.folder)
        batches, damage = usable(self._journal, state.course) if self._journal.is_dir() else (0, "")
        self.note = f"dropped: {damage}" if damage else None
        self.batches, self._untouched = batches, True
        self._recorded = Recorded(self._journal, batches)
        self._faults = [
            entry
            for entry in read_faults(self.folder)
            if entry["outcome"] != "stopped" and self._recorded.has(entry["episode"])
        ]

    def _take_over(self) -> None:
        """Make the folder one of a run under way, before the first change to it."""
        if not self._untouched:
            return
        self._untouched = False
        with self._resumable():
            write_unfinished(self.folder, self.batches)  # should this be all that is done
            if self._journal.is_dir():
                journal.cut_after(self._journal, self.batches)
            self._journal.mkdir(exist_ok=True)
            write_json(self.folder / INPUTS, self._about)
            write_unfinished(self.folder)

    def begin(self, inputs: Mapping[str, Any]) -> None:
        """Write what was asked; of an earlier run nothing is left."""
        if self._recorded is not None:
            before = read_inputs(self.folder).about
            self._about = {**before, "inputs": dict(inputs)}
            return
        if self.careful:
            refuse_unfinished(self.folder, inputs)
        try:
            for name in (MANIFEST, *HASHED, INPUTS, FAULTS, EXTENSION):
                (self.folder / name).unlink(missing_ok=True)
            journal.clear(self._journal)
            self._journal.mkdir(exist_ok=True)
        except OSError as error:
            raise ApevalError(
                f"cannot write to the folder {self.folder}: {error.strerror or error}. "
                "Choose another --out"
            ) from None
        self._about = write_inputs(
            self.folder, inputs, self.command, self.files, self.extends, now()
        )
        write_unfinished(self.folder)

    def recorded(self, first: int, n: int) -> Episodes | None:
        """Episodes that were simulated before the interruption."""
        return None if self._recorded is None else self._recorded.find(first, n)

    def batch(self, episodes: Episodes, position: int) -> None:
        """Append a batch."""
        self._take_over()
        with self._resumable():
            journal.write_batch(self._journal, self.batches, episodes, position)
        self.batches += 1

    def fault(self, entry: dict[str, Any]) -> None:
        """Keep a fault."""
        self._faults.append(entry)
        self._take_over()
        with self._resumable():
            write_faults(self.folder, self._faults)

    def detour(self) -> None:
        """Batches from here on are no part of the run's own course. A method that learns by itself
        and is stopped before it comes to what was recorded leaves the folder as it was: its
        episodes would have the numbers of others."""
        if self._recorded is not None and self._recorded.unread:
            raise KeyboardInterrupt
        self._take_over()
        self._course = self.batches
        with self._resumable():
            write_unfinished(self.folder, self._course)

    def finish(self, outcome: Outcome) -> None:
        """Write everything else; the manifest comes last."""
        self._take_over()
        result = outcome.result
        with self._resumable():
            save(result, self.folder)
            write_sample(self.folder, outcome.sample, outcome.ids)
            write_model(self.folder, model_of(result.method, outcome.proposal))
            write_json(self.folder / PROVENANCE, {**self._about, "ended": now()})
            if self._faults:
                write_faults(self.folder, self._faults)
            else:
                (self.folder / FAULTS).unlink(missing_ok=True)
            write_finished(self.folder, self.batches, result.interrupted, self._course)

    @contextmanager
    def _resumable(self) -> Iterator[None]:
        try:
            yield
        except StorageError as error:
            raise StorageError(
                f"{error}. What was simulated before is kept: make room, then apeval resume "
                f"{self.folder}"
            ) from None


def refuse_unfinished(folder: Path, inputs: Mapping[str, Any]) -> None:
    """A run that can be resumed is not replaced unasked: it may have taken days."""
    try:
        state = read_state(folder)
        held = journal.numbers(folder / journal.JOURNAL)
        same = read_inputs(folder).about["inputs"] == dict(inputs)
    except (ApevalError, KeyError, TypeError):
        return  # nothing that could be resumed
    if not state.resumable or not held:
        return
    what = "this very run" if same else "another run"
    raise ApevalError(
        f"{folder} holds {what}, interrupted: apeval resume {folder} goes on with it, --fresh "
        "starts over, or choose another --out"
    )
