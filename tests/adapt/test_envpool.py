"""Pools of envpool's: an episode starts from its own seed, because every block of episodes has a
pool that is made with theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.adapt.bit_identity import company_does_not_matter, runs_agree

import apeval
from apeval.errors import ProblemError
from apeval.problem.problem import Problem

envpool = pytest.importorskip("envpool", reason="the extra envpool is not installed")
pytestmark = pytest.mark.filterwarnings("ignore:.*precision lowered by casting")


def pool(seeds: list[int], **more: Any) -> Any:
    given = {"env_type": "gymnasium", "num_envs": len(seeds), "seed": seeds, "num_threads": 1}
    return envpool.make("CartPole-v1", **{**given, **more})


def cartpole(make: Any = pool, **changes: Any) -> Problem:
    given: dict[str, Any] = {
        "policy": lambda obs: (obs[:, 2] + 0.2 * obs[:, 3] > 0.0).astype(int),
        "disturb": [apeval.ObservationNoise(std=0.3), apeval.DropAction(0.1)],
        "margin": lambda obs: np.minimum(0.20944 - np.abs(obs[:, 2]), 2.4 - np.abs(obs[:, 0])),
        "horizon": 60,
        "num_envs": 8,
    }
    return apeval.from_vector_env(make, **{**given, **changes})


def test_pools_keep_the_contract() -> None:
    batch = company_does_not_matter(cartpole())
    assert 0 < np.count_nonzero(batch.kind) < batch.n
    assert len(np.unique(batch.s[batch.t == 0], axis=0)) == batch.n


def test_runs_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs_agree(cartpole, tmp_path, monkeypatch, n=40, workers=1)


def test_the_own_limit_of_steps_is_the_horizon() -> None:
    assert cartpole(horizon=None).horizon == 500
    assert cartpole(lambda seeds: pool(seeds, max_episode_steps=70), horizon=None).horizon == 70


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda n: pool(list(range(n))), "envpool fixes the seeds .* lambda seeds: envpool.make"),
        (lambda seeds: pool(seeds, seed=1), "depends on the seeds of the others|other first"),
        (lambda seeds: pool(seeds, batch_size=4), "the pool is asynchronous"),
    ],
)
def test_other_pools_are_refused_with_the_remedy(make: Any, says: str) -> None:
    with pytest.raises(ProblemError, match=says):
        cartpole(make)


def test_disturbances_inside_are_refused() -> None:
    with pytest.raises(ProblemError, match="made of one piece"):
        cartpole(disturb=apeval.ParameterNoise("state[3]", std=0.1, kick=True))
