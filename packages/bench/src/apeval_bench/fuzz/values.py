"""Values that nobody expects: numbers, texts and plain data."""

from __future__ import annotations

from random import Random
from typing import Any

NUMBERS: tuple[Any, ...] = (
    0, -1, 1, 2, 3, 7, 64, 255, 1_000_003, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63), 2**64,
    10**30, 0.0, -0.0, 0.5, 1.0, 1.5, -2.5, 1e-320, 1e-300, 1e300, -1e308, 1.7976931348623157e308,
)  # fmt: skip
"""Whole and broken, tiny and huge."""
TEXTS: tuple[str, ...] = (
    "", " ", "x", "none", "NaN", "inf", "-inf", "1e999", "0x10", "1_0", "٣", "½", "true", "{}",
    "[]",
    "../x", "../../../../etc/passwd", "/etc/passwd", "/dev/zero", "~", "a/b", "a\\b", "con",
    "name\n2", "\x1b[31mred", "\u202egnp", "\ufeff", "💥", "é" * 40, "a" * 300, "x" * 5_000,
    "<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "${HOME}", "%s%n", "{0}",
    "os:system", "builtins:exec", "problem.py:problem", "__import__('os').system('touch hit')",
    "walk", "int-v1", "state", "mc", "ape", "\ud800",
)  # fmt: skip
"""Addresses, escapes, markup, other alphabets."""


def plain(rng: Random, deep: int = 2) -> Any:
    """Any value that JSON can hold."""
    kind = rng.randrange(8 if deep else 5)
    if kind in (0, 1):
        return rng.choice(NUMBERS)
    if kind == 2:
        return rng.choice(TEXTS)
    if kind == 3:
        return rng.choice((None, True, False))
    if kind == 4:
        return rng.choice(([], {}, [[]], {"": None}, [0] * 50))
    if kind == 5:
        return [plain(rng, deep - 1) for _ in range(rng.randrange(4))]
    return {rng.choice(TEXTS): plain(rng, deep - 1) for _ in range(rng.randrange(4))}


def places(data: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in nested lists and objects."""
    inside = data.items() if isinstance(data, dict) else enumerate(data)
    found: list[tuple[Any, Any]] = []
    for key, value in list(inside):
        found.append((data, key))
        if isinstance(value, dict | list):
            found += places(value)
    return found


def disturb(rng: Random, data: Any) -> Any:
    """The same nested data, changed in one to three places."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        spots = places(data) if isinstance(data, dict | list) else []
        if not spots or rng.random() < 0.03:
            return plain(rng)
        inside, key = _spot(rng, spots)
        inside[key] = _other(rng, inside[key])
        if rng.random() < 0.08:
            del inside[key]
        elif rng.random() < 0.08:
            _grow(rng, inside, key)
    return data


def _spot(rng: Random, spots: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    """One place. Names come before numbers in long lists, or lists would get all the changes."""
    named = [spot for spot in spots if isinstance(spot[1], str)]
    return rng.choice(named if named and rng.random() < 0.7 else spots)


def _other(rng: Random, value: Any) -> Any:
    """Another value: often of the same kind, so that it passes the first checks."""
    if rng.random() < 0.3:
        return plain(rng)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((value + 1, value - 1, -value, 0, value * 1000, rng.choice(NUMBERS)))
    if isinstance(value, float):
        floats = [float(n) for n in NUMBERS if abs(n) < 1e308]
        return rng.choice((-value, value * 1e6, value * 1e-300, 0.0, 1.0, rng.choice(floats), None))
    if isinstance(value, str):
        return rng.choice((value[:-1], value * 2, rng.choice(TEXTS), rng.choice(TEXTS)))
    if isinstance(value, list):
        return rng.choice((value[:-1], value * 2, [], value[::-1], [value], dict(enumerate(value))))
    if isinstance(value, dict):
        return rng.choice(({}, list(value), {"x": value}, dict(list(value.items())[:-1])))
    return plain(rng)


def _grow(rng: Random, inside: Any, key: Any) -> None:
    if isinstance(inside, dict):
        inside[rng.choice(TEXTS)] = plain(rng)
    else:
        inside.insert(key, plain(rng))
