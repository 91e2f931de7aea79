"""The options of a run: one list that Python, the command line and run folders share."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import apeval
from apeval.cli.main import commands
from apeval.cli.option_flags import described, flags_of, in_help
from apeval.results.inputs import read_inputs
from apeval.run import run_options as options
from apeval.run.run_options import (
    ComparisonKeywords,
    PlanKeywords,
    RunKeywords,
    RunOptions,
    SimulationKeywords,
)

Outcome = tuple[int, str, str]
FIELDS = {f.name: f for f in dataclasses.fields(RunOptions)}


def test_keywords_and_fields_are_the_same() -> None:
    keywords, fields = typing.get_type_hints(RunKeywords), typing.get_type_hints(RunOptions)
    assert keywords == {k: v for k, v in fields.items() if k != "method"}


@pytest.mark.parametrize("name", sorted(set(FIELDS) - {"method"}))
def test_an_option_says_what_it_is_and_its_default(name: str) -> None:
    text, default = " ".join(described(name).split()), FIELDS[name].default
    assert text.endswith(".")
    if default is None:
        return
    told = rf'(?:{re.escape(str(default))}|`"{re.escape(str(default))}"`)'
    shown = rf"{told}(?: by default| \(the default)" if default is not True else r"\(the default\)"
    assert re.search(shown, text)


@pytest.mark.parametrize(
    ("command", "keywords"),
    [
        ("run", RunKeywords),
        ("plan", PlanKeywords),
        ("compare-policies", ComparisonKeywords),
        ("resume", SimulationKeywords),
    ],
)
def test_commands_have_the_options_of_their_functions(command: str, keywords: type) -> None:
    flags = {it.name: it for it in commands()[command].params}
    for name in flags_of(keywords):
        assert flags[name].opts[0] == f"--{name.replace('_', '-')}"
        assert flags[name].help == in_help(described(name))
    others = set(options.FLAGS) - set(flags_of(keywords)) - {"method", "target_error"}
    assert not others & set(flags)


@pytest.mark.parametrize(
    ("function", "keywords"),
    [
        (apeval.evaluate, RunKeywords),
        (apeval.plan, PlanKeywords),
        (apeval.compare_policies, ComparisonKeywords),
        (apeval.compare_anytime, ComparisonKeywords),
        (apeval.resume, SimulationKeywords),
    ],
)
def test_signatures_show_every_option_with_its_default(
    function: Callable[..., Any], keywords: type
) -> None:
    shown = inspect.signature(function).parameters
    for name in keywords.__annotations__:
        assert shown[name].default == FIELDS[name].default
    assert "options" not in shown


def test_an_unknown_keyword_is_refused_with_the_nearest_name() -> None:
    walk: Any = apeval.make("walk")
    with pytest.raises(TypeError, match="Did you mean 'steps'"):
        apeval.evaluate(walk, stps=100)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unknown option 'steps'"):
        apeval.plan(walk, steps=100)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unknown option 'seed'"):
        apeval.resume("nowhere", seed=1)  # type: ignore[call-arg]


def test_a_folder_gives_back_the_options_it_was_made_with(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "episodes": 60, "target_error": 0.5, "below": 1e-2, "seed": 7, "confidence": 0.9,
        "block": 8, "on_fault": "unresolved", "retries": 3, "time_limit": None, "check": False,
        "estimator": "log-t",
    }  # fmt: skip
    kept = apeval.Recorder(tmp_path / "run")
    apeval.evaluate(apeval.make("walk", top=4), "mc", recorder=kept, **given)
    read = read_inputs(tmp_path / "run").options
    assert {k: getattr(read, k) for k in given} == given
    assert read.method == "mc"
    assert read.backend == "serial"


def test_an_option_that_came_later_is_kept_only_where_it_is_chosen(tmp_path: Path) -> None:
    walk = apeval.make("walk", top=4)
    for name, chosen in (("before", "auto"), ("after", "log-t")):
        kept = apeval.Recorder(tmp_path / name)
        apeval.evaluate(walk, "mc", episodes=20, recorder=kept, estimator=chosen)
    inputs = [
        json.loads((tmp_path / k / "run.json").read_text())["inputs"] for k in ("before", "after")
    ]
    assert set(inputs[1]) - set(inputs[0]) == {"estimator"}
    assert set(options.ALWAYS_STORED) < set(inputs[0])


def test_a_plan_names_the_options_that_it_was_made_with(command: Callable[..., Outcome]) -> None:
    code, out, err = command(
        "plan", "one-step", "--pilot-steps", "2000", "--seed", "3", "--block", "50", "--no-check",
        "--confidence", "0.95", "--json",
    )  # fmt: skip
    assert code == 0, err
    told = json.loads(out)["command"]
    assert told.startswith("apeval run one-step --seed 3 --block 50 --no-check --target-error")
