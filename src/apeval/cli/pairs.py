"""`apeval compare-policies`."""

from __future__ import annotations

from pathlib import Path

from apeval.adapt.address import full_address
from apeval.cli.options import Given
from apeval.cli.output import note, print_json, say
from apeval.cli.running import DEFAULT_STEPS, build_problem, tell_budget
from apeval.errors import ApevalError
from apeval.estimate.compare import UNDECIDED
from apeval.results.comparison_folder import save_comparison
from apeval.results.files import write_json
from apeval.run.paired_policies import compare_anytime, compare_policies


def compare_in_pairs(
    names: tuple[str, str | None],
    method: str | None,
    given: Given,
    assignments: list[str],
    own: tuple[list[str], list[str]],
    *,
    until_decided: bool,
    keep: Path | None,
    out: Path | None,
    json: bool,
) -> None:
    """Simulate both, and say which fails more often; without a second name, one problem with two
    settings."""
    first, second = names
    if second is None and sorted(own[0]) == sorted(own[1]):
        raise ApevalError(
            "both policies are the same: give the problem with policy B as well, or what differs, "
            "--set-a problem.NAME=… --set-b problem.NAME=…"
        )
    if keep is not None and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise ApevalError(f"{keep} exists already: choose another folder, --keep FOLDER")
    open_budget = not {"steps", "episodes"} & given.keys()
    if open_budget:
        given["steps"] = 2 * DEFAULT_STEPS
    (a, settings), (b, _) = (
        build_problem(full_address(name), [*assignments, *more])
        for name, more in zip((first, second or first), own, strict=True)
    )
    given["settings"] = settings
    if until_decided:
        for found in compare_anytime(a, b, method, **given):
            if found.verdict != UNDECIDED:
                break
    else:
        found = compare_policies(a, b, method, **given)
    if keep is not None:
        save_comparison(found, keep)
    if out is not None:
        write_json(out, found.as_json())
    if json:
        print_json(found.as_json())
        return
    if open_budget:
        tell_budget(2 * DEFAULT_STEPS, json)
    say(str(found))
    for stored in (out, keep):
        if stored is not None:
            note(f"  stored in            {stored}")
