"""Settings of tabular APE."""

from __future__ import annotations

from dataclasses import dataclass

from apeval.problem.settings import setting


@dataclass(frozen=True)
class TdConfig:
    """What every table of v and π_E that learns by temporal differences has."""

    n_step: int = setting(1, "decisions per TD target (1: as printed)", low=1, high=10_000)
    time_in_state: bool = setting(
        False, "learn v(s, t) instead of v(s): Markov where a horizon ends the episode"
    )
    step_size: float = setting(
        10.0, "c of α = c/(c + k − 1) at a state's k-th visit (Σα = ∞, Σα² < ∞)", low=0.5, high=1e6
    )
    v_init: float = setting(0.05, "v(s) before the first visit", low=0.0, high=1.0)
    v_floor: float = setting(1e-8, "smallest v(s) that is divided by", low=1e-300, high=1.0)
    delta: float = setting(
        0.005, "δ of Eq. MDP_p_update, applied before normalisation", low=1e-12, high=0.5
    )
    learn_share: float = setting(
        0.5, "share of the budget for learning at the most; the rest estimates", low=0.0, high=0.99
    )
    nominal_share: float = setting(
        0.15, "share of the frozen stage's episodes drawn from π_E,gt", low=0.01, high=1.0
    )


@dataclass(frozen=True)
class ApeTabularConfig(TdConfig):
    """Tabular APE (the paper's Section IV); the paper states none of these values."""

    value_update: str = setting(
        "online",
        "Eq. ape_v_update_approx ('online': weight of the action taken) or Eq. "
        "ape_v_update_exact ('exact': weight of the transition, summed over agent actions)",
        choices=("online", "exact"),
    )
    policy_update: str = setting(
        "row",
        "Eq. MDP_p_update for the visited pair alone ('visited', as printed) or for all "
        "remembered successors of the visited state ('row')",
        choices=("row", "visited"),
    )
    true_floor: bool = setting(
        False, "apply δ after normalisation, as a true floor of π_E, instead of before it"
    )
    stop_window: int = setting(
        2_000,
        "stopping rule of Table I: steps over which v(s0) must stay still",
        low=1,
        high=10_000_000,
    )
    stop_tolerance: float = setting(
        0.01,
        "stopping rule of Table I: relative deviation allowed (0: never stop)",
        low=0.0,
        high=1.0,
    )
    planned: bool = setting(
        True,
        "before the freeze, solve v over the remembered transitions and update every row of π_E "
        "with it ('no': freeze π_E as TD left it)",
    )
    unknown: float = setting(
        1.0,
        "after the stopping rule of Table I, explore untried transitions until what they could add "
        "to v(s0) is at most this part of it, or learn_share is spent (planned alone)",
        low=0.0,
        high=1e12,
    )
    caution: float = setting(
        0.1,
        "nominal decisions per episode, on average, that are mixed into the planned adversaries",
        low=0.0,
        high=1e6,
    )
    wary_share: float = setting(
        0.25,
        "share of the frozen stage's episodes that take untried transitions for failures",
        low=0.0,
        high=0.9,
    )
