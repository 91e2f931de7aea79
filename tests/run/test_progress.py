"""What a run tells while it works: phases and batches, the live view, TensorBoard, --quiet."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest

import apeval
from apeval.cli.live_view import LiveView, live_progress
from apeval.cli.main import commands, main
from apeval.run.progress import Progress

COMMANDS = commands()
DEMO = ("run", "one-step", "--set", "problem.beta=3.0", "--episodes", "400", "--seed", "1")


def command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["apeval", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    return int(stop.value.code or 0)


def told(**options: float) -> tuple[list[Progress], apeval.Result]:
    heard: list[Progress] = []
    problem = apeval.make("one-step", beta=3.0)
    result = apeval.evaluate(problem, seed=1, listener=heard.append, **options)  # type: ignore[arg-type]
    return heard, result


def test_phases_come_in_order_and_batches_add_up() -> None:
    heard, result = told(episodes=400)
    phases = list(dict.fromkeys(now.phase for now in heard))
    assert phases == ["exploring", "learning", "estimating"]
    batches = [now.batch for now in heard if now.batch is not None]
    assert sum(n for _, n in batches) == result.episodes
    assert sum(failed for failed, _ in batches) == result.failures
    assert heard[-1].interval is not None
    assert all(now.interval is None for now in heard if now.phase != "estimating")
    assert heard[-1].total == 400


def test_a_target_predicts_its_end() -> None:
    heard, result = told(episodes=200_000, target_error=0.2)
    assert result.target is not None
    assert result.target.met
    assert heard[-1].total < 20_000  # not the upper limit, which it will never need


@pytest.mark.parametrize("width", [24, 40, 71, 72, 120])
def test_the_view_fits_the_terminal(width: int) -> None:
    from rich.console import Console

    view = LiveView()
    for now in told(episodes=400)[0]:
        view.listen(now)
        console = Console(width=width, record=True, force_terminal=True, file=io.StringIO())
        console.print(view)
        lines = console.export_text().rstrip("\n").split("\n")
        assert len(lines) == 3
        assert all(len(line) <= width for line in lines)
        assert now.phase in lines[0]
    assert "estimate" in lines[1]
    assert re.search(r"failures +\d", lines[2])


def test_a_pipe_stays_silent(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with live_progress() as listener:
        assert listener is None
    assert command(monkeypatch, *DEMO) == 0
    assert capfd.readouterr().err == ""


def test_a_budget_that_nobody_gave_is_told(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "one-step", "--method", "mc"]
    for more, said in (((), True), (("-q",), False), (("--json",), False), (DEMO[4:6], False)):
        assert command(monkeypatch, *words, *more) == 0
        out = capfd.readouterr().out
        assert ("budget: 9,000 decisions, since none was given; --steps or" in out) == said


@pytest.mark.parametrize("place", ["before", "after"])
def test_quiet_leaves_the_result_alone(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    words = [*DEMO, "--out", str(tmp_path / "x")]
    assert command(monkeypatch, *words) == 0
    loud = capfd.readouterr().out
    quiet = ["--quiet", *words] if place == "before" else [*words, "-q"]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert command(monkeypatch, *quiet) == 0
    out, err = capfd.readouterr()
    assert err == ""
    assert "stored in" in loud
    assert "stored in" not in out
    assert "failure probability" in out
    assert command(monkeypatch, "--quiet", "report", str(tmp_path / "nothing")) == 2
    assert capfd.readouterr().err.startswith("apeval: ")


def test_quiet_does_not_outlast_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, "new", str(tmp_path / "a.py"), "--quiet") == 0
    assert capfd.readouterr().out == ""
    assert command(monkeypatch, "new", str(tmp_path / "b.py")) == 0
    assert "wrote" in capfd.readouterr().out


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help_with_examples_and_quiet(
    name: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, name, "--help") == 0
    text = capfd.readouterr().out
    assert "Examples:" in text
    assert re.search(rf"^ +apeval {name}\b", text, re.MULTILINE)
    assert "--quiet" in text


def test_version(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    assert command(monkeypatch, "--version") == 0
    assert capfd.readouterr().out.strip() == apeval.__version__


def test_tensorboard_gets_the_course_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboard", reason="the extra tensorboard is not installed")
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.compat.proto.event_pb2 import Event

    assert (
        command(monkeypatch, *DEMO, "--tensorboard", str(tmp_path), "--out", str(tmp_path / "x"))
        == 0
    )
    (file,) = tmp_path.glob("events.*")
    series: dict[str, list[tuple[int, float]]] = {}
    for raw in RawEventFileLoader(str(file)).Load():
        event = Event.FromString(raw)
        for value in event.summary.value:
            series.setdefault(value.tag, []).append((event.step, value.simple_value))
    result = apeval.load(tmp_path / "x").result
    last = {tag: points[-1][1] for tag, points in series.items()}
    assert last["estimate/value"] == pytest.approx(result.estimate, rel=1e-6)
    assert (last["estimate/lower"], last["estimate/upper"]) == pytest.approx(
        result.interval, rel=1e-6
    )
    assert last["estimate/ess"] == pytest.approx(result.final.ess, rel=1e-6)
    assert sum(n for _, n in series["failures/per_batch"]) == result.failures
    assert series["estimate/value"][-1][0] == result.steps


def test_without_tensorboard_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard.summary.writer.event_file_writer", None)
    assert command(monkeypatch, *DEMO, "--tensorboard", str(tmp_path)) == 2
    assert "pip install 'apeval[tensorboard]'" in capfd.readouterr().err
