"""A torch module as a policy. Torch is imported only when used."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from apeval.adapt.batches import mixed
from apeval.adapt.policies import Answer, InBatches, Policy
from apeval.adapt.spaces import is_discrete
from apeval.errors import ProblemError
from apeval.problem.types import Array, FloatArray


def is_module(policy: Any) -> bool:
    """Whether an object is a torch module; torch is not loaded for it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(policy, torch.nn.Module)


@contextmanager
def quietly() -> Iterator[None]:
    """No gradients, and one thread: products that threads share are rounded by their number."""
    import torch

    threads = torch.get_num_threads()
    if threads != 1:
        torch.set_num_threads(1)
    try:
        with torch.no_grad():
            yield
    finally:
        if threads != 1:
            torch.set_num_threads(threads)


class TorchPolicy(InBatches):
    """A torch module, put into evaluation mode: the largest output's number for discrete actions,
    the outputs themselves for continuous ones."""

    def __init__(self, module: Any, space: Any) -> None:
        self.module, self.space = module.eval(), space

    def fitted(self, space: Any, seen: Any) -> Policy:
        """Asks for one observation at a time where the rows of a batch are not independent."""
        self.together = mixed(self._outputs, seen) is None
        return super().fitted(space, seen)

    def rows(self, observations: Any, u: FloatArray, memories: Sequence[Any]) -> Answer:
        return as_actions(self._outputs(observations), self.space), memories

    def _outputs(self, observations: Any) -> Array:
        with quietly():
            out = self.module(as_tensors(observations, self.module))
        return numbers(out)


def as_tensors(observations: Any, module: Any) -> Any:
    """A batch of observations in the type and on the device of a module's weights."""
    import torch

    if isinstance(observations, dict):
        return {name: as_tensors(part, module) for name, part in observations.items()}
    if isinstance(observations, tuple):
        return tuple(as_tensors(part, module) for part in observations)
    weights = next(module.parameters(), None)
    if weights is None:
        return torch.as_tensor(observations)
    return torch.as_tensor(observations, device=weights.device, dtype=weights.dtype)


def numbers(out: Any) -> Array:
    """A module's output as an array."""
    import torch

    if not isinstance(out, torch.Tensor):
        raise ProblemError(
            f"the torch module returned a {type(out).__name__}, expected one tensor: give "
            "policy=lambda obs: … and pick the action out of what it returns"
        )
    values: Array = out.cpu().numpy()
    return values


def as_actions(values: Array, space: Any) -> Array:
    """Outputs of a network as actions."""
    if not is_discrete(space):
        return values
    if values.shape[1:] != (int(space.n),):
        raise ProblemError(
            f"the policy's network returned shape {values.shape} for {space}: it must give "
            f"{space.n} scores for each observation, the largest of which is chosen"
        )
    return np.asarray(values.argmax(axis=1) + int(space.start))
