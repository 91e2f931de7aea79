"""Policies are asked for many episodes at once, and no episode's bits depend on the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from tests.run.test_resume import Struck
from tests.simulate.test_backends import told

import apeval
from apeval.adapt.batches import SIZE, calls, kind_of, mixed, stacked
from apeval.adapt.policies import Ask, Policy
from apeval.errors import ProblemError
from apeval.problem.draws import make_key
from apeval.problem.problem import Problem
from apeval.simulate.adversary import Nominal, only
from apeval.simulate.episodes import Episodes, join
from apeval.simulate.replay import record, replay
from apeval.simulate.rollout import rollout

torch = pytest.importorskip("torch", reason="the extra train is not installed")
sb3 = pytest.importorskip("stable_baselines3", reason="the extra train is not installed")

KEY = make_key(7)
N = 21  # more than a batch, and not a multiple of it


def pendulum(policy: Any, **changes: Any) -> Problem:
    """Continuous actions: every bit of them is seen."""
    given: dict[str, Any] = {
        "disturb": apeval.ParameterNoise("g", std=2.0),
        "fails": lambda obs: obs[0] < -0.9,
        "margin": lambda obs: obs[0] + 0.9,
        "horizon": 12,
    }
    return apeval.from_env("Pendulum-v1", policy=policy, **{**given, **changes})


def network(dtype: Any = torch.float32) -> Any:
    torch.manual_seed(0)
    layers = [torch.nn.Linear(3, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64)]
    return torch.nn.Sequential(*layers, torch.nn.Tanh(), torch.nn.Linear(64, 1)).to(dtype)


def ppo() -> Any:
    return sb3.PPO("MlpPolicy", "Pendulum-v1", seed=0, device="cpu")


WEIGHTS = np.random.default_rng(0).normal(size=(3, 64)), np.ones((64, 1)) / 64


def numpy_network(obs: Any) -> Any:
    first, second = WEIGHTS
    return np.tanh(obs @ first) @ second


POLICIES: dict[str, Callable[[], Any]] = {
    "sb3": ppo,
    "sb3, random": lambda: apeval.sb3_stochastic(ppo()),
    "sac": lambda: sb3.SAC("MlpPolicy", "Pendulum-v1", seed=0, device="cpu"),
    "torch": network,
    "torch, double": lambda: network(torch.float64),
    "numpy": lambda: apeval.BatchPolicy(numpy_network),
    "gaussian": lambda: apeval.GaussianPolicy(numpy_network, 0.3, batch=True),
    "function": lambda: lambda obs: numpy_network(obs[None])[0],
}
PLACES: dict[str, Any] = {
    "acts first": {},
    "sees noise": {"disturb": apeval.ObservationNoise(std=0.3)},
    "held": {"disturb": apeval.ParameterNoise("g", std=2.0, hold=4)},
    "whole": {"disturb": apeval.StartNoise("state[1]", std=1.0)},
}


def blocks(problem: Problem, size: int, n: int = N) -> Episodes:
    """n episodes, `size` of them at a time."""
    parts = [np.arange(first, min(first + size, n)) for first in range(0, n, size)]
    return join([rollout(problem, only(Nominal()), KEY, ids, ids) for ids in parts])


def same(one: Episodes, other: Episodes) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("a_A", "a_E", "s", "s_end", "kind", "margin", "length")
    )


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", POLICIES)
def test_an_episode_is_the_same_bits_alone_and_in_any_company(name: str, place: str) -> None:
    problem = pendulum(POLICIES[name](), **PLACES[place])
    together = blocks(problem, N)
    for size in (1, 5, SIZE):
        assert same(blocks(problem, size), together), size
    for i in (0, 7, N - 1):
        one = replay(problem, record(together, i, KEY))
        assert np.array_equal(one.s_end[0], together.s_end[i])
        assert np.array_equal(one.a_A, together.a_A[together.rows_of(i)])


def test_why_places_and_sizes_are_fixed() -> None:
    """What the module says of matrix products: they round by size, sometimes by place, never by
    the other rows. The first two are seen on most machines; the last must hold on all."""
    rng = np.random.default_rng(0)
    for net in (network(), network(torch.float64)):
        policy = apeval.BatchPolicy(lambda x, net=net: net(torch.as_tensor(x)).detach().numpy())
        kind = np.float32 if next(net.parameters()).dtype == torch.float32 else np.float64
        for place in range(SIZE):
            row = rng.normal(size=3).astype(kind)
            company = rng.normal(size=(SIZE, 3)).astype(kind)
            company[place] = row
            among = policy.function(stacked(list(company), np.arange(SIZE)))[place]
            alone = policy.function(stacked([row], np.array([place])))[place]
            assert np.array_equal(among, alone)


class Counting(Policy):
    """How often it is asked, and for how many."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def act(self, obs: Any, u: Any) -> Any:
        raise AssertionError

    def answer(self, ask: Ask) -> Any:
        self.asked.append(len(ask.ids))
        return np.zeros((len(ask.ids), 1)), ask.memories


@pytest.mark.parametrize(("place", "calls"), [("acts first", 12), ("held", 12), ("whole", 12)])
def test_a_policy_is_asked_once_for_a_block(place: str, calls: int) -> None:
    policy = Counting()
    problem = pendulum(policy, fails=lambda obs: False, margin=None, **PLACES[place])
    blocks(problem, SIZE, SIZE)
    assert policy.asked == [SIZE] * calls


def test_those_that_have_ended_are_not_asked_for() -> None:
    policy = Counting()
    disturb = apeval.ParameterNoise("state[1]", std=3.0, kick=True, hold=12)
    problem = pendulum(policy, disturb=disturb, margin=None)
    batch = blocks(problem, SIZE, SIZE)
    assert batch.failed.any()
    assert policy.asked == sorted(policy.asked, reverse=True)
    assert policy.asked[-1] < SIZE


def test_a_module_whose_rows_mix_is_asked_for_one_observation_at_a_time() -> None:
    class Mixing(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return x[:, :1] - x[:, :1].mean()

    problem = pendulum(Mixing())
    batch = blocks(problem, SIZE, 6)
    assert np.array_equal(batch.a_A, np.zeros_like(batch.a_A))  # each is its own mean
    with pytest.raises(ProblemError, match="depends on the others in its batch"):
        pendulum(apeval.BatchPolicy(lambda obs: obs[:, :1] - obs[:, :1].mean()))
    with pytest.raises(ProblemError, match=r"answer of shape \(3,\)"):
        pendulum(apeval.BatchPolicy(lambda obs: obs[0]))
    with pytest.raises(ProblemError, match="on a batch it raised"):
        pendulum(apeval.GaussianPolicy(lambda obs: [float(obs[0])], 0.1, batch=True))


def test_batches_of_structured_observations() -> None:
    rows = [{"a": np.full(2, k), "b": (k, np.float32(k))} for k in range(3)]
    batch = stacked(rows, np.array([4, 0, 9]))
    assert batch["a"].shape == (SIZE, 2)
    assert batch["a"][:, 0].tolist() == [1, *[0] * 8, 2, *[0] * 6]
    assert batch["b"][0][9] == 2
    assert batch["b"][1].dtype == np.float32
    assert batch["a"].ctypes.data % 64 == 0
    assert kind_of(rows[0]) == kind_of(rows[1])
    assert kind_of(np.zeros(2)) != kind_of(np.zeros(2, np.float32))


def test_rows_of_other_kinds_go_apart() -> None:
    """Else the company would decide on the type of a row."""
    kinds = [kind_of(np.zeros(2)), kind_of(np.zeros(2, np.float32)), kind_of(np.zeros(2))]
    assert [rows.tolist() for rows in calls(np.array([0, 1, 2]), kinds)] == [[0, 2], [1]]


def test_the_users_generator_of_observations_is_left_alone() -> None:
    space = gymnasium.spaces.Box(-1.0, 1.0, (3,), seed=3)
    twin = gymnasium.spaces.Box(-1.0, 1.0, (3,), seed=3)
    assert mixed(lambda obs: obs, space) is None
    assert np.array_equal(space.sample(), twin.sample())


def check_processes_and_resume(problem: Problem, folder: Path) -> None:
    """A run in other processes, and one that was interrupted, give the bits of a whole one."""
    asked: dict[str, Any] = {"method": "mc", "episodes": 60, "seed": 3}
    whole = told(apeval.evaluate(problem, **asked))
    assert told(apeval.evaluate(problem, **asked, backend="processes", workers=2)) == whole
    recorder = Struck(folder)
    recorder.after = 1
    with pytest.raises(KeyboardInterrupt):
        apeval.evaluate(problem, **asked, recorder=recorder)
    assert told(apeval.resume(folder, problem)) == whole


@pytest.mark.parametrize("name", ["sb3", "torch, double", "sb3, random"])
def test_processes_and_resume_give_the_same_bits(name: str, tmp_path: Path) -> None:
    check_processes_and_resume(pendulum(POLICIES[name](), chunk=5), tmp_path / "run")
