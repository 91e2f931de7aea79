"""The commands. Heavy modules are imported by the command that needs them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from apeval.errors import ApevalError, blame, unknown, user_frame
from apeval.version import __version__

app = typer.Typer(
    name="apeval",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="How often does a policy fail when failure is too rare to see?\n\n"
    "Start with [bold]apeval list[/bold], then [bold]apeval run minigrid-s1 --steps 9000[/bold].",
    epilog="Exit codes: 0 done, 1 a check failed, 2 bad input (one line says what).",
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Out = Annotated[Path | None, typer.Option("--out", help="Folder for the results.")]
Problem = Annotated[
    str,
    typer.Argument(
        help="A problem's name (see `apeval list`), or your own: file.py:factory, module:factory."
    ),
]
Stored = Annotated[Path, typer.Argument(help="A run folder: what `apeval run … --out` wrote.")]
OwnProblem = Annotated[
    str | None,
    typer.Option(
        "--problem",
        help="The code of your own problem, file.py:factory or module:factory; a run folder does "
        "not bring it along. Problems of apeval need no such option.",
    ),
]
Seeds = Annotated[int | None, typer.Option(help="Repetitions.")]
Tuning = Annotated[
    bool,
    typer.Option("--tuning", help="Use seeds 0, 1, … (for tuning) instead of 10000, 10001, …"),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="A setting of the method (name=value) or of the problem (problem.name=value); "
        "repeat it for several.",
    ),
]


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Answer --version."""
    if show:
        typer.echo(__version__)
        raise typer.Exit


@app.command(name="list")
def list_(
    name: Annotated[str | None, typer.Argument(help="One of them, with its settings.")] = None,
) -> None:
    """List problems and methods, one line each; with a name, its settings.

    Examples: apeval list · apeval list ape-tabular · apeval list walk · apeval list my_problem.py
    """
    from apeval.cli.listing import show

    show(name)


@app.command()
def run(
    problem: Problem,
    method: Annotated[
        str | None, typer.Option(help="A method's name; by default the best for the problem.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Budget in decisions of nature, learning and estimating.")
    ] = None,
    episodes: Annotated[int | None, typer.Option(help="Budget in episodes instead.")] = None,
    target_error: Annotated[
        float | None,
        typer.Option(
            help="Stop when the interval is ± this part of the estimate, such as 0.1; the budget "
            "is then an upper limit (1,000,000 steps if none is given)."
        ),
    ] = None,
    below: Annotated[
        float | None, typer.Option(help="Is the probability below this, such as 1e-5?")
    ] = None,
    view: Annotated[
        str | None, typer.Option(help="What the method sees of the state, such as paper.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Same seed, same result; 0 by default, the next one with --extend."),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Confidence of the interval.")] = 0.95,
    settings: Settings = None,
    extend: Annotated[
        Path | None,
        typer.Option(help="A stored run of the problem, which this one makes more precise."),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check/--no-check", help="Look your own problem over first (2 seconds)."),
    ] = True,
    out: Out = None,
    json: Json = False,
) -> None:
    """Estimate a problem's failure probability.

    Examples: apeval run minigrid-s1 --steps 9000 · apeval run walk --steps 20000 --set
    problem.top=25 --json · apeval run minigrid-s1 --method mc --episodes 5000 --out runs/mc ·
    apeval run int-v1 --target-error 0.1 · apeval run int-v1 --steps 3000 --below 1e-5 ·
    apeval run my_problem.py:problem --episodes 2000 --set problem.gust=0.05 ·
    apeval run int-v1 --steps 9000 --extend runs/x --out runs/y
    """
    from apeval.cli.running import run_problem

    run_problem(
        problem,
        view,
        method,
        steps,
        episodes,
        target_error,
        below,
        seed,
        confidence,
        settings or [],
        out,
        json,
        check,
        extend,
    )


@app.command()
def new(
    path: Annotated[Path, typer.Argument(help="The file to write, such as my_problem.py.")],
    kind: Annotated[
        str, typer.Option(help="gymnasium (an environment) or numpy (a simulator of your own).")
    ] = "gymnasium",
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Write a commented problem of your own that runs as it is.

    Examples: apeval new my_problem.py · apeval new my_simulator.py --kind numpy
    """
    from apeval.cli.own import new as write_new

    write_new(path, kind, force)


@app.command()
def check(
    problem: Problem,
    settings: Settings = None,
    episodes: Annotated[int, typer.Option(help="Episodes to look at.")] = 200,
    seconds: Annotated[float, typer.Option(help="Time it may take, about.")] = 10.0,
    seed: Annotated[int, typer.Option(help="Same seed, same episodes.")] = 0,
    json: Json = False,
) -> None:
    """Look for what would spoil an estimate, and say how to mend it; exit code 1 if there is any.

    Examples: apeval check my_problem.py · apeval check my_problem.py:problem --set
    problem.gust=0.05 · apeval check lab.cars:merge --seconds 60
    """
    from apeval.cli.own import check as check_own

    check_own(problem, settings or [], episodes, seed, seconds, json)


@app.command()
def show(run: Stored, json: Json = False) -> None:
    """Print a stored run again, as it was printed when it ended.

    Examples: apeval show runs/x · apeval show runs/x --json
    """
    from apeval.cli.showing import show_run

    show_run(run, json)


@app.command()
def replay(
    run: Stored,
    failure: Annotated[
        int | None, typer.Option(help="Which recorded failure, from 1 (the default).")
    ] = None,
    mode: Annotated[
        int | None, typer.Option(help="Instead: the most likely failure of this mode, from 1.")
    ] = None,
    problem: OwnProblem = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Draw it: an animated GIF, such as crash.gif.")
    ] = None,
    json: Json = False,
) -> None:
    """Let a recorded failure happen again, exactly, and print it decision by decision.

    Examples: apeval replay runs/x --failure 3 · apeval replay runs/x --failure 3 --out crash.gif ·
    apeval replay runs/x --mode 1 --problem my_problem.py:problem
    """
    from apeval.cli.replaying import replay_run

    replay_run(run, failure, mode, problem, out, json)


@app.command()
def export(
    run: Stored,
    csv: Annotated[Path, typer.Option("--csv", help="Folder for the CSV files.")],
) -> None:
    """Write a stored run as CSV: episodes, decisions, the tail curve, failure modes.

    Examples: apeval export runs/x --csv tables
    """
    from apeval.cli.exporting import export_run

    export_run(run, csv)


@app.command()
def report(
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders; several are compared in one report.")
    ],
    out: Annotated[Path, typer.Option("--out", help="The HTML file to write.")] = Path(
        "report.html"
    ),
    problem: OwnProblem = None,
) -> None:
    """Write a report to look at: one HTML file that opens offline, with charts and replays.

    Examples: apeval report runs/x --out report.html · apeval report runs/x runs/y --out both.html ·
    apeval report runs/mine --problem my_problem.py:problem
    """
    from apeval.cli.reporting import report_runs

    report_runs(runs, out, problem)


@app.command()
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
) -> None:
    """What if the disturbance were wider, or shifted? Answered without simulating.

    The recorded episodes are weighted for the new nominal; where they cannot carry the answer, it
    is refused with the reason and the command to run instead (exit code 1).

    Examples: apeval reweight runs/x --nominal 'std*1.2' · apeval reweight runs/x --nominal
    'mean+0.1' --nominal 'std[2]=0.6' · apeval reweight runs/x --set problem.std=0.6 --json
    """
    from apeval.cli.reweighting import reweight_run

    reweight_run(run, nominal or [], settings or [], problem, confidence, json)


@app.command()
def compare(
    a: Annotated[Path, typer.Argument(help="A run folder: policy A.")],
    b: Annotated[Path, typer.Argument(help="A run folder: policy B, on the same problem.")],
    confidence: Annotated[
        float | None, typer.Option(help="Confidence of the interval; by default that of run A.")
    ] = None,
    json: Json = False,
) -> None:
    """Which of two policies fails more often, and by what factor?

    Examples: apeval compare runs/old runs/new · apeval compare runs/old runs/new --confidence 0.99
    """
    from apeval.cli.merging import compare_runs

    compare_runs(a, b, confidence, json)


@app.command()
def merge(
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders of one problem, with different seeds.")
    ],
    confidence: Annotated[
        float | None,
        typer.Option(help="Confidence of the interval; by default that of the first run."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="JSON file for the answer.")] = None,
    json: Json = False,
) -> None:
    """One answer from several independent runs of a problem.

    They count by their budgets, which were fixed before they were drawn. To make a run that you
    have seen more precise, use `apeval run … --extend`, which allows for the second look.

    Examples: apeval merge runs/seed1 runs/seed2 runs/seed3 · apeval merge runs/a runs/b --json
    """
    from apeval.cli.merging import merge_runs

    merge_runs(runs, confidence, out, json)


@app.command()
def plan(
    problem: Problem,
    target_error: Annotated[
        float, typer.Option(help="The interval's half-width, relative to the estimate.")
    ] = 0.1,
    pilot_steps: Annotated[
        int | None,
        typer.Option(help="Decisions of the pilot; by default what the run itself learns with."),
    ] = None,
    method: Annotated[
        str | None, typer.Option(help="A method's name; by default the best for the problem.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same plan.")] = 0,
    confidence: Annotated[float, typer.Option(help="Confidence of the interval.")] = 0.95,
    settings: Settings = None,
    json: Json = False,
) -> None:
    """How large a budget, and how much time, does a wanted precision take?

    A pilot run tells, and what plain Monte Carlo would take. Exit code 1 where the pilot saw too
    few failures to plan from.

    Examples: apeval plan int-v1 --target-error 0.1 · apeval plan my_problem.py:problem
    --target-error 0.2 --pilot-steps 3000
    """
    from apeval.cli.planning import plan_budget

    plan_budget(problem, target_error, pilot_steps, method, seed, confidence, settings or [], json)


@app.command()
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
) -> None:
    """Print a problem's known failure probability, and how it was obtained.

    Examples: apeval truth walk · apeval truth minigrid-s1 --set problem.p_stay=0.9 --json ·
    apeval truth int-v1 --verify
    """
    from apeval.cli.truths import show_truth, show_verification

    if verify or full:
        show_verification(problem, settings or [], full, seed, json)
    else:
        show_truth(problem, settings or [], json)


@app.command()
def reproduce(
    what: Annotated[
        str,
        typer.Argument(
            help="table1, table2, curves, evolution, multimodal, modes, convergence, environments, "
            "or all of them."
        ),
    ],
    seeds: Seeds = None,
    tuning: Tuning = False,
    out: Out = None,
    json: Json = False,
) -> None:
    """Reproduce a table or figure of the paper, published beside ours.

    Examples: apeval reproduce table1 --seeds 30 --out runs/table1 ·
    apeval reproduce all --out runs/all
    """
    from apeval.cli.experimenting import run_experiment

    run_experiment("reproduce", what, seeds, tuning, out, json)


@app.command()
def bench(
    what: Annotated[str, typer.Argument(help="accuracy, coverage, speed, tabular, floor, twin, …")],
    seeds: Seeds = None,
    rows: Annotated[
        str, typer.Option(help="accuracy, coverage: only these, such as int-v1,pendulum-5000.")
    ] = "",
    methods: Annotated[
        str, typer.Option(help="accuracy, coverage: only these, such as ape,mc,ot-subset.")
    ] = "",
    held_out: Annotated[
        bool, typer.Option("--held-out", help="accuracy: ten geometries that no one tuned on.")
    ] = False,
    tuning: Tuning = False,
    out: Out = None,
    json: Json = False,
) -> None:
    """Measure speed and accuracy on this machine.

    Examples: apeval bench accuracy --rows int-v1 --seeds 20 · apeval bench coverage ·
    apeval bench speed · apeval bench tabular --seeds 100 · apeval bench twin
    """
    from apeval.cli.experimenting import Selection, run_experiment

    selection = Selection(rows, methods, held_out)
    run_experiment("bench", what, seeds, tuning, out, json, selection)


def main() -> None:
    """Run the command line: a user's mistake is one line on stderr and exit code 2."""
    try:
        code = app(standalone_mode=False)
    except ApevalError as error:
        typer.echo(f"apeval: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("apeval: stopped", err=True)
        sys.exit(130)
    except Exception as error:
        if user_frame(error) is not None:  # the user's own problem raised it
            typer.echo(f"apeval: your problem raised {blame(error)}: mend it there", err=True)
            sys.exit(2)
        # a usage error, of click's class or of typer's own copy of it, by version
        if not hasattr(error, "format_message"):
            raise
        if type(error).__name__ != "NoArgsIsHelpError":  # which has shown the help already
            typer.echo(f"apeval: {_usage(error.format_message())}", err=True)
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)


def _usage(message: str) -> str:
    """A usage error in one line, with the nearest command where one is unknown."""
    text = " ".join(message.split())
    if text.startswith("No such command"):
        names = [c.name or getattr(c.callback, "__name__", "") for c in app.registered_commands]
        return str(unknown("command", text.split("'")[1], names))
    return f"{text} (apeval --help)"
