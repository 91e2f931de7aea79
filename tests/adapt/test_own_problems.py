"""A user's own problem: found by its address, checked in plain words, refused with a remedy."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import apeval
from apeval.adapt.address import is_address
from apeval.errors import ApevalError

WRONG = Path(__file__).parents[1] / "user_problems" / "wrong.py"
Outcome = tuple[int, str, str]


@pytest.fixture
def run(
    command: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Outcome]:
    """Run the command line in an empty folder: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    return command


@pytest.mark.parametrize(
    ("factory", "cause", "remedy"),
    [
        ("shape", r"`failed` returned shape \(\d+, 1\)", "drop the last axis"),
        ("fewer_rows", r"`step` returned \d+ episodes, expected", "keep the first axis"),
        ("density", "density does not match its samples", "use the same parameters"),
        ("nan", "NaN or infinity", "end the episode"),
        ("random", "the same seed gave another episode", "must come from `draws`"),
        ("margin", "the margin is ≤ 0 in .* without failure", "mend its sign"),
        ("raises", r"`step` raised KeyError: 'gust' \(wrong.py, line \d+\)", "Mend it"),
        ("policy", "`agent` returned a list", "return a NumPy array of numbers"),
        ("gym_shape", r"fails returned a ndarray of shape \(4,\)", "compare numbers"),
        ("gym_nan", "NaN or infinity", "end the episode"),
        ("gym_random", "the same seed gave another episode", "DiscretePolicy"),
        ("gym_margin", "the margin is ≤ 0 in .* without failure", "mend its sign"),
        ("gym_raises", r"raised AttributeError: .*'blow'.* \(wrong.py, line \d+\)", "mend it"),
        ("gym_policy_raises", r"the policy raised IndexError.* \(wrong.py, line \d+\)", "mend it"),
        ("gym_policy_none", "the policy returned None", "lack a return statement"),
        ("gym_policy_scores", r"the policy returned \[0.1, 0.9\]", "np.argmax"),
        ("gym_policy_pair", r"the policy returned \('left', None\)", "Return the first part"),
        ("gym_info", "info has no 'crashed'", "it holds nothing"),
    ],
)  # fmt: skip
def test_a_wrong_problem_is_told_apart_by_check_and_by_run(
    run: Callable[..., Outcome], factory: str, cause: str, remedy: str
) -> None:
    address = f"{WRONG}:{factory}"
    code, out, err = run("check", address, "--episodes", "40", "--seconds", "2")
    assert (code, err) == (1, "")
    (bad,) = [line for line in out.splitlines() if line.startswith("  BAD")]
    assert re.search(cause, bad)
    assert remedy in bad
    code, out, err = run("run", address, "--steps", "300")
    assert (code, out) == (2, "")
    assert re.fullmatch(rf"apeval: .*{cause}.*\n", err), "one line"
    assert remedy in err


def test_episodes_that_never_end(run: Callable[..., Outcome]) -> None:
    code, out, _ = run("check", f"{WRONG}:endless", "--episodes", "20", "--seconds", "1")
    assert code == 1
    assert re.search(r"BAD  ends: none of 10 episodes ended .*give horizon=", out)
    code, out, err = run("run", f"{WRONG}:endless", "--steps", "300")
    assert (code, out) == (2, "")
    assert "give the problem a horizon" in err


@pytest.mark.parametrize("factory", ["raises", "gym_raises"])
def test_an_exception_in_a_run_is_one_line_with_its_place(
    run: Callable[..., Outcome], factory: str
) -> None:
    code, out, err = run("run", f"{WRONG}:{factory}", "--steps", "300", "--no-check")
    assert (code, out) == (2, "")
    assert re.fullmatch(r"apeval: .* raised .* \(wrong.py, line \d+\).*\n", err)


@pytest.mark.parametrize(
    ("address", "says"),
    [
        (f"{WRONG}:rihgt", "Did you mean 'right'?"),
        (f"{WRONG}:number", "is a int, expected a function"),
        (f"{WRONG}:fails_to_build", "raised ValueError: no such weather (wrong.py, line"),
        (f"{WRONG}:nothing", "returned None, expected a Problem"),
        (f"{WRONG}:needs", "--set problem.std="),
        ("nowhere.py:problem", "apeval new nowhere.py"),
        ("nowhere:problem", "no module 'nowhere'"),
        ("apeval.nowhere:problem", "no module 'apeval.nowhere'"),
        ("json:problem", "unknown function in json 'problem'"),
        ("lab.py:", "file.py:factory or module:factory"),
        ("syntax.py", "not valid Python"),
        ("imports.py", "imports 'no_such_package', which is not installed"),
        ("stops.py", "if __name__ == '__main__':"),
        ("divides.py", "ZeroDivisionError: division by zero (divides.py, line 2)"),
    ],
)
def test_addresses_that_lead_nowhere(run: Callable[..., Outcome], address: str, says: str) -> None:
    for name, text in {
        "syntax": "def problem(:\n    pass\n",
        "imports": "import no_such_package\n",
        "stops": "import sys\nsys.exit(3)\n",
        "divides": "\n1 / 0\n",
    }.items():
        Path(f"{name}.py").write_text(text)
    code, out, err = run("run", address, "--steps", "300")
    assert (code, out) == (2, "")
    assert err.startswith("apeval: ")
    assert err.count("\n") == 1
    assert says in err


def test_settings_reach_the_factory(run: Callable[..., Outcome]) -> None:
    code, out, err = run(
        "run", f"{WRONG}:needs", "--steps", "600", "--json", "--set", "problem.std=0.5"
    )
    assert code == 0, err
    result = json.loads(out)
    assert result["parameters"] == {"std": 0.5}
    assert apeval.make(result["problem"], **result["parameters"]).parameters == {"std": 0.5}
    code, _, err = run("run", f"{WRONG}:needs", "--set", "problem.sdt=1")
    assert (code, "Did you mean 'std'?" in err) == (2, True)
    code, _, err = run("check", f"{WRONG}:needs", "--set", "problem.std=wide")
    assert (code, "must be a number" in err) == (2, True)


def test_list_shows_the_settings_of_an_address(run: Callable[..., Outcome]) -> None:
    run("new", "mine.py")
    code, out, _ = run("list", "mine.py")
    assert code == 0
    assert "mine.py:problem: What is evaluated." in out
    assert re.search(r"problem\.gust +0\.03", out)


def test_a_problem_object_and_a_module_are_addresses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    Path("helper_of_mine.py").write_text("TOP = 4\n")
    Path("my_walk.py").write_text(
        "import apeval, helper_of_mine\nproblem = apeval.make('walk', top=helper_of_mine.TOP)\n"
    )
    by_file, by_module = apeval.make("my_walk.py"), apeval.make("my_walk:problem")
    assert by_file.name == "my_walk.py:problem"
    assert by_file.table is not None
    assert by_module.table is not None
    assert by_file.table.shape == by_module.table.shape
    with pytest.raises(ApevalError, match="takes no 'top'"):
        apeval.make("my_walk.py", top=5)
    Path("my_walk.py").write_text("import apeval\nproblem = apeval.make('walk', top=5)\n")
    assert apeval.make("my_walk.py").table.shape != by_file.table.shape  # type: ignore[union-attr]
    assert is_address("my_walk.py")
    assert not is_address("int-v1")


@pytest.mark.parametrize("kind", ["gymnasium", "numpy"])
def test_a_template_runs_as_it_is(run: Callable[..., Outcome], kind: str) -> None:
    code, out, err = run("new", "mine.py", "--kind", kind)
    assert code == 0, err
    assert "apeval check mine.py" in out
    assert "noqa" not in Path("mine.py").read_text("utf-8")
    code, out, _ = run("check", "mine.py", "--episodes", "40", "--seconds", "2")
    assert code == 0, out
    assert "8 checks, passed" in out
    code, out, err = run("run", "mine.py:problem", "--episodes", "60", "--json")
    assert code == 0, err
    assert json.loads(out)["problem"] == "mine.py:problem"
    Path("mine.py").write_text("precious")
    code, _, err = run("new", "mine.py", "--kind", kind)
    assert (code, "--force" in err) == (2, True)
    assert Path("mine.py").read_text() == "precious"
    assert run("new", "mine.py", "--force")[0] == 0
    assert Path("mine.py").read_text() != "precious"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("new", "mine.txt"), "end its name in .py"),
        (("new", "my-problem.py"), "cannot be imported"),
        (("new", "mine.py", "--kind", "nmupy"), "Did you mean 'numpy'?"),
        (("new", "no/such/folder/mine.py"), "cannot write"),
        (("check", "walk", "--set", "delta=1"), "problem settings only"),
        (("check", "walk", "--episodes", "1"), "episodes must be a whole number from 2"),
        (("check", "walk", "--seed", "-1"), "whole number"),
    ],
)
def test_mistakes_in_the_commands(
    run: Callable[..., Outcome], arguments: tuple[str, ...], says: str
) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert says in err


def test_a_right_problem_passes_as_data_too(run: Callable[..., Outcome]) -> None:
    code, out, _ = run("check", f"{WRONG}:right", "--episodes", "40", "--seconds", "2", "--json")
    report = json.loads(out)
    assert code == 0
    assert report["ok"]
    assert report["complete"]
    assert {"density", "margin", "ends"} <= {finding["name"] for finding in report["findings"]}
