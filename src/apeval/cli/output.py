"""What commands print."""

from __future__ import annotations

import json
from typing import Any

import typer


def print_json(data: dict[str, Any]) -> None:
    """One object on stdout."""
    typer.echo(json.dumps(data, allow_nan=False, ensure_ascii=False))
