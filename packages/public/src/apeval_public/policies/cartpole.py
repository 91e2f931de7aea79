"""`cartpole`: a frozen PPO network balances Gymnasium's CartPole-v1 through noisy sensors.

Every one of the 500 observations has Gaussian noise on all four components. The dynamics are those
of `gymnasium.envs.classic_control.cartpole`, for many episodes at once; the network was trained
by `apeval_public.policies.train` with the settings of rl-baselines3-zoo.
"""

from __future__ import annotations

import numpy as np

from apeval.errors import ProblemError
from apeval.problem.draws import Draws
from apeval.problem.laws import Normal
from apeval.problem.problem import Problem
from apeval.problem.registry import register
from apeval.problem.types import Array, FloatArray
from apeval_public.policies.network import load
from apeval_public.truth.known import with_stored_truth

GRAVITY, CART, POLE, HALF_LENGTH, FORCE, TAU = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
MASS, POLE_MOMENT = CART + POLE, POLE * HALF_LENGTH
LARGEST_X, LARGEST_THETA = 2.4, 12 * 2 * np.pi / 360
START = 0.05
STEPS, STD = 500, 0.0365


def accelerate(state: Array, right: Array) -> FloatArray:
    """One step of Gymnasium's CartPole, in its order of operations.

    Args:
        state: x, ẋ, θ, θ̇, shape (n, 4).
        right: Whether the cart is pushed to the right, shape (n,).

    Returns:
        The next states, shape (n, 4).
    """
    x, x_dot, theta, theta_dot = np.ascontiguousarray(state.T)
    force = np.where(right, FORCE, -FORCE)
    cos, sin = np.cos(theta), np.sin(theta)
    push = (force + POLE_MOMENT * np.square(theta_dot) * sin) / MASS
    theta_acc = (GRAVITY * sin - cos * push) / (
        HALF_LENGTH * (4.0 / 3.0 - POLE * np.square(cos) / MASS)
    )
    x_acc = push - POLE_MOMENT * theta_acc * cos / MASS
    return np.stack(
        [
            x + TAU * x_dot,
            x_dot + TAU * x_acc,
            theta + TAU * theta_dot,
            theta_dot + TAU * theta_acc,
        ],
        axis=1,
    )


def pushes_right(seen: Array) -> Array:
    """The frozen policy's most likely action.

    Args:
        seen: Observations with their noise, shape (n, 4).

    Returns:
        Whether it pushes to the right, shape (n,).
    """
    logits = load("cartpole")(seen)
    right: Array = logits[:, 1] > logits[:, 0]  # a tie is argmax's first, the left
    return right


def _step(x: Array, a_A: Array, a_E: Array, draws: Draws) -> Array:
    observation = x.astype(np.float32).astype(np.float64)  # as Gymnasium rounds it
    return accelerate(x, pushes_right(observation + a_E))


def _start(draws: Draws) -> Array:
    return START * (2.0 * draws.uniform(4) - 1.0)


def _failed(x: Array) -> Array:
    fallen, away = np.abs(x[:, 2]) > LARGEST_THETA, np.abs(x[:, 0]) > LARGEST_X
    return np.where(fallen, 1, np.where(away, 2, 0))


def _margin(x: Array) -> FloatArray:
    m: FloatArray = 1.0 - np.maximum(np.abs(x[:, 2]) / LARGEST_THETA, np.abs(x[:, 0]) / LARGEST_X)
    return m


@register(
    "cartpole", description="CartPole-v1, a PPO network, sensor noise at each of 500 steps (1e-4)"
)
def cartpole(std: float = STD, steps: int = STEPS) -> Problem:
    """The pole must stay within 12° and the cart on its track; std is that of the noise on each
    component of every observation."""
    if std <= 0.0 or steps < 1:
        raise ProblemError(f"std must be positive and steps at least 1; got {std}, {steps}")
    problem = Problem(
        nominal=Normal(0.0, std, dim=4),
        reset=_start,
        step=_step,
        failed=_failed,
        margin=_margin,
        horizon=steps,
        kinds=("pole", "track"),
        chunk=2048,
        name="cartpole",
        description="CartPole-v1 with a PPO network and sensor noise at every step",
        parameters={"std": std, "steps": steps},
    )
    return with_stored_truth(problem)
