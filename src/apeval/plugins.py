"""The packages that apeval is made of, and what installed packages add to it.

`apeval` is the core. `apeval-bench`, `apeval-paper` and `apeval-public` live in the same repository
and are installed on their own; they, or anybody's package, add to the core through entry points,
so that the core imports none of them and loads one only where its name is asked for.
"""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS = "apeval.commands"
"""The entry-point group of commands: name = ``module:function``."""
METHODS = "apeval.methods"
"""The entry-point group of methods: name = the module that registers it."""
PROBLEMS = "apeval.problems"
"""The entry-point group of problems: name = the module that registers it."""
PACKAGES = ("apeval", "apeval_bench", "apeval_paper", "apeval_public")
"""Import names of the packages of this repository: no file of theirs is the user's own."""


def is_ours(module: str) -> bool:
    """Whether a module belongs to a package of this repository.

    >>> is_ours("apeval.run.evaluate"), is_ours("apeval_of_mine")
    (True, False)
    """
    return module.partition(".")[0] in PACKAGES


@functools.cache
def folders() -> dict[str, Path]:
    """Where each package of this repository is installed, editable or not, by its import name."""
    specs = {name: importlib.util.find_spec(name) for name in PACKAGES}
    return {n: Path(it.origin).parent for n, it in specs.items() if it is not None and it.origin}


@functools.cache
def plugged(group: str) -> dict[str, EntryPoint]:
    """What installed packages add to a group, by name; nothing of it is loaded.

    Args:
        group: An entry-point group, such as `COMMANDS`.
    """
    from importlib.metadata import entry_points  # takes longer to load than everything else here

    return {it.name: it for it in entry_points(group=group)}
