"""Policies with memory and with statistics: what they remember belongs to the episode, and no
episode's bits depend on the others, on who simulates, or on when."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import pytest
from tests.adapt.test_batches import (
    KEY,
    PLACES,
    WEIGHTS,
    N,
    blocks,
    check_processes_and_resume,
    pendulum,
    ppo,
    same,
)
from tests.simulate.test_backends import told

import apeval
from apeval.adapt.batches import SIZE
from apeval.adapt.normalized_policy import FrameStackPolicy, NormalizedPolicy
from apeval.adapt.observation_statistics import ObservationStatistics
from apeval.adapt.sb3 import SB3Policy
from apeval.adapt.training import Training
from apeval.errors import ProblemError, SimulationError
from apeval.problem.draws import Draws
from apeval.problem.problem import Problem
from apeval.results.report import write_report
from apeval.simulate.replay import record, replay

torch = pytest.importorskip("torch", reason="the extra train is not installed")
sb3 = pytest.importorskip("stable_baselines3", reason="the extra train is not installed")
contrib = pytest.importorskip("sb3_contrib", reason="the extra dev is not installed")

STATISTICS = ObservationStatistics(np.array([0.3, -0.1, 0.5]), np.array([0.5, 0.2, 4.0]))


class Integral(NamedTuple):
    total: Any
    last: Any


class Controller:
    """Has an integral, and works in place on what it gets."""

    def reset(self) -> Integral:
        return Integral(np.zeros(1), None)

    def act(self, obs: Any, state: Integral) -> Any:
        total = state.total
        total += obs[1]
        change = 0.0 if state.last is None else obs[1] - state.last
        return [-4.0 * obs[1] - 0.3 * total[0] - change], Integral(total, obs[1])


class Gru(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.cell, self.head = torch.nn.GRUCell(3, 24), torch.nn.Linear(24, 1)

    def forward(self, obs: Any, state: Any = None) -> Any:
        state = self.cell(obs, state)
        return 2.0 * self.head(state), state


class Lstm(torch.nn.Module):  # type: ignore[misc]
    """Its state has the episodes along its second axis, and does not begin with zeros."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.lstm, self.head = torch.nn.LSTM(3, 24, num_layers=2), torch.nn.Linear(24, 1)

    def forward(self, obs: Any, state: Any) -> Any:
        if state is None:
            start = 0.1 * torch.ones(2, len(obs), 24)
            state = {"hidden": (start, start)}
        out, after = self.lstm(obs[None], state["hidden"])
        return 2.0 * self.head(out[0]), {"hidden": after}


def recurrent_ppo(env: str = "Pendulum-v1", seed: int = 0) -> Any:
    kwargs = {"lstm_hidden_size": 16, "n_lstm_layers": 2, "net_arch": [16]}
    model = contrib.RecurrentPPO(
        "MlpLstmPolicy", env, n_steps=8, seed=seed, device="cpu", policy_kwargs=kwargs
    )
    with torch.no_grad():  # an untrained one would hardly look at its memory
        for name, weights in model.policy.named_parameters():
            weights *= 4.0 if "lstm" in name else 2.0 if "policy_net" in name else 1.0
        model.policy.action_net.weight *= 60.0
    return model


def batch_act(obs: Any, state: Any) -> Any:
    first, second = WEIGHTS
    hidden = np.tanh(obs @ first + 0.5 * state["h"])
    return hidden @ second, {"h": hidden, "steps": state["steps"] + 1}


def stacked_ppo() -> Any:
    space = gymnasium.make("Pendulum-v1").observation_space
    wide = gymnasium.spaces.Box(np.repeat(space.low, 3), np.repeat(space.high, 3))
    env = gymnasium.wrappers.TransformObservation(
        gymnasium.make("Pendulum-v1"), lambda obs: np.tile(obs, 3), wide
    )
    model = sb3.PPO("MlpPolicy", env, seed=0, device="cpu")
    return FrameStackPolicy(SB3Policy(model, Training.of(model)), 3)


POLICIES: dict[str, Callable[[], Any]] = {
    "object": Controller,
    "batch": lambda: apeval.MemoryPolicy(
        batch_act, lambda: {"h": np.zeros(64), "steps": 0}, batch=True
    ),
    "torch": Gru,
    "torch, nested": Lstm,
    "recurrent": recurrent_ppo,
    "recurrent, random": lambda: apeval.sb3_stochastic(recurrent_ppo()),
    "statistics": lambda: apeval.load_sb3(ppo(), normalize=STATISTICS),
    "statistics and memory": lambda: apeval.load_sb3(recurrent_ppo(), normalize=STATISTICS),
    "frames": stacked_ppo,
    "statistics and frames": lambda: NormalizedPolicy(stacked_ppo(), STATISTICS),
}


@pytest.mark.parametrize(
    ("name", "place"),
    [(name, place) for name in POLICIES for place in ("acts first", "held")]
    + [("object", "sees noise"), ("object", "whole"), ("recurrent", "sees noise")],
)
def test_an_episode_is_the_same_bits_alone_and_in_any_company(name: str, place: str) -> None:
    problem = pendulum(POLICIES[name](), **PLACES[place])
    assert problem.policy_memory == (name != "statistics")
    together = blocks(problem, N)
    assert len(np.unique(together.length)) > 1 or place == "whole"
    for size in (1, SIZE):
        assert same(blocks(problem, size), together), size
    for i in (0, 7, N - 1):
        one = replay(problem, record(together, i, KEY))
        assert np.array_equal(one.s_end[0], together.s_end[i])


@pytest.mark.parametrize("name", ["object", "recurrent", "statistics and frames"])
def test_processes_and_resume_give_the_same_bits(name: str, tmp_path: Path) -> None:
    check_processes_and_resume(pendulum(POLICIES[name](), chunk=5), tmp_path / "run")
    stored = apeval.load(tmp_path / "run")
    assert stored.result.policy_memory
    assert "has memory" in str(stored.result)
    page = write_report([tmp_path / "run"], tmp_path / "report.html").read_text("utf-8")
    assert "has memory, which is part of the state" in page


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
@pytest.mark.parametrize("name", ["object", "statistics and memory"])
def test_ray_gives_the_same_bits(name: str) -> None:
    problem = pendulum(POLICIES[name](), chunk=5)
    asked: dict[str, Any] = {"method": "mc", "episodes": 20, "seed": 3}
    spread = apeval.evaluate(problem, **asked, backend="ray", workers=2)
    assert told(spread) == told(apeval.evaluate(problem, **asked))


@pytest.mark.parametrize("name", ["object", "recurrent", "statistics and frames"])
def test_a_vector_environment_gives_the_same_bits(name: str) -> None:
    """With 16 slots an episode stands at the same place of a batch."""
    given: dict[str, Any] = {
        "policy": POLICIES[name](),
        "disturb": apeval.ActionNoise(std=0.3, hold=2),
        "horizon": 12,
    }
    one = apeval.from_env(
        "Pendulum-v1", fails=lambda obs: obs[0] < -0.9, margin=lambda obs: obs[0] + 0.9, **given
    )
    many = apeval.from_vector_env(
        "Pendulum-v1",
        fails=lambda obs: obs[:, 0] < -0.9,
        margin=lambda obs: obs[:, 0] + 0.9,
        num_envs=16,
        **given,
    )
    assert many.policy_memory
    apart, together = blocks(one, N), blocks(many, N)
    assert np.array_equal(apart.kind, together.kind)
    assert len(np.unique(apart.length)) > 1
    assert np.array_equal(apart.s_end, together.s_end)
    assert same(blocks(many, 3), together)


def cartpole(policy: Any, **changes: Any) -> Problem:
    noise = apeval.ParameterNoise("force_mag", std=1e-9)
    return apeval.from_env(
        "CartPole-v1", policy=policy, disturb=noise, **{"horizon": 60, **changes}
    )


def own_loop(model: Any, seed: int, remembers: bool = True) -> tuple[int, Any]:
    """Stable-Baselines3's own: steps of an episode, and its last observation."""
    env = gymnasium.make("CartPole-v1")
    obs, _ = env.reset(seed=seed)
    state, start = None, np.ones(1, bool)
    steps, terminated = 0, False
    while not terminated and steps < 60:
        action, state = model.predict(
            obs, state=state if remembers else None, episode_start=start, deterministic=True
        )
        obs, _, terminated, _, _ = env.step(int(action))
        start = np.zeros(1, bool)
        steps += 1
    return steps, obs


def test_a_recurrent_ppo_does_what_its_own_loop_does(tmp_path: Path) -> None:
    """On the same seeds, episode by episode; without its memory it would do something else."""
    model = recurrent_ppo("CartPole-v1", seed=2)
    model.save(tmp_path / "model.zip")
    seeds = Draws(KEY, np.arange(12)).seeds()
    truth = [own_loop(model, seed) for seed in seeds]
    assert [own_loop(model, seed, remembers=False)[0] for seed in seeds] != [k for k, _ in truth]
    for policy in (model, model.policy, str(tmp_path / "model.zip")):
        found = blocks(cartpole(policy), 12, 12)
        assert found.length.tolist() == [steps for steps, _ in truth]
        assert np.allclose(found.s_end, np.stack([obs for _, obs in truth]), atol=1e-5)


def test_a_torch_module_remembers() -> None:
    """As asked one by one with its own state."""
    net = Gru()
    problem = pendulum(net, fails=lambda obs: False, margin=None)
    found = blocks(problem, 3, 3)
    for episode in range(3):
        rows, state = found.rows_of(episode), None
        env = gymnasium.make("Pendulum-v1").unwrapped
        obs, _ = env.reset(seed=Draws(KEY, np.arange(3)).seeds()[episode])
        for a_E in found.a_E[rows]:
            env.g = 10.0 + float(a_E[0])
            with torch.no_grad():
                out, state = net(torch.as_tensor(obs)[None], state)
            obs = env.step(out[0].numpy())[0]
        assert np.allclose(found.s_end[episode], obs, atol=1e-4)


def test_a_method_sees_of_the_memory_what_the_user_shows() -> None:
    views = {"own": lambda obs, info, memory: [obs[0], memory.total[0]]}
    found = blocks(pendulum(Controller(), views=views), 3, 3)
    assert found.s.shape[1] == 2
    rows = found.rows_of(0)
    assert found.s[rows][0, 1] == 0.0
    assert len(np.unique(found.s[rows][:, 1])) > 3
    assert blocks(pendulum(Controller()), 3, 3).s.shape[1] == 3  # by default the observation
    vector = apeval.from_vector_env(
        "Pendulum-v1",
        policy=recurrent_ppo(),
        disturb=apeval.ActionNoise(std=0.1),
        fails=lambda obs: np.zeros(len(obs), bool),
        views={"own": lambda obs, info, memory: np.concatenate([obs, memory[0][:, 0]], axis=1)},
        horizon=5,
        num_envs=4,
    )
    found = blocks(vector, 4, 4)
    assert found.s.shape[1] == 3 + 16
    assert not found.s[0, 3:].any()
    assert found.s_end[0, 3:].any()


def test_the_check_and_the_result_say_that_there_is_memory() -> None:
    report = apeval.check_problem(pendulum(Controller()), episodes=16, seconds=1.0)
    assert report.ok, str(report)
    assert "memory: the policy has one; methods see the view 'observation'" in str(report)
    result = apeval.evaluate(pendulum(Controller()), method="mc", episodes=5)
    assert result.as_json()["policy_memory"] is True
    assert "has memory" in str(result)
    assert "has memory" not in str(apeval.evaluate(apeval.make("walk"), method="mc", episodes=5))


class Hidden:
    """Keeps its memory to itself, whatever its methods look like."""

    def __init__(self) -> None:
        self.total = 0.0

    def reset(self) -> float:
        self.total = 0.0
        return 0.0

    def act(self, obs: Any, state: float) -> Any:
        self.total += obs[1]
        return [self.total], state


def test_memory_that_is_not_handed_on_is_found_by_the_check() -> None:
    assert not apeval.check_problem(pendulum(Hidden()), episodes=16, seconds=1.0).ok
    kept = [0.0]

    def policy(obs: Any) -> Any:
        kept[0] += obs[1]
        return [kept[0]]

    assert not apeval.check_problem(pendulum(policy), episodes=16, seconds=1.0).ok


def test_a_shared_start_is_no_ones_memory() -> None:
    """What reset() returns is copied, so that episodes cannot meet in it."""
    start = {"total": 0.0}

    class Shared:
        def reset(self) -> Any:
            return start

        def act(self, obs: Any, state: Any) -> Any:
            state["total"] += obs[1]
            return [state["total"]], state

    assert apeval.check_problem(pendulum(Shared()), episodes=16, seconds=1.0).ok
    assert start == {"total": 0.0}


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (type("A", (), {"reset": lambda s: None, "act": lambda s, o, x: 0})(), "returned None"),
        (type("B", (), {"reset": lambda s: 1 / 0, "act": lambda s, o, x: 0})(), "ZeroDivision"),
        (apeval.MemoryPolicy(lambda o, s: (o - o.mean(), s), lambda: 0.0, batch=True), "others"),
    ],
)
def test_a_memory_that_cannot_be_used_is_refused(policy: Any, says: str) -> None:
    with pytest.raises((ProblemError, SimulationError), match=says):
        pendulum(policy)


def test_an_act_without_its_state_is_refused() -> None:
    policy = apeval.MemoryPolicy(lambda obs, state: [0.0], lambda: 0.0)
    with pytest.raises(ProblemError, match=r"expected a pair: return action, state"):
        apeval.evaluate(pendulum(policy), method="mc", episodes=2)


def test_a_state_that_acts_on_itself_is_not_shared_in_a_vector_environment() -> None:
    """Slots of ended episodes are filled with others, which must not advance them."""

    class Count:
        steps = 0

    class Counting:
        def reset(self) -> Count:
            return Count()

        def act(self, obs: Any, state: Count) -> Any:
            state.steps += 1
            return 1, state

    problem = apeval.from_vector_env(
        "CartPole-v1",
        policy=Counting(),
        disturb=apeval.ParameterNoise("force_mag", std=5.0, hold=3),
        views={"steps": lambda obs, info, memory: np.array([it.steps for it in memory])},
        horizon=12,
        num_envs=8,
    )
    found = blocks(problem, 8, 8)
    assert len(np.unique(found.length)) > 1
    for episode in range(8):
        steps = found.s[found.rows_of(episode), 0]
        assert np.array_equal(steps, 3 * np.arange(len(steps)))


def test_a_module_that_takes_a_state_for_nothing_has_no_memory() -> None:
    class Plain(torch.nn.Module):  # type: ignore[misc]
        def forward(self, obs: Any, state: Any = None) -> Any:
            return obs[:, :1]

    assert not pendulum(Plain()).policy_memory


class Sequence(torch.nn.Module):  # type: ignore[misc]
    """Takes observations of many episodes for a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(3, 1)

    def forward(self, obs: Any, state: Any = None) -> Any:
        return self.lstm(obs, state)


class NoPair(Gru):
    def forward(self, obs: Any, state: Any = None) -> Any:
        return super().forward(obs, state)[0]


@pytest.mark.parametrize(
    ("module", "says"),
    [
        (Sequence(), r"no part for each of them.*forward\(obs, state\)"),
        (NoPair(), r"takes a state and returns a Tensor.*forward\(obs, state\)"),
    ],
)
def test_a_torch_module_of_another_form_is_refused(module: Any, says: str) -> None:
    with pytest.raises(ProblemError, match=f"(?s){says}"):
        pendulum(module)
