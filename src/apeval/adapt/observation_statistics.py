"""Statistics that a policy's observations are normalised by, as `VecNormalize` keeps them."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from apeval.atomic_files import write_bytes
from apeval.errors import ApevalError
from apeval.problem.types import Array, FloatArray

Columns = Any
"""Numbers of an observation's shape, an array; of a dict observation, a mapping of these."""
_EPSILON, _CLIP = 1e-8, 10.0  # what VecNormalize has by default
_NEVER = 1.0  # observations that statistics must have seen: VecNormalize begins with 1e-4


@dataclass(frozen=True)
class ObservationStatistics:
    """Mean and variance of observations: (obs − mean) / √(variance + ε), clipped.

    Args:
        mean: Of each component; of a dict observation, by key. Keys that are left out stay as they
            are.
        variance: Of each component.
        epsilon: Added to the variance.
        clip: The largest absolute value after that.
    """

    mean: Columns
    variance: Columns
    epsilon: float = _EPSILON
    clip: float = _CLIP

    def __post_init__(self) -> None:
        pairs: list[tuple[Any, Any]] = (
            [(self.mean[k], self.variance.get(k)) for k in self.mean]
            if isinstance(self.mean, Mapping) and isinstance(self.variance, Mapping)
            else [(self.mean, self.variance)]
        )
        for mean, variance in pairs:
            if np.shape(mean) != np.shape(variance) or isinstance(variance, Mapping):
                raise ApevalError(
                    "statistics of observations need a mean and a variance of the same shape; got "
                    f"{np.shape(mean)} and {np.shape(variance)}"
                )
            if not (np.all(np.isfinite(mean)) and np.all(np.asarray(variance) >= 0.0)):
                raise ApevalError(
                    "statistics of observations need finite means and variances ≥ 0: is the file "
                    "the right one?"
                )
        if not (self.epsilon >= 0.0 and self.clip > 0.0):
            raise ApevalError(
                "statistics of observations need epsilon ≥ 0 and clip > 0; got "
                f"{self.epsilon} and {self.clip}"
            )

    def normalized(self, observations: Any) -> Any:
        """One observation, or a batch of them, in single precision as VecNormalize gives it."""
        if not isinstance(self.mean, Mapping):
            return self._columns(observations, self.mean, self.variance)
        found = dict(observations)
        for key, mean in self.mean.items():
            found[key] = self._columns(found[key], mean, self.variance[key])
        return found

    def _columns(self, values: Any, mean: Any, variance: Any) -> Array:
        scaled = (np.asarray(values) - mean) / np.sqrt(variance + self.epsilon)
        clipped: Array = np.clip(scaled, -self.clip, self.clip).astype(np.float32)
        return clipped

    def fits(self, space: Any) -> str | None:
        """Why these are not statistics of an observation space; None where they may be."""
        spaces = getattr(space, "spaces", None)
        if isinstance(self.mean, Mapping):
            if not isinstance(spaces, Mapping):
                return (
                    f"they are of a dict with {', '.join(self.mean)}, the environment has {space}"
                )
            for key, mean in self.mean.items():
                shape = getattr(spaces.get(key), "shape", None)
                if shape != mean.shape:
                    return f"'{key}' has the shape {mean.shape}, in the environment {shape}"
            return None
        if getattr(space, "shape", None) != np.shape(self.mean):
            return f"they have the shape {np.shape(self.mean)}, the environment has {space}"
        return None

    def save(self, path: Path | str) -> None:
        """Write the plain file: arrays and numbers, nothing that runs."""
        import io

        parts: dict[str, Any] = {"epsilon": self.epsilon, "clip": self.clip}
        for name, columns in (("mean", self.mean), ("variance", self.variance)):
            if isinstance(columns, Mapping):
                parts |= {f"{name}/{key}": value for key, value in columns.items()}
            else:
                parts[name] = columns
        held = io.BytesIO()
        np.savez(held, **parts)
        write_bytes(Path(path), held.getvalue())


def read_statistics(given: Any) -> ObservationStatistics | None:
    """What a user may give as `normalize=`.

    Args:
        given: A file that ``VecNormalize.save`` wrote, the plain file (.npz), a `VecNormalize`
            object, or the statistics.

    Returns:
        The statistics; None where they say that observations were not normalised.

    Raises:
        ApevalError: It is none of these, or holds none.
    """
    if isinstance(given, ObservationStatistics):
        return given
    if not isinstance(given, str | Path):
        return _of_vec_normalize(given, type(given).__name__)
    path = Path(given)
    if not path.is_file():
        raise ApevalError(
            f"no file of statistics '{path}': give what VecNormalize.save wrote, or a .npz with "
            "mean and variance; None says that observations are taken as they are"
        )
    if path.suffix == ".npz":
        return _of_plain_file(path)
    with path.open("rb") as file:
        try:
            held = _NumbersOnly(file).load()
        except Exception as error:
            raise ApevalError(
                f"'{path}' cannot be read as statistics of VecNormalize ({type(error).__name__}: "
                f"{error}): give the file that VecNormalize.save wrote, or a .npz with mean and "
                "variance"
            ) from error
    return _of_vec_normalize(held, f"'{path}'")


def _of_vec_normalize(held: Any, what: str) -> ObservationStatistics | None:
    if getattr(held, "norm_obs", None) is False:
        return None
    kept, keys = getattr(held, "obs_rms", None), getattr(held, "norm_obs_keys", None)
    if kept is None:
        raise ApevalError(
            f"normalize: {what} holds no statistics of observations: give the file that "
            "VecNormalize.save wrote, a VecNormalize object, or a .npz with mean and variance"
        )
    each = kept if isinstance(kept, Mapping) else {"": kept}
    each = {key: each[key] for key in (keys or each)}
    if any(float(getattr(one, "count", _NEVER)) < _NEVER for one in each.values()):
        raise ApevalError(
            f"normalize: the statistics of {what} have never seen an observation: load them with "
            "VecNormalize.load(path, venv), or give the file itself"
        )
    mean, variance = (
        {key: np.array(getattr(one, part), np.float64) for key, one in each.items()}
        for part in ("mean", "var")
    )
    numbers = float(getattr(held, "epsilon", _EPSILON)), float(getattr(held, "clip_obs", _CLIP))
    if isinstance(kept, Mapping):
        return ObservationStatistics(mean, variance, *numbers)
    return ObservationStatistics(mean[""], variance[""], *numbers)


def _of_plain_file(path: Path) -> ObservationStatistics:
    try:
        with np.load(path, allow_pickle=False) as held:
            parts = {name: np.asarray(held[name], np.float64) for name in held.files}
    except (OSError, ValueError) as error:
        raise ApevalError(f"'{path}' cannot be read as a .npz of numbers: {error}") from error
    short = {"var": "variance", "clip_obs": "clip"}
    parts = {"/".join([short.get(n.split("/")[0], n.split("/")[0]), *n.split("/")[1:]]): v
             for n, v in parts.items()}  # fmt: skip
    mean, variance = (_part(parts, name) for name in ("mean", "variance"))
    if mean is None or variance is None:
        raise ApevalError(
            f"'{path}' holds {', '.join(parts) or 'nothing'}: it needs mean and variance (of a "
            "dict observation mean/KEY and variance/KEY), and may have epsilon and clip"
        )
    return ObservationStatistics(
        mean, variance, float(parts.get("epsilon", _EPSILON)), float(parts.get("clip", _CLIP))
    )


def _part(parts: Mapping[str, FloatArray], name: str) -> Columns:
    keyed = {k.removeprefix(f"{name}/"): v for k, v in parts.items() if k.startswith(f"{name}/")}
    return keyed or parts.get(name)


class _Inert:
    """Stands for any object in a pickle: it keeps what it is given, and does nothing."""

    def __init__(self, *given: Any, **named: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        parts = state if isinstance(state, tuple) else (state,)
        for part in parts:
            if isinstance(part, dict):
                self.__dict__.update({str(key): value for key, value in part.items()})

    def __setitem__(self, key: Any, value: Any) -> None:
        pass

    def append(self, value: Any) -> None:
        """As a list in a pickle is filled."""

    def extend(self, values: Any) -> None:
        """As a list in a pickle is filled."""


class _NumbersOnly(pickle.Unpickler):
    """Reads arrays and numbers out of a pickle. Nothing that the file names is imported or called
    but what NumPy makes arrays of."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)

    def find_class(self, module: str, name: str) -> Any:
        """An array's parts as they are, anything else as an inert object."""
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if module.split(".")[0] != "numpy" or name not in _ARRAYS:
            return type(name, (_Inert,), {})
        return _ARRAYS[name]


def _reconstruct(kind: Any, shape: Any, typecode: Any) -> Array:
    """An empty array, which its state fills."""
    return np.ndarray.__new__(np.ndarray, shape, typecode)


def _frombuffer(buffer: Any, dtype: Any, shape: Any, order: Any) -> Array:
    return np.frombuffer(buffer, dtype).reshape(shape, order=order)


def _scalar(dtype: Any, held: Any = None) -> Any:
    return np.frombuffer(held, dtype)[0] if isinstance(held, bytes) else held


_ARRAYS = {
    "dtype": np.dtype,
    "ndarray": np.ndarray,
    "_reconstruct": _reconstruct,
    "_frombuffer": _frombuffer,
    "scalar": _scalar,
}
"""What a pickled array is made by, under any of NumPy's module names."""
