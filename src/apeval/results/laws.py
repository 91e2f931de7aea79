"""Nominal laws of recorded decisions: stored as numbers, rebuilt from classes known here.

A folder names a law's class; only classes that are loaded already, or that come with apeval, are
looked up, so a folder cannot have anything imported or run.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from apeval.errors import ApevalError
from apeval.problem.laws import Law
from apeval.problem.types import Array
from apeval.remedies import Option
from apeval.results.columns import pack, unpack

_OURS = ("apeval.problem.", "apeval.adapt.", "apeval_paper.", "apeval_public.")
_DEEPEST = 8


def flatten(law: Law, rows: int, name: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """A law of `rows` situations as plain data, and the arrays that have a row for each."""
    columns: dict[str, Array] = {}

    def node(value: Any, path: str) -> Any:
        if isinstance(value, np.ndarray):
            if value.ndim in (1, 2) and len(value) == rows and rows > 1:
                columns[path] = value
                return {"column": path}
            return {"array": pack(value, path)}
        if isinstance(value, Law) and is_dataclass(value):
            kind = type(value)
            names = [f.name for f in fields(value)]
            parts = {name: node(getattr(value, name), f"{path}_{name}") for name in names}
            return {"law": f"{kind.__module__}:{kind.__qualname__}", "fields": parts}
        if isinstance(value, list | tuple):
            return {"list": [node(v, f"{path}_{k}") for k, v in enumerate(value)]}
        if value is None or isinstance(value, bool | int | str):
            return {"plain": value}
        if isinstance(value, float | np.floating | np.integer | np.bool_):
            return {"scalar": pack(np.asarray(value), path)}
        raise ApevalError(
            f"the law {type(law).__name__} holds a {type(value).__name__}, which a run folder "
            "cannot store: a law's fields must be arrays, numbers or laws"
        )

    return node(law, name), columns


def rebuild(data: Any, columns: Mapping[str, Array], where: Path) -> Law:
    """The inverse of `flatten`."""

    def value(it: Any, depth: int) -> Any:
        if not isinstance(it, dict) or depth > _DEEPEST:
            raise ApevalError(f"{where} is damaged: the description of a law is not readable")
        if "column" in it:
            if not isinstance(it["column"], str) or it["column"] not in columns:
                raise ApevalError(f"{where} is damaged: a column of a law is missing")
            return columns[it["column"]]
        if "array" in it:
            return unpack(it["array"], where)
        if "scalar" in it:
            return unpack(it["scalar"], where)[()]
        if "list" in it and isinstance(it["list"], list):
            return tuple(value(v, depth + 1) for v in it["list"])
        if "plain" in it and isinstance(it["plain"], bool | int | str | None):
            return it["plain"]
        if "law" in it and isinstance(it.get("fields"), dict):
            return _make(it, depth)
        raise ApevalError(f"{where} is damaged: the description of a law is not readable")

    def _make(it: dict[str, Any], depth: int) -> Law:
        kind = _find(it["law"], where)
        wanted = {f.name for f in fields(kind)} if is_dataclass(kind) else set()
        if set(it["fields"]) != wanted:
            raise ApevalError(f"{where} is damaged: the fields of {kind.__name__} do not fit")
        parts = {name: value(v, depth + 1) for name, v in it["fields"].items()}
        try:
            return kind(**parts)
        except Exception as error:  # a user's class may check its fields in any way
            raise ApevalError(f"{where} is damaged: {kind.__name__} refuses ({error})") from None

    law = value(data, 0)
    if not isinstance(law, Law):
        raise ApevalError(f"{where} is damaged: it holds no law")
    return law


def _find(address: Any, where: Path) -> type[Law]:
    module, _, name = address.partition(":") if isinstance(address, str) else ("", "", "")
    if module.startswith(_OURS) and module not in sys.modules:
        try:
            importlib.import_module(module)
        except ImportError:
            raise ApevalError(f"{where} names the law {address}, which is not known") from None
    for kind in _loaded(Law.__subclasses__()):
        if (kind.__module__, kind.__qualname__) == (module, name):
            return kind
    raise ApevalError(
        f"{where} holds laws of the class {address}, which belongs to the problem's own code: "
        f"name the problem, {Option('problem', 'file.py:factory')}"
    )


def _loaded(kinds: list[type[Law]]) -> list[type[Law]]:
    """These classes, and all that derive from them."""
    return [k for kind in kinds for k in (kind, *_loaded(kind.__subclasses__()))]
