"""Settings of methods and problems: set by name, from values or from text."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from apeval.errors import ApevalError, unknown


def setting(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: Sequence[Any] | None = None,
) -> Any:
    """A config field: its default, its meaning, and its limits.

    Args:
        default: Its value where none is given.
        help: What it means, for the command line.
        low: The least value that is allowed.
        high: The largest value that is allowed.
        choices: All values that are allowed.

    Returns:
        A field for a frozen dataclass.
    """
    limits = {"low": low, "high": high, "choices": choices}
    known = {name: limit for name, limit in limits.items() if limit is not None}
    return dataclasses.field(default=default, metadata={"help": help, **known})


def build(config: type[Any], values: Mapping[str, Any]) -> Any:
    """A config from named values; text is converted to the field's type and limits are checked.

    Args:
        config: The dataclass.
        values: Values by name; text as the command line has it.

    Returns:
        A config; fields that are not named keep their defaults.

    Raises:
        ApevalError: A name is unknown, or a value cannot be taken.
    """
    if not isinstance(values, Mapping):
        raise ApevalError(
            f"settings must be names with their values, {{'name': …}}; got {values!r}"
        )
    fields = {f.name: f for f in dataclasses.fields(config)}
    hints = typing.get_type_hints(config)
    for name in values:
        if name not in fields:
            if not fields:
                raise ApevalError(f"this method has no settings (got '{name}')")
            raise unknown("setting", name, fields)
    converted = {name: convert(name, hints[name], v) for name, v in values.items()}
    for name, value in converted.items():
        _check_limits(name, value, fields[name].metadata)
    return config(**converted)


def is_number(kind: Any) -> bool:
    """Whether an annotation stands for one number, or yes and no; perhaps for none.

    Args:
        kind: An annotation.

    Returns:
        True for int, float and bool, also with None.

    Examples:
        >>> is_number(int | None), is_number(float | str), is_number(str)
        (True, False, False)
    """
    union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    options = set(typing.get_args(kind)) - {type(None)} if union else {kind}
    return len(options) == 1 and options <= {bool, int, float}


def convert(name: str, kind: Any, value: Any) -> Any:
    """A value, possibly text from the command line, as the annotated type.

    Args:
        name: For the message.
        kind: The annotation.
        value: What was given.

    Returns:
        The value, of the annotated type.

    Raises:
        ApevalError: It cannot be one.

    Examples:
        >>> convert("delta", float, "1e-2"), convert("window", int, "2e3")
        (0.01, 2000)
        >>> convert("on", bool, "yes")
        True
    """
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        options = typing.get_args(kind)
        if type(None) in options and (value is None or str(value).lower() == "none"):
            return None
        kind = next(k for k in options if k is not type(None))
    try:
        if kind is bool:
            return _to_bool(value)
        if kind is int:
            number = float(value)
            if number != int(number):
                raise ValueError
            return int(number)
        if kind is float:
            return float(value)
    except (TypeError, ValueError, OverflowError):
        wanted = {bool: "yes or no", int: "a whole number", float: "a number"}[kind]
        raise ApevalError(f"setting {name} must be {wanted}; got {value!r}") from None
    return str(value)


def _to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off"):
        return False
    raise ValueError


def _check_limits(name: str, value: Any, limits: Mapping[str, Any]) -> None:
    choices = limits.get("choices")
    if choices is not None and value not in choices:
        raise unknown(f"value of {name}", str(value), choices)
    low, high = limits.get("low"), limits.get("high")
    if value is None or (low is None and high is None):
        return
    inside = (low is None or value >= low) and (high is None or value <= high)
    if not inside:
        raise ApevalError(f"setting {name} must lie in [{low}, {high}]; got {value}")
