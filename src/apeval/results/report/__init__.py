"""The report: one HTML file that opens offline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from apeval import validate
from apeval.errors import ApevalError

if TYPE_CHECKING:
    from apeval.results.report.rounds_page import TrainingStory

__all__ = ["write_report"]


def write_report(
    runs: Sequence[Path | str],
    out: Path | str,
    problem: str | None = None,
    story: TrainingStory | None = None,
) -> Path:
    """Write the report of one run folder, or of several side by side; returns its path.

    `problem` says where the code of a problem of one's own is (`"file.py:factory"`); without it
    such a run's replays show recorded series only. A `story` says that the runs are the rounds of a
    training.
    """
    from apeval.atomic_files import write_bytes
    from apeval.results.folder import load
    from apeval.results.report.page import render
    from apeval.results.report.report_data import distinct, gather

    if not isinstance(runs, Sequence) or isinstance(runs, str) or not runs:
        raise ApevalError("runs must be a list of at least one run folder")
    out = validate.output_file("out", out)
    fits = [None] * len(runs) if story is None else [it.fits for it in story.rounds]
    materials = [gather(load(run), problem, fit) for run, fit in zip(runs, fits, strict=True)]
    if problem is not None and all(it.problem is None for it in materials):
        raise ApevalError(materials[0].missing[0])
    text = render(distinct(materials, [Path(run) for run in runs]), story)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ApevalError(
            f"cannot make the folder {out.parent}: {error.strerror or error}. Choose another file"
        ) from None
    return write_bytes(out, text.encode("utf-8", "replace"))
