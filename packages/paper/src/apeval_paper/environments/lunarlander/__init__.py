"""LunarLander: gymnasium's lander, OpenAI's heuristic, and an error in what the engines get.

Once a second (50 frames) nature draws w ~ N(0, 0.1² I₂) and adds it to the heuristic's command:
a = clip(heuristic(s) + w, ±1), main engine first, then orientation engine. Failures are a crash
(the hull touches the ground), |x| ≥ 1, and 1,000 frames without coming to rest. The engines'
dispersion is chance that nobody controls; each episode has its own generator for it, seeded from
the run's key and the episode's number, so that an episode replays exactly (gymnasium alone would
freeze it when every reset has the same seed).

From the paper: the policy, the noise, its rate and its std, the failure event, v* = 1.30e-3. Our
calibration: that the noise acts after the heuristic's own clip, and the terrain and initial push,
which are those of ``reset(seed=36)``: of the seeds 0 to 54, one whose v* comes near the paper's
(they range from below 1e-4 to 0.4; seed 1 has 1.43e-3 ± 3 %).

`lunarlander` flies a stripped step that equals gymnasium's bit by bit at 2.8 times its speed;
`lunarlander@gymnasium` flies gymnasium's own. The results are the same.
"""

from __future__ import annotations

import math
from typing import Any

from apeval.errors import ProblemError
from apeval.problem.laws import Normal
from apeval.problem.problem import Problem
from apeval.problem.registry import register
from apeval.problem.truth import Truth

RESET_SEED = 36
DEFAULTS: dict[str, Any] = {
    "std": 0.1,
    "frames": 50,
    "reset_seed": RESET_SEED,
    "random_start": False,
}


@register(
    "lunarlander",
    "lunarlander@gymnasium",
    description="LunarLander under OpenAI's heuristic, with an error in what the engines get",
    drawing="apeval_paper.environments.lunarlander.drawing:draw",
)
def lunarlander(
    std: float = 0.1,
    frames: int = 50,
    reset_seed: int = RESET_SEED,
    random_start: bool = False,
    name: str = "lunarlander",
) -> Problem:
    """LunarLander with adjustable noise `std`, `frames` per decision (50 are one second), the
    `reset_seed` of terrain and initial push, and `random_start`: a new terrain and push in each
    episode, uncontrolled."""
    from apeval_paper.environments.lunarlander import simulator as sim
    from apeval_paper.environments.lunarlander.kernel import MAX_FRAMES
    from apeval_paper.environments.lunarlander.lander import KINDS, TIMEOUT

    if not 1 <= frames <= MAX_FRAMES:
        raise ProblemError(f"frames must be from 1 to {MAX_FRAMES} (50 are a second); got {frames}")
    simulator = sim.Simulator(name == "lunarlander", frames, reset_seed, random_start)
    parameters: dict[str, Any] = {
        "std": std,
        "frames": frames,
        "reset_seed": reset_seed,
        "random_start": random_start,
    }
    return Problem(
        nominal=Normal(0.0, [std, std]),
        reset=simulator.reset,
        step=simulator.step,
        agent=sim.heuristic_action,
        failed=sim.failed,
        done=sim.done,
        margin=sim.margin,
        horizon=math.ceil(MAX_FRAMES / frames),
        horizon_kind=TIMEOUT,
        kinds=KINDS,
        views={"markov": sim.markov_view, "paper": sim.paper_view},
        chunk=32,
        name=name,
        description="LunarLander under OpenAI's heuristic, noise on the engines' commands",
        parameters=parameters,
        truth=_truth if parameters == DEFAULTS else None,
        verify=_verify if parameters == DEFAULTS else None,
    )


def _truth() -> Truth:
    from apeval_paper.environments.lunarlander.truth import stored

    return stored()


def _verify(full: bool, seed: int) -> dict[str, Any]:
    from apeval_paper.environments.lunarlander.truth import verify_truth

    return verify_truth(full, seed)
