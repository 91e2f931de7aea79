"""A torch module with a hidden state as a policy. Torch is imported only when used."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from apeval.adapt.batches import SIZE, mixed, stacked
from apeval.adapt.memory_policy import joined_rows
from apeval.adapt.policies import Answer, InBatches, Policy
from apeval.adapt.recurrent_policies import RECURRENT, recurrent_layer, with_memory
from apeval.adapt.torch_policy import TorchPolicy, as_actions, as_tensors, numbers, quietly
from apeval.errors import ProblemError, blame
from apeval.problem.types import Array, FloatArray

_NAMES = ("state", "states", "hidden", "hidden_state", "hx", "memory")
_FORM = (
    "a torch module with memory is forward(obs, state) -> (output, state), with observations of "
    "shape (n, …), and state None at an episode's start"
)


def hands_on_a_state(module: Any) -> bool:
    """Whether a module's forward takes (obs, state): a second parameter that is called like one,
    or any second one where there are recurrent layers."""
    if type(module).__name__ in RECURRENT:  # a bare layer has no output but its state
        return False
    try:
        parameters = list(inspect.signature(module.forward).parameters.values())
    except (TypeError, ValueError):
        return False
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(places) < 2 or any(p.default is p.empty for p in places[2:]):
        return False
    return places[1].name in _NAMES or recurrent_layer(module) is not None


class TorchMemoryPolicy(InBatches):
    """A torch module with a hidden state, put into evaluation mode; its outputs are read as those
    of a module without."""

    has_memory = True

    def __init__(self, module: Any, space: Any) -> None:
        self.module, self.space = module.eval(), space
        self.axes: list[int] = []
        """Which axis counts the episodes, in each tensor of a state."""
        self.like: Any = None
        """How these tensors are put together: the state's structure, with their numbers."""
        self.first: tuple[Array, ...] | None = None
        """The state at an episode's start, where zeros are the same as None."""

    def start(self) -> Any:
        return self.first

    def rows(self, observations: Any, u: FloatArray, memories: Sequence[Any]) -> Answer:
        size, state = len(memories), None
        if memories[0] is not None:
            state = self._state(stacked(memories, np.arange(size), size))
        outputs, leaves = self._asked(observations, state)
        columns = [np.moveaxis(leaf, axis, 0) for leaf, axis in zip(leaves, self.axes, strict=True)]
        kept = [tuple(column[row].copy() for column in columns) for row in range(size)]
        return as_actions(outputs, self.space), kept

    def _asked(self, observations: Any, state: Any) -> tuple[Array, list[Array]]:
        """Outputs, and the tensors of the state after them."""
        with quietly():
            found = self.module(as_tensors(observations, self.module), state)
        if not isinstance(found, tuple) or len(found) != 2:
            raise with_memory(
                f"a {type(self.module).__name__} whose forward takes a state and returns a "
                f"{type(found).__name__}; {_FORM}"
            )
        return numbers(found[0]), [numbers(leaf) for leaf in _leaves(found[1])]

    def _state(self, columns: Sequence[Array]) -> Any:
        """A state of the module's own form, from rows of its tensors."""
        import torch

        weights = next(self.module.parameters(), None)
        device = None if weights is None else weights.device
        tensors = [
            torch.as_tensor(column, device=device).movedim(0, axis).contiguous()
            for column, axis in zip(columns, self.axes, strict=True)
        ]
        return _built(self.like, tensors)

    def fitted(self, space: Any, seen: Any) -> Policy:
        """Looks at the form of the state.

        Raises:
            ProblemError: The module cannot be asked for a batch, or its rows mix.
        """
        drawn, whole = _observations(seen, SIZE), _observations(seen, SIZE - 1)
        try:
            with quietly():
                found = self.module(as_tensors(drawn, self.module), None)
            if not isinstance(found, tuple) and recurrent_layer(self.module) is None:
                return TorchPolicy(self.module, self.space).fitted(space, seen)  # it keeps nothing
            _, leaves = self._asked(drawn, None)
            _, fewer = self._asked(whole, None)
        except ProblemError:
            raise
        except Exception as error:
            raise ProblemError(
                f"the torch module raised {blame(error)} on 16 observations and state None: {_FORM}"
            ) from error
        self.axes = [_axis(a.shape, b.shape) for a, b in zip(leaves, fewer, strict=True)]
        self.like = _numbered(found[1])
        why = mixed(self._first, seen)
        if why is not None:
            raise ProblemError(
                f"the torch module cannot be asked for 16 episodes at once: {why}. {_FORM}; or "
                "give apeval.MemoryPolicy, functions of one observation"
            )
        self.first = self._zeros(drawn, leaves)
        return super().fitted(space, seen)

    def _first(self, observations: Any) -> Array:
        """The first outputs and the states after them, a row for each."""
        outputs, leaves = self._asked(observations, None)
        columns = [np.moveaxis(leaf, axis, 0) for leaf, axis in zip(leaves, self.axes, strict=True)]
        return joined_rows([outputs, *columns])

    def _zeros(self, observations: Any, leaves: list[Array]) -> tuple[Array, ...] | None:
        """A state of zeros for one episode, if it is the one that None stands for."""
        zeros = [
            np.moveaxis(np.zeros_like(a), k, 0) for a, k in zip(leaves, self.axes, strict=True)
        ]
        try:
            there = self._asked(observations, self._state(zeros))
        except Exception:
            return None
        here = self._asked(observations, None)
        same = all(map(np.array_equal, (there[0], *there[1]), (here[0], *here[1])))
        return tuple(column[0].copy() for column in zeros) if same else None


def _observations(space: Any, size: int) -> Any:
    drawn = copy.deepcopy(space)  # the user's own generator is left alone
    drawn.seed(0)
    return stacked([drawn.sample() for _ in range(size)], np.arange(size), size)


def _axis(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """The axis that counts the episodes: its size is that of the batch."""
    sizes = zip(one, other, strict=True) if len(one) == len(other) else ()
    axes = [k for k, pair in enumerate(sizes) if pair == (SIZE, SIZE - 1)]
    if len(axes) != 1:
        raise ProblemError(
            f"the torch module's state has shape {one} for {SIZE} observations and {other} for "
            f"{SIZE - 1}, which shows no part for each of them: {_FORM}"
        )
    return axes[0]


def _leaves(state: Any) -> list[Any]:
    """The tensors in a state."""
    if isinstance(state, dict):
        return [leaf for value in state.values() for leaf in _leaves(value)]
    if isinstance(state, tuple | list):
        return [leaf for value in state for leaf in _leaves(value)]
    return [state]


def _mapped(state: Any, leaf: Callable[[Any], Any]) -> Any:
    if isinstance(state, dict):
        return {key: _mapped(value, leaf) for key, value in state.items()}
    if isinstance(state, tuple) and hasattr(state, "_fields"):
        return type(state)(*(_mapped(value, leaf) for value in state))
    if isinstance(state, tuple | list):
        return type(state)(_mapped(value, leaf) for value in state)
    return leaf(state)


def _numbered(state: Any) -> Any:
    """The state's structure, with the numbers of its tensors in their places."""
    count = iter(range(len(_leaves(state))))
    return _mapped(state, lambda _: next(count))


def _built(like: Any, tensors: Sequence[Any]) -> Any:
    return _mapped(like, lambda number: tensors[number])
