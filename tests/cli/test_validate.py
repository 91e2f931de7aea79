"""Every argument, of every command and in Python: what it may be is said in one line."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import apeval
from apeval import validate
from apeval.adapt.problem_template import write_template
from apeval.atomic_files import written_whole
from apeval.errors import ApevalError, StorageError
from apeval.estimate.interval import Estimate
from apeval.estimate.precision_target import PrecisionTarget
from apeval.results.export import export_csv
from apeval.results.report import write_report
from apeval.simulate.backends import find_backend
from apeval.simulate.fault_handling import FaultPolicy

Outcome = tuple[int, str, str]
NO_NUMBER = [math.nan, math.inf, -math.inf, "x", "", None, [0.5], True, 1j, b"x", object()]
NO_CONFIDENCE = [*NO_NUMBER, 0, 1, 0.0, 1.0, 2.0, -0.5, 1e300, 10**400, 1.0 - 1e-16]
NO_ERROR = [*NO_NUMBER, 0.0, 1.0, 2.0, 1e-300, 5e-324, -0.1]
NO_WHOLE = [*NO_NUMBER, 0.5, 1.0, -1, 10**30, np.float64(3.0), np.array([3])]
NO_TIME = [*NO_NUMBER, 0.0, -1.0, 1e300]
NO_PATH = ["", "a\0b", "x" * 5_000, None, 3, b"x", []]


def optional(values: list[Any]) -> list[Any]:
    """None stands for the default where an argument may be left out."""
    return [value for value in values if value is not None]


# -- the rules themselves ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "values"),
    [
        (validate.confidence, NO_CONFIDENCE),
        (validate.target_error, NO_ERROR),
        (lambda value: validate.fraction("below", value), [*NO_NUMBER, 0, 1, -1, 2.0]),
        (validate.seed, [*NO_WHOLE, 2**63]),
        (lambda value: validate.whole("n", value, 1), [*NO_WHOLE, 0]),
        (lambda value: validate.seconds("seconds", value), NO_TIME),
        (lambda value: validate.positive("gain", value), [*NO_NUMBER, 0, -1e-300]),
        (lambda value: validate.output_file("out", value), NO_PATH),
        (lambda value: validate.output_folder("out", value), NO_PATH),
    ],
)
def test_what_is_refused_is_named(rule: Callable[[Any], Any], values: list[Any]) -> None:
    for value in values:
        with pytest.raises(ApevalError, match=r" must | cannot be ") as refused:
            rule(value)
        assert len(str(refused.value)) < 300


def test_what_is_taken_is_plain() -> None:
    assert validate.confidence(np.float32(0.5)) == 0.5
    taken = [
        validate.confidence(np.float64(0.9)),
        validate.target_error(np.float32(0.25)),
        validate.seconds("seconds", 3),
        validate.positive("gain", np.int64(2)),
    ]
    assert [type(it) for it in taken] == [float] * 4
    assert type(validate.seed(np.uint32(7))) is int
    assert type(validate.whole("n", np.int8(7), 1)) is int
    assert validate.seed(2**63 - 1) == 2**63 - 1
    assert validate.target_error(validate.SMALLEST_ERROR) == validate.SMALLEST_ERROR


def test_files_and_folders_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert validate.output_file("out", str(file)) == file
    assert validate.output_folder("out", tmp_path) == tmp_path
    assert validate.output_folder("out", tmp_path / "new" / "one") == tmp_path / "new" / "one"
    with pytest.raises(ApevalError, match=f"out must name a file to write; {tmp_path} is a folder"):
        validate.output_file("out", tmp_path)
    with pytest.raises(ApevalError, match=r"out must name a folder; .* is a file"):
        validate.output_folder("out", file)


def test_an_interval_far_too_wide_is_looked_at_again_later() -> None:
    """The squared ratio of two widths is beyond all numbers where the estimate is tiny."""
    wide = Estimate(1e-200, 1e-200, (0.0, 1.0), 0.95, 40.0, 0.0)
    assert PrecisionTarget(validate.SMALLEST_ERROR).next_look(100, 40, wide) == 400


# -- in Python ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs() -> list[apeval.InMemory]:
    kept = [apeval.InMemory(apeval.make("one-step", beta=2.5)) for _ in range(2)]
    for seed, run in enumerate(kept):
        apeval.evaluate(run.of, episodes=600, seed=seed, recorder=run)
    return kept


ASKED = {
    "seed": NO_WHOLE,
    "confidence": NO_CONFIDENCE,
    "steps": [*optional(NO_WHOLE), 0],
    "episodes": [*NO_WHOLE, 0],
    "target_error": optional(NO_ERROR),
    "below": [*optional(NO_NUMBER), 0.0, 1.0],
    "block": [*optional(NO_WHOLE), 0],
    "workers": [*optional(NO_WHOLE), 0],
    "address": ["", 3],
    "retries": [*NO_WHOLE, 101],
    "time_limit": optional(NO_TIME),
    "recorder": ["runs/x", 3],
    "listener": ["print", 3],
}


@pytest.mark.parametrize("name", ASKED)
def test_evaluate_refuses_and_names_the_argument(name: str) -> None:
    problem = apeval.make("one-step", beta=2.5)
    for value in ASKED[name]:
        budget = {} if name == "steps" else {"episodes": 50}
        given: dict[str, Any] = {**budget, name: value}
        with pytest.raises(ApevalError, match=name):
            apeval.evaluate(problem, **given)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("target_error", NO_ERROR),
        ("pilot_steps", [*optional(NO_WHOLE), 0]),
        ("seed", NO_WHOLE),
        ("confidence", NO_CONFIDENCE),
        ("listener", ["print"]),
    ],
)
def test_plan_refuses_and_names_the_argument(name: str, values: list[Any]) -> None:
    problem = apeval.make("one-step", beta=2.5)
    for value in values:
        with pytest.raises(ApevalError, match=name):
            apeval.plan(problem, **{name: value})


def test_questions_after_a_run_refuse_and_name_the_argument(runs: list[apeval.InMemory]) -> None:
    for value in optional(NO_CONFIDENCE):
        for ask in (
            lambda it: apeval.reweight(runs[0], "std*1.1", confidence=it),
            lambda it: apeval.compare(*runs, confidence=it),
            lambda it: apeval.merge(runs, confidence=it),
        ):
            with pytest.raises(ApevalError, match="confidence must"):
                ask(value)
    for wrong in ("runs/x", None, 3, [runs[0]]):
        with pytest.raises(ApevalError, match="run must be a run"):
            apeval.reweight(wrong, "std*1.1")  # type: ignore[arg-type]
        with pytest.raises(ApevalError, match="b must be a run"):
            apeval.compare(runs[0], wrong)  # type: ignore[arg-type]
        with pytest.raises(ApevalError, match=r"runs\[1\] must be a run"):
            apeval.merge([runs[0], wrong])  # type: ignore[list-item]
    with pytest.raises(ApevalError, match="nominal must be a change"):
        apeval.reweight(runs[0], 1.2)  # type: ignore[arg-type]
    with pytest.raises(ApevalError, match="a replay record is damaged"):
        apeval.replay(runs[0].of, {"key": [1, 2]})


def test_parts_of_a_run_refuse_and_name_the_argument() -> None:
    for value in NO_TIME:
        if value is not None:
            with pytest.raises(ApevalError, match="time_limit"):
                FaultPolicy(time_limit=value)
    for value in NO_WHOLE:
        with pytest.raises(ApevalError, match="retries"):
            FaultPolicy(retries=value)
        if value is not None:
            with pytest.raises(ApevalError, match="workers"):
                find_backend("processes", value)
    assert FaultPolicy(retries=np.int64(3), time_limit=np.float32(2.0)) == FaultPolicy(
        "stop", 3, 2.0
    )  # type: ignore[arg-type]


@pytest.mark.parametrize("value", NO_PATH)
def test_no_path_to_write_to(value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for write in (
        apeval.Recorder,
        lambda it: export_csv(None, it),  # type: ignore[arg-type]
        lambda it: write_report(["runs/x"], it),
        write_template,
    ):
        with pytest.raises(ApevalError, match=r"must name|cannot be"):
            write(value)
    with pytest.raises(ApevalError):
        apeval.load(value)
    with pytest.raises(ApevalError):
        apeval.resume(value)
    assert list(tmp_path.iterdir()) == []


# -- on the command line -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    problem = apeval.make("one-step", beta=2.5)
    apeval.evaluate(problem, episodes=600, recorder=apeval.Recorder(folder))
    return folder


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("reweight RUN --nominal std*1.1 --confidence 2", "confidence must lie strictly between"),
        ("reweight RUN --nominal std*1.1 --confidence nan", "confidence must be a number"),
        ("compare RUN RUN --confidence 0", "confidence must lie strictly between 0 and 1"),
        ("merge RUN RUN --confidence 0", "confidence must lie strictly between 0 and 1"),
        ("run walk --confidence inf", "confidence must be a number"),
        ("plan walk --confidence 1", "confidence must lie strictly between 0 and 1"),
        ("run walk --target-error 1e-300", "target_error must be at least 1e-06"),
        ("plan walk --target-error 1e-300", "target_error must be at least 1e-06"),
        ("plan walk --pilot-steps 0", "pilot_steps must be a whole number from 1"),
        ("run walk --below nan", "below must be a number strictly between"),
        ("run walk --seed 9223372036854775808", "seed must be a whole number"),
        ("run walk --retries 101", "retries must be a whole number from 0 to 100"),
        ("run walk --backend processes --workers 0", "workers must be a whole number from 1"),
        ("run walk --backend processes --time-limit nan", "time_limit must be a number of seconds"),
        ("run walk --backend processes --time-limit inf", "time_limit must be a number of seconds"),
        ("run walk --out EMPTY", "out must name a folder; got ''"),
        ("run walk --tensorboard EMPTY", "tensorboard must name a folder; got ''"),
        ("report RUN --out EMPTY", "out must name a file to write; got ''"),
        ("merge RUN RUN --out EMPTY", "out must name a file to write; got ''"),
        ("replay RUN --out EMPTY", "out must name a file to write; got ''"),
        ("export RUN --csv EMPTY", "csv must name a folder; got ''"),
        ("new EMPTY", "path must name a file to write; got ''"),
        ("report RUN --out RUN", "is a folder"),
        ("merge RUN RUN --out RUN", "is a folder"),
        ("export RUN --csv RUN/result.json", "is a file"),
        ("run walk --out RUN/result.json", "is a file"),
        ("bench floor --out EMPTY", "out must name a folder; got ''"),
        ("run walk --out BLANK", "out must name a folder; got ' '"),
        ("run walk --tensorboard BLANK", "tensorboard must name a folder; got ' '"),
        ("report RUN --out BLANK", "out must name a file to write; got ' '"),
        ("export RUN --csv BLANK", "csv must name a folder; got ' '"),
        ("new BLANK", "path must name a file to write; got ' '"),
        ("reproduce convergence --seeds 1 --out BLANK", "out must name a folder; got ' '"),
        ("run walk --tensorboard HALF", "whose name is no UTF-8"),
        ("compare RUN RUN --confidence nan --confidence 0.5", "--confidence is given 2 times"),
        ("run walk --seed 1 --seed=2 --seed 3", "--seed is given 3 times"),
        ("run walk --check --no-check", "--check is given 2 times"),
        ("bench floor --seeds 1 --seeds 2", "--seeds is given 2 times"),
        ("reweight RUN --nominal std*1.1 --problem std*nan", "std*nan"),
        ("reweight RUN --nominal std*1.1 --problem walk", "walk"),
        ("show LONG", "run cannot be"),
        ("report LONG", "run cannot be"),
        ("merge RUN LONG", "run cannot be"),
        ("bench floor --seeds 0", "seeds must be a whole number from 1"),
        ("check walk --seconds nan", "seconds must be a number of seconds"),
        ("check walk --seconds inf", "seconds must be a number of seconds"),
        ("check walk --episodes 1", "episodes must be a whole number from 2"),
    ],
)
def test_commands_refuse_in_one_line(
    words: str,
    says: str,
    command: Callable[..., Outcome],
    stored: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(stored.parent.rglob("*"))
    given = {"RUN": str(stored), "EMPTY": "", "BLANK": " ", "HALF": "\udc80", "LONG": "a" * 300}
    arguments = words.split()
    for name, value in given.items():
        arguments = [it.replace(name, value) for it in arguments]
    code, out, err = command(*arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert len(err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
    assert sorted(stored.parent.rglob("*")) == before


# -- absurd changes of the nominal -------------------------------------------------------------


@pytest.mark.parametrize(
    "change", ["std*1e300", "std*1e-300", "std=5e-324", "std=1e308", "mean+1e308", "mean-1e200"]
)
def test_a_change_beyond_all_numbers_is_refused(change: str, runs: list[apeval.InMemory]) -> None:
    with pytest.raises(ApevalError, match="range in which densities can be computed"):
        apeval.reweight(runs[0], change)


@pytest.mark.parametrize("change", ["std*1e60", "std*1e-60", "mean+1e60", "std*1.05"])
def test_a_large_change_is_answered_without_a_warning_of_numpy(
    change: str, runs: list[apeval.InMemory]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = apeval.reweight(runs[0], change)
    assert (answer.refused is None) == (change == "std*1.05")


def test_a_problem_with_an_absurd_nominal_is_answered_without_a_warning_of_numpy(
    runs: list[apeval.InMemory],
) -> None:
    """Its laws come from the user's code and not from a change that could be refused."""
    for std in (1e300, 1e-300):
        other = replace(runs[0].of, nominal=apeval.Normal(0.0, std))
        answer = apeval.reweight(runs[0], problem=other)
        assert answer.refused


def test_a_probability_of_zero_is_answered_without_a_warning_of_numpy() -> None:
    run = apeval.InMemory(apeval.make("walk", top=5))
    apeval.evaluate(run.of, steps=3_000, recorder=run)
    for change in ("probabilities[1]=0", "probabilities[1]*1e-300", "probabilities[1]=1e-320"):
        assert apeval.reweight(run, change).refused


# -- files: whole or not at all ----------------------------------------------------------------


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_file_that_cannot_be_finished_leaves_what_was_there(
    error: BaseException, tmp_path: Path
) -> None:
    path = tmp_path / "table.csv"
    path.write_text("before")

    def begin() -> None:
        with written_whole(path) as file:
            file.write(b"half")
            raise error

    with pytest.raises((StorageError, KeyboardInterrupt)):
        begin()
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "words", ["export RUN --csv new", "new mine.py", "report RUN --out r.html"]
)
def test_a_full_disk_leaves_nothing_behind(
    words: str,
    command: Callable[..., Outcome],
    stored: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.fsync", full)
    code, out, err = command(*words.replace("RUN", str(stored)).split())
    assert (code, out) == (2, "")
    assert "No space left on device" in err
    assert [it for it in tmp_path.rglob("*") if it.is_file()] == []


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"episodes": 1}, "episodes must be"),
        ({"seed": -1}, "seed must be"),
        ({"seconds": float("nan")}, "seconds must be"),
    ],
)
def test_check_problem_names_the_argument(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ApevalError, match=says):
        apeval.check_problem(apeval.make("walk", top=5), **wrong)
    with pytest.raises(ApevalError, match="wants a Problem"):
        apeval.check_problem("walk")  # type: ignore[arg-type]
