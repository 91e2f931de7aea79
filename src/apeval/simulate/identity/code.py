"""A digest of functions and of the values that they hold: closures and lambdas have no file.

Two functions with the same digest have the same bytecode, defaults, closed-over values and
module-level constants, also those of modules that they name (``config.LIMIT``). Functions of
installed packages, and of apeval, count by their names: versions are compared apart.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import os
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from apeval.plugins import is_ours
from apeval.simulate.identity.source_files import is_users

_DEEPEST = 100  # functions that call each other, well below Python's limit of recursion
_MOST = 20_000  # values looked at
_Plain = bool | int | float | complex | str | bytes | None
_WRAPPERS = (classmethod, staticmethod, property, functools.cached_property)


def digest(*parts: Any) -> str:
    """SHA-256 over what the parts are made of.

    Args:
        *parts: Functions, objects with functions, numbers, arrays, texts, and containers of these.

    Returns:
        64 hexadecimal digits. They hold for one version of Python, whose bytecode they are of.

    Examples:
        >>> digest(functools.partial(pow, 2)) == digest(functools.partial(pow, 2))
        True
        >>> digest(functools.partial(pow, 2)) == digest(functools.partial(pow, 3))
        False
    """
    hasher = hashlib.sha256()
    for piece in _ObjectWalk().pieces(parts, 0):
        hasher.update(piece)
        hasher.update(b"\0")
    return hasher.hexdigest()


def modules_of(*parts: Any) -> set[str]:
    """Names of the user's modules in which functions and classes of the parts are defined."""
    walk = _ObjectWalk()
    for _ in walk.pieces(parts, 0):
        pass
    return walk.modules


class _ObjectWalk:
    """Meets every object once."""

    def __init__(self) -> None:
        self.met: dict[int, tuple[int, Any]] = {}  # holds them, so that no number is used twice
        self.looked = 0
        self.modules: set[str] = set()

    def pieces(self, value: Any, depth: int) -> Iterator[bytes]:
        if isinstance(value, enum.Enum):  # before the numbers, which it may be one of
            yield f"member:{value.name}".encode("utf-8", "replace")
            yield from self.pieces((type(value), value.value), depth)
            return
        if isinstance(value, _Plain):
            yield f"{type(value).__name__}:{value!r}".encode("utf-8", "replace")
            return
        if id(value) in self.met:
            yield f"again:{self.met[id(value)][0]}".encode()
            return
        self.looked += 1
        if depth > _DEEPEST or self.looked > _MOST:
            yield b"further"
            return
        if (array := _as_array(value)) is not None:
            yield from self._array(array, depth)
            return
        if not isinstance(value, tuple | frozenset):  # equal ones may be shared or not
            self.met[id(value)] = (len(self.met), value)
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
        elif isinstance(value, types.ModuleType) or value is os.environ:
            yield f"named:{_name(value)}".encode()
        elif isinstance(value, types.BuiltinFunctionType | types.MethodWrapperType):
            yield f"named:{_name(value)}".encode()
            if not isinstance(value.__self__, types.ModuleType):  # a method of some object
                yield from self.pieces(value.__self__, depth)
        elif isinstance(value, Mapping):
            yield f"mapping:{len(value)}".encode()
            for key in sorted(value, key=_order):
                yield from self.pieces(key, depth)
                yield from self.pieces(value[key], depth)
        elif isinstance(value, list | tuple):
            yield f"{type(value).__name__}:{len(value)}".encode()
            for item in value:
                yield from self.pieces(item, depth)
        elif isinstance(value, set | frozenset):
            yield from self.pieces(sorted(value, key=_order), depth)
        elif isinstance(value, type):
            yield from self._class(value, depth)
        else:
            yield from self._object(value, depth)

    def _function(self, call: types.FunctionType, depth: int) -> Iterator[bytes]:
        yield b"function"
        closed = [_content_of(cell) for cell in call.__closure__ or ()]
        if not is_users(call.__module__):
            yield _name(call).encode()
            yield from self.pieces(closed, depth)
            return
        self.modules.add(call.__module__)
        yield from self.pieces(call.__code__, depth)
        yield from self.pieces((call.__defaults__, call.__kwdefaults__), depth)
        yield from self.pieces(closed, depth)
        yield from self._members(call.__dict__, depth)
        names, modules = _names(call.__code__), [call.__globals__]
        modules += [vars(it) for it in closed if isinstance(it, types.ModuleType) and _is_own(it)]
        for where in modules:
            for name in sorted(names & where.keys()):
                yield name.encode()
                found = where[name]
                yield from self.pieces(found, depth)
                if isinstance(found, types.ModuleType) and _is_own(found):
                    modules += [] if any(vars(found) is it for it in modules) else [vars(found)]

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
        yield from self._members(vars(kind), depth)
        for base in kind.__bases__:
            yield from self.pieces(base, depth)

    def _members(self, members: Mapping[str, Any], depth: int) -> Iterator[bytes]:
        """What has a public name, and functions; of private values only those that cannot be
        changed in place: of others nobody knows whether they are caches."""
        for name, member in sorted(members.items()):
            if isinstance(member, _WRAPPERS):
                functions = ("__func__", "fget", "fset", "func")
                member = [getattr(member, part, None) for part in functions]
            elif not isinstance(member, types.FunctionType) and (
                name.startswith("__") or (name.startswith("_") and not _is_fixed(member))
            ):
                continue
            yield name.encode()
            yield from self.pieces(member, depth)

    def _object(self, value: Any, depth: int) -> Iterator[bytes]:
        """Its class and its attributes. Objects of the standard library count by their value,
        where they have one; others that are not the user's by the functions in them."""
        kind = type(value)
        yield from self.pieces(kind, depth)
        if isinstance(name := getattr(value, "__name__", None), str):
            yield name.encode("utf-8", "replace")
        network = value if hasattr(value, "state_dict") else getattr(value, "policy", None)
        if "torch" in sys.modules and callable(getattr(network, "state_dict", None)):
            yield from _weights(network)
        held = _attributes(value)
        if is_users(kind.__module__) or is_ours(kind.__module__):
            if network is value:
                held.pop("training", None)  # what that does is told by the reference decisions
            yield from self._members(held, depth)
        elif (content := _content(value)) is not None:
            yield from self.pieces(content, depth)
        else:
            functions = {k: v for k, v in held.items() if isinstance(v, types.FunctionType)}
            yield from self.pieces(functions, depth)

    def _array(self, values: np.ndarray[Any, Any], depth: int) -> Iterator[bytes]:
        yield f"array:{values.dtype}:{values.shape}".encode()
        if values.dtype.hasobject:
            yield from self.pieces(values.tolist(), depth)
        else:
            yield hashlib.sha256(np.ascontiguousarray(values).tobytes()).digest()


def _content_of(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that is not bound yet
        return None


def _is_own(module: types.ModuleType) -> bool:
    return is_users(module.__name__)


def _is_fixed(value: Any) -> bool:
    if isinstance(value, tuple | frozenset):
        return all(_is_fixed(item) for item in value)
    return isinstance(value, _Plain) and value is not None


def _content(value: Any) -> list[Any] | None:
    """What an object of the standard library is made of, where two are equal if that is: paths,
    dates, ranges, namespaces …; None for what is under way, such as a process or a file."""
    kind = type(value)
    by_value = any("__eq__" in vars(base) for base in kind.__mro__[:-1])
    if not by_value or kind.__module__.split(".")[0] not in sys.stdlib_module_names:
        return None
    try:
        made = value.__reduce_ex__(2)
    except TypeError:  # it cannot be copied
        return None
    _, arguments, *state = made if isinstance(made, tuple) else (None, made)
    return [arguments, *(list(part) if isinstance(part, Iterator) else part for part in state)]


def _order(key: Any) -> str:
    """A name that does not depend on where in memory the object lies."""
    return repr(key) if isinstance(key, _Plain) else digest(key)


def _as_array(value: Any) -> np.ndarray[Any, Any] | None:
    """Arrays of NumPy and JAX, numbers of NumPy, and tensors."""
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        array: np.ndarray[Any, Any] = value.detach().cpu().numpy()
        return array
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(value, getattr(jax, "Array", ())):
        return np.asarray(value)
    return None


def _attributes(value: Any) -> dict[str, Any]:
    found = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        for name in getattr(kind, "__slots__", ()):
            if hasattr(value, name):
                found[name] = getattr(value, name)
    return found


def _weights(network: Any) -> Iterator[bytes]:
    """A network, also that of a Stable-Baselines3 model, counts by its parameters."""
    for name, tensor in network.state_dict().items():
        yield str(name).encode()
        if (array := _as_array(tensor)) is not None:
            yield f"{array.dtype}:{array.shape}".encode()
            yield hashlib.sha256(array.tobytes()).digest()


def _names(code: types.CodeType) -> set[str]:
    """Global names that a function and the functions within it may use."""
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*(_names(c) for c in inner))


def _name(value: Any) -> str:
    """With its module, unless that is the user's: its name depends on where the file lies."""
    module = getattr(value, "__module__", None)
    name = str(getattr(value, "__qualname__", getattr(value, "__name__", "")))
    return name if is_users(module) else f"{module}.{name}"
