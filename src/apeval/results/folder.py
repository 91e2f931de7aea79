"""A stored run, read back: `apeval.load("runs/x")`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from apeval.errors import ApevalError
from apeval.estimate.sample import Sample
from apeval.problem.draws import make_key
from apeval.problem.problem import Problem
from apeval.problem.types import IntArray
from apeval.results import journal
from apeval.results.consistency import check_agreement, check_batch
from apeval.results.dataclass_json import build
from apeval.results.files import read_json, read_object
from apeval.results.inputs import check_about
from apeval.results.manifest import PROVENANCE, Manifest, check, check_all, read_complete, seal
from apeval.results.model import ARRAYS, STRUCTURE, StoredModel, read_model
from apeval.results.plausible import check_records, check_result
from apeval.results.problem_rebuild import build_again
from apeval.results.samples import SAMPLE, read_sample
from apeval.results.store import CURVE, RECORDS, RESULT
from apeval.run.result import SCHEMA_VERSION, Result
from apeval.run.run_tables import RunTables
from apeval.simulate.episodes import Episodes, join
from apeval.simulate.identity.identity import differences, identify, in_short
from apeval.simulate.identity.reference import reference

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def load(path: str | Path) -> Run:
    """A finished run from its folder. Nothing in the folder is executed, and nothing written.

    Args:
        path: The run folder.

    Returns:
        The run. Its result is read at once; the sample, the episodes and the model when first
        asked for.

    Raises:
        ApevalError: The folder is damaged, foreign or of another version; the message says so.
    """
    if not isinstance(path, str | Path):
        raise ApevalError(f"load wants the path of a run folder, got {type(path).__name__}")
    folder = Path(path)
    manifest = read_complete(folder)
    check_all(folder, manifest)
    records = read_json(folder / RECORDS)
    curve = read_json(folder / CURVE)
    where = folder / RESULT
    data = read_object(where)
    if data.get("schema_version") != SCHEMA_VERSION:
        raise ApevalError(
            f"{where} has the schema version {data.get('schema_version')!r}; this apeval reads "
            f"{SCHEMA_VERSION}: load it with the apeval that wrote it, or run again"
        )
    result = build(Result, {**data, "records": records, "curve": curve}, where)
    check_result(result, where)
    check_records(result.records, folder / RECORDS)
    provenance = read_object(folder / PROVENANCE)
    check_about(provenance, folder / PROVENANCE)
    run = Run(folder, result, provenance, manifest)
    check_agreement(run)
    return run


@dataclass(frozen=True)
class Run:
    """A run as its folder holds it."""

    path: Path
    """The folder."""
    result: Result
    """What `evaluate` returned."""
    provenance: Mapping[str, Any]
    """Command, inputs, versions, platform, hashes and times."""
    manifest: Manifest
    """Which files the run has, and their hashes."""

    def __str__(self) -> str:
        return str(self.result)

    def _repr_html_(self) -> str:
        """As a notebook shows it."""
        return self.result._repr_html_()

    def plot(self) -> Figure:
        """See `Result.plot`.

        Returns:
            A Matplotlib figure.

        Raises:
            ApevalError: Matplotlib is not installed.
        """
        return self.result.plot()

    @property
    def records(self) -> tuple[Mapping[str, Any], ...]:
        """Replay records of the first failures of the sample."""
        return self.result.records

    @property
    def curve(self) -> tuple[tuple[int, float], ...]:
        """(steps, learned v(s0)) along the way."""
        return self.result.curve

    @property
    def key(self) -> IntArray:
        """With an episode's number it names all of its random numbers."""
        return make_key(self.result.seed)

    @property
    def identity(self) -> Mapping[str, Any]:
        """The problem's fingerprint, made when the run began."""
        identity: Mapping[str, Any] = self.provenance["identity"]
        return identity

    @property
    def seal(self) -> str:
        """SHA-256 of the manifest: noted elsewhere, it tells whether anything in the folder was
        rewritten since."""
        return seal(self.path)

    @property
    def sample(self) -> Sample:
        """What the estimate was computed from, bit for bit."""
        return self._sample[0]

    @property
    def ids(self) -> IntArray:
        """Numbers of the sample's episodes, (n,)."""
        return self._sample[1]

    @cached_property
    def _sample(self) -> tuple[Sample, IntArray]:
        check(self.path, SAMPLE, self.manifest)
        sample, ids = read_sample(self.path)
        sample = replace(sample, estimator=self.result.estimator)
        kinds = len(self.result.kinds)
        if sample.n != self.result.final.episodes or int(sample.kind.max()) > kinds:
            raise ApevalError(f"{self.path / SAMPLE} is damaged: it does not fit the result")
        return sample, ids

    @cached_property
    def episodes(self) -> Episodes:
        """The sample's episodes in its order, with every decision."""
        found = self._join(counted=True)
        if found is None or not np.array_equal(found.ids, self.ids):
            raise ApevalError(f"{self.path / journal.JOURNAL} is damaged: episodes are missing")
        return found

    @property
    def tables(self) -> RunTables:
        """Episodes, decisions and failures as Arrow tables; `to_pandas()` makes DataFrames."""
        return RunTables(self.sample, self.episodes, tuple(self.result.kinds))

    @cached_property
    def learning(self) -> Episodes | None:
        """Episodes that were drawn while learning and do not count in the estimate; None where
        the method kept none (it learned step by step, or not at all)."""
        return self._join(counted=False)

    def batches(self) -> Iterator[Episodes]:
        """All recorded batches in order, one at a time.

        Yields:
            The episodes of a batch.

        Raises:
            ApevalError: The journal is damaged.
        """
        folder, it = self.path / journal.JOURNAL, self.manifest
        bound = str(self.provenance["inputs_sha256"])
        found = 0
        for batch in journal.read_batches(folder, bound, it.batches, it.journal):
            found += check_batch(self.path, batch, self.sample, self.ids)
            yield batch
        if found != len(self.ids):
            raise ApevalError(f"{folder} is damaged: episodes are missing")

    def _join(self, counted: bool) -> Episodes | None:
        kept = []
        for batch in self.batches():
            mine = np.isin(batch.ids, self.ids) == counted
            if mine.all():
                kept.append(batch)
            elif mine.any():
                kept.append(batch.take(mine))
        if not kept:
            return None
        if len({_shapes(batch) for batch in kept}) > 1:
            raise ApevalError(f"{self.path / journal.JOURNAL} is damaged: batches do not fit")
        return join(kept)

    def differs_from(self, problem: Problem, ignore: Sequence[str] = ()) -> list[str]:
        """What tells a problem from the one that was evaluated, in words. Its view may differ, and
        files that it is made of, as long as it does the same.

        Args:
            problem: The problem in question.
            ignore: Further entries of the fingerprint that may differ.

        Returns:
            A few words for each difference; none where it is the same problem.
        """
        asked = bool(self.identity.get("answers"))
        now = identify(problem, lambda: reference(problem) if asked else None)
        return differences(self.identity, now, ignore=("view", "files", *ignore))

    @cached_property
    def model(self) -> StoredModel:
        """The frozen proposal as numbers."""
        for name in (ARRAYS, STRUCTURE):
            check(self.path, name, self.manifest)
        return read_model(self.path)

    def problem(self, address: str | None = None, **changes: Any) -> Problem:
        """The problem that was evaluated, built again and seen through the same view.

        Args:
            address: Where the code of a problem of your own is (`"file.py:factory"`): a folder's
                word alone does not make apeval run code. Not needed for a problem that comes with
                apeval.
            **changes: Parameters that are to differ.

        Returns:
            The problem.

        Raises:
            ApevalError: It is not the problem of this run; the message says what differs.
        """
        result = self.result
        problem = build_again(result.problem, result.parameters, address, self.path, changes)
        if not changes:
            return self.fitting(problem)
        problem = self._same_kinds(problem)
        if address is not None:
            _check_widths(
                problem, self.episodes, f"{problem.name} is not the problem of {self.path}"
            )
        return problem

    def fitting(self, problem: Problem) -> Problem:
        """A problem that was built otherwise, seen through the run's view, if it is the run's.

        Args:
            problem: Such as one with the policy that the run was about.

        Raises:
            ApevalError: It is not the problem of this run; the message says what differs.
        """
        problem = self._same_kinds(problem)
        # code may be written otherwise as long as it does the same, where that can be asked
        asked = bool(self.identity.get("answers"))
        free = ("name", "files", "code") if asked else ("name", "files")
        now = identify(problem, lambda: reference(problem) if asked else None)
        found = differences(self.identity, now, free)
        if found:
            raise ApevalError(
                f"{problem.name} is not the problem of {self.path}: {in_short(found)}"
            )
        return problem

    def _same_kinds(self, problem: Problem) -> Problem:
        """The problem through the run's view; refused where it fails in other ways."""
        result = self.result
        if list(problem.kinds) != list(result.kinds):
            raise ApevalError(
                f"{problem.name} is not the problem of {self.path}: its failures are "
                f"{', '.join(problem.kinds)}, there they are {', '.join(result.kinds)}"
            )
        return problem.seen_as(result.view)


def _shapes(batch: Episodes) -> tuple[Any, ...]:
    """What batches of one run have in common."""
    widths = [v.shape[1:] for v in (batch.s, batch.a_A, batch.a_E, batch.a_0)]
    laws = (batch.law, batch.law_0)
    return (
        *widths,
        *((type(it), *(np.shape(v)[1:] for v in vars(it).values())) for it in laws if it),
    )


def _check_widths(problem: Problem, it: Episodes, otherwise: str) -> None:
    """Whether recorded disturbances are of the problem's width."""
    start = 0 if problem.initial is None else problem.initial.dim
    for what, mine, recorded in (
        ("a decision", problem.nominal.dim, it.a_E.shape[1]),
        ("the start", start, it.a_0.shape[1]),
    ):
        if mine != recorded:
            raise ApevalError(
                f"{otherwise}: there {what} has {recorded} components of disturbance, here {mine}"
            )
