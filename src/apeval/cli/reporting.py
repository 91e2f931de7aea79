"""`apeval report`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from apeval.cli.output import note
from apeval.errors import ApevalError
from apeval.hardening.report_page import story_of
from apeval.hardening.stored_rounds import rounds_in
from apeval.results.comparison_folder import is_comparison
from apeval.results.comparison_report import write_comparison_report
from apeval.results.folder import load
from apeval.results.report import write_report

_USUAL = Path("report.html")


def report_runs(runs: Sequence[Path], out: Path | None, problem: str | None) -> None:
    """Write the file, and say where it is. The folder of a hardening stands for its rounds; alone,
    it has a page of its own, with replays by its policies where the user names the problem's code,
    as loading a policy executes code too."""
    if any(is_comparison(run) for run in runs):
        _report_comparison(runs, out, problem)
        return
    story = None
    if len(runs) == 1 and rounds_in(runs[0]):
        story = story_of(runs[0], policies=problem is not None)
    runs = [it for run in runs for it in rounds_in(run) or [run]]
    if out is None:
        out = _USUAL
        _refuse_another(out, runs)
    note(f"report in {write_report(runs, out, problem, story)}")


def _report_comparison(runs: Sequence[Path], out: Path | None, problem: str | None) -> None:
    """The page of one comparison, by default in its own folder."""
    if len(runs) > 1 or problem is not None:
        raise ApevalError("the report of a comparison has one folder, and needs no --problem")
    note(f"report in {write_comparison_report(runs[0], out or runs[0] / _USUAL)}")


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
