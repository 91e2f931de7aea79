"""The files that a problem is made of: its source, what that imports, and its policies."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from apeval.plugins import folders, is_ours

_LARGEST = 2**31  # bytes that are hashed of one file
_PACKAGES = {"site-packages", "dist-packages"}  # folders into which packages are installed


def is_users(module: str | None) -> bool:
    """Whether a module is the user's own: not of Python, of an installed package or of apeval."""
    if not module or module.split(".")[0] in sys.stdlib_module_names - {"__main__"}:
        return False
    if is_ours(module):
        return False
    found = sys.modules.get(module)
    file = getattr(found, "__file__", None)
    return file is None or _users(Path(file))


@functools.cache
def _users(file: Path) -> bool:
    path = file.resolve()
    if not _PACKAGES.isdisjoint(path.parts):  # of any environment on the path
        return False
    return not any(path.is_relative_to(folder) for folder in (*_installed(), *_ours()))


@functools.cache
def _ours() -> tuple[Path, ...]:
    return tuple(folder.resolve() for folder in folders().values())


@functools.cache
def _installed() -> tuple[Path, ...]:
    """Folders of the standard library and of packages that pip installs."""
    paths = sysconfig.get_paths()
    folders = {paths[k] for k in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders |= {*site.getsitepackages(), site.getusersitepackages()}
    return tuple(Path(folder).resolve() for folder in folders)


def address_file(name: str) -> Path | None:
    """The file that a problem's address names, ``file.py:factory`` or ``module:factory``."""
    where = name.rpartition(":")[0]
    file = Path(where) if where.endswith(".py") else _file_of(where) if where else None
    return file if file is not None and _users(file) else None


def source_files(modules: Iterable[str], first: Path | None = None) -> list[Path]:
    """The files of the user's modules with those named, and of all that they import, also within
    functions, as long as it is the user's own.

    Args:
        modules: Names of loaded modules.
        first: A further file, from which the problem was built.

    Returns:
        Paths, sorted; without modules that no file describes.
    """
    found: set[Path] = set()
    waiting = [f for name in modules if is_users(name) and (f := _file_of(name)) is not None]
    waiting += [] if first is None else [first]
    while waiting:
        file = waiting.pop().resolve()
        if file in found:
            continue
        found.add(file)
        waiting += [f for name in _imports(file) if (f := _file_of(name)) is not None and _users(f)]
    return sorted(found)


def _file_of(module: str) -> Path | None:
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None and module not in sys.modules:
        try:
            spec = importlib.util.find_spec(module)
        except Exception:  # a name that cannot be imported: finding it runs its packages' code
            return None
        file = None if spec is None else spec.origin
    path = None if file is None else Path(file)
    return path if path is not None and path.suffix == ".py" and path.is_file() else None


def _imports(file: Path) -> Iterator[str]:
    """Names of modules that a file imports anywhere, and of their packages."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(file, node)
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)] if base else []
        for name in names:
            parts = name.split(".")
            if parts[0] in sys.stdlib_module_names or is_ours(name):
                continue
            yield from (".".join(parts[: k + 1]) for k in range(len(parts)))


def _absolute(file: Path, node: ast.ImportFrom) -> str | None:
    """The module of a from-import; of a relative one as it was loaded."""
    if not node.level:
        return node.module
    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) == str(file):
            package = getattr(module, "__package__", None) or name.rpartition(".")[0]
            parts = package.split(".")
            base = parts[: len(parts) - node.level + 1]
            return ".".join([*base, node.module] if node.module else base) or None
    return None


def named_files(parameters: Mapping[str, Any]) -> list[Path]:
    """Files that a problem's parameters name, such as a policy's."""
    return [Path(v) for v in parameters.values() if isinstance(v, str) and _is_file(v)]


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):  # too long for a name, for example
        return False


def hashes(files: Iterable[Path]) -> list[dict[str, Any]]:
    """Name and SHA-256 of each file, by name; no folders, which differ from machine to machine."""
    found = {(file.name, file_hash(file)) for file in files}
    return [{"name": name, "sha256": digest} for name, digest in sorted(found, key=str)]


def file_hash(path: Path) -> str | None:
    """SHA-256 of a file; None where it cannot be read, or is too large to be read at once."""
    digest = hashlib.sha256()
    try:
        if path.stat().st_size > _LARGEST:
            return None
        with path.open("rb") as file:
            while block := file.read(2**20):
                digest.update(block)
    except OSError:
        return None
    return digest.hexdigest()
