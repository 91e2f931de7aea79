"""The command group: apeval's own commands, and those of other packages, loaded when called."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

import typer
import typer.core

from apeval.cli.output import stdout_for_results
from apeval.errors import ApevalError, blame, user_frame
from apeval.plugins import COMMANDS, plugged

ELSEWHERE = {
    "reproduce": ("apeval-bench", "Reproduce a table or figure of the paper."),
    "bench": ("apeval-bench", "Measure speed and accuracy on this machine."),
}
"""Commands that the help lists though another package has them: its name for pip, and what the
command does. Their options are loaded with the command."""


def conducted(command: Callable[..., None]) -> Callable[..., None]:
    """A command that has stdout to itself, and whose exceptions come through typer as they are."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            with stdout_for_results():
                command(*arguments, **options)
        except EOFError as error:  # typer takes it for the end of a dialogue
            if user_frame(error) is None:
                raise RuntimeError("the end of a file was not expected") from error
            raise ApevalError(f"your problem raised {blame(error)}: mend it there") from error

    return run


def stand_in(name: str) -> Callable[[], None]:
    """What the help shows of a command that another package has."""
    package, what = ELSEWHERE[name]

    def command() -> None:
        load(name)

    command.__doc__ = f"{what} (pip install {package})"
    return command


def load(name: str) -> Any:
    """A command of another package, or None where nobody has it.

    Raises:
        ApevalError: A package that has it is known, but not installed.
    """
    found = plugged(COMMANDS).get(name)
    if found is not None:
        app = typer.Typer(
            add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich"
        )
        app.command(name=name, cls=Command)(conducted(found.load()))
        return typer.main.get_command(app)
    if name in ELSEWHERE:
        package = ELSEWHERE[name][0]
        raise ApevalError(f"{name} is in another package, not installed: pip install {package}")
    return None


class Command(typer.core.TyperCommand):
    """A command that refuses an option given twice, where only the last one would count."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the line.

        Raises:
            ApevalError: An option that takes one value has several.
        """
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for name, times in Counter(it.opts[0] for it in given if _is_single(it)).items():
            if times > 1:
                raise ApevalError(
                    f"{name} is given {times} times, and would count once: say it once "
                    f"({ctx.command_path} --help)"
                )
        return super().parse_args(ctx, args)


def _is_single(param: Any) -> bool:
    """Whether a parameter is an option with one value, such as --seed; --json twice is no
    contradiction."""
    is_option = param.param_type_name == "option"
    return is_option and not param.multiple and not (param.is_flag and not param.secondary_opts)


class Group(typer.core.TyperGroup):
    """A group that looks for a command in other packages once it is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """The command that the line names; its own come first."""
        if args[0] in ELSEWHERE or args[0] not in self.commands:
            command = load(args[0])
            if command is not None:
                return args[0], command, args[1:]
        return super().resolve_command(ctx, args)
