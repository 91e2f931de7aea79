"""Rounds as their folders hold them: measured once, and read back without trust.

What `harden.json` says of a round has to follow from the round's run folder. The returns, and how
the policies were trained, stand there alone: no verdict rests on them.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from apeval.adapt.with_policy import PlannedProblem
from apeval.errors import ApevalError
from apeval.hardening.returns import NominalReturn
from apeval.hardening.rounds import (
    BETTER,
    NOT_SHOWN,
    STATE,
    Hardening,
    Round,
    described,
    detection_limit,
    given_in_words,
    judged,
)
from apeval.problem.problem import Problem
from apeval.results.dataclass_json import build, damaged
from apeval.results.files import read_object
from apeval.results.folder import Run, load
from apeval.run.policy_comparison import compare
from apeval.simulate.identity.code import digest

_RELATIVE = 1e-9  # another machine may round otherwise
_FREE = ("why", "nominal_return")  # words, and what no run folder holds


def measured(
    number: int,
    run: Run,
    first: Run | None,
    returns: tuple[NominalReturn, NominalReturn],
    steps: int,
) -> Round:
    """A round, from the run folder of its evaluation.

    Args:
        number: Of the round.
        run: Its evaluation.
        first: Round 0's, for a later round.
        returns: The policy's own nominal return, and round 0's.
        steps: Environment steps of training in each round.

    Returns:
        What was measured, with the verdict against round 0.
    """
    result, (mean, before) = run.result, returns
    limit = detection_limit(result, mean.episodes)
    ratio: dict[str, Any] = {"ratio": None, "ratio_interval": None}
    verdict, why, change = NOT_SHOWN, given_in_words(result), None
    if first is not None:
        found = compare(run, first)
        ratio = {"ratio": found.ratio, "ratio_interval": found.ratio_interval}
        verdict, why = judged(result, first.result, found, limit)
        change = (mean.mean - before.mean) / abs(before.mean) if before.mean else None
    return Round(
        number=number,
        folder=folder_of(number),
        policy=policy_of(number) if number else "",
        trained_steps=number * steps,
        estimate=result.estimate,
        interval=result.interval,
        trusted=result.trusted,
        detection_limit=limit,
        nominal_return=mean,
        return_change=change,
        verdict=verdict,
        why=why,
        kinds={k: v.probability for k, v in result.kinds.items()},
        modes=described(result),
        **ratio,
    )


def folder_of(number: int) -> str:
    """The run folder of a round, below the whole."""
    return f"round-{number}"


def policy_of(number: int) -> str:
    """The file of a round's policy, without its ending."""
    return f"policy-{number}"


def concluded(folder: Path, rounds: tuple[Round, ...], repeats: bool) -> Hardening:
    """The best of the rounds, and its verdict."""
    better = [it for it in rounds[1:] if it.verdict == BETTER]
    best = min(better, key=lambda it: it.estimate).number if better else 0
    verdict = rounds[best].verdict if best else rounds[-1].verdict
    return Hardening(str(folder), rounds, best, verdict, repeats)


def world_of(problem: Problem) -> dict[str, str]:
    """A digest of environment, disturbances and judges, whatever the policy is."""
    plan = replace(PlannedProblem.of(problem).plan, policy=cast(Any, None))
    return {"python": platform.python_version(), "sha256": digest(plan)}


def read_stored(
    folder: Path,
) -> tuple[Mapping[str, Any], Hardening, dict[str, str] | None, int]:
    """The settings and the rounds of a folder, held against the run folders in it, and the digest
    of its world; None where it is unknown, or of another version of Python. Last, the round whose
    training is over.

    Raises:
        ApevalError: A file is damaged, or `harden.json` says what its rounds do not.
    """
    path = folder / STATE
    held = read_object(path)
    settings, listed = held.get("settings"), held.get("rounds")
    if not isinstance(settings, dict) or not isinstance(listed, list) or not listed:
        raise damaged(path, "settings or rounds are missing")
    steps = settings.get("steps")
    if not isinstance(steps, int):
        raise damaged(path, "settings.steps is not a whole number")
    rounds: list[Round] = []
    first = None
    for number, entry in enumerate(listed):
        told = build(Round, entry, path)
        run = load(folder / folder_of(number))
        mine = rounds[0] if rounds else told
        found = measured(number, run, first, (told.nominal_return, mine.nominal_return), steps)
        _check_same(told, found, path)
        _check_asked(run, told, settings, path)
        rounds.append(found)
        first = first or run
    whole = concluded(folder, tuple(rounds), held.get("repeatable") is True)
    if (held.get("best"), held.get("verdict")) != (whole.best, whole.verdict):
        raise damaged(path, "the best round or its verdict does not follow from the rounds")
    world = held.get("world")
    known = isinstance(world, dict) and world.get("python") == platform.python_version()
    trained = held.get("trained", len(rounds) - 1)
    if isinstance(trained, bool) or trained not in (len(rounds) - 1, len(rounds)):
        raise damaged(path, "trained does not follow from the rounds")
    return settings, whole, world if known else None, trained


def _check_same(told: Round, found: Round, path: Path) -> None:
    stored, follows = told.as_json(), found.as_json()
    for name in follows:
        if name not in _FREE and not _same(stored.get(name), follows[name]):
            raise damaged(
                path, f"{name} of round {found.number} does not follow from {found.folder}"
            )


def _check_asked(run: Run, told: Round, settings: Mapping[str, Any], path: Path) -> None:
    """The round is one that the settings ask for."""
    wanted = [settings.get(name) for name in ("episodes", "return_episodes")]
    wanted.append(settings.get("method") or run.result.method)
    it = run.result
    if [it.budget.get("episodes"), told.nominal_return.episodes, it.method] != wanted:
        raise damaged(path, f"its settings are not those of the run in {run.path}")


def _same(stored: Any, found: Any) -> bool:
    if isinstance(found, float) and isinstance(stored, int | float):
        return bool(np.isclose(stored, found, rtol=_RELATIVE, atol=0.0, equal_nan=True))
    if isinstance(found, list) and isinstance(stored, list):
        pairs = zip(stored, found, strict=False)
        return len(stored) == len(found) and all(_same(a, b) for a, b in pairs)
    if isinstance(found, dict) and isinstance(stored, dict):
        return stored.keys() == found.keys() and all(_same(stored[k], found[k]) for k in found)
    return bool(stored == found) and type(stored) is type(found)


def read_hardening(folder: Path) -> Hardening:
    """What a folder says of its hardening.

    Raises:
        ApevalError: A file is damaged, or `harden.json` says what its rounds do not.
    """
    return read_stored(folder)[1]


def rounds_in(folder: Path) -> list[Path]:
    """The run folders of a hardening, in order; none where the folder is no hardening."""
    try:
        if not (folder / STATE).is_file():
            return []
    except (OSError, ValueError) as error:
        raise ApevalError(f"cannot read {folder}: {error}") from None
    return [folder / it.folder for it in read_hardening(folder).rounds]
