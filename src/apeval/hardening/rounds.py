"""What hardening came to: rounds, and a verdict that says no more than was shown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apeval.errors import number_of
from apeval.hardening.returns import NominalReturn
from apeval.remedies import Option, remedies
from apeval.run.policy_comparison import PolicyComparison
from apeval.run.result import Result, plain
from apeval.run.result_text import line

STATE = "harden.json"
BETTER, NOT_SHOWN, WORSE = "better", "not shown", "worse"
_UNSEEN = 0.05  # probability with which a failure mode at the detection limit is missed


@dataclass(frozen=True)
class Round:
    """A policy and what was measured of it. Round 0 is the policy as it was given."""

    number: int
    """From 0."""
    folder: str
    """The run folder of its evaluation, relative to the whole."""
    policy: str
    """Its file, likewise; empty for round 0."""
    trained_steps: int
    """Environment steps of training since round 0."""
    estimate: float
    """Its failure probability, against an adversary that was learned for it from nothing."""
    interval: tuple[float, float]
    """Of `estimate`."""
    trusted: bool
    """Whether the number is to be trusted."""
    detection_limit: float
    """A failure mode more likely than this would have been seen in 95 of 100 cases, among the
    nominal episodes of the evaluation or of the return, whatever the adversary looks for."""
    nominal_return: NominalReturn
    """Under the nominal disturbances."""
    return_change: float | None
    """The mean return against round 0's, relative, on the same episodes; None in round 0, or
    where round 0's is 0."""
    ratio: float | None
    """Its failure probability over round 0's."""
    ratio_interval: tuple[float, float | None] | None
    """Of `ratio`; the upper end is None where it is infinite."""
    verdict: str
    """Against round 0: better, not shown or worse."""
    why: str
    """In a sentence."""
    kinds: Mapping[str, float]
    """The failure probability of each kind."""
    modes: tuple[str, ...]
    """Ways to fail, in words, the likeliest first."""

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        data: dict[str, Any] = plain(self)
        return data


@dataclass(frozen=True)
class Hardening:
    """The rounds, the best of them, and how it compares with the first."""

    folder: str
    """Where everything is kept."""
    rounds: tuple[Round, ...]
    """Round 0 first."""
    best: int
    """The number of the round whose policy is worth keeping; 0 where none was shown to be
    better."""
    verdict: str
    """Of the best round against round 0, or of the last where none is better: better, not shown
    or worse."""
    repeatable: bool
    """Whether the same call with the same seed gives the same policies."""

    def as_json(self) -> dict[str, Any]:
        """Plain data, as `harden.json` holds it."""
        return {
            "rounds": [it.as_json() for it in self.rounds],
            "best": self.best,
            "verdict": self.verdict,
            "repeatable": self.repeatable,
        }

    @property
    def policy(self) -> str:
        """The file of the best policy, below the folder; empty where that is the one given."""
        return self.rounds[self.best].policy

    def _next(self) -> str:
        """Which policy to use, with its file."""
        if self.best:
            return f"use the policy {self._file(self.best)}"
        last = self.rounds[-1]
        if not last.number and last.estimate <= 0.0:
            return "stay with the policy that was given"
        if not last.number:
            return "train it: no round is over yet"
        kept = f"the trained one is kept in {self._file(last.number)}"
        if self.verdict == NOT_SHOWN:
            return f"stay with the policy that was given until more is shown; {kept}"
        return f"stay with the policy that was given; {kept}"

    def _file(self, number: int) -> str:
        """A round's policy with the ending that its trainer gave it."""
        path = Path(self.folder) / self.rounds[number].policy
        return str(next(iter(sorted(path.parent.glob(f"{path.name}.*"))), path))

    def __str__(self) -> str:
        first, chosen = self.rounds[0], self.rounds[self.best or -1]
        lines = [f"hardening in {self.folder}", line("verdict", f"{self.verdict}: {chosen.why}")]
        lines.append(line("next", self._next()))
        for it in self.rounds:
            lo, hi = it.interval
            text = f"{it.estimate:.3e} ({lo:.2e} … {hi:.2e})"
            text += (
                f", return {it.nominal_return.mean:.4g} ± {it.nominal_return.standard_error:.2g}"
            )
            if it.ratio is not None and it.ratio_interval is not None:
                high = it.ratio_interval[1]
                text += f", ratio {it.ratio:.3g} ({it.ratio_interval[0]:.2g} … "
                text += f"{'∞' if high is None else f'{high:.2g}'}), {it.verdict}"
            lines.append(line(f"round {it.number}", text))
        gone = [m for m in first.modes if m not in chosen.modes]
        came = [m for m in chosen.modes if m not in first.modes]
        if self.best and gone:
            lines.append(line("modes gone", "; ".join(gone)))
        if self.best and came:
            lines.append(line("modes new", "; ".join(came)))
        if not self.repeatable:
            lines.append(
                line("note", "the trainer does not say that it repeats itself: another run of the "
                     "same call may give other policies")
            )  # fmt: skip
        return "\n".join(lines)


def judged(new: Result, old: Result, found: PolicyComparison, limit: float) -> tuple[str, str]:
    """The verdict on a new policy beside the old one, with the reason.

    Success is refused where a failure mode of the new policy as likely as all of the old one's
    could have gone unseen: below the `limit`, finding nothing says nothing.
    """
    if found.verdict == "more often":
        return WORSE, _of_policies(found)
    if not new.trusted or not old.trusted:
        which, run = ("new", new) if not new.trusted else ("old", old)
        if run.estimate <= 0.0:
            why = f"the {which} policy did not fail in {number_of(run.final.episodes, 'episode')}"
            return (
                NOT_SHOWN,
                f"{why}, too few to say how rarely it does: raise {Option('episodes')}",
            )
        why = _without_methods(run.warnings[0])
        return NOT_SHOWN, f"the {which} policy's number is not to be trusted: {why}"
    if limit >= old.estimate:
        needed = math.ceil(math.log(_UNSEEN) / math.log1p(-old.estimate)) if old.estimate else 0
        return NOT_SHOWN, (
            f"a failure mode of the new policy with a probability below {limit:.2g} may have gone "
            f"unseen, and the old policy failed with {old.estimate:.2g} in all: give "
            f"{Option('return_episodes', needed)}, nominal episodes that would show one"
        )
    if found.verdict == "less often":
        return BETTER, _of_policies(found)
    return NOT_SHOWN, _of_policies(found)


_NAMES = (
    ("A fails", "the new policy fails"),
    ("A may fail", "the new policy may fail"),
    (" than B", " than the one that was given"),
    (" as B", " as the one that was given"),
)


def _of_policies(found: PolicyComparison) -> str:
    """A comparison's words with names for the two policies."""
    words = found.in_words()
    for letter, name in _NAMES:
        words = words.replace(letter, name)
    return words


def given_in_words(old: Result) -> str:
    """What is said of the policy as it was given."""
    if old.estimate > 0.0:
        return "the policy as it was given"
    failed = f"the policy that was given did not fail in {number_of(old.final.episodes, 'episode')}"
    return f"{failed}, so that there is nothing to train against: raise {Option('episodes')}"


def _without_methods(text: str) -> str:
    """A warning without the sentences that name another method, which one side of a comparison
    alone cannot have."""
    sentences = text.split(". ")
    kept = [
        it
        for it in sentences
        if not any(isinstance(r, Option) and r.name == "method" for r in remedies(it))
    ]
    return ". ".join(kept or sentences[:1])


def detection_limit(result: Result, nominal_episodes: int) -> float:
    """The probability from which a failure mode would have been seen, see `Round`."""
    here = -math.expm1(math.log(_UNSEEN) / nominal_episodes)
    return here if result.detection_limit is None else min(here, result.detection_limit)


def described(result: Result) -> tuple[str, ...]:
    """Ways to fail, in words."""
    return tuple(f"{mode.kind}: {mode.typical}" for mode in result.modes)
