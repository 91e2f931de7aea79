"""The problems that come with apeval: one module (or package) each, found by looking."""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
from typing import Any

from apeval.adapt.address import build, check_parameters, is_address
from apeval.errors import ProblemError, unknown
from apeval.problem.problem import Problem
from apeval.problem.registry import ENTRIES, Entry


def entries() -> dict[str, Entry]:
    """All registered problems, by name."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return dict(sorted(ENTRIES.items()))


def make(name: str, /, **parameters: Any) -> Problem:
    """Build a problem: a registered one by its name, or your own by its address,
    ``file.py:factory`` or ``module:factory``. Parameters override the defaults of its factory.

    >>> make("walk", p_up=0.4).horizon is None
    True
    """
    known = entries()
    if not isinstance(name, str) or name not in known:
        if isinstance(name, str) and is_address(name):
            return build(name, parameters)
        raise unknown("problem", name, known)
    factory = known[name].factory
    given = check_parameters(name, factory, parameters, told=("name",))
    for key, value in given.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ProblemError(f"{name}: {key} must be a finite number; got {value}")
    if "name" in inspect.signature(factory).parameters:
        given["name"] = name
    return factory(**given)
