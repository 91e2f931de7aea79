"""The command line's contract."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from apeval_bench.running import Lines

KEYS = {
    "schema_version", "problem", "method", "seed", "settings", "estimate", "value",
    "standard_error", "interval", "confidence", "steps", "episodes", "failures", "failure_rate",
    "final", "warnings", "seconds", "truth",
}  # fmt: skip


Outcome = tuple[int, str, str]


def test_run_prints_one_json_object_and_stores_the_same(
    command: Callable[..., Outcome], tmp_path: Path
) -> None:
    code, out, err = command(
        "run", "walk", "--steps", "2000", "--seed", "1", "--json", "--out", str(tmp_path / "r"),
        "--set", "problem.top=5", "--set", "learn_share=0.4",
    )  # fmt: skip
    assert code == 0, err
    data = json.loads(out)
    assert data.keys() >= KEYS
    assert data["final"].keys() == {
        "steps", "episodes", "failures", "failure_rate", "ess", "ended_by_roulette",
    }  # fmt: skip
    assert data["steps"] <= 2000
    assert data["settings"]["learn_share"] == 0.4
    assert data["interval"][0] <= data["estimate"] <= data["interval"][1]
    assert json.loads((tmp_path / "r" / "result.json").read_text()) == data
    assert (tmp_path / "r" / "failures.json").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("run", "wlak"), "Did you mean 'walk'?"),
        (("run", "walk", "--method", "ape-tabluar"), "Did you mean 'ape-tabular'?"),
        (("run", "walk", "--steps", "-3"), "from 1 to"),
        (("run", "walk", "--episodes", "0"), "from 1 to"),
        (("run", "walk", "--steps", "9", "--episodes", "9"), "not both"),
        (("run", "walk", "--seed", "-1"), "seed"),
        (("run", "walk", "--confidence", "1.5"), "confidence"),
        (("run", "walk", "--target-error", "2"), "target_error"),
        (("run", "walk", "--below", "0"), "below must"),
        (("run", "walk", "--set", "delta"), "name=value"),
        (("run", "walk", "--method", "ape-tabular", "--set", "delta=many"), "a number"),
        (("run", "walk", "--method", "ape-tabular", "--set", "delta=7"), "must lie in"),
        (
            ("run", "walk", "--method", "ape-tabular", "--set", "policy_update=rows"),
            "Did you mean 'row'?",
        ),
        (("run", "walk", "--set", "problem.p_up=2"), "between 0 and 1"),
        (("run", "walk", "--out", "/proc/nowhere/x"), "cannot write"),
        (("truth", "wal"), "Did you mean 'walk'?"),
        (("reproduce", "tabel1"), "Did you mean 'table1'?"),
        (("bench", "sped"), "Did you mean 'speed'?"),
        (("bench", "speed", "--seeds", "2000", "--tuning"), "for tuning"),
        (("bench", "speed", "--first-seed", "500"), "10,000 or more"),
        (("bench", "speed", "--first-seed", "10400", "--tuning"), "from 0 on"),
        (("list", "wakl"), "Did you mean 'walk'?"),
        (("run", "int-v1", "--view", "papre"), "Did you mean 'paper'?"),
        (("rnu", "walk"), "Did you mean 'run'?"),
        (("run",), "Missing argument"),
        (("run", "walk", "--steps", "many"), "--steps"),
        (("run", "walk", "--steps", "9" * 20), "from 1 to"),
        (
            ("run", "walk", "--method", "ape-tabular", "--set", "time_in_state=yes"),
            "horizon",
        ),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(
    command: Callable[..., Outcome], arguments: tuple[str, ...], says: str
) -> None:
    code, out, err = command(*arguments)
    assert code == 2
    assert out == ""
    assert says in err
    assert len(err.strip().splitlines()) == 1


def test_truth_and_list(command: Callable[..., Outcome]) -> None:
    known = json.loads(command("truth", "walk", "--json")[1])
    assert known["value"] == pytest.approx(9.53675e-7, rel=1e-5)
    assert known["standard_error"] == 0.0
    assert "gambler" in known["method"]
    listed = command("list")[1]
    assert "minigrid-s1" in listed
    assert "ape-tabular" in listed
    assert "δ" in command("list", "ape-tabular")[1]
    assert "problem.p_up" in command("list", "walk")[1]
    for name in ("int-v1", "ape-scalable", "cem-discrete"):  # what a default of None stands for
        rows = command("list", name)[1].splitlines()
        assert not [line for line in rows if line.split()[1:2] == ["None"]], name


def test_a_truth_is_verified_with_fresh_seeds_only(command: Callable[..., Outcome]) -> None:
    code, out, _ = command("truth", "walk", "--verify", "--json", "--set", "problem.top=6")
    assert code == 0
    assert json.loads(out)["agrees"] is True
    code, _, err = command("truth", "walk", "--verify", "--seed", "5")
    assert code == 2
    assert "10,000" in err


def test_table1_in_small(command: Callable[..., Outcome], tmp_path: Path) -> None:
    code, out, err = command(
        "reproduce", "table1", "--seeds", "1", "--tuning", "--out", str(tmp_path), "--json"
    )
    assert code == 0, err
    data = json.loads(out)
    assert set(data["starts"]) == {"minigrid-s1", "minigrid-s2", "minigrid-s3"}
    for start in data["starts"].values():
        assert start["ape"]["value_mean"] == pytest.approx(start["exact"], rel=0.15)
        assert start["ape"]["steps_mean"] < start["mc"]["steps_mean"]
    assert (tmp_path / "minigrid.png").stat().st_size > 1_000
    assert "APE published" in (tmp_path / "table1.md").read_text()


def test_a_table_of_other_seeds_says_how_it_was_made(
    command: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where outcomes are kept
    code, _, err = command(
        "bench", "accuracy", "--rows", "always-2000", "--methods", "mc", "--seeds", "2",
        "--first-seed", "10400", "--out", "table",
    )  # fmt: skip
    assert code == 0, err
    made = (tmp_path / "table" / "accuracy.md").read_text()
    assert "Seeds from 10400, at most to 10401" in made
    assert "`apeval bench accuracy --seeds 2 --first-seed 10400 --rows always-2000" in made


def test_a_log_hears_of_long_experiments_once_a_minute() -> None:
    heard: list[str] = []
    now = [0.0]
    lines = Lines(heard.append, lambda: now[0])
    for done in range(0, 101, 10):  # ten cells in half a minute
        lines(f"accuracy-ours: walk ape {done}", done, 100)
        now[0] += 30.0
    assert heard[0] == "accuracy-ours: walk ape 20: 20 of 100, about 4 min left"
    assert len(heard) == 5
    lines("accuracy-peers", 0, 7)  # another task begins with a clock of its own
    assert len(heard) == 5
