"""`apeval list`."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from apeval.adapt.address import find, full_address, is_address
from apeval.cli.output import note, results, say, styled
from apeval.environments import entries, make
from apeval.errors import unknown
from apeval.learn.method import methods
from apeval.problem.problem import Problem


def show(name: str | None) -> None:
    """All problems and methods, or one of them in detail."""
    problems, known = entries(), methods()
    if name is None:
        _lines("problems", {n: e.description for n, e in problems.items()})
        _lines("methods", {n: m.description for n, m in known.items()})
        note("\nSettings of one of them: apeval list NAME")
    elif name in known:
        _details(name, known[name].description, _fields(known[name].config))
    elif name in problems:
        _details(name, problems[name].description, _parameters(problems[name].factory, name))
    elif is_address(name):
        found = find(full_address(name))
        table = _parameters(found) if callable(found) else None
        _details(full_address(name), _about(found), table)
    else:
        raise unknown("problem or method", name, [*problems, *known])


def _lines(heading: str, descriptions: dict[str, str]) -> None:
    say(heading)
    for name, text in descriptions.items():
        say(f"  {name:<24}{text}")


def _details(name: str, about: str, table: Table | None) -> None:
    console = Console(file=results())
    with console.capture() as shown:
        console.print(f"[bold]{name}[/bold]: {about}", highlight=False)
        if table is not None:
            console.print(table)
    styled(shown.get())


def _fields(config: type) -> Table:
    table = Table("--set", "default", "meaning", box=None, header_style="bold", pad_edge=False)
    stands_for: dict[str, Any] = getattr(config, "none_stands_for", dict)()
    for field in dataclasses.fields(config):
        text = str(field.metadata.get("help", ""))
        if "choices" in field.metadata:
            choices = " | ".join(map(str, field.metadata["choices"]))
            text += rf" \[{choices}]"
        default = stands_for.get(field.name) if field.default is None else field.default
        table.add_row(field.name, str(default), text)
    return table


def _about(found: Any) -> str:
    """The first line that a user wrote about a problem."""
    text = found.description if isinstance(found, Problem) else inspect.getdoc(found) or ""
    return escape(text.partition("\n")[0])


def _parameters(factory: Callable[..., Any], name: str | None = None) -> Table:
    """Keyword parameters; of a registered problem those that are None by default with what the
    problem then has."""
    table = Table("--set", "default", box=None, header_style="bold", pad_edge=False)
    found = [
        p
        for p in inspect.signature(factory).parameters.values()
        if p.name != "name" and p.default is not p.empty
    ]
    left_open = name is not None and any(p.default is None for p in found)
    built = make(name).parameters if name is not None and left_open else {}
    for p in found:
        default = built.get(p.name) if p.default is None else p.default
        table.add_row(f"problem.{p.name}", str(default))
    return table
