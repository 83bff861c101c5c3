"""Imports go one way: emu uses controllers, which use workloads and topologies; those two use nothing of the rest."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("emu", "controllers", "workloads", "topologies")
MAY_USE = {
    "topologies": {"topologies"},
    "workloads": {"workloads"},
    "controllers": {"controllers", "workloads", "topologies"},
    "emu": set(PACKAGES),
}
TERMINAL = {"rich", "typer"}


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def imported(module: Path) -> Iterator[str]:
    """The full names that a module imports, also where it does so inside functions."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative imports hide which package is meant"
            yield node.module or ""


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_go_one_way(package: str) -> None:
    assert modules(package)
    used = {(str(module.relative_to(ROOT)), name) for module in modules(package) for name in imported(module)}
    wrong = [(module, name) for module, name in used if name.split(".")[0] in set(PACKAGES) - MAY_USE[package]]
    assert wrong == []


@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_uses_the_tests_or_the_benchmarks(package: str) -> None:
    used = {name.split(".")[0] for module in modules(package) for name in imported(module)}
    assert used.isdisjoint({"tests", "benchmarks"})


def test_only_the_command_line_talks_to_a_terminal() -> None:
    core = [module for package in PACKAGES for module in modules(package) if ROOT / "emu" / "cli" not in module.parents]
    wrong = [
        module for module in core if TERMINAL & {name.split(".")[0] for name in imported(module)} or _prints(module)
    ]
    assert wrong == []


def _prints(module: Path) -> bool:
    tree = ast.parse(module.read_text(encoding="utf-8"))
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(isinstance(call, ast.Name) and call.id == "print" for call in calls)


def test_the_model_and_the_plan_need_no_lab() -> None:
    for part in ("model", "plan", "scenario", "verdict", "results"):
        used = {name for module in modules(f"emu/{part}") for name in imported(module)}
        assert not any(name.startswith("emu.lab") for name in used), part
