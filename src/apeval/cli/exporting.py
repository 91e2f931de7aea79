"""`apeval export`."""

from __future__ import annotations

from pathlib import Path

from apeval.cli.output import note
from apeval.results.export import export_csv
from apeval.results.folder import load


def export_run(path: Path, folder: Path) -> None:
    """Write the tables, and say where."""
    for file in export_csv(load(path), folder):
        note(str(file))
