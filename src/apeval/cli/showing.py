"""`apeval show`."""

from __future__ import annotations

from pathlib import Path

from apeval.cli.output import print_json, say
from apeval.hardening.stored_rounds import read_hardening, rounds_in
from apeval.results.comparison_folder import is_comparison, load_comparison
from apeval.results.extension import read_extension
from apeval.results.folder import load


def show_run(path: Path, json: bool) -> None:
    """What the run printed, from its folder; or a hardening with its rounds; or a comparison."""
    if rounds_in(path):
        hardening = read_hardening(path)
        print_json(hardening.as_json()) if json else say(str(hardening))
        return
    if is_comparison(path):
        found = load_comparison(path)
        print_json(found.as_json()) if json else say(str(found))
        return
    run = load(path)
    if json:
        print_json(run.result.as_json())
    else:
        say(str(run))
        extended = read_extension(run.path)
        if extended is not None:
            say(f"\nwith the runs that it extends\n{extended}")
