"""What a user meets first: imports that stay light, a README that runs, one version."""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import apeval
from apeval import environments, plugins
from apeval.cli import commands
from apeval.cli.output import say
from apeval.learn import method as learn
from apeval.learn.method import methods
from apeval.results.provenance import source_hash

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
INFLOW = [0.6, 0.25, 0.1, 0.05]  # of the README's tank
HEAVY = {
    "Box2D", "gymnasium", "highway_env", "jsbsim", "libsumo", "matplotlib", "minigrid", "numba",
    "pandas", "pygame", "ray", "scipy", "stable_baselines3", "torch",
}  # fmt: skip
_MODULES = "import sys; sys.stderr.write('\\n'.join(sys.modules))"
_HELP = """
import sys
sys.argv = ["apeval", *{arguments}]
from apeval.cli.main import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""


def loaded_by(code: str) -> set[str]:
    """The modules in a fresh interpreter after it ran the code."""
    done = subprocess.run(
        [sys.executable, "-c", code + "\n" + _MODULES], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


def test_the_probe_sees_a_heavy_module() -> None:
    assert HEAVY & loaded_by("import apeval; apeval.make('walk')") >= {"scipy"}


@pytest.mark.parametrize(
    "code",
    [
        "import apeval",
        "import apeval; dir(apeval)",
        _HELP.format(arguments=["--help"]),
        _HELP.format(arguments=["run", "--help"]),
        _HELP.format(arguments=["reproduce", "--help"]),
    ],
    ids=["import", "dir", "help", "run-help", "reproduce-help"],
)
def test_start_is_light(code: str) -> None:
    modules = loaded_by(code)
    assert "apeval" in modules
    assert HEAVY & modules == set()


def test_help_loads_no_other_package() -> None:
    modules = loaded_by(_HELP.format(arguments=["--help"]))
    assert not {"apeval_bench", "apeval_paper", "apeval_public", "importlib.metadata"} & modules


PACKAGES = ("intersection", "lunarlander", "minigrid", "pendulum")


@pytest.mark.parametrize(
    ("problem", "home"),
    [
        ("walk", "apeval.environments.walk"),
        ("int-v1", "apeval_paper.environments.intersection"),
        ("minigrid-s2@package", "apeval_paper.environments.minigrid"),
        ("pendulum", "apeval_paper.environments.pendulum"),
        ("cartpole", "apeval_public.policies.cartpole"),
    ],
)
def test_a_run_loads_the_environment_that_it_needs(problem: str, home: str) -> None:
    modules = loaded_by(f"import apeval; apeval.make({problem!r})")
    found = {f"apeval_paper.environments.{it}" for it in PACKAGES} | {
        "apeval.environments.walk",
        "apeval.environments.synthetic",
        "apeval_public.policies.cartpole",
    }
    assert found & modules == {home}


METHODS = {it.start.__module__ for it in methods().values()}
_RUN = "import apeval; apeval.evaluate(apeval.make('one-step'), {}, episodes=50)"


@pytest.mark.parametrize(
    ("method", "needs"),
    [
        ("mc", "apeval.learn.mc"),
        ("cem", "apeval.learn.cem"),
        ("cem-discrete", "apeval_paper.methods.cem_discrete"),
        ("ape", "apeval.learn.ape"),
    ],
)
def test_a_run_loads_the_method_that_it_needs(method: str, needs: str) -> None:
    modules = loaded_by(_RUN.format(repr(method)))
    assert METHODS & modules == {needs}


def test_a_report_loads_the_methods_that_it_shows(tmp_path: Path) -> None:
    code = (
        f"import apeval; from apeval.results.report import write_report; out = {str(tmp_path)!r}\n"
        "recorder = apeval.Recorder(out + '/run')\n"
        "apeval.evaluate(apeval.make('walk'), 'mc', episodes=50, recorder=recorder)\n"
        "write_report([out + '/run'], out + '/report.html')"
    )
    assert not {"apeval.learn.ape_tabular", "apeval.learn.cem", "numba"} & loaded_by(code)


def test_a_method_of_the_core_is_in_the_module_that_is_named_like_it() -> None:
    own = {name: it for name, it in methods().items() if name not in learn.ELSEWHERE}
    for name, it in own.items():
        assert it.start.__module__.startswith(f"apeval.learn.{name.replace('-', '_')}")


def test_the_core_knows_which_methods_other_packages_have() -> None:
    assert set(plugins.plugged(plugins.METHODS)) == set(learn.ELSEWHERE)
    for name, entry_point in plugins.plugged(plugins.METHODS).items():
        assert methods()[name].start.__module__ == entry_point.value


@pytest.mark.parametrize(
    ("method", "extra"), [("ape-discrete", "paper"), ("ape-scalable", "scalable")]
)
def test_a_method_of_a_missing_package_names_it(
    command: Callable[..., tuple[int, str, str]],
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    extra: str,
) -> None:
    monkeypatch.setattr(learn, "plugged", lambda group: {})
    monkeypatch.setattr(learn, "_METHODS", {})
    code, out, err = command("run", "walk", "--steps", "100", "--method", method)
    assert (code, out) == (2, "")
    assert err == (
        f"apeval: {method} is in a package that is not installed: pip install 'apeval[{extra}]'\n"
    )


_METHOD = """
from apeval.learn.mc import MonteCarlo, MonteCarloConfig
from apeval.learn.method import method


@method("of-mine", description="Monte Carlo once more", config=MonteCarloConfig)
class OfMine(MonteCarlo): ...
"""


@pytest.fixture
def method_of_mine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file of a method that an installed package adds."""
    file = tmp_path / "somebodys_method.py"
    file.write_text(_METHOD)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, file.stem, raising=False)
    entry = importlib.metadata.EntryPoint("of-mine", file.stem, plugins.METHODS)
    monkeypatch.setattr(learn, "plugged", lambda group: {"of-mine": entry})
    monkeypatch.setattr(learn, "_METHODS", dict(learn._METHODS))
    return file


@pytest.mark.usefixtures("method_of_mine")
def test_any_package_can_add_a_method(command: Callable[..., tuple[int, str, str]]) -> None:
    run = ("run", "walk", "--steps", "300", "--json", "--set", "problem.top=4")
    code, out, err = command(*run, "--method", "of-mine")
    assert code == 0, err
    assert json.loads(out)["estimate"] == json.loads(command(*run, "--method", "mc")[1])["estimate"]
    assert "of-mine" in command("list")[1]


def test_a_method_that_changed_is_other_code_for_resume(method_of_mine: Path) -> None:
    before = source_hash("walk", "of-mine")
    assert before == source_hash("walk", "of-mine") != source_hash("walk", "mc")
    method_of_mine.write_text(_METHOD + "# another line\n")
    assert source_hash("walk", "of-mine") != before


@pytest.mark.parametrize(("problem", "extra"), [("int-v1", "paper"), ("cartpole", "public")])
def test_a_problem_of_a_missing_package_names_it(
    command: Callable[..., tuple[int, str, str]],
    monkeypatch: pytest.MonkeyPatch,
    problem: str,
    extra: str,
) -> None:
    monkeypatch.setattr(environments, "plugged", lambda group: {})
    monkeypatch.setattr(environments, "ENTRIES", {})
    code, out, err = command("run", problem, "--steps", "100")
    assert (code, out) == (2, "")
    assert err == (
        f"apeval: {problem} is in a package that is not installed: pip install 'apeval[{extra}]'\n"
    )


@pytest.mark.parametrize("extra", environments.ELSEWHERE)
def test_the_core_knows_which_problems_a_package_has(extra: str) -> None:
    home = f"apeval_{extra}."
    plugged = plugins.plugged(plugins.PROBLEMS).items()
    named = {name for name, it in plugged if it.value.startswith(home)}
    assert named == set(environments.ELSEWHERE[extra])
    registered = {
        name.partition("@")[0]
        for name, it in environments.entries().items()
        if it.factory.__module__.startswith(home)
    }
    assert registered == set(environments.ELSEWHERE[extra])


@pytest.mark.parametrize("name", ["reproduce", "bench"])
def test_a_command_of_a_missing_package_names_it(
    command: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(commands, "plugged", lambda group: {})
    code, out, err = command(name, "speed", "--seeds", "1")
    assert (code, out) == (2, "")
    assert err == f"apeval: {name} is in another package, not installed: pip install apeval-bench\n"


def test_any_package_can_add_a_command(
    command: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = importlib.metadata.EntryPoint("tree", "pprint:pprint", plugins.COMMANDS)
    monkeypatch.setattr(plugins, "plugged", lambda group: {"tree": entry})
    monkeypatch.setattr(commands, "plugged", plugins.plugged)
    monkeypatch.setattr("pprint.pprint", _added)
    assert command("tree", "--height", "3") == (0, "3 m\n", "")
    assert command("tre", "--height", "3")[0] == 2


def _added(height: int = 1) -> None:
    """A command of somebody's package."""
    say(f"{height} m")


def test_every_public_name_exists() -> None:
    missing = []
    for name in apeval.__all__:
        try:
            getattr(apeval, name)
        except (AttributeError, ImportError):
            missing.append(name)
    assert missing == []


def test_readme_opens_with_the_two_commands() -> None:
    commands = re.findall(r"^    (\S+ \S+)", README, re.MULTILINE)
    assert commands[:2] == ["make demo", "make test"]


@cache
def printed_by(block: str) -> str:
    """What a code block of the README prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(block, "README.md", "exec"), {})
    return out.getvalue()


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_readme_code_runs(block: str) -> None:
    assert "failure probability" in printed_by(block)


def test_readme_tank_is_estimated_right() -> None:
    (block,) = [b for b in BLOCKS if "tank" in b]
    out = printed_by(block)
    lo, hi = re.search(r"95 % interval +(\S+) … ([^,\s]+)", out).groups()  # type: ignore[union-attr]
    assert float(lo) < _tank_truth() < float(hi)
    assert "warning" not in out


def _tank_truth() -> float:
    """The README's tank, solved by backward recursion over its 100 decisions."""
    v = dict.fromkeys(range(1, 10), 0.0)
    for _ in range(100):
        after = {level: v.get(level, float(level > 9)) for level in range(-1, 13)}
        v = {
            x: sum(p * after[x - 1 - (x > 7) + litres] for litres, p in enumerate(INFLOW))
            for x in v
        }
    return v[3]


def test_one_version() -> None:
    assert importlib.metadata.version("apeval") == apeval.__version__
    shown = subprocess.run(
        [sys.executable, "-c", _HELP.format(arguments=["--version"])],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert shown.stdout.strip() == apeval.__version__
