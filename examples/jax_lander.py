"""A simulator and a policy in JAX, written for one episode, run for many at once.

    apeval run examples/jax_lander.py --episodes 1000

A lander comes down in gusts of vertical wind, and its fuel valve is rough. It must touch the ground
at 2 m/s or less. Needs the extra `jax`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

import apeval

DT, SOFT = 0.1, 2.0


class Flight(NamedTuple):
    height: Any
    speed: Any


def start(key: Any) -> Any:
    flight = Flight(30.0 + jax.random.normal(key), -5.0)
    return jnp.array(flight), flight


def fly(key: Any, flight: Flight, thrust: Any) -> Any:
    rough = 1.0 + 0.02 * jax.random.normal(key)
    speed = flight.speed + DT * (rough * 4.0 * thrust[0] - 1.6)
    flight = Flight(flight.height + DT * speed, speed)
    landed = flight.height <= 0.0
    return jnp.array(flight), flight, 0.0, landed, {"hard": landed & (speed < -SOFT)}


@jax.jit
def brake(obs: Any) -> Any:
    """Follows a falling speed that shrinks towards the ground."""
    height, speed = obs[:, 0], obs[:, 1]
    wanted = -0.6 - 0.25 * jnp.maximum(height, 0.0)
    return jnp.clip(0.4 + 0.5 * (wanted - speed), 0.0, 1.0)


def problem(gust: float = 0.18, num_envs: int = 64) -> apeval.Problem:
    return apeval.from_jax(
        (start, fly),
        action_space=gymnasium.spaces.Box(0.0, 1.0, (1,), np.float32),
        policy=brake,
        disturb=apeval.ParameterNoise("state.speed", std=gust, kick=True, hold=10),
        fails="info.hard",
        horizon=250,
        num_envs=num_envs,
        description="a lander in gusts, simulator and policy in JAX",
    )
