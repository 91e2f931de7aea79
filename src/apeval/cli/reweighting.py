"""`apeval reweight`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import typer

from apeval.cli.output import print_json, say
from apeval.cli.running import PREFIX
from apeval.errors import ApevalError
from apeval.problem.law_change import parse_change
from apeval.results.folder import Run, load
from apeval.run.whatif import WhatIf, reweight

_DROPPED = {"--out": 1, "--extend": 1, "--json": 0}


def reweight_run(
    path: Path,
    nominal: list[str],
    assignments: list[str],
    address: str | None,
    confidence: float | None,
    json: bool,
) -> None:
    """Answer, or say why not and what to type instead; exit code 1 without an answer."""
    if bool(nominal) == bool(assignments):
        raise ApevalError(
            "say what changes: --nominal 'std*1.2' (the disturbance itself) or "
            "--set problem.std=0.6 (a setting of the problem that changes nothing else)"
        )
    run = load(path)
    if nominal:
        if address is not None:
            run.problem(address)  # not needed: the folder has the laws. But it must be the run's
        answer = reweight(run, nominal, confidence=confidence)
    else:
        changed = run.problem(address, **_parameters(assignments))
        answer = reweight(run, problem=changed, confidence=confidence)
    remedy = _remedy(run, answer, nominal, assignments) if answer.refused else None
    if json:
        print_json({"run": str(path), **answer.as_json(), "remedy": remedy})
    else:
        say(f"{run.result.problem} · {path}")
        say(str(answer))
        if remedy:
            say(f"  instead              {remedy}")
    if answer.refused:
        raise typer.Exit(1)


def _parameters(assignments: list[str]) -> dict[str, Any]:
    parameters = {}
    for text in assignments:
        key, sign, value = text.partition("=")
        if not sign or not key.startswith(PREFIX):
            raise ApevalError(f"--set takes problem.name=value here; got '{text}'")
        parameters[key.removeprefix(PREFIX)] = value
    return parameters


def _remedy(run: Run, answer: WhatIf, nominal: list[str], assignments: list[str]) -> str:
    """The command that simulates the changed problem."""
    settings = assignments or _as_settings(run, nominal)
    words = [*_command(run), *(w for text in settings for w in ("--set", text))]
    command = " ".join(shlex.quote(word) for word in words)
    return command if settings else f"change the nominal in the problem's code, then {command}"


def _command(run: Run) -> list[str]:
    """What made the run, without where it was stored."""
    made_by = run.provenance.get("command")
    words = shlex.split(made_by) if isinstance(made_by, str) else []
    if words[:2] != ["apeval", "run"]:
        unit, size = next(iter(run.result.budget.items()))
        return ["apeval", "run", run.result.problem or "PROBLEM", f"--{unit}", str(size)]
    kept: list[str] = []
    skip = 0
    for word in words:
        name = word.partition("=")[0]
        if skip:
            skip -= 1
        elif name in _DROPPED:
            skip = _DROPPED[name] if "=" not in word else 0
        else:
            kept.append(word)
    return kept


def _as_settings(run: Run, nominal: list[str]) -> list[str]:
    """The same change by settings of the problem, where it has ones of the same names; else
    none."""
    settings = []
    for text in nominal:
        change = parse_change(text)
        value = run.result.parameters.get(change.field)
        if change.index is not None or change.initial or not isinstance(value, int | float):
            return []
        settings.append(f"{PREFIX}{change.field}={change.number_from(float(value)):.6g}")
    return settings
