"""One `Problem` type: everything that defines the probability in question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from apeval.errors import ProblemError, unknown
from apeval.problem.agent import Agent, as_agent
from apeval.problem.argument_copies import WithOwnArguments, own, own_law
from apeval.problem.draws import Draws
from apeval.problem.field_checks import check_parts
from apeval.problem.laws import Disturbance, Law
from apeval.problem.returned_arrays import as_array, is_array_like
from apeval.problem.specification.event import FailureEvent
from apeval.problem.specification.monitored import monitored_parts
from apeval.problem.tabular_model import TabularModel
from apeval.problem.truth import Computed, Truth
from apeval.problem.types import Array, FloatArray

SAFETY_CAP = 100_000
_KINDS = ("failure",)
_GET_ARRAYS = ("reset", "step", "failed", "done", "margin")


def _identity(x: Any) -> Array:
    if x is None:
        raise ProblemError("the state is None: does `reset` or `step` lack a return statement?")
    if not is_array_like(x):
        raise ProblemError(
            f"the state is a {type(x).__name__}, no array: say what a method sees of it, "
            "views={'state': a function that returns numbers, shape (n, d)}"
        )
    return np.asarray(x)


@dataclass(frozen=True)
class Problem:
    """Environment, agent policy, nominal disturbance and failure event.

    All functions act on a batch: n episodes in lockstep, first axis n. The simulator's state
    `x` is an array, or any object that can be indexed with a boolean mask. Arrays that a function
    gets are copies of its own, which it may change in place.

    One step is one decision of nature: the agent's action a_A is taken at the decision's
    start, then ``x = step(x, a_A, a_E, draws)`` is f_E; finer simulation frames and further
    calls of π_A lie inside it. `draws` is randomness that nobody controls.

    Raises:
        ProblemError: The parts contradict each other, or are not what they should be.
        UnknownNameError: `view` names none of `views`.

    Examples:
        >>> from apeval.problem.laws import Normal
        >>> gusts = Problem(
        ...     nominal=Normal(0.0, 1.0),
        ...     reset=lambda draws: np.zeros((draws.n, 1)),
        ...     step=lambda x, a_A, a_E, draws: x + a_E,
        ...     failed=lambda x: x[:, 0] > 20.0,
        ...     margin=lambda x: 20.0 - x[:, 0],
        ...     horizon=20,
        ... )
    """

    nominal: Disturbance
    """The nominal disturbance π_E,gt, with exact sampling and log-density."""
    reset: Callable[..., Any]
    """``reset(draws) -> x``: n new episodes, n = ``draws.n``; with `initial`, ``reset(draws,
    a_0) -> x`` with a_0 of shape (n, d_0)."""
    step: Callable[[Any, Array, Array, Draws], Any]
    """The environment f_E: ``step(x, a_A, a_E, draws) -> x``, with a_A of shape (n, d_A) and a_E
    of shape (n, d_E)."""
    failed: Callable[[Any], Array] | FailureEvent
    """The failure event, read after every decision (not in the state that `reset` gives): shape
    (n,), a boolean, or an integer kind (0 = no failure, k = ``kinds[k − 1]``). Or what
    `apeval.spec` returns: an event over the whole episode, from the state that `reset` gives."""
    horizon: int | None
    """Decisions per episode at the most; None: until `done` or `failed`."""
    agent: Agent | Callable[[Any], Array] | None = None
    """The agent policy π_A: a function of x that returns (n, d_A) or (n,), an object with
    ``act(x, draws)``, or None where f_E holds it."""
    done: Callable[[Any], Array] | None = None
    """Ends the episode without a failure: shape (n,), boolean."""
    margin: Callable[[Any], FloatArray] | None = None
    """Distance to failure in each state, shape (n,). An episode's margin is the smallest one
    seen, made ≤ 0 for failures and > 0 otherwise."""
    initial: Disturbance | None = None
    """Nominal of a controlled initial state (disturbance 0); None: fixed or uncontrolled."""
    judge_at_end: bool = False
    """Failure and margin are read in the last state only, not in every one."""
    horizon_kind: int = 0
    """The kind of failure that reaching the horizon is (0: none)."""
    kinds: tuple[str, ...] = _KINDS
    """Names of the failure kinds."""
    views: Mapping[str, Callable[[Any], Array]] = field(
        default_factory=lambda: {"state": _identity}
    )
    """What a method may see of x, by name: ``view(x) -> (n, d_s)``. The first is the default."""
    view: str = ""
    """The view in use."""
    cap: int = SAFETY_CAP
    """With no horizon: an episode of this length counts as unresolved."""
    chunk: int = 512
    """Episodes that one worker simulates together; a batch is cut into blocks of so many."""
    table: TabularModel | None = None
    """Transition tables, where the problem is small enough: a fast path and an exact truth."""
    name: str = ""
    """Stands in results, reports and run folders."""
    description: str = ""
    """One line, for lists of problems."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """What the problem was built with; kept in results, so that it can be built again."""
    truth: Callable[[], Truth] | None = None
    """Returns the known failure probability; no method sees it. `Computed` wraps one that takes
    long."""
    verify: Callable[[bool, int], Mapping[str, Any]] | None = None
    """``verify(full, seed)`` recomputes the truth independently; its answer has ``agrees``."""
    policy_memory: bool = False
    """Whether the agent policy has memory, which is then part of x. Results say so."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "agent", as_agent(self.agent))
        check_parts(self)
        if isinstance(self.failed, FailureEvent):
            self._monitor(self.failed)
        for part in _GET_ARRAYS:
            if (call := getattr(self, part)) is not None:
                object.__setattr__(self, part, WithOwnArguments(call))
        object.__setattr__(self, "view", self.view or next(iter(self.views)))
        if self.view not in self.views:
            raise unknown("view", self.view, self.views)

    def _monitor(self, event: FailureEvent) -> None:
        """Failure over whole episodes: monitors become part of the state."""
        given = {"margin": None, "judge_at_end": False, "horizon_kind": 0, "table": None}
        for part, default in given.items():
            if getattr(self, part) != default:
                raise ProblemError(
                    f"`{part}` does not go with a specification, whose robustness is the margin "
                    "and which says itself when it is violated: leave it out"
                )
        if tuple(self.kinds) not in (_KINDS, event.kinds):
            raise ProblemError(
                "`kinds` does not go with a specification: name it there, apeval.spec(…, kind=…)"
            )
        parts = monitored_parts(
            event, nominal=self.nominal, reset=self.reset, step=self.step, agent=self.agent,
            done=self.done, views=self.views,
        )  # fmt: skip
        for part, value in parts.items():
            object.__setattr__(self, part, value)

    def observe(self, x: Any) -> Array:
        """What a method sees of the simulator's state.

        Args:
            x: The simulator's state, n episodes.

        Returns:
            s through the view in use, shape (n, d_s).
        """
        s = as_array(f"view '{self.view}'", self.views[self.view](own(x)))
        return s[:, None] if s.ndim == 1 else s

    def act(self, x: Any, draws: Draws) -> Array:
        """The agent's action a_A ~ π_A(· | x).

        Args:
            x: The simulator's state, n episodes.
            draws: The episodes' random numbers.

        Returns:
            Actions, shape (n, d_A); no columns where f_E holds the agent.
        """
        a_A: Array = self.agent.act(own(x), draws)  # type: ignore[union-attr]
        return a_A

    def law(self, x: Any, a_A: Array) -> Law:
        """The nominal law π_E,gt(· | s, a_A), row by row.

        Args:
            x: The simulator's state, n episodes.
            a_A: The agent's actions, shape (n, d_A).

        Returns:
            A law with n rows, or one row where all are the same.
        """
        return own_law(self.nominal.given(own(x), own(a_A)))

    def known_truth(self) -> Truth | None:
        """The failure probability v*(s0), where it is known already.

        Returns:
            The truth, or None where there is none or it would have to be computed.

        Raises:
            ProblemError: `truth` returned something else.
        """
        if self.truth is None or isinstance(self.truth, Computed):
            return None
        truth = self.truth()
        if not isinstance(truth, Truth):
            raise ProblemError(
                f"`truth` returned a {type(truth).__name__}, expected an apeval.Truth: "
                "Truth(value, standard_error, how it was obtained)"
            )
        return truth

    def seen_as(self, view: str) -> Problem:
        """The same problem seen through another view.

        Args:
            view: One of the names in `views`.

        Returns:
            A copy with this view in use.

        Raises:
            UnknownNameError: There is no such view.
        """
        return replace(self, view=view)

    def blind(self) -> Problem:
        """The problem as methods get it: without name, description, parameters and truth."""
        return replace(self, name="", description="", parameters={}, truth=None, verify=None)

    @property
    def longest(self) -> int:
        """No episode has more decisions than this."""
        return self.cap if self.horizon is None else self.horizon
