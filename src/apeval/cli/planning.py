"""`apeval plan`."""

from __future__ import annotations

import shlex

import typer

from apeval.adapt.address import full_address
from apeval.cli.live_view import live_progress
from apeval.cli.option_flags import in_words
from apeval.cli.options import Given
from apeval.cli.output import print_json, say
from apeval.cli.running import build_problem
from apeval.run.budget_plan import plan


def plan_budget(
    name: str,
    target_error: float,
    pilot_steps: int | None,
    method: str | None,
    given: Given,
    assignments: list[str],
    json: bool,
) -> None:
    """Pilot, then the budget; exit code 1 where the pilot was too short to tell."""
    name = full_address(name)
    problem, settings = build_problem(name, assignments)
    with live_progress(quiet=json) as listener:
        found = plan(
            problem,
            target_error,
            pilot_steps=pilot_steps,
            method=method,
            settings=settings,
            listener=listener,
            command=_command(name, method, given, assignments),
            **given,
        )
    if json:
        print_json(found.as_json())
    else:
        say(str(found))
    if found.steps is None and not found.recommended:
        raise typer.Exit(1)


def _command(name: str, method: str | None, given: Given, assignments: list[str]) -> str:
    words = ["apeval", "run", name]
    words += ["--method", method] if method else []
    words += in_words(given)
    words += [word for text in assignments for word in ("--set", text)]
    return " ".join(shlex.quote(word) for word in words)
