"""The run folder: what goes in comes out, bit for bit."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import apeval
from apeval.errors import ApevalError
from apeval.estimate.interval import estimate
from apeval.learn.method import methods
from apeval.problem.draws import make_key
from apeval.problem.laws import CategoricalLaw, Law, NormalLaw, TruncatedNormalLaw
from apeval.problem.problem import Problem
from apeval.results import journal
from apeval.results.columns import TYPES
from apeval.results.files import write_bytes
from apeval.results.store import refuse_another
from apeval.run.completed_run import InMemory
from apeval.simulate.episodes import Episodes

ARRAYS = (
    "ids", "component", "length", "kind", "unresolved", "margin", "s_end", "a_0", "episode", "t",
    "s", "a_A", "a_E",
)  # fmt: skip


def bits(values: Any) -> tuple[str, tuple[int, ...], bytes]:
    array = np.asarray(values)
    return array.dtype.str, array.shape, array.tobytes()


def same_law(a: Law | None, b: Law | None) -> bool:
    if a is None or b is None:
        return a is b
    return type(a) is type(b) and all(bits(v) == bits(vars(b)[k]) for k, v in vars(a).items())


def assert_same(a: Episodes, b: Episodes) -> None:
    for name in ARRAYS:
        assert bits(getattr(a, name)) == bits(getattr(b, name)), name
    assert same_law(a.law, b.law)
    assert same_law(a.law_0, b.law_0)


# -- a batch -----------------------------------------------------------------------------------


def any_bits(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Random bits: infinities, −0, NaNs of every kind, extreme integers."""
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    raw = rng.integers(0, 256, (*shape, dtype.itemsize), np.uint8)
    values = np.ascontiguousarray(raw).view(dtype).reshape(shape)
    if dtype.kind == "f" and values.size:
        values = np.where(rng.random(shape) < 0.2, np.array(-0.0, dtype), values)
    return values


def some_law(rng: np.random.Generator, name: str, rows: int, d: int) -> Law:
    n = rows if rng.random() < 0.5 else 1
    if name == "categorical":
        return CategoricalLaw(rng.dirichlet(np.ones(3), n))
    f64 = np.dtype(np.float64)
    kind, fields = (NormalLaw, 2) if name == "normal" else (TruncatedNormalLaw, 4)
    return kind(*[any_bits(rng, (n, max(d, 1)), f64) for _ in range(fields)])


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 7),
    widths=st.tuples(st.one_of(st.integers(0, 4), st.just(65)), *[st.integers(0, 4)] * 3),
    types=st.tuples(*[st.sampled_from(sorted(TYPES))] * 4),
    law=st.sampled_from(["normal", "truncated", "categorical"]),
    start=st.booleans(),
)
def test_a_batch_comes_back_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, seed: int, n: int, widths: Any, types: Any, law: str,
    start: bool,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    decisions = rng.integers(1, 6, n)
    N = int(decisions.sum())
    s, a_A, a_E, a_0 = (TYPES[name] for name in types)
    batch = Episodes(
        ids=np.sort(rng.choice(10**6, n, replace=False)),
        component=rng.integers(0, 3, n),
        length=decisions + int(start),
        kind=rng.integers(0, 3, n),
        unresolved=rng.random(n) < 0.3,
        ended_by_roulette=rng.random(n) < 0.3,
        margin=any_bits(rng, (n,), np.dtype(np.float64)),
        s_end=any_bits(rng, (n, widths[0]), s),
        a_0=any_bits(rng, (n, widths[3]), a_0),
        law_0=some_law(rng, law, n, widths[3]) if start else None,
        episode=np.repeat(np.arange(n), decisions),
        t=np.concatenate([np.arange(k) for k in decisions]),
        s=any_bits(rng, (N, widths[0]), s),
        a_A=any_bits(rng, (N, widths[1]), a_A),
        a_E=any_bits(rng, (N, widths[2]), a_E),
        law=some_law(rng, law, N, widths[2]),
    )
    folder = tmp_path_factory.mktemp("batch")
    journal.write_batch(folder, 0, batch, 5, journal.Bond(""))
    assert_same(journal.read_batch(folder, 0), batch)
    assert journal.span(folder, 0) == (int(batch.ids[0]), n)
    assert sorted(p.name for p in folder.iterdir()) == [
        "000000.decisions.parquet",
        "000000.episodes.parquet",
    ]


def test_a_type_that_cannot_be_stored_is_refused(tmp_path: Path) -> None:
    batch = recorded(apeval.make("walk", top=5), "mc", 200).episodes
    odd = Episodes(**{**vars(batch), "s": batch.s.astype(np.longdouble)})
    with pytest.raises(ApevalError, match="float64, float32, integers or booleans"):
        journal.write_batch(tmp_path, 0, odd, 0, journal.Bond(""))


@dataclass(frozen=True)
class Nested(Law):
    """A law of the user's own, made of laws."""

    parts: tuple[Law, ...]
    scale: float

    def sample(self, u: Any) -> Any:
        return self.parts[0].sample(u)

    def log_prob(self, a: Any) -> Any:
        return self.parts[0].log_prob(a)


def test_a_law_of_ones_own_comes_back(tmp_path: Path) -> None:
    batch = recorded(gauss(), "mc", 200).episodes
    law = Nested((batch.law, NormalLaw(batch.s, np.ones((1, 1)))), 0.1)
    journal.write_batch(tmp_path, 0, Episodes(**{**vars(batch), "law": law}), 0, journal.Bond(""))
    again = journal.read_batch(tmp_path, 0).law
    assert isinstance(again, Nested)
    assert again.scale == 0.1
    assert all(same_law(a, b) for a, b in zip(again.parts, law.parts, strict=True))


# -- a run -------------------------------------------------------------------------------------


def gauss() -> Problem:
    return apeval.Problem(
        nominal=apeval.Normal(0.0, 1.0),
        reset=lambda draws, a_0: a_0.copy(),
        step=lambda x, a_A, a_E, draws: x + a_E,
        failed=lambda x: x[:, 0] > 4.2,
        initial=apeval.Normal(0.0, 1.0),
        margin=lambda x: 4.2 - x[:, 0],
        horizon=4,
        name="gauss",
    )


def recorded(problem: Problem, method: str, steps: int) -> InMemory:
    run = InMemory(problem)
    apeval.evaluate(problem, method, steps=steps, seed=1, recorder=run)
    return run


def cases() -> list[Any]:
    problems = {"walk": lambda: apeval.make("walk", top=5), "gauss": gauss}
    return [
        pytest.param(method.name, build, id=f"{method.name}-{name}")
        for method in methods().values()
        for name, build in problems.items()
        if method.suits(build()) is None
    ]


class Both:
    """Two recorders at once."""

    def __init__(self, *of: Any) -> None:
        self.of = of

    def begin(self, inputs: Any) -> None:
        for one in self.of:
            one.begin(inputs)

    def recorded(self, first: int, n: int) -> None:
        return None

    def batch(self, episodes: Episodes, position: int) -> None:
        for one in self.of:
            one.batch(episodes, position)

    def finish(self, outcome: Any) -> None:
        for one in self.of:
            one.finish(outcome)

    def close(self) -> None:
        for one in self.of:
            one.close()


@pytest.mark.parametrize(("method", "build"), cases())
def test_a_run_of_every_method_comes_back(method: str, build: Any, tmp_path: Path) -> None:
    problem = build()
    steps = 400 if method == "ape-scalable" else 1_500
    kept = InMemory(problem)
    both = Both(kept, apeval.Recorder(tmp_path / "run"))
    result = apeval.evaluate(problem, method, steps=steps, seed=2, recorder=both)
    run = apeval.load(tmp_path / "run")

    assert run.result.as_json() == result.as_json()
    assert str(run) == str(result)
    assert json.dumps(run.records) == json.dumps(result.records)
    assert [tuple(p) for p in run.curve] == [tuple(p) for p in result.curve]
    for name, values in vars(kept.sample).items():
        if isinstance(values, np.ndarray) or values is None:
            assert bits(getattr(run.sample, name)) == bits(values), name
    again = estimate(run.sample, result.confidence)
    assert (again.value, again.interval) == (result.estimate, result.interval)
    assert_same(run.episodes, kept.episodes)
    assert np.array_equal(run.episodes.length, run.sample.length)
    assert run.learning is None or not np.isin(run.learning.ids, run.ids).any()
    counted = run.episodes.n + (0 if run.learning is None else run.learning.n)
    # who learns decision by decision has no batches of learning to record
    steps_alone = method in ("ape-tabular", "ape-discrete") or (method == "ape" and problem.table)
    assert counted == (run.episodes.n if steps_alone else result.episodes)
    assert np.array_equal(run.key, make_key(2))
    assert abs(run.model.arrays["shares"].sum() - 1.0) < 1e-12
    assert len(run.model.structure["components"]) == len(run.model.arrays["shares"])


def test_recording_changes_nothing(tmp_path: Path) -> None:
    problem = gauss()
    plain = apeval.evaluate(problem, steps=1_500, seed=3).as_json()
    stored = apeval.evaluate(
        problem, steps=1_500, seed=3, recorder=apeval.Recorder(tmp_path)
    ).as_json()
    assert {**plain, "seconds": 0} == {**stored, "seconds": 0}


def test_the_problem_is_built_again_with_its_parameters_and_view(tmp_path: Path) -> None:
    problem = replace(apeval.make("int-v1", std=0.8).seen_as("paper"), truth=None)
    apeval.evaluate(problem, "mc", episodes=50, recorder=apeval.Recorder(tmp_path))
    again = apeval.load(tmp_path).problem()
    assert again.parameters == problem.parameters
    assert again.view == "paper"


def test_a_problem_of_ones_own_runs_only_when_it_is_named(tmp_path: Path) -> None:
    code = tmp_path / "mine.py"
    code.write_text(
        "import apeval, pathlib\n"
        "pathlib.Path(__file__).with_suffix('.ran').touch()\n"
        "def problem(top: int = 4):\n    return apeval.make('walk', top=top)\n"
    )
    problem = apeval.make(f"{code}:problem", top=5)
    apeval.evaluate(problem, "mc", episodes=300, recorder=apeval.Recorder(tmp_path / "run"))
    code.with_suffix(".ran").unlink()
    code.write_text(code.read_text() + "\n")  # a new file: nothing remembers the old
    run = apeval.load(tmp_path / "run")
    assert run.episodes.n == 300
    with pytest.raises(ApevalError, match="`problem="):
        run.problem()
    assert not code.with_suffix(".ran").exists()
    assert run.problem(f"{code}:problem").parameters == {"top": 5}
    with pytest.raises(ApevalError, match="not the problem of"):
        run.problem("int-v1")


def test_the_folder_says_where_it_comes_from(tmp_path: Path) -> None:
    code = tmp_path / "policy.py"
    code.write_text("pass\n")
    command = ["apeval", "run", "walk", "--out", "/home/someone/x", "--set", "a=b c"]
    recorder = apeval.Recorder(tmp_path / "run", command=command, files=[code])
    apeval.evaluate(apeval.make("walk", top=5), "mc", episodes=100, recorder=recorder)
    about = apeval.load(tmp_path / "run").provenance
    assert about["command"] == "apeval run walk --out x --set 'a=b c'"
    assert about["inputs"]["seed"] == 0
    assert about["inputs"]["parameters"]["top"] == 5
    assert about["files"][0]["name"] == "policy.py"
    assert len(about["source_sha256"]) == len(about["files"][0]["sha256"]) == 64
    assert about["versions"].keys() >= {"apeval", "python", "numpy"}
    assert about["started"] <= about["ended"]
    assert str(tmp_path) not in json.dumps(about)


def test_a_new_run_replaces_an_old_one_and_nothing_else(tmp_path: Path) -> None:
    walk = apeval.make("walk", top=5)
    apeval.evaluate(walk, "mc", episodes=1_200, recorder=apeval.Recorder(tmp_path))
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "episodes" / "notes.txt").write_text("mine")
    apeval.evaluate(walk, "mc", episodes=300, recorder=apeval.Recorder(tmp_path))
    assert apeval.load(tmp_path).episodes.n == 300
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert (tmp_path / "episodes" / "notes.txt").read_text() == "mine"


def test_a_file_in_a_folders_place_and_a_folder_in_a_files_are_refused(tmp_path: Path) -> None:
    file, folder = tmp_path / "my.py", tmp_path / "runs"
    file.write_text("")
    folder.mkdir()
    with pytest.raises(ApevalError, match="is a file, not a run folder"):
        apeval.load(file)
    with pytest.raises(ApevalError, match="cannot write"):
        write_bytes(folder, b"x")
    assert sorted(tmp_path.iterdir()) == [file, folder]  # no draft is left behind


def test_another_problems_code_is_not_replayed(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(
        "import apeval\ndef wide(): return apeval.make('gaussian-sum', steps=4)\n"
        "def narrow(): return apeval.Problem(nominal=apeval.Normal([0, 0], 1), "
        "reset=lambda d: 0, agent=lambda x: 0, step=lambda *a: 0, failed=lambda x: 0, horizon=4, "
        "kinds=('high',))\n"
    )
    out, code = tmp_path / "run", f"{tmp_path / 'two.py'}"
    problem = apeval.make(f"{code}:wide")
    apeval.evaluate(problem, "mc", episodes=300, recorder=apeval.Recorder(out))
    assert apeval.load(out).problem(f"{code}:wide").nominal.dim == problem.nominal.dim
    says = r"narrow is not the problem of .*1 component, .*, now .*2 components"
    with pytest.raises(ApevalError, match=says):
        apeval.load(out).problem(f"{code}:narrow")


def test_a_run_under_way_is_not_taken_for_a_finished_one(tmp_path: Path) -> None:
    recorder = apeval.Recorder(tmp_path)
    recorder.begin({})
    recorder.batch(recorded(gauss(), "mc", 200).episodes, 0)
    with pytest.raises(ApevalError, match="is under way"):
        apeval.load(tmp_path)
    recorder.close()
    with pytest.raises(ApevalError, match="was not finished"):
        apeval.load(tmp_path)
    assert journal.numbers(tmp_path / journal.JOURNAL) == [0]
    torn = tmp_path / journal.JOURNAL / "000001.decisions.parquet"
    torn.write_bytes(b"PAR1")  # interrupted before the second file of the pair
    assert journal.numbers(tmp_path / journal.JOURNAL) == [0]


def test_a_run_of_another_problem_is_not_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    walk = apeval.make("walk", top=5)
    apeval.evaluate(walk, steps=500, recorder=apeval.Recorder(folder))
    refuse_another(folder, walk)
    for other in (apeval.make("walk", top=6), apeval.make("one-step")):
        with pytest.raises(ApevalError, match="holds a run of walk"):
            refuse_another(folder, other)
