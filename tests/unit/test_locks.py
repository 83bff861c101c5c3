"""The locks of dependencies agree with what asks for them, and pin everything. `make lock` writes them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("emu", "test", "ryu", "ryu-build")
MEND = "run `make lock` and commit requirements/"
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})(?=\s|$)")

Pins = dict[str, list[tuple[Requirement, list[str]]]]
"""By canonical name: each pin (there are several where Pythons differ), and its files' SHA-256."""


def read(lock: str) -> Pins:
    """The pins of requirements/<lock>.lock."""
    text = (ROOT / "requirements" / f"{lock}.lock").read_text(encoding="utf-8")
    pins: Pins = {}
    for line in re.sub(r"\\\n", " ", text).splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            pin = Requirement(line.partition("--hash")[0])
            pins.setdefault(canonicalize_name(pin.name), []).append((pin, _HASH.findall(line)))
    return pins


def project() -> dict[str, list[str]]:
    """What pyproject.toml asks for: by what needs it."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {
        "build": settings["build-system"]["requires"],
        "emu": settings["project"]["dependencies"],
        "test": settings["project"]["optional-dependencies"]["test"],
    }


def made_from(variable: str) -> list[str]:
    """The requirements that a variable of the Makefile lists, each in quotes."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    found = re.search(rf"^{variable} := (.*)$", makefile, flags=re.MULTILINE)
    assert found, variable
    return re.findall(r"'([^']+)'", found[1])


def unmet(needs: Iterable[str], pins: Pins) -> list[str]:
    """Those of `needs` that no pin meets."""
    return [need for need in needs if not _met(Requirement(need), pins)]


def _met(need: Requirement, pins: Pins) -> bool:
    found = [str(spec.version) for pin, _ in pins.get(canonicalize_name(need.name), []) for spec in pin.specifier]
    return bool(found) and all(need.specifier.contains(version, prereleases=True) for version in found)


def test_what_emu_and_its_tests_need_is_locked() -> None:
    needs = project()
    assert unmet(needs["build"] + needs["emu"], read("emu")) == [], MEND
    assert unmet(needs["build"] + needs["emu"] + needs["test"], read("test")) == [], MEND


def test_what_ryu_needs_is_locked() -> None:
    built_with, packages = made_from("RYU_BUILT_WITH"), made_from("RYU_PACKAGES")
    assert len(built_with) == len(packages) == 3
    assert unmet(built_with, read("ryu-build")) == [], MEND
    assert unmet(built_with + packages, read("ryu")) == [], MEND


def files(lock: str) -> set[tuple[str, str, str]]:
    """Each file that may be installed: package, version, SHA-256. Which platforms need it may differ by lock."""
    return {
        (name, str(pin.specifier), file) for name, pins in read(lock).items() for pin, found in pins for file in found
    }


def test_tests_run_with_the_versions_that_users_get() -> None:
    assert files("emu") <= files("test"), MEND


@pytest.mark.parametrize("lock", LOCKS)
def test_everything_is_pinned_by_version_and_hash(lock: str) -> None:
    pins = read(lock)
    assert pins
    for name, entries in pins.items():
        for pin, hashes in entries:
            assert [spec.operator for spec in pin.specifier] == ["=="], name
            assert hashes, name
            assert len(set(hashes)) == len(hashes), name


@pytest.mark.parametrize("lock", LOCKS)
def test_no_lock_says_where_files_come_from(lock: str) -> None:
    text = (ROOT / "requirements" / f"{lock}.lock").read_text(encoding="utf-8")
    assert not re.search(r"://|--index|--extra-index|--find-links| @ ", text)


def test_a_requirement_outside_its_pin_is_found() -> None:
    pins = read("emu")
    assert unmet(["numpy>=1.26", "Ruamel_YAML>=0.18"], pins) == []
    assert unmet(["numpy>=999", "no-such-package"], pins) == ["numpy>=999", "no-such-package"]
