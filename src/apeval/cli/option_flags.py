"""The options of a run as flags of the commands that take them."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import typing
from collections.abc import Callable
from inspect import Parameter
from itertools import pairwise
from typing import Any

import typer

from apeval.run import run_options as options

GIVEN = "given"


def takes(keywords: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a run that a function takes as `keywords`.

    They stand in the place of the command's parameter `given`, which gets those that were named on
    the command line. What was not named is left to whoever is called with them.

    Args:
        keywords: `RunKeywords`, or what it is made of.
    """
    names = flags_of(keywords)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(**values: Any) -> None:
            given = {name: values.pop(name) for name in names}
            command(given={k: v for k, v in given.items() if v is not None}, **values)

        before = inspect.signature(command, eval_str=True)
        after: list[Parameter] = []
        for parameter in before.parameters.values():
            after += [_flag(name) for name in names] if parameter.name == GIVEN else [parameter]
        after = [it.replace(kind=Parameter.KEYWORD_ONLY) for it in after]
        run.__signature__ = before.replace(parameters=after)  # type: ignore[attr-defined]
        run.__annotations__ = {it.name: it.annotation for it in after}
        return run

    return decorate


def in_words(given: dict[str, Any]) -> list[str]:
    """Options as they are typed; those that are the default are left out.

    >>> in_words({"seed": 3, "time_limit": 60.0, "check": False, "retries": 1})
    ['--seed', '3', '--time-limit', '60.0', '--no-check']
    """
    words: list[str] = []
    for name, value in given.items():
        if value == options.DEFAULTS[name]:
            continue
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            words += [f"--{flag}", str(value)]
    return words


def flags_of(keywords: type) -> list[str]:
    """The options among a function's keywords that are flags, in the order of the help."""
    return [name for name in options.FLAGS if name in keywords.__annotations__]


def described(name: str) -> str:
    """What stands below an option's name in `apeval.run.run_options`; empty where
    apeval is installed without its source files."""
    return _texts().get(name, "")


@functools.cache
def _flag(name: str) -> Parameter:
    hint = _hints()[name]
    kinds = [it for it in typing.get_args(hint) or (hint,) if it in (bool, int, float, str)]
    option = typer.Option(None, help=in_help(described(name)), show_default=False)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=option, annotation=kinds[0] | None)


@functools.cache
def _hints() -> dict[str, Any]:
    return typing.get_type_hints(options.RunOptions)


def in_help(text: str) -> str:
    """An option's text as the help shows it: its first paragraph, with flags for names.

    >>> in_help('Instead of `target_error`: `"auto"`.\\n\\nMore.')
    'Instead of --target-error: auto.'
    """
    text = " ".join(text.partition("\n\n")[0].split())
    text = re.sub(r'`"([^`]*)"`', r"\1", text)
    return re.sub(
        r"`(\w+)`",
        lambda it: f"--{it[1].replace('_', '-')}" if it[1] in options.FLAGS else it[1],
        text,
    )


@functools.cache
def _texts() -> dict[str, str]:
    found: dict[str, str] = {}
    try:
        source = inspect.getsource(options)
    except OSError:
        return found
    for it in ast.parse(source).body:
        if not isinstance(it, ast.ClassDef):
            continue
        for field, below in pairwise(it.body):
            if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
                found[ast.unparse(field.target)] = inspect.cleandoc(ast.literal_eval(below.value))
    return found
