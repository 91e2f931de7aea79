"""`exact_minimax`: how rarely any policy could fail on given tables, for a sampled loop to be
compared with.

The zero-variance adversary of a policy, π_E* ∝ π_E,gt·(r + v(s')), makes every episode fail, and
weights bring each back to the nominal world: E over π_E* of (π_E,gt/π_E*)·(r + v(s')) is the sum
of π_E,gt·(r + v(s')), the mass that π_E* was normalised by. An agent that plays against it with
full weights therefore minimises its failure probability in the nominal world, and the minimax
value is the least one that any policy has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apeval.errors import ProblemError
from apeval.problem.problem import Problem
from apeval.problem.tabular_model import SAFE_END, TabularModel
from apeval.problem.types import FloatArray, IntArray


@dataclass(frozen=True)
class Minimax:
    """The policy that fails least, and how often it does."""

    value: float
    """Its failure probability from the initial state, under π_E,gt."""
    values: FloatArray
    """The same from every state with t decisions made, shape (T + 1, S)."""
    policy: IntArray
    """Its action in every state with t decisions made, shape (T, S)."""


def exact_minimax(problem: Problem | TabularModel) -> Minimax:
    """The least failure probability that any policy has on the tables of a problem.

    Exact, by backward recursion over decisions t and states s: v(t, s) is the least over the
    agent's actions of Σ π_E,gt(a_E | s, a_A)·(r + v(t + 1, s')); of equal actions the one with the
    lowest number is taken. The policy sees the number of decisions made: near the horizon it may
    act otherwise than at the start, and one that sees the state alone can at best come close. The
    policy that the problem came with plays no part.

    Args:
        problem: A problem of tables (`tabular_problem`), or the tables; they must have a horizon.

    Returns:
        Value and policy.

    Raises:
        ProblemError: There are no tables, or no horizon.

    Examples:
        >>> import apeval
        >>> apeval.exact_minimax(apeval.make("walk"))
        Traceback (most recent call last):
            ...
        apeval.errors.ProblemError: without a horizon an agent may put off its end for ever: give \
the tables a horizon
    """
    model = _tables(problem)
    T, S = _horizon(model), model.shape[0]
    values, policy = _at_the_horizon(model), np.zeros((T, S), np.int64)
    for t in range(T - 1, -1, -1):
        mass = _mass(model, values[t + 1])
        policy[t] = mass.argmin(axis=1)
        values[t] = mass.min(axis=1)
    return Minimax(float(values[0, model.start]), values, policy)


def policy_values(problem: Problem | TabularModel, policy: IntArray) -> FloatArray:
    """The exact failure probability of a policy that sees the number of decisions made.

    Args:
        problem: As in `exact_minimax`.
        policy: Its action in every state with t decisions made, shape (T, S).

    Returns:
        From every state with t decisions made, shape (T + 1, S).

    Raises:
        ProblemError: There are no tables, no horizon, or the policy has another shape.
    """
    model = _tables(problem)
    T, (S, A, _) = _horizon(model), model.shape
    if np.shape(policy) != (T, S) or np.min(policy) < 0 or np.max(policy) >= A:
        raise ProblemError(
            f"a policy must have one of {A} actions for each of {T} decisions and {S} states"
        )
    values = _at_the_horizon(model)
    for t in range(T - 1, -1, -1):
        values[t] = _mass(model, values[t + 1])[np.arange(S), policy[t]]
    return values


def exact_rounds(problem: Problem | TabularModel) -> list[float]:
    """The failure probability from round to round, where evaluation and training are both exact.

    Policy iteration, which is what `harden` does without chance: each round has the zero-variance
    adversary of the last policy, and takes in every state with t decisions made the action that
    it makes fail least, with full weights. An action changes only where another is better.

    Args:
        problem: As in `exact_minimax`. Round 0 is its own policy, its likeliest action where it
            is random.

    Returns:
        The failure probability of every round; the last is the value of `exact_minimax`.

    Raises:
        ProblemError: There are no tables, or no horizon.
    """
    model = _tables(problem)
    T, S = _horizon(model), model.shape[0]
    policy = np.tile(model.agent.argmax(axis=1), (T, 1))
    rounds = []
    while True:
        values = policy_values(model, policy)
        rounds.append(float(values[0, model.start]))
        improved = policy.copy()
        for t in range(T):
            mass = _mass(model, values[t + 1])
            best = mass.argmin(axis=1)
            better = mass[np.arange(S), best] < mass[np.arange(S), policy[t]]
            improved[t] = np.where(better, best, policy[t])
        if np.array_equal(improved, policy):
            return rounds
        policy = improved


def _tables(problem: Problem | TabularModel) -> TabularModel:
    model = problem if isinstance(problem, TabularModel) else problem.table
    if model is None:
        raise ProblemError(
            "an exact value needs transition tables: give a problem of apeval.tabular_problem, "
            "such as minigrid-s1"
        )
    return model


def _horizon(model: TabularModel) -> int:
    if model.horizon is None:
        raise ProblemError(
            "without a horizon an agent may put off its end for ever: give the tables a horizon"
        )
    return model.horizon


def _at_the_horizon(model: TabularModel) -> FloatArray:
    """Values with only the last row right."""
    values: FloatArray = np.zeros((_horizon(model) + 1, model.shape[0]))
    values[-1] = 1.0 if model.horizon_kind else 0.0
    return values


def _mass(model: TabularModel, after: FloatArray) -> FloatArray:
    """Σ π_E,gt·(r + v(s')) over nature's actions, shape (S, A)."""
    fails = (model.successor < SAFE_END).astype(np.float64)
    goes_on = np.where(model.successor >= 0, after[np.maximum(model.successor, 0)], 0.0)
    mass: FloatArray = (model.nominal * (fails + goes_on)).sum(axis=2)
    return mass
