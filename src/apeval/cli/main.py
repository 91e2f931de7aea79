"""The commands. Heavy modules are imported by the command that needs them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from apeval.errors import ApevalError, unknown
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
Problem = Annotated[str, typer.Argument(help="A problem's name; see `apeval list`.")]
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

    Examples: apeval list · apeval list ape-tabular · apeval list walk
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
    seed: Annotated[int, typer.Option(help="Same seed, same result.")] = 0,
    confidence: Annotated[float, typer.Option(help="Confidence of the interval.")] = 0.95,
    settings: Settings = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """Estimate a problem's failure probability.

    Examples: apeval run minigrid-s1 --steps 9000 · apeval run walk --steps 20000 --set
    problem.top=25 --json · apeval run minigrid-s1 --method mc --episodes 5000 --out runs/mc ·
    apeval run int-v1 --target-error 0.1 · apeval run int-v1 --steps 3000 --below 1e-5
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
    )


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
