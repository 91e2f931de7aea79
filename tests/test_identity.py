"""A problem has an identity, and a run keeps it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.test_ownership import walk
from tests.test_resume import Struck

import apeval
from apeval.environments import entries
from apeval.errors import ApevalError
from apeval.results.report import write_report
from apeval.simulate.identity.code import digest
from apeval.simulate.identity.identity import differences, identify
from apeval.simulate.identity.reference import reference

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
    stored: dict[str, Any] = json.loads(json.dumps(identify(problem, reference(problem))))
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
