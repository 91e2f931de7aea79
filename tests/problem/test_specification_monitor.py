"""A specification's monitor against three oracles: rtamt's answers, and two direct evaluations."""

from __future__ import annotations

import importlib.util
import json
import math
import random
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import apeval
from apeval.errors import ProblemError
from apeval.problem.specification.monitor import Monitor
from apeval.problem.specification.parser import parse
from apeval.problem.specification.syntax import (
    Always,
    BooleanConstant,
    Eventually,
    Every,
    Formula,
    Not,
    Predicate,
    Some,
)

ROOT = Path(__file__).parents[2]
Answers = list[tuple[str, dict[str, list[float]], float]]


def tool() -> Any:
    where = importlib.util.spec_from_file_location("rtamt_answers", ROOT / "tools/rtamt_answers.py")
    assert where is not None
    assert where.loader is not None
    module = importlib.util.module_from_spec(where)
    where.loader.exec_module(module)
    return module


def robustness(it: Formula, signals: Mapping[str, Any], t: int, end: int) -> float:
    """At moment t of an episode with moments 0 … end − 1."""
    if isinstance(it, Predicate):
        now = {name: np.float64(values[t]) for name, values in signals.items()}
        left, right = float(it.left.of(now)), float(it.right.of(now))
        distance = {
            "<": right - left, "<=": right - left, ">": left - right, ">=": left - right,
            "==": -abs(left - right), "!=": abs(left - right),
        }  # fmt: skip
        return distance[it.sign]
    if isinstance(it, BooleanConstant):
        return np.inf if it.value else -np.inf
    if isinstance(it, Not):
        return -robustness(it.part, signals, t, end)
    if isinstance(it, Every | Some):
        parts = [robustness(part, signals, t, end) for part in it.parts]
        return min(parts) if isinstance(it, Every) else max(parts)
    last = end - 1 if it.high is None else min(end - 1, t + it.high)
    window = range(t + it.low, last + 1)
    if isinstance(it, Always):
        return min((robustness(it.part, signals, s, end) for s in window), default=np.inf)
    if isinstance(it, Eventually):
        return max((robustness(it.part, signals, s, end) for s in window), default=-np.inf)
    ways = []
    for s in window:
        before = [robustness(it.left, signals, u, end) for u in range(t, s)]
        ways.append(min([robustness(it.right, signals, s, end), *before]))
    return max(ways, default=-np.inf)


def holds(it: Formula, signals: Mapping[str, Any], t: int, end: int) -> bool:
    """Whether it is true at moment t: as Booleans, without robustness."""
    if isinstance(it, Predicate):
        now = {name: np.float64(values[t]) for name, values in signals.items()}
        left, right = float(it.left.of(now)), float(it.right.of(now))
        return {
            "<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right,
            "==": left == right, "!=": left != right,
        }[it.sign]  # fmt: skip
    if isinstance(it, BooleanConstant):
        return it.value
    if isinstance(it, Not):
        return not holds(it.part, signals, t, end)
    if isinstance(it, Every | Some):
        parts = [holds(part, signals, t, end) for part in it.parts]
        return all(parts) if isinstance(it, Every) else any(parts)
    last = end - 1 if it.high is None else min(end - 1, t + it.high)
    window = range(t + it.low, last + 1)
    if isinstance(it, Always):
        return all(holds(it.part, signals, s, end) for s in window)
    if isinstance(it, Eventually):
        return any(holds(it.part, signals, s, end) for s in window)
    return any(
        holds(it.right, signals, s, end)
        and all(holds(it.left, signals, u, end) for u in range(t, s))
        for s in window
    )


def agrees(text: str, signals: dict[str, list[float]], oracle: float) -> bool:
    """The same robustness, and the same verdict where it is not 0, for which rtamt has none."""
    found = apeval.spec(text, signals=dict.fromkeys(signals)).robustness(**signals)
    same = found == oracle or abs(found - oracle) <= 1e-9
    return bool(same and (oracle == 0.0 or (found < 0.0) == (oracle < 0.0)))


def test_rtamt_agrees_on_all_kept_answers() -> None:
    kept = json.loads((ROOT / "tests/data/rtamt.json").read_text("utf-8"))
    assert len(kept["answers"]) >= 2_000
    assert kept["traces"] == tool().traces()
    wrong = [
        text
        for text, number, answer in kept["answers"]
        if not agrees(text, kept["traces"][number], float(answer))
    ]
    assert wrong == []


def test_rtamt_itself_agrees() -> None:
    pytest.importorskip("rtamt", reason="rtamt is not installed: its kept answers are compared")
    asked, traces = tool(), tool().traces()
    for number in range(300):
        text = asked.formula(random.Random(10_000 + number), 3)
        signals = traces[number % len(traces)]
        assert agrees(text, signals, asked.ask(text, signals)), text


def test_until_has_the_sign_that_rtamt_loses_in_dense_time() -> None:
    """rtamt's issue 210: −0.5 there, where the step comes exactly in time."""
    until = apeval.spec("(h < 0.5) until[0,1] (h >= 0.5)", h=None)
    assert until.robustness(h=[0.0, 1.0]) == 0.5


def random_cases(number: int, seed: int) -> Iterator[tuple[str, Formula, dict[str, Any]]]:
    """Formulas with windows without an end anywhere, and signals that often meet the numbers."""
    for k in range(number):
        rng = random.Random(seed + k)
        text = tool().formula(rng, rng.randint(1, 4))
        for low in range(3):  # some bounds lose their end
            if rng.random() < 0.5:
                text = text.replace(f"[{low},{low + 1}]", f"[{low},inf]")
        length = rng.randint(1, 10)
        draw = np.random.default_rng(seed + k)
        values = draw.normal(0.0, 2.0, (3, 2, length))
        values = values if k % 2 else values.round()
        yield text, parse(text, ("x", "y", "z")), dict(zip("xyz", values, strict=True))


def test_every_moment_agrees_with_the_definition() -> None:
    """The monitor after each moment, for an episode that ends there: robustness, and verdict."""
    for text, formula, signals in random_cases(400, 1_000):
        monitor, n = Monitor(formula), len(signals["x"])
        memory = monitor.start(n)
        best, worst = np.full(n, np.inf), np.full(n, -np.inf)
        for t in range(signals["x"].shape[1]):
            time = np.full(n, t)
            memory = monitor.step(memory, time, {k: v[:, t] for k, v in signals.items()})
            found = monitor.robustness(memory, time)
            for row in range(n):
                one = {k: v[row] for k, v in signals.items()}
                truth = robustness(formula, one, 0, t + 1)
                assert found[row] == pytest.approx(truth, abs=1e-300), (text, t)
                assert (found[row] > 0.0) == holds(formula, one, 0, t + 1), (text, t)
            upper, lower = monitor.upper(memory, time), monitor.lower(memory, time)
            assert np.all((lower <= found) & (found <= upper)), text
            assert np.all((upper <= best) & (lower >= worst)), text  # bounds only close in
            best, worst = upper, lower
        assert not np.any(found == 0.0)


def test_rows_are_episodes_of_their_own() -> None:
    """Masked, doubled and mixed with rows at other times, an episode's memory stays its own."""
    text = "always (x > 1 implies eventually[0,3] y < 0) and not (always[1,2] x > 0 until y > 1)"
    monitor = Monitor(parse(text, ("x", "y")))
    draw = np.random.default_rng(0)
    a, b = draw.normal(size=(2, 2, 9))

    def run(signals: Any, upto: int) -> Any:
        memory = monitor.start(1)
        for t in range(upto):
            values = {"x": signals[0][t : t + 1], "y": signals[1][t : t + 1]}
            memory = monitor.step(memory, np.array([t]), values)
        return memory

    mixed = np.concatenate([run(a, 5), run(b, 8), run(a, 5)])[[1, 0, 0, 2]]
    time = np.array([8, 5, 5, 5])
    values = {"x": np.array([b[0][8], *[a[0][5]] * 3]), "y": np.array([b[1][8], *[a[1][5]] * 3])}
    mixed = monitor.step(mixed, time, values)
    alone = np.concatenate([run(b, 9), *[run(a, 6)] * 3])
    assert np.array_equal(mixed, alone)
    assert np.array_equal(monitor.robustness(mixed, time), monitor.robustness(alone, time))


@pytest.mark.parametrize(
    ("text", "signals", "truth"),
    [
        ("always x > 2", [3.0, 2.0], False),  # equal is not above
        ("always x >= 2", [3.0, 2.0], True),
        ("eventually x == 2", [3.0, 2.0], True),
        ("always x != 2", [3.0, 2.0], False),
        ("not (x >= 3)", [3.0], False),
        ("always[5,9] x > 2", [0.0, 0.0], True),  # the window never came
        ("eventually[5,9] x < 2", [0.0, 0.0], False),
        ("eventually[0,9] x < 0", [1.0, 1.0], False),  # the window was still open
        ("x > 0 until x > 5", [1.0, 1.0], False),
        ("always (x > 4 implies eventually[0,9] x < 1)", [0.0, 5.0], False),
        ("true", [0.0], True),
        ("always false", [0.0], False),
    ],
)
def test_edges_are_defined(text: str, signals: list[float], truth: bool) -> None:
    """At robustness 0, and at an end before a window closes."""
    found = apeval.spec(text, x=None).robustness(x=signals)
    assert (found > 0.0) == truth
    assert found != 0.0


def test_a_violation_is_certain_as_soon_as_nothing_can_mend_it() -> None:
    def certain(text: str, x: list[float]) -> int | None:
        monitor = Monitor(parse(text, ("x",)))
        memory = monitor.start(1)
        for t, value in enumerate(x):
            memory = monitor.step(memory, np.array([t]), {"x": np.array([value])})
            if monitor.upper(memory, np.array([t]))[0] < 0.0:
                return t
        return None

    assert certain("always x > 0", [1.0, 2.0, -1.0, 1.0]) == 2
    assert certain("always[0,1] x > 0", [1.0, 2.0, -1.0, 1.0]) is None
    assert certain("eventually[0,2] x < 0", [1.0, 1.0, 1.0, 1.0]) == 2
    assert certain("eventually x < 0", [1.0, 1.0, 1.0, 1.0]) is None
    assert certain("always (x > 1 implies eventually[0,2] x < 0)", [0.5, 2.0, 1.0, 1.0]) == 3
    assert certain("x < 2 until x > 5", [1.0, 3.0, 9.0]) == 1
    assert certain("always x > 0 or eventually[3,4] x > 8", [1.0, -1.0, 0, 0, 0, 0]) == 4


def test_bounds_may_be_seconds() -> None:
    steps = parse("always[0,5] x > 0", ("x",))
    assert parse("always[0,0.5] x > 0", ("x",), dt=0.1) == steps
    assert parse("always[0, 0.59] x > 0", ("x",), dt=0.1) == steps
    late = parse("eventually[0.3, 0.6] x > 0", ("x",), dt=0.1)  # 0.3 / 0.1 is below 3
    assert (late.low, late.high) == (3, 6)  # type: ignore[union-attr]


def test_precedence() -> None:
    def same(one: str, other: str) -> bool:
        names = ("a", "b", "c")
        return _bare(parse(one, names)) == _bare(parse(other, names))

    assert same("always a > 1 and b > 2", "(always (a > 1)) and (b > 2)")
    assert same("a > 1 or b > 2 and c > 3", "(a > 1) or ((b > 2) and (c > 3))")
    assert same("a > 1 implies b > 2 implies c > 3", "(a > 1) implies ((b > 2) implies (c > 3))")
    assert same("not a > 1 until[0,2] b > 2", "(not (a > 1)) until[0,2] (b > 2)")
    assert same("not always a > 1 or b > 1", "(not (always (a > 1))) or (b > 1)")
    assert same("a + b * c ^ 2 ^ b / 2 - 1 > -a", "((a + ((b * (c ^ (2 ^ b))) / 2)) - 1) > (-a)")
    assert same("1 < a < 2", "(1 < a) and (a < 2)")
    assert same("a > 1 && !(b <= 2) || c ≥ 3", "((a > 1) and (not (b <= 2))) or (c >= 3)")
    assert same("a > 1 -> b > 2", "a > 1 implies b > 2")
    assert same("always[0:5] a > 1  # metres\n and b > 1", "(always[0,5] (a > 1)) and (b > 1)")
    assert same("eventually[2, inf] a ** 2 > 1", "eventually[2,inf] (a ^ 2) > 1")


def _bare(it: Any) -> str:
    """A formula without the words that it was written in."""
    return re.sub(r"text='[^']*'", "", repr(it))


def test_arithmetic_has_the_usual_answers() -> None:
    text = "always min(x, 3, y) + max(-x, 2) * sqrt(y) / 2 - abs(x) ^ 2 > 1.5e0"
    x, y = np.array([1.0, -2.0, 0.5]), np.array([4.0, 9.0, 1.0])
    value = np.minimum(np.minimum(x, 3), y) + np.maximum(-x, 2) * np.sqrt(y) / 2 - np.abs(x) ** 2
    found = apeval.spec(text, x=None, y=None).robustness(x=x, y=y)
    assert found == pytest.approx(float((value - 1.5).min()))


def test_many_recorded_episodes_at_once() -> None:
    calm = apeval.spec("always x < 1", x=None)
    found = calm.robustness(x=[[0.0, 0.5], [0.0, 2.0]])
    assert np.asarray(found).tolist() == [0.5, -1.0]
    with pytest.raises(ProblemError, match="needs the signal 'x'"):
        calm.robustness()
    for y in ([1, 2], [1]):  # one moment is no constant: a recording that broke off
        with pytest.raises(ProblemError, match="one length"):
            apeval.spec("always x < y", x=None, y=None).robustness(x=[1, 2, 3], y=y)
    assert apeval.spec("always x < y", x=None, y=None).robustness(x=[1, 2, 3], y=4) == 1.0


def test_a_monitor_that_needs_too_much_is_refused() -> None:
    nested = "x > 0"
    for _ in range(9):
        nested = f"always (x > 1 or eventually ({nested}))"
    with pytest.raises(ProblemError, match="Give them bounds"):
        apeval.spec(nested, x=None)
    with pytest.raises(ProblemError, match="nested windows shorter"):
        apeval.spec("always eventually[0,200000] x > 0", x=None)


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(apeval.ApevalError, match="is not a number for some state"):
        apeval.spec("always sqrt(x) > 1", x=None).robustness(x=[-1.0])
    with pytest.raises(apeval.ApevalError, match="must be true or false; it was 2"):
        apeval.spec("always not crashed", crashed=None).robustness(crashed=[0, 1, 2])
    assert apeval.spec("always not crashed", crashed=None).robustness(crashed=[0, 0]) == 0.5
    assert math.isinf(apeval.spec("always x > 0", x=None).robustness(x=[math.inf]))  # type: ignore[arg-type]
