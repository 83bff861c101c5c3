"""The pages: their generated parts are the code's, their links lead somewhere, their command lines can be given."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from emu.cli.pages import out_of_date, write
from emu.cli.pages.commands import commands
from emu.cli.pages.keys import form, meaning, schema
from emu.cli.pages.named import fabrics
from tests.docs.reading import DOCS, PAGES, ROOT, command_lines, links

LINES = [(page, line) for page in PAGES for line in command_lines(page)]


def test_generated_parts_are_those_of_the_code() -> None:
    assert out_of_date(DOCS) == [], "run python -m emu.cli.pages docs"


def test_a_page_that_is_missing_stale_or_a_stray_is_named(tmp_path: Path) -> None:
    for page in DOCS.rglob("*"):
        if page.is_file():
            copy = tmp_path / page.relative_to(DOCS)
            copy.parent.mkdir(exist_ok=True)
            copy.write_bytes(page.read_bytes())
    write(tmp_path)
    (tmp_path / "commands" / "run.md").unlink()
    (tmp_path / "fabrics" / "torus.md").write_text("# torus\n\n<!-- generated: fabric torus -->\n<!-- end -->\n")
    changed = tmp_path / "fabrics" / "rail.md"
    changed.write_text(changed.read_text().replace("`nics`", "`nic`"))
    assert out_of_date(tmp_path) == ["commands/run.md", "fabrics/rail.md", "fabrics/torus.md"]


def test_every_key_of_a_scenario_has_a_meaning() -> None:
    own = [name for name in schema()["$defs"] if not name.startswith(("fabric-", "Own"))]  # not those of plug-ins
    forms = {name: form(name) for name in own + [f"fabric-{item.name}" for item in fabrics()]}
    silent = [
        f"{name}.{key}"
        for name, one in [("scenario", schema()), *forms.items()]
        for key, value in one.get("properties", {}).items()
        if not meaning(value)
    ]
    assert silent == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_that_there_are(page: Path) -> None:
    assert [link for link in links(page) if not (page.parent / link).exists()] == []


def test_every_page_is_linked_from_the_index() -> None:
    linked = {(DOCS / link).resolve() for link in links(DOCS / "README.md")}
    pages = {page for page in PAGES if page.is_relative_to(DOCS) and page.name != "README.md"}
    assert pages - linked == set()


def test_there_are_command_lines_of_every_command() -> None:
    assert {line.split()[0] for _, line in LINES} == set(commands())


@pytest.mark.parametrize("line", sorted({line for _, line in LINES}))
def test_command_lines_can_be_given(line: str) -> None:
    name, *arguments = shlex.split(line)
    commands()[name].make_context(name, arguments)  # raises for what it does not know


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_of_prose_are_not_too_long(page: Path) -> None:
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert [line for line in prose.splitlines() if len(line) > 130 and not line.startswith(("|", "![", "- ["))] == []


def test_every_scenario_begins_with_a_comment() -> None:
    scenarios = sorted((ROOT / "scenarios").glob("*.yaml"))
    assert len(scenarios) >= 5
    assert [file.name for file in scenarios if not file.read_text().startswith("# ")] == []
