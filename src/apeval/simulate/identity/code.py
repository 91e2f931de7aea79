"""A digest of functions and of the values that they hold: closures and lambdas have no file.

Two functions with the same digest have the same bytecode, defaults, closed-over values and
module-level constants. Functions of installed packages, and of apeval, count by their names:
versions are compared apart.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from apeval.plugins import is_ours
from apeval.simulate.identity.files import is_users

_DEEPEST = 12
_MOST = 20_000  # values looked at


def digest(*parts: Any) -> str:
    """SHA-256 over what the parts are made of.

    Args:
        *parts: Functions, objects with functions, numbers, arrays, texts, and containers of these.

    Returns:
        64 hexadecimal digits. They hold for one version of Python, whose bytecode they are of.

    >>> digest(functools.partial(pow, 2)) == digest(functools.partial(pow, 2))
    True
    >>> digest(functools.partial(pow, 2)) == digest(functools.partial(pow, 3))
    False
    """
    hasher = hashlib.sha256()
    for piece in _Walk().pieces(parts, 0):
        hasher.update(piece)
        hasher.update(b"\0")
    return hasher.hexdigest()


def modules_of(*parts: Any) -> set[str]:
    """Names of the user's modules in which functions and classes of the parts are defined."""
    walk = _Walk()
    for _ in walk.pieces(parts, 0):
        pass
    return walk.modules


class _Walk:
    """Meets every object once."""

    def __init__(self) -> None:
        self.met: dict[int, Any] = {}  # holds the objects, so that no number is used twice
        self.modules: set[str] = set()

    def pieces(self, value: Any, depth: int) -> Iterator[bytes]:
        if value is None or isinstance(value, bool | int | float | complex | str | bytes):
            yield f"{type(value).__name__}:{value!r}".encode("utf-8", "replace")
            return
        if isinstance(value, np.ndarray | np.generic):
            yield from _array(np.asarray(value))
            return
        if id(value) in self.met or depth > _DEEPEST or len(self.met) > _MOST:
            yield b"again"
            return
        self.met[id(value)] = value
        yield from self._inside(value, depth + 1)

    def _inside(self, value: Any, depth: int) -> Iterator[bytes]:
        if isinstance(value, types.CodeType):
            yield from self._code(value, depth)
        elif isinstance(value, types.FunctionType):
            yield from self._function(value, depth)
        elif isinstance(value, types.MethodType):
            yield from self.pieces(value.__func__, depth)
            yield from self.pieces(value.__self__, depth)
        elif isinstance(value, functools.partial):
            yield from self.pieces((value.func, value.args, value.keywords), depth)
        elif isinstance(value, types.ModuleType | types.BuiltinFunctionType):
            yield f"named:{_name(value)}".encode()
        elif isinstance(value, Mapping):
            yield f"mapping:{len(value)}".encode()
            for key in sorted(value, key=repr):
                yield from self.pieces(key, depth)
                yield from self.pieces(value[key], depth)
        elif isinstance(value, list | tuple):
            yield f"{type(value).__name__}:{len(value)}".encode()
            for item in value:
                yield from self.pieces(item, depth)
        elif isinstance(value, set | frozenset):
            yield from self.pieces(sorted(value, key=repr), depth)
        elif isinstance(value, type):
            yield from self._class(value, depth)
        else:
            yield from self._object(value, depth)

    def _function(self, call: types.FunctionType, depth: int) -> Iterator[bytes]:
        yield b"function"
        if not is_users(call.__module__):
            yield _name(call).encode()
            yield from self._cells(call, depth)
            return
        self.modules.add(call.__module__)
        yield from self.pieces(call.__code__, depth)
        yield from self.pieces((call.__defaults__, call.__kwdefaults__), depth)
        yield from self._cells(call, depth)
        for name in sorted(_names(call.__code__)):
            if name in call.__globals__:
                yield name.encode()
                yield from self.pieces(call.__globals__[name], depth)

    def _cells(self, call: types.FunctionType, depth: int) -> Iterator[bytes]:
        for cell in call.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:  # a name that is not bound yet
                content = None
            yield from self.pieces(content, depth)

    def _code(self, code: types.CodeType, depth: int) -> Iterator[bytes]:
        yield code.co_code
        yield repr((code.co_names, code.co_varnames, code.co_freevars)).encode()
        for constant in code.co_consts:
            yield from self.pieces(constant, depth)

    def _class(self, kind: type, depth: int) -> Iterator[bytes]:
        yield f"class:{_name(kind)}".encode()
        if not is_users(kind.__module__):
            return
        self.modules.add(kind.__module__)
        for name, member in sorted(vars(kind).items()):
            plain = isinstance(member, bool | int | float | str | np.ndarray | list | tuple)
            bare = getattr(member, "__func__", getattr(member, "fget", member))
            if plain or isinstance(bare, types.FunctionType):
                yield name.encode()
                yield from self.pieces(bare, depth)

    def _object(self, value: Any, depth: int) -> Iterator[bytes]:
        """Its class and its public attributes; of private ones nobody knows whether they change."""
        yield from self.pieces(type(value), depth)
        network = value if hasattr(value, "state_dict") else getattr(value, "policy", None)
        if "torch" in sys.modules and callable(getattr(network, "state_dict", None)):
            yield from _weights(network)
            return
        if not (is_users(type(value).__module__) or is_ours(type(value).__module__)):
            return
        for name, content in sorted(_attributes(value).items()):
            if not name.startswith("_"):
                yield name.encode()
                yield from self.pieces(content, depth)


def _attributes(value: Any) -> dict[str, Any]:
    found = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        for name in getattr(kind, "__slots__", ()):
            if hasattr(value, name):
                found[name] = getattr(value, name)
    return found


def _array(values: Any) -> Iterator[bytes]:
    yield f"array:{values.dtype}:{values.shape}".encode()
    if values.dtype.kind in "biufcSU":
        yield hashlib.sha256(np.ascontiguousarray(values).tobytes()).digest()


def _weights(network: Any) -> Iterator[bytes]:
    """A network, also that of a Stable-Baselines3 model, counts by its parameters."""
    for name, tensor in network.state_dict().items():
        yield str(name).encode()
        if hasattr(tensor, "detach"):
            yield from _array(tensor.detach().cpu().numpy())


def _names(code: types.CodeType) -> set[str]:
    """Global names that a function and the functions within it may use."""
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*(_names(c) for c in inner))


def _name(value: Any) -> str:
    """With its module, unless that is the user's: its name depends on where the file lies."""
    module = getattr(value, "__module__", None)
    name = str(getattr(value, "__qualname__", getattr(value, "__name__", "")))
    return name if is_users(module) else f"{module}.{name}"
