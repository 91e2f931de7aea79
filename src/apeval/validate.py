"""What an argument may be: one set of rules for the command line and for Python.

Every function returns the value as a plain Python one, or raises an `ApevalError` of one line that
names the argument and says what it may be.
"""

from __future__ import annotations

import math
import os
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from apeval.errors import ApevalError

MOST = 10**12
"""Episodes or decisions that may be asked for at once."""
LARGEST_SEED = 2**63 - 1
SMALLEST_ERROR = 1e-6
"""A relative error goes down with the square root of the episodes, of which `MOST` are the most."""
SUREST = 1.0 - 1e-12
"""The highest confidence: quantiles beyond are infinite in a computer's numbers."""
YEAR = 365 * 86_400.0
"""Seconds: the longest time that can be waited for."""


def number(name: str, value: Any, what: str = "a finite number") -> float:
    """A finite number.

    >>> number("gain", True)
    Traceback (most recent call last):
    apeval.errors.ApevalError: gain must be a finite number; got True
    """
    try:
        as_float = float(value) if _is_real(value) else math.nan
    except OverflowError:  # a whole number beyond all floats
        as_float = math.nan
    if not math.isfinite(as_float):
        raise _refused(name, what, value)
    return as_float


def positive(name: str, value: Any) -> float:
    """A finite number above 0."""
    return _above_zero(name, value, "a finite number above 0")


def fraction(name: str, value: Any, example: str = "") -> float:
    """A number strictly between 0 and 1."""
    such_as = f", such as {example}" if example else ""
    inside = number(name, value, what=f"a number strictly between 0 and 1{such_as}")
    if not 0.0 < inside < 1.0:
        raise ApevalError(f"{name} must lie strictly between 0 and 1{such_as}; got {_shown(value)}")
    return inside


def confidence(value: Any, name: str = "confidence") -> float:
    """The confidence of an interval.

    >>> confidence(2.0)
    Traceback (most recent call last):
    apeval.errors.ApevalError: confidence must lie strictly between 0 and 1; got 2.0
    """
    inside = fraction(name, value)
    if inside > SUREST:
        raise ApevalError(f"{name} must be at most 1 - 1e-12; got {_shown(value)}")
    return inside


def target_error(value: Any, name: str = "target_error") -> float:
    """The wanted half-width of an interval, relative to the estimate."""
    error = fraction(name, value, "0.1")
    if error < SMALLEST_ERROR:
        raise ApevalError(
            f"{name} must be at least {SMALLEST_ERROR:g}, which is what {MOST:,} failures would "
            f"give; got {_shown(value)}"
        )
    return error


def whole(name: str, value: Any, least: int, most: int = MOST) -> int:
    """A whole number from `least` to `most`; NumPy's are taken, True and False are not.

    >>> whole("block", 0, 1)
    Traceback (most recent call last):
    apeval.errors.ApevalError: block must be a whole number from 1 to 1,000,000,000,000; got 0
    """
    found = _integer(value)
    if found is None or not least <= found <= most:
        raise _refused(name, f"a whole number from {least:,} to {most:,}", value)
    return found


def seed(value: Any, name: str = "seed") -> int:
    """What the random numbers of a run are made from."""
    found = _integer(value)
    if found is None or not 0 <= found <= LARGEST_SEED:
        raise _refused(name, "a whole number ≥ 0 and below 2**63", value)
    return found


def seconds(name: str, value: Any) -> float:
    """A time that something may take."""
    what = "a number of seconds above 0 and of at most a year"
    time = _above_zero(name, value, what)
    if time > YEAR:
        raise _refused(name, what, value)
    return time


def having(name: str, value: Any, what: str, *attributes: str) -> None:
    """An object of another part of apeval, known by what it can do."""
    if not all(hasattr(value, attribute) for attribute in attributes):
        raise _refused(name, what, value)


def listener(value: Any, name: str = "listener") -> None:
    """A function to be told of something, or None."""
    if value is not None and not callable(value):
        raise _refused(name, "a function or None", value)


def texts(name: str, value: Any, what: str) -> list[str]:
    """A text, or several.

    >>> texts("nominal", "std*1.2", "a change")
    ['std*1.2']
    """
    several = [value] if isinstance(value, str) else value
    if not isinstance(several, list | tuple) or not all(isinstance(it, str) for it in several):
        raise _refused(name, what, value)
    return list(several)


def input_folder(name: str, value: Any) -> Path:
    """A folder to read; whether it is there is seen when it is read."""
    return _look(name, _path(name, value, "a folder"))


def output_file(name: str, value: Any) -> Path:
    """Where a file can be written, as far as can be said before it is.

    >>> output_file("out", " ")
    Traceback (most recent call last):
    apeval.errors.ApevalError: out must name a file to write; got ' '
    """
    path = _path(name, value, "a file to write")
    if _look(name, path).is_dir():
        raise ApevalError(f"{name} must name a file to write; {path} is a folder")
    return path


def output_folder(name: str, value: Any) -> Path:
    """Where a folder is, or can be made."""
    path = _look(name, _path(name, value, "a folder"))
    if path.exists() and not path.is_dir():
        raise ApevalError(f"{name} must name a folder; {path} is a file")
    return path


def _path(name: str, value: Any, what: str) -> Path:
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise ApevalError(f"{name} must name {what}; got {_shown(value)}")
    return Path(text)


def _look(name: str, path: Path) -> Path:
    """The path, unless the system cannot even look there."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        pass  # to be made, or said when it cannot be
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ApevalError(f"{name} cannot be {_shown(str(path))}: {why}") from None
    return path


def _above_zero(name: str, value: Any, what: str) -> float:
    size = number(name, value, what)
    if size <= 0.0:
        raise _refused(name, what, value)
    return size


def _integer(value: Any) -> int | None:
    return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else None


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _refused(name: str, what: str, value: Any) -> ApevalError:
    return ApevalError(f"{name} must be {what}; got {_shown(value)}")


def _shown(value: Any) -> str:
    """A value in a message: NumPy's numbers as Python writes them, long ones cut."""
    try:
        text = str(value) if _is_real(value) else repr(value)
    except Exception:  # a class whose own words fail, or a whole number with too many digits
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:60]}… ({len(text)} characters)"
