"""One pendulum, observed as a dict, a tuple, a stack of frames or a picture, with noisy sensors.

    apeval run examples/observation_forms.py --set problem.form=dict --episodes 1000

It fails if it leans by more than 40°. In the picture the upper half shows where the pendulum's tip
is and the lower half how fast it turns; the camera is dark now and then.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Tuple
from gymnasium.wrappers import FrameStackObservation, TransformObservation

import apeval

LIMIT, SIZE = np.cos(np.deg2rad(40.0)), (16, 65, 1)
ANGLE, RATE = Box(-1.0, 1.0, (2,)), Box(-8.0, 8.0, (1,))  # cos θ and sin θ; θ' in rad/s
FORMS: dict[str, Any] = {  # the space, what is in it, the policy, and what disturbs its sensors
    "dict": (Dict(angle=ANGLE, rate=RATE), lambda o: {"angle": o[:2], "rate": o[2:]},
             lambda obs: hold(obs["angle"][1], obs["rate"][0]),
             apeval.ObservationNoise(std=0.1, key="angle", hold=5)),
    "tuple": (Tuple([ANGLE, RATE]), lambda o: (o[:2], o[2:]),
              lambda obs: hold(obs[0][1], obs[1][0]),
              apeval.ObservationNoise(std=0.1, key=0, hold=5)),
    "frames": (None, None, lambda obs: hold(*(obs[-1, 1:] + obs[-2, 1:]) / 2),
               apeval.ObservationNoise(std=0.1, hold=5)),
    "image": (Box(0, 255, SIZE, np.uint8), lambda o: picture(o[1], o[2]),
              lambda obs: hold(*(obs[[0, -1], :, 0].argmax(1) - 32) / [32, 8]) * obs.any(),
              apeval.Event(0.05, change_observation=lambda obs, dark: obs * (1 - dark), hold=5)),
}  # fmt: skip


def picture(sine: float, rate: float) -> Any:
    found = np.zeros(SIZE, np.uint8)
    found[:8, int(32.5 + 32 * sine)] = found[8:, int(np.clip(32.5 + 8 * rate, 0, 64))] = 255
    return found


def hold(sine: float, rate: float) -> Any:
    return np.array([-12.0 * sine - 2.5 * rate])


def problem(form: str = "dict", motor: float = 0.9) -> apeval.Problem:
    def make() -> Any:
        env = gymnasium.make("Pendulum-v1", disable_env_checker=True)
        return TransformObservation(env, shown, space) if shown else FrameStackObservation(env, 3)

    space, shown, policy, noise = FORMS[form]
    start = apeval.StartNoise("state", std=[0.05, 0.1], replace=True)
    return apeval.from_env(
        make, policy=policy, disturb=[start, noise, apeval.ActionNoise(std=motor, hold=5)],
        fails=lambda env: np.cos(env.unwrapped.state[0]) < LIMIT,
        margin=lambda env: np.cos(env.unwrapped.state[0]) - LIMIT, horizon=40,
        views={"state": lambda env: env.unwrapped.state} if form == "image" else None,
    )  # fmt: skip
