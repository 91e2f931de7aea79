"""`apeval report`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from apeval.cli.output import note
from apeval.results.report import write_report


def report_runs(runs: Sequence[Path], out: Path, problem: str | None) -> None:
    """Write the file, and say where it is."""
    note(f"report in {write_report(runs, out, problem)}")
