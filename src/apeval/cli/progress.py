"""A live progress bar on a terminal; silence in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from apeval.run.progress import Listener, Progress


@contextmanager
def live_progress(quiet: bool = False) -> Iterator[Listener | None]:
    """A listener that draws on stderr, or None where nobody watches."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description:<11}"),
        BarColumn(bar_width=24),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[numbers]}"),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None, numbers="")

        def listen(now: Progress) -> None:
            bar.update(
                task, description=now.phase, completed=now.done, total=now.total, numbers=_text(now)
            )

        yield listen


def _text(now: Progress) -> str:
    text = f"{now.failures:,} failures in {now.episodes:,} episodes"
    if now.estimate is not None:
        text = f"v = {now.estimate:.2e}  " + text
    if now.interval is not None:
        text = f"v = {now.estimate:.2e} ({now.interval[0]:.2e} … {now.interval[1]:.2e})  " + (
            f"{now.failures:,} failures in {now.episodes:,} episodes"
        )
    return text
