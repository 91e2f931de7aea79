"""Policies in simulators: twins against the originals, networks whose bits keep to themselves."""

from __future__ import annotations

from dataclasses import replace

import gymnasium
import numpy as np
import pytest

import apeval
from apeval.problem.draws import Draws, make_key
from apeval.simulate.adversary import Nominal, only
from apeval.simulate.rollout import rollout
from apeval_public.policies import network
from apeval_public.policies.cartpole import accelerate, pushes_right
from apeval_public.truth.monte_carlo import failures

SIZES = (1, 2, 7, 63, 64, 65, 500)


@pytest.mark.parametrize("size", SIZES)
def test_an_answer_does_not_depend_on_the_rows_beside_it(size: int) -> None:
    obs = np.random.default_rng(0).normal(0.0, 0.1, (500, 4))
    net = network.load("cartpole")
    pieces = [net(obs[k : k + size]) for k in range(0, 500, size)]
    assert np.array_equal(np.concatenate(pieces), net(obs))
    assert net(obs[:0]).shape == (0, 2)


def test_the_network_answers_as_torch_does() -> None:
    """Two sums of 64 products in single precision differ by at most 64 roundings a layer."""
    torch = pytest.importorskip("torch")
    net = network.load("cartpole")
    obs = np.random.default_rng(1).normal(0.0, 0.5, (200, 4)).astype(np.float32)
    h = torch.tensor(obs)
    for k, (weight, bias) in enumerate(net.layers):
        h = h if k == 0 else torch.tanh(h)
        h = h @ torch.tensor(weight) + torch.tensor(bias)
    size = float(np.abs(net(obs)).max())
    assert np.abs(h.numpy() - net(obs)).max() < 64 * 3 * 2.0**-24 * size


def test_cartpole_moves_as_gymnasium_s_does() -> None:
    env = gymnasium.make("CartPole-v1").unwrapped
    rng = np.random.default_rng(2)
    states = rng.uniform(-1.0, 1.0, (300, 4)) * [2.3, 3.0, 0.2, 3.0]
    right = rng.random(300) < 0.5
    ours = accelerate(states, right)
    for k, state in enumerate(states):
        env.reset(seed=0)
        env.state = state.copy()
        env.step(int(right[k]))
        assert np.abs(np.asarray(env.state) - ours[k]).max() < 1e-12


def test_cartpole_ends_as_gymnasium_s_does() -> None:
    """Whole episodes under strong noise: the same fall at the same step, with gymnasium stepping
    and this package's policy, start and noise."""
    problem, n = apeval.make("cartpole", std=0.06), 20
    draws = Draws(make_key(5), np.arange(n))
    x = np.asarray(problem.reset(draws))
    noise = np.random.default_rng(3).normal(0.0, 0.06, (500, n, 4))
    falls = np.zeros(n, np.int64)
    ours, alive = x.copy(), np.ones(n, bool)
    for t in range(500):
        ours = np.where(
            alive[:, None],
            problem.step(ours, np.zeros((n, 0)), noise[t], draws.at(t)),
            ours,
        )
        fallen = alive & (np.asarray(problem.failed(ours)) > 0)
        falls[fallen], alive = t + 1, alive & ~fallen
    env = gymnasium.make("CartPole-v1").unwrapped
    for k in range(n):
        env.reset(seed=0)
        env.state, seen, length = x[k].copy(), x[k].astype(np.float32), 0
        for t in range(500):
            right = pushes_right((seen.astype(np.float64) + noise[t, k])[None])[0]
            seen, _, terminated, _, _ = env.step(int(right))
            if terminated:
                length = t + 1
                break
        assert length == falls[k]
    assert 0 < (falls > 0).sum() < n


@pytest.mark.parametrize("chunk", [1, 5])
def test_cartpole_s_bits_do_not_depend_on_the_block(chunk: int) -> None:
    problem = replace(apeval.make("cartpole", std=0.12, steps=80), truth=None)
    whole, apart = (
        apeval.evaluate(replace(problem, chunk=c), "mc", episodes=15, seed=4) for c in (15, chunk)
    )
    assert whole.records
    assert whole.records == apart.records
    assert whole.as_json()["final"] == apart.as_json()["final"]


def test_monte_carlo_for_truths_meets_the_failures_of_a_run() -> None:
    """The loop that records nothing against the one that records all, episode by episode."""
    problem, n = apeval.make("cartpole", std=0.12, steps=80), 50
    recorded = rollout(problem, only(Nominal()), make_key(7), np.arange(n), np.arange(n))
    lean = failures(problem, 7, 0, n)
    assert np.array_equal(lean, recorded.kind)
    assert np.array_equal(lean[20:30], failures(problem, 7, 20, 10))
    assert 0 < (lean > 0).sum() < n
