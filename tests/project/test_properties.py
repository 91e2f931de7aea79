"""What holds for any input, not only for those that somebody thought of."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import apeval
from apeval.errors import ApevalError, harmless, one_line
from apeval.estimate.interval import estimate, one_sided
from apeval.estimate.sample import Sample
from apeval.problem.law_change import parse_change
from apeval.problem.settings import convert
from apeval.results.dataclass_json import build
from apeval.results.files import read_json, write_json
from apeval.run.result import Result, plain
from apeval.simulate.simulation import Budget

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    """Episodes of a nominal component and perhaps of others, with any densities that each could
    have drawn: an episode has a positive density under the component that drew it."""
    n, width = draw(st.integers(1, 40)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scale = draw(st.sampled_from([0.0, 0.1, 3.0, 50.0, 800.0]))
    log_p = rng.normal(0.0, max(scale, 1.0), n)
    log_q = log_p[:, None] + rng.normal(0.0, scale, (n, width)) * (rng.random(width) < 0.8)
    log_q[:, 0] = log_p
    component = np.arange(n) % width
    impossible = (rng.random((n, width)) < 0.1) & (np.arange(width) > 0)
    impossible[np.arange(n), component] = False
    log_q[impossible] = -np.inf
    kind = (rng.random(n) < draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))).astype(np.int64)
    unresolved = (rng.random(n) < draw(st.sampled_from([0.0, 0.2]))) & (kind == 0)
    length = np.ones(n, np.int64)
    return Sample(component, log_p, log_q, kind, unresolved, length, np.full(n, np.nan))


@settings(max_examples=300, deadline=None)
@given(samples(), st.floats(0.01, 0.999), st.floats(0.01, 0.999))
def test_an_interval_holds_its_estimate_and_grows_with_confidence(
    sample: Sample, one: float, other: float
) -> None:
    low, high = sorted((one, other))
    narrow, wide = estimate(sample, low), estimate(sample, high)
    for it in (narrow, wide):
        lo, hi = it.interval
        assert 0.0 <= lo <= it.value <= hi <= 1.0
        assert math.isfinite(it.standard_error)
        assert it.standard_error >= 0.0
        assert 0.0 <= it.ess <= sample.failed.sum() * (1 + 1e-9)
        assert 0.0 <= it.unresolved_mass <= 1.0
    assert wide.interval[0] <= narrow.interval[0]
    assert narrow.interval[1] <= wide.interval[1]
    assert one_sided(sample, 0.5 + low / 2) == pytest.approx(narrow.interval, rel=1e-9)


def test_an_estimate_of_what_is_nearly_certain_can_be_stored(tmp_path: Path) -> None:
    """The mean of the weights was 1.02 here, and the stored run was refused as damaged."""
    recorder = apeval.Recorder(tmp_path)
    result = apeval.evaluate(apeval.make("always"), "cem", episodes=200, recorder=recorder)
    assert result.interval[0] <= result.estimate <= result.interval[1] == 1.0
    assert apeval.load(tmp_path).result.estimate == result.estimate


@pytest.mark.parametrize("beta", [-2.0, -0.1, 0.0, 0.5])
def test_a_likely_sum_has_the_one_kind_that_is_named(beta: float) -> None:
    """Below 0 it failed as a kind that the problem does not have."""
    result = apeval.evaluate(apeval.make("one-step", beta=beta), "mc", episodes=400, seed=1)
    assert result.truth is not None
    assert abs(result.estimate - result.truth) < 4.0 * 0.5 / 20.0  # 4 σ at the most


@given(PLAIN)
def test_plain_data_is_json_and_comes_back(data: Any) -> None:
    text = json.dumps(plain(data), allow_nan=False)
    assert plain(json.loads(text)) == plain(data)


@settings(deadline=None)
@given(PLAIN)
def test_a_file_of_plain_data_comes_back(
    tmp_path_factory: pytest.TempPathFactory, data: Any
) -> None:
    path = write_json(tmp_path_factory.mktemp("json") / "x.json", plain(data))
    try:
        again = read_json(path)
    except ApevalError:  # a whole number of more digits than Python reads
        assert max(map(len, path.read_text("utf-8").split())) > 4_000
        return
    assert again == plain(data)


@settings(deadline=None, max_examples=200)
@given(PLAIN)
def test_anything_but_a_result_is_refused_in_one_line(data: Any) -> None:
    with pytest.raises(ApevalError) as caught:
        build(Result, data, "result.json")
    assert len(str(caught.value).splitlines()) == 1


@given(st.text() | st.floats() | st.integers() | st.none() | st.binary(max_size=3))
def test_a_setting_is_a_number_or_refused(value: Any) -> None:
    for kind in (int, float, bool):
        try:
            number = convert("x", kind, value)
        except ApevalError:
            continue
        assert isinstance(number, kind)


@given(st.floats(allow_nan=False))
def test_numbers_survive_the_command_line(value: float) -> None:
    assert convert("x", float, repr(value)) == value
    if value == math.floor(value) if math.isfinite(value) else False:
        assert convert("x", int, repr(value)) == int(value)


@given(st.none() | st.integers(), st.none() | st.integers())
def test_a_budget_is_one_positive_number(steps: int | None, episodes: int | None) -> None:
    given_sizes = [size for size in (steps, episodes) if size is not None]
    right = len(given_sizes) == 1 and 1 <= given_sizes[0] <= 10**12
    try:
        part = Budget(steps, episodes).share(0.3)
    except ApevalError:
        assert not right
    else:
        assert right
        assert 1 <= (part.steps or part.episodes or 0) <= given_sizes[0]


@settings(max_examples=300)
@given(
    st.text()
    | st.from_regex(r"(initial\.)?[a-z]{1,5}(\[\d{1,3}\])?[=*/+-]=?.{0,9}%?", fullmatch=True)
)
def test_a_change_is_understood_or_refused(text: str) -> None:
    try:
        change = parse_change(text)
    except ApevalError:
        return
    assert math.isfinite(change.number)


@given(st.text(st.characters(), max_size=200))
def test_a_line_is_one_line_that_no_terminal_obeys(text: str) -> None:
    line = one_line(text)
    assert len(line.splitlines()) <= 1
    assert harmless(line) == line
    line.encode("utf-8")
