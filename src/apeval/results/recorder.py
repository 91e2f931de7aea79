"""Keeps a run in a folder while it happens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from apeval.errors import ApevalError, StorageError
from apeval.remedies import Option
from apeval.results import journal
from apeval.results.fault_log import FAULTS, read_faults
from apeval.results.files import write_json
from apeval.results.inputs import INPUTS, how_to_resume, read_inputs
from apeval.results.journal_reader import JournalReader, usable
from apeval.results.lock import Lock
from apeval.results.manifest import (
    HASHED,
    MANIFEST,
    OPTIONAL,
    PROVENANCE,
    Manifest,
    check,
    check_asked,
    read_state,
    write_listed,
    write_manifest,
)
from apeval.results.model import model_of, write_model
from apeval.results.provenance import ANSWER, inputs_hash, now, provenance
from apeval.results.samples import write_sample
from apeval.results.store import prepare, save
from apeval.run.run_recorder import IDENTITY, FinishedRun
from apeval.simulate.episodes import Episodes

CHANGED = "changes_allowed"


class Recorder:
    """Writes a run folder: every batch as it returns, then the outcome.

    Args:
        folder: Where to write. An earlier run there is replaced, other files are left alone.
        command: Goes into provenance.json.
        files: Files whose hashes go into provenance.json, beside the problem's own code and its
            policies.
        extends: Folders of the runs that this one extends.
        careful: Refuse to replace a run that can be resumed.

    Raises:
        ApevalError: The folder cannot be used.

    Examples:
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
        careful: bool = True,
    ) -> None:
        self.folder = prepare(folder)
        journal.refuse_link(self._journal)
        self.command = command
        self.files = [Path(file) for file in files]
        self.extends = tuple(extends)
        self.careful = careful
        self.batches = 0
        self.note: str | None = None
        """What was dropped of an interrupted run."""
        self._lock = Lock(self.folder)
        self._head = journal.EMPTY
        self._course: int | None = None
        self._faults: list[dict[str, Any]] = []
        self._recorded: JournalReader | None = None
        self._untouched = False
        self._changed: list[str] = []
        self._about: Mapping[str, Any] = {}

    @staticmethod
    def resuming(folder: str | Path, changed: Sequence[str] = ()) -> Recorder:
        """Goes on with an interrupted run: what it simulated is used, up to a torn last file. The
        folder stays as it is until there is something new to write: a result that the run has so
        far must not go because its continuation is refused.

        Args:
            folder: Of the interrupted run.
            changed: What has changed since it began and was allowed to, in words: it is kept.

        Returns:
            A recorder for `evaluate`; `apeval.resume` does all of it.

        Raises:
            ApevalError: The folder holds no run that can be resumed, or another run holds it.
        """
        recorder = Recorder(folder)
        recorder._changed = list(changed)
        recorder._go_on()
        return recorder

    @property
    def _journal(self) -> Path:
        return self.folder / journal.JOURNAL

    def _go_on(self) -> None:
        self._lock.acquire()
        state = read_state(self.folder)
        check(self.folder, INPUTS, state)
        asked = read_inputs(self.folder)
        check_asked(self.folder, state, asked.about["inputs"])
        bound = inputs_hash(asked.about["inputs"], asked.identity)
        usable_ = usable(self._journal, bound, state)
        self.note = f"dropped: {usable_.damage}" if usable_.damage else None
        self.batches, self._head, self._untouched = usable_.batches, usable_.head, True
        self._recorded = JournalReader(self._journal, usable_.batches)
        if FAULTS in state.hashes or FAULTS in state.pending:
            check(self.folder, FAULTS, state)
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
            before = read_inputs(self.folder).about["inputs"]  # what stands in run.json as yet
            write_manifest(self.folder, self._state(before, course=self.batches))
            if self._journal.is_dir():
                journal.cut_after(self._journal, self.batches)
            self._journal.mkdir(exist_ok=True)
            write_listed(self.folder, INPUTS, self._about)
            self._write_state()

    def _write_state(self, course: int | None = None) -> None:
        write_manifest(self.folder, self._state(course=course))

    def _state(self, asked: Mapping[str, Any] | None = None, **more: Any) -> Manifest:
        asked = self._about["inputs"] if asked is None else asked
        return Manifest(batches=self.batches, journal=self._head, inputs=asked, **more)

    def begin(self, inputs: Mapping[str, Any]) -> None:
        """Write what was asked; of an earlier run nothing is left."""
        inputs = dict(inputs)
        identity = inputs.pop(IDENTITY, {})
        if self._recorded is not None:
            about = read_inputs(self.folder).about
            before = about.get(CHANGED)
            changed = [str(text) for text in before] if isinstance(before, list) else []
            changed += [text for text in self._changed if text not in changed]
            more = {CHANGED: changed} if changed else {}
            self._about = {**about, "inputs": inputs, **more}
            return
        self._lock.acquire()
        if self.careful:
            refuse_unfinished(self.folder, inputs)
        try:
            for name in (MANIFEST, *HASHED, *OPTIONAL):
                (self.folder / name).unlink(missing_ok=True)
            journal.clear(self._journal)
            self._journal.mkdir(exist_ok=True)
        except OSError as error:
            raise ApevalError(
                f"cannot write to the folder {self.folder}: {error.strerror or error}. "
                "Choose another"
            ) from None
        about = provenance(self.command, inputs, identity, self.files, now())
        self._about = {**about, "extends": list(self.extends)}
        write_json(self.folder / INPUTS, self._about)
        self._write_state()

    def close(self) -> None:
        """Let others write to the folder."""
        self._lock.release()

    def recorded(self, first: int, n: int) -> Episodes | None:
        """Episodes that were simulated before the interruption."""
        return None if self._recorded is None else self._recorded.find(first, n)

    def batch(self, episodes: Episodes, position: int) -> None:
        """Append a batch."""
        self._take_over()
        bond = journal.Bond(self._about["inputs_sha256"], self._head)
        with self._resumable():
            head = journal.write_batch(self._journal, self.batches, episodes, position, bond)
            self.batches, self._head = self.batches + 1, head
            self._write_state(self._course)

    def fault(self, entry: dict[str, Any]) -> None:
        """Keep a fault."""
        self._faults.append(entry)
        self._take_over()
        with self._resumable():
            write_listed(self.folder, FAULTS, self._faults)

    def detour(self) -> None:
        """Batches from here on are no part of the run's own course. A method that learns by itself
        and is stopped before it comes to what was recorded leaves the folder as it was: its
        episodes would have the numbers of others."""
        if self._recorded is not None and self._recorded.unread:
            raise KeyboardInterrupt
        self._take_over()
        self._course = self.batches
        with self._resumable():
            self._write_state(self._course)

    def finish(self, outcome: FinishedRun) -> None:
        """Write everything else; the manifest comes last."""
        self._take_over()
        result = outcome.result
        with self._resumable():
            save(result, self.folder)
            write_sample(self.folder, outcome.sample, outcome.ids)
            write_model(self.folder, model_of(result.method, outcome.proposal))
            about = {**self._about, "ended": now(), ANSWER: result.as_json()}
            write_json(self.folder / PROVENANCE, about)
            if self._faults:
                write_listed(self.folder, FAULTS, self._faults)
            else:
                (self.folder / FAULTS).unlink(missing_ok=True)
            course = self.batches if self._course is None else self._course
            state = self._state(
                complete=True,
                interrupted=result.interrupted,
                course=course if result.interrupted else None,
            )
            write_manifest(self.folder, state)

    @contextmanager
    def _resumable(self) -> Iterator[None]:
        try:
            yield
        except StorageError as error:
            raise StorageError(
                f"{error}. What was simulated before is kept: make room, then "
                f"{how_to_resume(self.folder)}"
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
        f"{folder} holds {what}, interrupted: {how_to_resume(folder)} goes on with it, "
        f"{Option('careful', False)} starts over, or choose another folder"
    )
