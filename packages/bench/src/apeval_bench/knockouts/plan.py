"""Which runs are made: a few of everything first, more only where they may still decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apeval.errors import unknown
from apeval_bench.cells import run_cells
from apeval_bench.knockouts.heuristics import KNOCK_OUTS, MAIN
from apeval_bench.knockouts.problems import PROBLEMS, Tuning
from apeval_bench.knockouts.replacing import AS_IT_IS, KnockOut
from apeval_bench.knockouts.runs import cell, measure, measure_reference
from apeval_bench.knockouts.statistics import Outcome, compared, decided, same
from apeval_bench.registry import ExperimentRequest

TASK = "ape-ablation"
#: Seeds after which a pair of knock-out and problem is looked at. At the first look those that
#: change nothing are done with; from `_TELLS` seeds on those whose interval decides.
LOOKS = (2, 4, 6, 8, 12, 16, 24, 40)
_TELLS = 8
_SAME = 4  # later differences are waited for no longer
_CODE = (
    "problem", "environments", "apeval_paper", "simulate", "learn", "estimate", "run",
    "apeval_bench/knockouts/problems.py", "apeval_bench/knockouts/reference.py",
    "apeval_bench/knockouts/runs.py",
)  # fmt: skip

Pair = tuple[str, str]
"""Names of a knock-out and a problem."""


@dataclass(frozen=True)
class Found:
    """Outcomes by pair, in the order of the seeds; and of the method as it is, by problem."""

    without: dict[Pair, list[Outcome]]
    plain: dict[str, list[Outcome]]
    references: dict[str, Mapping[str, Any]]


def choose(wanted: Sequence[str]) -> tuple[list[KnockOut], list[Tuning]]:
    """Knock-outs and problems of these names, or all of a kind of which none is named."""
    for name in wanted:
        if name not in KNOCK_OUTS and name not in PROBLEMS:
            raise unknown("knock-out or tuning problem", name, [*KNOCK_OUTS, *PROBLEMS])
    knock_outs = [k for k in KNOCK_OUTS.values() if k.name in wanted]
    problems = [p for p in PROBLEMS.values() if p.name in wanted]
    return knock_outs or list(KNOCK_OUTS.values()), problems or list(PROBLEMS.values())


def run_all(
    request: ExperimentRequest, knock_outs: Sequence[KnockOut], problems: Sequence[Tuning]
) -> Found:
    """Look by look, until everything is decided or the seeds are used up."""
    seeds = list(request.all_seeds)
    found = Found({}, {p.name: [] for p in problems}, {})
    for dear in (False, True):
        _look(request, seeds, found, knock_outs, [p for p in problems if p.dear is dear])
    return found


def asks(problem: Tuning, knock_out: KnockOut) -> bool:
    """Whether the knock-out is measured on the problem."""
    main = not problem.dear or knock_out.name in MAIN
    return main and knock_out.needs <= problem.traits


def _look(
    request: ExperimentRequest,
    seeds: Sequence[int],
    found: Found,
    knock_outs: Sequence[KnockOut],
    problems: Sequence[Tuning],
) -> None:
    known = run_cells(
        f"{TASK}-reference", measure_reference, [{"problem": p.name} for p in problems], request, 1,
        of=_CODE,
    )  # fmt: skip
    found.references.update(zip((p.name for p in problems), known, strict=True))
    open_pairs = {(k.name, p.name): (p, k) for p in problems for k in knock_outs if asks(p, k)}
    found.without.update({pair: [] for pair in open_pairs})
    for look in LOOKS:
        now = seeds[:look]
        _extend(request, found.plain, {p.name: (p, AS_IT_IS) for p in problems}, now)
        _extend(request, found.without, open_pairs, now)
        open_pairs = {
            pair: what
            for pair, what in open_pairs.items()
            if not _done(found.without[pair], found.plain[pair[1]])
        }
        if len(now) < look:
            break


def _extend(
    request: ExperimentRequest,
    outcomes: Mapping[Any, list[Outcome]],
    what: Mapping[Any, tuple[Tuning, KnockOut]],
    seeds: Sequence[int],
) -> None:
    """Run the seeds that are missing."""
    todo = [
        (key, cell(*run, seed)) for key, run in what.items() for seed in seeds[len(outcomes[key]) :]
    ]
    found = run_cells(TASK, measure, [c for _, c in todo], request, 1, of=_CODE)
    for (key, _), outcome in zip(todo, found, strict=True):
        outcomes[key].append(outcome)


def _done(without: Sequence[Outcome], plain: Sequence[Outcome]) -> bool:
    mine = plain[: len(without)]
    if len(without) <= _SAME and all(same(a, b) for a, b in zip(without, mine, strict=True)):
        return True
    return len(without) >= _TELLS and decided(compared(without, mine, 0))
