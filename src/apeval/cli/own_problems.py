"""`apeval new`, `apeval check` and `apeval convert-statistics`."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from apeval import validate
from apeval.adapt.observation_statistics import read_statistics
from apeval.adapt.problem_template import write_template
from apeval.cli.output import note, print_json, say
from apeval.cli.running import build_problem
from apeval.errors import ApevalError
from apeval.remedies import Option
from apeval.simulate.check import check_problem
from apeval.simulate.check.report import CheckReport


def new(path: Path, kind: str, force: bool) -> None:
    """Write a template, and say what to do with it."""
    write_template(path, kind, force)
    note(f"wrote {path}; next:\n  apeval check {path}\n  apeval run {path} --episodes 2000")


def convert(source: Path, path: Path, force: bool) -> None:
    """Write statistics as a plain file, and say what to do with it."""
    if path.suffix != ".npz":
        raise ApevalError(f"'{path}' is no plain file of numbers: end its name in .npz")
    if os.path.lexists(path) and not force:
        raise ApevalError(
            f"'{path}' exists: choose another name, or overwrite it with {Option('force', True)}"
        )
    statistics = read_statistics(source)
    if statistics is None:
        raise ApevalError(
            f"'{source}' says that observations were not normalised (norm_obs=False): the policy "
            "takes them as they are, apeval.load_sb3(path, normalize=None)"
        )
    statistics.save(path)
    note(f"wrote {path}; next:\n  policy=apeval.load_sb3('policy.zip', normalize='{path}')")


def check(
    name: str, assignments: list[str], episodes: int, seed: int, seconds: float, json: bool
) -> None:
    """Check a problem and report; exit code 1 where something must be mended."""
    episodes = validate.whole("episodes", episodes, 2, 1_000_000)
    seed, seconds = validate.seed(seed), validate.seconds("seconds", seconds)
    problem, settings = build_problem(name, assignments)
    if settings:
        raise ApevalError(
            f"check takes problem settings only: write problem.{next(iter(settings))}"
        )
    report = check_problem(problem, episodes=episodes, seed=seed, seconds=seconds)
    if json:
        print_json(_as_json(report))
    else:
        say(str(report))
    if not report.ok:
        raise typer.Exit(1)


def _as_json(report: CheckReport) -> dict[str, object]:
    return {
        "problem": report.problem,
        "ok": report.ok,
        "complete": report.complete,
        "findings": [
            {"name": f.name, "ok": f.ok, "remark": f.remark, "message": f.message}
            for f in report.findings
        ],
    }
