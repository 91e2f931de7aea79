"""The frozen proposal as numbers: arrays in safetensors, their places in JSON.

The proposal is walked field by field, so that whatever a method learned is kept; what has no
numbers (functions, dictionaries of states) is named with its size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from apeval.errors import ApevalError
from apeval.problem.types import Array
from apeval.results.columns import TYPES
from apeval.results.dataclass_json import damaged
from apeval.results.files import finite, read_object, regular, write_bytes, write_json
from apeval.simulate.adversary import Mixture

ARRAYS, STRUCTURE = "model.safetensors", "model.json"
SCHEMA_VERSION = 1
_DEEPEST = 12


@dataclass(frozen=True)
class StoredModel:
    """What a method learned: plain data that names arrays."""

    structure: Mapping[str, Any]
    arrays: Mapping[str, Array]


def model_of(method: str, proposal: Mixture) -> StoredModel:
    """The proposal's components, with their shares."""
    walk = _ProposalWalk()
    shares = np.asarray(proposal.shares, np.float64)
    walk.arrays["shares"] = shares / shares.sum()
    parts = [walk.of(q, f"components.{k}", 0) for k, q in enumerate(proposal.components)]
    about = {"schema_version": SCHEMA_VERSION, "method": method}
    return StoredModel({**about, "shares": {"array": "shares"}, "components": parts}, walk.arrays)


def write_model(folder: Path, model: StoredModel) -> None:
    """Write both files."""
    from safetensors.numpy import save

    arrays = {name: np.ascontiguousarray(values) for name, values in model.arrays.items()}
    write_bytes(folder / ARRAYS, save(arrays))
    write_json(folder / STRUCTURE, dict(model.structure))


def read_model(folder: Path) -> StoredModel:
    """Read both files; nothing in them is executed."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    path = regular(folder / ARRAYS)
    structure = read_object(folder / STRUCTURE)
    if structure.get("schema_version") != SCHEMA_VERSION:
        raise ApevalError(
            f"{folder / STRUCTURE} has the schema version {structure.get('schema_version')!r}; "
            f"this apeval reads {SCHEMA_VERSION}"
        )
    try:
        arrays = load(path.read_bytes())
    except (SafetensorError, OSError, ValueError, KeyError, MemoryError) as error:
        raise damaged(path, str(error)) from None
    _check_structure(structure, arrays, folder / STRUCTURE)
    return StoredModel(structure, arrays)


def _check_structure(structure: Mapping[str, Any], arrays: Mapping[str, Array], path: Path) -> None:
    """It has the parts that `model_of` writes, and every array that it names is there."""
    parts, shares = structure.get("components"), structure.get("shares")
    if not isinstance(structure.get("method"), str) or not isinstance(parts, list):
        raise damaged(path, "it does not list the proposal's components")
    held = arrays.get("shares")
    if shares != {"array": "shares"} or held is None or held.shape != (len(parts),):
        raise damaged(path, "the components and their shares do not fit")
    level: list[Any] = [parts]
    while level:
        for it in level:
            if isinstance(it, dict) and it.keys() == {"array"} and not _is_there(it, arrays):
                raise damaged(path, f"it names the array {it['array']!r}, which is not stored")
        level = [v for it in level if isinstance(it, dict | list) for v in _inside(it)]


def _is_there(it: Mapping[str, Any], arrays: Mapping[str, Array]) -> bool:
    return isinstance(it["array"], str) and it["array"] in arrays


def _inside(it: dict[str, Any] | list[Any]) -> list[Any]:
    return list(it.values()) if isinstance(it, dict) else it


@dataclass
class _ProposalWalk:
    """Collects arrays; an object met twice is stored once."""

    arrays: dict[str, Array] = field(default_factory=dict)
    _seen: dict[int, tuple[str, Any]] = field(default_factory=dict)

    def of(self, value: Any, path: str, depth: int) -> Any:
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float | np.floating | np.integer | np.bool_):
            plain = value.item() if isinstance(value, np.generic) else value
            return finite(plain) if isinstance(plain, float) else plain
        if id(value) in self._seen:
            return {"same_as": self._seen[id(value)][0]}
        if isinstance(value, np.ndarray):
            return self._array(value, path)
        if isinstance(value, list | tuple):
            return [self.of(v, f"{path}.{k}", depth + 1) for k, v in enumerate(value)]
        if callable(getattr(value, "state_dict", None)):  # a torch module
            self._seen[id(value)] = (path, value)
            tensors = {k: v.detach().cpu().numpy().copy() for k, v in value.state_dict().items()}
            parts = {k: self._array(v, f"{path}.{k}") for k, v in tensors.items()}
            return {"class": type(value).__name__, **parts}
        if isinstance(value, Mapping):
            return {"entries": len(value)}
        if callable(value) or depth > _DEEPEST:
            return {"class": type(value).__name__}
        self._seen[id(value)] = (path, value)
        public = {k: v for k, v in getattr(value, "__dict__", {}).items() if not k.startswith("_")}
        parts = {k: self.of(v, f"{path}.{k}", depth + 1) for k, v in public.items()}
        return {"class": type(value).__name__, **parts}

    def _array(self, values: Array, path: str) -> dict[str, Any]:
        if values.dtype.name not in TYPES:
            return {"class": "array", "type": str(values.dtype), "shape": list(values.shape)}
        self._seen[id(values)] = (path, values)
        self.arrays[path] = values
        return {"array": path}
