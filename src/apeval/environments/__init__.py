"""The problems that come with apeval: one module (or package) each, found by looking."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import typing
from typing import Any

from apeval.errors import ApevalError, unknown
from apeval.problem.problem import Problem
from apeval.problem.registry import ENTRIES, Entry
from apeval.problem.settings import convert


def entries() -> dict[str, Entry]:
    """All registered problems, by name."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return dict(sorted(ENTRIES.items()))


def make(name: str, **parameters: Any) -> Problem:
    """Build a registered problem; parameters override the defaults of its factory.

    >>> make("walk", p_up=0.4).horizon is None
    True
    """
    known = entries()
    if name not in known:
        raise unknown("problem", name, known)
    factory = known[name].factory
    accepted = inspect.signature(factory).parameters
    for key in parameters:
        if key not in accepted or key == "name":
            adjustable = [p for p in accepted if p != "name"]
            if not adjustable:
                raise ApevalError(f"problem '{name}' has no parameter to set (got '{key}')")
            raise unknown(f"parameter of {name}", key, adjustable)
    hints = typing.get_type_hints(factory)
    for key, value in parameters.items():
        if isinstance(value, str) and key in hints:
            parameters[key] = convert(key, hints[key], value)
    if "name" in accepted:
        parameters["name"] = name
    return factory(**parameters)
