"""What the fuzzer found, each mended and kept from coming back."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import apeval
from apeval.environments.walk import gambler
from apeval.errors import ApevalError, ProblemError
from apeval.learn.method import methods
from apeval.problem.laws import CategoricalLaw
from apeval.problem.truth import Computed
from apeval.results import journal
from apeval.results.manifest import read_state, write_manifest
from apeval.results.report.moments import Decisions
from apeval.simulate.replay import replay
from apeval_bench.fuzz.damage import seal
from apeval_bench.fuzz.tables import payload
from apeval_paper.environments.minigrid.policy import read

Command = Callable[..., tuple[int, str, str]]


def one_step(**wrong: Any) -> apeval.Problem:
    right: dict[str, Any] = {
        "nominal": apeval.Normal(0.0, 1.0),
        "reset": lambda draws: np.zeros((draws.n, 1)),
        "step": lambda x, a_A, a_E, draws: x + a_E,
        "failed": lambda x: x[:, 0] > 1.0,
        "horizon": 3,
    }
    return apeval.Problem(**{**right, **wrong})


# -- arguments ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"below": {}},
        {"below": "x"},
        {"target_error": ()},
        {"target_error": [0.1]},
        {"method": True},
        {"method": {"mc": 1}},
        {"settings": True},
        {"settings": [1]},
        {"confidence": "x"},
        {"seed": None},
    ],
    ids=str,
)
def test_arguments_of_another_type_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ApevalError):
        apeval.evaluate(apeval.make("walk", top=5), **{"episodes": 20, **wrong})


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("walk", {"p_up": b"x"}),
        ("walk", {"top": float("inf")}),
        ("walk", {"top": 2**53}),
        ("scaled", {"steps": None}),
        ("scaled", {"beta": 1e308}),
        ("one-step", {"beta": float("nan")}),
        ("minigrid-stuck", {"p_stay": 1j}),
        ("pendulum-discrete", {"std": ()}),
        ("int-v0", {"frames": {}}),
        ("minigrid-s1", {"name": "x"}),
        (True, {}),
        ([], {}),
    ],
    ids=str,
)
def test_parameters_that_no_problem_has_are_refused(name: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(ApevalError):
        apeval.make(name, **wrong)


def test_a_run_does_not_wait_for_a_truth_that_must_be_computed() -> None:
    """A changed intersection has a truth by dynamic programming, in 10 s to minutes."""

    def wait() -> apeval.Truth:
        raise AssertionError("asked for")

    changed = apeval.make("int-v0", reference_speed=9.0)
    assert isinstance(changed.truth, Computed)
    assert apeval.make("int-v0").known_truth() is not None
    problem = one_step(truth=Computed(wait))
    assert apeval.evaluate(problem, "mc", episodes=20).truth is None


@pytest.mark.parametrize(("p_up", "top"), [(1 / 3, 900), (1e-3, 90), (0.4, 1_700)])
def test_the_ruin_of_a_hopeless_gambler_is_a_number(p_up: float, top: int) -> None:
    """odds^top left the range of a double."""
    odds = (1 - Fraction(p_up)) / Fraction(p_up)
    exact = (odds**3 - 1) / (odds**top - 1)
    assert 0.0 < gambler(p_up, 3, top) == pytest.approx(float(exact), rel=1e-9, abs=0.0)
    assert gambler(1e-320, 3, top) == 0.0


def test_a_number_of_another_type_is_taken_as_a_number() -> None:
    assert apeval.make("walk", top=np.int64(5)).parameters["top"] == 5
    assert apeval.make("one-step", beta=np.float32(3.0)).parameters["beta"] == 3.0


@pytest.mark.parametrize("path", [(), b"x", None, "n" * 5_000, "a\0b"], ids=repr)
def test_what_is_no_path_of_a_run_is_refused(path: Any) -> None:
    with pytest.raises(ApevalError) as caught:
        apeval.load(path)
    assert len(str(caught.value)) < 2_000


def test_a_choice_may_be_none_and_still_be_named(command: Command) -> None:
    line = ("run", "int-v1", "--steps", "300", "--method", "ape-scalable", "--set")
    code, _, err = command(*line, "policy_update=64")
    assert code == 2
    assert err.startswith("apeval: unknown value of policy_update '64'")


@pytest.mark.parametrize("name", sorted(methods()))
def test_every_method_lists_its_settings(command: Command, name: str) -> None:
    code, out, err = command("list", name)
    assert (code, err) == (0, "")
    assert all(field.name in out for field in dataclasses.fields(methods()[name].config))


def test_an_output_with_too_long_a_name_is_refused(command: Command, tmp_path: Path) -> None:
    line = ("run", "walk", "--steps", "300", "--out", str(tmp_path / ("n" * 300)))
    code, _, err = command(*line)
    assert (code, err.count("\n")) == (2, 1)
    assert "File name too long" in err


def test_a_name_cannot_order_the_terminal_about(command: Command) -> None:
    code, _, err = command("run", "\x1b[31mred\nsecond line \u202e")
    assert code == 2
    assert err.startswith(r"apeval: unknown problem '\x1b[31mred second line \u202e'.")
    assert err.count("\n") == 1


def test_an_error_is_short_enough_to_read(command: Command) -> None:
    _, _, err = command("run", "x" * 5_000)
    assert len(err) < 2_000


# -- problems ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            {"step": lambda x, a_A, a_E, draws: None},
            "the state is None: does `reset` or `step` lack",
        ),
        (
            {"step": lambda x, a_A, a_E, draws: np.concatenate([x, a_E], axis=1)},
            "the number of columns must not change",
        ),
        ({"reset": lambda draws: 0}, "`reset` returned a int"),
        ({"margin": lambda x: ["a"] * len(x)}, "`margin` returned <U1"),
        ({"agent": lambda x: None}, "`agent` returned None"),
        ({"done": lambda x: x}, r"`done` returned float64 of shape \(20, 1\)"),
        ({"done": lambda x: None}, "`done` returned None"),
        ({"margin": lambda x: 1.0}, r"`margin` returned float64 of shape \(\)"),
        ({"margin": lambda x: x[:, 0] + 1j}, "`margin` returned complex128"),
        ({"views": {"a": lambda x: x[0]}}, "view 'a'"),
    ],
    ids=lambda it: it if isinstance(it, str) else "-".join(it),
)
def test_evaluate_names_the_function_that_returned_nonsense(wrong: Any, says: str) -> None:
    with pytest.raises(ProblemError, match=says):
        apeval.evaluate(one_step(**wrong), "mc", episodes=20, check=False)


def test_nonsense_is_named_also_where_a_worker_met_it() -> None:
    wrong = one_step(reset=lambda draws: 0)
    with pytest.raises(ProblemError, match="`reset` returned a int"):
        apeval.evaluate(wrong, "mc", episodes=20, backend="processes", workers=1)


class Endless:
    """A state that is no array, and whose entries have entries."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, rows: Any) -> Endless:
        return Endless(int(np.sum(rows)))


def test_a_state_that_is_no_array_does_not_hang() -> None:
    """NumPy walked through its entries' entries, without end."""
    problem = one_step(step=lambda x, a_A, a_E, draws: Endless(draws.n))
    (bad,) = apeval.check_problem(problem, episodes=12, seconds=0.3).bad
    assert "what a method sees of it, views=" in bad.message
    with pytest.raises(ProblemError, match="views="):
        apeval.evaluate(problem, "mc", episodes=20)


def test_an_exception_that_is_not_the_problems_is_not_hidden(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("apeval.simulate.task.rollout", len)
    with pytest.raises(RuntimeError, match="TypeError: len"):
        apeval.evaluate(one_step(), "mc", episodes=20)


@pytest.mark.parametrize("where", ["def problem():\n    raise SystemExit(5)", "step"])
def test_code_that_ends_python_is_told_where(command: Command, tmp_path: Path, where: str) -> None:
    text = where
    if where == "step":
        text = (
            "import sys, numpy as np, apeval\n"
            "def step(x, a_A, a_E, draws):\n    sys.exit(4)\n"
            "def problem():\n"
            "    return apeval.Problem(nominal=apeval.Normal(), step=step, horizon=3,\n"
            "        reset=lambda draws: np.zeros((draws.n, 1)), failed=lambda x: x[:, 0] > 1)\n"
        )
    (tmp_path / "mine.py").write_text(text)
    line = ("run", str(tmp_path / "mine.py"), "--steps", "50", "--no-check")
    code, _, err = command(*line)
    assert (code, err.count("\n")) == (2, 1)
    assert re.search(r"SystemExit: \d \(mine.py, line \d\)", err)
    assert command("check", str(tmp_path / "mine.py"))[0] in (1, 2)


def test_an_exception_without_words_is_still_one_line(command: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "class Odd(Exception):\n    def __str__(self):\n        raise ValueError\n"
        "def problem():\n    raise Odd\n"
    )
    code, _, err = command("run", str(tmp_path / "mine.py"), "--steps", "50")
    assert code == 2
    assert "raised Odd (mine.py, line 5)" in err


@pytest.mark.parametrize("std", [np.inf, np.nan, [1.0, np.inf]])
def test_a_disturbance_without_a_density_is_refused(std: Any) -> None:
    with pytest.raises(ProblemError, match="positive and finite"):
        apeval.Normal(0.0, std)
    with pytest.raises(ProblemError, match="mean must be finite"):
        apeval.TruncatedNormal(np.inf, 1.0, -1.0, 1.0)


def test_a_std_below_zero_in_some_state_is_refused() -> None:
    """Its density is no number, and neither would the estimate be."""
    nominal = apeval.Normal(0.0, lambda x, a_A: np.where(x > 0.5, -1.0, 1.0))
    with np.errstate(invalid="ignore"), pytest.raises(ProblemError, match="std must be > 0"):
        apeval.evaluate(one_step(nominal=nominal), "mc", episodes=50, check=False)


def test_a_horizon_beyond_memory_is_refused_by_cem() -> None:
    with pytest.raises(ApevalError, match="cem keeps a density for every decision"):
        apeval.evaluate(one_step(horizon=10**9), "cem", episodes=20)


def test_tables_of_the_wrong_type_are_refused() -> None:
    right = {"agent": np.ones((3, 1)), "nominal": np.full((3, 1, 2), 0.5)}
    with pytest.raises(ProblemError, match="successor must be a NumPy array of whole numbers"):
        apeval.TabularModel(**right, successor=np.full((3, 1, 2), 0.5), start=0)  # type: ignore[arg-type]
    with pytest.raises(ProblemError, match=r"start 1\.5 is not one of"):
        apeval.TabularModel(**right, successor=np.zeros((3, 1, 2), int), start=1.5)  # type: ignore[arg-type]


def test_a_truth_that_is_none_is_refused() -> None:
    with pytest.raises(ProblemError, match=r"expected an apeval\.Truth"):
        apeval.evaluate(one_step(truth=lambda: 0.5), "mc", episodes=20)


# -- run folders -------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path: Path) -> Path:
    recorder = apeval.Recorder(tmp_path / "run")
    apeval.evaluate(apeval.make("one-step", beta=2.0), episodes=400, recorder=recorder)
    return tmp_path / "run"


def read_all(folder: Path) -> None:
    run = apeval.load(folder)
    assert run.sample.n
    assert run.model.arrays


def rewrite(path: Path, edit: Callable[[Any, Any], tuple[Any, Any]]) -> None:
    table = pq.read_table(path)
    table, about = edit(table, json.loads(table.schema.metadata[b"apeval"]))
    pq.write_table(table.replace_schema_metadata({b"apeval": json.dumps(about)}), path)


def chain(folder: Path) -> None:
    """The journal's digests anew, as someone would make them who wants an edit to pass."""
    state, last = read_state(folder), journal.EMPTY
    for number in range(state.batches):
        for path in journal.paths(folder / "episodes", number):
            rewrite(path, lambda table, about, last=last: (table, {**about, "previous": last}))
        last = journal.digest(folder / "episodes", number)
    write_manifest(folder, dataclasses.replace(state, journal=last))


def test_a_type_that_is_no_name_is_refused(run: Path) -> None:
    def edit(table: Any, about: Any) -> tuple[Any, Any]:
        about["arrays"]["s"]["type"] = ["float64"]
        return table, about

    rewrite(run / "episodes" / "000000.decisions.parquet", edit)
    chain(run)
    with pytest.raises(ApevalError, match="s has an unknown type"):
        apeval.load(run).episodes  # noqa: B018


@pytest.mark.parametrize("name", [["law_mean"], {}, 3, None])
def test_a_column_that_is_no_name_is_refused(run: Path, name: Any) -> None:
    def edit(table: Any, about: Any) -> tuple[Any, Any]:
        about["law"]["fields"]["mean"] = {"column": name}
        return table, about

    rewrite(run / "episodes" / "000000.decisions.parquet", edit)
    chain(run)
    with pytest.raises(ApevalError, match="a column of a law is missing"):
        apeval.load(run).episodes  # noqa: B018


def test_decisions_out_of_number_are_refused(run: Path) -> None:
    def edit(table: Any, about: Any) -> tuple[Any, Any]:
        k = table.column_names.index("t")
        return table.set_column(k, "t", pa.array(np.full(table.num_rows, 2**62))), about

    rewrite(run / "episodes" / "000000.decisions.parquet", edit)
    chain(run)
    with pytest.raises(ApevalError, match="not numbered from 0 on"):
        apeval.load(run).learning  # noqa: B018


@pytest.mark.parametrize(
    ("kind", "shape", "says"),
    [
        ("NormalLaw", [3, 1], "laws do not fit|wrong"),
        ("NormalLaw", [1, 7], "laws|batches do not fit"),
        ("CategoricalLaw", [1, 1], "damaged"),
    ],
)
def test_laws_that_do_not_fit_their_decisions_are_refused(
    run: Path, kind: str, shape: list[int], says: str
) -> None:
    from apeval.results.columns import pack

    values = {"array": pack(np.ones(shape), "x")}
    names = ["mean", "std"] if kind == "NormalLaw" else ["probabilities"]

    def edit(table: Any, about: Any) -> tuple[Any, Any]:
        about["law"] = {
            "law": f"apeval.problem.laws:{kind}",
            "fields": dict.fromkeys(names, values),
        }
        return table, about

    rewrite(run / "episodes" / "000000.decisions.parquet", edit)
    chain(run)
    with pytest.raises(ApevalError, match=says):
        list(apeval.load(run).batches()) and apeval.load(run).learning


@pytest.mark.parametrize("name", ["model.safetensors", "sample.parquet", "result.json"])
def test_a_file_that_says_it_is_huge_is_refused_before_it_is_read(run: Path, name: str) -> None:
    """Its hash alone would have taken an hour."""
    os.truncate(run / name, 2**42)
    with pytest.raises(ApevalError, match=f"{name} has .* bytes, more than"):
        read_all(run)


def test_a_policy_table_cannot_run_code(tmp_path: Path) -> None:
    (tmp_path / "table.npz").write_bytes(payload(tmp_path / "hit"))
    with pytest.raises(ValueError, match="pickled"):
        read(tmp_path / "table.npz")
    np.savez(tmp_path / "table.npz", weight0=np.array([open, "x"], dtype=object), bias0=np.zeros(1))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        read(tmp_path / "table.npz")
    assert not (tmp_path / "hit").exists()


@pytest.mark.parametrize("name", ["\x1b]0;owned\x07", "\u202egnp", "\ud800"])
def test_a_folder_cannot_order_the_terminal_about(command: Command, run: Path, name: str) -> None:
    data = json.loads((run / "result.json").read_text())
    data["warnings"] = [name]
    (run / "result.json").write_text(json.dumps(data))
    about = json.loads((run / "provenance.json").read_text())
    about["result"] = data
    (run / "provenance.json").write_text(json.dumps(about))
    seal(run)
    code, out, _ = command("show", str(run))
    assert code == 0
    assert name not in out
    assert "\\" in out
    code, out, _ = command("show", str(run), "--json")
    assert code == 0
    json.loads(out)


def test_failures_of_a_kind_that_the_problem_lacks_are_simulated_again(tmp_path: Path) -> None:
    class CutError(Exception):
        pass

    def cut(state: Any) -> None:
        if state.episodes >= 200:
            raise CutError

    problem = apeval.make("one-step", beta=2.0)
    folder = tmp_path / "cut"
    with pytest.raises(CutError):
        apeval.evaluate(
            problem, episodes=400, block=64, recorder=apeval.Recorder(folder), listener=cut
        )

    def edit(table: Any, about: Any) -> tuple[Any, Any]:
        k = table.column_names.index("kind")
        kind = table.column("kind").to_numpy() * 7
        return table.set_column(k, "kind", pa.array(kind)), about

    for path in sorted((folder / "episodes").glob("*.episodes.parquet")):
        rewrite(path, edit)
    said: list[str] = []
    resumed = apeval.resume(folder, problem, allow_changes=True, tell=said.append)
    assert "has changed since it was stored" in said[0]
    whole = apeval.evaluate(problem, episodes=400, block=64)
    assert (resumed.estimate, resumed.interval) == (whole.estimate, whole.interval)


def test_a_record_without_numbers_is_refused() -> None:
    problem = apeval.make("one-step", beta=2.0)
    record = {"key": [1, 2], "id": 3, "a_0": [], "a_E": [[{}]]}
    with pytest.raises(ApevalError, match="its actions are no numbers"):
        replay(problem, record)


def test_numbers_beyond_a_double_are_averaged_in_silence() -> None:
    groups = Decisions.of(np.zeros(2, np.int64))
    mean, spread = groups.mean(np.array([[1e200], [-1e308]]), np.ones(2))
    assert np.isfinite(mean).all()
    assert not np.isfinite(spread).any()


def test_a_chance_below_zero_has_no_logarithm_and_no_warning() -> None:
    law = CategoricalLaw(np.array([[1.5, -0.5]]))
    assert np.isnan(law.log_prob(np.array([[1]]))).all()
