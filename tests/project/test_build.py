"""What `python -m build` makes: a wheel with the package and nothing else, and a source archive."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import Distribution
from pathlib import Path

import pytest
import yaml

import apeval

ROOT = Path(__file__).parents[2]
TOP = {
    "CHANGELOG.md", "CITATION.cff", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "LICENSE", "Makefile",
    "PKG-INFO", "README.md", "SECURITY.md", "constraints.txt", "mkdocs.yml", "pyproject.toml",
    ".ci", ".github", ".gitignore", ".pre-commit-config.yaml",
    "docs", "examples", "packages", "src", "tests", "tools",
}  # fmt: skip
"""All that the source archive holds, by its first part."""
USE = """
import sys
from pathlib import Path

import apeval
from apeval.cli.main import main
from apeval.results.report import write_report

assert Path(apeval.__file__).is_relative_to(sys.argv[1]), apeval.__file__
apeval.evaluate(apeval.make("walk"), "mc", episodes=20, seed=1, recorder=apeval.Recorder("run"))
write_report(["run"], "report.html")  # reads the page, its style and its scripts
sys.argv[1:] = ["new", "own.py"]  # reads the template of a problem
main()
"""
"""One use of every kind of file that is not code."""


def files(folder: Path) -> set[str]:
    """Files below a folder, but for what Python compiles there."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {p.relative_to(folder).as_posix() for p in found if "__pycache__" not in p.parts}


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    """The unpacked wheel."""
    (file,) = built.glob("*.whl")
    with zipfile.ZipFile(file) as archive:
        archive.extractall(built / "wheel")
    return built / "wheel"


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Distribution:
    return Distribution.at(wheel / f"apeval-{apeval.__version__}.dist-info")


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    assert {path.name for path in wheel.iterdir()} == {
        "apeval",
        f"apeval-{apeval.__version__}.dist-info",
    }
    assert files(wheel / "apeval") == files(ROOT / "src" / "apeval")
    assert "py.typed" in files(wheel / "apeval")


def test_the_wheel_says_what_it_is(installed: Distribution) -> None:
    assert installed.version == apeval.__version__
    assert [(it.group, it.name, it.value) for it in installed.entry_points] == [
        ("console_scripts", "apeval", "apeval.__main__:main"),
        ("pytest11", "apeval", "apeval.gate.plugin"),
    ]
    assert installed.metadata["License-Expression"] == "MIT"
    assert installed.read_text("licenses/LICENSE") == (ROOT / "LICENSE").read_text("utf-8")


def test_every_python_that_the_wheel_names_is_tested(installed: Distribution) -> None:
    classifiers = "\n".join(installed.metadata.get_all("Classifier") or [])
    named = re.findall(r"Python :: (3\.\d+)$", classifiers, re.MULTILINE)
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text("utf-8"))
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == named
    assert installed.metadata["Requires-Python"] == f">={named[0]}"


def test_the_wheel_has_the_files_that_the_code_reads(wheel: Path, tmp_path: Path) -> None:
    code = f"import sys; sys.path.insert(0, {str(wheel)!r})\n" + USE
    done = subprocess.run(
        [sys.executable, "-c", code, wheel],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert {"run", "report.html", "own.py"} <= {path.name for path in tmp_path.iterdir()}


PAPER = """
import sys
from pathlib import Path

import apeval
import apeval_paper

assert Path(apeval_paper.__file__).is_relative_to(sys.argv[1]), apeval_paper.__file__
apeval.make("minigrid-s1")  # reads the weights of its policy
for name in ("int-multi", "int-v0", "int-v1", "lunarlander", "pendulum", "pendulum-discrete"):
    apeval.make(name).truth()  # reads its file
"""


PUBLIC = """
import sys
from pathlib import Path

import apeval
import apeval_public

assert Path(apeval_public.__file__).is_relative_to(sys.argv[1]), apeval_public.__file__
apeval.evaluate(apeval.make("cartpole"), "mc", episodes=2)  # reads the weights of its policy
"""


@pytest.mark.parametrize(
    ("package", "use"), [("paper", PAPER), ("public", PUBLIC), ("bench", "import apeval_bench")]
)
def test_every_package_builds_and_has_its_files(package: str, use: str, tmp_path: Path) -> None:
    source = ROOT / "packages" / package
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, source],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(file) as archive:
        archive.extractall(tmp_path / "wheel")
    name = f"apeval_{package}"
    assert files(tmp_path / "wheel" / name) == files(source / "src" / name)
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'wheel')!r})\n" + use
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "wheel"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_source_archive_holds_what_the_checks_need(built: Path) -> None:
    (file,) = built.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        names = [Path(name).parts for name in archive.getnames()]
    assert {name[0] for name in names} == {f"apeval-{apeval.__version__}"}
    held = {Path(*name[1:]).as_posix() for name in names}
    assert {name.split("/")[0] for name in held} == TOP
    for folder in ("src/apeval", "packages", "tests"):
        assert {f"{folder}/{name}" for name in files(ROOT / folder)} <= held
    assert not [name for name in held if "__pycache__" in name]
