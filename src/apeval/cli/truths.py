"""`apeval truth`."""

from __future__ import annotations

import typer

from apeval.cli.output import print_json, say
from apeval.cli.running import build_problem
from apeval.errors import ApevalError
from apeval.problem.problem import Problem
from apeval.run.verify import REPORTING, verify_truth


def show_truth(name: str, assignments: list[str], json: bool) -> None:
    """Print what is known, and how."""
    problem = _problem(name, assignments)
    if problem.truth is None:
        raise ApevalError(f"no truth is known for {name} with these parameters")
    known = problem.truth()
    if json:
        print_json({"problem": name, "parameters": dict(problem.parameters), **known.as_json()})
        return
    error = "exact" if known.standard_error == 0.0 else f"± {known.standard_error:.2e}"
    say(f"{name}: {known.value:.6e} ({error}), {known.method}")
    for key, value in known.provenance.items():
        say(f"  {key}: {value}")


def show_verification(name: str, assignments: list[str], full: bool, seed: int, json: bool) -> None:
    """Recompute, compare, and say whether both agree; exit code 1 where they do not."""
    if seed not in REPORTING:
        raise ApevalError(f"--verify wants a fresh seed of {REPORTING.start:,} or more; got {seed}")
    outcome = verify_truth(_problem(name, assignments), full, seed)
    if json:
        print_json(dict(outcome))
    else:
        for part in outcome.get("checks", [outcome]):
            for key, value in part.items():
                say(f"  {key}: {value}")
        say(f"{name}: the truth {'holds' if outcome['agrees'] else 'DOES NOT HOLD'}")
    if not outcome["agrees"]:
        raise typer.Exit(1)


def _problem(name: str, assignments: list[str]) -> Problem:
    problem, settings = build_problem(name, assignments)
    if settings:
        raise ApevalError(
            f"truth takes problem settings only: write problem.{next(iter(settings))}"
        )
    return problem
