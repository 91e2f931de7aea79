"""Keeps a run in a folder while it happens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from apeval.errors import ApevalError
from apeval.results import journal
from apeval.results.files import write_json
from apeval.results.manifest import HASHED, MANIFEST, PROVENANCE, write_finished, write_unfinished
from apeval.results.model import model_of, write_model
from apeval.results.provenance import now, provenance
from apeval.results.samples import write_sample
from apeval.results.store import prepare, save
from apeval.run.recorder import Outcome
from apeval.simulate.episodes import Episodes

_INPUTS = (
    "problem", "view", "method", "seed", "settings", "parameters", "budget", "confidence",
)  # fmt: skip


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
    ) -> None:
        """An earlier run in the folder is replaced; other files there are left alone. `command`
        and the hashes of `files` (a problem's code, a policy) go into provenance.json."""
        self.folder = prepare(Path(folder))
        self.command = command
        self.files = [Path(file) for file in files]
        self.started = now()
        self.batches = 0
        try:
            for name in (MANIFEST, *HASHED):
                (self.folder / name).unlink(missing_ok=True)
            journal.clear(self.folder / journal.JOURNAL)
            (self.folder / journal.JOURNAL).mkdir(exist_ok=True)
        except OSError as error:
            raise ApevalError(
                f"cannot write to the folder {self.folder}: {error.strerror or error}. "
                "Choose another --out"
            ) from None
        write_unfinished(self.folder)

    def begin(self, inputs: Mapping[str, Any]) -> None:
        """A run starts."""

    def detour(self) -> None:
        """Learning was stopped early."""

    def recorded(self, first: int, n: int) -> Episodes | None:
        """Nothing from before."""
        return None

    def fault(self, entry: dict[str, Any]) -> None:
        """Keep a fault."""

    def batch(self, episodes: Episodes, position: int) -> None:
        """Append a batch."""
        journal.write_batch(self.folder / journal.JOURNAL, self.batches, episodes, position)
        self.batches += 1

    def finish(self, outcome: Outcome) -> None:
        """Write everything else; the manifest comes last."""
        result = outcome.result
        save(result, self.folder)
        write_sample(self.folder, outcome.sample, outcome.ids)
        write_model(self.folder, model_of(result.method, outcome.proposal))
        plain = result.as_json()
        inputs = {name: plain[name] for name in _INPUTS}
        about = provenance(self.command, inputs, self.files, self.started, now())
        write_json(self.folder / PROVENANCE, about)
        write_finished(self.folder, self.batches)
