"""A result as a person reads it."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

from apeval.errors import number_of
from apeval.remedies import remedies, unbroken

if TYPE_CHECKING:
    from apeval.run.result import Result

_WIDTH, _INDENT = 100, 23


def describe(result: Result) -> str:
    """The number first, or, where it cannot be trusted, why not."""
    title = f"{result.problem or 'problem'} · {result.method} · seed {result.seed}"
    warnings = [line("warning", text) for text in result.warnings]
    body = [
        *_headline(result),
        *_answers(result),
        *_opinion(result),
        *_modes(result),
        *_basis(result),
    ]
    if result.trusted:
        return "\n".join([title, *body, *warnings])
    return "\n".join([title, *warnings, *body])


def line(name: str, text: str) -> str:
    """A named line of a report, with its continuation indented; no remedy is broken."""
    filled = textwrap.fill(
        unbroken(text),
        _WIDTH,
        initial_indent=f"  {name:<{_INDENT - 2}}",
        subsequent_indent=" " * _INDENT,
        break_on_hyphens=False,
        break_long_words=not remedies(text),
    )
    return filled.replace("\u00a0", " ")


def _headline(result: Result) -> Iterable[str]:
    lo, hi = result.interval
    yield line("failure probability", f"{result.estimate:.3e}, {in_words(result.estimate, hi)}")
    yield line(
        f"{100 * result.confidence:.4g} % interval",
        f"{lo:.3e} … {hi:.3e}{range_in_words(lo, hi)}",
    )
    if result.truth is not None:
        yield known_truth(result.truth, result.truth_error, result.interval)
    if result.value is not None:
        yield line("learned v(s0)", f"{result.value:.3e}")
    worth = result.monte_carlo_episodes
    if worth is not None and result.trusted and result.method != "mc":
        yield line(
            "worth",
            f"about {rounded(worth)} episodes of Monte Carlo, from {result.episodes:,} simulated",
        )


def known_truth(truth: float, error: float, interval: tuple[float, float]) -> str:
    """The line that says where a known truth lies, and how well it is known itself."""
    value = f"{truth:.3e} ± {error:.1e}" if error else f"{truth:.3e}"
    return line("known truth", f"{value}, {where_truth_lies(truth, error, interval)}")


def where_truth_lies(truth: float, error: float, interval: tuple[float, float]) -> str:
    """Inside the interval or outside; if the truth was counted, by how many of its own standard
    errors.

    >>> where_truth_lies(4.0e-3, 8e-4, (4.4e-3, 5.2e-3))
    'outside the interval by 0.5 of its own standard errors'
    """
    lo, hi = interval
    if lo <= truth <= hi:
        return "inside the interval"
    if not error:
        return "outside the interval"
    away = max(lo - truth, truth - hi) / error
    return f"outside the interval by {away:.1f} of its own standard errors"


def _answers(result: Result) -> Iterable[str]:
    target, below = result.target, result.below
    if target is not None:
        reached = "no failure" if target.reached is None else f"± {target.reached:.1%}"
        text = f"± {target.error:.1%} " + ("reached" if target.met else "not reached")
        yield line("target error", f"{text} ({reached})")
    if below is not None:
        text = f"{below.verdict} at {100 * result.confidence:.4g} % confidence, one-sided: "
        if below.verdict == "refuted":
            text += f"at least {below.lower:.2e}"
        else:
            text += f"at most {below.upper:.2e}"
        if below.verdict == "undecided":
            text += (
                f"; about {below.budget:,} {below.unit} would decide that, if the estimate holds"
                if below.budget is not None
                else "; the estimate lies too near the bound to be decided"
            )
        yield line(f"below {below.below:.3g}", text)


def _opinion(result: Result) -> Iterable[str]:
    it = result.second_opinion
    if it is not None:
        lo, hi = it.interval
        verdict = "agrees" if it.agrees else "disagrees"
        if it.agrees and it.estimate <= 0.0:
            verdict = "saw no failure either, so" if result.estimate <= 0.0 else "saw no failure:"
            verdict += " nothing is confirmed"
        text = f"{it.method} {verdict}: {it.estimate:.3e} ({lo:.2e} … {hi:.2e})"
        yield line("second opinion", f"{text}, with {it.share:.0%} of the budget")


def _modes(result: Result) -> Iterable[str]:
    for number, mode in enumerate(result.modes, start=1):
        lo, hi = mode.share_interval
        share = f"{mode.share:.0%}" if mode.share >= 0.005 else "under 1%"
        share += f" ({lo:.0%}–{hi:.0%})" if len(result.modes) > 1 else ""
        text = f"{number}. {mode.kind}, {share} of the failures: {mode.typical}"
        if not mode.typical:
            text = text.removesuffix(": ")
        yield line("failure modes" if number == 1 else "", text)


def _basis(result: Result) -> Iterable[str]:
    final = result.final
    ended = (
        f"; {final.ended_by_roulette:,} were ended early by Russian roulette"
        if final.ended_by_roulette
        else ""
    )
    yield line(
        "simulated",
        f"{number_of(result.steps, 'decision')} in {number_of(result.episodes, 'episode')}; the "
        f"estimate rests on {final.episodes:,} from {_drawn(result)} with "
        f"{number_of(final.failures, 'failure')} "
        f"(effectively {final.ess:.0f}){ended}",
    )
    if result.policy_memory:
        yield line("policy", f"has memory; of each state the method saw the view '{result.view}'")
    if len(result.kinds) > 1:
        parts = (f"{name} {kind.probability:.2e}" for name, kind in result.kinds.items())
        yield line("by kind", ", ".join(parts))
    if result.detection_limit is not None and result.method != "mc":
        yield line(
            "detection limit",
            "a failure mode that the learned adversary never produces would have been seen only "
            f"if more likely than {result.detection_limit:.1e}",
        )


def _drawn(result: Result) -> str:
    return "populations" if result.method == "splitting" else "frozen proposals"


def range_in_words(lo: float, hi: float) -> str:
    """An interval as people say it; nothing where that would not help."""
    if lo <= 0.0 or hi >= 0.5:
        return ""
    return f", 1 in {rounded(1.0 / lo)} to 1 in {rounded(1.0 / hi)}"


def in_words(p: float, upper: float) -> str:
    """A probability as people say it.

    >>> in_words(1.7e-6, 2e-6)
    'about 1 in 590,000 episodes'
    >>> in_words(0.0, 3e-4)
    'no failure seen; at most about 1 in 3,300 episodes'
    """
    if p <= 0.0 and upper >= 0.5:
        return f"no failure seen; at most about {upper:.0%} of episodes"
    if p <= 0.0:
        return f"no failure seen; at most about 1 in {rounded(1.0 / upper)} episodes"
    if p >= 0.5:
        return f"about {p:.0%} of episodes"
    return f"about 1 in {rounded(1.0 / p)} episodes"


def rounded(x: float) -> str:
    """A large number to two digits."""
    if x >= 1e12:
        return f"{x:.1e}"
    return f"{int(round(x, -max(0, math.floor(math.log10(x)) - 1))):,}"
