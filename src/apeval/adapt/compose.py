"""Several disturbances as one action of nature a_E, with its exact nominal law.

Continuous ones stand side by side: independent Gaussians, some conditioned on a box. Discrete ones
alone make one outcome of their joint Categorical. Beside a continuous one, a discrete disturbance
is carried by a standard normal z: outcome k happens where Φ(z) falls into the k-th slice of the
unit interval, whose widths are the outcomes' probabilities. That is the same disturbance, and the
density that weights are made of is that of z: exact, and no mixture of a mass and a density.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from apeval.errors import ProblemError
from apeval.problem.laws import Categorical, Disturbance, Normal, TruncatedNormal
from apeval.problem.types import Array, FloatArray

_JOINT = 100  # outcomes of a joint Categorical at the most; above, every one has its own z


@dataclass(frozen=True)
class GaussianDisturbance:
    """Columns of a continuous disturbance: N(mean, std²), conditioned on mean ± bound."""

    mean: FloatArray
    std: FloatArray
    bound: FloatArray

    @staticmethod
    def of(what: str, width: int, mean: object, std: object, bound: object) -> GaussianDisturbance:
        """Numbers, or one per component, as columns."""
        rows = []
        for name, given in (("mean", mean), ("std", std), ("bound", bound)):
            try:
                value = np.asarray(np.inf if given is None else given, np.float64)
                rows.append(np.broadcast_to(value.ravel() if value.ndim else value, (width,)))
            except (TypeError, ValueError):
                raise ProblemError(
                    f"{what}: {name} must be a number, or {width} numbers, one per component; "
                    f"got {given!r}"
                ) from None
        columns = GaussianDisturbance(*[np.array(row) for row in rows])
        if not np.all(np.isfinite(columns.mean)):
            raise ProblemError(f"{what}: mean must be finite; got {mean!r}")
        if not np.all((columns.std > 0.0) & np.isfinite(columns.std)):
            raise ProblemError(
                f"{what}: every std must be positive; got {std!r}. To disturb some components "
                "only, name them (index=, or a path with an index)"
            )
        if not np.all(columns.bound > 0.0):
            raise ProblemError(f"{what}: bound must be positive; got {bound!r}")
        return columns


@dataclass(frozen=True)
class DiscreteDisturbance:
    """A discrete disturbance: one of K outcomes."""

    probabilities: FloatArray

    @property
    def edges(self) -> FloatArray:
        """The values of z between which an outcome happens, K − 1 of them."""
        p = self.probabilities
        # from the nearer tail: 1 − 1e-12 has lost four digits of the 1e-12
        below, above = np.cumsum(p)[:-1], np.cumsum(p[::-1])[::-1][1:]
        edges: FloatArray = np.where(below < 0.5, ndtri(below), -ndtri(above))
        return edges


DisturbancePart = GaussianDisturbance | DiscreteDisturbance


class ActionCode:
    """How a_E holds the disturbances of a decision: part i comes `times[i]` times in a row. With
    `latent` discrete ones are carried by z even where there are no others."""

    def __init__(
        self, parts: Sequence[DisturbancePart], times: Sequence[int], latent: bool = False
    ) -> None:
        self.parts, self.times = tuple(parts), tuple(times)
        discrete = not latent and all(isinstance(part, DiscreteDisturbance) for part in parts)
        sizes = [
            len(part.probabilities)
            for part, k in zip(parts, times, strict=True)
            if isinstance(part, DiscreteDisturbance)
            for _ in range(k)
        ]
        self.joint = tuple(sizes) if discrete and np.prod(sizes, dtype=float) <= _JOINT else None
        self._edges = [
            part.edges if isinstance(part, DiscreteDisturbance) else None for part in self.parts
        ]

    def law(self) -> Disturbance:
        """The nominal of a_E."""
        if self.joint is not None:
            p = np.ones(1)
            for part, k in zip(self.parts, self.times, strict=True):
                for _ in range(k):
                    p = np.outer(p, part.probabilities).ravel()  # type: ignore[union-attr]
            return Categorical(p / p.sum())
        columns = [
            _columns(part) for part, k in zip(self.parts, self.times, strict=True) for _ in range(k)
        ]
        mean, std, bound = np.concatenate(columns, axis=1)
        if np.all(np.isinf(bound)):
            return Normal(mean, std)
        return TruncatedNormal(mean, std, mean - bound, mean + bound)

    def decode(self, a_E: int | Array) -> list[list[Array | int]]:
        """What a_E says of each part, for each of its times: a vector, or an outcome."""
        if self.joint is not None:
            codes = [int(k) for k in np.unravel_index(int(a_E), self.joint)] if self.joint else []
            rest = iter(codes)
            return [[next(rest) for _ in range(k)] for k in self.times]
        said: list[list[Array | int]] = []
        at, row = 0, np.asarray(a_E)
        for part, edges, k in zip(self.parts, self._edges, self.times, strict=True):
            values: list[Array | int] = []
            for _ in range(k):
                if edges is None:
                    width = len(part.mean)  # type: ignore[union-attr]
                    values.append(row[at : at + width])
                    at += width
                else:
                    values.append(int(np.searchsorted(edges, row[at], side="right")))
                    at += 1
            said.append(values)
        return said

    def decode_all(self, a_E: Array) -> list[list[Array]]:
        """`decode` for n episodes at once, a_E of shape (n, d): arrays (n, width), or outcomes
        (n,)."""
        if self.joint is not None:
            codes = np.unravel_index(a_E[:, 0], self.joint) if self.joint else ()
            rest = iter(codes)
            return [[next(rest) for _ in range(k)] for k in self.times]
        said: list[list[Array]] = []
        at = 0
        for part, edges, k in zip(self.parts, self._edges, self.times, strict=True):
            values: list[Array] = []
            for _ in range(k):
                if edges is None:
                    width = len(part.mean)  # type: ignore[union-attr]
                    values.append(a_E[:, at : at + width])
                    at += width
                else:
                    values.append(np.searchsorted(edges, a_E[:, at], side="right"))
                    at += 1
            said.append(values)
        return said


def _columns(part: DisturbancePart) -> FloatArray:
    """Mean, std and bound of a part's columns, (3, d)."""
    if isinstance(part, DiscreteDisturbance):
        return np.array([[0.0], [1.0], [np.inf]])
    return np.stack([part.mean, part.std, part.bound])
