"""The folder is untouched, and what it speaks of has changed: the problem's file, a module that it
imports, a parameter, a problem built in Python. Is a number shown that belongs to neither?

Each case gives the words of a command that must refuse, warn seriously, or say what the
undisturbed run says.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from apeval.problem.problem import Problem
from apeval.results.folder import load
from apeval.results.recorder import Recorder
from apeval.results.resume import resume
from apeval.run.evaluate import evaluate
from apeval.run.merge import merge
from apeval_bench.attack.bases import BASES, FILE, MODULE, python_problem
from apeval_bench.attack.readings import Answer, Reading, difference, judge, readings
from apeval_bench.fuzz.calls import Calls

Case = Callable[[Calls, Path], None]
_CHANGES = {
    "other dynamics": ("own.py", "GAIN * x", "GAIN * 1.1 * x"),
    "other threshold": ("own.py", "top: float = 2.0", "top: float = 1.9"),
    "other nominal": ("own.py", "(0.0, std)", "(0.0, 1.05 * std)"),
    "other start": ("own.py", "initial=apeval.Normal(0.0, 0.5)", "initial=apeval.Normal(0.0, 0.6)"),
    "other policy": ("own.py", "-0.1 * x", "-0.12 * x"),
    "other margin": ("own.py", "margin=lambda x: top", "margin=lambda x: 1.1 * top"),
    "other horizon": ("own.py", "horizon=5", "horizon=6"),
    "other module": ("attacked_part.py", "0.9", "0.95"),
}  # fmt: skip
"""What has changed: a file, a text in it, and what stands there now. The changes are small ones, so
that no estimate is too far from another to be of the same problem."""


def _lay_out(calls: Calls, prepared: Path, base: str) -> None:
    for name in ("run", "other", "more"):
        shutil.rmtree(calls.sandbox / name, ignore_errors=True)
    for name in ("run", "other"):
        shutil.copytree(prepared / base / name, calls.sandbox / name)
    (calls.sandbox / "own.py").write_text(FILE, "utf-8")
    (calls.sandbox / "attacked_part.py").write_text(MODULE, "utf-8")


def _ask(calls: Calls, way: str, reading: Reading, honest: Answer) -> None:
    seen = reading.ask_alone(calls)
    verdict = judge(honest, seen)
    calls.tally[verdict] += 1
    if verdict in ("different", "answered"):
        calls.find(way, "different number", difference(honest.numbers, seen.numbers))


def _changed(base: str, way: str, change: str) -> Case:
    """The problem's code changed after the run."""

    def case(calls: Calls, prepared: Path) -> None:
        reading = readings(BASES[base])[way]
        _lay_out(calls, prepared, base)
        honest = reading.ask_alone(calls)
        _lay_out(calls, prepared, base)
        file, old, new = _CHANGES[change]
        path = calls.sandbox / file
        text = path.read_text("utf-8")
        if old not in text:
            raise RuntimeError(f"{old} is not in {file}")
        path.write_text(text.replace(old, new), "utf-8")
        _ask(calls, way, reading, honest)

    return case


def _elsewhere(base: str, way: str, change: str = "other dynamics") -> Case:
    """Another file, named by --problem."""

    def case(calls: Calls, prepared: Path) -> None:
        reading = readings(BASES[base])[way]
        _lay_out(calls, prepared, base)
        honest = reading.ask_alone(calls)
        _lay_out(calls, prepared, base)
        _, old, new = _CHANGES[change]
        (calls.sandbox / "twin.py").write_text(FILE.replace(old, new), "utf-8")
        words = [word.replace("own.py:", "twin.py:") for word in reading.words]
        _ask(calls, way, Reading(words, reading.extract, reading.writes, reading.stop), honest)

    return case


def _by_python(other: Callable[[], Problem]) -> Case:
    """A killed run of a file, gone on with from Python with another problem object."""

    def case(calls: Calls, prepared: Path) -> None:
        _lay_out(calls, prepared, "killed")
        honest = readings(BASES["killed"])["resume"].ask(calls)
        _lay_out(calls, prepared, "killed")
        run = calls.sandbox / "run"
        result = calls.python("apeval.resume", lambda: resume(run, other()), [run])
        if result is None or not result.trusted:
            calls.tally["refused" if result is None else "warned"] += 1
        elif result.estimate != honest.numbers["estimate"]:
            calls.find("apeval.resume", "different number", f"{result.estimate}")

    return case


def _pooled(one: Callable[[], Problem], two: Callable[[], Problem]) -> Case:
    """Runs of two problems from Python, merged: there is no such number."""

    def case(calls: Calls, prepared: Path) -> None:
        folders = [calls.sandbox / name for name in ("a", "b")]
        for k, (folder, problem) in enumerate(zip(folders, (one, two), strict=True)):
            evaluate(problem(), "ape", episodes=300, seed=k, recorder=Recorder(folder))
        merged = calls.python("apeval.merge", lambda: merge([load(f) for f in folders]))
        words = ["merge", "a", "b", "--json"]
        seen = Reading(words, readings(BASES["complete"])["merge"].extract).ask(calls)
        trusted = (merged is not None and merged.trusted, bool(seen.numbers and not seen.warned))
        calls.tally["different" if any(trusted) else "refused"] += 1
        if any(trusted):
            calls.find("merge", "different number", "two problems were pooled")

    return case


def _python(std: float = 0.6, **parts: object) -> Callable[[], Problem]:
    from dataclasses import replace

    return lambda: replace(python_problem(std), **parts)  # type: ignore[arg-type]


def _stronger() -> Problem:
    return _python(step=lambda x, a_A, a_E, draws: 0.95 * x + a_A + a_E)()


def _looser() -> Problem:
    return _python(failed=lambda x: x[:, 0] > 1.95, margin=lambda x: 1.95 - x[:, 0])()


CASES: dict[str, Case] = {
    "resume:other file": _elsewhere("killed", "resume"),
    "merge:other nominal from Python": _pooled(_python(0.58), _python(0.6)),
    "report:file of another nominal": _elsewhere("python", "report", "other nominal"),
    "resume:other module": _changed("killed", "resume", "other module"),
    "resume:object of other dynamics": _by_python(_stronger),
    "resume:object of another nominal": _by_python(_python(0.6)),
    "resume:stopped, other file": _elsewhere("stopped", "resume"),
    "report:other file": _elsewhere("own", "report"),
    "replay:other file": _elsewhere("own", "replay"),
    "extend:other file": _elsewhere("own", "extend"),
    "report:Python's run, other file": _elsewhere("python", "report"),
    "replay:Python's run, other file": _elsewhere("python", "replay"),
    "merge:other dynamics from Python": _pooled(_python(), _stronger),
    "merge:other threshold from Python": _pooled(_python(), _looser),
    "merge:other horizon from Python": _pooled(_python(), _python(horizon=6)),
    **{
        f"{way}:{base}, {change}": _changed(base, way, change)
        for change in _CHANGES
        for base, way in (
            ("killed", "resume"), ("stopped", "resume"), ("own", "report"), ("own", "replay"),
            ("own", "extend"), ("python", "report"), ("python", "replay"),
        )
    },
}  # fmt: skip
"""By name; the first ones stand for the rest in the small version."""
