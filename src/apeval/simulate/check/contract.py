"""A problem's functions, called with care: every answer is looked at before it is used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from apeval.errors import ApevalError, blame
from apeval.problem.agent import Deterministic, Stochastic
from apeval.problem.argument_copies import own
from apeval.problem.draws import NATURE, Draws
from apeval.problem.laws import Disturbance, Law
from apeval.problem.problem import Problem
from apeval.problem.returned_arrays import is_array_like
from apeval.problem.types import Array, BoolArray, FloatArray
from apeval.simulate.check.report import BrokenError
from apeval.simulate.undisturbed import middle

T = TypeVar("T")
_NUMBERS = "biuf"
_CALLS = {
    "reset": "reset(draws) returns the states x of draws.n episodes",
    "reset with a_0": "with initial=, reset(draws, a_0) returns the states x of draws.n episodes",
    "step": "step(x, a_A, a_E, draws) returns the next x of all n episodes",
    "agent": "the agent maps x to one action per episode, shape (n, d_A)",
    "failed": "failed(x) returns n booleans, or n kinds of failure",
    "done": "done(x) returns n booleans",
    "margin": "margin(x) returns n numbers",
    "nominal": "the nominal's parameters, where they are functions, map (x, a_A) to n rows",
    "initial": "initial is a disturbance whose parameters do not depend on x or a_A",
    "x[mask]": "x is an array or an object that a boolean mask of n entries can index",
}
_NAMES = {"agent": "agent"}


def ask(part: str, call: Callable[[], T]) -> T:
    """Call a user's code; its exception becomes a finding."""
    try:
        return call()
    except BrokenError:
        raise
    except ApevalError as error:  # says itself what to do
        raise BrokenError(_NAMES.get(part, "exception"), str(error)) from error
    except (Exception, SystemExit) as error:
        what = _CALLS.get(part.split(" '")[0], "it acts on a batch of n episodes, first axis n")
        raise BrokenError(
            "exception",
            f"`{part}` raised {blame(error)}. Mend it: {what}; "
            "n episodes are always treated together",
        ) from error


def numbers(name: str, part: str, value: Any, shapes: tuple[tuple[int | None, ...], ...]) -> Array:
    """An answer that must be an array of numbers of one of the given shapes (None: any size)."""
    if value is None:
        raise BrokenError(name, f"`{part}` returned None: does it lack a return statement?")
    if not is_array_like(value):
        raise BrokenError(
            name, f"`{part}` returned a {type(value).__name__}, which is no array: return a NumPy "
            "array"
        )  # fmt: skip
    try:
        array = np.asarray(value)
    except Exception as error:
        raise BrokenError(
            name, f"`{part}` returned a {type(value).__name__} that is no array ({error}): return "
            "a NumPy array"
        ) from error  # fmt: skip
    if array.dtype.kind not in _NUMBERS:
        raise BrokenError(
            name,
            f"`{part}` returned a {type(value).__name__} with entries of type {array.dtype}: "
            "return a NumPy array of numbers",
        )
    fits = [
        len(shape) == array.ndim
        and all(w is None or w == g for w, g in zip(shape, array.shape, strict=True))
        for shape in shapes
    ]
    if not any(fits):
        wanted = " or ".join(_shape(shape) for shape in shapes)
        raise BrokenError(
            name,
            f"`{part}` returned shape {array.shape}, expected {wanted}: the first axis counts the "
            f"episodes (n = {shapes[0][0]} in this call){_hint(array, shapes)}",
        )
    return array


def _shape(shape: tuple[int | None, ...]) -> str:
    inside = ", ".join("d" if k is None else str(k) for k in shape)
    return f"({inside},)" if len(shape) == 1 else f"({inside})"


def _hint(array: Array, shapes: tuple[tuple[int | None, ...], ...]) -> str:
    n = shapes[0][0]
    if array.ndim == 0:
        return "; it answered for one episode: write it for a batch, e.g. x[:, 0] instead of x[0]"
    if array.shape == (n, 1) and shapes == ((n,),):
        return "; drop the last axis, e.g. x[:, 0] instead of x[:, :1]"
    return ""


class Contract:
    """A problem that is asked with care. Every method raises `BrokenError` on a bad answer."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._widths: dict[str, int] = {}

    def start(self, draws: Draws, calm: bool = False) -> tuple[Any, Array | None, Law | None]:
        """x, a_0 and its law; `calm`: with a_0 in the middle of it."""
        p, n = self.problem, draws.n
        if p.initial is None:
            x = ask("reset", lambda: p.reset(draws))
            return self._batch("reset", x, n), None, None
        law = self._law("initial", p.initial, None, None, n)
        u = draws.stream(NATURE, p.initial.dim)
        a_0 = self.sample("initial", law, u, p.initial.dim, calm)
        x = ask("reset with a_0", lambda: p.reset(draws, a_0))
        return self._batch("reset", x, n), a_0, law

    def act(self, x: Any, draws: Draws) -> Array:
        """a_A."""
        agent, n = self.problem.agent, draws.n
        if isinstance(agent, Stochastic):
            pi = ask("agent", lambda: agent.probabilities(own(x)))
            rows = numbers("agent", "agent", pi, ((n, None),))
            if not (np.all(rows >= 0.0) and np.allclose(rows.sum(axis=1), 1.0, atol=1e-6)):
                raise BrokenError(
                    "agent",
                    "the policy's probabilities are negative or do not sum to 1 in every row: "
                    "divide each row by its sum",
                )
        if isinstance(agent, Deterministic):  # as its `act`, with a look at the bare answer
            given = ask("agent", lambda: agent.policy(own(x)))
            a_A = numbers("agent", "agent", given, ((n,), (n, None))).reshape(n, -1)
        else:
            given = ask("agent", lambda: self.problem.act(x, draws))
            a_A = numbers("agent", "agent", given, ((n, None),))
        self._same_width("agent", a_A)
        return _finite("agent", "agent", a_A, "every action must be a number")

    def law(self, x: Any, a_A: Array) -> Law:
        """π_E,gt(· | s, a_A)."""
        return self._law("nominal", self.problem.nominal, x, a_A, len(a_A))

    def _law(self, part: str, nominal: Disturbance, x: Any, a_A: Any, n: int) -> Law:
        law = ask(part, lambda: nominal.given(own(x), own(a_A)))
        if not isinstance(law, Law):
            raise BrokenError(
                "shapes", f"`{part}.given` returned a {type(law).__name__}, expected a Law"
            )
        for f in fields(law):
            rows = np.shape(getattr(law, f.name))
            if len(rows) < 2 or rows[0] not in (1, n):
                raise BrokenError(
                    "shapes",
                    f"`{f.name}` of the {part} law has shape {rows}, expected one row, or one row "
                    f"per episode (n = {n} in this call): a parameter that is a function maps "
                    "(x, a_A) to shape (n, d)",
                )
        return law

    def sample(self, part: str, law: Law, u: FloatArray, dim: int, calm: bool = False) -> Array:
        """Disturbances from uniforms; `calm`: the law's middle."""
        a = ask(f"{part} law's sample", lambda: middle(law, u) if calm else law.sample(u))
        if np.ndim(a) == 2 and np.shape(a) != (len(u), dim):
            raise BrokenError(
                "shapes",
                f"the {part} law gave disturbances of shape {np.shape(a)}, but its `dim` is {dim}: "
                "give dim= the number of components, as many as every parameter has",
            )
        a = numbers("shapes", f"{part} law's sample", a, ((len(u), dim),))
        return _finite(
            "density", f"{part} law's sample", a, "a std must be > 0, and low must be below high"
        )

    def step(self, x: Any, a_A: Array, a_E: Array, draws: Draws) -> Any:
        """f_E."""
        after = ask("step", lambda: self.problem.step(x, a_A, a_E, draws))
        arrays = isinstance(x, np.ndarray) and isinstance(after, np.ndarray)
        if arrays and x.shape[1:] != after.shape[1:]:
            raise BrokenError(
                "shapes",
                f"`step` was given states of shape {x.shape} and returned {after.shape}: the shape "
                "of a state must not change",
            )
        return self._batch("step", after, draws.n)

    def observe(self, x: Any, n: int, when: str) -> Array:
        """s in the problem's view, after a look at every view."""
        for name, view in self.problem.views.items():
            part = f"view '{name}'"
            given = ask(part, lambda view=view: view(own(x)))  # type: ignore[misc]
            s = numbers("shapes", part, given, ((n,), (n, None)))
            self._same_width(part, s)
            remedy = f"mend f_E ({when}), or end the episode (`done`, `failed`) before it happens"
            _finite("finite states", part, s, remedy)
        return self.problem.observe(x)

    def judge(self, x: Any, n: int) -> tuple[Array, BoolArray]:
        """The raw kinds of failure, and which episodes are done."""
        kind = numbers("shapes", "failed", ask("failed", lambda: self.problem.failed(x)), ((n,),))
        if kind.dtype.kind == "f":
            raise BrokenError(
                "shapes", "`failed` returned floating-point numbers, expected booleans or kinds "
                "(0 = no failure): compare, e.g. x[:, 0] > 20"
            )  # fmt: skip
        kinds = self.problem.kinds
        if kind.dtype.kind != "b" and (kind.min() < 0 or kind.max() > len(kinds)):
            raise BrokenError(
                "shapes",
                f"`failed` returned kind {int(kind.max() if kind.min() >= 0 else kind.min())}, but "
                f"there are {len(kinds)} kinds ({', '.join(kinds)}): return 0 for no failure, k "
                "for kinds[k - 1], and name every kind in kinds=",
            )
        if self.problem.done is None:
            return kind.astype(np.int64), np.zeros(n, bool)
        call = self.problem.done
        done = numbers("shapes", "done", ask("done", lambda: call(x)), ((n,),))
        if done.dtype.kind != "b":
            raise BrokenError(
                "shapes", f"`done` returned entries of type {done.dtype}, expected booleans: "
                "compare, e.g. x[:, 0] <= 0"
            )  # fmt: skip
        return kind.astype(np.int64), done

    def margin(self, x: Any, n: int) -> FloatArray | None:
        """The raw margin in each state."""
        call = self.problem.margin
        if call is None:
            return None
        m = numbers("shapes", "margin", ask("margin", lambda: call(x)), ((n,),))
        if np.isnan(m).any():
            raise BrokenError("margin", "`margin` returned NaN: every state needs a number")
        return m.astype(np.float64)

    def rest(self, x: Any, going: BoolArray) -> Any:
        """The episodes that go on."""
        return self._batch("x[mask]", ask("x[mask]", lambda: x[going]), int(going.sum()))

    def _batch(self, part: str, x: Any, n: int) -> Any:
        shape = np.shape(x) if isinstance(x, np.ndarray | list | tuple) else None
        size = shape[0] if shape else len(x) if hasattr(x, "__len__") else None
        if x is None or shape == () or not hasattr(x, "__getitem__"):
            raise BrokenError(
                "shapes",
                f"`{part}` returned a {type(x).__name__} without episodes in it: return a NumPy "
                "array with first axis n, or an object that a boolean mask can index",
            )
        if isinstance(x, list | tuple):
            raise BrokenError(
                "shapes", f"`{part}` returned a {type(x).__name__}, which a boolean mask cannot "
                "index: return a NumPy array with first axis n"
            )  # fmt: skip
        if size is not None and size != n:
            raise BrokenError(
                "shapes",
                f"`{part}` returned {size} episodes, expected n = {n}: keep the first axis, one "
                "row per episode in the batch it was given",
            )
        return x

    def _same_width(self, part: str, rows: Array) -> None:
        width = 1 if rows.ndim == 1 else rows.shape[1]
        if self._widths.setdefault(part, width) != width:
            raise BrokenError(
                "shapes",
                f"`{part}` returned {width} columns, earlier {self._widths[part]}: the number of "
                "columns must not change within an episode",
            )


def _finite(name: str, part: str, array: Array, remedy: str) -> Array:
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        rows = np.asarray(~np.isfinite(array.reshape(len(array), -1)).all(axis=1))
        raise BrokenError(
            name, f"`{part}` gave NaN or infinity in {rows.sum()} of {len(rows)} episodes: {remedy}"
        )
    return array
