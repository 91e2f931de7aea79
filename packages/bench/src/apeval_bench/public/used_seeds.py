"""Which seeds were used for reporting, by which code: a seed that was looked at is a tuning seed.

`used_seeds.jsonl` beside this file has a line for every row and method that `bench public` ran with
reporting seeds. The command appends to it, and refuses a seed that other code has used for the same
row and method.
"""

from __future__ import annotations

import datetime
import json
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from apeval.errors import ApevalError
from apeval.version import __version__
from apeval_bench.registry import REPORTING

FILE = Path(__file__).with_name("used_seeds.jsonl")


@dataclass(frozen=True)
class SeedUse:
    """Seeds of one row that one version of a method was run with."""

    row: str
    method: str
    first: int
    last: int
    code: str
    """A hash of the code that the outcomes depend on."""
    commit: str
    """The repository's commit, with a + where files had been changed."""
    version: str
    date: str


def read_uses(file: Path | None = None) -> list[SeedUse]:
    """What the file has.

    Args:
        file: Another file than the package's.

    Returns:
        The lines, in their order.
    """
    path = FILE if file is None else file
    if not path.exists():
        return []
    return [SeedUse(**json.loads(line)) for line in path.read_text("utf-8").splitlines() if line]


def refuse_used(wanted: Iterable[tuple[str, str, str, Sequence[int]]]) -> None:
    """Refuse reporting seeds that other code has used.

    Args:
        wanted: (row, method, code, seeds) of all that is to be run.

    Raises:
        ApevalError: Some were used; the message has the first seeds that are fresh.
    """
    known = read_uses()
    stale, free = [], REPORTING.start
    for row, method, code, seeds in wanted:
        for use in (u for u in known if (u.row, u.method) == (row, method)):
            free = max(free, use.last + 1)
            if use.code != code and use.first <= seeds[-1] and seeds[0] <= use.last:
                stale.append(f"{row} with {method}: {use.first} … {use.last} by {use.commit}")
    if stale:
        shown = "; ".join(stale[:3]) + (f"; and {len(stale) - 3} more" if len(stale) > 3 else "")
        raise ApevalError(
            f"these seeds were used for reporting by other code ({shown}). Seeds that were looked "
            f"at are for tuning: take fresh ones, --first-seed {-(-free // 100) * 100}"
        )


def record_uses(wanted: Iterable[tuple[str, str, str, Sequence[int]]]) -> None:
    """Append what is going to be run to the file, once.

    Args:
        wanted: (row, method, code, seeds) of all that is to be run.

    Raises:
        ApevalError: The file cannot be written.
    """
    known = {(u.row, u.method, u.code, u.first, u.last) for u in read_uses()}
    commit, date = commit_here(), datetime.date.today().isoformat()
    lines = [
        json.dumps(asdict(SeedUse(row, name, seeds[0], seeds[-1], code, commit, __version__, date)))
        for row, name, code, seeds in wanted
        if (row, name, code, seeds[0], seeds[-1]) not in known
    ]
    try:
        with FILE.open("a", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines)
    except OSError as error:
        raise ApevalError(f"cannot write {FILE}: {error.strerror or error}") from None


def commit_here() -> str:
    """The commit of the repository that this file is in.

    Returns:
        Its short hash, with a + where its code was changed since; ``unknown`` outside of one.
    """
    code = (":/src", ":/packages", f":!{FILE.name}")
    try:
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", *code)
        return _git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    made = subprocess.run(
        ["git", *arguments], cwd=FILE.parent, capture_output=True, text=True, check=True
    )
    return made.stdout.strip()
