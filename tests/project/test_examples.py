"""The worked examples, each in a small version: it builds, passes the check and is estimated."""

from __future__ import annotations

import importlib.util
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

import apeval

EXAMPLES = Path(__file__).parents[2] / "examples"
LONGEST = 60  # lines


def module(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def settings(name: str, tmp_path: Path) -> dict[str, Any]:
    """What makes an example small."""
    if name == "hopper_mujoco":
        pytest.importorskip("mujoco", reason="the extra mujoco is not installed")
        return {"horizon": 20, "std": 0.3}
    if name in ("cartpole_sb3", "recurrent_ppo", "normalized_sb3"):
        pytest.importorskip("stable_baselines3", reason="the extra train is not installed")
        if name == "recurrent_ppo":
            pytest.importorskip("sb3_contrib", reason="the extra zoo is not installed")
        path = tmp_path / "ppo.zip"
        module(name).train(steps=1_024 if name == "cartpole_sb3" else 128, path=path)
        return {"model": str(path), **({"gust": 0.06} if name == "cartpole_sb3" else {})}
    if name == "rl_zoo":
        pytest.importorskip("stable_baselines3", reason="the extra train is not installed")
        pytest.importorskip("yaml", reason="the extra zoo is not installed")
        return {"folder": str(module(name).train(steps=128, folder=tmp_path / "Pendulum-v1_1"))}
    if name == "torch_memory":
        pytest.importorskip("torch", reason="the extra train is not installed")
    if name == "jax_lander":
        pytest.importorskip("jax", reason="the extra jax is not installed")
        return {"num_envs": 16}
    if name == "envpool_pendulum":
        pytest.importorskip("envpool", reason="the extra envpool is not installed")
        return {"num_envs": 16}
    if name == "onnx_policy":
        pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
        return {"model": str(exported(tmp_path / "policy.onnx"))}
    return {"stochastic_policy": {"gust": 0.12}, "numpy_simulator": {"gust": 1.0}}.get(name, {})


def exported(path: Path) -> Path:
    """A network for the example, in the form in which torch exports one."""
    from tests.adapt.test_onnx import write

    towards = np.array([[0.0], [0.1], [1.0], [0.5]], np.float32)
    nodes = [("MatMul", ["obs", "A"], "scores", {})]
    weights = {"A": np.concatenate([-towards, towards], axis=1)}
    return write(path, {"obs": ["n", 4]}, nodes, ["scores"], weights)


@pytest.mark.filterwarnings("ignore:.*precision lowered by casting")  # by envpool's spaces
@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_an_example_runs(name: str, tmp_path: Path) -> None:
    text = (EXAMPLES / f"{name}.py").read_text("utf-8")
    assert text.count("\n") <= LONGEST
    address = f"{EXAMPLES / name}.py:problem"
    assert f"apeval run examples/{name}.py" in text
    problem = apeval.make(address, **settings(name, tmp_path))
    report = apeval.check_problem(problem, episodes=16, seconds=2.0)
    assert report.ok, str(report)
    result = apeval.evaluate(problem, episodes=40, seed=0)
    assert result.problem == address
    assert 0.0 <= result.interval[0] <= result.estimate <= result.interval[1] <= 1.0
    assert result.episodes == 40


PAGE = (EXAMPLES.parent / "docs" / "reference" / "supported.md").read_text("utf-8")
NAMED = re.findall(r"`(\w+)\.py`((?:, (?:or )?`--set problem\.\w+=\w+`)*)", PAGE)
VARIANTS = [
    (name, *setting)
    for name, settings in NAMED
    for setting in re.findall(r"problem\.(\w+)=(\w+)", settings)
]


def test_the_table_of_what_is_supported_names_examples_that_exist() -> None:
    assert len(NAMED) >= 15
    missing = {name for name, _ in NAMED} - {path.stem for path in EXAMPLES.glob("*.py")}
    assert not missing
    forms = {value for name, _, value in VARIANTS if name == "observation_forms"}
    assert forms == set(module("observation_forms").FORMS)


@pytest.mark.parametrize(("name", "key", "value"), VARIANTS)
def test_every_variant_in_the_table_of_what_is_supported_runs(
    name: str, key: str, value: str
) -> None:
    small: dict[str, Any] = {"num_envs": 4} if name == "vector_pendulum" else {}
    problem = apeval.make(f"{EXAMPLES / name}.py:problem", **{key: value}, **small)
    report = apeval.check_problem(problem, episodes=8, seconds=1.0)
    assert report.ok, str(report)
    result = apeval.evaluate(problem, "mc", episodes=8, seed=0)
    assert result.episodes == 8


def test_the_mountain_car_is_estimated_right() -> None:
    """The truth: a uniform start, and the velocity above which the car is over, by bisection."""
    import gymnasium

    example, std = module("mountain_car"), 0.013
    env = gymnasium.make("MountainCarContinuous-v0", max_episode_steps=60)

    def over(position: float, velocity: float) -> bool:
        env.reset(seed=0)
        env.unwrapped.state = np.array([position, velocity])  # type: ignore[attr-defined]
        obs, ended, reached = np.array([position, velocity], np.float32), False, False
        while not ended:
            action = np.array(example.brake(obs), np.float32)
            obs, _, reached, truncated, _ = env.step(action)
            ended = reached or truncated
        return bool(reached)

    positions = np.linspace(-0.6, -0.4, 9)
    critical = [_bisect(lambda v, x=x: over(x, v), 0.0, 0.07) for x in positions]  # type: ignore[misc]
    truth = float(np.trapezoid(ndtr(-np.array(critical) / std), positions) / 0.2)
    assert math.isclose(truth, 3.6e-7, rel_tol=0.05)
    result = apeval.evaluate(example.problem(std=std), episodes=500, seed=3, confidence=0.999)
    assert result.trusted
    assert result.interval[0] < truth < result.interval[1]
    assert result.interval[1] < 3.0 * truth


def _bisect(above: Callable[[float], bool], low: float, high: float) -> float:
    for _ in range(16):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if above(middle) else (middle, high)
    return high
