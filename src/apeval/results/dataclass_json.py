"""Dataclasses from plain data, checked against their types: the inverse of `Result.as_json`."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from apeval.errors import ApevalError

T = TypeVar("T")


def build(kind: type[T], data: Any, where: Path | str) -> T:
    """An instance of a dataclass; further entries of `data` are ignored.

    >>> from apeval.run.result import FinalStage
    >>> build(FinalStage, {"steps": 1}, "result.json")
    Traceback (most recent call last):
    apeval.errors.ApevalError: result.json is damaged: episodes is missing
    """
    value = _object(kind, data, "", str(where))
    return typing.cast(T, value)


def _object(kind: Any, data: Any, path: str, where: str) -> Any:
    if not isinstance(data, dict):
        raise _wrong(where, path, "an object")
    hints = typing.get_type_hints(kind)
    values = {}
    for field in dataclasses.fields(kind):
        name = f"{path}.{field.name}" if path else field.name
        if field.name in data:
            values[field.name] = _value(hints[field.name], data[field.name], name, where)
        elif field.default is dataclasses.MISSING:
            raise damaged(where, f"{name} is missing")
    try:
        return kind(**values)
    except ApevalError as error:  # what the class itself refuses
        raise damaged(where, str(error)) from None


def _value(kind: Any, data: Any, path: str, where: str) -> Any:
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return data
    if origin in (typing.Union, types.UnionType):
        if data is None and type(None) in inside:
            return None
        return _value(next(k for k in inside if k is not type(None)), data, path, where)
    if dataclasses.is_dataclass(kind):
        return _object(kind, data, path, where)
    if origin is tuple:
        return _tuple(inside, data, path, where)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(data, dict):
            raise _wrong(where, path, "an object")
        return {k: _value(inside[1], v, f"{path}.{k}", where) for k, v in data.items()}
    return _scalar(kind, data, path, where)


def _tuple(inside: tuple[Any, ...], data: Any, path: str, where: str) -> Any:
    if not isinstance(data, list):
        raise _wrong(where, path, "a list")
    if inside[-1] is Ellipsis:
        return tuple(_value(inside[0], v, f"{path}[{k}]", where) for k, v in enumerate(data))
    if len(data) != len(inside):
        raise _wrong(where, path, f"a list of {len(inside)}")
    pairs = zip(inside, data, strict=True)
    return tuple(_value(kind, v, f"{path}[{k}]", where) for k, (kind, v) in enumerate(pairs))


def _scalar(kind: Any, data: Any, path: str, where: str) -> Any:
    if kind is float and data is None:
        return math.nan  # JSON has no number that is not finite
    whole = isinstance(data, int) and not isinstance(data, bool) and abs(data) < 2**63
    if (kind is float and isinstance(data, float)) or (kind in (int, float) and whole):
        return data
    if kind in (str, bool) and isinstance(data, kind):
        return data
    names = {float: "a number", int: "a whole number", str: "a text", bool: "true or false"}
    raise _wrong(where, path, names.get(kind, str(kind)))


def _wrong(where: str, path: str, wanted: str) -> ApevalError:
    return damaged(where, f"{path or 'the file'} is not {wanted}")


def damaged(where: Path | str, why: str) -> ApevalError:
    """The error for a file whose content makes no sense, in one line of readable length."""
    return ApevalError(f"{where} is damaged: {' '.join(why.split())[:200]}")
