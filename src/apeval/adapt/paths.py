"""Attributes of an environment by path, such as ``force_mag`` or ``model.opt.gravity[0]``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from apeval.errors import ApevalError, ProblemError, unknown
from apeval.problem.types import Array

_STEP = re.compile(r"\.?([A-Za-z_]\w*)|\[(-?\d+)\]|\[['\"](\w+)['\"]\]")
Key = str | int
Path = tuple[tuple[str, Key], ...]


@lru_cache
def parse(path: str) -> Path:
    """The path's steps, each an attribute or an item.

    >>> parse("model.opt.gravity[0]")
    (('.', 'model'), ('.', 'opt'), ('.', 'gravity'), ('[', 0))
    """
    steps: list[tuple[str, Key]] = []
    at = 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None or (at == 0 and found[0][0] in ".["):
            raise ProblemError(
                f"'{path}' is no path to an attribute: write it as in Python, without the "
                "environment, such as force_mag or model.opt.gravity[0]"
            )
        name, number, key = found.groups()
        steps.append((".", name) if name else ("[", int(number) if number else key))
        at = found.end()
    if not steps:
        raise ProblemError("the path to an attribute is empty: write its name, such as force_mag")
    return tuple(steps)


def read(env: Any, path: Path) -> Array:
    """The numbers at the path, a copy."""
    there = getattr(env, "unwrapped", env)
    for step in path:
        there = take_step(there, step, path)
    value = np.array(there)
    if value.dtype.kind not in "biuf":
        raise ProblemError(
            f"{path_text(path)} of the environment is a {type(there).__name__}, not a number or an "
            "array of numbers: name the number itself"
        )
    return value.astype(np.float64)


def write(env: Any, path: Path, value: Array) -> None:
    """Put numbers at the path; one that takes the place of a plain one goes straight there."""
    owner = getattr(env, "unwrapped", env)
    key = str(path[0][1])
    if len(path) == 1 and type(getattr(owner, key, None)) is float and value.size == 1:
        setattr(owner, key, value.item())
    else:
        _put(owner, path, value, path)


def put_rows(owners: Sequence[Any], path: Path, values: Array) -> None:
    """Put a row of numbers at the path of each unwrapped environment; a number that takes the
    place of a plain one goes straight there."""
    key = str(path[0][1])
    if len(path) > 1 or values.ndim > 1:
        for owner, value in zip(owners, values, strict=True):
            _put(owner, path, value, path)
        return
    for owner, value in zip(owners, values.tolist(), strict=True):
        if type(getattr(owner, key, None)) is float:
            setattr(owner, key, value)
        else:
            _put(owner, path, np.asarray(value), path)


def _put(owner: Any, path: Path, value: Array, whole: Path) -> None:
    (kind, key), rest = path[0], path[1:]
    if rest:
        inner = take_step(owner, path[0], whole)
        if isinstance(inner, tuple):  # cannot be changed in place: a new one takes its stead
            replaced = list(inner)
            _put(replaced, rest, value, whole)
            _assign(owner, kind, key, tuple(replaced))
        else:
            _put(inner, rest, value, whole)
        return
    old = take_step(owner, path[0], whole)
    if isinstance(old, np.ndarray) and old.ndim:
        if old.dtype.kind != "f" and np.any(value != np.round(value)):
            raise ProblemError(
                f"{path_text(whole)} of the environment holds whole numbers ({old.dtype}), which "
                "would round the noise away: make it an array of floats in the environment"
            )
        old[...] = np.reshape(value, old.shape)
    elif isinstance(old, list | tuple):
        _assign(owner, kind, key, type(old)(np.reshape(value, np.shape(old)).tolist()))
    else:
        kept: Any = type(old) if isinstance(old, np.floating) else float
        _assign(owner, kind, key, kept(np.asarray(value).item()))


def _assign(owner: Any, kind: str, key: Any, value: Any) -> None:
    if kind == "[":
        owner[key] = value
    else:
        setattr(owner, key, value)


def take_step(owner: Any, step: tuple[str, Key], whole: Path) -> Any:
    """One step along a path; what is not there is refused with what is."""
    kind, key = step
    if kind == "[":
        try:
            return owner[key]
        except (LookupError, TypeError) as error:
            raise ProblemError(f"the environment has no {path_text(whole)}: {error}") from None
    try:
        return getattr(owner, str(key))
    except AttributeError:
        raise _missing(owner, str(key), whole) from None


def _missing(owner: Any, key: str, whole: Path) -> ApevalError:
    known = [name for name in dir(owner) if not name.startswith("_")]
    what = f"attribute of {type(owner).__name__} (in the path {path_text(whole)})"
    return ProblemError(str(unknown(what, key, known)))


def path_text(path: Path) -> str:
    """A path as a user writes it."""
    steps = [f".{key}" if kind == "." else f"[{key!r}]" for kind, key in path]
    return "".join(steps).removeprefix(".")
