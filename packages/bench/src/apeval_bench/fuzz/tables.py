"""Parquet and safetensors files that lie, and pickles that bite."""

from __future__ import annotations

import json
import pickle
import struct
from pathlib import Path
from random import Random
from typing import Any

from apeval_bench.fuzz.values import NUMBERS, TEXTS, disturb

_KEY = b"apeval"


class _Payload:
    """Creates a file when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = str(trace)

    def __reduce__(self) -> Any:
        return open, (self.trace, "w")


def payload(trace: Path) -> bytes:
    """A pickle whose loading leaves a trace."""
    return pickle.dumps(_Payload(trace))


def disturb_parquet(rng: Random, path: Path) -> None:
    """Rewrite the file with other columns, values or descriptions; often consistently wrong."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, use_threads=False)
        about = json.loads((table.schema.metadata or {})[_KEY])
        for _ in range(rng.choice((1, 1, 2))):
            table, about = rng.choice(_CHANGES)(rng, table, about)
        text = about if isinstance(about, bytes) else json.dumps(about).encode()
        table = table.replace_schema_metadata({_KEY: text})
        how = rng.choice(("zstd", "gzip", "none", "snappy"))
        pq.write_table(table, path, compression=how, use_dictionary=rng.random() < 0.3)
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, AttributeError):
        return  # damaged before, or the change makes no file


def _column(rng: Random, table: Any) -> int:
    return rng.randrange(table.num_columns)


def _values(rng: Random, table: Any, about: Any) -> tuple[Any, Any]:
    """Other numbers in a column."""
    import numpy as np
    import pyarrow as pa

    k = _column(rng, table)
    values = np.array(table.column(k).to_numpy(zero_copy_only=False))
    rows = rng.sample(range(len(values)), min(len(values), rng.choice((1, 1, 3, len(values)))))
    floats = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, 0.0, -1.0)
    if values.dtype.kind == "f":
        values[rows] = rng.choice(floats)
    elif values.dtype.kind == "b":
        values[rows] = ~values[rows]
    elif values.dtype.kind in "iu":
        limits = np.iinfo(values.dtype)
        values[rows] = rng.choice((limits.min, limits.max, 0, 1, max(limits.min, -1), 7))
    name = table.column_names[k]
    return table.set_column(k, name, pa.array(values)), about


def _type(rng: Random, table: Any, about: Any) -> tuple[Any, Any]:
    """A column of another type; sometimes the description agrees."""
    import pyarrow as pa

    k = _column(rng, table)
    name = table.column_names[k]
    kinds = {
        "int8": pa.int8(), "int32": pa.int32(), "int64": pa.int64(), "uint64": pa.uint64(),
        "float32": pa.float32(), "float64": pa.float64(), "bool": pa.bool_(), "string": pa.string(),
    }  # fmt: skip
    kind = rng.choice(list(kinds))
    column = table.column(k).cast(kinds[kind], safe=False)
    table = table.set_column(k, name, column)
    array = about.get("arrays", {}).get(name.rstrip("0123456789").rstrip("_"))
    array = about.get("arrays", {}).get(name, array)
    if rng.random() < 0.7 and isinstance(array, dict):
        array["type"] = kind
    return table, about


def _rows(rng: Random, table: Any, about: Any) -> tuple[Any, Any]:
    """Fewer, doubled or reordered rows; the description mostly agrees."""
    import pyarrow as pa

    n = table.num_rows
    order = list(range(n))
    way = rng.randrange(5)
    if way == 0:
        order = order[: rng.randrange(n + 1)]
    elif way == 1:
        order += order
    elif way == 2:
        order.reverse()
    elif way == 3:
        order = [0] * n
    else:
        order = order[rng.randrange(n + 1) :]
    table = table.take(pa.array(order, pa.int64()))
    if rng.random() < 0.9:
        about["rows"] = table.num_rows
    return table, about


def _columns(rng: Random, table: Any, about: Any) -> tuple[Any, Any]:
    """A column gone, doubled, renamed, with nulls, or of lists."""
    import pyarrow as pa

    k = _column(rng, table)
    name, n = table.column_names[k], table.num_rows
    way = rng.randrange(5)
    if way == 0:
        return table.remove_column(k), about
    if way == 1:
        return table.append_column(name, table.column(k)), about
    if way == 2:
        names = list(table.column_names)
        names[k] = rng.choice((*TEXTS[:20], "s_0", "a_E_0", "law_0"))
        return table.rename_columns(names), about
    if way == 3:
        return table.set_column(k, name, pa.nulls(n, table.column(k).type)), about
    flat = pa.array([0.0] * (2 * n))
    return table.set_column(k, name, pa.FixedSizeListArray.from_arrays(flat, 2)), about


def _width(rng: Random, table: Any, about: Any) -> tuple[Any, Any]:
    """A description of other widths."""
    arrays = about.get("arrays", {})
    name = rng.choice(list(arrays))
    arrays[name]["width"] = rng.choice((None, 0, 1, 2, 3, 65, -1, 10**12, True, "2", *NUMBERS[:8]))
    return table, about


def _about(rng: Random, table: Any, about: Any) -> tuple[Any, Any]:
    """Another description: its laws, numbers, versions."""
    return table, disturb(rng, about)


def _law(rng: Random, table: Any, about: Any) -> tuple[Any, Any]:
    """Another class of law, or other parameters."""
    for key in ("law", "law_0"):
        if isinstance(about.get(key), dict):
            names = (
                "os:system", "apeval.problem.laws:NormalLaw", "apeval.problem.laws:CategoricalLaw",
                "apeval.problem.laws:Law", "apeval.problem.laws:TruncatedNormalLaw",
                "apeval.problem.",
                "apeval.problem.\x00:x", "apeval.adapt.templates.gym_problem:x", ":", "", "a:b:c",
                "apeval.problem.." + "x" * 9_000 + ":y", "apeval.adapt.sb3:Law",
            )  # fmt: skip
            about[key]["law"] = rng.choice(names) if rng.random() < 0.4 else about[key].get("law")
            about[key]["fields"] = disturb(rng, about[key].get("fields"))
    return table, about


def _text(rng: Random, table: Any, about: Any) -> tuple[Any, Any]:
    """A description that is no JSON, or far too deep."""
    return table, rng.choice((b"", b"{", b"[]", b"\xff", b"[" * 100_000, b"NaN", b'{"rows": NaN}'))


def _bomb(rng: Random, table: Any, about: Any) -> tuple[Any, Any]:
    """Zeros without end, which take little room as long as they are packed."""
    import pyarrow as pa

    rows = rng.choice((100_000, 2_000_000))
    table = table.take(pa.array([0] * rows, pa.int64()))
    return table, {**about, "rows": rows}


def _deep(rng: Random, table: Any, about: Any) -> tuple[Any, Any]:
    """A law in a law in a law."""
    law = about.get("law")
    for _ in range(rng.choice((3, 9, 200))):
        law = {"list": [law]}
    return table, {**about, "law": law}


_CHANGES = (
    _values,
    _values,
    _values,
    _type,
    _rows,
    _columns,
    _width,
    _about,
    _law,
    _text,
    _deep,
    _bomb,
)


def disturb_tensors(rng: Random, path: Path) -> None:
    """A header with other names, types, sizes or lengths."""
    data = path.read_bytes()
    try:
        (size,) = struct.unpack("<Q", data[:8])
        header = json.loads(data[8 : 8 + size])
    except (struct.error, ValueError, RecursionError):
        return
    body = data[8 + size :]
    if rng.random() < 0.3:  # a length that is not the header's
        lengths = (0, 1, 2**20, 2**40, 2**63, 2**64 - 1)
        path.write_bytes(struct.pack("<Q", rng.choice(lengths)) + data[8:])
        return
    names = [name for name in header if name != "__metadata__"]
    entry = header[rng.choice(names)] if names else {}
    ways: tuple[dict[str, Any], ...] = (
        {"dtype": rng.choice(("F64", "F32", "I64", "BF16", "F8_E4M3", "BOOL", "X", 3))},
        {"shape": rng.choice(([2**40, 2**40], [-1], [], [0], [10**9], "x", [1] * 70))},
        {
            "data_offsets": rng.choice(
                ([0, 2**62], [-8, 0], [0, 8], [8, 0], [0], "x", [2**63, 2**64])
            )
        },
    )
    if isinstance(entry, dict):
        entry.update(rng.choice(ways))
    if rng.random() < 0.2:
        header = disturb(rng, header)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)
