"""`apeval run`."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Any

import typer

from apeval.cli.progress import live_progress
from apeval.environments import make
from apeval.errors import ApevalError
from apeval.problem.problem import Problem
from apeval.results.store import prepare, save
from apeval.run.evaluate import evaluate

_DEFAULT_STEPS = 9_000
_PREFIX = "problem."


def run_problem(
    name: str,
    view: str | None,
    method: str | None,
    steps: int | None,
    episodes: int | None,
    target_error: float | None,
    below: float | None,
    seed: int,
    confidence: float,
    assignments: list[str],
    out: Path | None,
    json: bool,
) -> None:
    """Evaluate, show, and store where asked."""
    problem, settings = build_problem(name, assignments)
    if view is not None:
        problem = problem.seen_as(view)
    if steps is None and episodes is None and target_error is None:
        steps = _DEFAULT_STEPS
    folder = None if out is None else prepare(out)
    with live_progress(quiet=json) as listener:
        result = evaluate(
            problem,
            method,
            steps=steps,
            episodes=episodes,
            target_error=target_error,
            below=below,
            seed=seed,
            confidence=confidence,
            settings=settings,
            listener=listener,
        )
    if folder is not None:
        save(result, folder)
    if json:
        print_json(result.as_json())
        return
    typer.echo(str(result))
    if folder is not None:
        typer.echo(f"  stored in            {folder}")


def build_problem(name: str, assignments: list[str]) -> tuple[Problem, dict[str, Any]]:
    """The problem with its own settings applied, and what is left for the method."""
    parameters: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    for text in assignments:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise ApevalError(f"--set takes name=value; got '{text}'")
        if key.startswith(_PREFIX):
            parameters[key.removeprefix(_PREFIX)] = value
        else:
            settings[key] = value
    return make(name, **parameters), settings


def print_json(data: dict[str, Any]) -> None:
    """One object on stdout."""
    typer.echo(json_module.dumps(data, allow_nan=False, ensure_ascii=False))
