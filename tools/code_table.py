"""How large and how well described the core is, at one or more commits side by side.

    python tools/code_table.py                      # the files as they are
    python tools/code_table.py bdfbd28 HEAD         # two commits
    python tools/code_table.py --packages HEAD      # lines per folder of the core

Everything is read from the source text (git, ast, tokenize); nothing is imported or run.
"""

from __future__ import annotations

import argparse
import ast
import io
import statistics
import subprocess
import sys
import tarfile
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

ROOT = Path(__file__).parents[1]
CONVENTIONS = {"__init__", "config", "learner"}
Function = ast.FunctionDef | ast.AsyncFunctionDef
Documented = ast.Module | ast.ClassDef | Function


@dataclass
class Lines:
    """What the lines of a file, or of several, are."""

    total: int = 0
    docstring: int = 0
    comment: int = 0
    blank: int = 0

    @property
    def code(self) -> int:
        return self.total - self.docstring - self.comment - self.blank

    def __add__(self, other: Lines) -> Lines:
        return Lines(
            self.total + other.total,
            self.docstring + other.docstring,
            self.comment + other.comment,
            self.blank + other.blank,
        )


@dataclass
class Core:
    """The source of one commit."""

    folder: Path
    trees: dict[Path, ast.Module] = field(default_factory=dict)
    texts: dict[Path, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for path in sorted((self.folder / "src" / "apeval").rglob("*.py")):
            self.texts[path] = path.read_text("utf-8")
            self.trees[path] = ast.parse(self.texts[path])


def docstrings(tree: ast.Module) -> set[int]:
    """Numbers of the lines that hold docstrings, those below a field included."""
    found: set[int] = set()
    for it in ast.walk(tree):
        for body in (getattr(it, "body", ()), getattr(it, "orelse", ())):
            for one in body if isinstance(body, list) else ():
                if (
                    isinstance(one, ast.Expr)
                    and isinstance(one.value, ast.Constant)
                    and isinstance(one.value.value, str)
                ):
                    found.update(range(one.lineno, (one.end_lineno or one.lineno) + 1))
    return found


def lines_of(text: str, tree: ast.Module) -> Lines:
    """A file's lines by kind; a line with code and a comment is code."""
    documented = docstrings(tree)
    comments = {
        it.start[0]
        for it in tokenize.generate_tokens(io.StringIO(text).readline)
        if it.type == tokenize.COMMENT and it.line.lstrip().startswith("#")
    }
    rows = text.splitlines()
    blank = {k for k, row in enumerate(rows, 1) if not row.strip() and k not in documented}
    return Lines(len(rows), len(documented), len(comments), len(blank))


def constants(tree: ast.Module) -> int:
    """Names on a module's top level that are set to a number."""
    number = 0
    for it in tree.body:
        value = it.value if isinstance(it, ast.Assign | ast.AnnAssign) else None
        if isinstance(value, ast.UnaryOp):
            value = value.operand
        if isinstance(value, ast.Constant) and type(value.value) in (int, float):
            number += 1
    return number


def public_functions(tree: ast.Module) -> Iterator[Function]:
    """Functions and methods without an underscore that take an argument."""
    for it in tree.body:
        inside = it.body if isinstance(it, ast.ClassDef) and not it.name.startswith("_") else [it]
        for one in inside:
            if isinstance(one, Function) and not one.name.startswith("_"):
                every = [*one.args.posonlyargs, *one.args.args, *one.args.kwonlyargs]
                if any(it.arg not in ("self", "cls") for it in every):
                    yield one


def has_section(node: Documented, section: str) -> bool:
    """Whether a docstring has a section of Google's style."""
    return f"{section}:\n" in (ast.get_docstring(node) or "") + "\n"


def api_names(folder: Path) -> dict[str, str]:
    """Names that `import apeval` gives, and the module of each."""
    text = folder.joinpath("src", "apeval", "__init__.py").read_text("utf-8")
    for it in ast.walk(ast.parse(text)):
        if (
            isinstance(it, ast.Assign)
            and isinstance(it.value, ast.Dict)
            and any(isinstance(one, ast.Name) and one.id == "_HOME" for one in it.targets)
        ):
            found: dict[str, str] = ast.literal_eval(it.value)
            return found
    return {}


def module_of(path: Path, root: Path) -> str:
    """A file's module name."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(tree: ast.Module, module: str, package: bool, known: set[str]) -> set[str]:
    """Modules of the core that a file imports, in functions too, but not for types alone."""
    found: set[str] = set()
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        it = waiting.pop()
        if isinstance(it, ast.If) and "TYPE_CHECKING" in ast.unparse(it.test):
            waiting.extend(it.orelse)
            continue
        if isinstance(it, ast.Import):
            found.update(one.name for one in it.names)
        elif isinstance(it, ast.ImportFrom):
            start = module if package else module.rpartition(".")[0]
            for _ in range(it.level - 1):
                start = start.rpartition(".")[0]
            base = it.module or "" if not it.level else f"{start}.{it.module or ''}".rstrip(".")
            for one in it.names:
                inner = f"{base}.{one.name}"
                found.add(inner if inner in known else base)
        waiting.extend(ast.iter_child_nodes(it))
    return (found & known) - {module}


def cycles(core: Core) -> int:
    """How many groups of files import each other, directly or around a corner."""
    root = core.folder / "src"
    names = {module_of(path, root): path for path in core.trees}
    graph = {
        name: imports_of(core.trees[path], name, path.stem == "__init__", set(names))
        for name, path in names.items()
    }

    def above(name: str) -> set[str]:
        seen: set[str] = set()
        waiting = list(graph[name])
        while waiting:
            it = waiting.pop()
            if it not in seen:
                seen.add(it)
                waiting.extend(graph[it])
        return seen

    reached = {name: above(name) for name in graph}
    groups = {
        frozenset(it for it in reached[name] if name in reached[it])
        for name in graph
        if name in reached[name]
    }
    return len(groups)


def twice(names: list[str]) -> int:
    """How many names come more than once."""
    return sum(number > 1 for number in Counter(names).values())


def share(part: int, whole: int) -> str:
    """A share, with its counts."""
    return f"{part} of {whole} ({100 * part / whole:.0f} %)" if whole else "–"


def column(core: Core) -> dict[str, str]:
    """One commit's column of the table."""
    sizes = [len(text.splitlines()) for text in core.texts.values()]
    lines = sum((lines_of(core.texts[it], core.trees[it]) for it in core.trees), Lines())
    largest = max(core.texts, key=lambda it: len(core.texts[it].splitlines()))
    functions = [one for tree in core.trees.values() for one in public_functions(tree)]
    exported = api_names(core.folder)
    called = [
        it
        for path, tree in core.trees.items()
        for it in tree.body
        if isinstance(it, Function)
        and f"{module_of(path, core.folder / 'src')}.".startswith(f"{exported.get(it.name, '-')}.")
    ]
    classes = [
        it.name
        for tree in core.trees.values()
        for it in ast.walk(tree)
        if isinstance(it, ast.ClassDef)
    ]
    settings = tomllib.loads((core.folder / "pyproject.toml").read_text("utf-8"))
    return {
        "lines of the core wheel": f"{lines.total:,}",
        "… of code / docstrings / comments / blank": (
            f"{lines.code:,} / {lines.docstring:,} / {lines.comment:,} / {lines.blank:,}"
        ),
        "core dependencies": str(len(settings["project"].get("dependencies", ()))),
        "files": str(len(sizes)),
        "median file, lines": f"{statistics.median(sizes):.0f}",
        "largest file, lines": f"{max(sizes)} ({largest.relative_to(core.folder / 'src')})",
        "module-level names set to a number": str(sum(map(constants, core.trees.values()))),
        "class names that occur twice": str(twice(classes)),
        "module names that occur twice": str(
            twice([it.stem for it in core.trees if it.stem not in CONVENTIONS])
        ),
        "import cycles between files": str(cycles(core)),
        "functions of `import apeval` with Args": share(
            sum(has_section(it, "Args") for it in called), len(called)
        ),
        "public functions of every module with Args": share(
            sum(has_section(it, "Args") for it in functions), len(functions)
        ),
    }


def by_folder(core: Core) -> str:
    """Lines of each folder of the core, as a table."""
    found: dict[str, Lines] = {}
    for path, tree in core.trees.items():
        parts = path.relative_to(core.folder / "src" / "apeval").parts
        name = parts[0] if len(parts) > 1 else "(top)"
        found[name] = found.get(name, Lines()) + lines_of(core.texts[path], tree)
    rows = [
        f"| {name} | "
        + " | ".join(f"{n:,}" for n in (it.total, it.code, it.docstring, it.comment, it.blank))
        + " |"
        for name, it in sorted(found.items(), key=lambda it: -it[1].total)
    ]
    head = "| folder | lines | code | docstrings | comments | blank |\n|---|--:|--:|--:|--:|--:|"
    return "\n".join([head, *rows])


def side_by_side(columns: dict[str, dict[str, str]]) -> str:
    """The table of several commits."""
    rows = [f"| | {' | '.join(columns)} |", "|---" + "|--:" * len(columns) + "|"]
    for row in next(iter(columns.values())):
        rows.append(f"| {row} | {' | '.join(it[row] for it in columns.values())} |")
    return "\n".join(rows)


def unpack(commit: str, folder: Path) -> Core:
    """The source of a commit, below a folder."""
    files = ["src/apeval", "pyproject.toml"]
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", commit, *files], check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    return Core(folder)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commits", nargs="*", help="commits; without any the files as they are")
    parser.add_argument("--packages", action="store_true", help="lines per folder instead")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cores = {it: unpack(it, Path(folder, str(k))) for k, it in enumerate(given.commits)}
        cores = cores or {"now": Core(ROOT)}
        if given.packages:
            text = "\n\n".join(f"{name}\n\n{by_folder(core)}" for name, core in cores.items())
        else:
            text = side_by_side({name: column(core) for name, core in cores.items()})
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
