"""Two policies on the same problem: which fails more often, and by what factor?"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from apeval import validate
from apeval.errors import ApevalError
from apeval.estimate.compare import LESS, MORE, Comparison, Side
from apeval.estimate.compare import compare as compare_sides
from apeval.estimate.interval import Estimate, estimate
from apeval.estimate.paired import compare_pairs
from apeval.notebook_cards import card_of_text
from apeval.remedies import Option
from apeval.run.completed_run import CompletedRun, check_run, level
from apeval.run.paired_record import PairedRecord
from apeval.run.pairing import Pairing
from apeval.run.result import plain
from apeval.run.result_text import line
from apeval.simulate.episodes import Episodes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COMMON = {
    "horizon": "horizon",
    "kinds": "kinds",
    "horizon_kind": "failures at the horizon",
    "judge_at_end": "times at which failure is judged",
    "initial": "nominal starts",
}
_SEEN = 30  # situations in which two nominals are held against each other


@dataclass(frozen=True)
class PolicyComparison:
    """Run A against run B, or policy A against policy B."""

    a: str
    """Run A's path, or the problem with policy A."""
    b: str
    """Run B's path, or the problem with policy B."""
    estimate_a: float
    """A's failure probability."""
    estimate_b: float
    """B's failure probability."""
    interval_a: tuple[float, float]
    """Of `estimate_a`."""
    interval_b: tuple[float, float]
    """Of `estimate_b`."""
    ratio: float | None
    """A's probability over B's; None where B has no failure."""
    ratio_interval: tuple[float, float | None]
    """The upper end is None where B may never fail, as far as its run can tell."""
    difference: float
    """A's probability less B's."""
    difference_interval: tuple[float, float]
    """Of `difference`."""
    confidence: float
    """Of every interval here."""
    verdict: str
    """A fails "more often" or "less often" than B, or "undecided"."""
    times: float | None
    """When undecided: how many times both budgets would decide, if the estimates stay."""
    comparable: bool
    """False where the problems differ in more than the policy."""
    warnings: tuple[str, ...]
    """What to know before believing the verdict."""
    pairing: Pairing | None = None
    """What it rests on where episodes were simulated in pairs (`compare_policies`)."""
    record: PairedRecord | None = field(default=None, repr=False, compare=False)
    """The pairs themselves, where there are any: what `judged` and `save_comparison` need."""

    def as_json(self) -> dict[str, Any]:
        """The fields as plain data.

        Returns:
            What the command line prints with `--json`.
        """
        data: dict[str, Any] = plain({k: v for k, v in vars(self).items() if k != "record"})
        return data

    def judged(self, confidence: float) -> PolicyComparison:
        """The same pairs at another confidence, without simulating.

        Args:
            confidence: Of every interval, above 0 and below 1.

        Returns:
            The comparison with its verdict and intervals anew.

        Raises:
            ApevalError: It has no pairs: two stored runs are compared anew by `compare`.
        """
        wanted = validate.confidence(confidence)
        if self.record is None:
            raise ApevalError(
                "this comparison has no pairs: compare the stored runs with another confidence"
            )
        a, b = self.record.a, self.record.b
        found = compare_pairs(a, b, wanted, self.record.planned)
        anew = numbers(found, estimate(a, wanted), estimate(b, wanted), wanted)
        return replace(self, **plain_numbers(anew))

    def plot(self) -> Figure:
        """Both probabilities with their intervals, and the ratio with its own.

        Returns:
            A Matplotlib figure.

        Raises:
            ApevalError: Matplotlib is not installed.
        """
        from apeval.run.figures import figure_of_comparison

        return figure_of_comparison(self)

    def _repr_html_(self) -> str:
        """As a notebook shows it."""
        return card_of_text(str(self))

    def __str__(self) -> str:
        name = f"{100 * self.confidence:.4g} % interval"
        lo, hi = self.ratio_interval
        d_lo, d_hi = self.difference_interval
        lines = [
            f"A {self.a} against B {self.b}",
            line("verdict", self.in_words()),
            line("failure probability", f"A {self.estimate_a:.3e}, B {self.estimate_b:.3e}"),
            line("ratio A/B", "unknown" if self.ratio is None else f"{self.ratio:.3g}"),
            line(name, f"{lo:.3g} … {'∞' if hi is None else f'{hi:.3g}'}"),
            line("difference A − B", f"{self.difference:+.2e}"),
            line(name, f"{d_lo:+.2e} … {d_hi:+.2e}"),
        ]
        lines += [] if self.pairing is None else self.pairing.lines()
        warnings = [line("warning", text) for text in self.warnings]
        return "\n".join(
            lines[:1] + warnings + lines[1:] if not self.comparable else lines + warnings
        )

    def in_words(self) -> str:
        """The verdict as a person says it.

        Returns:
            One sentence.
        """
        lo, hi = self.ratio_interval
        if self.verdict == MORE:
            upto = "" if hi is None else f" to {hi:.2g}"
            return f"A fails more often than B: {lo:.2g}{upto} times as often"
        if self.verdict == LESS and hi is not None:
            if lo <= 0.0:
                return f"A fails less often than B: at least {1.0 / hi:.2g} times less"
            return f"A fails less often than B: {1.0 / hi:.2g} to {1.0 / lo:.2g} times less"
        if hi is None:
            text = "undecided: too few failures to say more"
            return text + (f" than that A fails at least {lo:.2g} times as often" if lo > 0 else "")
        text = f"undecided: A may fail {lo:.2g} to {hi:.2g} times as often as B"
        if self.times is not None:
            text += f"; {_more(self.times)} both budgets would decide, if the estimates hold"
        return text


def _more(times: float) -> str:
    return f"about {math.ceil(times)} times" if times < 1e4 else "more than 10,000 times"


def compare(a: CompletedRun, b: CompletedRun, confidence: float | None = None) -> PolicyComparison:
    """Intervals for the ratio and the difference of two runs' failure probabilities.

    Args:
        a: A run, as `apeval.load` returns it or `apeval.InMemory` kept it.
        b: The run that it is compared with, of the same problem with another policy.
        confidence: Of the intervals; by default that of `a`.

    Returns:
        The verdict with both intervals. Where the problems differ in more than the policy, its
        first warning says so.

    Raises:
        ApevalError: An argument is wrong.

    Examples:
        >>> import apeval
        >>> runs = [apeval.InMemory(apeval.make("one-step", beta=beta)) for beta in (3.0, 3.5)]
        >>> for seed, run in enumerate(runs):
        ...     _ = apeval.evaluate(run.of, episodes=2_000, seed=seed, recorder=run)
        >>> compare(*runs).verdict
        'more often'
    """
    check_run("a", a)
    check_run("b", b)
    wanted = a.result.confidence if confidence is None else validate.confidence(confidence)
    side_a, side_b = _side(a), _side(b)
    found: Comparison = compare_sides(side_a, side_b, wanted)
    differences = _differences(a, b)
    at_a, at_b = side_a(wanted), side_b(wanted)
    return PolicyComparison(
        a=str(a.path),
        b=str(b.path),
        **numbers(found, at_a, at_b, wanted),
        comparable=not differences,
        warnings=tuple(differences + _doubts(a, b)),
    )


def plain_numbers(values: dict[str, Any]) -> dict[str, Any]:
    """Numbers of Python's own types, as they are after they were stored."""
    return {
        name: tuple(plain(list(value))) if isinstance(value, tuple) else plain(value)
        for name, value in values.items()
    }


def numbers(found: Comparison, a: Estimate, b: Estimate, confidence: float) -> dict[str, Any]:
    """What every `PolicyComparison` says of two estimates, by field."""
    lo, hi = found.ratio_interval
    return {
        "estimate_a": a.value,
        "estimate_b": b.value,
        "interval_a": a.interval,
        "interval_b": b.interval,
        "ratio": found.ratio,
        "ratio_interval": (lo, hi if math.isfinite(hi) else None),
        "difference": found.difference,
        "difference_interval": found.difference_interval,
        "confidence": confidence,
        "verdict": found.verdict,
        "times": found.times,
    }


def _side(run: CompletedRun) -> Side:
    sample, result = run.sample, run.result
    return lambda confidence: estimate(sample, level(result, confidence))


def _doubts(a: CompletedRun, b: CompletedRun) -> list[str]:
    """What does not forbid the comparison, but must be known."""
    said = []
    for name, run in (("A", a), ("B", b)):
        result = run.result
        if not result.trusted:
            said.append(f"run {name} is not to be trusted: {result.warnings[0]}")
    if a.result.seed == b.result.seed:
        said.append(
            f"both runs have the seed {a.result.seed}, hence partly the same random numbers; the "
            f"intervals take the runs as independent. Run one of them with another {Option('seed')}"
        )
    return said


def _differences(a: CompletedRun, b: CompletedRun) -> list[str]:
    """Why the two numbers are not those of two policies on one problem."""
    said = []
    one, other = a.episodes, b.episodes
    same = one.a_E.shape[1] == other.a_E.shape[1] and type(one.law) is type(other.law)
    if not same:
        said.append("the runs have disturbances of different kinds or dimensions")
    elif not equal_laws(one, other):
        said.append(
            "the runs have different nominal disturbances: a difference may come from these and "
            "not from the policies"
        )
    for what, words in _COMMON.items():
        x, y = a.identity.get(what), b.identity.get(what)
        if x != y:
            said.append(f"the problems' {words} differ: {x} and {y}")
    if said:
        said[-1] += ". Compare runs whose problems differ in the policy alone"
    return said


def equal_laws(one: Episodes, other: Episodes) -> bool:
    """Laws that are the same everywhere are held against each other; of laws that follow the
    state only the first situation, which no policy has reached by its own doing."""
    first = [e.law.take(np.flatnonzero(e.t == 0)[:_SEEN]) for e in (one, other)]
    constant = all(len(v) == 1 for law in first for v in vars(law).values())
    if not constant:
        here, there = (e.s[np.flatnonzero(e.t == 0)[:_SEEN]] for e in (one, other))
        if not np.array_equal(here, there):
            return True  # nothing to hold against each other
    return all(
        x.shape == y.shape and np.allclose(x, y)
        for x, y in zip(vars(first[0]).values(), vars(first[1]).values(), strict=True)
    )
