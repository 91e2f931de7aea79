"""What went wrong while learning, in plain words, each with a remedy."""

from __future__ import annotations

FEWEST_WHOLE = 4
"""Episodes of full length that a budget must hold to learn from."""


def cramped(longest: int, in_steps: bool) -> str:
    """The budget may hold many short episodes, but too few of full length to be sure of any."""
    whole = f" of full length ({longest:,} decisions)" if in_steps else ""
    remedy = "raise the budget, or give it in episodes" if in_steps else "raise the budget"
    return (
        f"the budget holds fewer than {FEWEST_WHOLE} episodes{whole}, so nothing was learned and "
        f"every episode was drawn from the nominal: {remedy}"
    )


def too_few(margin: bool) -> str:
    """Nothing to fit to."""
    remedy = "raise the budget" if margin else "raise the budget, or give the problem a margin"
    return (
        "exploration found too few failures to learn from, so most episodes were drawn near the "
        f"nominal: {remedy}"
    )


def not_reached(level: float) -> str:
    """The margin came down, but not to failures."""
    return (
        f"learning ended before failures were reached (the margin came down to {level:.3g}): raise "
        "the budget"
    )


def unmoved() -> str:
    """The margin does not answer to nature."""
    return (
        "the disturbances hardly move the margin: no fit brought it down, and the rest of the "
        "episodes was drawn from the nominal, as Monte Carlo does. Where failures should "
        "depend on the disturbances, look at the problem with apeval check; else raise the budget"
    )


def not_converged(alpha: float, ess: float) -> str:
    """The last fit rests on tempered weights."""
    return (
        f"learning had not converged (tempered weights, α = {alpha:.2f}, {ess:.0f} effective "
        "failures): raise the budget to about twice as much"
    )
