"""Users' code that misbehaves: is the number that of the same problem written properly, or is the
run refused, or its result not trusted?

Every run is a process of its own, forked from one that has imported everything, because such code
may change anything in the process that it runs in.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from apeval.errors import ApevalError, user_frame
from apeval_bench.attack.readings import difference
from apeval_bench.attack.ways.every import WAYS
from apeval_bench.attack.ways.outside import ONLY_BETWEEN_PROCESSES
from apeval_bench.attack.ways.walk import walk
from apeval_bench.fuzz.calls import is_json

_ADDRESS = "ways.every:problem"
_EPISODES, _SEED = 1_500, 10_000
_SECONDS = 180.0  # that a run may take; Ray needs some to start, the more on a busy machine
_PRELOADED = ["apeval_bench.attack.users", "apeval.run.evaluate", "numba", "pyarrow.parquet"]
_NUMBERS = (
    "estimate", "standard_error", "interval", "confidence", "seed", "steps", "episodes", "failures",
    "final", "kinds", "modes", "tail", "unresolved", "detection_limit", "value", "trusted",
)  # fmt: skip
"""What two results of one problem share, bit for bit; not the time, nor how remedies are worded."""
_RAY = (
    "signal keeps the largest of all", "env's policy drifts late",
    "vector env scales actions in place",
    "step scales a_E in place", "policy counts its calls", "prints in the simulator",
    "the process's number", "NaN late", "a worker ends late",
)  # fmt: skip
_RAY_EVERY = 7  # of the other ways, one in so many is tried with Ray as well
_COMMANDED = (
    "signal prints", "env prints", "batch policy prints", "vector env prints",
    "vector env's processes print",
    "prints in the simulator", "prints in the policy", "writes to descriptor 1",
    "writes to sys.__stdout__", "prints to stderr", "warns", "makes warnings errors",
    "closes stdout", "np.set_printoptions", "changes the current folder",
)  # fmt: skip
"""Ways that are about what a command says; these are tried with workers as well."""
_DOORS = (
    "signal remembers", "signal keeps the largest of all", "signal writes over its last answer",
    "env scales its action in place", "envs answer with one array", "env wears out",
    "env asks np.random", "env's policy writes over its last answer", "env's policy remembers",
    "env's policy drifts late", "batch policy counts its calls", "batch policy drifts late",
    "batch policy scales observations in place", "vector env scales actions in place",
    "vector env writes over its last answer", "vector env wears out",
    "vector env's observation grows late", "vector env raises late", "vector policy remembers",
    "vector policy drifts late", "vector view writes over its last answer",
)  # fmt: skip
"""Of environments and specifications, which all end in the same runs: tried with workers too."""
_SMALL = (
    "step scales a_E in place:ape:serial:python", "reset scales a_0 in place:mc:serial:python",
    "agent scales x in place:mc:serial:python", "failed changes x:mc:serial:python",
    "view scales x in place:mc:serial:python",
    "policy remembers the last observation:ape:serial:python",
    "policy drifts late:mc:serial:python", "simulator drifts:mc:serial:python",
    "simulator depends on the batch's mean:mc:serial:python",
    "step writes over its last answer:mc:serial:python", "the clock:mc:serial:python",
    "np.random in the simulator:mc:serial:python", "ends Python late:ape:serial:command",
    "view's width changes late:ape:serial:python", "prints in the simulator:ape:serial:command",
    "writes to descriptor 1:ape:serial:command", "the process's number:ape:processes:python",
    "signal keeps the largest of all:ape:serial:python",
    "env's policy writes over its last answer:ape:serial:python",
    "batch policy depends on the place:ape:serial:python",
    "vector env scales actions in place:ape:serial:python",
    "vector policy drifts:ape:serial:python",
)  # fmt: skip


def names(prepared: Path, small: bool = False) -> list[str]:
    """Every case: `users:WAY:METHOD:BACKEND:python or command`."""
    if small:
        return [f"users:{name}" for name in _SMALL]
    found = []
    for way, it in WAYS.items():
        if it.build is not walk:
            found += [f"{way}:ape:{b}" for b in _behind_doors(way)]
            continue
        serial = [] if way in ONLY_BETWEEN_PROCESSES else ["serial"]
        found += [f"{way}:{m}:{b}:python" for b in serial for m in ("ape", "mc")]
        found += [f"{way}:ape:{b}:command" for b in serial]
        found += [f"{way}:ape:processes:python"]
        found += [f"{way}:ape:processes:command"] if way in _COMMANDED else []
        found += [f"{way}:ape:ray:command"] if way in _with_ray() else []
    return [f"users:{name}" for name in found]


def _behind_doors(way: str) -> list[str]:
    """Where a way of environments, vector environments and specifications is tried."""
    found = ["serial:python"]
    found += ["processes:python"] if way in _DOORS or way in _with_ray() else []
    found += ["serial:command", "processes:command"] if way in _COMMANDED else []
    return found + (["ray:command"] if way in _with_ray() else [])


def _with_ray() -> set[str]:
    """Ways that are tried in every backend: Ray takes seconds to start."""
    return {*_RAY, *list(WAYS)[::_RAY_EVERY]}


def prepare(folder: Path) -> None:
    """The ways as a user's own files, outside the package."""
    folder.mkdir(exist_ok=True)
    here = Path(__file__).with_name("ways")
    shutil.copytree(here, folder / "ways", ignore=shutil.ignore_patterns("__pycache__"))


def misbehave(case: str, prepared: Path, known: dict[str, Any]) -> dict[str, Any]:
    """The number of a way, beside that of the same problem written properly; `known` keeps the
    latter from case to case."""
    way, method, backend, how = case.removeprefix("users:").split(":")
    it = WAYS[way]  # most are the same problem
    key = f"{way if it.good else it.build.__name__}:{method}"
    if key not in known:
        known[key] = _alone(prepared, way, True, method, "serial", "python")
    honest = known[key]
    if honest["kind"] != "answered":
        raise RuntimeError(f"written properly, {way!r} does not run: {honest}")
    if not honest["numbers"]["trusted"]:  # else nothing could be found
        raise RuntimeError(f"written properly, {way!r} is not trusted")
    seen = _alone(prepared, way, False, method, backend, how)
    verdict, detail = _verdict(honest, seen)
    bad = verdict not in ("same", "refused", "warned")
    findings = [{"call": case, "kind": verdict, "detail": detail}] if bad else []
    return {
        "seed": case,
        "answered": int(seen["kind"] == "answered"),
        "refused": int(verdict == "refused"),
        "tally": {verdict: 1},
        "findings": findings,
    }


def _verdict(honest: dict[str, Any], seen: dict[str, Any]) -> tuple[str, str]:
    if seen["kind"] != "answered":
        return seen["kind"], seen.get("detail", "")
    if seen["numbers"] == honest["numbers"]:
        return "same", ""
    if not seen["numbers"]["trusted"]:
        return "warned", ""
    for key in ("estimate", "interval"):
        one, two = honest["numbers"][key], seen["numbers"][key]
        if one != two:
            return "different number", f"{key}: {one} → {two}"
    return "different number", difference(honest["numbers"], seen["numbers"])


def _alone(
    prepared: Path, way: str, proper: bool, method: str, backend: str, how: str
) -> dict[str, Any]:
    """One run in a process of its own."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    mine, its = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory(prefix="apeval-ways-") as folder:
        shutil.copytree(prepared / "ways", Path(folder, "ways"))
        asked = (way, proper, method, backend)
        process = context.Process(target=_work, args=(folder, asked, how, its))
        process.start()
        its.close()
        try:
            said: dict[str, Any] = (
                mine.recv() if mine.poll(_SECONDS) else {"kind": "hang", "detail": "no answer"}
            )
        except EOFError:
            process.join(5.0)
            said = {"kind": "crash", "detail": f"the process ended with {process.exitcode}"}
        finally:
            process.join(5.0)
            if process.is_alive():
                process.kill()
                process.join()
            mine.close()
    return said


Asked = tuple[str, bool, str, str]


def _work(folder: str, asked: Asked, how: str, tell: Connection) -> None:
    """The child: what it says itself goes to files."""
    os.chdir(folder)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), number)
    os.environ.update(WAYS_PARENT=str(os.getpid()), OMP_NUM_THREADS="1")
    sys.path.insert(0, folder)
    tell.send(_python(*asked) if how == "python" else _command(Path(folder), *asked))
    tell.close()
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    os._exit(0)  # whatever the user's code has left running


def _python(way: str, proper: bool, method: str, backend: str) -> dict[str, Any]:
    from apeval.environments import make
    from apeval.run.evaluate import evaluate

    given: dict[str, Any] = {"seed": _SEED, "backend": backend, "episodes": _EPISODES}
    if backend != "serial":
        given["workers"] = 2
    try:
        result = evaluate(make(_ADDRESS, way=way, proper=proper), method, **given)
        data = json.loads(json.dumps(result.as_json()))
    except ApevalError as error:
        return {"kind": "refused", "detail": str(error)}
    except BaseException as error:
        if user_frame(error) is not None or isinstance(error, KeyboardInterrupt):
            return {"kind": "refused", "detail": repr(error)}
        return {"kind": "traceback", "detail": traceback.format_exc()[-400:]}
    return {"kind": "answered", "numbers": {k: data.get(k) for k in _NUMBERS}}


def _command(folder: Path, way: str, proper: bool, method: str, backend: str) -> dict[str, Any]:
    words = ["run", _ADDRESS, "--method", method, "--episodes", str(_EPISODES)]
    words += ["--seed", str(_SEED), "--set", f"problem.way={way}", "--json"]
    words += ["--set", f"problem.proper={str(proper).lower()}", "--backend", backend]
    words += [] if backend == "serial" else ["--workers", "2"]
    sys.argv = ["apeval", *words]
    code: Any = 0
    try:
        importlib.import_module("apeval.cli.main").main()
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        return {"kind": "traceback", "detail": traceback.format_exc()[-400:]}
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    out, err = ((folder / name).read_text("utf-8", "replace") for name in ("out", "err"))
    return _told(code, out, err)


def _told(code: Any, out: str, err: str) -> dict[str, Any]:
    """What a command's exit code and words come to."""
    if "Traceback (most recent call last)" in err:
        return {"kind": "traceback", "detail": err[-400:]}
    if code in (1, 2, 130):
        return {"kind": "refused", "detail": err[-300:]}
    if code != 0:
        return {"kind": "exit code", "detail": f"{code}: {err[-300:]}"}
    if not is_json(out):
        return {"kind": "no JSON", "detail": out[:200]}
    data = json.loads(out)
    return {"kind": "answered", "numbers": {k: data.get(k) for k in _NUMBERS}}
