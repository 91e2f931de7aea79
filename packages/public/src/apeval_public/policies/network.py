"""A frozen policy network: its weights in a file without code, and its answer in NumPy.

An episode's bits must not depend on the episodes that are simulated beside it. A product of
matrices rounds differently for different numbers of rows, so rows are computed in blocks of one
fixed size, the last one padded with zeros.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

import numpy as np

from apeval.problem.types import Array, FloatArray

_ROWS = 64
_ACTIVATIONS: Mapping[str, Any] = {
    "tanh": np.tanh,
    "relu": lambda h: np.maximum(h, np.float32(0.0)),
}


@dataclass(frozen=True)
class FrozenNetwork:
    """Dense layers with one activation between them, in single precision as they were trained."""

    layers: Sequence[tuple[Array, Array]]
    """(weight of shape (in, out), bias) of each layer."""
    activation: str
    """``tanh`` or ``relu``."""
    provenance: Mapping[str, Any]
    """How it was trained: command, settings, versions, what it reached."""

    def __call__(self, obs: Array) -> FloatArray:
        """The last layer's values.

        Args:
            obs: Observations, shape (n, d).

        Returns:
            Shape (n, outputs); each row's bits depend on that row alone.
        """
        n, blocks = len(obs), -(-len(obs) // _ROWS)
        h = np.zeros((blocks * _ROWS, obs.shape[1]), np.float32)
        h[:n] = obs
        act = _ACTIVATIONS[self.activation]
        for k, (weight, bias) in enumerate(self.layers):
            h = h if k == 0 else act(h)
            h = (h.reshape(blocks, _ROWS, len(weight)) @ weight).reshape(-1, len(bias)) + bias
        return h[:n].astype(np.float64)

    def save(self, path: Path) -> None:
        """Write it as plain arrays and text.

        Args:
            path: The file, ending in ``.npz``.
        """
        about = {"activation": self.activation, **self.provenance}
        arrays: dict[str, Any] = {"provenance": np.array(json.dumps(about))}
        for k, (weight, bias) in enumerate(self.layers):
            arrays |= {f"weight{k}": weight, f"bias{k}": bias}
        np.savez(path, **arrays)


def read(file: Path | IO[bytes]) -> FrozenNetwork:
    """A network that `FrozenNetwork.save` wrote; nothing in the file is executed.

    Args:
        file: A path, or an open file.

    Returns:
        The network.
    """
    with np.load(file, allow_pickle=False) as data:
        about = json.loads(str(data["provenance"]))
        count = sum(key.startswith("weight") for key in data)
        layers = [(data[f"weight{k}"], data[f"bias{k}"]) for k in range(count)]
    return FrozenNetwork(layers, about.pop("activation"), about)


@cache
def load(name: str) -> FrozenNetwork:
    """A network of this package.

    Args:
        name: Such as ``cartpole``.

    Returns:
        The network in ``weights/NAME.npz``.
    """
    with (files(__package__) / "weights" / f"{name}.npz").open("rb") as file:
        return read(file)
