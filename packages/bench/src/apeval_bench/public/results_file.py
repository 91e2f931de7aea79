"""The results of `bench public` as data, to which others can add a method's line.

`results.schema.json` beside this file says what a file may hold. Scores are always computed from
the runs, never read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from apeval.errors import ApevalError
from apeval_bench.public.scores import scored

FORMAT = 1
SCHEMA = Path(__file__).with_name("results.schema.json")
NAME, OTHERS = "public.json", "others"
"""The command's own file in a results folder, and the folder beside it with those of others."""

Line = dict[str, Any]


def read_lines(folder: Path | None) -> list[Line]:
    """The lines that a results folder has.

    Args:
        folder: With ``public.json`` and ``others/*.json``; None, or without them: no lines.

    Returns:
        Lines of the command, then those of others.

    Raises:
        ApevalError: A file is no results file, or two have a line for the same row and method.
    """
    if folder is None:
        return []
    files = [folder / NAME, *sorted((folder / OTHERS).glob("*.json"))]
    lines: dict[tuple[str, str], Line] = {}
    for file in (file for file in files if file.exists()):
        for line in _lines_of(file):
            key = (line["row"], line["method"])
            if key in lines:
                raise ApevalError(f"{file} has a second line of {key[1]} for {key[0]}")
            lines[key] = {k: v for k, v in line.items() if k != "score"}
    return list(lines.values())


def _lines_of(file: Path) -> list[Line]:
    try:
        data = json.loads(file.read_text("utf-8"))
        if data["format"] != FORMAT:
            raise ApevalError(f"{file} has the format {data['format']}, not {FORMAT}")
        return list(data["lines"])
    except (ValueError, KeyError, TypeError) as error:
        raise ApevalError(f"{file} is no results file ({error}): see {SCHEMA.name}") from None


def merged(old: Iterable[Line], new: Iterable[Line]) -> list[Line]:
    """Lines of both; a new one takes the place of an old one for the same row and method.

    Args:
        old: Lines that stood in the folder.
        new: Lines that were measured now.

    Returns:
        All of them.
    """
    both = {(line["row"], line["method"]): line for line in (*old, *new)}
    return list(both.values())


def steps_per_episode(lines: Iterable[Line], row: str, longest: int) -> float:
    """The mean length of a nominal episode.

    Args:
        lines: All lines.
        row: The row.
        longest: The horizon.

    Returns:
        As Monte Carlo's runs on the row have it, or the horizon where there are none.
    """
    runs = [run for it in lines if (it["row"], it["method"]) == (row, "mc") for run in it["runs"]]
    episodes = sum(run["episodes"] for run in runs)
    return sum(run["steps"] for run in runs) / episodes if episodes else float(longest)


def with_scores(
    rows: Sequence[Mapping[str, Any]], lines: Sequence[Line]
) -> tuple[list[dict[str, Any]], list[Line]]:
    """Rows with the length of their episodes, and lines with their scores.

    Args:
        rows: Rows with ``row``, ``truth`` and ``longest``.
        lines: Lines; those of rows that there are no more are left out.

    Returns:
        Copies of both, lines in the order of the rows.
    """
    known = [
        {**row, "steps_per_episode": steps_per_episode(lines, row["row"], row["longest"])}
        for row in rows
    ]
    found = [
        {**line, "score": scored(line["runs"], row["truth"], row["steps_per_episode"])}
        for row in known
        for line in lines
        if line["row"] == row["row"]
    ]
    return known, found
