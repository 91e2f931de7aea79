"""What if the disturbance were another? Answered from a run's recorded episodes, or refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from apeval import validate
from apeval.errors import ApevalError
from apeval.estimate.reweigh import Reweighted, reweigh
from apeval.notebook_cards import card_of_text
from apeval.problem.law_change import LawChange, changed, parse_change
from apeval.problem.laws import Law
from apeval.problem.problem import Problem
from apeval.problem.types import FloatArray
from apeval.run.completed_run import CompletedRun, check_run, differing, level
from apeval.run.result_text import in_words, line, range_in_words
from apeval.simulate.episodes import Episodes
from apeval.simulate.retrace import Retraced, retrace

_HEAVIEST = 300.0  # the logarithm of a weight, whose square is a number still
_CHECKED = 100  # failing and as many surviving episodes, replayed under a changed problem


@dataclass(frozen=True)
class WhatIf:
    """The failure probability under another nominal disturbance."""

    question: str
    """The change, as it was asked."""
    estimate: float | None
    """None where the episodes cannot answer."""
    standard_error: float | None
    """Of `estimate`."""
    interval: tuple[float, float] | None
    """Of `estimate`."""
    confidence: float
    """Of `interval`."""
    before: float
    """The run's own estimate."""
    times: float | None
    """New probability over the old one, from the same episodes."""
    failures: int
    """Recorded failures that the answer rests on."""
    ess: float
    """Effective failures under the new nominal."""
    ess_before: float
    """Effective failures under the run's own nominal."""
    pareto_k: float | None
    """Tail index of the failures' new weights; None for too few."""
    refused: str | None
    """Why there is no answer, or None."""
    warnings: tuple[str, ...]
    """What to know before believing the answer."""

    def as_json(self) -> dict[str, Any]:
        """The fields as plain data.

        Returns:
            What the command line prints with `--json`.
        """
        return {**vars(self), "warnings": list(self.warnings)}

    def _repr_html_(self) -> str:
        """As a notebook shows it."""
        return card_of_text(str(self))

    def __str__(self) -> str:
        lines = [f"what if {self.question}"]
        if self.refused or self.estimate is None or self.interval is None:
            lines.append(line("no answer", f"{self.refused}"))
        else:
            lo, hi = self.interval
            lines += [
                line("failure probability", f"{self.estimate:.3e}, {in_words(self.estimate, hi)}"),
                line(
                    f"{100 * self.confidence:.4g} % interval",
                    f"{lo:.3e} … {hi:.3e}{range_in_words(lo, hi)}",
                ),
                line("before", f"{self.before:.3e}; the change makes it {_times(self.times)}"),
                line(
                    "rests on",
                    f"{self.failures:,} recorded failures, worth {self.ess:.0f} under the new "
                    f"nominal ({self.ess_before:.0f} under the old); nothing was simulated",
                ),
            ]
        return "\n".join(lines + [line("warning", text) for text in self.warnings])


def _times(ratio: float | None) -> str:
    if ratio is None:
        return "positive"
    return f"{ratio:.3g} times as likely"


def reweight(
    run: CompletedRun,
    nominal: str | Sequence[str] | None = None,
    problem: Problem | None = None,
    confidence: float | None = None,
) -> WhatIf:
    """The failure probability under a changed nominal disturbance, from the episodes of a run.

    Nothing is simulated for the answer. Where the recorded episodes cannot give one, it is refused.

    Args:
        run: A run, as `apeval.load` returns it or `apeval.InMemory` kept it.
        nominal: Changes of the law, such as "std*1.2" or ["mean+0.1", "std[2]=0.6"].
        problem: Instead of `nominal`, a problem that differs in its nominal alone; that it does is
            checked by replaying recorded episodes in it.
        confidence: Of the interval; by default the run's.

    Returns:
        The answer; where there is none, `estimate` is None and `refused` says why.

    Raises:
        ApevalError: The change makes no sense, or the problem differs in more than its nominal.

    Examples:
        >>> import apeval
        >>> run = apeval.InMemory(apeval.make("one-step", beta=3.0))
        >>> _ = apeval.evaluate(run.of, episodes=2_000, recorder=run)
        >>> answer = reweight(run, "std*1.2")
        >>> answer.interval[0] < 0.00621 < answer.interval[1]  # Φ(−3/1.2)
        True
    """
    if (nominal is None) == (problem is None):
        raise ApevalError("say what changes: nominal='std*1.2', or a problem with another nominal")
    check_run("run", run)
    wanted = run.result.confidence if confidence is None else validate.confidence(confidence)
    episodes = run.episodes
    if problem is None:
        texts = validate.texts("nominal", nominal, "a change, such as 'std*1.2', or a list of them")
        changes = tuple(parse_change(text) for text in texts)
        law, law_0 = _by_words(episodes, changes)
        question = ", ".join(texts)
    else:
        validate.having("problem", problem, "a Problem: apeval.make(name) builds one", "seen_as")
        law, law_0 = _by_problem(run, episodes, problem)
        question = _settings(run, problem)
    return _answer(run, episodes, law, law_0, question, wanted)


def _by_words(episodes: Episodes, changes: tuple[LawChange, ...]) -> tuple[Law, Law | None]:
    if not changes:
        raise ApevalError("name at least one change, such as std*1.2")
    if episodes.law_0 is None and any(change.initial for change in changes):
        raise ApevalError("the run's problem has no controlled initial state: leave out initial.")
    law_0 = None if episodes.law_0 is None else changed(episodes.law_0, changes, initial=True)
    return changed(episodes.law, changes), law_0


def _by_problem(run: CompletedRun, episodes: Episodes, problem: Problem) -> tuple[Law, Law | None]:
    """The changed problem's laws along the recorded episodes. Where they are the same in every
    situation a few episodes tell; else all are replayed."""
    problem = problem.seen_as(run.result.view)
    few = np.zeros(episodes.n, bool)
    for chosen in (episodes.failed, ~episodes.failed):
        few[np.flatnonzero(chosen)[:_CHECKED]] = True
    again = _checked(retrace(problem, run.key, episodes.take(few)))
    if all(len(value) == 1 for value in vars(again.law).values()):
        return again.law, again.law_0
    again = _checked(retrace(problem, run.key, episodes))
    return again.law, again.law_0


def _checked(again: Retraced) -> Retraced:
    if again.differs is not None:
        raise ApevalError(
            f"the changed problem differs in more than its nominal disturbance: {again.differs}. "
            "Recorded episodes cannot answer for it: run it"
        )
    return again


def _settings(run: CompletedRun, problem: Problem) -> str:
    after = differing(problem.parameters, run.result.parameters)
    settings = (f"problem.{k}={problem.parameters.get(k)}" for k in after)
    return ", ".join(settings) or "nothing changed"


def _answer(
    run: CompletedRun,
    episodes: Episodes,
    law: Law,
    law_0: Law | None,
    question: str,
    wanted: float,
) -> WhatIf:
    result, sample = run.result, run.sample
    with np.errstate(over="ignore", invalid="ignore"):  # looked at below
        log_p = episodes.sum_rows(law.log_prob(episodes.a_E))
        wider = _per_episode(episodes, law.widening(episodes.law))
        outside = law.reaches_beyond(episodes.law, episodes.a_E.shape[1])
        if law_0 is not None and episodes.law_0 is not None:
            log_p = log_p + law_0.log_prob(episodes.a_0)
            wider = wider + law_0.widening(episodes.law_0)
            dim = episodes.a_0.shape[1]
            outside = outside or law_0.reaches_beyond(episodes.law_0, dim)
    heaviest = float(np.max(replace(sample, log_p=log_p).log_weights, initial=-np.inf))
    if not heaviest < _HEAVIEST:
        raise ApevalError(
            f"{question}: the new nominal is too far from the old one, numbers cannot hold the "
            "weights of the recorded episodes"
        )
    found = reweigh(sample, log_p, level(result, wanted), wider)
    refused = (
        "the new nominal reaches values that the old one never takes, so no recorded episode "
        "can speak for them"
        if outside
        else found.refused
    )
    return _worded(run, found, question, wanted, refused)


def _per_episode(episodes: Episodes, rows: FloatArray) -> FloatArray:
    return episodes.sum_rows(np.broadcast_to(rows, (len(episodes.t),)))


def _worded(
    run: CompletedRun, found: Reweighted, question: str, confidence: float, refused: str | None
) -> WhatIf:
    answered = refused is None
    result = run.result
    warnings = [] if result.trusted else [f"of the run itself: {text}" for text in result.warnings]
    return WhatIf(
        question=question,
        estimate=found.numbers.value if answered else None,
        standard_error=found.numbers.standard_error if answered else None,
        interval=found.numbers.interval if answered else None,
        confidence=confidence,
        before=result.estimate,
        times=found.ratio if answered and np.isfinite(found.ratio) else None,
        failures=found.failures,
        ess=found.numbers.ess,
        ess_before=found.ess_before,
        pareto_k=found.pareto_k,
        refused=refused,
        warnings=tuple(warnings),
    )
