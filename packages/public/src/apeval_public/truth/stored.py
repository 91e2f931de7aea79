"""Truths that took long to compute: one data file per problem, one entry per setting."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from apeval.problem.truth import Truth


@cache
def entries(name: str) -> list[dict[str, Any]]:
    """What is stored for a problem.

    Args:
        name: The problem.

    Returns:
        Entries with ``parameters``, ``value``, ``standard_error``, ``method`` and how to obtain
        it again; none where there is no file.
    """
    file = files(__package__).joinpath("values", f"{name}.json")
    if not file.is_file():
        return []
    found: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return found


def stored(name: str, parameters: Mapping[str, Any]) -> Truth | None:
    """The stored truth of a problem with exactly these parameters.

    Args:
        name: The problem.
        parameters: What it was built with.

    Returns:
        The truth, or None where none was computed.
    """
    for entry in entries(name):
        if entry["parameters"] == dict(parameters):
            rest = {k: v for k, v in entry.items() if k not in _FIELDS}
            return Truth(entry["value"], entry["standard_error"], entry["method"], rest)
    return None


_FIELDS = ("parameters", "value", "standard_error", "method")
