"""Parts about run directories: tables, manifest, thresholds, exit statuses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from emu.cli.exits import MEANINGS
from emu.cli.pages import markdown
from emu.results.columns import TABLES, Table
from emu.results.manifest import manifest_schema
from emu.verdict.thresholds import table

SCHEMA_FILE: Final = "manifest.schema.json"
_ENTRIES: Final = ("ScaleEntry", "FabricEntry", "RepeatEntry", "ChangeEntry", "CounterfactualEntry")


def schema_text() -> str:
    """The manifest's JSON Schema as a file."""
    return json.dumps(manifest_schema(), indent=2) + "\n"


def columns() -> str:
    """Every table of a run directory."""
    return "\n".join(_one_table(table) for table in TABLES)


def thresholds() -> str:
    """What a verdict is made of."""
    rows = [(f"`{name}`", good, bad, meaning) for name, good, bad, meaning in table()]
    return markdown.table(("name", "VALID if", "INVALID if", "what it is"), rows)


def statuses() -> str:
    """What an exit status means."""
    return markdown.table(("status", "meaning"), [(str(status.value), text) for status, text in MEANINGS.items()])


def manifest() -> str:
    """The manifest's keys, and those of its entries."""
    schema = manifest_schema()
    parts = [("manifest.json", schema), *((name, schema["$defs"][name]) for name in _ENTRIES)]
    return "\n".join(f"### {title}\n\n{_keys(part)}" for title, part in parts)


def _one_table(one: Table) -> str:
    rows = [(f"`{column.name}`", column.type, column.unit, column.meaning) for column in one.columns]
    head = f"### {one.file}\n\nOne line for each {one.meaning}.\n\n"
    return head + markdown.table(("column", "type", "unit", "meaning"), rows)


def _keys(schema: Mapping[str, Any]) -> str:
    rows = [(f"`{name}`", _type(value), value.get("description", "")) for name, value in schema["properties"].items()]
    return markdown.table(("key", "type", "meaning"), rows)


def _type(value: Mapping[str, Any]) -> str:
    if "$ref" in value:
        return str(value["$ref"]).rpartition("/")[2]
    if "anyOf" in value:
        return " or ".join(_type(part) for part in value["anyOf"])
    if value.get("type") == "array":
        return f"list of {_type(value['items'])}"
    return str(value.get("format") or value.get("type") or value.get("const"))
