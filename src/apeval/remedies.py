"""What to do, as data inside a message.

A library message names options and calls as objects in an f-string: ``f"raise it to about
{Option('steps', 1600)}"``. In the text they stand as Python code in backquotes, `steps=1600`,
which is what a Python user types and what a run folder stores. The command line shows every text
through `in_shell`, which reads that code back and writes it as a flag, --steps 1600.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass

#: Keyword arguments that a message may name, with their flags.
FLAGS = {
    "address": "address",
    "allow_changes": "allow-changes",
    "backend": "backend",
    "careful": "fresh",
    "check": "no-check",
    "confidence": "confidence",
    "episodes": "episodes",
    "force": "force",
    "method": "method",
    "on_fault": "on-fault",
    "pilot_steps": "pilot-steps",
    "problem": "problem",
    "return_episodes": "return-episodes",
    "seed": "seed",
    "steps": "steps",
    "target_error": "target-error",
    "workers": "workers",
}
#: Functions of `apeval` that a message may name, with their commands.
COMMANDS = {"check_problem": "check", "load": "show", "resume": "resume"}
_OF_PROBLEMS = ("check_problem",)  # they take a problem, which its name makes


@dataclass(frozen=True)
class Option:
    """A keyword argument, or a flag.

    >>> print(Option("on_fault", "unresolved"), Option("on_fault", "unresolved").in_shell())
    `on_fault="unresolved"` --on-fault unresolved
    >>> print(Option("seed"), Option("seed").in_shell())
    `seed=` --seed
    """

    name: str
    value: str | int | float | None = None
    """None where the value is the reader's choice; True or False for a switch."""

    def __post_init__(self) -> None:
        if self.name not in FLAGS:
            raise ValueError(f"no message may name the option {self.name}: add it to FLAGS")

    def __str__(self) -> str:
        return f"`{self.in_python()}`"

    def in_python(self) -> str:
        """As a Python user types it."""
        if self.value is None:
            return f"{self.name}="
        value = self.value
        return f"{self.name}={_text(value) if isinstance(value, str) else value}"

    def in_shell(self) -> str:
        """As it is typed in a terminal."""
        flag = f"--{FLAGS[self.name]}"
        if self.value is None or isinstance(self.value, bool):
            return flag
        return f"{flag} {shlex.quote(str(self.value))}"


@dataclass(frozen=True)
class Call:
    """A function of `apeval` with a folder or the name of a problem, or a command.

    >>> print(Call("resume", "runs/x"), Call("resume", "runs/x").in_shell())
    `apeval.resume("runs/x")` apeval resume runs/x
    >>> own = Call("resume", "runs/x", "lab.py:car")
    >>> print(own, own.in_shell())
    `apeval.resume("runs/x", "lab.py:car")` apeval resume runs/x --problem lab.py:car
    """

    name: str
    argument: str = ""
    """Empty where it is the reader's choice."""
    problem: str | None = None
    """The address of the reader's own problem; empty where it has none, and he must give it."""

    def __post_init__(self) -> None:
        if self.name not in COMMANDS:
            raise ValueError(f"no message may name the call {self.name}: add it to COMMANDS")

    def __str__(self) -> str:
        argument = _text(self.argument) if self.argument else "…"
        if self.argument and self.name in _OF_PROBLEMS:
            argument = f"apeval.make({argument})"
        if self.problem is not None:
            argument += f", {_text(self.problem) if self.problem else 'problem'}"
        return f"`apeval.{self.name}({argument})`"

    def in_shell(self) -> str:
        """As it is typed in a terminal."""
        path = f"./{self.argument}" if self.argument.startswith("-") else self.argument
        argument = shlex.quote(path) if path else "…"  # what begins with - would be an option
        if self.problem is not None:
            argument += f" --problem {shlex.quote(self.problem) if self.problem else '…'}"
        return f"apeval {COMMANDS[self.name]} {argument}"


@dataclass(frozen=True)
class Setting:
    """A setting of a method.

    >>> print(Setting("learner", "feedback"), Setting("learner", "feedback").in_shell())
    `settings={"learner": "feedback"}` --set learner=feedback
    """

    name: str
    value: str

    def __str__(self) -> str:
        return f"`settings={{{json.dumps(self.name)}: {json.dumps(self.value)}}}`"

    def in_shell(self) -> str:
        """As it is typed in a terminal."""
        return f"--set {self.name}={self.value}"


@dataclass(frozen=True)
class Parameter:
    """A parameter of a problem, whose value is the reader's choice.

    >>> print(Parameter("top"), Parameter("top").in_shell())
    `make(…, top=…)` --set problem.top=…
    """

    name: str

    def __str__(self) -> str:
        return f"`make(…, {self.name}=…)`"

    def in_shell(self) -> str:
        """As it is typed in a terminal."""
        return f"--set problem.{self.name}=…"


Remedy = Option | Call | Setting | Parameter


def _text(value: str) -> str:
    """A text as Python code; a backquote in it would end the code."""
    return json.dumps(value, ensure_ascii=False).replace("`", "\\u0060")


@dataclass(frozen=True)
class Note:
    """A remark on a result; a serious one says that the interval itself may be wrong."""

    text: str
    serious: bool = True
    more: float = 0.0
    """How many times the present budget would mend it: 0 where a larger budget is no remedy, 1
    where it is one and nobody can say how large. The text names no budget: notes of one result are
    joined to one that is enough for all."""


_TEXT = r'"(?:[^"\\`]|\\.)*"'
_NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"
_MARK = re.compile(
    rf"`(?:(?P<option>{'|'.join(FLAGS)})=(?P<value>{_TEXT}|True|False|{_NUMBER})?"
    rf"|apeval\.(?P<call>{'|'.join(COMMANDS)})\((?:apeval\.make\()?(?P<argument>{_TEXT}|…)\)?"
    rf"(?:, (?P<of>{_TEXT}|problem))?\)"
    r'|settings=\{"(?P<setting>\w+)": "(?P<set_to>\w+)"\}'
    r"|make\(…, (?P<parameter>\w+)=…\))`"
)


def remedies(text: str) -> list[Remedy]:
    """The options and calls that a message names, in their order.

    >>> remedies(f"raise it to about {Option('steps', 1600)}")
    [Option(name='steps', value=1600)]
    """
    return [_read(found) for found in _MARK.finditer(text)]


def in_shell(text: str) -> str:
    """A message as the command line shows it.

    >>> in_shell(f"mend it, or add {Option('on_fault', 'unresolved')}")
    'mend it, or add --on-fault unresolved'
    """
    return _MARK.sub(lambda found: _read(found).in_shell(), text)


def unbroken(text: str) -> str:
    """With no-break spaces inside remedies, for whoever breaks the text into lines."""
    return _MARK.sub(lambda found: found[0].replace(" ", "\u00a0"), text)


def _read(found: re.Match[str]) -> Remedy:
    if found["setting"] is not None:
        return Setting(found["setting"], found["set_to"])
    if found["parameter"] is not None:
        return Parameter(found["parameter"])
    if found["call"] is not None:
        argument = found["argument"]
        of = found["of"]
        problem = None if of is None else "" if of == "problem" else str(_literal(of))
        return Call(found["call"], "" if argument == "…" else str(_literal(argument)), problem)
    value = found["value"]
    return Option(found["option"], None if value is None else _literal(value))


def _literal(code: str) -> str | int | float:
    """A text or a number; as it stands where it is neither, in a changed file."""
    if code in ("True", "False"):
        return code == "True"
    try:
        value: str | int | float = json.loads(code)
    except ValueError:
        return code
    return value
