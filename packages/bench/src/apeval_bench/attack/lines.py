"""Command lines made from the program's own options, with values that nobody should pass."""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, get_type_hints

from apeval_bench.attack import bases
from apeval_bench.fuzz.calls import Calls, Said
from apeval_bench.fuzz.watch import listing

LIBRARIES = (
    "matplotlib.pyplot", "pyarrow.parquet", "numba", "scipy.stats", "rich.progress", "torch",
    "pygame", "gymnasium", "highway_env", "minigrid", "stable_baselines3",
)  # fmt: skip
"""Loaded before the first line: a command that is stopped while it loads one leaves it in pieces,
in a process that goes on with the next line."""
_APP = "apeval.cli.main"
_BASE = ("one-step", "--episodes", "60")
_LINES: dict[str, list[str]] = {
    "run": ["run", *_BASE, "--out", "out"],
    "resume": ["resume", "killed", "--problem", bases.OWN],
    "plan": ["plan", "one-step", "--pilot-steps", "300"],
    "truth": ["truth", "one-step"],
    "new": ["new", "fresh.py"],
    "check": ["check", bases.OWN, "--episodes", "10", "--seconds", "0.2"],
    "show": ["show", "run"],
    "report": ["report", "run", "--out", "page.html"],
    "replay": ["replay", "run", "--problem", bases.OWN],
    "reweight": ["reweight", "run", "--nominal", "std*1.1"],
    "compare": ["compare", "run", "other"],
    "merge": ["merge", "run", "other"],
    "export": ["export", "run", "--csv", "tables"],
    "list": ["list"],
    "reproduce": ["reproduce", "convergence", "--seeds", "1"],
    "bench": ["bench", "speed", "--seeds", "1"],
}
"""A line of every command that is answered; a command that is not here is called alone."""
_MAY_SAY_NO = ("check", "truth", "reproduce", "bench", "reweight", "plan")
_CODES = {0: "answered", 1: "said no", 2: "refused", 130: "stopped"}
_SECONDS = 2.0  # a command that does what it was asked is stopped then
_WRITES = ("out", "killed", "page.html", "tables", "runs", "fresh.py", "film.gif", "merged.json")

_NUMBERS = {
    "nan": "nan", "inf": "inf", "-inf": "-inf", "-1": "-1", "0": "0", "-0.0": "-0.0", "1": "1",
    "2": "2", "0.5": "0.5", "tiny": "1e-300", "subnormal": "1e-320", "huge": "1e308",
    "beyond": "1e999", "2**31": str(2**31), "2**63": str(2**63), "10**30": str(10**30),
    "long": "9" * 400, "empty": "", "blank": " ", "text": "x", "third": "⅓", "arabic": "٣",
    "underscore": "1_0", "hex": "0x10", "comma": "1;5", "true": "true", "padded": " 5 ",
}  # fmt: skip
_PATHS = {
    "empty": "", "blank": " ", "file": "a_file", "folder": "a_folder", "missing": "none/deeper/x",
    "below a file": "a_file/x", "link to a file": "a_link", "loop": "a_loop", "closed": "closed/x",
    "newline": "name\n2", "escape": "\x1b[31mred", "picture": "💥", "dash": "-x", "long": "a" * 300,
    "nul": "a\0b", "half a character": "\udc80", "run folder": "run", "colon": "own.py:",
    "two colons": "own.py:problem:x", "no such factory": "own.py:none", "home": "~nobody/x",
}  # fmt: skip
_TEXTS = {
    "empty": "", "blank": " ", "text": "x", "equals": "=", "no value": "steps=", "no name": "=3",
    "nan": "std=nan", "star nan": "std*nan", "star inf": "std*inf", "star 0": "std*0",
    "star -1": "std*-1", "star huge": "std*1e300", "star tiny": "std*1e-300", "index": "std[9]*2",
    "negative index": "std[-1]*2", "percent": "std+nan%", "problem": "problem.std=nan",
    "problem inf": "problem.std=inf", "problem -1": "problem.std=-1",
    "problem text": "problem.std=x",
    "beta": "problem.beta=nan", "unknown": "problem.none=1", "share": "pilot_share=nan",
    "share 2": "explore_share=2", "ess": "target_ess=-1", "newline": "a\nb=1", "escape": "\x1b[2J",
    "picture": "💥", "long": "x" * 5_000, "code": "__import__('os')", "comma": ";",
    "half a character": "\udc80",
}  # fmt: skip
_SMALL = (
    "run:--steps=nan", "run:--episodes=0", "run:--target-error=tiny", "run:--confidence=2",
    "run:--below=nan", "run:--seed=-1", "run:--out=empty", "run:--out=file", "run:--set=no value",
    "run:--set=beta", "run:--workers=0", "run:--backend=text", "run:--time-limit=nan",
    "run:--retries=-1", "run:--block=0", "run:--extend=missing", "run:problem=empty",
    "resume:--workers=-1", "resume:run=empty", "plan:--target-error=nan", "plan:--confidence=huge",
    "truth:problem=picture", "new:path=folder", "check:--seconds=nan", "check:--episodes=-1",
    "show:run=newline", "report:--out=empty", "report:--problem=no such factory",
    "replay:--failure=0", "replay:--mode=10**30", "reweight:--confidence=2",
    "reweight:--confidence=nan", "reweight:--nominal=star nan", "reweight:--nominal=star huge",
    "compare:--confidence=0", "merge:--confidence=nan", "merge:--out=below a file",
    "export:--csv=file", "bench:--seeds=-1", "list:name=escape",
)  # fmt: skip


def prepare(folder: Path) -> None:
    """Runs to be read, and files that are in the way."""
    bases.prepare(folder)


def names(prepared: Path, small: bool = False) -> list[str]:
    """Every line: `lines:COMMAND:OPTION=VALUE`, twice, and with two of them."""
    if small:
        return [f"lines:{name}" for name in _SMALL]
    return [f"lines:{name}" for name in command_lines()]


def command_lines() -> dict[str, list[str]]:
    """Command lines by name. Two options at once are drawn at random, always the same ones."""
    found: dict[str, list[str]] = {}
    rng = Random("lines")
    for command, options in _commands().items():
        single = {
            f"{command}:{option}={label}": [*words, value]
            for option, words, values in options
            for label, value in values.items()
        }
        found |= {name: _placed(command, words) for name, words in single.items()}
        for option, words, values in options:
            if not words:
                continue
            value = next(iter(values.values()))
            twice = [*_without(_line(command), words[0]), *words, value, *words, value]
            found[f"{command}:{option} twice"] = twice
        flagged = {name: words for name, words in single.items() if len(words) == 2}
        for _ in range(min(12, len(flagged) // 4)):
            one, two = rng.sample(sorted(flagged), 2)
            name = f"{one} and {two.partition(':')[2]}"
            line = _without(_line(command), flagged[one][0], flagged[two][0])
            found[name] = [*line, *flagged[one], *flagged[two]]
    return found


def _line(command: str) -> list[str]:
    return list(_LINES.get(command, [command]))


def _placed(command: str, words: list[str]) -> list[str]:
    """The command's usual line with an option added or changed, or with its first argument
    replaced."""
    line = _line(command)
    if len(words) == 2:
        return [*_without(line, words[0]), *words]
    return [command, *words, *line[2:]]


def _without(line: list[str], *options: str) -> list[str]:
    """The line without these options and their values: one that is given twice is refused for
    that alone."""
    taken = {k + j for k, word in enumerate(line) if word in options for j in (0, 1)}
    return [word for k, word in enumerate(line) if k not in taken]


Option = tuple[str, list[str], dict[str, str]]


def _commands() -> dict[str, list[Option]]:
    """Options and first arguments of every command, as the program itself declares them."""
    commands = importlib.import_module(_APP).commands()
    hints = {name: get_type_hints(it.callback) for name, it in commands.items()}
    return {
        name: [it for param in command.params for it in _option(param, hints[name])]
        for name, command in commands.items()
    }


def _option(param: Any, hints: dict[str, Any]) -> Iterator[Option]:
    hint = str(hints.get(param.name, "bool"))
    if "bool" in hint:
        return
    if not param.opts[0].startswith("-"):
        yield param.name, [], _PATHS
    elif "int" in hint or "float" in hint:
        yield param.opts[0], [param.opts[0]], _NUMBERS
    elif "Path" in hint:
        yield param.opts[0], [param.opts[0]], _PATHS
    else:
        yield param.opts[0], [param.opts[0]], {**_TEXTS, **_some_paths()}


def _some_paths() -> dict[str, str]:
    return {k: _PATHS[k] for k in ("file", "missing", "no such factory", "run folder")}


def fuzz(calls: Calls, rng: Random, prepared: Path) -> None:
    """Run the line, with and without --json, and see what it leaves behind."""
    name = str(calls.case).removeprefix("lines:")
    words = command_lines()[name]
    for json in ((), ("--json",)):
        if json and not _takes_json(words[0]):
            continue
        _lay_out(calls, prepared)
        before = {p for p, it in listing(calls.sandbox).items()}
        line = [*words, *json]
        said = calls.command(*line, writes=_allowed(calls, words), stop=_SECONDS)
        if said is not None:
            _judge(calls, line, said, before)


def _judge(calls: Calls, line: list[str], said: Said, before: set[str]) -> None:
    what = "apeval " + " ".join(line)
    new = [p for p in listing(calls.sandbox) if p not in before and os.path.isfile(p)]
    if said.code == 1 and line[0] not in _MAY_SAY_NO:
        calls.find(what, "exit code", f"1: {said.err[:200]!r}")
    if any(path.endswith(".part") for path in new) or (said.code == 2 and new):
        calls.find(what, "left behind", ", ".join(sorted(new))[:200])
    if said.code == 0 and _is_nonsense(line, said):
        calls.find(what, "nonsense accepted", said.out[:200])
    calls.tally[_CODES.get(said.code, "?")] += 1


def _is_nonsense(line: list[str], said: Said) -> bool:
    """Whether a line was answered that asks for nothing, or for a confidence that there is not."""
    asked = [value for option, value in pairwise(line) if option.startswith("--")]
    if any(value.strip().lower() in ("nan", "problem.beta=nan", "std*nan") for value in asked):
        return True
    levels = [v for option, v in pairwise(line) if option == "--confidence"]
    return bool(levels) and not 0.0 < float(levels[-1]) < 1.0


def _takes_json(command: str) -> bool:
    given = importlib.import_module(_APP).commands()[command].params
    return any("--json" in param.opts for param in given)


def _allowed(calls: Calls, words: list[str]) -> list[Path]:
    """What the line was told to write."""
    told = [words[k + 1] for k, word in enumerate(words[:-1]) if word in ("--out", "--csv")]
    told += [words[k + 1] for k, word in enumerate(words[:-1]) if word == "--tensorboard"]
    told += words[1:2] if words[0] in ("new", "resume") else []
    plain = [Path(it) for it in (*told, *_WRITES) if it.strip() and "\0" not in it]
    return [calls.sandbox / path.parts[0] for path in plain]


def _lay_out(calls: Calls, prepared: Path) -> None:
    for path in calls.sandbox.iterdir():
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)
            shutil.rmtree(path)
        else:
            path.unlink()
    for file in ("own.py", "attacked_part.py"):
        shutil.copyfile(prepared / file, calls.sandbox / file)
    for base, name in (("own", "run"), ("own", "other"), ("killed", "killed")):
        which = "other" if name == "other" else "run"
        shutil.copytree(prepared / base / which, calls.sandbox / name)
    (calls.sandbox / "a_file").write_text("kept\n", "utf-8")
    (calls.sandbox / "a_folder").mkdir()
    (calls.sandbox / "closed").mkdir(mode=0o500)
    (calls.sandbox / "a_link").symlink_to("a_file")
    (calls.sandbox / "a_loop").symlink_to("a_loop")
