"""Any continuous law of `scipy.stats` per component, through its CDF and quantile function.

Quantiles are taken from the nearer tail (`ppf` below the median, `isf` above), probabilities as
logarithms (`logcdf`, `logsf`), so that whitening holds far into both tails. Laws for which SciPy
does not compute its tails well enough are refused when the disturbance is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri_exp

from apeval.errors import ApevalError, ProblemError
from apeval.problem.laws.base import Disturbance, Law
from apeval.problem.laws.law_parameters import BY_STATE, moved_columns, sum_columns
from apeval.problem.types import Array, FloatArray

_NAME = 24  # bytes of a family's name
_FARTHEST = 20.0  # |z| beyond count as this: some of SciPy's quantile functions break down there
_TESTED = 8.0  # |z| at which quantile function and CDF must agree
_AGREE = 1e-6  # relative error of the quantile there
_GRID = np.linspace(-_TESTED, _TESTED, 321)  # for second moments


@dataclass(frozen=True)
class ScipyLaw(Law):
    """Independent components, each of a family of `scipy.stats`."""

    positive_parameters: ClassVar[tuple[str, ...]] = ("scale",)

    family: Array
    """Names of the families in ASCII, `_NAME` bytes for each component, (1, d·24)."""
    shapes: FloatArray
    """Shape parameters, as many columns for each component as the longest list has, (1 or n, d·k);
    0 where a family has fewer."""
    loc: FloatArray
    """(1 or n, d)."""
    scale: FloatArray
    """(1 or n, d)."""

    def sample(self, u: FloatArray) -> FloatArray:
        return self._quantiles(np.minimum(u, 1.0 - u), u > 0.5)

    def log_prob(self, a: Array) -> FloatArray:
        return sum_columns(self._each("logpdf", np.asarray(a, np.float64)))

    def to_z(self, a: Array) -> FloatArray:
        low, high = self._inner()
        inside = np.clip(np.asarray(a, np.float64), low, high)
        below, above = self._each("logcdf", inside), self._each("logsf", inside)
        tail: FloatArray = ndtri_exp(np.maximum(np.minimum(below, above), log_ndtr(-_FARTHEST)))
        return np.where(above < below, -tail, tail)

    def to_action(self, z: FloatArray) -> FloatArray:
        return self._quantiles(ndtr(-np.minimum(np.abs(z), _FARTHEST)), z > 0.0)

    def components(self) -> int:
        return int(self.loc.shape[1])

    def parameters(self) -> list[str]:
        """`loc`, `scale` and the families' own shape parameters, such as `df`."""
        named = [name for family in self._families() for name in _shape_names(family)]
        return ["loc", "scale", *dict.fromkeys(named)]

    def changed(
        self, name: str, move: Callable[[FloatArray], FloatArray], index: int | None = None
    ) -> ScipyLaw:
        if name in ("loc", "scale"):
            return super().changed(name, move, index)
        columns, d = self.shapes.shape[1] // self.components(), self.components()
        value = np.full((len(self.shapes), d), np.nan)
        places = []
        for j, family in enumerate(self._families()):
            if name in _shape_names(family):
                places.append((j, j * columns + _shape_names(family).index(name)))
                value[:, j] = self.shapes[:, places[-1][1]]
        moved, shapes = moved_columns(value, move, index), self.shapes.copy()
        for j, place in places:
            shapes[:, place] = moved[:, j]
        after = replace(self, shapes=shapes)
        if index is not None and index - 1 not in dict(places):
            raise ApevalError(f"component {index} has no {name}")
        after.check_parameter(name)
        return after

    def check_parameter(self, name: str) -> None:
        if name in ("loc", "scale"):
            super().check_parameter(name)
        if not np.isfinite(self._each("ppf", np.full((1, self.components()), 0.5))).all():
            raise ApevalError("a parameter would leave the range in which the law has a density")

    def widening(self, old: Law) -> FloatArray:
        """By quadrature over the old law's whitened values; a change of `loc` is no widening."""
        if not isinstance(old, ScipyLaw):
            return super().widening(old)
        rows, d = max(len(v) for law in (self, old) for v in vars(law).values()), self.components()
        moment: FloatArray = np.zeros(rows)
        for j in range(d):
            new, before = replace(self, loc=old.loc)._component(j), old._component(j)
            a = np.stack([before.to_action(np.full((rows, 1), z))[:, 0] for z in _GRID])
            ratio = [new.log_prob(v[:, None]) - before.log_prob(v[:, None]) for v in a]
            with np.errstate(over="ignore"):
                square = np.exp(2.0 * np.stack(ratio) - 0.5 * _GRID[:, None] ** 2)
            total = square.sum(axis=0) * (_GRID[1] - _GRID[0]) / np.sqrt(2.0 * np.pi)
            moment += np.log(np.maximum(total, 1.0))
        return moment

    def _quantiles(self, tail: FloatArray, upper: Array) -> FloatArray:
        """The values beyond which lies the probability `tail`, inside the open support."""
        low, high = self._inner()
        a = np.where(upper, self._each("isf", tail), self._each("ppf", tail))
        return np.clip(a, low, high)

    def _inner(self) -> tuple[FloatArray, FloatArray]:
        """The first and the last double inside the support, (1 or n, d)."""
        columns = [dist.support(*args) for dist, args in self._columns()]
        low, high = (
            np.stack([np.atleast_1d(np.asarray(ends[k], np.float64)) for ends in columns], axis=1)
            for k in (0, 1)
        )
        return np.nextafter(low, np.inf), np.nextafter(high, -np.inf)

    def _each(self, function: str, values: FloatArray) -> FloatArray:
        """One function of `scipy.stats`, component by component."""
        with np.errstate(all="ignore"):  # logarithms of 0 at the ends of the support
            columns = [
                getattr(dist, function)(values[:, j], *args)
                for j, (dist, args) in enumerate(self._columns())
            ]
        return np.stack(columns, axis=1)

    def _columns(self) -> list[tuple[Any, list[FloatArray]]]:
        """Family and parameters of each component."""
        k = self.shapes.shape[1] // self.components()
        rows = max(len(self.shapes), len(self.loc), len(self.scale))
        found = []
        for j, name in enumerate(self._families()):
            dist = _family(name)
            shapes = [self.shapes[:, j * k + i] for i in range(dist.numargs)]
            args = [*shapes, self.loc[:, j], self.scale[:, j]]
            found.append((dist, [np.broadcast_to(v, (rows,)) for v in args]))
        return found

    def _families(self) -> list[str]:
        """The families' names."""
        rows = np.asarray(self.family[0], np.uint8).reshape(self.components(), _NAME)
        return [bytes(row).rstrip(b"\0").decode("ascii", "replace") for row in rows]

    def _component(self, j: int) -> ScipyLaw:
        k = self.shapes.shape[1] // self.components()
        return ScipyLaw(
            self.family[:, j * _NAME : (j + 1) * _NAME],
            self.shapes[:, j * k : (j + 1) * k],
            self.loc[:, j : j + 1],
            self.scale[:, j : j + 1],
        )


Distribution = Any | Callable[[Any, Any], Any]


class FromScipy(Disturbance):
    """Independent components with continuous distributions of `scipy.stats`, bounded or not.

    Args:
        *distributions: Frozen distributions such as ``scipy.stats.t(df=3, scale=0.2)``. One whose
            parameters are lists stands for several components. Or functions of (x, a_A), one for
            each component, that give a frozen distribution with parameters of shape (n,).

    Raises:
        ProblemError: It is no continuous distribution of `scipy.stats`, its parameters make no
            density, or SciPy does not compute its tails well enough to be whitened.

    Examples:
        >>> import scipy.stats
        >>> FromScipy(scipy.stats.t(df=3, scale=[0.2, 0.5]), scipy.stats.beta(2, 5)).in_words()
        't(df=3, scale=0.2), t(df=3, scale=0.5), beta(a=2, b=5)'
    """

    learnable = True

    def __init__(self, *distributions: Distribution) -> None:
        if not distributions:
            raise ProblemError("FromScipy: give at least one distribution of scipy.stats")
        parts: list[_Part | Callable[[Any, Any], Any]] = []
        for given in distributions:
            parts += [given] if _is_function(given) else _parts(given)
        self._parts = tuple(parts)
        self.dim = len(parts)
        for part in parts:
            if isinstance(part, _Part):
                part.check()

    def given(self, x: Any, a_A: Any) -> ScipyLaw:
        rows = [p if isinstance(p, _Part) else _row_part(p(x, a_A)) for p in self._parts]
        return _law(rows)

    def in_words(self) -> str:
        return ", ".join(self._names())

    def describe(self) -> dict[str, Any]:
        fixed = {"class": type(self).__qualname__, "dim": self.dim}
        return {**fixed, "distributions": self._names(), "words": self.in_words()}

    def _names(self) -> list[str]:
        return [p.in_words() if isinstance(p, _Part) else BY_STATE for p in self._parts]


@dataclass(frozen=True)
class _Part:
    """One component; every parameter has shape () or (n,)."""

    family: str
    shapes: tuple[FloatArray, ...]
    loc: FloatArray
    scale: FloatArray

    def check(self) -> None:
        """Refuse what has no density, or no accurate tails."""
        law, words = _law([self]), self.in_words()
        with np.errstate(all="ignore"):
            a = law.to_action(np.array([[-_TESTED], [0.0], [_TESTED]]))
            if not (self.scale > 0.0 and np.isfinite(law.log_prob(a)).all() and a[0] < a[2]):
                raise ProblemError(f"FromScipy: the parameters of {words} make no density")
            again = law.to_action(law.to_z(a))
            off = np.abs(again - a) / (np.abs(a - self.loc) + self.scale)
            far = law.to_action(np.array([[-_FARTHEST], [_FARTHEST]]))
        if not (np.all(off <= _AGREE) and np.isfinite(far).all()):
            raise ProblemError(
                f"FromScipy: SciPy's CDF and quantile function of {words} do not agree at "
                f"{_TESTED:g} standard deviations (quantiles differ by {np.max(off):.1g} relative "
                "to their size): adversaries sample there, and the weights would be wrong"
            )

    def in_words(self) -> str:
        """As one would write it in Python."""
        named = [*zip(_shape_names(self.family), self.shapes, strict=True)]
        named += [(k, v) for k, v, usual in (("loc", self.loc, 0.0), ("scale", self.scale, 1.0))
                  if v != usual]  # fmt: skip
        return f"{self.family}({', '.join(f'{k}={float(v):.6g}' for k, v in named)})"


def _is_function(given: Any) -> bool:
    """Of the state; a distribution that is not frozen yet can be called too."""
    return callable(given) and not hasattr(given, "freeze")


def _law(parts: list[_Part]) -> ScipyLaw:
    k = max(1, *(len(part.shapes) for part in parts))
    none = np.zeros(())
    names = b"".join(part.family.encode("ascii").ljust(_NAME, b"\0") for part in parts)
    shapes = [s for p in parts for s in (*p.shapes, *[none] * (k - len(p.shapes)))]
    return ScipyLaw(
        np.frombuffer(names, np.uint8)[None, :].copy(),
        _side_by_side(shapes),
        _side_by_side([part.loc for part in parts]),
        _side_by_side([part.scale for part in parts]),
    )


def _side_by_side(columns: list[FloatArray]) -> FloatArray:
    """Columns of shape () or (n,) as an array (1 or n, d)."""
    return np.stack(np.broadcast_arrays(*[np.atleast_1d(c) for c in columns]), axis=1)


def _parts(frozen: Any) -> list[_Part]:
    """The components of a frozen distribution, one for each entry of its parameters."""
    family, values = _parsed(frozen)
    rows = np.broadcast_arrays(*[np.atleast_1d(v) for v in values])
    if rows[0].ndim > 1:
        raise ProblemError(f"FromScipy: parameters of {family} must be numbers or flat lists")
    each = [[np.array(v[j]) for v in rows] for j in range(len(rows[0]))]
    return [_Part(family, tuple(v[:-2]), v[-2], v[-1]) for v in each]


def _row_part(frozen: Any) -> _Part:
    """The component that a function of the state gave, with a value for every row."""
    family, values = _parsed(frozen)
    flat = [v.reshape(-1) if v.ndim else v for v in values]
    return _Part(family, tuple(flat[:-2]), flat[-2], flat[-1])


def _parsed(frozen: Any) -> tuple[str, list[FloatArray]]:
    """A frozen distribution's family, and its shape parameters, loc and scale."""
    dist, args, named = (getattr(frozen, k, None) for k in ("dist", "args", "kwds"))
    if dist is None or args is None or named is None:
        raise ProblemError(
            f"FromScipy: {frozen!r} is no frozen distribution: write scipy.stats.t(df=3, scale=0.2)"
        )
    family = str(dist.name)
    if not hasattr(dist, "logpdf"):
        raise ProblemError(f"FromScipy: {family} is discrete: use Categorical")
    if len(family) > _NAME or type(_family(family)) is not type(dist):
        raise ProblemError(f"FromScipy: {family} is not a distribution of scipy.stats")
    names = [*_shape_names(family), "loc", "scale"]
    usual = {"loc": 0.0, "scale": 1.0}
    said = {**usual, **dict(zip(names, args, strict=False)), **named}
    try:
        return family, [np.array(said[name], np.float64) for name in names]
    except (KeyError, TypeError, ValueError) as error:
        raise ProblemError(
            f"FromScipy: the parameters of {family} are no numbers: {error}"
        ) from None


def _family(name: str) -> Any:
    """A family of `scipy.stats`, whose import takes half a second."""
    import scipy.stats

    found = getattr(scipy.stats, name, None)
    if not isinstance(found, scipy.stats.rv_continuous):
        raise ProblemError(f"scipy.stats has no continuous distribution {name!r}")
    return found


def _shape_names(family: str) -> list[str]:
    shapes = _family(family).shapes
    return shapes.split(", ") if shapes else []
