"""Said of a run whose interval is wider than plain Monte Carlo's would have been."""

from __future__ import annotations

from apeval.adapt.entrance import entrance
from apeval.estimate.plain_monte_carlo import nominal_length, times_wider
from apeval.problem.problem import Problem
from apeval.remedies import Note, Option
from apeval.run.frozen_stage import FrozenStage
from apeval.run.result_text import rounded
from apeval.simulate.simulation import Simulation

MC, SPLITTING = "mc", "splitting"


def wider_note(
    problem: Problem, method: str, simulation: Simulation, frozen: FrozenStage
) -> list[Note]:
    """Where Monte Carlo would have come nearer with the same budget, by how much, and the tools.

    Args:
        problem: As it was evaluated.
        method: The run's method.
        simulation: What the run has taken.
        frozen: What the estimate comes from.
    """
    if method == MC:
        return []
    if frozen.estimate.value <= 0.0:
        return _unseen(problem, method)
    n = _nominal_episodes(simulation, frozen)
    times = times_wider(frozen.estimate, n)
    if times is None:
        return []
    long = problem.longest > 1
    text = (
        f"the interval is {times:.2g} times as wide as plain Monte Carlo's would be with the same "
        f"budget ({rounded(n)} episodes)"
    )
    if long and method != SPLITTING:
        text += (
            ": the adversary has more to learn than so many episodes teach, as with new noise at "
            "every step of long episodes"
        )
    return [Note(f"{text}. {_tools(problem, method, long)}", serious=False)]


def _unseen(problem: Problem, method: str) -> list[Note]:
    """Without a failure it is said elsewhere what Monte Carlo would show."""
    if method == SPLITTING or not _can_split(problem):
        return []
    split = Option("method", SPLITTING)
    text = f"{split} learns no adversary and climbs along the margin towards failures: try it"
    return [Note(f"{text} with the same budget", serious=False)]


def _can_split(problem: Problem) -> bool:
    """As the method itself says, which is not loaded for a remark."""
    return problem.margin is not None and problem.longest > 1


def _nominal_episodes(simulation: Simulation, frozen: FrozenStage) -> float:
    """Episodes of Monte Carlo for what the run has taken, in the unit of its budget. Where Russian
    roulette made episodes shorter, they are taken as long as they may be."""
    if simulation.budget.steps is None:
        return float(simulation.episodes)
    length = nominal_length(frozen.sample)
    if frozen.ended_by_roulette:
        length = max(length, float(simulation.problem.horizon or 0))
    return simulation.steps / max(length, 1.0)


def _tools(problem: Problem, method: str, long: bool) -> str:
    tools = [f"Use {Option('method', MC)}"]
    if long and method != SPLITTING:
        split = f"{Option('method', SPLITTING)}, which learns no adversary, where failure is rare"
        if _can_split(problem):
            tools.append(f"try {split}")
        elif problem.margin is None:
            tools.append(f"give a margin, {entrance(problem).margin}, and try {split}")
    if entrance(problem).can_hold:
        tools.append(
            "where the real disturbance lasts longer than a step, say so by its hold=, which "
            "leaves fewer decisions to learn"
        )
    return "; ".join(tools)
