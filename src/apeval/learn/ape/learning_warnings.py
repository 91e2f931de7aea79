"""What went wrong while learning, in plain words. All of it is mended by a larger budget."""

from __future__ import annotations

from apeval.remedies import Note

FEWEST_WHOLE = 4
"""Episodes of full length that a budget must hold to learn from."""


def cramped(longest: int, in_steps: bool) -> Note:
    """The budget may hold many short episodes, but too few of full length to be sure of any."""
    whole = f" of full length ({longest:,} decisions)" if in_steps else ""
    return _note(
        f"the budget holds fewer than {FEWEST_WHOLE} episodes{whole}, so nothing was learned and "
        "every episode was drawn from the nominal"
        + (". It may also be given in episodes" if in_steps else "")
    )


def too_few(margin: bool) -> Note:
    """Nothing to fit to."""
    return _note(
        "exploration found too few failures to learn from, so most episodes were drawn near the "
        "nominal" + ("" if margin else ". A margin of the problem would lead to failures")
    )


def not_reached(level: float) -> Note:
    """The margin came down, but not to failures."""
    return _note(
        f"learning ended before failures were reached (the margin came down to {level:.3g})"
    )


def unmoved() -> Note:
    """Fits met the levels that they were for hardly more often than the nominal. That does
    not tell why: the disturbance may have no influence on failures, or one that so few episodes do
    not show, as with noise in every decision of a long episode."""
    return _note(
        "what was learned brought episodes hardly nearer to failure than the nominal does, so the "
        "rest was drawn from the nominal, as Monte Carlo does"
    )


def not_converged(alpha: float, ess: float) -> Note:
    """The last fit rests on tempered weights."""
    return _note(
        f"learning had not converged (tempered weights, α = {alpha:.2f}, {ess:.0f} effective "
        "failures)",
        more=2.0,
    )


def missed_modes(found: int, walks: int) -> Note:
    """The last search for further modes was not in vain."""
    return Note(
        f"the last search for further failure modes still found some: {found} of {walks} walks "
        "ended in failures that the adversary learned so far hardly produces. More may be missing "
        "from the estimate",
        more=2.0,
    )


def _note(text: str, more: float = 1.0) -> Note:
    return Note(text, serious=False, more=more)
