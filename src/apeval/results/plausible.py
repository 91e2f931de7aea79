"""Whether a stored result can be one: types fit already, now numbers, shapes and records."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from apeval.errors import ApevalError
from apeval.estimate.verdict import REFUTED, SHOWN, UNDECIDED
from apeval.results.dataclass_json import damaged
from apeval.run.merge import Merged
from apeval.run.result import Result
from apeval.simulate.replay import Record

Named = Iterator[tuple[str, Any]]


def check_result(result: Result, where: Path) -> None:
    """Refuse a result that no run can have written.

    Args:
        result: As `build` made it from the file.
        where: The file.

    Raises:
        ApevalError: A probability, count, verdict, value function or record is impossible.
    """
    _check_probabilities(
        [("estimate", result.estimate), *_ends("interval", result.interval)], where
    )
    if not 0.0 < result.confidence < 1.0:
        raise damaged(where, "confidence does not lie between 0 and 1")
    for name, value in _numbers(result):
        if not math.isfinite(value) or value < 0.0:
            raise damaged(where, f"{name} is not a number of at least 0")
    if not result.kinds:
        raise damaged(where, "it names no kind of failure")
    if result.failures > result.episodes or result.final.failures > result.final.episodes:
        raise damaged(where, "more failures than episodes: one does not fit the result")
    if result.below is not None and result.below.verdict not in (SHOWN, REFUTED, UNDECIDED):
        raise damaged(where, "below.verdict is unknown")
    if result.target is not None and not 0.0 < result.target.error < 1.0:
        raise damaged(where, "target.error does not lie between 0 and 1")
    if result.value_function:
        from apeval.learn.ape.log_value import LogValue  # only here: other methods need no `ape`

        try:
            LogValue.from_json(result.value_function)
        except ValueError as error:
            raise damaged(where, f"value_function: {error}") from None
    check_records([mode.most_likely for mode in result.modes], where)
    try:
        str(result)
    except (ArithmeticError, ValueError, TypeError, LookupError) as error:
        raise damaged(where, f"it makes no sense ({error})") from None


def check_records(records: Sequence[Mapping[str, Any]], where: Path) -> None:
    """Refuse replay records that no episode can have left.

    Args:
        records: As they stand in the file.
        where: The file.

    Raises:
        ApevalError: One of them is impossible.
    """
    for number, record in enumerate(records, start=1):
        try:
            Record.from_json(record)
        except ApevalError as error:
            raise damaged(where, f"failure {number}: {error}") from None


def check_merged(merged: Merged, where: Path) -> None:
    """Refuse a common answer of several runs that they cannot have.

    Args:
        merged: As `build` made it from the file.
        where: The file.

    Raises:
        ApevalError: A probability or a count is impossible.
    """
    found = [("estimate", merged.estimate), *_ends("interval", merged.interval)]
    for k, part in enumerate(merged.parts):
        found += [(f"parts[{k}].estimate", part.estimate), *_ends(f"parts[{k}]", part.interval)]
    _check_probabilities(found, where)
    if not 0.0 < merged.confidence < 1.0:
        raise damaged(where, "confidence does not lie between 0 and 1")
    if len(merged.parts) < 2:
        raise damaged(where, "it does not list the runs")
    if not 0 <= merged.failures <= merged.episodes:
        raise damaged(where, "there are more failures than episodes")
    try:
        str(merged)
    except (ArithmeticError, ValueError, TypeError, LookupError) as error:
        raise damaged(where, f"it makes no sense ({error})") from None


def _check_probabilities(found: list[tuple[str, float]], where: Path) -> None:
    for name, value in found:
        if not 0.0 <= value <= 1.0:
            raise damaged(
                where, f"its probabilities do not lie between 0 and 1 ({name} is {value!r})"
            )


def _numbers(result: Result) -> Named:
    """Counts and probabilities of the parts: finite, and not below 0."""
    for name in ("seed", "steps", "episodes", "failures", "block"):
        yield name, getattr(result, name)
    for name in ("steps", "episodes", "failures", "ended_by_roulette"):
        yield f"final.{name}", getattr(result.final, name)
    for name, allowed in result.budget.items():
        yield f"budget.{name}", allowed
    for name, kind in result.kinds.items():
        yield f"kinds.{name}.failures", kind.failures
        yield f"kinds.{name}.probability", kind.probability
        yield from _ends(f"kinds.{name}.interval", kind.interval)
    for k, mode in enumerate(result.modes):
        yield f"modes[{k}].failures", mode.failures
        yield f"modes[{k}].share", mode.share
        yield f"modes[{k}].probability", mode.probability
        yield from _ends(f"modes[{k}].share_interval", mode.share_interval)
        yield from _ends(f"modes[{k}].interval", mode.interval)
    for k, point in enumerate(result.tail):
        yield f"tail[{k}].probability", point.probability
        yield from _ends(f"tail[{k}].interval", point.interval)
    for name, answer in (("target", result.target), ("below", result.below)):
        if answer is not None and answer.budget is not None:
            yield f"{name}.budget", answer.budget
    for name in ("detection_limit", "truth", "truth_error", "monte_carlo_episodes"):
        if getattr(result, name) is not None:
            yield name, getattr(result, name)


def _ends(name: str, interval: tuple[float, float]) -> Named:
    yield f"{name}[0]", interval[0]
    yield f"{name}[1]", interval[1]
