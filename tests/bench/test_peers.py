"""Peers: the limit state, and OpenTURNS where it is installed."""

from __future__ import annotations

import numpy as np
import pytest

import apeval
from apeval.errors import ApevalError
from apeval.learn.whitened import to_z
from apeval.problem.draws import make_key
from apeval.simulate.adversary import Nominal, only
from apeval.simulate.simulation import Budget, Simulation
from apeval_bench.peers import PEERS, available, run_peer, why_not
from apeval_bench.peers.limit_state import LimitState

needs_openturns = pytest.mark.skipif(not available(), reason="OpenTURNS is not installed")


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("int-v0", {}),
        ("pendulum", {"controlled_start": True, "std": 1.0}),
        ("gaussian-sum-two", {"beta": 1.0, "dim": 2}),
        ("ar1", {"threshold": 4.0, "steps": 12}),
    ],
)
def test_the_limit_state_is_the_margin_of_the_simulated_episode(
    name: str, settings: dict[str, float]
) -> None:
    problem = apeval.make(name, **settings)
    n = 300
    found = Simulation(problem, make_key(1), Budget(episodes=n)).run(only(Nominal()), n, 0)
    g = LimitState(problem)
    u = np.zeros((n, g.dim))
    if found.law_0 is not None:
        u[:, : g.dim_0] = to_z(found.law_0, found.a_0)
    z, d = to_z(found.law, found.a_E), problem.nominal.dim
    for j in range(d):
        u[found.episode, g.dim_0 + found.t * d + j] = z[:, j]
    margins = g(u)
    assert 3 <= found.failed.sum() <= n - 3
    assert np.array_equal(margins <= 0.0, found.failed)
    np.testing.assert_allclose(margins, found.margin, atol=1e-6)
    assert (g.episodes, g.failures) == (n, found.failed.sum())


def test_other_chance_is_refused() -> None:
    with pytest.raises(ApevalError, match="does not control"):
        LimitState(apeval.make("pendulum"))


def test_why_a_peer_cannot() -> None:
    assert "continuous" in (why_not("ot-ce", apeval.make("walk"), 10) or "")
    assert "margin" in (why_not("ot-ce", apeval.make("discontinuous"), 10) or "")
    assert "too long" in (why_not("ot-nais", apeval.make("int-v1"), 10**6) or "")
    assert why_not("ot-subset", apeval.make("int-v1"), 10**6) is None


@needs_openturns
@pytest.mark.parametrize("peer", sorted(PEERS))
def test_peers_find_a_moderate_probability_within_their_budget(peer: str) -> None:
    """Φ(−3) = 1.35e-3 in three dimensions: easy for all of them."""
    problem = apeval.make("gaussian-sum", beta=3.0, steps=3)
    results = [run_peer(peer, problem, 4_000, seed) for seed in range(4)]
    for result in results:
        assert not result.error
        assert 0.5 * 4_000 <= result.episodes <= 4_000
        assert result.interval[0] <= result.estimate <= result.interval[1]
        assert 0.0 < result.failure_rate < 1.0
    assert np.mean([r.estimate for r in results]) == pytest.approx(1.35e-3, rel=0.3)
    assert run_peer(peer, problem, 4_000, 0) == results[0]


@needs_openturns
def test_an_unknown_peer_is_named() -> None:
    with pytest.raises(ApevalError, match="ot-subset"):
        run_peer("ot-subst", apeval.make("int-v1"), 100, 0)
