"""A problem built again from what a run folder says of it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from apeval.adapt.address import find, full_address
from apeval.environments import find_entry, make
from apeval.errors import ApevalError, blame
from apeval.problem.problem import Problem
from apeval.remedies import Option


def build_again(
    name: str,
    parameters: Mapping[str, Any],
    address: str | None,
    where: Path,
    changes: Mapping[str, Any] | None = None,
) -> Problem:
    """A problem that comes with apeval by its name; one of the user's own by the address that he
    gives, because a folder's word alone does not make apeval run code."""
    if address is None and find_entry(name) is None:
        raise ApevalError(
            f"the problem of {where} is code of its own, which apeval does not run on a "
            f"folder's word: name it, {Option('problem', name or 'file.py:factory')}"
        )
    name = name if address is None else full_address(address)
    entry = find_entry(name)
    factory = find(name) if entry is None else entry.factory
    try:
        return make(name, **{**_accepted(factory, parameters), **(changes or {})})
    except ApevalError:
        raise
    except Exception as error:  # parameters of any type may stand in a folder
        raise ApevalError(
            f"{name} cannot be built with the parameters of {where} ({blame(error)})"
        ) from error


def _accepted(factory: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The recorded parameters that a factory takes; a finished problem takes none."""
    if isinstance(factory, Problem):
        return {}
    taken = inspect.signature(factory).parameters
    return {k: v for k, v in parameters.items() if k in taken and k != "name"}
