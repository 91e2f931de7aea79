"""A problem has an identity, and a run keeps it."""

from __future__ import annotations

import enum
import functools
import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.problem.test_ownership import walk
from tests.run.test_resume import Struck

import apeval
from apeval.environments import entries
from apeval.errors import ApevalError
from apeval.results.report import write_report
from apeval.simulate.identity.code import digest
from apeval.simulate.identity.identity import differences, identify
from apeval.simulate.identity.reference import reference
from apeval.simulate.identity.source_files import source_files

CODE = """
import numpy as np
import apeval
{imports}
def problem(std: float = 0.5, gain: float = {gain}):
    return apeval.Problem(
        nominal=apeval.Normal(0.0, std),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=lambda x, a_A, a_E, draws: {step},
        failed=lambda x: x[:, 0] > 3.0,
        margin=lambda x: 3.0 - x[:, 0],
        horizon=4,
    )
"""


def write(path: Path, gain: float = 1.0, step: str = "x + gain * a_E", imports: str = "") -> str:
    path.write_text(CODE.format(gain=gain, step=step, imports=imports))
    return f"{path}:problem"


def fingerprint(problem: apeval.Problem) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(json.dumps(identify(problem, lambda: reference(problem))))
    return stored


def interrupted(problem: apeval.Problem, folder: Path, **how: Any) -> None:
    recorder = Struck(folder)
    recorder.after = 1
    with pytest.raises(KeyboardInterrupt):
        apeval.evaluate(problem, "mc", episodes=900, recorder=recorder, **how)


def scaled(gain: float) -> apeval.Problem:
    return walk(step=lambda x, a_A, a_E, draws: x + gain * a_E)


def limited(limit: float) -> apeval.Problem:
    return walk(failed=lambda x: x[:, 0] > limit, margin=None)


@pytest.mark.parametrize("name", sorted(entries()))
def test_the_same_problem_built_twice_is_the_same(name: str) -> None:
    one, other = apeval.make(name), apeval.make(name)
    first = fingerprint(one)
    assert differences(first, fingerprint(other)) == []
    apeval.evaluate(one, "mc", episodes=8)
    assert differences(first, fingerprint(one)) == []  # nor does using it change it


@pytest.mark.parametrize(
    ("one", "other", "says"),
    [
        (walk(), walk(nominal=apeval.Normal(0.0, 1.1)), "σ 1, now .*σ 1.1"),
        (walk(), walk(horizon=5), "the horizon .4, now 5"),
        (walk(), walk(kinds=("crash",)), "the kinds"),
        (walk(), walk(judge_at_end=False), "when failure is judged"),
        (walk(), walk(margin=None), "which functions it has"),
        (walk(), walk(initial=apeval.Normal(), reset=lambda d, a: a), "the nominal start"),
        (scaled(1.0), scaled(1.3), "what it does: .*; .*a value that they hold"),
        (limited(6.0), limited(6.1), "a value that they hold"),
    ],
)
def test_what_differs_is_named(one: apeval.Problem, other: apeval.Problem, says: str) -> None:
    found = "; ".join(differences(fingerprint(one), fingerprint(other)))
    assert re.search(says, found), found


def test_digests_tell_closures_apart() -> None:
    def made(limit: float, table: Any = None) -> Any:
        return lambda x: x > limit + (0 if table is None else table[0])

    assert digest(made(1.0)) == digest(made(1.0))
    assert digest(made(1.0)) != digest(made(1.5))
    assert digest(made(1.0, np.arange(3))) == digest(made(1.0, np.arange(3)))
    assert digest(made(1.0, np.arange(3))) != digest(made(1.0, np.arange(4)))

    class Plant:
        def __init__(self, gain: float) -> None:
            self.gain, self._cache = gain, object()

        def step(self, x: float) -> float:
            return self.gain * x

    assert digest(Plant(1.0).step) == digest(Plant(1.0).step)
    assert digest(Plant(1.0).step) != digest(Plant(1.1).step)


class Level(enum.IntEnum):
    LOW, HIGH = 1, 2


class Private:
    __slots__ = ("_limit",)

    def __init__(self, limit: float) -> None:
        self._limit = limit


def made_of(limit: int) -> dict[str, Any]:
    """Functions and objects that hold a number, each in a way of its own."""
    config = types.ModuleType("config_of_the_identity_test")
    config.LIMIT = limit  # type: ignore[attr-defined]

    names, held = {"__name__": __name__}, limit

    class Base:
        LIMITS: ClassVar = {"x": held}

        @functools.cached_property
        def limit(self) -> int:
            return held

    class Derived(Base):
        pass

    def far(depth: int) -> Any:
        inner = limit if depth == 0 else far(depth - 1)
        return lambda x: inner

    def attributed(x: float) -> bool:
        return x > attributed.limit  # type: ignore[attr-defined]

    attributed.limit = limit  # type: ignore[attr-defined]
    cached = functools.lru_cache(lambda x: x > limit)
    one, other = [0], [1]
    return {
        "of a module": lambda x: x > config.LIMIT,
        "of a module that it names": eval("lambda x: x > it.LIMIT", {**names, "it": config}),
        "private": Private(limit),
        "of a base class": Derived(),
        "behind a cache": cached,
        "vectorised": np.vectorize(lambda x: x > limit),
        "member of an enumeration": Level(limit),
        "path": Path(f"policy-{limit}.npz"),
        "namespace": types.SimpleNamespace(limit=limit),
        "range": range(limit),
        "array of objects": np.array([limit, None], object),
        "records": np.array([(limit,)], [("limit", float)]),
        "attribute of a function": attributed,
        "method of a mapping": {"limit": limit}.get,
        "function of NumPy": np.sin if limit == 1 else np.cos,
        "which of two": [one, other, one if limit == 1 else other],
        "twenty calls away": far(20),
    }


@pytest.mark.parametrize("way", made_of(1))
def test_digests_see_a_number_wherever_it_is_held(way: str) -> None:
    assert digest(made_of(1)[way]) == digest(made_of(1)[way])
    assert digest(made_of(1)[way]) != digest(made_of(2)[way])


def test_merge_sees_a_limit_that_the_reference_decisions_do_not_reach(tmp_path: Path) -> None:
    class Fails:
        def __init__(self, limit: float) -> None:
            self._limit = limit

        def __call__(self, x: Any) -> Any:
            return x[:, 0] > self._limit

    runs = []
    for seed, limit in enumerate((2.0, 2.1)):
        recorder = apeval.Recorder(tmp_path / str(seed))
        problem = walk(failed=Fails(limit), margin=None)
        apeval.evaluate(problem, "mc", episodes=2_000, seed=seed, recorder=recorder)
        runs.append(apeval.load(tmp_path / str(seed)))
    with pytest.raises(ApevalError, match="a value that they hold"):
        apeval.merge(runs)


SAME = """
import apeval, enum, sys
import numpy as np
from dataclasses import dataclass, field
from os import environ

class Mode(enum.Enum):
    FAST, SLOW = 1, 2

@dataclass
class Plant:
    mode: Mode = Mode.FAST
    names: set = field(default_factory=lambda: {"x", "yy", "zzz"})
    table = {len: 1.0, Mode: 2.0}
    _cache: dict = field(default_factory=dict)

    def step(self, x, a_A, a_E, draws):
        self._cache[len(x)] = environ.get("HOME")
        return x + a_E * self.table[len]

def problem():
    return apeval.Problem(
        nominal=apeval.Normal(), reset=lambda draws: np.zeros((draws.n, 1)), step=Plant().step,
        failed=lambda x: x[:, 0] > 3.0, horizon=4,
    )

if __name__ == "__main__":
    from apeval.simulate.identity.identity import identify
    made = problem() if len(sys.argv) == 1 else apeval.make(sys.argv[1])
    before = identify(made, lambda: None)["code"]
    apeval.evaluate(made, "mc", episodes=8)
    assert identify(made, lambda: None)["code"] == before  # nor does using it change it
    print(before)
"""


def test_the_same_code_is_the_same_wherever_and_however_it_runs(tmp_path: Path) -> None:
    one, other = tmp_path / "one" / "mine.py", tmp_path / "other" / "mine.py"
    for file in (one, other):
        file.parent.mkdir()
        file.write_text(SAME)
    said = {
        subprocess.run(
            [sys.executable, file, *arguments],
            capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": str(seed), "SOMETHING": str(seed)},
        ).stdout
        for seed, (file, *arguments) in enumerate([(one,), (other,), (one, f"{other}:problem")])
    }  # fmt: skip
    assert len(said) == 1


def test_answers_are_compared_component_by_component() -> None:
    def high(gain: float) -> apeval.Problem:
        return walk(
            reset=lambda draws: np.tile([0.0, 1e8], (draws.n, 1)),
            step=lambda x, a_A, a_E, draws: x + gain * a_E * [1.0, 0.0],
            failed=lambda x: x[:, 0] > 50.0,
            margin=None,
        )

    then, now = fingerprint(high(1.0)), fingerprint(high(1.2))
    assert differences(then, fingerprint(high(1.0))) == []
    assert any("what it does" in text for text in differences(then, now, ignore=("code",)))


def test_a_parameter_may_be_no_number(tmp_path: Path) -> None:
    made = [walk(parameters={"limit": value}) for value in (float("inf"), float("nan"))]
    apeval.evaluate(made[0], "mc", episodes=100, recorder=apeval.Recorder(tmp_path))
    then = apeval.load(tmp_path).identity
    assert differences(then, fingerprint(made[0])) == []
    assert differences(then, fingerprint(made[1])) == ["parameter limit (inf, now nan)"]


def test_resume_refuses_another_problem(tmp_path: Path) -> None:
    interrupted(scaled(1.0), tmp_path / "run")
    with pytest.raises(ApevalError, match=r"another problem or other code: .*what it does"):
        apeval.resume(tmp_path / "run", scaled(1.3))
    whole = apeval.evaluate(scaled(1.0), "mc", episodes=900)
    assert apeval.resume(tmp_path / "run", scaled(1.0)).estimate == whole.estimate


def test_resume_refuses_another_file_and_a_changed_import(command: Any, tmp_path: Path) -> None:
    helper = tmp_path / "plant_of_the_identity_test.py"
    helper.write_text("GAIN = 1.0\ndef move(x, e):\n    return x + GAIN * e\n")
    uses = "import plant_of_the_identity_test as plant"
    mine = write(tmp_path / "mine.py", step="plant.move(x, a_E)", imports=uses)
    other = write(tmp_path / "other.py", step="x + 1.3 * a_E")
    folder = tmp_path / "run"
    interrupted(apeval.make(mine), folder)
    status, _, err = command("resume", str(folder), "--problem", other)
    assert status == 2
    assert "what it does" in err
    helper.write_text("GAIN = 1.3\ndef move(x, e):\n    return x + GAIN * e\n")
    status, _, err = command("resume", str(folder), "--problem", mine)
    assert status == 2
    assert helper.name in err


def test_the_command_that_goes_on_is_complete(command: Any, tmp_path: Path) -> None:
    mine = write(tmp_path / "mine.py")
    interrupted(apeval.make(mine), tmp_path / "run")
    status, _, err = command("show", str(tmp_path / "run"))
    assert status == 2
    said = err.split("was not finished: apeval ")[1].split(" goes on with it")[0]
    assert command(*said.split())[0] == 0


def test_merge_compare_and_extend_see_another_nominal(command: Any, tmp_path: Path) -> None:
    runs = []
    for seed, std in enumerate((0.5, 0.6)):
        problem = walk(nominal=apeval.Normal(0.0, std), failed=lambda x: x[:, 0] > 2.0, margin=None)
        folder = tmp_path / str(seed)
        apeval.evaluate(problem, "mc", episodes=2_000, seed=seed, recorder=apeval.Recorder(folder))
        runs.append(apeval.load(folder))
    with pytest.raises(ApevalError, match=r"nominal disturbance .*σ 0.5, now .*σ 0.6"):
        apeval.merge(runs)
    assert not apeval.compare(*runs).comparable
    mine = write(tmp_path / "mine.py")
    assert command("run", mine, "--episodes", "300", "--out", str(tmp_path / "a"))[0] == 0
    (tmp_path / "mine.py").write_text((tmp_path / "mine.py").read_text().replace("> 3.0", "> 3.1"))
    status, _, err = command("run", mine, "--episodes", "300", "--extend", str(tmp_path / "a"))
    assert (status, "another problem" in err) == (2, True)


def test_a_report_speaks_of_the_run_alone(tmp_path: Path) -> None:
    mine = write(tmp_path / "mine.py")
    problem = apeval.make(mine, std=0.6)
    bare = apeval.Problem(
        **{name: getattr(problem, name) for name in
           ("nominal", "reset", "step", "failed", "margin", "horizon", "views")}
    )  # fmt: skip
    apeval.evaluate(bare, "mc", episodes=500, recorder=apeval.Recorder(tmp_path / "run"))
    page = write_report([tmp_path / "run"], tmp_path / "r.html").read_text()
    assert "σ 0.6" in page
    with pytest.raises(ApevalError, match=r"mine.py:problem is not the problem of"):
        write_report([tmp_path / "run"], tmp_path / "s.html", mine)  # its default std is 0.5
    assert not (tmp_path / "s.html").exists()


def test_packages_of_any_environment_are_not_the_users(tmp_path: Path) -> None:
    """Of another environment on the path too; and finding a module may raise anything."""
    shared = tmp_path / "other" / "lib" / "site-packages"
    (shared / "lib_of_others").mkdir(parents=True)
    (shared / "lib_of_others" / "__init__.py").write_text("")
    (tmp_path / "broken_package").mkdir()
    (tmp_path / "broken_package" / "__init__.py").write_text("__path__ = 5\n")
    mine = tmp_path / "mine.py"
    mine.write_text("import helper\nimport lib_of_others\nimport broken_package.part\n")
    (tmp_path / "helper.py").write_text("")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(shared))
        patch.syspath_prepend(str(tmp_path))
        found = source_files([], mine)
    names = {str(f.relative_to(tmp_path)) for f in found}
    assert names == {"mine.py", "helper.py", "broken_package/__init__.py"}
