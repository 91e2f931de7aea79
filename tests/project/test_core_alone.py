"""The core wheel in an environment that has its dependencies and nothing else."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ABSENT = (
    "apeval_bench", "apeval_paper", "apeval_public", "highway_env", "minigrid", "Box2D", "pygame",
    "numba", "torch", "matplotlib", "PIL", "stable_baselines3", "ray",
)  # fmt: skip
OWN = """
import apeval


def policy(obs):
    return int(obs[2] + 0.5 * obs[3] > 0)


def problem(gust: float = 0.3):
    return apeval.from_env(
        "CartPole-v1",
        policy=policy,
        disturb=apeval.ParameterNoise("state[3]", std=gust, kick=True, hold=10),
        fails="terminated",
        margin=lambda obs: min(0.20943951 - abs(obs[2]), (2.4 - abs(obs[0])) / 10),
        horizon=50,
    )
"""
USE = """
import apeval
from apeval.results.report import write_report
from own import problem

result = apeval.evaluate(problem(), episodes=200, seed=1, recorder=apeval.Recorder("python"))
write_report(["python"], "python.html")
print(result.estimate)
"""
Run = Callable[..., subprocess.CompletedProcess[str]]


def needed(wheel: Path) -> list[Distribution]:
    """The wheel's dependencies without its extras, and theirs."""
    found: dict[str, Distribution] = {}
    waiting = [Distribution.at(next(wheel.glob("apeval-*.dist-info")))]
    while waiting:
        for text in waiting.pop().requires or []:
            requirement = Requirement(text)
            asked = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            if asked and requirement.name not in found:
                assert requirement.name == "typer" or not requirement.extras, requirement
                found[requirement.name] = distribution(requirement.name)
                waiting.append(found[requirement.name])
    return list(found.values())


def link(source: str, target: str) -> None:
    """The same file at another place; a copy where the file system has no links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def install(it: Distribution, site: Path) -> None:
    """A distribution of this environment in another one, with what Python has compiled of it."""
    for file in it.files or []:
        source = Path(str(it.locate_file(file)))
        if ".." not in file.parts and source.exists():  # compiled files come and go
            target = site / file
            target.parent.mkdir(parents=True, exist_ok=True)
            link(str(source), str(target))


@pytest.fixture(scope="module")
def alone(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Python in an environment with the core wheel, in a folder of its own."""
    folder = tmp_path_factory.mktemp("alone")
    made = [sys.executable, "-m", "venv", "--without-pip", folder / "venv"]
    subprocess.run(made, check=True, capture_output=True)
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    with zipfile.ZipFile(next(built.glob("*.whl"))) as archive:
        archive.extractall(site)
    for it in needed(site):
        install(it, site)
    (folder / "own.py").write_text(OWN, encoding="utf-8")
    surroundings = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [folder / "venv" / "bin" / "python", *arguments],
            capture_output=True, text=True, check=False, cwd=folder, env=surroundings,
        )  # fmt: skip

    return run


def test_nothing_else_is_there(alone: Run) -> None:
    code = (
        "import sys, apeval; from importlib.util import find_spec; "
        f"print(apeval.__file__, [it for it in {ABSENT} if find_spec(it)])"
    )
    done = alone("-c", code)
    assert done.stderr == ""
    assert "/venv/lib" in done.stdout
    assert done.stdout.endswith(" []\n")


def test_a_policy_of_ones_own_is_evaluated_and_reported(alone: Run) -> None:
    done = alone("-c", USE)
    assert done.returncode == 0, done.stderr
    assert 0.0 < float(done.stdout) < 1.0
    again = ("run", "own.py", "--episodes", "200", "--seed", "1", "--out", "shell", "--json")
    shell = alone("-m", "apeval", *again)
    assert shell.returncode == 0, shell.stderr
    assert json.loads(shell.stdout)["estimate"] == float(done.stdout)
    page = alone("-m", "apeval", "report", "shell", "--out", "shell.html")
    assert page.returncode == 0, page.stderr
    size = "import os; print(os.path.getsize('shell.html'), os.path.getsize('python.html'))"
    assert all(int(it) > 10_000 for it in alone("-c", size).stdout.split())


def test_the_problems_of_the_core_run(alone: Run) -> None:
    shown = alone("-m", "apeval", "list").stdout
    assert re.search(r"^  walk ", shown, re.MULTILINE)
    assert "int-v1" not in shown
    line = ("run", "walk", "--set", "problem.top=5", "--steps", "2000", "--seed", "0", "--json")
    done = alone("-m", "apeval", *line)  # by the plain loop
    assert done.returncode == 0, done.stderr
    here = subprocess.run(
        [sys.executable, "-m", "apeval", *line], capture_output=True, text=True, check=True
    )  # by the compiled one
    assert json.loads(done.stdout)["estimate"] == json.loads(here.stdout)["estimate"]


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        (("run", "int-v1", "--steps", "100"), "pip install 'apeval[paper]'"),
        (("truth", "pendulum"), "pip install 'apeval[paper]'"),
        (("bench", "speed"), "pip install apeval-bench"),
        (("reproduce", "table1"), "pip install apeval-bench"),
        (
            ("run", "own.py", "--steps", "100", "--method", "ape-scalable"),
            "pip install 'apeval[scalable]'",
        ),
    ],
)
def test_what_is_missing_is_one_line_with_the_remedy(
    alone: Run, line: tuple[str, ...], remedy: str
) -> None:
    done = alone("-m", "apeval", *line)
    assert (done.returncode, done.stdout) == (2, "")
    assert remedy in done.stderr
    assert done.stderr.count("\n") == 1
