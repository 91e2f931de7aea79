"""Policies that have memory and do not hand it on: recognised and refused.

A policy is asked for the observations of many episodes, in any order. One that keeps something from
step to step must give it back with each action, or it would be evaluated without it.
"""

from __future__ import annotations

import sys
from typing import Any

from apeval.errors import ProblemError

_HOOKS = ("initial_state", "get_initial_state", "lstm_hidden_state_shape")
RECURRENT = {
    *("RNNBase", "RNN", "LSTM", "GRU"),
    *("RNNCellBase", "RNNCell", "LSTMCell", "GRUCell"),
}
"""Classes of torch.nn, by name: quantised and scripted layers are of other classes."""
_INSIDE = ("policy", "__self__", "func")
"""Where a model, a bound method and functools.partial keep what answers."""


def refuse_memory(policy: Any) -> None:
    """Refuse a policy that shows by its parts that it has memory.

    Args:
        policy: What a user gives: a model, a torch module, a function or another object.

    Raises:
        ProblemError: It has recurrent layers, a reset() or an initial state.
    """
    for part in (policy, *(getattr(policy, name, None) for name in _INSIDE)):
        sign = None if part is None else _sign(part)
        if sign is not None:
            raise with_memory(f"a {type(part).__name__} {sign}")


def with_memory(what: str) -> ProblemError:
    """The error for a policy with memory.

    Args:
        what: Which policy, and what shows its memory.
    """
    return ProblemError(
        f"the policy has memory ({what}), and apeval would evaluate it without. Let it hand on "
        "what it remembers: an object with reset() -> state and act(obs, state) -> (action, state) "
        "(or apeval.MemoryPolicy(act, reset)), a torch module with forward(obs, state) -> (output, "
        "state), or a RecurrentPPO of sb3-contrib. If its action depends on the observation alone "
        "all the same, say so with a function: policy=lambda obs: …"
    )


def _sign(part: Any) -> str | None:
    """What shows that an object keeps something from step to step; None where nothing does."""
    if isinstance(part, type):
        return None
    layer = recurrent_layer(part)
    if layer is not None:
        return f"with a recurrent layer, {layer}"
    for name in _HOOKS:
        if getattr(part, name, None) is not None:
            return f"with {name}"
    if callable(getattr(part, "reset", None)):
        return "with reset()"
    return None


def recurrent_layer(part: Any) -> str | None:
    """The name of a torch module's first recurrent layer; None where it has none."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(part, torch.nn.Module):
        return None
    for layer in part.modules():
        name = str(getattr(layer, "original_name", type(layer).__name__))  # before torch.jit
        bases = {base.__name__ for base in type(layer).__mro__}
        if name in RECURRENT or bases & RECURRENT:
            return name
    return None
