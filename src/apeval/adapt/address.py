"""Problems by address: ``module:factory`` or ``file.py:factory``."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from apeval.errors import ApevalError, ProblemError, blame, unknown
from apeval.problem.problem import Problem
from apeval.problem.settings import convert, is_number
from apeval.remedies import Parameter

DEFAULT = "problem"
"""The factory of a file whose address names none."""
_PLAIN = (bool, int, float, str, type(None))
_files: dict[tuple[str, int, int], ModuleType] = {}


def is_address(name: str) -> bool:
    """Whether a problem's name says where it is.

    >>> is_address("walk"), is_address("my_problem.py"), is_address("lab.cars:merge")
    (False, True, True)
    """
    return ":" in name or name.endswith(".py")


def full_address(name: str) -> str:
    """A file's address with its factory; anything else as it is.

    >>> full_address("lab/cars.py"), full_address("walk")
    ('lab/cars.py:problem', 'walk')
    """
    return f"{name}:{DEFAULT}" if name.endswith(".py") else name


def build(address: str, parameters: Mapping[str, Any]) -> Problem:
    """The problem at the address; `parameters` go to its factory. It is named by its address, so
    that whoever reads a result can build it again."""
    address = full_address(address)
    found = find(address)
    if isinstance(found, Problem):
        if parameters:
            raise ApevalError(
                f"{address} is a problem, not a function that makes one, and takes no "
                f"'{next(iter(parameters))}': write def {_split(address)[1]}(…) -> Problem"
            )
        return replace(found, name=address, description=found.description or found.name)
    given = check_parameters(address, found, parameters)
    try:
        problem = found(**given)
    except ApevalError:
        raise
    except (Exception, SystemExit) as error:
        raise ProblemError(f"{address} raised {blame(error)}: mend the factory") from error
    if not isinstance(problem, Problem):
        hint = "does it lack a return statement?" if problem is None else "return the Problem"
        raise ProblemError(
            f"{address} returned {_a(problem)}, expected a Problem, as apeval.from_env or "
            f"apeval.Problem(…) gives it: {hint}"
        )
    return replace(
        problem,
        name=address,
        description=problem.description or problem.name,
        parameters={**_defaults(found), **{k: _plain(v) for k, v in given.items()}},
    )


def find(address: str) -> Any:
    """The factory, or the problem itself, at the address."""
    where, attribute = _split(address)
    module = _from_file(where) if where.endswith(".py") else _from_module(where)
    there: Any = module
    for part in attribute.split("."):
        if not hasattr(there, part):
            raise _no_such(where, attribute, module)
        there = getattr(there, part)
    if isinstance(there, Problem) or callable(there):
        return there
    raise ProblemError(
        f"{address} is {_a(there)}, expected a function that returns a Problem, or a Problem"
    )


def loaded_files() -> list[str]:
    """Files of users that are loaded here: what another process needs before it can read objects
    that were made from them."""
    return [path for path, _, _ in _files]


def load_files(paths: list[str]) -> None:
    """Load users' files, as another process had them."""
    for path in paths:
        _from_file(path)


def check_parameters(
    name: str,
    factory: Callable[..., Any],
    parameters: Mapping[str, Any],
    told: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Named values for a factory, text converted to the annotated type or the default's; a
    user does not set those in `told`."""
    accepted = inspect.signature(factory).parameters
    open_ended = any(p.kind is p.VAR_KEYWORD for p in accepted.values())
    adjustable = [
        p.name
        for p in accepted.values()
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name not in told
    ]
    for key in parameters:
        if key not in adjustable and not open_ended:
            if not adjustable:
                raise ApevalError(f"problem '{name}' has no parameter to set (got '{key}')")
            raise unknown(f"parameter of {name}", key, adjustable)
    needed = [k for k in adjustable if accepted[k].default is inspect.Parameter.empty]
    missing = next((k for k in needed if k not in parameters), None)
    if missing is not None:
        raise ApevalError(
            f"problem '{name}' needs a value for '{missing}': {Parameter(missing)}, or give it a "
            "default"
        )
    return {key: _converted(factory, key, value) for key, value in parameters.items()}


def _converted(factory: Callable[..., Any], key: str, value: Any) -> Any:
    try:
        hints = typing.get_type_hints(factory)
    except Exception:  # annotations that only a type checker can read
        hints = {}
    parameter = inspect.signature(factory).parameters.get(key)
    if not isinstance(value, str):
        default = parameter is not None and value is parameter.default
        return (
            value if default or not is_number(hints.get(key)) else convert(key, hints[key], value)
        )
    if key in hints:
        return convert(key, hints[key], value)
    if parameter is not None and isinstance(parameter.default, bool | int | float):
        return convert(key, type(parameter.default), value)
    return value


def _defaults(factory: Callable[..., Any]) -> dict[str, Any]:
    """What a result should say of the parameters that were not given."""
    parameters = inspect.signature(factory).parameters.values()
    return {p.name: p.default for p in parameters if isinstance(p.default, _PLAIN)}


def _plain(value: Any) -> Any:
    """A value as a result can hold it."""
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value if isinstance(value, _PLAIN) else repr(value)


def _split(address: str) -> tuple[str, str]:
    where, _, attribute = address.rpartition(":")
    if not where or not attribute.replace(".", "").isidentifier():
        raise ApevalError(
            f"'{address}' is no address of a problem: write file.py:factory or module:factory"
        )
    return where, attribute


def _from_file(where: str) -> ModuleType:
    path = Path(where).expanduser()
    if not path.is_file():
        raise ApevalError(
            f"no file '{where}' in {Path.cwd()}: give its path, or write one with "
            f"`apeval new {path.name}`"
        )
    path = path.resolve()
    status = path.stat()
    key = (str(path), status.st_mtime_ns, status.st_size)
    if key in _files:
        return _files[key]
    digest = hashlib.sha256(repr(key).encode()).hexdigest()[:12]
    name = f"_apeval_user_{path.stem}_{digest}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ApevalError(f"'{where}' cannot be read as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look their module up there
    _see(str(path.parent))
    try:
        _run(where, lambda: spec.loader.exec_module(module))  # type: ignore[union-attr]
    except ApevalError:
        del sys.modules[name]
        raise
    _files[key] = module
    return module


def _from_module(where: str) -> ModuleType:
    _see(os.getcwd())  # as `python -m` does
    try:
        if importlib.util.find_spec(where) is None:
            raise ModuleNotFoundError(where, name=where)
    except (ModuleNotFoundError, ValueError) as error:
        missing = getattr(error, "name", None) or where
        if where == missing or where.startswith(f"{missing}."):
            raise ApevalError(
                f"no module '{missing}' in {Path.cwd()} or among the installed packages: give the "
                "file instead (path/to/file.py:factory), or install the package"
            ) from None
        raise ApevalError(f"importing {where} failed: {blame(error)}") from error
    return typing.cast("ModuleType", _run(where, lambda: importlib.import_module(where)))


def _run(where: str, load: Callable[[], Any]) -> Any:
    """A module's own code; what it raises becomes one line."""
    try:
        return load()
    except ApevalError:
        raise
    except SyntaxError as error:
        place = f"{Path(error.filename or where).name}, line {error.lineno}"
        raise ProblemError(f"{where} is not valid Python: {error.msg} ({place})") from error
    except ModuleNotFoundError as error:
        raise ProblemError(
            f"{where} imports '{error.name}', which is not installed ({blame(error)}): install it "
            "in the environment that apeval runs in"
        ) from error
    except SystemExit as error:
        raise ProblemError(
            f"{where} ended Python while it was imported ({blame(error)}): put what a script does "
            "under if __name__ == '__main__':"
        ) from error
    except Exception as error:
        raise ProblemError(f"importing {where} raised {blame(error)}: mend the file") from error


def _see(folder: str) -> None:
    if folder not in sys.path:
        sys.path.insert(0, folder)


def _no_such(where: str, attribute: str, module: ModuleType) -> ApevalError:
    own = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (isinstance(value, Problem) or inspect.isfunction(value))
        and getattr(value, "__module__", module.__name__) in (module.__name__, Problem.__module__)
    ]
    if not own:
        return ProblemError(
            f"{where} has no '{attribute}', and no function at all: define "
            f"def {attribute}() -> apeval.Problem"
        )
    return unknown(f"function in {where}", attribute, own)


def _a(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
