"""The paper's MiniGrid problem (Table I): reach the goal before flowing lava gets in the way.

The agent is a frozen deep Q-network, nature moves the lava. `minigrid-s1`, `-s2` and `-s3` are
the paper's three starts of the lava; `minigrid-stuck` has an agent that also fails by running
out of time. Each runs on transition tables, and as `…@package` in MiniGrid itself, with the
same episodes. Sizes, probabilities and agent are our calibration: the paper does not give them.
"""

from __future__ import annotations

from dataclasses import replace

from apeval.errors import ProblemError
from apeval.problem.exact import exact_truth
from apeval.problem.problem import Problem
from apeval.problem.registry import register
from apeval.problem.tabular_model import TabularModel
from apeval.problem.tabular_problem import tabular_problem

P_STAY = 0.81  #: brings the paper's starts near its 4·10⁻³; chosen by `train.py`
_PACKAGE = "@package"
_STARTS = ("minigrid-s1", "minigrid-s2", "minigrid-s3")
_STUCK = "minigrid-stuck"
_DRAWING = "apeval_paper.environments.minigrid.drawing:draw"


@register(
    *_STARTS,
    description="MiniGrid with flowing lava and a DQN agent (exact 4e-3)",
    drawing=_DRAWING,
)
@register(
    _STUCK,
    description="MiniGrid agent that also gets stuck: a fifth of its failures",
    drawing=_DRAWING,
)
def on_tables(name: str = "minigrid-s1", p_stay: float = P_STAY) -> Problem:
    """On tables. The lava stays with probability p_stay, else flows to one of four sides."""
    model = _model(name, p_stay)
    return tabular_problem(
        model,
        name=name,
        description="an agent on its way to the goal past flowing lava",
        parameters={"p_stay": p_stay},
        truth=lambda: exact_truth(model),
    )


@register(
    *(start + _PACKAGE for start in _STARTS),
    description="the same, run in MiniGrid itself instead of on tables",
    drawing=_DRAWING,
)
@register(
    _STUCK + _PACKAGE, description="minigrid-stuck, run in MiniGrid itself", drawing=_DRAWING
)
def in_minigrid(name: str = "minigrid-s1" + _PACKAGE, p_stay: float = P_STAY) -> Problem:
    """In MiniGrid itself. The lava stays with probability p_stay, else flows to one side."""
    from apeval_paper.environments.minigrid.package import package_problem

    model = _model(name.removesuffix(_PACKAGE), p_stay)
    return replace(
        package_problem(model, p_stay),
        name=name,
        description="an agent on its way to the goal past flowing lava, in MiniGrid",
        parameters={"p_stay": p_stay},
        truth=lambda: exact_truth(model),
    )


def _model(name: str, p_stay: float) -> TabularModel:
    from apeval_paper.environments.minigrid import policy, rules

    if not 0.0 <= p_stay <= 1.0:
        raise ProblemError(f"p_stay is a probability, from 0 to 1; got {p_stay}")
    stuck = name == _STUCK
    layers, _ = policy.load("dqn-stuck" if stuck else "dqn")
    start = "s1" if stuck else name.removeprefix("minigrid-")
    return rules.model(policy.greedy(layers), p_stay, rules.LAVA_STARTS[start])
