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

from apeval.errors import ApevalError
from apeval.writing import write_bytes as write_bytes

LARGEST_JSON = 256 * 2**20


def write_json(path: Path, data: Any) -> Path:
    """Write plain data."""
    text = json.dumps(data, indent=1, allow_nan=False, ensure_ascii=False)
    return write_bytes(path, text.encode("utf-8", "replace"))


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
        return json.loads(
            regular(path, LARGEST_JSON).read_text(encoding="utf-8"), parse_constant=_refuse
        )
    except (OSError, ValueError, RecursionError) as error:
        raise ApevalError(f"cannot read {path}: it is damaged or not JSON ({error})") from None


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object."""
    data = read_json(path)
    if not isinstance(data, dict):
        raise ApevalError(f"{path} is damaged: it holds no JSON object")
    return data


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def whole(data: Any, name: str, where: Path | str, least: int = 0, most: int = 2**53) -> int:
    """A whole number of an object read from a file."""
    value = data.get(name) if isinstance(data, dict) else None
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ApevalError(f"{where} is damaged: {name} is not a whole number of at least {least}")
    return value


def finite(value: float) -> float | None:
    """A number as JSON can hold it."""
    return value if math.isfinite(value) else None
