"""One fingerprint of a problem, made when a run starts and kept with it.

It holds what the problem says of itself (parameters, laws, horizon, kinds, views), the files that
it is made of, a digest of its functions with the values they hold, and what it does in a few
reference decisions. Two runs whose answers are to be joined, or a run that goes on, must agree.
"""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from apeval.problem.problem import Problem
from apeval.simulate.identity.code import digest, modules_of
from apeval.simulate.identity.reference import Reference, differing_answers
from apeval.simulate.identity.source_files import address_file, hashes, named_files, source_files

SCHEMA_VERSION = 1
_STATED = ("horizon", "cap", "kinds", "horizon_kind", "judge_at_end")
_WORDS = {
    "name": "the problem's name",
    "nominal": "the nominal disturbance",
    "initial": "the nominal start",
    "horizon": "the horizon",
    "cap": "the cap",
    "kinds": "the kinds of failure",
    "horizon_kind": "whether the horizon is a failure",
    "judge_at_end": "when failure is judged",
    "policy_memory": "whether the policy has memory",
    "view": "the view",
    "views": "the views",
    "parts": "which functions it has",
}
CODE, ANSWERS, FILES = "code", "answers", "files"
_SHOWN = 3
_STILL, _BETWEEN = 0.05, 0.001  # seconds for which a problem is watched, and between two looks
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_LOOKS = 10  # at least: what goes to and fro is met in the same state by half of them


def identify(problem: Problem, ask: Callable[[], Reference | None]) -> dict[str, Any]:
    """The problem's fingerprint as plain data.

    Args:
        problem: The problem, before it is evaluated.
        ask: What it does, from `reference`; None where it must not be asked, because its
            simulator may hang or die. It is asked last: to be asked may fill a problem's caches.

    Returns:
        What `differences` compares.
    """
    functions = _functions(problem)
    stated: dict[str, Any] = {name: getattr(problem, name) for name in _STATED}
    return {
        "schema_version": SCHEMA_VERSION,
        "name": problem.name,
        "description": problem.description,
        "parameters": {str(k): _plain(v) for k, v in problem.parameters.items()},
        **{k: list(v) if isinstance(v, tuple) else v for k, v in stated.items()},
        **({"policy_memory": True} if problem.policy_memory else {}),  # unsaid in older folders
        "view": problem.view,
        "views": sorted(problem.views),
        "nominal": problem.nominal.describe(),
        "initial": None if problem.initial is None else problem.initial.describe(),
        "parts": sorted(name for name, part in functions.items() if part is not None),
        FILES: hashes(
            [
                *source_files(modules_of(functions), address_file(problem.name)),
                *named_files(problem.parameters),
            ]
        ),
        CODE: {"python": platform.python_version(), "sha256": digest(functions)},
        ANSWERS: ask(),
    }


def holds_users_code(problem: Problem) -> bool:
    """Whether any function or class of the problem is the user's own."""
    return bool(modules_of(_functions(problem)))


def code_of(problem: Problem) -> str:
    """A digest of the problem's functions with the values that they hold now."""
    return digest(_functions(problem))


def changes_by_itself(problem: Problem) -> bool:
    """Whether what the problem holds changes while nobody asks it anything: each worker would get
    it as it happens to be when the worker starts, and repeat itself with that."""
    functions = _functions(problem)
    first, until, looks = digest(functions), time.monotonic() + _STILL, 0
    while looks < _LOOKS or time.monotonic() < until:
        looks += 1
        time.sleep(_BETWEEN * (0.5 + looks * _GOLDEN % 1.0))  # in step with nothing that goes round
        if digest(functions) != first:
            return True
    return False


def _functions(problem: Problem) -> dict[str, Any]:
    bare = {
        name: getattr(getattr(problem, name), "call", None)
        for name in ("reset", "step", "failed", "done", "margin")
    }
    return {
        **bare,
        "agent": problem.agent,
        "views": dict(problem.views),
        "nominal": problem.nominal,
        "initial": problem.initial,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, bool | int | float | str | None) else repr(value)


def differences(
    then: Mapping[str, Any], now: Mapping[str, Any], ignore: Sequence[str] = ()
) -> list[str]:
    """What is not the same in two fingerprints, in words.

    Args:
        then: One fingerprint, perhaps read from a folder.
        now: The other one.
        ignore: Entries that may differ, such as "view" or "files".

    Returns:
        A few words for each difference; none where the two are of one problem.
    """
    found: list[str] = []
    a, b = then.get(ANSWERS), now.get(ANSWERS)
    if ANSWERS not in ignore and isinstance(a, Mapping) and isinstance(b, Mapping):
        differs = differing_answers(a, b)
        found += [] if differs is None else [f"what it does: {differs}"]
    found += _parameters(then, now) if "parameters" not in ignore else []
    for entry, words in _WORDS.items():
        if entry in ignore or then.get(entry) == now.get(entry):
            continue
        before, after = (_told(it.get(entry)) for it in (then, now))
        found.append(f"{words} ({before}, now {after})" if before != after else words)
    if FILES not in ignore:
        found += changed_files(then, now)
    if CODE not in ignore and _other_code(then, now):
        found.append("the code of its functions, or a value that they hold")
    return found


def in_short(found: Sequence[str]) -> str:
    """Differences as part of a sentence; of many the first.

    >>> in_short(["the horizon", "the view", "the cap", "the kinds"])
    'the horizon; the view; the cap; and 1 more'
    """
    more = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    return "; ".join([*found[:_SHOWN], *more])


def _parameters(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    a, b = (p if isinstance(p := it.get("parameters"), Mapping) else {} for it in (then, now))
    return [
        f"parameter {name} ({_told(a.get(name))}, now {_told(b.get(name))})"
        for name in sorted({**a, **b})
        if a.get(name) != b.get(name)
    ]


def changed_files(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Files of the same name with another content."""
    before, after = _by_name(then), _by_name(now)
    return [
        f"the file {name}"
        for name in sorted(before.keys() & after.keys())
        if before[name] != after[name]
    ]


def _by_name(it: Mapping[str, Any]) -> dict[str, set[Any]]:
    found: dict[str, set[Any]] = {}
    listed = it.get(FILES)
    for entry in listed if isinstance(listed, list) else []:
        if isinstance(entry, Mapping):
            found.setdefault(str(entry.get("name")), set()).add(str(entry.get("sha256")))
    return found


def _other_code(then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Bytecode says nothing across versions of Python."""
    a, b = then.get(CODE), now.get(CODE)
    if not isinstance(a, Mapping) or not isinstance(b, Mapping):
        return bool(a != b)
    return a.get("python") == b.get("python") and a.get("sha256") != b.get("sha256")


def _told(value: Any) -> str:
    if isinstance(value, Mapping):
        value = value.get("words", value)
    text = "none" if value is None else str(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
