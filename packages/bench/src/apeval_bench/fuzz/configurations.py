"""Command lines and keyword arguments, right and wrong, with budgets that end at once."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from apeval.environments import entries, make
from apeval.learn.method import methods
from apeval.results.folder import load
from apeval.results.recorder import Recorder
from apeval.run.budget_plan import plan
from apeval.run.evaluate import evaluate
from apeval.run.run_options import RunKeywords
from apeval.simulate.check import check_problem
from apeval_bench.fuzz.calls import Calls
from apeval_bench.fuzz.values import NUMBERS, TEXTS

LIBRARIES = ("matplotlib.font_manager", "gymnasium", "torch", "zuko")
_SLOW = (
    "@highway",
    "@package",
    "@gymnasium",
    "highway-cars",
    "inverted-pendulum",
    "jsbsim-altitude",
    "sumo-follower",
)
_ODD = (
    "-1",
    "0",
    "1",
    "2",
    "1e3",
    "2.5",
    "nan",
    "inf",
    "-inf",
    "1e-320",
    "1e308",
    "1e999",
    "x",
    "",
)
_SIZES = (
    "-1",
    "0",
    "1",
    "2",
    "5",
    "64",
    "1e3",
    "1e6",
    "1e9",
    "1e12",
    "1e18",
    "1e300",
    "2.5",
    "nan",
)
_TOO_MUCH = 10**12  # a budget beyond it is refused; one below would be simulated


def prepare(folder: Path) -> None:
    """A run to read, and a file that is none."""
    recorder = Recorder(folder / "run")
    evaluate(make("walk", top=5), "mc", episodes=50, recorder=recorder)
    (folder / "file").write_text("no run", "utf-8")


def fuzz(calls: Calls, rng: Random, prepared: Path) -> None:
    """Two command lines and a call."""
    (calls.sandbox / "file").write_text("in the way", "utf-8")
    (calls.sandbox / "folder").mkdir()
    for _ in range(2):
        arguments, writes = rng.choices(*zip(*_COMMANDS, strict=True))[0](rng, calls, prepared)
        calls.command(*arguments, writes=writes)
    rng.choice((_evaluate, _evaluate, _make, _ask))(rng, calls, prepared)


Line = tuple[list[str], list[Path]]


def _problem(rng: Random) -> str:
    names = [name for name in entries() if not name.endswith(_SLOW)]
    return rng.choice(TEXTS) if rng.random() < 0.1 else rng.choice(names)


def _budget(rng: Random) -> str:
    wrong = ("-5", "0", str(_TOO_MUCH + 1), "1e30", "nan", "2.5", "x", "", "9" * 400)
    return rng.choice(wrong) if rng.random() < 0.15 else str(rng.choice((1, 2, 7, 50, 300, 900)))


def _settings(rng: Random, problem: str, method: str | None) -> list[str]:
    """Parameters of the problem and settings of the method, mostly by names that exist."""
    known: list[tuple[str, bool]] = []
    if problem in entries():
        taken = inspect.signature(entries()[problem].factory).parameters
        known += [(f"problem.{name}", True) for name in taken]
    if method in methods():
        known += [(f.name, False) for f in dataclasses.fields(methods()[method].config)]
    words: list[str] = []
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        key = rng.choice(known)[0] if known and rng.random() < 0.9 else rng.choice(TEXTS)
        value = rng.choice((rng.choice(_SIZES), rng.choice(_ODD), rng.choice(TEXTS)))
        text = rng.choice((f"{key}={value}",) * 9 + (key, f"={value}", "=", f"{key}=={value}"))
        words += ["--set", text]
    return words


def _out(rng: Random, calls: Calls) -> Path:
    here = calls.sandbox
    places = (
        here / "out", here / "folder", here / "file", here / "file" / "x", here / "a" / "b" / "c",
        here / ("n" * 300), Path("/dev/full/x"), Path("/dev/null"), Path("/dev/null/x"),
        here / "name\n2", here / "💥", here / "out.gif", here / "out.html",
    )  # fmt: skip
    return rng.choice(places)


def _options(rng: Random, given: dict[str, Callable[[], str]], often: float = 0.3) -> list[str]:
    return [w for k, v in given.items() if rng.random() < often for w in (k, v())]


def _run(rng: Random, calls: Calls, prepared: Path) -> Line:
    problem, method = _problem(rng), rng.choice((None, *methods()))
    unit = rng.choice(("--steps", "--steps", "--episodes"))
    words = ["run", problem, unit, _budget(rng)]
    words += [] if method is None else ["--method", method]
    settings = _settings(rng, problem, method)
    if unit == "--episodes" and settings:
        words[2] = "--steps"  # an episode of a changed problem may be as long as it likes
    words += settings
    words += _options(
        rng,
        {
            "--seed": lambda: rng.choice(("0", "3", "-1", "x", str(2**64), "1e3", str(10**40))),
            "--confidence": lambda: rng.choice((*_ODD, "0.5", "0.999999999999")),
            "--below": lambda: rng.choice((*_ODD, "1e-5", "0.5")),
            "--target-error": lambda: rng.choice((*_ODD, "0.1", "0.9")),
            "--view": lambda: rng.choice(("state", "paper", "markov", *TEXTS)),
            "--extend": lambda: str(rng.choice((prepared / "run", prepared, _out(rng, calls)))),
        },
        0.12,
    )  # fmt: skip
    words += rng.choice(([], [], [], [unit, "100"], ["--episodes", "5"], ["--no-check"], ["-q"]))
    words += rng.choice(([], ["--json"]))
    if rng.random() < 0.3:
        out = _out(rng, calls)
        return [*words, "--out", str(out)], [out, *_made_on_the_way(out, calls.sandbox)]
    return words, []


def _made_on_the_way(path: Path, sandbox: Path) -> list[Path]:
    """Folders above an output that may be made with it."""
    return [p for p in path.parents if sandbox in p.parents]


def _check(rng: Random, calls: Calls, prepared: Path) -> Line:
    problem = _problem(rng)
    words = ["check", problem, *_settings(rng, problem, None), "--seconds", "0.2"]
    options = {
        "--episodes": lambda: rng.choice(("2", "20", "-1", "0", "x", "1e3")),
        "--seconds": lambda: rng.choice(("0", "-1", "nan", "x", "0.1", "1e-320")),
        "--seed": lambda: rng.choice(("0", "-1", "x", str(2**70))),
    }
    return [*words, *_options(rng, options), *rng.choice(([], ["--json"]))], []


def _plan(rng: Random, calls: Calls, prepared: Path) -> Line:
    problem, method = _problem(rng), rng.choice((None, *methods()))
    words = ["plan", problem, "--pilot-steps", _budget(rng), *_settings(rng, problem, method)]
    words += [] if method is None else ["--method", method]
    odd = {
        "--target-error": lambda: rng.choice((*_ODD, "0.1", "1e-9")),
        "--confidence": lambda: rng.choice((*_ODD, "0.9")),
        "--seed": lambda: rng.choice(("0", "-1", "x")),
    }
    return [*words, *_options(rng, odd), *rng.choice(([], ["--json"]))], []


def _truth(rng: Random, calls: Calls, prepared: Path) -> Line:
    problem = _problem(rng)
    words = ["truth", problem, *_settings(rng, problem, None), *rng.choice(([], ["--json"]))]
    return words, []


def _new(rng: Random, calls: Calls, prepared: Path) -> Line:
    path = rng.choice((_out(rng, calls), calls.sandbox / "mine.py", calls.sandbox / "a" / "b.py"))
    kind = rng.choice(("gymnasium", "numpy", *TEXTS))
    return ["new", str(path), "--kind", kind, *rng.choice(([], ["--force"]))], [path]


def _read(rng: Random, calls: Calls, prepared: Path) -> Line:
    """Commands on run folders, with wrong options or on what is no run."""
    run = str(
        rng.choice((prepared / "run", prepared / "run", prepared / "file", *map(Path, TEXTS)))
    )
    out = _out(rng, calls)
    number = rng.choice(("1", "0", "-1", "2.5", "x", "99999999999999999999"))
    odd = rng.choice((*_ODD, "0.9"))
    change = rng.choice((
        "std*1.2", "probabilities[1]*2", "probabilities[9]*2", "probabilities=nan", "mean+inf",
        "probabilities*0", "probabilities[0]=-1", "initial.mean+1", "std[0]*2", "x", "", "std**2",
        "probabilities[0]=1e999", "std[99999999999999999999]=1", "probabilities[1]*1e-320", *TEXTS,
    ))  # fmt: skip
    lines: list[Line] = [
        (["show", run], []),
        (["report", run, "--out", str(out)], [out]),
        (["replay", run, "--failure", number], []),
        (["replay", run, "--mode", number, "--out", str(out)], [out]),
        (["reweight", run, "--nominal", change, "--confidence", odd], []),
        (["reweight", run, "--nominal", change, "--json"], []),
        (["reweight", run, *_settings(rng, "walk", None)], []),
        (["compare", run, run, "--confidence", odd], []),
        (["merge", run, run, "--confidence", odd, "--out", str(out)], [out]),
        (["export", run, "--csv", str(out)], [out, *_made_on_the_way(out, calls.sandbox)]),
        (["replay", run, "--problem", rng.choice(TEXTS)], []),
    ]
    return rng.choice(lines)


def _measure(rng: Random, calls: Calls, prepared: Path) -> Line:
    """Experiments that are refused before they begin."""
    wrong = rng.choice(("0", "-1", "x", "2.5", "nan", str(10**12)))
    command = rng.choice(("bench", "reproduce"))
    target = rng.choice(("", "x", "../x", "💥", "accuracy ", "a" * 300))
    names = {"bench": "speed", "reproduce": "table1"}
    lines = (
        [command, target],
        [command, names[command], "--seeds", wrong],
        [command, names[command], "--seeds", "2000", "--tuning"],
        ["bench", "speed", "--rows", target or "x"],
        ["bench", "accuracy", "--rows", target or "x", "--seeds", "1"],
    )
    return list(rng.choice(lines)), []


def _noise(rng: Random, calls: Calls, prepared: Path) -> Line:
    """Words in any order."""
    words = ["run", "list", "show", "--json", "--steps", "--set", "-q", "--", "--help", "-", "--x"]
    words += ["ape", "walk", "--out", "--version", *TEXTS]
    line = rng.sample(words, rng.randrange(4))
    return line, []


def _list(rng: Random, calls: Calls, prepared: Path) -> Line:
    return ["list", rng.choice((*TEXTS, *entries(), *methods()))], []


_COMMANDS: tuple[tuple[Callable[[Random, Calls, Path], Line], int], ...] = (
    (_run, 12), (_check, 2), (_plan, 2), (_truth, 2), (_new, 1), (_read, 4), (_measure, 1),
    (_noise, 2), (_list, 1),
)  # fmt: skip


def _anything(rng: Random) -> Any:
    return rng.choice((
        None, True, [], {}, (), object(), 1j, b"x", float("nan"), float("inf"), -float("inf"),
        rng.choice(NUMBERS), rng.choice(TEXTS),
    ))  # fmt: skip


def _evaluate(rng: Random, calls: Calls, prepared: Path) -> None:
    """`evaluate` with keyword arguments of any type."""
    small = rng.choice(("walk", "one-step", "ar1", "never", "always"))
    problem: Any = _anything(rng) if rng.random() < 0.05 else make(small)
    unit = rng.choice(("steps", "episodes"))
    given: dict[str, Any] = {unit: rng.choice((5, 30, 60))}
    settings = {f.name: None for m in methods().values() for f in dataclasses.fields(m.config)}
    if rng.random() < 0.7:
        given["method"] = rng.choice(tuple(methods()))
    other = "steps" if unit == "episodes" else "episodes"
    for name in ("method", *RunKeywords.__annotations__):
        if name != other and rng.random() < 0.1:
            given[name] = _anything(rng)
    if rng.random() < 0.2:
        given["settings"] = {rng.choice(tuple(settings)): _anything(rng)}
    size = given.get(unit)
    if isinstance(size, int) and 1_000 < size <= _TOO_MUCH:
        given[unit] = 60
    said = ", ".join(f"{k}={v!r:.60}" for k, v in given.items())
    calls.python(f"evaluate({small}, {said})", lambda: evaluate(problem, **given))


def _make(rng: Random, calls: Calls, prepared: Path) -> None:
    """`make` with parameters of any type."""
    name = _problem(rng)
    given: dict[str, Any] = {}
    if name in entries():
        taken = [k for k in inspect.signature(entries()[name].factory).parameters if k != "name"]
        given = {k: _anything(rng) for k in taken if rng.random() < 0.4}
    said = ", ".join(f"{k}={v!r:.60}" for k, v in given.items())
    problem = calls.python(f"make({name!r:.60}, {said})", lambda: make(name, **given))
    if problem is not None:
        calls.python(
            f"evaluate(make({name!r:.60}, {said}))",
            lambda: evaluate(problem, rng.choice(("mc", None)), steps=300),
        )


def _ask(rng: Random, calls: Calls, prepared: Path) -> None:
    """Other functions of the library."""
    odd = _anything(rng)
    ways: dict[str, Callable[[], Any]] = {
        "load": lambda: load(odd),
        "check_problem": lambda: check_problem(make("walk"), episodes=20, seconds=0.1, seed=3),
        "plan": lambda: plan(make("walk", top=5), target_error=odd, pilot_steps=300),
        "run.problem": lambda: load(prepared / "run").problem(rng.choice(TEXTS)),
        "run.problem of another": lambda: load(prepared / "run").problem(top=odd),
    }
    name = rng.choice(tuple(ways))
    calls.python(f"{name}({odd!r:.60})", ways[name])
