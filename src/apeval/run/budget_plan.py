"""How large a budget does a wanted precision take? A pilot run tells."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from apeval import validate
from apeval.estimate.needed_episodes import needed
from apeval.estimate.plain_monte_carlo import nominal_length
from apeval.estimate.precision_target import of_a_look
from apeval.estimate.quantiles import normal_quantile
from apeval.estimate.sample import Sample
from apeval.estimate.weighted import effective
from apeval.problem.problem import Problem
from apeval.remedies import Option, remedies
from apeval.run.completed_run import InMemory
from apeval.run.evaluate import evaluate_with, to_learn
from apeval.run.progress import ESTIMATING, Listener, Progress
from apeval.run.result import Result
from apeval.run.result_text import in_words, line, rounded
from apeval.run.run_options import LONGEST, PlanKeywords, RunOptions, check_names, with_options
from apeval.run.run_recorder import FinishedRun
from apeval.simulate.simulation import Budget

if TYPE_CHECKING:
    from typing_extensions import Unpack

_FEWEST = 20.0  # effective failures that a plan needs
_MC = "mc"
_SPARE = 1.5  # times the decisions that Monte Carlo is expected to take, as the most it may


@dataclass(frozen=True)
class Plan:
    """A budget with its range, and what Monte Carlo would take."""

    problem: str
    """The problem's name."""
    method: str
    """The method's name."""
    target_error: float
    """Wanted: half of the interval's width, relative to the estimate."""
    confidence: float
    """Of the interval."""
    pilot_steps: int
    """Decisions that the pilot took."""
    pilot_seconds: float
    """Time that the pilot took."""
    estimate: float
    """The pilot's estimate."""
    interval: tuple[float, float]
    """The pilot's interval."""
    steps: int | None
    """Learning and estimating together; None where the pilot cannot say."""
    steps_range: tuple[int, int] | None
    """Within which `steps` may lie."""
    seconds: float | None
    """Time for `steps`, at the speed of the pilot."""
    seconds_range: tuple[float, float] | None
    """Within which `seconds` may lie."""
    monte_carlo_episodes: float | None
    """Episodes that Monte Carlo would take for the same."""
    monte_carlo_steps: float | None
    """Decisions that it would take."""
    monte_carlo_seconds: float | None
    """Time that it would take."""
    command: str
    """What to type next."""
    warnings: tuple[str, ...]
    """What to know before trusting the plan."""
    recommended: str = ""
    """The method of `command`: `method`, or mc where that takes no more and no method was asked
    for; empty where the pilot cannot say."""

    def as_json(self) -> dict[str, Any]:
        """The fields as plain data.

        Returns:
            What the command line prints with `--json`.
        """
        return {**vars(self), "warnings": list(self.warnings)}

    def __str__(self) -> str:
        title = f"{self.problem or 'problem'} · {self.method} · ± {self.target_error:.1%} wanted"
        lines = [
            line(
                "pilot",
                f"{self.pilot_steps:,} decisions in {duration(self.pilot_seconds)}: "
                f"{self.estimate:.2e}, {in_words(self.estimate, self.interval[1])}",
            )
        ]
        if self.steps is not None and self.steps_range and self.seconds_range and self.seconds:
            (low, high), (fast, slow) = self.steps_range, self.seconds_range
            lines += [
                line("budget", f"about {self.steps:,} decisions ({low:,} … {high:,})"),
                line(
                    "time",
                    f"about {duration(self.seconds)} ({duration(fast)} … {duration(slow)}) at the "
                    "speed of the pilot",
                ),
            ]
        if self.monte_carlo_episodes and self.monte_carlo_steps and self.monte_carlo_seconds:
            text = (
                f"about {rounded(self.monte_carlo_episodes)} episodes "
                f"({rounded(self.monte_carlo_steps)} decisions) for the same, "
                f"{duration(self.monte_carlo_seconds)}"
            )
            if self.recommended == _MC and self.method != _MC:
                other = self.method if self.steps is not None else "a longer pilot"
                text += f": no more than {other}, so take it"
            lines.append(line("Monte Carlo", text))
        lines.append(line("next", self.command))
        return "\n".join([title, *lines, *(line("warning", text) for text in self.warnings)])


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(0.4), duration(75.0), duration(4.2e5), duration(2e8)
    ('0.4 s', '1.2 min', '4.9 days', '6.3 years')
    """
    for size, name in (
        (86_400.0 * 365, "years"),
        (86_400.0, "days"),
        (3_600.0, "h"),
        (60.0, "min"),
    ):
        if seconds >= size:
            return (
                f"{seconds / size:,.2g} {name}"
                if seconds < 1e3 * size
                else f"{seconds / size:.1e} {name}"
            )
    return f"{seconds:.2g} s"


class _Pilot(InMemory):
    """Keeps the pilot in memory, with the time at which learning ended."""

    def __init__(self, of: Problem, listener: Listener | None) -> None:
        super().__init__(of)
        self.listener, self.learned_at, self.steps = listener, time.perf_counter(), 0
        self.ended_at = self.learned_at

    def batch(self, episodes: Any, position: int) -> None:
        """Only the outcome is needed."""

    def listen(self, now: Progress) -> None:
        """Told after every batch."""
        self.ended_at = time.perf_counter()
        if now.phase != ESTIMATING:
            self.learned_at, self.steps = self.ended_at, now.done
        if self.listener:
            self.listener(now)

    def rate(self, result: Result) -> float:
        """Decisions in a second of its last stage."""
        return (result.steps - self.steps) / max(self.ended_at - self.learned_at, 1e-9)


@with_options(PlanKeywords)
def plan(
    problem: Problem,
    target_error: float = 0.1,
    *,
    pilot_steps: int | None = None,
    method: str | None = None,
    listener: Listener | None = None,
    command: str | None = None,
    **options: Unpack[PlanKeywords],
) -> Plan:
    """Run a pilot, and say what `evaluate(problem, target_error=…)` will take.

    The pilot is by default as long as the learning of such a run is planned for, so that its
    proposal is as good as the one that the run will have, and with the same seed the very same.
    With another seed the proposal may be half or twice as good.

    Args:
        problem: What is to be evaluated.
        target_error: The wanted half-width of the interval, relative to the estimate.
        pilot_steps: Decisions of the pilot, where the usual number is not wanted.
        method: The name of a method; by default the best there is for the problem.
        listener: Is told the pilot's `Progress` after every batch.
        command: What the plan's `command` begins with.
        **options: Of the pilot and of the run that is planned: `seed`, `confidence`, `settings`,
            who simulates, and more: see `RunKeywords`.

    Returns:
        The budget with its range, and what Monte Carlo would take; where that is no more and you
        asked for no method, `command` is one of Monte Carlo. `steps` is None where the pilot saw
        too few failures to say.

    Raises:
        ApevalError: An argument is wrong.

    Examples:
        >>> import apeval
        >>> it = plan(apeval.make("one-step", beta=3.0), 0.1, pilot_steps=1_000)
        >>> it.steps_range[0] <= it.steps <= it.steps_range[1] < it.monte_carlo_steps
        True
    """
    check_names(options, PlanKeywords)
    target_error = validate.target_error(target_error)
    validate.having("problem", problem, "a Problem: apeval.make(name) builds one", "seen_as")
    validate.listener(listener)
    usual = to_learn(Budget(steps=LONGEST), problem).steps or LONGEST
    steps = usual if pilot_steps is None else validate.whole("pilot_steps", pilot_steps, 1)
    pilot = _Pilot(problem, listener)
    asked = RunOptions(method, steps=steps, **options)
    result = evaluate_with(problem, asked, pilot.listen, pilot)
    said = [] if result.trusted else [text for text in result.warnings if not _asks(text)]
    final = None if pilot.outcome is None else _final(pilot.outcome)
    seen = 0.0 if final is None else _failures(final)
    if pilot.outcome is None or final is None:
        return _unknown(result, target_error, _two_digits(_longer(seen) * steps), said, command)
    nominal = nominal_length(pilot.outcome.sample)
    counted = nominal * _monte_carlo(result.estimate, target_error, of_a_look(asked.confidence))
    free = method is None and not asked.settings and result.method != _MC
    if seen < _FEWEST:
        longer = _two_digits(_longer(seen) * steps)
        if free and counted <= longer:
            return _counting(result, target_error, pilot, nominal, counted, command)
        return _unknown(result, target_error, longer, said, command)
    n = needed(final, target_error, asked.confidence, asked.seed)
    left = [
        max(1.0, k - _counted(pilot.outcome.sample, final)) for k in (n.low, n.expected, n.high)
    ]
    length = final.steps / final.n
    rate = pilot.rate(result)
    start = result.seconds - (pilot.ended_at - pilot.learned_at)
    budget = [pilot.steps + length * k for k in left]
    times = [start + length * k / rate for k in left]
    episodes = _monte_carlo(result.estimate, target_error, asked.confidence)
    enough = _two_digits(budget[2])
    how = [Option("target_error", target_error)]
    counting = result.method != _MC and counted <= budget[1]
    recommended = result.method
    if counting and free:
        recommended, how = _MC, _to_count(target_error, counted)
    elif enough > LONGEST:
        how.append(Option("steps", enough))
    if counting and recommended != _MC:
        said.append(
            f"plain Monte Carlo takes no more for this, about {rounded(counted)} decisions: "
            f"{Option('method', _MC)}"
        )
    if steps > usual and recommended != _MC:  # with a target it would learn less than the pilot did
        how = [Option("steps", max(enough, steps))]
    if steps < usual and recommended != _MC:
        said.append(
            f"the pilot is shorter than the {usual:,} decisions that a run with a target error "
            "learns with: the real budget may be smaller than planned"
        )
    return Plan(
        problem=result.problem,
        method=result.method,
        target_error=target_error,
        confidence=asked.confidence,
        pilot_steps=result.steps,
        pilot_seconds=result.seconds,
        estimate=result.estimate,
        interval=result.interval,
        steps=_two_digits(budget[1]),
        steps_range=(_two_digits(budget[0], down=True), enough),
        seconds=times[1],
        seconds_range=(times[0], times[2]),
        monte_carlo_episodes=episodes,
        monte_carlo_steps=episodes * nominal,
        monte_carlo_seconds=episodes * nominal / rate,
        command=_next("evaluate", result, command, how, recommended),
        warnings=tuple(said),
        recommended=recommended,
    )


def _to_count(error: float, counted: float) -> list[Option]:
    """A run of Monte Carlo with a target, with a budget where the usual limit is too small."""
    how, most = [Option("target_error", error)], _two_digits(_SPARE * counted)
    return how if most <= LONGEST else [*how, Option("steps", most)]


def _next(
    name: str, result: Result, command: str | None, options: list[Option], method: str
) -> str:
    """What to type: after the words of a command line, or a call of apeval's function `name`."""
    if command is not None:
        other = [] if method == result.method else [Option("method", method)]
        return " ".join([command, *(option.in_shell() for option in [*other, *options])])
    given = [Option("method", method), Option("seed", result.seed), *options]
    given.append(Option("confidence", result.confidence))
    return f"apeval.{name}(problem, {', '.join(it.in_python() for it in given)})"


def _asks(text: str) -> bool:
    """Whether a warning of the pilot names the pilot's budget, which is not the plan's."""
    return any(isinstance(it, Option) and it.name in ("steps", "episodes") for it in remedies(text))


def _final(outcome: FinishedRun) -> Sample:
    """The last stage of the sample, which is what a longer run gets more of."""
    sample = outcome.sample
    M = len(outcome.proposal.components)
    first = sample.log_q.shape[1] - M
    mine = sample.component >= first
    names = ("log_p", "kind", "unresolved", "length", "margin")
    return replace(
        sample,
        component=sample.component[mine] - first,
        log_q=sample.log_q[mine][:, first:],
        log_share=None,
        **{name: getattr(sample, name)[mine] for name in names},
    )


def _counted(sample: Sample, final: Sample) -> float:
    """Frozen episodes that the batches of learning stand for, by their shares of the estimate."""
    if sample.log_share is None:
        return 0.0
    rest = float(np.exp(sample.log_share[-1]))  # the last stage comes last
    return final.n * (1.0 - rest) / rest


def _failures(sample: Sample) -> float:
    return effective(sample, sample.weights, sample.failed)


def _monte_carlo(v: float, error: float, confidence: float) -> float:
    """Episodes of plain Monte Carlo, with a budget fixed in advance."""
    z = normal_quantile(0.5 + confidence / 2.0)
    return z * z * (1.0 - v) / (v * error * error) if v > 0.0 else float("inf")


def _two_digits(x: float, down: bool = False) -> int:
    unit = 10 ** max(0, int(np.floor(np.log10(max(x, 1.0)))) - 1)
    return int(x // unit * unit) if down else int(-(-x // unit) * unit)


def _longer(seen: float) -> float:
    """How many times as long a pilot should have enough failures, from those seen."""
    return 10.0 if seen <= 0.0 else min(10.0, max(2.0, 2.0 * _FEWEST / seen))


def _unknown(
    result: Result, error: float, longer: int, said: list[str], command: str | None
) -> Plan:
    """Too few failures to plan from: a longer pilot."""
    text = (
        f"the pilot's last stage is worth too few failures for a plan (at least {_FEWEST:.0f} are "
        "needed): take a longer pilot"
    )
    call = None if command is None else command.replace(" run ", " plan ", 1)
    how = [Option("target_error", error), Option("pilot_steps", longer)]
    return Plan(
        problem=result.problem,
        method=result.method,
        target_error=error,
        confidence=result.confidence,
        pilot_steps=result.steps,
        pilot_seconds=result.seconds,
        estimate=result.estimate,
        interval=result.interval,
        steps=None,
        steps_range=None,
        seconds=None,
        seconds_range=None,
        monte_carlo_episodes=None,
        monte_carlo_steps=None,
        monte_carlo_seconds=None,
        command=_next("plan", result, call, how, result.method),
        warnings=(text, *said),
    )


def _counting(
    result: Result,
    error: float,
    pilot: _Pilot,
    nominal: float,
    counted: float,
    command: str | None,
) -> Plan:
    """Too few failures for a plan of the method, and yet so frequent that Monte Carlo takes less
    than a longer pilot."""
    plan = _unknown(result, error, 0, [], command)
    episodes = _monte_carlo(result.estimate, error, result.confidence)
    text = "the pilot's estimate is rough, and with it what Monte Carlo takes"
    return replace(
        plan,
        monte_carlo_episodes=episodes,
        monte_carlo_steps=episodes * nominal,
        monte_carlo_seconds=episodes * nominal / pilot.rate(result),
        command=_next("evaluate", result, command, _to_count(error, counted), _MC),
        warnings=(text,),
        recommended=_MC,
    )
