"""A Stable-Baselines3 policy on CartPole: asked for a block of episodes at once, against one
observation at a time. Both take turns at the same episodes; the quickest turn of each counts, so
that what else the machine does falls out as far as it comes and goes."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from apeval.adapt.disturbance_source import DisturbanceSource
from apeval.adapt.from_env import from_env
from apeval.adapt.noises import ObservationNoise, ParameterNoise
from apeval.problem.draws import make_key
from apeval.problem.problem import Problem
from apeval.simulate.adversary import Nominal, only
from apeval.simulate.simulation import Budget, Simulation
from apeval_bench.registry import ExperimentRequest

_BAR = 4.0
_TRAINED, _HORIZON = 20_480, 200  # environment steps
_TURNS, _TURN = 10, 32  # episodes in a turn
_CASES: dict[str, tuple[DisturbanceSource, int]] = {
    "noise on the observation at every step": (ObservationNoise(std=0.03), 1),
    "noise on the force at every step": (ParameterNoise("force_mag", std=1.0), 1),
    "gusts held for 10 steps": (ParameterNoise("state[3]", std=0.02, kick=True, hold=10), 10),
}


def measure(request: ExperimentRequest) -> list[dict[str, Any]]:
    """Environment steps per second of processor time, both ways."""
    from stable_baselines3 import PPO

    request.tick("CartPole with a Stable-Baselines3 zip", 0, len(_CASES))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.zip"
        PPO("MlpPolicy", "CartPole-v1", n_steps=512, seed=0, device="cpu").learn(_TRAINED).save(
            path
        )
        model = PPO.load(path, device="cpu")
        for what, (disturb, hold) in _CASES.items():
            alone = _problem(lambda obs: model.predict(obs, deterministic=True)[0], disturb)
            one, together = _rates([alone, _problem(path, disturb)], hold, request.first_seed)
            rows.append(
                {
                    "what": what, "one": one, "together": together,
                    "ratio": together / one, "bar": _BAR,
                }
            )  # fmt: skip
            request.tick(what, len(rows), len(_CASES))
    return rows


def _problem(policy: Any, disturb: DisturbanceSource) -> Problem:
    return from_env("CartPole-v1", policy=policy, disturb=disturb, horizon=_HORIZON)


def _rates(problems: list[Problem], hold: int, seed: int) -> list[float]:
    """Environment steps per second; a decision that ends early counts as a whole one in both. The
    first turn warms up."""
    runs = [Simulation(it, make_key(seed), Budget(episodes=10**9)) for it in problems]
    best = [0.0] * len(runs)
    for turn in range(_TURNS + 1):
        for k, simulation in enumerate(runs):
            before, started = simulation.steps, time.process_time()
            simulation.run(only(Nominal()), _TURN, simulation.episodes)
            rate = hold * (simulation.steps - before) / (time.process_time() - started)
            best[k] = max(best[k], rate) if turn else 0.0
    return best


def as_text(rows: list[dict[str, Any]]) -> str:
    """The rates as a table."""
    lines = [
        "| CartPole with a Stable-Baselines3 zip | one observation at a time, steps/s "
        "| a block at once, steps/s | ratio | wanted |",
        "|---|---|---|---|---|",
    ]
    for r in rows:
        lines.append(
            f"| {r['what']} | {r['one']:,.0f} | {r['together']:,.0f} | {r['ratio']:.1f} "
            f"| {r['bar']:g} |"
        )
    return "\n".join(lines)
