"""Failure events that are told over a whole episode: violated specifications, and their unions and
intersections."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Protocol

import numpy as np

from apeval.errors import ProblemError
from apeval.problem.specification.monitor import Monitor
from apeval.problem.specification.parser import is_name, parse
from apeval.problem.specification.syntax import Formula
from apeval.problem.specification.tokens import comments_left_out
from apeval.problem.types import BoolArray, FloatArray, IntArray

_LONGEST = 60


def spec(
    text: str,
    *,
    kind: str = "",
    dt: float | None = None,
    stop: bool = True,
    signals: Mapping[str, Any] | None = None,
    **named: Any,
) -> Specification:
    """A failure event in the field's language: the violation of a temporal specification.

    It is given to `apeval.Problem` as ``failed=`` or to `apeval.from_env` as ``fails=``. Its
    robustness, over the whole episode, is the margin: negative where the episode violates the
    specification, positive where it satisfies it.

    Args:
        text: What episodes are to satisfy, such as ``always[0,5] gap > 2 and eventually gap > 9``.
            Bounds count steps: decisions of a `Problem`, environment steps in `from_env`.
        kind: The failure's name in results; by default the text itself.
        dt: Seconds from one step to the next; bounds are then in seconds.
        stop: Whether an episode ends as soon as its violation is certain. Otherwise it goes on to
            its own end, and the margin tells how bad the violation was in all of it.
        signals: Signals by name, where a name cannot be a keyword argument.
        **named: Signals by name. In a `Problem` a function of the state x that returns a number per
            episode, (n,); in `from_env` a function that asks for obs, reward, action or info, or
            ``"info.speed"``.

    Returns:
        The failure event. ``a | b`` happens where one of two happens, ``a & b`` where both do.

    Raises:
        SpecificationError: The text has a mistake; the message shows where.
        ProblemError: Another argument is wrong.

    Examples:
        >>> import apeval
        >>> calm = apeval.spec("always (speed > 3 implies eventually[0,2] speed < 1)", speed=None)
        >>> calm.robustness(speed=[0.0, 4.0, 2.0, 0.5])
        0.5
    """
    given = {**(signals or {}), **named}
    for name in given:
        if not isinstance(name, str) or not is_name(name):
            raise ProblemError(f"{name!r} cannot name a signal: take letters, digits and _")
    if not isinstance(text, str):
        raise ProblemError(f"a specification is a text; got a {type(text).__name__}")
    if dt is not None and not (isinstance(dt, int | float) and 0.0 < dt < math.inf):
        raise ProblemError(f"dt must be the seconds from step to step, above 0; got {dt!r}")
    if not isinstance(kind, str):
        raise ProblemError(f"kind is a {type(kind).__name__}, expected the failure's name")
    formula = parse(text, tuple(given), dt)
    Monitor(formula)  # one that needs too much memory is refused here
    return Specification(text, formula, given, kind or _shortened(text), bool(stop))


def _shortened(text: str) -> str:
    text = comments_left_out(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


class Samples(Protocol):
    """The signals of a batch of episodes, read from a problem's state."""

    @property
    def at_start(self) -> tuple[bool, ...]:
        """Which signals there are before the first decision."""
        ...

    def first(self, x: Any) -> FloatArray:
        """At the start, (n, m)."""
        ...

    def after(self, x: Any) -> tuple[FloatArray, BoolArray]:
        """At each moment of the last decision, (k, n, m), and which episodes had it, (k, n)."""
        ...


class FailureEvent:
    """An event over a whole episode, with its kinds."""

    specifications: tuple[Specification, ...]
    """What is monitored."""
    alternatives: tuple[tuple[str, tuple[int, ...]], ...]
    """Each a kind of failure with the numbers of the specifications that must all be violated; the
    first that is so is the failure's kind."""
    samples: Samples | None
    """How signals are read; None: by functions of the state."""

    def __or__(self, other: FailureEvent) -> FailureEvent:
        one, two, shift = self, _event(other, "|"), len(self.specifications)
        late = [(kind, tuple(k + shift for k in which)) for kind, which in two.alternatives]
        return _Combined(
            (*one.specifications, *two.specifications), (*one.alternatives, *late), None
        )

    def __and__(self, other: FailureEvent) -> FailureEvent:
        one, two, shift = self, _event(other, "&"), len(self.specifications)
        both = [
            (f"{a} and {b}", (*first, *(k + shift for k in second)))
            for a, first in one.alternatives
            for b, second in two.alternatives
        ]
        return _Combined((*one.specifications, *two.specifications), tuple(both), None)

    def named(self, kind: str) -> FailureEvent:
        """The same event as one kind of failure.

        Args:
            kind: Its name in results.

        Returns:
            The event under this name.
        """
        alternatives = tuple((kind, which) for _, which in self.alternatives)
        return _Combined(self.specifications, alternatives, self.samples)

    def read_by(self, samples: Samples) -> FailureEvent:
        """The same event with signals that are read in another way."""
        return _Combined(self.specifications, self.alternatives, samples)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the kinds of failure, in order, none twice."""
        return tuple(dict.fromkeys(kind for kind, _ in self.alternatives))

    @property
    def signals(self) -> list[tuple[str, Any]]:
        """Every signal of every specification, by name, in the order that `samples` has."""
        return [it for one in self.specifications for it in one.named_signals.items()]

    @property
    def stop(self) -> bool:
        """Whether a certain failure ends an episode."""
        return all(it.stop_when_certain for it in self.specifications)

    def __call__(self, *given: Any) -> NoReturn:
        raise ProblemError(
            "a specification is judged over a whole episode and cannot be called: give it to "
            "apeval.Problem as failed=, or to apeval.from_env as fails="
        )


def _event(other: Any, sign: str) -> FailureEvent:
    if not isinstance(other, FailureEvent):
        raise ProblemError(
            f"{sign} joins two specifications; got a {type(other).__name__}. An event of single "
            "states is one too: apeval.spec('always not crashed', crashed=…)"
        )
    return other


@dataclass(frozen=True)
class _Combined(FailureEvent):
    specifications: tuple[Specification, ...]
    alternatives: tuple[tuple[str, tuple[int, ...]], ...]
    samples: Samples | None


@dataclass(frozen=True)
class Specification(FailureEvent):
    """What `apeval.spec` returns: the event that episodes violate one specification."""

    text: str
    """As it was given."""
    formula: Formula
    """The formula, its bounds in steps."""
    named_signals: Mapping[str, Any]
    """Signals by name."""
    kind: str
    """The failure's name."""
    stop_when_certain: bool
    """Whether an episode ends as soon as its violation is certain."""

    samples = None

    @property
    def specifications(self) -> tuple[Specification, ...]:  # type: ignore[override]
        """Itself."""
        return (self,)

    @property
    def alternatives(self) -> tuple[tuple[str, tuple[int, ...]], ...]:  # type: ignore[override]
        """The only one."""
        return ((self.kind, (0,)),)

    def named(self, kind: str) -> Specification:
        return replace(self, kind=kind)

    def robustness(self, **signals: Any) -> float | FloatArray:
        """The robustness of recorded episodes: negative where they violate the specification.

        Args:
            **signals: Each signal over time, the first moment first: (T,), or (n, T) for n
                episodes.

        Returns:
            A number, or (n,).

        Raises:
            ProblemError: A signal is missing, or the lengths differ.
        """
        missing = [name for name in self.named_signals if name not in signals]
        if missing:
            raise ProblemError(f"robustness needs the signal '{missing[0]}' over time as well")
        try:
            given = [np.asarray(signals[name], np.float64) for name in self.named_signals]
            if len({it.shape[-1] for it in given if it.ndim}) > 1:
                raise ValueError("NumPy would stretch a signal of one moment")
            rows = np.broadcast_arrays(*given)
        except (TypeError, ValueError):
            raise ProblemError("signals must be numbers over time, all of one length") from None
        shape = rows[0].shape if rows else (1,)
        if len(shape) not in (1, 2) or shape[-1] == 0:
            raise ProblemError(f"signals must be of shape (T,) or (n, T); got {shape}")
        values = dict(zip(self.named_signals, (np.atleast_2d(row) for row in rows), strict=True))
        monitor, n = Monitor(self.formula), shape[0] if len(shape) == 2 else 1
        memory = monitor.start(n)
        time: IntArray = np.zeros(n, np.int64)
        for t in range(shape[-1]):
            time = np.full(n, t)
            memory = monitor.step(memory, time, {k: v[:, t] for k, v in values.items()})
        found = monitor.robustness(memory, time)
        return found if len(shape) == 2 else float(found[0])


def checked_signals(event: FailureEvent, wanted: str) -> list[Callable[..., Any]]:
    """The event's signals, each of which must be a function."""
    found = []
    for name, signal in event.signals:
        if not callable(signal):
            raise ProblemError(f"signal '{name}' is {signal!r}: give {wanted}")
        found.append(signal)
    return found
