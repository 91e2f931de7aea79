"""Remedies are data: Python words for who types Python, flags for who types commands."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import apeval
from apeval.adapt.problem_template import write_template
from apeval.cli.main import commands
from apeval.errors import ApevalError
from apeval.estimate.warnings import joined
from apeval.hardening.loop import HardenSettings
from apeval.plugins import folders
from apeval.remedies import (
    COMMANDS,
    FLAGS,
    Call,
    Note,
    Option,
    Parameter,
    Setting,
    in_shell,
    remedies,
)
from apeval.run.result import Result
from apeval.run.result_text import line
from apeval.simulate.simulation import Budget

SOURCES = [folder for name, folder in folders().items() if name != "apeval_bench"]
COMMAND_LINE = ("cli", "gate", "templates")
"""The gate speaks to who types pytest's flags; templates are text for users, not messages."""
NO_MESSAGES = (
    "apeval run",  # the format's name in a run folder
    "apeval compare",  # in the report, beside the command that made its runs
    "{} · apeval report",  # its title
    " · apeval report",
)
SUMO = "city_traffic.py"  # starts SUMO with SUMO's own flags
FOREIGN = "ray start --head"  # a command of Ray's, which is typed in a terminal by everybody


def texts(path: Path) -> Iterator[str]:
    """The strings of a module that are no docstrings, f-strings with {} for what is filled in."""
    tree = ast.parse(path.read_text("utf-8"))
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (p.value if isinstance(p, ast.Constant) else "{}" for p in node.values)
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and id(node) not in documents:
            yield str(node.value)


def library() -> list[Path]:
    """Modules that speak to both; scripts with a command line of their own speak of that."""
    found = []
    for source in SOURCES:
        for path in sorted(source.rglob("*.py")):
            own = path.name in ("remedies.py", SUMO)
            own = own or "import argparse" in path.read_text("utf-8")
            if not own and not set(path.relative_to(source).parts) & set(COMMAND_LINE):
                found.append(path)
    return found


def test_no_message_of_the_library_speaks_of_flags_or_commands() -> None:
    names = set(commands())
    names -= {"new"}  # which has no counterpart in Python
    typed = re.compile(rf"--[a-z]|\bapeval ({'|'.join(sorted(names))})\b")
    wrong = [
        f"{path}: {text}"
        for path in library()
        for text in texts(path)
        if typed.search(text.replace(FOREIGN, "")) and text not in NO_MESSAGES
    ]
    assert len(library()) > 200
    assert wrong == []


def flags() -> set[str]:
    """Every flag of every command."""
    known = commands()
    return {o for it in known.values() for p in it.params for o in (*p.opts, *p.secondary_opts)}


def test_every_option_and_call_is_one_in_python_and_on_the_command_line() -> None:
    functions = (
        apeval.evaluate, apeval.plan, apeval.resume, apeval.Recorder.__init__, write_template,
        HardenSettings,
    )  # fmt: skip
    arguments = {name for it in functions for name in inspect.signature(it).parameters}
    assert set(FLAGS) <= arguments
    assert {f"--{flag}" for flag in FLAGS.values()} <= flags()
    assert set(COMMANDS) <= set(apeval.__all__)
    known = commands()
    assert set(COMMANDS.values()) <= set(known)


@pytest.mark.parametrize(
    "remedy",
    [
        Option("steps", 1_600), Option("target_error", 0.05), Option("target_error", 1e-05),
        Option("seed"), Option("allow_changes", True), Option("careful", False),
        Option("on_fault", "unresolved"), Option("problem", 'odd "name".py:problem'),
        Call("resume", "runs/x"), Call("resume", "C:\\runs\\my x"), Call("load"),
        Call("check_problem", "mine.py:problem"), Setting("learner", "feedback"), Parameter("gust"),
    ],
)  # fmt: skip
def test_a_remedy_is_read_back_from_a_text(remedy: Any) -> None:
    text = f"first, {remedy}, then"
    assert remedies(text) == [remedy]
    assert in_shell(text) == f"first, {remedy.in_shell()}, then"


def test_a_remedy_is_shown_whole_on_one_line() -> None:
    long = Call("resume", "runs/" + "a b " * 30)
    filled = line("warning", f"{'word ' * 12}{long} goes on")
    assert remedies(filled) == [long]


def test_what_was_never_a_remedy_stays_as_it_is() -> None:
    for text in ("`done`", "`make`", "`top=3`", "steps=3", "`apeval.Recorder(…)`", "`steps=--1`"):
        assert in_shell(text) == text


def test_a_changed_file_breaks_nothing() -> None:
    for value in ("9" * 5_000, "007", "1e999", "-" * 50_000 + "1", '"\\x"', '"' + "\\" * 9_999):
        assert "steps" in in_shell(f"raise `steps={value}`")


def test_no_message_names_what_nobody_can_type() -> None:
    with pytest.raises(ValueError, match="FLAGS"):
        Option("colour")
    with pytest.raises(ValueError, match="COMMANDS"):
        Call("draw")


# -- shown where they are read ---------------------------------------------------------------------


def test_an_error_speaks_python_in_python_and_flags_on_the_command_line(
    command: Any, tmp_path: Path
) -> None:
    with pytest.raises(ApevalError, match=r'add `backend="ray"`'):
        apeval.evaluate(apeval.make("walk"), "mc", episodes=10, backend="processes", address="here")
    asked = ["run", "walk", "--method", "mc", "--episodes", "10"]
    code, _, err = command(*asked, "--backend", "processes", "--address", "here")
    assert (code, "add --backend ray" in err) == (2, True)
    assert "`" not in err


def thin(episodes: int = 60) -> dict[str, Any]:
    """A run that is too short for its problem."""
    return {"episodes": episodes, "seed": 1, "target_error": 0.01}


def test_a_stored_result_is_shown_in_either_words(command: Any, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    problem = apeval.make("one-step", beta=2.0)
    told = apeval.evaluate(problem, **thin(), recorder=apeval.Recorder(folder))
    again = apeval.load(folder).result
    assert again.warnings == told.warnings
    assert "`episodes=" in told.warnings[-1]
    assert "`episodes=" in str(again)
    code, out, _ = command("show", str(folder))
    assert code == 0
    size = remedies(told.warnings[-1])[0].in_shell()
    assert re.fullmatch(r"--episodes \d+", size)
    assert size in out
    assert "`" not in out
    assert "episodes=" not in out


# -- one remedy ------------------------------------------------------------------------------------


def budgets(result: Result) -> list[Option]:
    found = [it for text in result.warnings for it in remedies(text)]
    return [it for it in found if isinstance(it, Option) and it.name in ("steps", "episodes")]


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("one-step", {"episodes": 60, "target_error": 0.01, "seed": 1}),
        ("many-modes", {"episodes": 300, "target_error": 0.01, "seed": 3}),
        ("many-modes", {"steps": 200, "seed": 2}),
        ("never", {"episodes": 100, "seed": 0}),
        ("int-v1", {"steps": 400, "target_error": 0.02, "seed": 0}),
    ],
)
def test_a_result_names_one_budget_for_all_that_asks_for_more(
    name: str, asked: dict[str, Any]
) -> None:
    result = apeval.evaluate(apeval.make(name), **asked)
    named = budgets(result)
    assert len(named) == 1
    unit = next(iter(result.budget))
    assert named[0].name == unit
    assert int(named[0].value or 0) > result.budget[unit]
    if result.target is not None and result.target.budget is not None:
        assert int(named[0].value or 0) >= result.target.budget
    for text in result.warnings:
        assert not re.search(r"raise --|twice as much|raise the budget(?!( to about `|$))", text)
    assert not re.search(r"about [\d,]+ (steps|episodes)", str(result))


def test_the_one_budget_is_the_largest_that_is_asked_for() -> None:
    notes = [
        Note("a", serious=False, more=2.0),
        Note("b", more=4.0),
        Note("c", serious=False, more=1.0),
        Note("d", serious=False),
    ]
    said = joined(notes, Budget(episodes=400))
    assert [note.text for note in said[:-1]] == ["b", "a", "c", "d"]
    assert remedies(said[-1].text) == [Option("episodes", 1_600)]
    unknown = joined([replace(notes[2])], Budget(steps=9))
    assert unknown[-1].text == "raise the budget"
    assert joined(notes[3:], Budget(steps=9)) == notes[3:]


def test_a_run_that_met_its_target_is_not_asked_for_a_budget_that_it_would_not_use() -> None:
    said = joined([Note("a", serious=False, more=4.0)], Budget(steps=1_000_000), met=0.1)
    assert remedies(said[-1].text) == [Option("target_error", 0.05)]


def test_a_plan_names_no_budget_of_its_pilot() -> None:
    plan = apeval.plan(apeval.make("one-step", beta=3.0), 0.1, pilot_steps=60, seed=1)
    named = [it for text in plan.warnings for it in remedies(text) if isinstance(it, Option)]
    assert not {"steps", "episodes"} & {it.name for it in named}


@pytest.mark.parametrize(
    ("folder", "typed"), [("-x", "./-x"), ("a`b", "'a`b'"), ("a b", "'a b'"), ('q"', "'q\"'")]
)
def test_a_folder_of_any_name_can_be_typed(folder: str, typed: str) -> None:
    call = Call("resume", folder, "lab.py:car")
    assert in_shell(f"then {call}") == f"then apeval resume {typed} --problem lab.py:car"
    assert eval(str(call).strip("`").partition("(")[2].partition(",")[0]) == folder
