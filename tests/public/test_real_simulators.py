"""An aircraft on JSBSim and traffic on libsumo: quiet, repeatable, and disturbed as they say."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import apeval
from apeval.errors import ApevalError, ProblemError
from apeval.results.episode_scene import scene_of_record
from apeval.simulate.replay import replay
from apeval_public.truth.monte_carlo import count

NEEDS = {"jsbsim-altitude": "jsbsim", "sumo-follower": "libsumo"}
SIMULATORS = sorted(NEEDS)
HARSH = {"jsbsim-altitude": {"wind": 120.0}, "sumo-follower": {"std": 0.6}}
EXTRA = {"jsbsim-altitude": "jsbsim", "sumo-follower": "sumo"}


def needed(name: str) -> None:
    if importlib.util.find_spec(NEEDS[name]) is None:  # importing one is not quiet
        pytest.skip(f"pip install 'apeval[{EXTRA[name]}]'")


@pytest.mark.parametrize("name", SIMULATORS)
def test_a_missing_simulator_is_named_with_its_remedy(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, NEEDS[name], None)
    with pytest.raises(ApevalError, match=rf"pip install 'apeval\[{EXTRA[name]}\]'$"):
        apeval.make(name)


@pytest.mark.parametrize("name", SIMULATORS)
def test_it_is_quiet_and_fails_in_harsh_weather_alone(
    name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    needed(name)
    (setting,) = HARSH[name]
    calm = apeval.make(name, **{setting: 1e-3})
    assert count(calm, 0, 0, 4).sum() == 0
    assert count(apeval.make(name, **HARSH[name]), 0, 0, 8).sum() > 0
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", SIMULATORS)
def test_parameters_out_of_range_are_refused(name: str) -> None:
    needed(name)
    (setting,) = HARSH[name]
    for value in (0.0, -1.0, 1e4):
        with pytest.raises(ProblemError, match=f"{setting} must be positive and at most"):
            apeval.make(name, **{setting: value})


@pytest.mark.parametrize("name", SIMULATORS)
def test_workers_and_the_process_itself_see_the_same(name: str, tmp_path: Path) -> None:
    needed(name)
    problem = apeval.make(name, **HARSH[name])
    how: dict[str, Any] = {"episodes": 12, "seed": 3}
    here = apeval.evaluate(problem, "mc", recorder=apeval.Recorder(tmp_path / "here"), **how)
    there = apeval.evaluate(problem, "mc", backend="processes", workers=2, **how)
    assert here.failures == there.failures > 0
    assert here.estimate == there.estimate
    kept = json.loads((tmp_path / "here" / "result.json").read_text("utf-8"))
    assert kept["estimate"] == here.estimate  # pyarrow beside libsumo


@pytest.mark.parametrize("name", SIMULATORS)
def test_the_drawing_ends_where_the_episode_does(name: str) -> None:
    needed(name)
    problem = apeval.make(name, **HARSH[name])
    result = apeval.evaluate(problem, "mc", episodes=12, seed=3)
    record = result.records[0]
    end = replay(problem, record).s_end[0]
    scene = scene_of_record(problem, record)
    assert scene.drawable
    assert scene.outcome in problem.kinds
    assert scene.series[0].value[-1] == end[0]


def test_gusts_reach_the_aircraft_in_straight_lines() -> None:
    needed("jsbsim-altitude")
    from apeval_public.simulators.cessna import HOLD, Cessna

    env, wanted = Cessna(), np.array([3.0, -2.0, 5.0])
    env.reset()
    felt = []
    for _ in range(HOLD):
        env.blow(wanted)
        env.step(np.zeros(4))
        felt.append([env.model[f"atmosphere/total-wind-{it}-fps"] for it in GUST])
    share = np.arange(1, HOLD + 1)[:, None] / HOLD
    np.testing.assert_allclose(felt, share * wanted, atol=1e-9)


GUST = ("north", "east", "down")


def test_the_drivers_errors_are_those_of_sumo(tmp_path: Path) -> None:
    """SUMO's driver state with its defaults, at its least awareness: intensity and time scale."""
    needed("sumo-follower")
    from apeval_public.simulators import city_traffic, sumo_follower

    street = Path(city_traffic.__file__).parent / "street"
    routes = (street / "street.rou.xml").read_text("utf-8")
    ours = [line for line in routes.splitlines() if "Coefficient" in line]
    assert len(ours) == 2
    theirs = tmp_path / "defaults.rou.xml"
    theirs.write_text("\n".join(it for it in routes.splitlines() if it not in ours), "utf-8")
    env = city_traffic.CityTraffic()
    env.reset()
    options = [str(theirs) if it.endswith(".rou.xml") else it for it in city_traffic._options()]
    env.sumo.load(options)
    for _ in range(2):
        env.sumo.simulationStep()

    def told(what: str) -> float:
        return float(env.sumo.vehicle.getParameter("car0", f"device.driverstate.{what}"))

    assert told("errorNoiseIntensity") == pytest.approx(sumo_follower.STD)
    assert told("errorTimeScale") == pytest.approx(sumo_follower.TIME_SCALE)
    assert told("errorState") != 0.0  # of its own; without its coefficients it is what we set
    env.reset()
    env.misjudge(np.full(4, 0.25))
    env.step(np.zeros(1))
    assert told("errorState") == pytest.approx(0.25)


def test_two_episodes_at_once_are_as_each_alone() -> None:
    """libsumo has one simulation per process: an episode that lost it is driven again."""
    needed("sumo-follower")
    from apeval_public.simulators.city_traffic import CityTraffic

    def drive(env: CityTraffic, error: float) -> Callable[[], Any]:
        env.reset()
        return lambda: env.step(np.array([env.misjudge(np.full(4, error)) or -0.2]))[0]

    one, other = CityTraffic(), CityTraffic()
    step = drive(one, 0.4)
    alone = [step() for _ in range(30)]
    first, second = drive(one, 0.4), drive(other, -0.4)
    together = [(first(), second()) for _ in range(30)]
    assert np.array_equal([it for it, _ in together], alone)
    assert not np.array_equal([it for _, it in together], alone)
