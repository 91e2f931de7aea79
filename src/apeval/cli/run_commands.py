"""Commands that read stored runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from apeval.cli.options import (
    STORED,
    AnswerFile,
    Json,
    OwnProblem,
    Quiet,
    Stored,
    file_option,
    folder_option,
)


def show(run: Stored, json: Json = False, quiet: Quiet = False) -> None:
    """Print a stored run again, as it was printed when it ended.

    \b
    Examples:
      apeval show runs/x
      apeval show runs/x --json
    """
    from apeval.cli.showing import show_run

    show_run(run, json)


def replay(
    run: Stored,
    failure: Annotated[
        int | None, typer.Option(help="Which recorded failure, from 1 (the default).")
    ] = None,
    mode: Annotated[
        int | None, typer.Option(help="Instead: the most likely failure of this mode, from 1.")
    ] = None,
    fault: Annotated[
        int | None,
        typer.Option(help="Instead: a fault of the simulator (faults.json), from 1, in safety."),
    ] = None,
    problem: OwnProblem = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Draw it: an animated GIF, such as crash.gif.", **file_option("out")
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Let a recorded failure happen again, exactly, and print it decision by decision.

    \b
    Examples:
      apeval replay runs/x --failure 3
      apeval replay runs/x --failure 3 --out crash.gif
      apeval replay runs/x --mode 1 --problem my_problem.py:problem
      apeval replay runs/x --fault 1
    """
    from apeval.cli.replaying import replay_run

    replay_run(run, failure, mode, fault, problem, out, json)


def export(
    run: Stored,
    csv: Annotated[
        Path, typer.Option("--csv", help="Folder for the CSV files.", **folder_option("csv"))
    ],
    quiet: Quiet = False,
) -> None:
    """Write a stored run as CSV: episodes, decisions, the tail curve, failure modes.

    \b
    Examples:
      apeval export runs/x --csv tables
    """
    from apeval.cli.exporting import export_run

    export_run(run, csv)


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Run folders; several are compared in one report.", **STORED),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="The HTML file to write; by default report.html, unless that exists and is not "
            "a report of the same runs.",
            **file_option("out"),
        ),
    ] = None,
    problem: OwnProblem = None,
    quiet: Quiet = False,
) -> None:
    """Write a report to look at: one HTML file that opens offline, with charts and replays.

    \b
    Examples:
      apeval report runs/x --out report.html
      apeval report runs/x runs/y --out both.html
      apeval report runs/mine --problem my_problem.py:problem
    """
    from apeval.cli.reporting import report_runs

    report_runs(runs, out, problem)


def reweight(
    run: Stored,
    nominal: Annotated[
        list[str] | None,
        typer.Option(
            help="A change of the nominal disturbance: 'std*1.2', 'std+20%', 'mean+0.1', "
            "'std[2]=0.6' (component 2), 'probabilities[1]*3'; repeat it for several."
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Instead: a setting of the problem (problem.name=value) that changes nothing but "
            "the nominal; repeat it for several.",
        ),
    ] = None,
    problem: OwnProblem = None,
    confidence: Annotated[
        float | None, typer.Option(help="Confidence of the interval; by default the run's.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """What if the disturbance were wider, or shifted? Answered without simulating.

    The recorded episodes are weighted for the new nominal; where they cannot carry the answer, it
    is refused with the reason and the command to run instead (exit code 1).

    \b
    Examples:
      apeval reweight runs/x --nominal 'std*1.2'
      apeval reweight runs/x --nominal 'mean+0.1' --nominal 'std[2]=0.6'
      apeval reweight runs/x --set problem.std=0.6 --json
    """
    from apeval.cli.reweighting import reweight_run

    reweight_run(run, nominal or [], settings or [], problem, confidence, json)


def compare(
    a: Annotated[Path, typer.Argument(help="A run folder: policy A.")],
    b: Annotated[
        Path | None,
        typer.Argument(
            help="A run folder: policy B, on the same problem. Without it, A is the folder of a "
            "comparison (compare-policies --keep), which is judged again."
        ),
    ] = None,
    confidence: Annotated[
        float | None, typer.Option(help="Confidence of the interval; by default that of run A.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Which of two policies fails more often, and by what factor?

    \b
    Examples:
      apeval compare runs/old runs/new
      apeval compare runs/old runs/new --confidence 0.99
      apeval compare runs/old-against-new --confidence 0.99
    """
    from apeval.cli.merging import compare_runs

    compare_runs(a, b, confidence, json)


def merge(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Run folders of one problem, with different seeds.", **STORED),
    ],
    confidence: Annotated[
        float | None,
        typer.Option(help="Confidence of the interval; by default that of the first run."),
    ] = None,
    out: AnswerFile = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """One answer from several independent runs of a problem.

    They count by their budgets, which were fixed before they were drawn. To make a run that you
    have seen more precise, use `apeval run … --extend`, which allows for the second look.

    \b
    Examples:
      apeval merge runs/seed1 runs/seed2 runs/seed3
      apeval merge runs/a runs/b --json
    """
    from apeval.cli.merging import merge_runs

    merge_runs(runs, confidence, out, json)
