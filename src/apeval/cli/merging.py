"""`apeval compare` and `apeval merge`."""

from __future__ import annotations

from pathlib import Path

from apeval.cli.output import note, print_json, say
from apeval.errors import ApevalError
from apeval.results.comparison_folder import is_comparison, load_comparison
from apeval.results.files import write_json
from apeval.results.folder import load
from apeval.results.store import EXTENSION
from apeval.run.merge import merge
from apeval.run.policy_comparison import compare


def compare_runs(a: Path, b: Path | None, confidence: float | None, json: bool) -> None:
    """Which fails more often, and by what factor; one folder is that of a comparison."""
    if b is None:
        if not is_comparison(a):
            raise ApevalError(
                f"{a} holds no comparison: give a second run folder, or what `apeval "
                "compare-policies … --keep` wrote"
            )
        found = load_comparison(a)
        found = found if confidence is None else found.judged(confidence)
    else:
        found = compare(load(a), load(b), confidence)
    if json:
        print_json(found.as_json())
    else:
        say(str(found))


def merge_runs(paths: list[Path], confidence: float | None, out: Path | None, json: bool) -> None:
    """The runs' common answer."""
    looked = any((path / EXTENSION).exists() for path in paths)
    merged = merge([load(path) for path in paths], extended=looked, confidence=confidence)
    if out is not None:
        write_json(out, merged.as_json())
    if json:
        print_json(merged.as_json())
    else:
        say(str(merged))
        if out is not None:
            note(f"  stored in            {out}")
