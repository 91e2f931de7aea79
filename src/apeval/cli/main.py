"""The commands, put together; and how errors become one line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from apeval.cli import asking, measuring, reading
from apeval.cli.options import Quiet
from apeval.cli.output import hush
from apeval.errors import ApevalError, blame, unknown, user_frame
from apeval.remedies import in_shell
from apeval.version import __version__

app = typer.Typer(
    name="apeval",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="How often does a policy fail when failure is too rare to see?\n\n"
    "Start with [bold]apeval list[/bold], then [bold]apeval run minigrid-s1 --steps 9000[/bold].",
    epilog="\b\nExamples:\n"
    "  apeval run int-v1 --steps 3000 --out runs/x\n"
    "  apeval report runs/x\n\n"
    "\b\nExit codes:\n"
    "  0 done                         1 the answer is no, or there is none yet\n"
    "  2 bad input, said in one line  130 stopped",
)


@app.callback(invoke_without_command=True)
def options(
    show: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    quiet: Quiet = False,
) -> None:
    """Answer --version."""
    if show:
        typer.echo(__version__)
        raise typer.Exit


_PANELS: dict[str, dict[str, Callable[..., None]]] = {
    "Estimate": {
        "list": asking.list_,
        "run": asking.run,
        "resume": asking.resume,
        "plan": asking.plan,
        "truth": asking.truth,
    },
    "Your own problem": {"new": asking.new, "check": asking.check},
    "Stored runs": {
        "show": reading.show,
        "report": reading.report,
        "replay": reading.replay,
        "reweight": reading.reweight,
        "compare": reading.compare,
        "merge": reading.merge,
        "export": reading.export,
    },
    "Experiments": {"reproduce": measuring.reproduce, "bench": measuring.bench},
}
for _panel, _commands in _PANELS.items():
    for _name, _command in _commands.items():
        app.command(name=_name, rich_help_panel=_panel)(_command)


def main() -> None:
    """Run the command line: a user's mistake is one line on stderr and exit code 2."""
    hush(False)
    try:
        code = app(standalone_mode=False)
    except ApevalError as error:
        typer.echo(f"apeval: {in_shell(str(error))}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("apeval: stopped", err=True)
        sys.exit(130)
    except SystemExit as error:
        place = blame(error) if user_frame(error) is not None else ""
        if not place:
            raise
        typer.echo(f"apeval: your problem ended Python with {place}: mend it there", err=True)
        sys.exit(2)
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
        names = [name for commands in _PANELS.values() for name in commands]
        return str(unknown("command", text.split("'")[1], names))
    return f"{text} (apeval --help)"
