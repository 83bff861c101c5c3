"""Which pages there must be, and their generated parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from emu.cli.pages import commands, named, results, scenario

_PART: Final = re.compile(r"(?<=<!-- generated: )([a-z]+)(?: ([a-z-]+))?( -->\n).*?(?=<!-- end -->)", re.DOTALL)
_WHOLE: Final[Mapping[str, Callable[[], str]]] = {
    "collectives": named.collectives,
    "columns": results.columns,
    "manifest": results.manifest,
    "models": named.models,
    "scenario": scenario.scenario,
    "statuses": results.statuses,
    "thresholds": results.thresholds,
}
_OF: Final[Mapping[str, Callable[[str], str]]] = {
    "command": commands.command,
    "fabric": named.fabric,
    "index": lambda folder: named.index(folder, f"{folder}/"),
    "list": named.index,
    "policy": named.policy,
    "workload": named.workload,
}
_PARTS_OF: Final = {"commands": "command", "fabrics": "fabric", "policies": "policy", "workloads": "workload"}


def regenerate(page: str) -> str:
    """A page with its generated parts made anew. Raises KeyError for a part that there is not."""
    return _PART.sub(_fresh, page)


def write(folder: Path) -> None:
    """Begin pages that are missing, and make all generated parts of a folder of documentation anew."""
    for page, text in _skeletons(folder):
        page.parent.mkdir(exist_ok=True)
        if not page.exists():
            page.write_text(text)
    for page in sorted(folder.rglob("*.md")):
        text = page.read_text()
        fresh = regenerate(text)
        if fresh != text:
            page.write_text(fresh)
    (folder / results.SCHEMA_FILE).write_text(results.schema_text())


def out_of_date(folder: Path) -> list[str]:
    """What `write` would change, and pages on what there is no longer; relative to the folder."""
    needed = {page for page, _ in _skeletons(folder)}
    there = set(folder.rglob("*.md"))
    strays = {page for page in there - needed if page.parent.name in _PARTS_OF and page.name != "README.md"}
    stale = {page for page in there - strays if regenerate(page.read_text()) != page.read_text()}
    schema = folder / results.SCHEMA_FILE
    stale |= {schema} if schema.read_text() != results.schema_text() else set()
    return sorted(str(page.relative_to(folder)) for page in (needed - there) | strays | stale)


def _skeletons(folder: Path) -> Iterator[tuple[Path, str]]:
    """Each page that must be there, and how it begins."""
    for name, entries in named.folders().items():
        for entry, _ in entries:
            title = f"emu {entry}" if name == "commands" else entry
            yield folder / name / f"{entry}.md", _page(title, f"{_PARTS_OF[name]} {entry}")
        yield folder / name / "README.md", _page(name.capitalize(), f"list {name}")


def _page(title: str, part: str) -> str:
    return f"# {title}\n\n<!-- generated: {part} -->\n<!-- end -->\n"


def _fresh(match: re.Match[str]) -> str:
    word, name, end = match.groups()
    if name is None:
        return f"{word}{end}{_WHOLE[word]()}\n"
    return f"{word} {name}{end}{_OF[word](name)}\n"
