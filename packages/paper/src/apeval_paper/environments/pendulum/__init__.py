"""`pendulum` and `pendulum-discrete`: an inverted pendulum with a saturated controller.

The benchmark of Corso et al. (2022), "Deep reinforcement learning for adaptive stress testing";
the torque is disturbed by a Gaussian, or by one of five values.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from scipy.special import ndtr

from apeval.errors import ProblemError
from apeval.problem.draws import Draws
from apeval.problem.laws import Categorical, Normal
from apeval.problem.problem import Problem
from apeval.problem.registry import register
from apeval.problem.truth import Truth
from apeval.problem.types import Array
from apeval_paper.environments.pendulum.dynamics import (
    DISCRETE_STD,
    START,
    STD,
    STEPS,
    VALUES,
    controller,
    discrete_probabilities,
    failed,
    margin,
    swing,
)

_DRAWING = "apeval_paper.environments.pendulum.drawing:draw"


def _start(draws: Draws, a_0: Array | None = None) -> Array:
    """Uniform on the rectangle; a controlled start is a Gaussian pair seen through its CDF."""
    u = draws.uniform(2) if a_0 is None else ndtr(a_0)
    return START * (2.0 * u - 1.0)


def _push(x: Array, a_A: Array, a_E: Array, draws: Draws) -> Array:
    return swing(x, a_A[:, 0] + a_E[:, 0])


def _push_discrete(x: Array, a_A: Array, a_E: Array, draws: Draws) -> Array:
    return swing(x, a_A[:, 0] + VALUES[a_E[:, 0]])


@register(
    "pendulum",
    description="inverted pendulum, Gaussian torque disturbances (2e-5)",
    drawing=_DRAWING,
)
def pendulum(steps: int = STEPS, std: float = STD, controlled_start: bool = False) -> Problem:
    """|θ| must stay below π/4. The random start is nobody's, or (`controlled_start`) nature's."""
    if std <= 0.0:
        raise ProblemError(f"std must be positive; got {std}")
    parameters = {"steps": steps, "std": std, "controlled_start": controlled_start}
    return Problem(
        nominal=Normal(0.0, std),
        step=_push,
        name="pendulum",
        description="inverted pendulum with Gaussian torque disturbances",
        parameters=parameters,
        **_common(steps, controlled_start, "pendulum" if std == STD else None),
    )


@register(
    "pendulum-discrete",
    description="inverted pendulum, five torque disturbances (3e-5)",
    drawing=_DRAWING,
)
def pendulum_discrete(steps: int = STEPS, std: float = DISCRETE_STD) -> Problem:
    """As `pendulum`; the disturbance is one of five values."""
    if std <= 0.0:
        raise ProblemError(f"std must be positive; got {std}")
    return Problem(
        nominal=Categorical(discrete_probabilities(std)),
        step=_push_discrete,
        name="pendulum-discrete",
        description="inverted pendulum with five possible torque disturbances",
        parameters={"steps": steps, "std": std},
        **_common(steps, False, "pendulum-discrete" if std == DISCRETE_STD else None),
    )


def _common(steps: int, controlled: bool, known: str | None) -> dict[str, Any]:
    known = known if steps == STEPS else None
    return {
        "reset": _start,
        "initial": Normal(0.0, 1.0, dim=2) if controlled else None,
        "agent": controller,
        "failed": failed,
        "margin": margin,
        "horizon": steps,
        "kinds": ("left", "right"),
        "chunk": 4096,
        "truth": partial(_truth, known) if known else None,
        "verify": partial(_verify, known) if known else None,
    }


def _truth(name: str) -> Truth:
    from apeval_paper.environments.pendulum.ground_truth import truth

    return truth(name)


def _verify(name: str, full: bool, seed: int) -> dict[str, Any]:
    from apeval_paper.environments.pendulum.ground_truth import verify_truth

    return verify_truth(name, full, seed)
