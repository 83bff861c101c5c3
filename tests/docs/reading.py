"""What the pages hold that tests can try: named blocks, command lines, links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))

_BLOCK = re.compile(r"^```([a-z]+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^(?:sudo )?(?:env (?:\w+=\S+ )+)?emu (?=[a-z])")
_LINK = re.compile(r"\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block that names a file."""

    page: Path
    language: str
    name: str
    text: str


def blocks(language: str) -> list[Block]:
    """All of that language that name a file, page by page."""
    return [
        Block(page, language, name, text)
        for page in PAGES
        for found, name, text in _BLOCK.findall(page.read_text())
        if found == language and name
    ]


def block(name: str) -> Block:
    """The block that names this file."""
    (found,) = (one for language in ("yaml", "python") for one in blocks(language) if one.name == name)
    return found


def command_lines(page: Path) -> Iterator[str]:
    """What stands behind `emu` in the examples of a page; usage lines, which have placeholders, left out."""
    text = page.read_text()
    lines = [line for language, _, inner in _BLOCK.findall(text) if language == "sh" for line in inner.splitlines()]
    lines += [line.strip() for line in _BLOCK.sub("", text).splitlines() if line.startswith("    ")]
    for line in lines:
        if (match := _COMMAND.match(line)) and "[OPTIONS]" not in line:
            yield re.split(r"\s+[#>|]", line[match.end() :])[0].strip()


def links(page: Path) -> list[str]:
    """Where a page's links to files of the repository lead, anchors left out."""
    text = _BLOCK.sub("", page.read_text())
    found = [link.partition("#")[0] for link in _LINK.findall(text) if "://" not in link]
    return [link for link in found if link]
