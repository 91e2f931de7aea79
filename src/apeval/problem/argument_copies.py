"""What user code gets is its own: arrays are copied before they are handed out.

An environment may work in place on what it is given (``a_E *= gain``, ``obs -= mean``). What is
recorded and weighted is what was drawn, so user code never holds the arrays of a record.
"""

from __future__ import annotations

import copy
import functools
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from apeval.plugins import is_ours

if TYPE_CHECKING:
    from apeval.problem.laws import Law


_PLAIN = (bool, int, float, str, type(None))  # nobody can change these


def own(value: Any) -> Any:
    """A value whose arrays belong to whoever gets it.

    Arrays are copied, also those in dicts, lists and tuples, named or not (an observation may be
    one of these);
    the layout in memory is kept, so that matrix products round as they did. Any other object is
    handed over as it is: only its owner knows how to copy it.

    Args:
        value: What user code is about to get.

    Returns:
        The copy, or the object itself.

    Examples:
        >>> drawn = np.zeros(2)
        >>> own(drawn)[0] = 1.0
        >>> drawn.tolist()
        [0.0, 0.0]
    """
    kind = type(value)
    if kind is np.ndarray:
        return value.copy(order="K")
    if kind in _PLAIN:
        return value
    if isinstance(value, np.ndarray):
        return value.copy(order="K")
    if kind is dict or kind is OrderedDict:
        return kind((k, own(v)) for k, v in value.items())
    if kind is list or kind is tuple:
        return kind(own(v) for v in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind(*(own(v) for v in value))
    return value


def own_law(law: Law) -> Law:
    """A law whose arrays no user code can reach; apeval's own laws are made of copies already."""
    return law if is_ours(type(law).__module__) else copy.deepcopy(law)


def with_own_array(method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A user's method of one array, which gets one of its own."""

    @functools.wraps(method)
    def call(self: Any, values: Any) -> Any:
        return method(self, own(values))

    return call


class WithOwnArguments:
    """A user's function that gets arrays of its own.

    Args:
        call: The function; one that is wrapped already stays as it is.
    """

    call: Callable[..., Any]

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call = call.call if isinstance(call, WithOwnArguments) else call

    def __call__(self, *given: Any) -> Any:
        return self.call(*[own(value) for value in given])

    def __repr__(self) -> str:
        return repr(self.call)
