"""`check_problem`: a user's mistakes, found at the door, each with its remedy."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic

import numpy as np

from apeval import validate
from apeval.adapt.entrance import entrance
from apeval.errors import ApevalError, number_of
from apeval.problem.draws import NATURE, Draws, make_key
from apeval.problem.laws import Law
from apeval.problem.problem import Problem
from apeval.problem.types import IntArray
from apeval.remedies import Option
from apeval.simulate.check.contract import Contract, ask
from apeval.simulate.check.density import check_density
from apeval.simulate.check.repeat import check_repeats
from apeval.simulate.check.report import BrokenError, CheckReport, Finding
from apeval.simulate.check.traced_episodes import Trace, walk

__all__ = ["Finding", "Report", "check_problem"]

UNDISTURBED = "undisturbed"
"""The finding about episodes without disturbance."""
_FIRST_LOOK = 2_000  # decisions; after that only the end of an episode is looked for
_CALM, _CALM_DECISIONS = 4, 50  # episodes without disturbance, and decisions of each at the most:
# they differ by the start alone, and results speak of them, so that no clock may end them


def check_problem(
    problem: Problem, *, episodes: int = 200, seed: int = 0, seconds: float = 10.0
) -> CheckReport:
    """Simulate a little, and look for what would spoil an estimate.

    Half of the episodes are nominal, half are driven to the disturbances' extremes. A slow
    simulator is checked on fewer decisions; the report says on how many.

    Args:
        problem: The problem to look at.
        episodes: How many to simulate at the most.
        seed: Of their random numbers.
        seconds: About how long it may take at the most; the first 50 decisions of four episodes
            without disturbance come on top, since results speak of them.

    Returns:
        The report. It never raises because of the problem: ask ``report.ok``, or call
        ``report.raise_if_bad()``.

    Raises:
        ApevalError: An argument is none, such as a negative number of episodes.

    Examples:
        >>> from apeval.environments import make
        >>> check_problem(make("walk")).ok
        True
    """
    if not isinstance(problem, Problem):
        raise ApevalError(f"check_problem wants a Problem, got {type(problem).__name__}")
    episodes = validate.whole("episodes", episodes, 2, 1_000_000)
    seed, seconds = validate.seed(seed), validate.seconds("seconds", seconds)
    findings: list[Finding] = []
    try:
        for finding in _checks(problem, episodes, seed, seconds):
            findings.append(finding)
    except BrokenError as broken:
        return CheckReport(problem.name, (*findings, broken.finding), complete=False)
    except Exception as error:
        message = f"{type(error).__name__}: {error}. The problem's parts do not fit together"
        broken_parts = Finding("exception", False, message)
        return CheckReport(problem.name, (*findings, broken_parts), complete=False)
    return CheckReport(problem.name, tuple(findings))


def _checks(problem: Problem, episodes: int, seed: int, seconds: float) -> Iterator[Finding]:
    contract, key = Contract(problem), make_key(seed)
    begin, part, half = monotonic(), seconds / 4.0, episodes // 2
    nominal = _walks(contract, key, np.arange(half), begin + part, stress=False)
    stressed = _walks(contract, key, np.arange(half, episodes), begin + 2 * part, stress=True)
    spent = monotonic() - begin
    n, steps = sum(t.n for t in nominal + stressed), sum(t.steps for t in nominal + stressed)
    yield Finding(
        "shapes", True, f"right in {number_of(steps, 'decision')} of {number_of(n, 'episode')}"
    )
    yield Finding("finite states", True, "no NaN or infinity in any view")
    yield from _density(problem, nominal + stressed, seed)
    yield _no_margin(problem) if problem.margin is None else _margin(problem, nominal + stressed)
    yield from _undisturbed(contract, key)
    if problem.policy_memory:
        yield Finding(
            "memory", True, f"the policy has one; methods see the view '{problem.view}' of a state"
        )
    yield from check_repeats(contract, key, int(part * steps / spent))
    yield _ends(contract, nominal, key, begin + seconds)


def _walks(
    contract: Contract, key: IntArray, ids: IntArray, until: float, stress: bool
) -> list[Trace]:
    """Batches as large as the problem likes them; at least one."""
    traces: list[Trace] = []
    for first in range(0, len(ids), contract.problem.chunk):
        if traces and monotonic() > until:
            break
        batch = ids[first : first + contract.problem.chunk]
        traces.append(walk(contract, key, batch, _FIRST_LOOK, until, stress))
    return traces


def _density(problem: Problem, traces: list[Trace], seed: int) -> Iterator[Finding]:
    decisions = [d for trace in traces for d in trace.decisions]
    sizes = [len(d.ids) for d in decisions]
    law: Law = ask("nominal law's stack", lambda: Law.stack([d.law for d in decisions], sizes))
    outcomes = problem.nominal.outcomes
    yield check_density(
        "nominal", law, _situations(law, sum(sizes)), problem.nominal.dim,
        problem.nominal.discrete, outcomes, seed,
    )  # fmt: skip
    if problem.initial is not None and traces[0].law_0 is not None:
        law = traces[0].law_0
        outcomes = problem.initial.outcomes
        yield check_density(
            "initial", law, _situations(law, traces[0].n), problem.initial.dim,
            problem.initial.discrete, outcomes, seed,
        )  # fmt: skip


def _situations(law: Law, n: int) -> int:
    """How many different laws there are: one where no parameter has more than one row."""
    return n if any(np.ndim(v) and len(v) > 1 for v in vars(law).values()) else 1


def _no_margin(problem: Problem) -> Finding:
    """What one would be good for."""
    return Finding(
        "margin",
        True,
        "there is none. With one, failures that are too rare to be met by chance are found level "
        f"by level, and {Option('method', 'splitting')} can be asked: give the distance to "
        f"failure, ≤ 0 exactly where it fails, as {entrance(problem).margin}",
        remark=True,
    )


def _undisturbed(contract: Contract, key: IntArray) -> Iterator[Finding]:
    """Whether it takes a disturbance to fail, in the first decisions."""
    problem = contract.problem
    try:
        trace = walk(contract, key, np.arange(_CALM), _CALM_DECISIONS, calm=True)
    except BrokenError:  # a law without a middle, such as outcomes without probabilities
        return
    failures = trace.failures(problem.horizon, problem.horizon_kind)
    if failures:
        verb = "fails" if failures == 1 else "fail"
        yield Finding(
            UNDISTURBED,
            True,
            f"{failures} of {trace.n} episodes {verb} also without disturbance (all at their "
            "medians, or at their likeliest outcomes): the policy needs no bad luck to fail, or "
            "the failure event or the horizon is not what was meant",
            remark=True,
        )
    else:
        cut = f" in its first {_CALM_DECISIONS} decisions" if len(trace.running) else ""
        said = f"none of {trace.n} episodes fails without disturbance{cut}"
        yield Finding(UNDISTURBED, True, said)


def _margin(problem: Problem, traces: list[Trace]) -> Finding:
    """margin(x) ≤ 0 if and only if failed(x), wherever both are read."""
    positive = failures = negative = safe = 0
    for d in (d for trace in traces for d in trace.decisions):
        if d.margin is None:
            continue
        fails = d.kind[d.judged] > 0
        low = d.margin[d.judged] <= 0.0
        failures, safe = failures + int(fails.sum()), safe + int((~fails).sum())
        positive += int((fails & ~low).sum())
        negative += int((low & ~fails).sum())
    wrong = []
    if negative:
        wrong.append(f"the margin is ≤ 0 in {negative:,} of {safe:,} states without failure")
    if positive:
        wrong.append(f"the margin is > 0 in {positive:,} of {failures:,} states with failure")
    if wrong:
        it = entrance(problem)
        event, proxy = "failed = margin(x) <= 0", "np.where(failed(x), np.minimum(m, 0), m)"
        if it.call != "Problem":
            event = f"{it.fails}=lambda obs: margin(obs) <= 0"
            proxy = "min(m, 0.0) where it fails and max(m, 1e-9) elsewhere"
        remedy = (
            f"mend its sign or its zero, or define the event by it, {event}; where it is a proxy, "
            f"return {proxy}"
        )
        return Finding("margin", False, f"{' and '.join(wrong)}: {remedy}")
    told = f"agrees with the event in {number_of(failures, 'failure')} and {safe:,} other states"
    return Finding("margin", True, told if failures else f"{told}; no failure was seen")


def _ends(contract: Contract, traces: list[Trace], key: IntArray, until: float) -> Finding:
    """Follow the episodes that have not ended, up to the cap."""
    problem = contract.problem
    if problem.horizon is not None:
        return Finding("ends", True, f"after {problem.horizon:,} decisions at the latest")
    n = sum(trace.n for trace in traces)
    late = [trace for trace in traces if len(trace.running)]
    told = f"all of {n:,} nominal episodes ended"
    if not late:
        return Finding("ends", True, f"{told}, the longest after {max(map(_length, traces)):,}")
    remedy = "let `done` or `failed` end it, give horizon=, or raise cap= if it needs longer"
    for trace in late:
        left, t = _follow(problem, trace, key, until)
        if left and t >= problem.cap:
            message = f"{left:,} of {trace.n:,} episodes reached the cap of {t:,} decisions"
            return Finding("ends", False, f"{message}: {remedy}")
        if left and left == trace.n:
            message = f"none of {left:,} episodes ended within {t:,} decisions"
            return Finding("ends", False, f"{message}: {remedy}")
        if left:
            message = f"{left:,} of {trace.n:,} episodes were still running after {t:,} decisions"
            return Finding("ends", True, f"{message} (the check waits no longer)")
    return Finding("ends", True, told)


def _length(trace: Trace) -> int:
    return len(trace.decisions)


def _follow(problem: Problem, trace: Trace, key: IntArray, until: float) -> tuple[int, int]:
    """How many episodes are still running, and after how many decisions."""
    x, alive, t = trace.x, trace.running, len(trace.decisions)
    while len(alive) and t < problem.cap and monotonic() < until:
        draws = Draws(key, alive, t)
        a_A = problem.act(x, draws)
        a_E = problem.law(x, a_A).sample(draws.stream(NATURE, problem.nominal.dim))
        x = ask("step", lambda x=x, a=(a_A, a_E, draws): problem.step(x, *a))  # type: ignore[misc]
        going = ~np.asarray(problem.done(x) if problem.done else np.zeros(len(alive), bool))
        if not problem.judge_at_end:
            going &= np.asarray(problem.failed(x)) == 0
        if not going.all():
            x, alive = x[going], alive[going]
        t += 1
    return len(alive), t
