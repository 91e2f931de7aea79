"""The parts of `bench speed`: chosen by name, judged by their own bars."""

from __future__ import annotations

from typing import Any

import pytest

import apeval
from apeval.errors import ApevalError
from apeval_bench import speed, vector_speed
from apeval_bench.registry import ExperimentRequest


def test_rows_name_parts_and_each_part_is_judged_by_its_bars(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for ratio, passed in ((3.9, False), (4.0, True)):
        row = {"what": "x", "one": 1.0, "together": ratio, "ratio": ratio, "bar": 4.0}
        part = speed._PARTS["policies"]
        kept = speed._SpeedPart(lambda request, row=row: [row], part.as_text, part.passed)  # type: ignore[misc]
        monkeypatch.setitem(speed._PARTS, "policies", kept)
        report = speed.speed(ExperimentRequest(1, rows=("policies",)))
        assert report.data == {"policies": [row]}
        assert report.passed is passed
        assert f"| {ratio:.1f} |" in report.text
    rows: list[dict[str, Any]] = [{"ratio": 1.3, "bar": None}, {"ratio": 1.1, "bar": 1.2}]
    assert speed._PARTS["vectors"].passed(rows)
    assert not speed._PARTS["vectors"].passed([*rows, {"ratio": 1.21, "bar": 1.2}])


def test_other_rows_are_refused() -> None:
    with pytest.raises(ApevalError, match="Did you mean 'vectors'"):
        speed.speed(ExperimentRequest(1, rows=("vector",)))
    with pytest.raises(ApevalError, match="takes --rows alone"):
        speed.speed(ExperimentRequest(1, methods=("ape",)))


def test_what_a_vector_environment_costs_is_measured_piece_by_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same stepping twice costs the same; with something slow around every step, more."""
    import gymnasium

    monkeypatch.setattr(vector_speed, "_HORIZON", 20)
    monkeypatch.setattr(vector_speed, "_TURNS", 3)
    n = 8
    env = gymnasium.make_vec("Pendulum-v1", num_envs=n, max_episode_steps=20)
    step = type(env).step
    problem = apeval.from_vector_env(
        "Pendulum-v1",
        policy=vector_speed._nothing,
        disturb=apeval.ActionNoise(std=0.1),
        fails=vector_speed._never,
        horizon=20,
        num_envs=n,
    )
    bare, ours = vector_speed._seconds(env, problem, n, 0)
    env.close()
    assert 0.0 < bare < ours
    assert type(env).step is step  # as it was
