"""Commands that take a problem. Heavy modules are imported by the command that needs them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from apeval.cli.option_flags import takes
from apeval.cli.options import (
    AnswerFile,
    Given,
    Json,
    Method,
    Out,
    OwnProblem,
    Problem,
    Quiet,
    Settings,
    Stored,
    file_option,
    folder_option,
)
from apeval.run.run_options import (
    ComparisonKeywords,
    PlanKeywords,
    RunKeywords,
    SimulationKeywords,
)


def list_(
    name: Annotated[str | None, typer.Argument(help="One of them, with its settings.")] = None,
    quiet: Quiet = False,
) -> None:
    """List problems and methods, one line each; with a name, its settings.

    \b
    Examples:
      apeval list
      apeval list ape-tabular
      apeval list walk
      apeval list my_problem.py
    """
    from apeval.cli.listing import show

    show(name)


@takes(RunKeywords)
def run(
    problem: Problem,
    *,
    method: Method = None,
    given: Given,
    settings: Settings = None,
    view: Annotated[
        str | None, typer.Option(help="What the method sees of the state, such as paper.")
    ] = None,
    extend: Annotated[
        Path | None,
        typer.Option(
            help="A stored run of the problem, which this one makes more precise; with the next "
            "seed unless --seed names one."
        ),
    ] = None,
    tensorboard: Annotated[
        Path | None,
        typer.Option(
            help="Folder for a log of the run's course that TensorBoard shows.",
            **folder_option("tensorboard"),
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over where --out holds an interrupted run.")
    ] = False,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Estimate a problem's failure probability.

    Ctrl-C once stops early with a valid, smaller result (exit code 130), twice at once; with --out
    `apeval resume` goes on.

    \b
    Examples:
      apeval run minigrid-s1 --steps 9000
      apeval run walk --steps 20000 --set problem.top=25 --json
      apeval run minigrid-s1 --method mc --episodes 5000 --out runs/mc
      apeval run int-v1 --target-error 0.1
      apeval run int-v1 --steps 3000 --below 1e-5
      apeval run my_problem.py:problem --episodes 2000 --set problem.gust=0.05
      apeval run int-v1 --steps 9000 --extend runs/x --out runs/y
      apeval run lunarlander --steps 50000 --tensorboard logs/lander
      apeval run my_problem.py --episodes 5000 --backend processes --time-limit 60 --out runs/x
    """
    from apeval.cli.running import run_problem

    run_problem(
        problem,
        method,
        given,
        settings or [],
        view=view,
        extend=extend,
        tensorboard=tensorboard,
        fresh=fresh,
        out=out,
        json=json,
    )


@takes(SimulationKeywords)
def resume(
    run: Stored,
    *,
    problem: OwnProblem = None,
    given: Given,
    allow_changes: Annotated[
        bool,
        typer.Option(
            "--allow-changes", help="Go on although code or libraries are not those of before."
        ),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Go on with an interrupted run, to the very result that it would have had.

    Whatever stopped it: Ctrl-C, kill -9, a full disk, a fault. Recorded episodes are used, only
    what is missing is simulated. A run that is complete is shown.

    \b
    Examples:
      apeval resume runs/x
      apeval resume runs/x --backend processes --workers 8
      apeval resume runs/mine --problem my_problem.py:problem --on-fault unresolved
    """
    from apeval.cli.resuming import resume_run

    resume_run(run, problem, given, allow_changes, json)


def new(
    path: Annotated[
        Path,
        typer.Argument(help="The file to write, such as my_problem.py.", **file_option("path")),
    ],
    kind: Annotated[
        str, typer.Option(help="gymnasium (an environment) or numpy (a simulator of your own).")
    ] = "gymnasium",
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    quiet: Quiet = False,
) -> None:
    """Write a commented problem of your own that runs as it is.

    \b
    Examples:
      apeval new my_problem.py
      apeval new my_simulator.py --kind numpy
    """
    from apeval.cli.own_problems import new as write_new

    write_new(path, kind, force)


def check(
    problem: Problem,
    settings: Settings = None,
    episodes: Annotated[int, typer.Option(help="Episodes to look at.")] = 200,
    seconds: Annotated[float, typer.Option(help="Time it may take, about.")] = 10.0,
    seed: Annotated[int, typer.Option(help="Same seed, same episodes.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Look for what would spoil an estimate, and say how to mend it; exit code 1 if there is any.

    \b
    Examples:
      apeval check my_problem.py
      apeval check my_problem.py:problem --set problem.gust=0.05
      apeval check lab.cars:merge --seconds 60
    """
    from apeval.cli.own_problems import check as check_own

    check_own(problem, settings or [], episodes, seed, seconds, json)


def convert_statistics(
    source: Annotated[
        Path, typer.Argument(help="What VecNormalize.save wrote, such as vecnormalize.pkl.")
    ],
    path: Annotated[
        Path,
        typer.Argument(help="The file to write, such as statistics.npz.", **file_option("path")),
    ],
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    quiet: Quiet = False,
) -> None:
    """Turn the statistics of a policy's observations into a plain file, for normalize=.

    A pickle can run code when it is loaded; a .npz holds mean, variance, epsilon and clip as
    numbers. Here nothing in the pickle is run: only its numbers are read.

    \b
    Examples:
      apeval convert-statistics vecnormalize.pkl statistics.npz
      apeval convert-statistics logs/ppo/Ant-v5_1/Ant-v5/vecnormalize.pkl ant.npz
    """
    from apeval.cli.own_problems import convert

    convert(source, path, force)


@takes(PlanKeywords)
def plan(
    problem: Problem,
    *,
    target_error: Annotated[
        float, typer.Option(help="The interval's half-width, relative to the estimate.")
    ] = 0.1,
    pilot_steps: Annotated[
        int | None,
        typer.Option(help="Decisions of the pilot; by default what the run itself learns with."),
    ] = None,
    method: Method = None,
    given: Given,
    settings: Settings = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """How large a budget, and how much time, does a wanted precision take?

    A pilot run tells, and what plain Monte Carlo would take, which is planned instead where that is
    no more. Exit code 1 where the pilot saw too few failures to plan from.

    \b
    Examples:
      apeval plan int-v1 --target-error 0.1
      apeval plan my_problem.py:problem --target-error 0.2 --pilot-steps 3000
    """
    from apeval.cli.planning import plan_budget

    plan_budget(problem, target_error, pilot_steps, method, given, settings or [], json)


@takes(ComparisonKeywords)
def compare_policies(
    a: Annotated[
        str, typer.Argument(help="The problem with policy A: a name, or file.py:factory.")
    ],
    b: Annotated[
        str | None,
        typer.Argument(
            help="The same problem with policy B; by default A's, with --set-a and --set-b."
        ),
    ] = None,
    *,
    method: Method = None,
    given: Given,
    settings: Settings = None,
    settings_a: Annotated[
        list[str] | None,
        typer.Option("--set-a", help="A setting of problem A alone (problem.name=value)."),
    ] = None,
    settings_b: Annotated[
        list[str] | None,
        typer.Option("--set-b", help="A setting of problem B alone (problem.name=value)."),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            "--keep",
            help="Folder for the comparison with its pairs, which `apeval show`, `report` and "
            "`compare` take.",
            **folder_option("keep"),
        ),
    ] = None,
    until_decided: Annotated[
        bool,
        typer.Option(
            "--until-decided",
            help="Stop as soon as one is shown to fail more often, with intervals that allow for "
            "all looks before; the budget is the most that it may take.",
        ),
    ] = False,
    out: AnswerFile = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Simulate two policies against the same disturbances: which fails more often?

    Episodes come in pairs with common random numbers, so that policies that are alike can be told
    apart with fewer of them; a control arm tells how they fare without disturbances. `apeval
    compare` takes two stored runs instead.

    \b
    Examples:
      apeval compare-policies old.py:problem new.py:problem --steps 20000
      apeval compare-policies int-v1 --set-b problem.ego_speed=9.8 --steps 6000 --seed 1
      apeval compare-policies my.py --set-a problem.gain=0.3 --set-b problem.gain=0.32
      apeval compare-policies old.py new.py --episodes 50000 --until-decided --keep runs/old-new
    """
    from apeval.cli.pairs import compare_in_pairs

    compare_in_pairs(
        (a, b),
        method,
        given,
        settings or [],
        (settings_a or [], settings_b or []),
        until_decided=until_decided,
        keep=keep,
        out=out,
        json=json,
    )


def truth(
    problem: Problem,
    settings: Settings = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Recompute it with fresh seeds and compare.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="With --verify: recompute to the stated error.")
    ] = False,
    seed: Annotated[int, typer.Option(help="With --verify: 10,000 or more.")] = 20_000,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Print a problem's known failure probability, and how it was obtained.

    \b
    Examples:
      apeval truth walk
      apeval truth minigrid-s1 --set problem.p_stay=0.9 --json
      apeval truth int-v1 --verify
    """
    from apeval.cli.truths import show_truth, show_verification

    if verify or full:
        show_verification(problem, settings or [], full, seed, json)
    else:
        show_truth(problem, settings or [], json)
