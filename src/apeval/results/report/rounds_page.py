"""The page of a policy that was trained in rounds: how often it fails, what it earns, how it fails,
before and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from apeval.problem.problem import Problem
from apeval.results.report import sections
from apeval.results.report.charts import Charts, axis, series, xy
from apeval.results.report.fragments import plain_table
from apeval.results.report.markup import Html, tag
from apeval.results.report.number_format import count, number, sentence, span
from apeval.results.report.report_data import ReportData

_TWO_SIDED = 1.96  # standard errors of a 95 % interval


@dataclass(frozen=True)
class TrainingRound:
    """A policy, as the page shows it; its run is the one at the same place."""

    steps: int
    """Of training so far."""
    nominal_return: float
    """Mean return under the nominal disturbances."""
    return_error: float
    """Standard error of it."""
    ratio: float | None
    """Its failure probability over the first one's."""
    ratio_interval: tuple[float, float | None] | None
    verdict: str
    """Against the first."""
    fits: Callable[[Problem], Problem] | None = None
    """The problem with this round's policy, for replays; None: as it is."""


@dataclass(frozen=True)
class TrainingStory:
    """What the page says of all rounds."""

    verdict: str
    """In a sentence, with the reason."""
    best: int
    """The round that is held against the first; 0 where none was shown to be better."""
    rounds: Sequence[TrainingRound]

    @property
    def shown(self) -> int:
        """The round beside the first: the best, or else the last."""
        return self.best or len(self.rounds) - 1


def title(story: TrainingStory, problem: str) -> str:
    """Of the page."""
    after = story.rounds[story.shown]
    if not story.best or after.ratio is None:
        return f"{problem or 'The policy'}, trained in rounds: not shown to fail less often"
    if after.ratio <= 0.0:
        return f"{problem or 'The policy'} fails less often after training"
    return f"{problem or 'The policy'} fails {number(1.0 / after.ratio, 2)} times less often"


def training(story: TrainingStory, runs: Sequence[ReportData], charts: Charts) -> list[Any]:
    """All of the page."""
    parts: list[Any] = [
        tag("p", tag("b", sentence(story.verdict))),
        tag(
            "p",
            "Every policy is evaluated against an adversary that is learned for it from nothing. "
            "Round 0 is the policy as it was given.",
        ),
        tag("div", [_failures(runs, charts), _returns(story, charts)], cls="grid"),
        _table(story, runs),
    ]
    if story.shown:
        parts.append(_before_and_after(story, runs, charts))
    return parts


def _failures(runs: Sequence[ReportData], charts: Charts) -> Html:
    results = [it.result for it in runs]
    least = min([v for r in results for v in (r["estimate"], r["interval"][1]) if v > 0.0])
    low = [max(r["interval"][0], 1e-3 * least) for r in results]
    high = [r["interval"][1] for r in results]
    middle = [r["estimate"] if r["estimate"] > 0.0 else r["interval"][1] for r in results]
    chart = xy(
        "failure probability in each round, with its interval",
        axis("round"),
        axis("failure probability per episode", log=True),
        [series("estimate with its interval", range(len(runs)), middle, (low, high), mark="dots")],
    )
    none = any(r["estimate"] <= 0.0 for r in results)
    note = " A policy that did not fail is shown at the upper end of its interval." if none else ""
    return charts.figure(chart, f"Lower is better; the axis is logarithmic.{note}", "Failures")


def _returns(story: TrainingStory, charts: Charts) -> Html:
    mean = [it.nominal_return for it in story.rounds]
    half = [_TWO_SIDED * it.return_error for it in story.rounds]
    band = (
        [m - h for m, h in zip(mean, half, strict=True)],
        [m + h for m, h in zip(mean, half, strict=True)],
    )
    chart = xy(
        "mean return under the nominal disturbances in each round",
        axis("round"),
        axis("return per episode"),
        [series("mean with its 95 % interval", range(len(mean)), mean, band, mark="dots", slot=1)],
    )
    return charts.figure(chart, "Under the nominal disturbances; higher is better.", "Return")


def _table(story: TrainingStory, runs: Sequence[ReportData]) -> Html:
    rows = []
    for k, (it, run) in enumerate(zip(story.rounds, runs, strict=True)):
        ratio = "–"
        if it.ratio is not None and it.ratio_interval is not None:
            low, high = it.ratio_interval
            ratio = f"{number(it.ratio, 2)} ({number(low, 2)} to "
            ratio += "∞)" if high is None else f"{number(high, 2)})"
        trusted = "" if run.result["trusted"] else ", not to be trusted"
        rows.append(
            (
                f"round {k}",
                count(it.steps),
                f"{number(run.result['estimate'])} ({span(run.result['interval'])}){trusted}",
                ratio,
                f"{it.nominal_return:.4g} ± {it.return_error:.2g}",
                it.verdict if k else "as given",
            )
        )
    head = ("", "training steps", "failure probability", "over round 0's", "return", "verdict")
    return plain_table(head, rows)


def _before_and_after(story: TrainingStory, runs: Sequence[ReportData], charts: Charts) -> Html:
    """Modes with replays, side by side; what a mode is stands above both."""
    sides = [
        (when, k, sections.modes(runs[k], charts))
        for when, k in (("Before", 0), ("After", story.shown))
    ]
    return tag(
        "div",
        sides[0][2][0] if len(sides[0][2]) > 1 else None,
        tag(
            "div",
            [
                tag(
                    "div",
                    tag("h3", f"{when}: how round {k} fails"),
                    parts[1:] if len(parts) > 1 else parts,
                )
                for when, k, parts in sides
            ],
            cls="grid",
        ),
    )
