"""The commands, put together; and how errors become one line and an exit code."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from apeval.cli import hardening_command, problem_commands, run_commands
from apeval.cli.commands import ELSEWHERE, Command, Group, conducted, load, stand_in
from apeval.cli.options import Quiet
from apeval.cli.output import hush
from apeval.errors import ApevalError, blame, unknown, user_frame
from apeval.remedies import in_shell
from apeval.signals import STOPPED, ProgramStoppedError, Stoppable
from apeval.version import __version__

_REFUSED, _CLOSED = 2, 141

app = typer.Typer(
    name="apeval",
    cls=Group,
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
        "list": problem_commands.list_,
        "run": problem_commands.run,
        "resume": problem_commands.resume,
        "plan": problem_commands.plan,
        "compare-policies": problem_commands.compare_policies,
        "truth": problem_commands.truth,
    },
    "Your own problem": {
        "new": problem_commands.new,
        "check": problem_commands.check,
        "convert-statistics": problem_commands.convert_statistics,
    },
    "Stored runs": {
        "show": run_commands.show,
        "report": run_commands.report,
        "replay": run_commands.replay,
        "reweight": run_commands.reweight,
        "compare": run_commands.compare,
        "merge": run_commands.merge,
        "export": run_commands.export,
    },
    "A better policy": {"harden": hardening_command.harden},
    "Experiments": {name: stand_in(name) for name in ELSEWHERE},
}


for _panel, _commands in _PANELS.items():
    for _name, _command in _commands.items():
        app.command(name=_name, cls=Command, rich_help_panel=_panel)(conducted(_command))


def commands() -> dict[str, Any]:
    """Every command by name, with those of installed packages."""
    own: Any = typer.main.get_command(app)
    return {name: load(name) if name in ELSEWHERE else it for name, it in own.commands.items()}


def main() -> None:
    """Run the command line: a user's mistake is one line on stderr and exit code 2, a signal one
    line and exit code 130."""
    hush(False)
    signalled = Stoppable()
    try:
        with signalled:
            code = _run(signalled)
    except ProgramStoppedError:  # it came while another end was told, or signals were put back
        signalled.restore()
        code = _told("stopped", STOPPED)
    sys.exit(code)


def _run(signalled: Stoppable) -> int:
    try:
        code = app(standalone_mode=False)
    except BaseException as error:
        if signalled.asked or isinstance(error, typer.Abort):
            return _told("stopped", STOPPED)
        return _explained(error)
    if signalled.asked and code != STOPPED:  # the exception got lost in somebody's `except`
        return _told("stopped", STOPPED)
    return code if isinstance(code, int) else 0


def _explained(error: BaseException) -> int:
    """An error as one line and an exit code; raised again where it is a mistake of apeval."""
    if isinstance(error, ApevalError):
        return _told(in_shell(str(error)), _REFUSED)
    if isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError):
        error = error.__context__  # libraries end Python with exit code 1 there
    users = user_frame(error) is not None
    if isinstance(error, BrokenPipeError) and not users:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _CLOSED
    if isinstance(error, OSError) and error.errno == errno.ENOSPC and not users:
        return _told(f"cannot write: {error.strerror}", _REFUSED)
    if isinstance(error, SystemExit):
        if not users:
            raise error
        return _told(f"your problem ended Python with {blame(error)}: mend it there", _REFUSED)
    if users:  # the user's own problem raised it
        return _told(f"your problem raised {blame(error)}: mend it there", _REFUSED)
    # a usage error, of click's class or of typer's own copy of it, by version
    if not hasattr(error, "format_message"):
        raise error
    if type(error).__name__ != "NoArgsIsHelpError":  # which has shown the help already
        _told(_usage(error.format_message(), _typed(error)), _REFUSED)
    return _REFUSED


def _told(text: str, code: int) -> int:
    typer.echo(f"apeval: {text}", err=True)
    return code


def _typed(error: BaseException) -> str:
    """The command that a usage error is about, as it is typed."""
    context = getattr(error, "ctx", None)
    return "apeval" if context is None or context.parent is None else f"apeval {context.info_name}"


def _usage(message: str, command: str) -> str:
    """A usage error in one line, with the nearest command where one is unknown."""
    text = " ".join(message.split())
    if text.startswith("No such command"):
        names = [name for commands in _PANELS.values() for name in commands]
        return str(unknown("command", text.split("'")[1], names))
    return f"{text} ({command} --help)"
