"""Policies with memory, such as recurrent networks: recognised and refused.

A policy is asked for one observation at a time, in any order of episodes. One that keeps something
from step to step would be evaluated without it.
"""

from __future__ import annotations

import sys
from typing import Any

from apeval.errors import ProblemError

_HOOKS = ("initial_state", "get_initial_state", "lstm_hidden_state_shape")
_RECURRENT = {
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
        f"the policy has memory ({what}), and apeval would evaluate it without: it asks for one "
        "observation at a time. Give a policy without memory, or put what it remembers into the "
        "environment's observation (a wrapper that keeps it and starts anew at reset). If its "
        "action depends on the observation alone all the same, say so with a function: "
        "policy=lambda obs: …"
    )


def _sign(part: Any) -> str | None:
    """What shows that an object keeps something from step to step; None where nothing does."""
    if isinstance(part, type):
        return None
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(part, torch.nn.Module):
        for layer in part.modules():
            name = getattr(layer, "original_name", type(layer).__name__)  # before torch.jit
            bases = {base.__name__ for base in type(layer).__mro__}
            if name in _RECURRENT or bases & _RECURRENT:
                return f"with a recurrent layer, {name}"
    for name in _HOOKS:
        if getattr(part, name, None) is not None:
            return f"with {name}"
    if callable(getattr(part, "reset", None)):
        return "with reset()"
    return None
