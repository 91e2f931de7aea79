"""Commands that are stopped at random moments, from the first on: no torn file is accepted, no
process stays, the exit code is one of the documented ones, and `resume` gives the number of an
undisturbed run, bit for bit.

Before its first line a program cannot catch a signal: that is Python's own start. A kill that came
before the first line was reached is counted by itself. Moments are those of a quiet machine: on a
busy one, where all takes longer, they are later by as much, and a command may take as much longer
before it counts as hanging.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apeval_bench.attack.bases import OWN
from apeval_bench.attack.command import PATIENCE, environment, program, ran
from apeval_bench.faults import told
from apeval_bench.fuzz.calls import is_json

_MARK = "import os; os.write({fd}, b'.'); os.close({fd})\n"
_ENV = "APEVAL_ATTACK"
_GRACE = 20.0  # seconds that processes left behind have to notice it
_QUIET = 2.3  # seconds that the undisturbed run takes where nothing else runs
_SECONDS = "seconds"
_SLOW = """
import time
import numpy as np
import apeval

def problem(pause: float = 0.002):
    def step(x, a_A, a_E, draws):
        time.sleep(pause)
        return 0.9 * x + a_A + a_E

    return apeval.Problem(
        nominal=apeval.Normal(0.0, 0.5),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=step,
        agent=lambda x: -0.1 * x,
        failed=lambda x: x[:, 0] > 1.5,
        margin=lambda x: 1.5 - x[:, 0],
        horizon=4,
        chunk=16,
    )
"""
SIGNALS = ("SIGINT", "SIGTERM", "SIGKILL", "SIGINT twice")
_RUN = ["run", OWN, "--episodes", "300", "--seed", "3", "--out", "run", "--json"]


@dataclass(frozen=True)
class KillTarget:
    """A command, and within how many seconds of its start, on a quiet machine, it is stopped."""

    words: list[str]
    within: float
    resumes: bool = False
    file: str = ""
    """A file that it writes, whole or not at all."""
    first: float = 0.0
    shots: int = 4
    """Kills with each signal in the full version."""


SCENES = {
    "start": KillTarget([*_RUN, "--no-check"], 0.5, True, shots=12),
    "first second": KillTarget([*_RUN, "--no-check"], 1.2, True, shots=12),
    "check": KillTarget(_RUN, 2.5, True, first=0.5, shots=8),
    "run": KillTarget([*_RUN, "--no-check"], 2.2, True, first=0.6, shots=8),
    "processes": KillTarget(
        [*_RUN, "--no-check", "--backend", "processes", "--workers", "2"], 3.0, True, shots=8
    ),
    "ray": KillTarget(
        [*_RUN, "--no-check", "--backend", "ray", "--workers", "2"], 8.0, True, shots=3
    ),
    "report": KillTarget(["report", "done", "--out", "page.html"], 1.5, file="page.html", shots=3),
    "merge": KillTarget(["merge", "done", "done2", "--out", "m.json"], 1.0, file="m.json", shots=2),
    "plan": KillTarget(["plan", "one-step", "--pilot-steps", "1000"], 1.5, shots=2),
    "help": KillTarget(["--help"], 0.5, shots=2),
}
_SMALL = (
    "start:SIGINT:0", "start:SIGTERM:0", "check:SIGTERM:0", "run:SIGINT:0", "processes:SIGKILL:0",
)  # fmt: skip


def names(prepared: Path, small: bool = False) -> list[str]:
    """Every kill: `kills:SCENE:SIGNAL:NUMBER`."""
    if small:
        return [f"kills:{name}" for name in _SMALL]
    return [
        f"kills:{name}:{signal}:{k}"
        for name, scene in SCENES.items()
        for signal in SIGNALS
        for k in range(scene.shots)
    ]


def prepare(folder: Path) -> None:
    """The undisturbed run, `done`, and another one."""
    folder.mkdir(exist_ok=True)
    (folder / "own.py").write_text(_SLOW, "utf-8")
    for name, seed in (("done", "3"), ("done2", "4")):
        words = [*_RUN[:4], "--seed", seed, "--no-check", "--out", name, "--json"]
        begun = time.perf_counter()
        said = ran(words, folder)
        (folder / _SECONDS).write_text(str(time.perf_counter() - begun), "utf-8")
        if said.returncode != 0:
            raise RuntimeError(f"the undisturbed run failed: {said.stderr}")


def _slowness(prepared: Path) -> float:
    """How many times longer things take here than on a quiet machine."""
    return max(1.0, float((prepared / _SECONDS).read_text("utf-8")) / _QUIET)


@dataclass
class Kill:
    """What became of a command that was stopped."""

    case: str
    findings: list[dict[str, str]] = field(default_factory=list)
    tally: dict[str, int] = field(default_factory=dict)

    def find(self, kind: str, detail: str) -> None:
        """Note a finding."""
        text = " ".join(detail.split())[-300:]
        self.findings.append({"call": self.case, "kind": kind, "detail": text})

    def count(self, what: str) -> None:
        """Count an outcome."""
        self.tally[what] = self.tally.get(what, 0) + 1


def kill(case: str, seed: int, prepared: Path) -> dict[str, Any]:
    """Start a command, stop it at a random moment, and see what is left."""
    scene_name, way, _ = case.removeprefix("kills:").split(":")
    scene, rng, it = SCENES[scene_name], random.Random(f"{case} {seed}"), Kill(case)
    slow = _slowness(prepared)
    moment = rng.uniform(scene.first, scene.within) * slow
    with tempfile.TemporaryDirectory(prefix="apeval-kill-") as name:
        folder, mark = Path(name), uuid.uuid4().hex
        (folder / "own.py").write_text(_SLOW, "utf-8")
        for other in ("done", "done2"):
            (folder / other).symlink_to(prepared / other)
        code, out, err, reached = _stopped(scene.words, folder, mark, way, moment, it, slow)
        before = "" if reached else "before its first line: "
        if code is not None:
            _judge(it, scene, way, code, out, err, reached)
        _strays(it, mark, slow)
        if scene.file and (folder / scene.file).exists():
            whole(it, folder / scene.file)
        if [path for path in folder.rglob("*.part") if way != "SIGKILL" and reached]:
            it.find("left behind", "a .part file")
        if scene.resumes:
            _resumed(it, folder, prepared, slow)
    it.count(f"{before}{way}")
    return {"seed": case, "answered": 0, "refused": 0, "tally": it.tally, "findings": it.findings}


def _stopped(
    words: list[str], folder: Path, mark: str, way: str, moment: float, it: Kill, slow: float
) -> tuple[int | None, str, str, bool]:
    """Exit code (None: it hung), what it said, and whether its first line was reached in time."""
    mine, its = os.pipe()
    with (folder / "out").open("w+") as out, (folder / "err").open("w+") as err:
        process = subprocess.Popen(
            [*program(_MARK.format(fd=its)), *words],
            cwd=folder,
            env=environment(**{_ENV: mark}),
            stdout=out,
            stderr=err,
            pass_fds=(its,),
        )
        os.close(its)
        os.set_blocking(mine, False)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(moment)
        reached = _reached(mine)
        os.close(mine)
        _strike(process, way)
        try:
            code: int | None = process.wait(PATIENCE * slow)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            code = None
            it.find("hang", f"still there {PATIENCE * slow:g} s after {way} at {moment:.2f} s")
        out.seek(0)
        err.seek(0)
        return code, out.read(), err.read(), reached


def _reached(pipe: int) -> bool:
    try:
        return os.read(pipe, 1) == b"."
    except BlockingIOError:
        return False


def _strike(process: subprocess.Popen[bytes], way: str) -> None:
    if process.poll() is None:
        process.send_signal(getattr(signal, way.split()[0]))
    if way.endswith("twice"):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.15)
        if process.poll() is None:
            process.send_signal(signal.SIGINT)


def _judge(
    it: Kill, scene: KillTarget, way: str, code: int, out: str, err: str, reached: bool
) -> None:
    """Exit codes and words of a command that ended."""
    allowed = {0, 130} if way != "SIGKILL" else {0, -signal.SIGKILL}
    if not reached:  # Python's own start, which nobody can catch
        allowed |= {-signal.SIGINT, -signal.SIGTERM, 1}
    if code not in allowed:
        it.find("exit code", f"{code} after {way}: {err}")
    if "Traceback (most recent call last)" in err and reached:
        it.find("traceback", err)
    if "--json" in scene.words and out.strip() and not is_json(out):
        it.find("no JSON", out)
    it.count(f"exit code {code}")


def _strays(it: Kill, mark: str, slow: float) -> None:
    """Processes that the command has left behind."""
    until = time.monotonic() + _GRACE * slow
    while left := _marked(mark):
        if time.monotonic() > until:
            it.find("process left behind", ", ".join(left.values()))
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return
        time.sleep(0.05)


def _marked(mark: str) -> dict[int, str]:
    """Processes with the mark in their environment; none where the system does not tell."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"{_ENV}={mark}".encode() in (path / "environ").read_bytes():
                words = (path / "cmdline").read_bytes().replace(b"\0", b" ")
                if words:  # else it has ended, and nobody has asked how
                    found[int(path.name)] = words.decode("utf-8", "replace")[:80]
    return found


def whole(it: Kill, path: Path) -> None:
    """Whether a file that is there is whole."""
    text = path.read_text("utf-8").rstrip()
    if not (is_json(text) if path.suffix == ".json" else text.endswith("</html>")):
        it.find("torn file", path.name)


def _resumed(it: Kill, folder: Path, prepared: Path, slow: float) -> None:
    """Go on where there is something to go on with; else start over."""
    begun = (folder / "run" / "manifest.json").exists()
    words = ["resume", "run", "--problem", OWN, "--json"] if begun else [*_RUN, "--no-check"]
    try:
        said = ran(words, folder, PATIENCE * slow)
    except subprocess.TimeoutExpired:
        it.find("hang", f"still there {PATIENCE * slow:g} s after it began to go on")
        return
    it.count("resumed" if begun else "started over")
    if said.returncode != 0:
        it.find("not resumed", f"{said.returncode}: {said.stderr}")
        return
    honest, mine = told(prepared / "done"), told(folder / "run")
    # the undisturbed run was not checked, and says so
    free = ("checked", "warnings") if mine["checked"] else ()
    if any(mine[name] != honest[name] for name in honest if name not in free):
        it.find("different number", "the resumed run is not the undisturbed one")
    shown = {k: v for k, v in json.loads(said.stdout).items() if k != "seconds"}
    if shown.get("estimate") != honest["estimate"]:
        it.find("different number", f"{honest['estimate']} → {shown.get('estimate')}")


def starting_time(repeats: int = 5) -> float:
    """Seconds until Python reaches the first line of a program: nothing can be caught before."""
    times = []
    for _ in range(repeats):
        mine, its = os.pipe()
        begun = time.perf_counter()
        words = [*program(_MARK.format(fd=its)), "--version"]
        process = subprocess.Popen(
            words, env=environment(), stdout=subprocess.DEVNULL, pass_fds=(its,)
        )
        os.close(its)
        os.read(mine, 1)
        times.append(time.perf_counter() - begun)
        os.close(mine)
        process.wait()
    return sorted(times)[repeats // 2]
