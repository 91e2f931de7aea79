"""The problems that come with apeval, and those of installed packages: found by name, one module
(or package) each, of which only the one that has the name is loaded."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import math
import pkgutil
from typing import Any

from apeval.adapt.address import build, check_parameters, is_address
from apeval.errors import ApevalError, ProblemError, unknown
from apeval.plugins import PROBLEMS, plugged
from apeval.problem.problem import Problem
from apeval.problem.registry import ENTRIES, RegisteredProblem

ELSEWHERE = {
    "paper": (
        "int-multi", "int-v0", "int-v1", "lunarlander", "minigrid-s1", "minigrid-s2", "minigrid-s3",
        "minigrid-stuck", "pendulum", "pendulum-discrete",
    ),
    "public": (
        "aa228v-pendulum", "brp", "cartpole", "cluster", "double-integrator", "double-well",
        "highway-cars", "inverted-pendulum", "jsbsim-altitude", "lane-keeper", "nofis-cube",
        "nofis-leaf", "nofis-levy", "nofis-powell", "nofis-rosen", "ornstein-uhlenbeck",
        "philosophers", "rp107", "rp110", "rp111", "rp25", "rp28", "rp77", "sumo-follower",
        "zeroconf",
    ),
}  # fmt: skip
"""Problems of the extras, by extra, for the message where one is missing."""


def entries() -> dict[str, RegisteredProblem]:
    """All registered problems, by name, with those of installed packages."""
    _load_own()
    for entry_point in plugged(PROBLEMS).values():
        entry_point.load()
    return dict(sorted(ENTRIES.items()))


def find_entry(name: str) -> RegisteredProblem | None:
    """A registered problem, or None; only the module that has it is loaded.

    Args:
        name: The problem's name; `name@backend` is looked for in the module that has `name`.
    """
    if name not in ENTRIES:
        base = name.partition("@")[0]
        found = plugged(PROBLEMS).get(base)
        if found is not None:
            found.load()
        elif base.isidentifier() and importlib.util.find_spec(f"{__name__}.{base}"):
            importlib.import_module(f"{__name__}.{base}")
        else:
            _load_own()
    return ENTRIES.get(name)


def _load_own() -> None:
    """Load all modules beside this file."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")


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
    entry = find_entry(name) if isinstance(name, str) else None
    if entry is None:
        if isinstance(name, str) and is_address(name):
            return build(name, parameters)
        if isinstance(name, str):
            _refuse_missing(name)
        raise unknown("problem", name, entries())
    given = check_parameters(name, entry.factory, parameters, told=("name",))
    for key, value in given.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ProblemError(f"{name}: {key} must be a finite number; got {value}")
    if "name" in inspect.signature(entry.factory).parameters:
        given["name"] = name
    return entry.factory(**given)


def _refuse_missing(name: str) -> None:
    """A problem of an extra that is not installed is no unknown name."""
    for extra, problems in ELSEWHERE.items():
        if name.partition("@")[0] in problems and not set(problems) <= set(plugged(PROBLEMS)):
            raise ApevalError(
                f"{name} is in a package that is not installed: pip install 'apeval[{extra}]'"
            )
