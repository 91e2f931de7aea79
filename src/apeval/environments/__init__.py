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
    """Build a problem: a registered one by its name, or your own by its address.

    Args:
        name: A registered name (`apeval list` shows them), or ``file.py:factory`` or
            ``module:factory`` for your own. An address runs the code that it names.
        **parameters: Override the defaults of the problem's factory.

    Returns:
        The problem, with its `parameters` filled in.

    Raises:
        UnknownNameError: No problem has this name; the nearest one is suggested.
        ProblemError: A parameter is unknown, or its value makes no problem.

    Examples:
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
