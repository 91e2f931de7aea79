"""A `Problem` from transition tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from apeval.problem.agent import Stochastic
from apeval.problem.draws import Draws
from apeval.problem.laws import Categorical
from apeval.problem.problem import Problem
from apeval.problem.tabular_model import SAFE_END, TabularModel
from apeval.problem.truth import Truth
from apeval.problem.types import Array, FloatArray


def tabular_problem(
    model: TabularModel,
    *,
    name: str = "",
    description: str = "",
    parameters: Mapping[str, Any] | None = None,
    truth: Callable[[], Truth] | None = None,
    margin: Callable[[Array], FloatArray] | None = None,
) -> Problem:
    """The problem that transition tables define. Its state is one integer: s, or an end's code.

    Args:
        model: The tables.
        name: Stands in results and reports.
        description: One line, for lists of problems.
        parameters: What the problem was built with; kept in results.
        truth: Returns the known failure probability.
        margin: Distance to failure of states, shape (n, 1), as (n,).

    Returns:
        A problem whose `table` is the model, which `ape-tabular` can use.
    """

    def reset(draws: Draws) -> Array:
        return np.full((draws.n, 1), model.start, dtype=np.int64)

    def interior(x: Array) -> Array:
        return np.maximum(x[:, 0], 0)  # ended episodes are not asked again

    def step(x: Array, a_A: Array, a_E: Array, draws: Draws) -> Array:
        return model.successor[interior(x), a_A[:, 0], a_E[:, 0]][:, None].astype(np.int64)

    return Problem(
        nominal=Categorical(
            lambda x, a_A: model.nominal[interior(x), a_A[:, 0]], outcomes=model.shape[2]
        ),
        agent=Stochastic(lambda x: model.agent[interior(x)]),
        reset=reset,
        step=step,
        failed=lambda x: np.where(x[:, 0] < SAFE_END, SAFE_END - x[:, 0], 0),
        done=lambda x: x[:, 0] == SAFE_END,
        margin=margin,
        horizon=model.horizon,
        horizon_kind=model.horizon_kind,
        kinds=model.kinds,
        cap=model.cap,
        table=model,
        name=name,
        description=description,
        parameters=parameters or {},
        truth=truth,
    )
