"""What `from_vector_env` adds to a vector environment's own stepping.

Both take turns and are timed piece by piece: the reset, and every step. Of each piece the quickest
of all turns counts, so that what else the machine does falls out as far as it comes and goes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from apeval.adapt.disturbance_source import DisturbanceSource
from apeval.adapt.noises import ActionNoise, ObservationNoise, ParameterNoise
from apeval.adapt.vector import from_vector_env
from apeval.problem.draws import make_key
from apeval.problem.problem import Problem
from apeval.simulate.adversary import Nominal, only
from apeval.simulate.simulation import Budget, Simulation
from apeval_bench.registry import ExperimentRequest

_BAR = 1.2
_FEW, _DEFAULT, _MANY = 64, 128, 256  # sub-environments: as from_vector_env has them, and others
_HORIZON = 100
_TURNS = 10
_CASES: dict[str, tuple[str, DisturbanceSource]] = {
    "Pendulum-v1, noise on the action": ("Pendulum-v1", ActionNoise(std=0.1)),
    "Pendulum-v1, noise on the observation": ("Pendulum-v1", ObservationNoise(std=0.1)),
    "Pendulum-v1, gravity written in each": ("Pendulum-v1", ParameterNoise("g", std=0.1)),
    "Acrobot-v1, noise on the observation": ("Acrobot-v1", ObservationNoise(std=0.1)),
}


def measure(request: ExperimentRequest) -> list[dict[str, Any]]:
    """Processor time of a step of all sub-environments, bare and under apeval. The policy is a
    constant in both, and no episode ends early."""
    import gymnasium

    rows: list[dict[str, Any]] = []
    cases = [(n, what, *case) for n in (_FEW, _DEFAULT, _MANY) for what, case in _CASES.items()]
    request.tick("vector environments", 0, len(cases))
    for n, what, name, disturb in cases:
        env = gymnasium.make_vec(
            name, num_envs=n, vectorization_mode="sync", disable_env_checker=True,
            max_episode_steps=_HORIZON,
        )  # fmt: skip
        problem = from_vector_env(
            name, policy=_nothing, disturb=disturb, fails=_never, horizon=_HORIZON, num_envs=n
        )
        bare, ours = _seconds(env, problem, n, request.first_seed)
        env.close()
        rows.append(
            {
                "what": what, "envs": n, "bare": bare, "ours": ours, "ratio": ours / bare,
                "bar": _BAR if n >= _DEFAULT else None,
            }
        )  # fmt: skip
        request.tick(what, len(rows), len(cases))
    return rows


def _nothing(obs: Any) -> Any:
    """No torque."""
    return np.ones(len(obs), np.int64) if obs.shape[1] == 6 else np.zeros((len(obs), 1), np.float32)


def _never(obs: Any) -> Any:
    return np.zeros(len(obs), bool)


def _seconds(env: Any, problem: Problem, n: int, seed: int) -> tuple[float, float]:
    """Of one step of all sub-environments, a share of their reset included, bare and under apeval;
    the first turn warms up."""
    simulation = Simulation(problem, make_key(seed), Budget(episodes=10**9))
    bare, ours = [], []
    seeds = list(range(n))
    for turn in range(_TURNS + 1):
        times = [time.process_time()]
        obs, _ = env.reset(seed=seeds)
        actions = _nothing(obs)
        for _ in range(_HORIZON):
            times.append(time.process_time())
            env.step(actions)
        times.append(time.process_time())
        under = [time.process_time()]
        with _told(type(env), under.append):
            simulation.run(only(Nominal()), n, simulation.episodes)
        under.append(time.process_time())
        if turn:
            bare.append(np.diff(times))
            ours.append(np.diff(under))
    quickest = [float(np.min(it, axis=0).sum()) for it in (bare, ours)]
    return quickest[0] / _HORIZON, quickest[1] / _HORIZON


@contextmanager
def _told(kind: Any, tell: Callable[[float], Any]) -> Iterator[None]:
    """Says when each step of a vector environment of this kind begins."""
    step = kind.step

    def timed(self: Any, actions: Any) -> Any:
        tell(time.process_time())
        return step(self, actions)

    kind.step = timed
    try:
        yield
    finally:
        kind.step = step


def as_text(rows: list[dict[str, Any]]) -> str:
    """The costs as a table."""
    lines = [
        "| a vector environment | sub-environments | its own step, ms | under apeval, ms | ratio "
        "| at most |",
        "|---|---|---|---|---|---|",
    ]
    for r in rows:
        lines.append(
            f"| {r['what']} | {r['envs']} | {1e3 * r['bare']:.3f} | {1e3 * r['ours']:.3f} "
            f"| {r['ratio']:.2f} | {'–' if r['bar'] is None else format(r['bar'], 'g')} |"
        )
    return "\n".join(lines)
