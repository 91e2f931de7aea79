"""Stored failures again: exact, as a table, as a drawing; and a run as CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import apeval
from apeval.errors import ApevalError
from apeval.problem.draws import make_key
from apeval.problem.problem import Problem
from apeval.results.animation import save_pictures
from apeval.results.episode_scene import scene_of, scene_of_record
from apeval.results.failure_replay import replay_failure, replay_mode
from apeval.results.own_pictures import own_pictures
from apeval.results.report import write_report
from apeval.results.report.picture_files import as_data
from apeval.simulate.adversary import Nominal, only
from apeval.simulate.episodes import Episodes
from apeval.simulate.task import Task

Outcome = tuple[int, str, str]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored") / "int"
    problem = apeval.make("int-v1")
    apeval.evaluate(problem, steps=1_800, seed=1, recorder=apeval.Recorder(folder))
    return folder


def test_show_prints_what_the_run_printed(command: Callable[..., Outcome], tmp_path: Path) -> None:
    folder = str(tmp_path / "r")
    arguments = ("run", "walk", "--steps", "2000", "--set", "problem.top=5", "--out", folder)
    printed = command(*arguments)[1]
    code, shown, _ = command("show", folder)
    assert code == 0
    assert printed == shown + f"  stored in            {folder}\n"
    assert json.loads(command("show", folder, "--json")[1])["problem"] == "walk"
    assert apeval.load(folder).provenance["command"].startswith("apeval run walk --steps 2000")


def test_replay_prints_the_recorded_trajectory_and_draws_it(
    command: Callable[..., Outcome], stored: Path, tmp_path: Path
) -> None:
    film = tmp_path / "crash.gif"
    code, out, err = command("replay", str(stored), "--failure", "3", "--out", str(film))
    assert code == 0, err
    record = apeval.load(stored).records[2]
    lines = out.splitlines()
    assert lines[0].startswith(f"int-v1 · episode {record['id']}: crash after")
    assert lines[1].split() == ["decision", "s_0", "s_1", "s_2", "s_3", "a_E_0", "a_E_1"]
    first = [float(cell) for cell in lines[2].split()[-2:]]
    assert first == pytest.approx(record["a_E"][0], rel=1e-3)
    with Image.open(film) as picture:
        assert picture.n_frames > 20
        one = np.asarray(picture.convert("RGB")).astype(int)
        picture.seek(picture.n_frames - 1)
        assert np.abs(np.asarray(picture.convert("RGB")).astype(int) - one).max() > 50
    exact = json.loads(command("replay", str(stored), "--failure", "3", "--json")[1])
    assert [d["a_E"] for d in exact["decisions"]] == record["a_E"]
    assert exact["outcome"] == "crash"


def test_every_failure_and_mode_replays(stored: Path) -> None:
    run = apeval.load(stored)
    problem = run.problem()
    for number in range(1, len(run.records) + 1):
        it = replay_failure(run, number, problem)
        assert it.outcome == "crash"
        mine = run.episodes.take(run.episodes.ids == it.episodes.ids[0])
        assert np.array_equal(it.episodes.s, mine.s)
    assert replay_mode(run, 1, problem).outcome == "crash"


def test_a_changed_simulator_is_noticed(stored: Path) -> None:
    run = apeval.load(stored)
    with pytest.raises(ApevalError, match="otherwise than recorded"):
        replay_failure(run, 1, apeval.make("int-v1", challenger_start=70.0))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("show", "nowhere"), "no run folder"),
        (("replay", "RUN", "--failure", "0"), "from 1 to"),
        (("replay", "RUN", "--failure", "100000"), "from 1 to"),
        (("replay", "RUN", "--mode", "9"), "from 1 to 1"),
        (("replay", "RUN", "--failure", "1", "--mode", "1"), "give one of"),
        (("replay", "RUN", "--out", "crash.mp4"), "crash.gif"),
        (("replay", "RUN", "--problem", "walk"), "not the problem of"),
        (("export", "RUN", "--csv", "/proc/nowhere"), "cannot write"),
        (("export", "RUN"), "--csv"),
    ],
)
def test_bad_input_is_one_line(
    command: Callable[..., Outcome], stored: Path, arguments: tuple[str, ...], says: str
) -> None:
    code, out, err = command(*[str(stored) if a == "RUN" else a for a in arguments])
    assert code == 2
    assert out == ""
    assert says in err
    assert len(err.strip().splitlines()) == 1


def test_export_has_every_number(
    command: Callable[..., Outcome], stored: Path, tmp_path: Path
) -> None:
    code, out, _ = command("export", str(stored), "--csv", str(tmp_path / "csv"))
    assert code == 0
    assert len(out.splitlines()) == 4
    tables = {}
    for name in ("episodes", "decisions", "tail", "modes"):
        with (tmp_path / "csv" / f"{name}.csv").open(newline="") as file:
            tables[name] = list(csv.DictReader(file))
    run = apeval.load(stored)
    weights = [float(r["weight"]) for r in tables["episodes"] if r["stage"] == "estimate"]
    assert np.array_equal(weights, run.sample.weights)
    failed = [r["kind"] == "crash" for r in tables["episodes"] if r["stage"] == "estimate"]
    assert np.array_equal(failed, run.sample.failed)
    assert len(tables["decisions"]) == run.result.steps
    ids = {str(i) for i in run.ids}
    pushes = [float(r["a_E_0"]) for r in tables["decisions"] if r["id"] in ids]
    assert np.array_equal(pushes, run.episodes.a_E[:, 0])
    assert float(tables["tail"][0]["probability"]) == run.result.tail[0].probability
    assert len(tables["modes"]) == len(run.result.modes)


# -- drawings ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "movers"),
    [("int-v0", 2), ("int-multi", 4), ("lunarlander", 6), ("pendulum", 1), ("minigrid-s1", 2)],
)
def test_a_drawing_shows_the_recorded_episode(name: str, movers: int, tmp_path: Path) -> None:
    problem = apeval.make(name)
    apeval.evaluate(problem, "mc", episodes=3, seed=5, recorder=apeval.Recorder(tmp_path))
    run = apeval.load(tmp_path)
    scene = scene_of(run.problem(), run.episodes, 1, run.key)
    assert scene.drawable
    assert len(scene.movers) == movers
    frames = len(scene.time)
    assert len(scene.decision) == frames
    assert int(scene.decision.max()) == len(run.episodes.t[run.episodes.rows_of(1)])
    for mover in scene.movers:
        assert mover.pose.shape == (frames, 3)
        assert np.isfinite(mover.pose).all()
    assert np.all(np.diff(scene.time) > 0.0)
    assert any(series.group == "disturbance" for series in scene.series)
    assert json.loads(json.dumps(scene.as_json(), allow_nan=False))["outcome"] == scene.outcome


def test_cars_touch_in_the_last_frame_of_a_crash(stored: Path) -> None:
    run = apeval.load(stored)
    scene = scene_of_record(run.problem(), run.records[0])
    apart = next(s for s in scene.series if s.unit == "m").value
    assert apart[0] > 10.0
    assert apart[-1] < 1.0
    ego, challenger = (mover.pose[-1, :2] for mover in scene.movers)
    assert np.hypot(*(ego - challenger)) < 6.0


def test_without_a_problem_there_are_still_series(stored: Path) -> None:
    run = apeval.load(stored)
    scene = scene_of(None, run.episodes, 0)
    assert not scene.drawable
    assert [s.name for s in scene.series] == [
        "state 1", "state 2", "state 3", "state 4", "disturbance 1", "disturbance 2",
    ]  # fmt: skip


def cartpole() -> Problem:
    """CartPole with a push on every action, and a policy that leans."""
    import gymnasium

    return apeval.from_gymnasium(
        lambda: gymnasium.make("CartPole-v1"),
        nominal=apeval.Normal(0.0, 0.1),
        agent=lambda obs: int(obs[2] > 0.0),
        apply=lambda env, a_A, a_E: env.step(int(a_A + a_E[0] > 0.5)),
        failed=lambda obs, terminated, truncated, info: terminated,
        horizon=60,
        name="cart",
    )


def test_an_environment_draws_itself(tmp_path: Path) -> None:
    """Its own pictures where it can; a plot of states and disturbances where it cannot."""
    pytest.importorskip("pygame")
    problem = cartpole()
    apeval.evaluate(problem, "mc", episodes=40, recorder=apeval.Recorder(tmp_path / "run"))
    run = apeval.load(tmp_path / "run")
    it = replay_failure(run, 1, problem)
    with Image.open(it.film(tmp_path / "cart.gif")) as picture:
        assert picture.size == (600, 400)
        assert picture.n_frames > 3
    blind = apeval.Problem(**{**vars(problem), "agent": problem.agent, "name": "blind"})
    object.__setattr__(blind, "reset", lambda draws: _no_pictures(problem.reset(draws)))
    it = replay_failure(run, 1, blind)
    with Image.open(it.film(tmp_path / "plot.gif")) as picture:
        assert picture.size != (600, 400)


def test_pictures_are_taken_at_every_step_within_a_decision() -> None:
    pytest.importorskip("pygame")
    problem = held_cartpole()
    failed = next(it for it in _episodes(problem) if it.failed[0])
    found = own_pictures(problem, failed, make_key(0))
    assert found is not None
    decisions = len(failed.t)
    assert 4 * (decisions - 1) + 1 < len(found.pictures) <= 4 * decisions + 1
    assert np.all(np.diff(found.time) > 0.0)
    assert found.time[0] == 0.0
    assert found.time[-1] == decisions
    assert found.decision[-1] == decisions
    assert not np.array_equal(found.pictures[1], found.pictures[2])
    assert own_pictures(problem, failed, make_key(1)) is None  # another start: not this episode


def test_a_report_shows_the_environments_own_pictures(tmp_path: Path) -> None:
    pytest.importorskip("pygame")
    source = tmp_path / "cart.py"
    source.write_text(
        "import apeval\n\n\ndef problem():\n"
        "    return apeval.from_env('CartPole-v1', policy=lambda obs: int(obs[2] > 0.0), "
        "disturb=apeval.ObservationNoise(std=0.5, hold=4), horizon=40, name='cart')\n"
    )
    address = f"{source}:problem"
    apeval.evaluate(
        apeval.make(address),
        "mc",
        episodes=20,
        check=False,
        recorder=apeval.Recorder(tmp_path / "run"),
    )
    text = write_report([tmp_path / "run"], tmp_path / "r.html", address).read_text()
    assert text.count("data:image/") > 4
    assert len(text) < 5_000_000
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text


def test_pictures_become_smaller_until_they_fit() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (20, 300, 400, 3)).astype(np.uint8)
    large, small = as_data(noise, 5_000_000), as_data(noise, 200_000)
    assert large is not None
    assert small is not None
    assert len(large) == len(small) == 20
    assert sum(map(len, small)) <= 200_000 < sum(map(len, large)) <= 5_000_000
    assert as_data(noise, 1_000) is None


def held_cartpole() -> apeval.Problem:
    return apeval.from_env(
        "CartPole-v1",
        policy=lambda obs: int(obs[2] > 0.0),
        disturb=apeval.ObservationNoise(std=0.5, hold=4),
        horizon=40,
    )


def _episodes(problem: apeval.Problem) -> Iterator[Episodes]:
    for k in range(50):
        yield Task(only(Nominal()), k, k, 1).simulate(problem, make_key(0))


def _no_pictures(x: object) -> object:
    for env in x.envs:  # type: ignore[attr-defined]
        env.unwrapped.metadata = {"render_modes": []}
    return x


def test_a_gif_without_its_libraries_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(apeval.ApevalError, match=r"pip install 'apeval\[pictures\]'"):
        save_pictures([np.zeros((2, 2, 3), np.uint8)], tmp_path / "x.gif")
    assert not (tmp_path / "x.gif").exists()
