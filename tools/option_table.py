"""The options of a run in the tables of the command line's page, from where they are described.

mkdocs loads this file as a hook (see mkdocs.yml). A line `<!-- options: RunKeywords -->` in a table
becomes a row for each of these keywords.
"""

from __future__ import annotations

import re
from typing import Any

from apeval.cli.option_flags import described, flags_of
from apeval.run import run_options as options

MARK = re.compile(r"^<!-- options: (\w+) -->$", re.MULTILINE)


def with_options(markdown: str) -> str:
    """A page with the rows in the place of its marks."""
    return MARK.sub(lambda found: "\n".join(_rows(getattr(options, found[1]))), markdown)


def _rows(keywords: type) -> list[str]:
    return [f"| {_code(name)} | {_meaning(name)} |" for name in flags_of(keywords)]


def _meaning(name: str) -> str:
    text = re.sub(r'`"([^`]*)"`', r"`\1`", " ".join(described(name).split()))
    return re.sub(
        r"`(\w+)`", lambda it: _code(it[1]) if it[1] in options.FLAGS else it[0], text
    ).replace("|", r"\|")


def _code(name: str) -> str:
    flag = name.replace("_", "-")
    switch = isinstance(options.DEFAULTS[name], bool)
    return f"`--{flag}`, `--no-{flag}`" if switch else f"`--{flag}`"


def on_page_markdown(markdown: str, **rest: Any) -> str:
    """What mkdocs calls for every page."""
    return with_options(markdown)
