"""Several runs of one problem as one answer: independent ones, or one that extends another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from apeval import validate
from apeval.errors import ApevalError, number_of
from apeval.estimate.diagnostics import ENOUGH, detection_limit
from apeval.estimate.interval import estimate
from apeval.estimate.pooled_sample import pool
from apeval.estimate.precision_target import of_a_look
from apeval.estimate.quantiles import chi_square_tail
from apeval.estimate.warnings import ENOUGH_COUNTED
from apeval.notebook_cards import card_of_text
from apeval.remedies import Call, Option
from apeval.run.completed_run import CompletedRun, check_run, same_problem
from apeval.run.result_text import in_words, known_truth, line, range_in_words

_DISAGREE = 1e-3  # chance of runs that lie so far apart, if all of them are right
_LOOKS = 5  # extensions that the spent confidence was measured for


@dataclass(frozen=True)
class MergedRun:
    """One of the runs."""

    run: str
    """Its path."""
    method: str
    """The method's name."""
    seed: int
    """Of its random numbers."""
    share: float
    """λ: its weight in the estimate, ∝ its budget."""
    estimate: float
    """Its own estimate."""
    interval: tuple[float, float]
    """Its own interval."""


@dataclass(frozen=True)
class Merged:
    """The runs' common answer."""

    problem: str
    """The problem's name."""
    parts: tuple[MergedRun, ...]
    """The runs, each with its weight."""
    extended: bool
    """Whether later runs were made because of what earlier ones had shown."""
    estimate: float
    """The common failure probability."""
    standard_error: float
    """Of `estimate`."""
    interval: tuple[float, float]
    """Of `estimate`."""
    confidence: float
    """Of `interval`."""
    episodes: int
    """Episodes in the estimate."""
    failures: int
    """Failing episodes among them."""
    ess: float
    """Effective sample size of the failures."""
    detection_limit: float | None
    """As in `Result`, for all runs together."""
    truth: float | None
    """The known probability; None where unknown."""
    trusted: bool
    """False where a warning says that the interval itself may be wrong."""
    warnings: tuple[str, ...]
    """What a reader must know before believing the number."""
    truth_error: float = 0.0
    """The standard error of `truth`, where it was counted and is not exact."""

    def as_json(self) -> dict[str, Any]:
        """The fields as plain data.

        Returns:
            What the command line prints with `--json`.
        """
        parts = [{**vars(part), "interval": list(part.interval)} for part in self.parts]
        return {
            **vars(self),
            "parts": parts,
            "interval": list(self.interval),
            "warnings": list(self.warnings),
        }

    def _repr_html_(self) -> str:
        """As a notebook shows it."""
        return card_of_text(str(self))

    def __str__(self) -> str:
        lo, hi = self.interval
        warnings = [line("warning", text) for text in self.warnings]
        body = [
            line("failure probability", f"{self.estimate:.3e}, {in_words(self.estimate, hi)}"),
            line(
                f"{100 * self.confidence:.4g} % interval",
                f"{lo:.3e} … {hi:.3e}{range_in_words(lo, hi)}",
            ),
        ]
        if self.truth is not None:
            body.append(known_truth(self.truth, self.truth_error, self.interval))
        body.append(
            line(
                "rests on",
                f"{number_of(self.episodes, 'episode')} from frozen proposals with "
                f"{number_of(self.failures, 'failure')} "
                f"(effectively {self.ess:.0f})",
            )
        )
        for number, part in enumerate(self.parts):
            low, high = part.interval
            text = (
                f"{part.run}: {part.estimate:.3e} ({low:.2e} … {high:.2e}), counts {part.share:.0%}"
            )
            body.append(line("" if number else "runs", text))
        title = f"{self.problem or 'problem'} · {len(self.parts)} runs"
        return "\n".join([title, *body, *warnings] if self.trusted else [title, *warnings, *body])


def merge(
    runs: Sequence[CompletedRun], extended: bool = False, confidence: float | None = None
) -> Merged:
    """The estimate Σ λ_b v̂_b of several runs, with weights λ_b ∝ budget, and its interval.

    Budgets are fixed before a run is drawn, so the estimate stays unbiased (`estimate.pool` has
    the argument). With `extended`, each run was made after a look at those before it: whoever goes
    on until he likes the interval covers less than it says, so the interval is that of one look
    among a few, as with a target error.

    Args:
        runs: Two or more runs of one problem with different seeds, as `apeval.load` returns them or
            `apeval.InMemory` kept them.
        extended: Whether later runs were made because of what earlier ones had shown.
        confidence: Of the interval; by default that of the first run.

    Returns:
        The runs' common answer.

    Raises:
        ApevalError: There are fewer than two runs, they are of different problems, or two have the
            same seed.
    """
    wanted = None if confidence is None else validate.confidence(confidence)
    if not isinstance(runs, Sequence) or isinstance(runs, str):
        raise ApevalError(f"runs must be a list of runs; got {type(runs).__name__}")
    runs = list(runs)
    for k, run in enumerate(runs):
        check_run(f"runs[{k}]", run)
    _check(runs)
    results = [run.result for run in runs]
    sample, shares = pool([run.sample for run in runs], _budgets(runs))
    wanted = results[0].confidence if wanted is None else wanted
    looked = extended or any(result.target is not None for result in results)
    numbers = estimate(sample, of_a_look(wanted) if looked else wanted)
    serious = _changed(runs) + _disagreement(runs) + _thin(sample.counting, numbers.ess)
    doubts = [
        f"{run.path} by itself is not to be trusted: {run.result.warnings[0]}"
        for run in runs
        if not run.result.trusted
    ]
    if extended and len(runs) > _LOOKS:
        doubts.append(
            f"the interval allows for {_LOOKS} looks, and this is number {len(runs)}: a fresh run "
            "with the whole budget says what it says"
        )
    return Merged(
        problem=results[0].problem,
        parts=tuple(
            MergedRun(str(run.path), r.method, r.seed, share, r.estimate, r.interval)
            for run, r, share in zip(runs, results, shares, strict=True)
        ),
        extended=extended,
        estimate=numbers.value,
        standard_error=numbers.standard_error,
        interval=numbers.interval,
        confidence=wanted,
        episodes=sample.n,
        failures=int(sample.failed.sum()),
        ess=numbers.ess,
        detection_limit=detection_limit(sample, wanted),
        truth=results[0].truth,
        truth_error=results[0].truth_error,
        trusted=not serious,
        warnings=tuple(serious + doubts),
    )


def _check(runs: list[CompletedRun]) -> None:
    if len(runs) < 2:
        raise ApevalError("merging takes at least two runs")
    reason = same_problem(runs)
    if reason is not None:
        raise ApevalError(f"runs of different problems have no common answer: {reason}")
    seen: dict[int, CompletedRun] = {}
    for run in runs:
        seed = run.result.seed
        if seed in seen:
            raise ApevalError(
                f"{seen[seed].path} and {run.path} have the same seed {seed}: their episodes are "
                "not independent, and would be counted twice. Run one of them with "
                f"another {Option('seed')}"
            )
        seen[seed] = run


def _budgets(runs: list[CompletedRun]) -> list[float]:
    """What each run was allowed, which is fixed before it is drawn. A run with a target error
    stops where it likes: its decisions stand for its budget, at the price of the same small bias
    that such stopping has by itself."""
    results = [run.result for run in runs]
    fixed = all(result.target is None for result in results)
    for unit in ("steps", "episodes"):
        if fixed and all(unit in result.budget for result in results):
            return [float(result.budget[unit]) for result in results]
    return [float(result.steps) for result in results]


def _changed(runs: list[CompletedRun]) -> list[str]:
    """A problem of one's own keeps its name when its code is edited; stored runs have a hash."""
    codes = [getattr(run, "provenance", {}).get("files") or None for run in runs]
    for run, code in zip(runs[1:], codes[1:], strict=True):
        if codes[0] is not None and code is not None and code != codes[0]:
            return [
                f"the problem's code is not the same in {runs[0].path} and {run.path}: if what it "
                "does has changed, they have no common answer"
            ]
    return []


def _disagreement(runs: list[CompletedRun]) -> list[str]:
    """Cochran's test: do the runs lie farther apart than their errors allow?"""
    v = np.array([run.result.estimate for run in runs])
    error = np.array([run.result.standard_error for run in runs])
    if not np.all(error > 0.0):
        return []
    w = 1.0 / error**2
    q = float((w * (v - (w * v).sum() / w.sum()) ** 2).sum())
    if chi_square_tail(q, len(runs) - 1) >= _DISAGREE:
        return []
    return [
        "the runs lie farther apart than their errors allow: one of them may have missed a failure "
        "mode, or had a sample without its heavy failures. Look at their modes "
        f"({Call('load')}), and run once more with a larger budget"
    ]


def _thin(counting: bool, ess: float) -> list[str]:
    enough = ENOUGH_COUNTED if counting else ENOUGH
    if ess >= enough:
        return []
    return [f"the estimate rests on {ess:.1f} effective failures ({enough:.0f} are wanted)"]
