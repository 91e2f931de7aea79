"""Files of a run folder: written whole or not at all, read without trust.

Names of files are fixed by the schema, never taken from a folder's content; a link, a pipe or a
device in a file's place is refused, on reading and on writing.
"""

from __future__ import annotations

import json
import math
import stat
from pathlib import Path
from typing import Any

from apeval.atomic_files import write_bytes as write_bytes
from apeval.errors import ApevalError

LARGEST_JSON = 256 * 2**20
DEEPEST = 64
"""Levels of lists and objects in each other; what apeval writes has fewer than 20."""


def write_json(path: Path, data: Any) -> Path:
    """Write plain data."""
    return write_bytes(path, as_json(data))


def as_json(data: Any) -> bytes:
    """Plain data as it is written."""
    text = json.dumps(data, indent=1, allow_nan=False, ensure_ascii=False)
    return text.encode("utf-8", "replace")


def regular(path: Path, largest: int | None = None) -> Path:
    """The path, if a plain file is there."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        raise ApevalError(f"there is no file {path}") from None
    except (OSError, ValueError) as error:
        raise ApevalError(f"cannot read {path}: {error}") from None
    if not stat.S_ISREG(found.st_mode):
        raise ApevalError(f"{path} is not a plain file (a link, a folder or a device): refused")
    if largest is not None and found.st_size > largest:
        raise ApevalError(f"{path} has {found.st_size:,} bytes, more than {largest:,}: refused")
    return path


def read_json(path: Path) -> Any:
    """Read a file that `write_json` wrote."""
    try:
        return parse_json(regular(path, LARGEST_JSON).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ApevalError(f"cannot read {path}: it is damaged or not JSON ({error})") from None


def parse_json(text: str | bytes) -> Any:
    """JSON that apeval wrote: every number finite, nothing nested too deep to be walked through.

    Args:
        text: The text.

    Returns:
        Plain data, at most `DEEPEST` levels deep.

    Raises:
        ValueError: It is not JSON, or not such JSON.
    """
    try:
        data = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        raise ValueError(f"nested deeper than {DEEPEST} levels") from None
    level = [data]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return data
    raise ValueError(f"nested deeper than {DEEPEST} levels")


def _inside(value: Any) -> list[Any]:
    """The lists and objects in a list or an object."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [part for part in parts if isinstance(part, dict | list)]


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object."""
    data = read_json(path)
    if not isinstance(data, dict):
        raise ApevalError(f"{path} is damaged: it holds no JSON object")
    return data


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits[:20]} is too large for a number")
    return value


def whole(data: Any, name: str, where: Path | str, least: int = 0, most: int = 2**53) -> int:
    """A whole number of an object read from a file."""
    value = data.get(name) if isinstance(data, dict) else None
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ApevalError(f"{where} is damaged: {name} is not a whole number of at least {least}")
    return value


def finite(value: float) -> float | None:
    """A number as JSON can hold it."""
    return value if math.isfinite(value) else None
