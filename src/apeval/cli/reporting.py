"""`apeval report`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from apeval.cli.output import note
from apeval.errors import ApevalError
from apeval.hardening.rounds import rounds_in
from apeval.results.folder import load
from apeval.results.report import write_report

_USUAL = Path("report.html")


def report_runs(runs: Sequence[Path], out: Path | None, problem: str | None) -> None:
    """Write the file, and say where it is. The folder of a hardening stands for its rounds."""
    runs = [it for run in runs for it in rounds_in(run) or [run]]
    if out is None:
        out = _USUAL
        _refuse_another(out, runs)
    note(f"report in {write_report(runs, out, problem)}")


def _refuse_another(out: Path, runs: Sequence[Path]) -> None:
    """Without --out nothing is overwritten but a report of the same runs, which has their seals."""
    if not out.exists():
        return
    text = out.read_text("utf-8", "replace") if out.is_file() else ""
    if not all(load(run).seal in text for run in runs):
        raise ApevalError(
            f"{out} exists, and is no report of {', '.join(map(str, runs))}: name the file to "
            "write, --out FILE"
        )
