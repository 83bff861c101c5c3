"""The project's own rules: skips that fail, modules that are installed, commands that exist."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.libraries import RYU_PYTHON
from tests.skips import allowed_skips

ROOT = Path(__file__).resolve().parents[2]
DATA = (".toml", ".json", ".yaml", ".html", ".css", ".js")
README = """\
# A project

## Tests that may be skipped

| test | when |
|---|---|
| `tests/*::test_allowed*` | always |

## After

| `tests/*` | not in the table |
"""
TESTS = """\
import pytest

def test_passes(): pass

@pytest.mark.skip(reason="no reason")
def test_allowed_once(): pass

@pytest.mark.xfail
def test_expected(): assert False
"""
SILENT = """
def test_silent(): pytest.skip("no such thing here")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project with this one's rule."""
    (tmp_path / "tests").mkdir()
    for name in ("conftest.py", "skips.py"):
        shutil.copy(ROOT / "tests" / name, tmp_path / "tests" / name)
    (tmp_path / "README.md").write_text(README)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    return tmp_path


def run_tests(project: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "tests"]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False, timeout=60)


def test_allowed_skips_and_expected_failures_pass(project: Path) -> None:
    (project / "tests" / "test_it.py").write_text(TESTS)
    done = run_tests(project)
    assert done.returncode == 0, done.stdout
    assert "1 passed, 1 skipped, 1 xfailed" in done.stdout


def test_any_other_skip_fails_and_is_named(project: Path) -> None:
    (project / "tests" / "test_it.py").write_text(TESTS + SILENT)
    done = run_tests(project)
    assert done.returncode == 1
    assert "tests/test_it.py::test_silent: no such thing here" in done.stdout
    assert "test_allowed_once" not in done.stdout


def test_a_skipped_module_fails_too(project: Path) -> None:
    (project / "tests" / "test_it.py").write_text(TESTS)
    (project / "tests" / "test_gone.py").write_text("import pytest\npytest.importorskip('no_such_module')\n")
    done = run_tests(project)
    assert done.returncode == 1
    assert "tests/test_gone.py: could not import 'no_such_module'" in done.stdout


def test_the_readme_has_the_table() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "## Tests that may be skipped" in readme
    for pattern in allowed_skips(ROOT / "README.md"):
        assert (ROOT / pattern.partition("::")[0]).exists(), pattern


def test_every_package_and_data_file_is_installed() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    tops = {pattern.rstrip("*") for pattern in settings["packages"]["find"]["include"]}
    assert tops == {"emu", "topologies", "controllers", "workloads"}
    for top in tops:
        holding = {file.parent for file in (ROOT / top).rglob("*.py")}
        assert [folder for folder in holding if not (folder / "__init__.py").exists()] == []
        data = [file for file in (ROOT / top).rglob("*") if file.suffix in DATA]
        listed = {path for pattern in settings["package-data"].get(top, []) for path in (ROOT / top).glob(pattern)}
        assert set(data) == listed


def test_the_makefile_calls_what_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert (ROOT / "scenarios/quickstart.yaml").exists()
    for target in ("run", "install", "test", "ryu", "lint", "bench", "clean"):
        assert f"\n{target}:" in makefile
    assert f"\nRYU_VENV := {RYU_PYTHON.relative_to(ROOT).parts[0]}\n" in makefile  # where the tests look for it
    assert (ROOT / ".ci/run").stat().st_mode & 0o111


def test_both_libraries_need_the_same_pydantic() -> None:
    """The Makefile repeats what pyproject.toml says, since Ryu's environment is not made from that."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (pydantic,) = (need for need in settings["project"]["dependencies"] if need.startswith("pydantic"))
    assert f"'{pydantic}'" in (ROOT / "Makefile").read_text(encoding="utf-8")
