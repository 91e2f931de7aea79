"""What a person gets to see of a run folder: every command that reads one, and its numbers."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apeval_bench.attack.bases import OTHER_SEED, Base
from apeval_bench.attack.command import ran
from apeval_bench.fuzz.calls import Calls, Said

_UNIMPORTANT = ("seconds", "run", "a", "b", "command", "remedy")
_NO_ANSWER = 1
_SECONDS = 60.0  # a run that was made longer is stopped then
_SECTIONS = ("result", "evaluated", "kinds")
_EPISODES = "episodes.csv"
_TAG = re.compile(r"<[^>]+>")
_DRAWN = re.compile(r"<(script|style|svg)\b.*?</\1>", re.S)


_REFUSED = "is not the problem of"
"""A line of a report that tells why it does not use the code that it was given."""


class Page(tuple[str, ...]):
    """The lines of a page."""


@dataclass(frozen=True)
class Answer:
    """What a reading said."""

    numbers: Any
    """None: it was refused."""
    warned: Any = None
    """Whatever tells a reader not to believe it: `trusted`, warnings, `comparable`."""
    why: str = ""


def judge(honest: Answer, seen: Answer) -> str:
    """same, less (a page that leaves something out), refused, warned, different; or answered, where
    the undisturbed run is refused."""
    if seen.numbers is None:
        return "refused"
    if seen.numbers == honest.numbers:
        return "same"
    if isinstance(seen.numbers, Page) and isinstance(honest.numbers, Page):
        left = iter(honest.numbers)
        said = (line for line in seen.numbers if _REFUSED not in line)
        if all(line in left for line in said):  # in the same order
            return "less"
    if seen.warned != honest.warned and seen.warned:
        return "warned"
    return "different" if honest.numbers is not None else "answered"


@dataclass(frozen=True)
class Reading:
    """A command, where it writes, and what it says."""

    words: list[str]
    extract: Callable[[Said], Answer]
    writes: tuple[str, ...] = ()
    stop: float | None = None

    def ask(self, calls: Calls) -> Answer:
        """Run it in the sandbox, which is the current folder."""
        writes = [calls.sandbox / it for it in self.writes]
        said = calls.command(*self.words, writes=writes, stop=self.stop)
        return Answer(None, why="traceback") if said is None else self._answer(said)

    def ask_alone(self, calls: Calls) -> Answer:
        """Run it in a process of its own, which imports the user's files anew."""
        done = ran(self.words, calls.sandbox)
        if "Traceback (most recent call last)" in done.stderr:
            calls.find(" ".join(self.words), "traceback", done.stderr[-300:])
        return self._answer(Said(done.returncode, done.stdout, done.stderr))

    def _answer(self, said: Said) -> Answer:
        if said.code not in (0, 130) or (said.code == 130 and not said.out):
            return Answer(None, why=said.err.strip()[:200])
        return self.extract(said)


def readings(base: Base) -> dict[str, Reading]:
    """Every reading of the run in `run`; another run of the problem is in `other`."""
    code = ["--problem", base.own] if base.own else []
    resume = Reading(["resume", "run", *code, "--json"], _result, ("run",), _SECONDS)
    if not base.whole:
        return {"show": Reading(["show", "run", "--json"], _result), "resume": resume}
    tables = Reading(["export", "run", "--csv", "tables"], _tables, ("tables",))
    page = Reading(["report", "run", "--out", "page.html", *code], _page, ("page.html",))
    found = {
        "show": Reading(["show", "run", "--json"], _result),
        "report": page,
        "replay": Reading(["replay", "run", "--json", *code], _object),
        "reweight": Reading(["reweight", "run", "--nominal", base.change, "--json"], _object),
        "compare": Reading(["compare", "run", "other", "--json"], _object),
        "merge": Reading(["merge", "run", "other", "--json"], _object),
        "export": tables,
        "resume": resume,
    }
    if base.on_fault == "unresolved":
        found["fault"] = Reading(["replay", "run", "--fault", "1", "--json", *code], _object)
    if base.problem and base.state == "finished":
        words = ["run", base.problem, "--method", base.method, "--episodes", str(base.episodes)]
        words += ["--set", "problem.top=5"] if base.problem == "walk" else []
        words += ["--on-fault", base.on_fault, "--seed", str(OTHER_SEED + 1), "--no-check"]
        words += ["--extend", "run", "--out", "more", "--json"]
        found["extend"] = Reading(words, _object, ("more",), _SECONDS)
    return found


def _result(said: Said) -> Answer:
    """All of a result but the time it took."""
    return _object(said)


def _object(said: Said) -> Answer:
    here = f"{Path.cwd()}{os.sep}"  # runs are named as they were typed, or from the root
    try:
        data = json.loads(said.out.replace(here, ""))
    except ValueError:
        return Answer(said.out, why="no JSON")
    numbers = {k: v for k, v in data.items() if k not in _UNIMPORTANT}
    doubted = data.get("trusted") is False or data.get("comparable") is False
    return Answer(numbers, (doubted, data.get("warnings"), said.err) if doubted else None)


def _page(said: Said) -> Answer:
    """The words of the sections that hold the number and what it is the number of."""
    text = Path("page.html").read_text("utf-8")
    Path("page.html").unlink()
    pieces = {name: _section(text, name) for name in (*_SECTIONS, "warnings")}
    head = text[text.find("<h1") : text.find("<section")]
    doubt = pieces.pop("warnings")
    pieces["evaluated"] = _without_time(pieces["evaluated"])
    serious = "No warnings" not in " ".join(doubt)
    lines = [line for part in (_words(head), *pieces.values()) for line in part]
    return Answer(Page(lines), tuple(doubt) if serious else None)


def _section(page: str, name: str) -> list[str]:
    start = page.find(f'id="{name}"')
    return _words(page[start : page.find("</section>", start)]) if start >= 0 else []


def _words(text: str) -> list[str]:
    plain = _TAG.sub("\n", _DRAWN.sub(" ", text[text.find(">") + 1 :]))
    return [line.strip() for line in plain.splitlines() if line.strip()]


def _without_time(lines: list[str]) -> list[str]:
    k = lines.index("Time taken") if "Time taken" in lines else len(lines)
    return lines[:k] + lines[k + 2 :]


def _tables(said: Said) -> Answer:
    texts = {}
    for path in sorted(Path("tables").glob("*.csv")):
        texts[path.name] = path.read_text("utf-8")
        path.unlink()
    Path("tables").rmdir()
    return Answer(texts)


def only_learning(honest: Answer, seen: Answer) -> bool:
    """Whether two exports differ in nothing but rows of episodes.csv that are of learning."""
    try:
        one, two = dict(honest.numbers), dict(seen.numbers)
        before, after = (it.pop(_EPISODES).splitlines() for it in (one, two))
    except (AttributeError, KeyError, TypeError, ValueError):
        return False
    pairs = zip(before, after, strict=False)
    same = all(a == b or _learning(a) == _learning(b) != "" for a, b in pairs)
    return one == two and len(before) == len(after) and same


def _learning(row: str) -> str:
    """Number and stage of a row of learning; of another one nothing."""
    cells = row.split(",")
    return ",".join(cells[:2]) if cells[1:2] == ["learning"] else ""


def difference(honest: Any, seen: Any) -> str:
    """The first place where two answers differ, in words."""
    if isinstance(honest, dict) and isinstance(seen, dict):
        for key in {**honest, **seen}:
            if honest.get(key) != seen.get(key):
                return f"{key}: {difference(honest.get(key), seen.get(key))}"
    if isinstance(honest, list | tuple) and isinstance(seen, list | tuple):
        for k, (one, two) in enumerate(zip(honest, seen, strict=False)):
            if one != two:
                return f"[{k}] {difference(one, two)}"
    if isinstance(honest, str) and isinstance(seen, str):
        for one, two in zip(honest.splitlines(), seen.splitlines(), strict=False):
            if one != two:
                return f"{one[:60]!r} → {two[:60]!r}"
    return f"{str(honest)[:80]} → {str(seen)[:80]}"
