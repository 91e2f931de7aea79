"""NumPy arrays as columns of a Parquet file, bit for bit.

An array (n, d) is d columns `name_0` …, or one column `name` of lists where d > 64 (a picture has
thousands); an array (n,) is one column `name`. What Parquet cannot say
(widths of 0, types, arrays of another length) stands as JSON in the file's own metadata.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from apeval.errors import ApevalError
from apeval.problem.types import Array
from apeval.results.files import parse_json, regular, write_bytes

_KEY = b"apeval"
LARGEST = 4 * 2**30
"""Bytes that the columns of one file may take in memory."""
WIDEST = 64
"""Columns that an array may have; a wider one is a column of lists."""
_TYPES = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
TYPES = {np.dtype(name).name: np.dtype(name) for name in _TYPES}


def dtype_name(values: Array, what: str) -> str:
    """The name of a type that can be stored."""
    name = values.dtype.newbyteorder("=").name
    if name not in TYPES:
        raise ApevalError(
            f"{what} has the type {values.dtype}, which a run folder cannot hold: "
            "give float64, float32, integers or booleans"
        )
    return name


def write_table(path: Path, arrays: Mapping[str, Array], about: Mapping[str, Any]) -> None:
    """Write arrays of one length, with plain data `about` them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names: list[str] = []
    columns: list[Any] = []
    layout: dict[str, Any] = {}
    for name, values in arrays.items():
        layout[name] = {"type": dtype_name(values, name), "width": None}
        if values.ndim == 1:
            names.append(name)
            columns.append(pa.array(np.ascontiguousarray(values)))
            continue
        layout[name]["width"] = values.shape[1]
        if values.shape[1] > WIDEST:
            flat = pa.array(np.ascontiguousarray(values).reshape(-1))
            names.append(name)
            columns.append(pa.FixedSizeListArray.from_arrays(flat, values.shape[1]))
            continue
        for j in range(values.shape[1]):
            names.append(f"{name}_{j}")
            columns.append(pa.array(np.ascontiguousarray(values[:, j])))
    rows = len(next(iter(arrays.values())))
    text = json.dumps({**about, "rows": rows, "arrays": layout}, allow_nan=False)
    table = pa.Table.from_arrays(columns, names=names).replace_schema_metadata({_KEY: text})
    buffer = io.BytesIO()
    # no dictionaries: they would take NaNs of different bits as one
    pq.write_table(table, buffer, compression="zstd", use_dictionary=False,
                   write_statistics=False, write_page_checksum=True)  # fmt: skip
    write_bytes(path, buffer.getvalue())


def read_about(path: Path) -> dict[str, Any]:
    """The plain data of a file, without its columns."""
    return _open(path)[1]


def read_table(path: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    """The inverse of `write_table`; a damaged file is an `ApevalError`."""
    file, about = _open(path)
    layout, rows = about.get("arrays"), about.get("rows")
    if not isinstance(layout, dict) or not isinstance(rows, int) or rows != file.metadata.num_rows:
        raise _damaged(path, "its description does not fit its columns")
    try:
        table = file.read(use_threads=False)
        columns = dict(zip(table.column_names, table.columns, strict=True))
    except _failures() as error:
        raise _damaged(path, str(error)) from None
    finally:
        file.close()
    if len(columns) != table.num_columns:
        raise _damaged(path, "a column is doubled")
    return {k: _read_array(path, columns, k, entry, rows) for k, entry in layout.items()}, about


def _open(path: Path) -> tuple[Any, dict[str, Any]]:
    import pyarrow.parquet as pq

    regular(path)
    try:
        file = pq.ParquetFile(path, memory_map=False, page_checksum_verification=True)
        meta = file.metadata
        text = (meta.metadata or {}).get(_KEY)
        if text is None:
            raise _damaged(path, "it is not a file of apeval")
        about = parse_json(text)
    except _failures() as error:
        raise _damaged(path, str(error)) from None
    if not isinstance(about, dict):
        raise _damaged(path, "its description is no object")
    said = sum(meta.row_group(k).total_byte_size for k in range(meta.num_row_groups))
    size = max(said, meta.num_rows * 8 * max(meta.num_columns, 1))
    if not 0 <= size <= LARGEST:
        raise ApevalError(
            f"{path} says that it holds {meta.num_rows:,} rows of {meta.num_columns:,} columns, "
            f"more than {LARGEST // 2**30} GiB: refused"
        )
    return file, about


def _failures() -> tuple[type[BaseException], ...]:
    import pyarrow as pa

    return (pa.ArrowException, OSError, ValueError, KeyError, MemoryError, RecursionError)


def _read_array(path: Path, columns: Any, name: str, entry: Any, rows: int) -> Array:
    kind = entry.get("type") if isinstance(entry, dict) else None
    width = entry.get("width") if isinstance(entry, dict) else None
    if not isinstance(kind, str) or kind not in TYPES:
        raise _damaged(path, f"{name} has an unknown type")
    if width is None:
        return _column(path, columns, name, TYPES[kind], rows)
    if isinstance(width, bool) or not isinstance(width, int) or width < 0:
        raise _damaged(path, f"{name} has an impossible width")
    if width > WIDEST:
        return _column(path, columns, name, TYPES[kind], rows, width)
    values = np.empty((rows, width), TYPES[kind])
    for j in range(width):
        values[:, j] = _column(path, columns, f"{name}_{j}", TYPES[kind], rows)
    return values


def _column(
    path: Path,
    columns: Mapping[str, Any],
    name: str,
    dtype: np.dtype[Any],
    rows: int,
    width: int | None = None,
) -> Array:
    """A column of numbers, or of lists of `width` numbers."""
    if name not in columns:
        raise _damaged(path, f"the column {name} is missing")
    column = columns[name]
    if width is not None:
        if not str(column.type).startswith("fixed_size_list") or column.null_count:
            raise _damaged(path, f"the column {name} does not hold lists")
        flat = _column(path, {name: _flattened(path, column)}, name, dtype, rows * width)
        return flat.reshape(rows, width)
    if str(column.type) != _ARROW.get(dtype.name, dtype.name) or column.null_count:
        raise _damaged(path, f"the column {name} is not {dtype.name} throughout")
    values: Array = column.to_numpy(zero_copy_only=False)
    if values.shape != (rows,) or values.dtype != dtype:
        raise _damaged(path, f"the column {name} is not {dtype.name} throughout")
    return values if values.flags.writeable else values.copy()


def _flattened(path: Path, column: Any) -> Any:
    try:
        return column.combine_chunks().flatten()
    except _failures() as error:
        raise _damaged(path, str(error)) from None


_ARROW = {"float64": "double", "float32": "float", "float16": "halffloat"}


def _damaged(path: Path, why: str) -> ApevalError:
    return ApevalError(f"{path} is damaged: {' '.join(why.split())[:200]}")


def pack(values: Array, what: str) -> dict[str, Any]:
    """A small array as JSON, bit for bit."""
    plain = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    return {
        "type": dtype_name(values, what),
        "shape": list(values.shape),
        "base64": base64.b64encode(plain.tobytes()).decode("ascii"),
    }


def unpack(data: Any, where: Path) -> Array:
    """The inverse of `pack`."""
    try:
        dtype = TYPES[data["type"]]
        shape = tuple(int(size) for size in data["shape"])
        raw = base64.b64decode(data["base64"], validate=True)
        if any(size < 0 for size in shape) or len(shape) > 8:
            raise ValueError("impossible shape")
        values = np.frombuffer(raw, dtype.newbyteorder("<")).reshape(shape)
        return values.astype(dtype)
    except (TypeError, KeyError, ValueError, OverflowError) as error:
        raise _damaged(where, f"a packed array cannot be read ({error})") from None
