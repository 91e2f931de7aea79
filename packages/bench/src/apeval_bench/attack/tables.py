"""One changed value, row or description in a Parquet file, or one number in a tensor."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Do = Callable[[Path], None]
_ABOUT = b"apeval"
_COLUMNS = {
    "sample": (
        "id", "component", "log_p", "log_q_0", "log_q_1", "kind", "unresolved", "length", "margin",
        "log_share",
    ),
    "episodes": (
        "ids", "component", "length", "kind", "unresolved", "margin", "ended_by_roulette",
        "s_end_0", "a_0_0",
    ),
    "decisions": ("episode", "t", "s_0", "a_A_0", "a_E_0", "law_mean_0", "law_mean"),
}  # fmt: skip
"""Columns of each file, as docs/reference/store.md names them; some runs lack some."""
_DESCRIBED = ("number", "position", "first_id", "law", "law_0")


def parquet_edits(path: Path) -> Iterator[tuple[str, Do]]:
    """Edits of a table, by name."""
    import pyarrow.parquet as pq

    kind = path.stem.split(".")[-1]
    present = pq.read_schema(path).names
    for column in (name for name in _COLUMNS.get(kind, ()) if name in present):
        for label, change in (("one", _one), ("all", _all)):
            yield f"{column}:{label}", _with(_column(column, change))
    for label, rows in _ROWS.items():
        yield f"rows:{label}", _with(_taken(rows))
    for key in _DESCRIBED if kind != "sample" else ():
        yield f"described:{key}", _with(_described(key))


Change = Callable[[Any, dict[str, Any]], tuple[Any, dict[str, Any]]]


def _with(change: Change) -> Do:
    """Write a table again, changed."""

    def do(path: Path) -> None:
        import pyarrow.parquet as pq

        table = pq.read_table(path, use_threads=False)
        metadata = dict(table.schema.metadata or {})
        about = json.loads(metadata.get(_ABOUT, b"{}"))
        table, about = change(table, about)
        metadata[_ABOUT] = json.dumps(about).encode()
        pq.write_table(
            table.replace_schema_metadata(metadata),
            path,
            compression="zstd",
            use_dictionary=False,
            write_statistics=False,
            write_page_checksum=True,
        )

    return do


def _column(name: str, change: Callable[[Any], None]) -> Change:
    def do(table: Any, about: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        import numpy as np
        import pyarrow as pa

        k = table.column_names.index(name)
        values = np.array(table.column(k).to_numpy(zero_copy_only=False))
        change(values)
        column = pa.array(values, table.schema.field(k).type)
        return table.set_column(k, table.schema.field(k), column), about

    return do


def _all(values: Any) -> None:
    if values.dtype.kind == "b":
        values[:] = ~values
    elif values.dtype.kind == "f":
        values += 0.3
    else:
        values[:] = 1 - (values > 0) if values.max(initial=0) <= 1 else values + 1


def _one(values: Any) -> None:
    """One row: the last that is not zero, such as a failing one."""
    import numpy as np

    hits = np.flatnonzero(values)
    _all(values[hits[-1] :][:1] if len(hits) else values[-1:])


def _first_doubled(n: int) -> list[int]:
    return [0, 0, *range(2, n)] if n > 1 else [0]


_ROWS: dict[str, Callable[[int], list[int]]] = {
    "last gone": lambda n: list(range(n - 1)),
    "half gone": lambda n: list(range(n // 2)),
    "reversed": lambda n: list(range(n))[::-1],
    "first doubled": _first_doubled,
    "all twice": lambda n: [*range(n), *range(n)],
}


def _taken(rows: Callable[[int], list[int]]) -> Change:
    def do(table: Any, about: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        import pyarrow as pa

        table = table.take(pa.array(rows(table.num_rows), pa.int64()))
        if "rows" in about:
            about["rows"] = table.num_rows
        return table, about

    return do


def _described(key: str) -> Change:
    def do(table: Any, about: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        value = about.get(key)
        if isinstance(value, int):
            about[key] = value + 1
        elif isinstance(value, dict):
            _shift(value)
        return table, about

    return do


def _shift(law: Any) -> None:
    """Other numbers in a law's parameters, which stand there in base64."""
    import base64

    import numpy as np

    for key, value in law.items() if isinstance(law, dict) else enumerate(law):
        if isinstance(value, dict | list):
            _shift(value)
        elif isinstance(value, float):
            law[key] = value * 1.2 + 0.1
        elif isinstance(value, str) and len(value) >= 8 and key not in ("law", "type", "class"):
            try:
                numbers = np.frombuffer(base64.b64decode(value, validate=True), np.float64)
            except ValueError:
                continue
            law[key] = base64.b64encode((numbers * 1.2 + 0.1).tobytes()).decode()


def tensor_edits(path: Path) -> Iterator[tuple[str, Do]]:
    """One number of each tensor of floats."""
    header, start = _header(path.read_bytes())
    for name, entry in header.items():
        begin, end = entry.get("data_offsets", (0, 0))
        if entry.get("dtype") == "F64" and end > begin:

            def do(path: Path, place: int = start + begin) -> None:
                data = bytearray(path.read_bytes())
                (number,) = struct.unpack_from("<d", data, place)
                struct.pack_into("<d", data, place, number * 1.5 + 0.1)
                path.write_bytes(bytes(data))

            yield name, do


def _header(data: bytes) -> tuple[dict[str, Any], int]:
    (size,) = struct.unpack("<Q", data[:8])
    header: dict[str, Any] = json.loads(data[8 : 8 + size])
    return header, 8 + size
