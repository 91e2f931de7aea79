"""The frozen agent policies: a Q-network's weights, and its greedy action in every state."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

import numpy as np

from apeval.problem.types import Array, FloatArray
from apeval_paper.environments.minigrid import rules

#: (weight of shape (out, in), bias) of each layer, as torch keeps them.
Layers = Sequence[tuple[Array, Array]]


def q_values(layers: Layers) -> FloatArray:
    """Q(s, a_A) in every state, shape (2208, 3): dense layers with ReLU between them.

    In double precision, so that a greedy action does not hang on a library's rounding.
    """
    h = rules.one_hot(np.arange(len(rules.STATES)))
    for k, (weight, bias) in enumerate(layers):
        h = h if k == 0 else np.maximum(h, 0.0)
        h = h @ weight.astype(np.float64).T + bias.astype(np.float64)
    return h


def greedy(layers: Layers) -> Array:
    """a_A = argmax Q(s, ·) in every state."""
    actions: Array = q_values(layers).argmax(axis=1)
    return actions


def save(path: Path, layers: Layers, provenance: Mapping[str, Any]) -> None:
    """Write a network and where it comes from: plain arrays and text, no code."""
    arrays: dict[str, Any] = {"provenance": np.array(json.dumps(provenance))}
    for k, (weight, bias) in enumerate(layers):
        arrays |= {f"weight{k}": weight, f"bias{k}": bias}
    np.savez(path, **arrays)


def read(file: Path | IO[bytes]) -> tuple[Layers, dict[str, Any]]:
    """A network and its provenance, as `save` wrote them."""
    with np.load(file, allow_pickle=False) as data:
        count = sum(key.startswith("weight") for key in data)
        layers = [(data[f"weight{k}"], data[f"bias{k}"]) for k in range(count)]
        return layers, json.loads(str(data["provenance"]))


@cache
def load(name: str) -> tuple[Layers, dict[str, Any]]:
    """A shipped network, "dqn" or "dqn-stuck", with its provenance."""
    with (files(__package__) / f"{name}.npz").open("rb") as file:
        return read(file)
