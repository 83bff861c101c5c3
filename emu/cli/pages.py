"""Writes the generated parts of the documentation: `python -m emu.cli.pages docs`.

A page keeps its prose; what stands between `<!-- generated: name -->` and `<!-- end -->` comes from the code.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from emu.cli.exits import MEANINGS
from emu.results.columns import TABLES, Table
from emu.results.manifest import manifest_schema
from emu.verdict.thresholds import table as thresholds

SCHEMA_FILE = "manifest.schema.json"
_PART = re.compile(r"(?<=<!-- generated: )([a-z]+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)


def regenerate(page: str) -> str:
    """A page with its generated parts made anew. Raises KeyError for a part that there is not."""
    return _PART.sub(lambda match: match[1] + match[2] + _PARTS[match[1]]() + "\n", page)


def schema_text() -> str:
    """The manifest's JSON Schema as a file."""
    return json.dumps(manifest_schema(), indent=2) + "\n"


def _columns() -> str:
    return "\n".join(_one_table(table) for table in TABLES)


def _one_table(table: Table) -> str:
    rows = [(f"`{column.name}`", column.type, column.unit, column.meaning) for column in table.columns]
    head = f"### {table.file}\n\nOne line for each {table.meaning}.\n\n"
    return head + _markdown(("column", "type", "unit", "meaning"), rows)


def _thresholds() -> str:
    rows = [(f"`{name}`", good, bad, meaning) for name, good, bad, meaning in thresholds()]
    return _markdown(("name", "VALID if", "INVALID if", "what it is"), rows)


def _statuses() -> str:
    rows = [(str(status.value), meaning) for status, meaning in MEANINGS.items()]
    return _markdown(("status", "meaning"), rows)


def _manifest() -> str:
    schema = manifest_schema()
    parts = [("manifest.json", schema), *((name, schema["$defs"][name]) for name in _ENTRIES)]
    return "\n".join(f"### {title}\n\n{_keys(part)}" for title, part in parts)


def _keys(schema: Mapping[str, Any]) -> str:
    rows = [(f"`{name}`", _type(value), value.get("description", "")) for name, value in schema["properties"].items()]
    return _markdown(("key", "type", "meaning"), rows)


def _type(value: Mapping[str, Any]) -> str:
    if "$ref" in value:
        return str(value["$ref"]).rpartition("/")[2]
    if "anyOf" in value:
        return " or ".join(_type(part) for part in value["anyOf"])
    if value.get("type") == "array":
        return f"list of {_type(value['items'])}"
    return str(value.get("format") or value.get("type") or value.get("const"))


def _markdown(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(head)
    lines = [names, ["---"] * len(names), *rows]
    return "".join("| " + " | ".join(" ".join(cell.split()) for cell in line) + " |\n" for line in lines)


_ENTRIES: Final = ("ScaleEntry", "FabricEntry", "RepeatEntry", "ChangeEntry", "CounterfactualEntry")
_PARTS: Final[Mapping[str, Callable[[], str]]] = {
    "columns": _columns,
    "manifest": _manifest,
    "statuses": _statuses,
    "thresholds": _thresholds,
}


def main(folder: Path) -> None:
    """Make all generated parts of a folder of documentation anew."""
    for page in sorted(folder.glob("*.md")):
        text = page.read_text()
        fresh = regenerate(text)
        if fresh != text:
            page.write_text(fresh)
    (folder / SCHEMA_FILE).write_text(schema_text())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
