"""Tables of a scenario's keys, from the schema that editors use."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter

from emu.cli.pages import markdown
from emu.scenario import fields
from emu.scenario.editor_schema import Schema, editor_schema
from emu.units import write_duration, write_rate, write_size

_HEAD: Final = ("key", "type", "unit", "default", "meaning")
_NO_LIMIT: Final = 1_000_000
"""What a builder's whole numbers are bounded by, whatever they count; no reader needs to know."""
_LINKED: Final[Mapping[str, str]] = {
    "schedule": "list of changes, or a rotation",
    "policy": "word or mapping",
    "fabrics": "list of mappings",
    "workload": "mapping",
}
"""Types of keys that have sections or pages of their own."""


@dataclass(frozen=True, slots=True)
class _Quantity:
    name: str
    unit: str
    write: Callable[[Any], str]


@functools.cache
def schema() -> Schema:
    """The schema of scenarios. Do not change it."""
    return editor_schema()


def form(name: str) -> Schema:
    """One definition of the schema."""
    found: Schema = schema()["$defs"][name]
    return found


def key_table(of: Mapping[str, Any], *, leave_out: Collection[str] = ()) -> str:
    """A line for each key of a mapping: its type, base unit, default and meaning."""
    needed = of.get("required", ())
    rows = [
        _row(name, value, needed=name in needed) for name, value in of["properties"].items() if name not in leave_out
    ]
    return markdown.table(_HEAD, rows)


def type_text(value: Mapping[str, Any]) -> str:
    """What may be written for a key, in words."""
    return " or ".join(dict.fromkeys(_one(option) for option in _options(value)))


def meaning(value: Mapping[str, Any]) -> str:
    """What a key is for: its own description, or the first line of the mapping's that it takes."""
    if "description" in value:
        return str(value["description"])
    for option in _options(value):
        if "$ref" in option:
            return str(form(option["$ref"].rpartition("/")[2]).get("description", "")).partition("\n")[0]
    return "which one it is" if "const" in value else ""


def _row(name: str, value: Mapping[str, Any], *, needed: bool) -> tuple[str, ...]:
    quantity = _quantity(value)
    unit = quantity.unit if quantity else ""
    default = "required" if needed else _default(value, quantity)
    return f"`{name}`", _LINKED.get(name) or type_text(value), unit, default, meaning(value)


def _options(value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The forms that a value may have; null, and the bare 0 of quantities, go without saying."""
    for option in value.get("anyOf", value.get("oneOf", [value])):
        if "anyOf" in option or "oneOf" in option:
            yield from _options(option)
        elif option.get("type") != "null" and option.get("const") not in (0, ""):
            yield option


def _one(value: Mapping[str, Any]) -> str:
    if quantity := _quantities().get(value.get("pattern", "")):
        return quantity.name
    if words := value.get("enum", [value["const"]] if "const" in value else []):
        return ", ".join(f"`{word}`" for word in words)
    if "$ref" in value:
        return "mapping"
    if value.get("type") == "array":
        return f"list of {_plural(type_text(value['items']))}" if value.get("items") else "list"
    names = {"object": "mapping", "boolean": "`true`, `false`", "string": "text", "number": "number"}
    kind = value.get("type")
    return names.get(str(kind), "whole number") + _range(value)


def _plural(text: str) -> str:
    plain = text.partition(",")[0]
    return f"{plain}s" if plain in ("size", "rate", "duration", "mapping", "whole number", "number") else text


def _range(value: Mapping[str, Any]) -> str:
    least, most = value.get("minimum"), value.get("maximum")
    if least is None or abs(least) >= _NO_LIMIT:
        return ""
    return f", from {least:g}" if most is None or most >= _NO_LIMIT else f", {least:g} to {most:g}"


def _quantity(value: Mapping[str, Any]) -> _Quantity | None:
    """The quantity that a value is, if it is one and nothing else."""
    found = [_quantities().get(option.get("pattern", "")) for option in _options(value)]
    return found[0] if len(found) == 1 else None


@functools.cache
def _quantities() -> Mapping[str, _Quantity]:
    """By the pattern of their texts."""
    known = (
        (fields.Rate, _Quantity("rate", "bit/s", write_rate)),
        (fields.Size, _Quantity("size", "B", write_size)),
        (fields.Duration, _Quantity("duration", "s", write_duration)),
    )
    return {TypeAdapter(kind).json_schema()["anyOf"][0]["pattern"]: quantity for kind, quantity in known}


def _default(value: Mapping[str, Any], quantity: _Quantity | None) -> str:
    default = value.get("default")
    if default in (None, "", [], ()):
        return ""
    if isinstance(default, dict):
        return "see its keys"
    if quantity:
        return f"`{quantity.write(default)}`"
    if isinstance(default, list) and default == list(range(default[0], default[-1] + 1)):
        return f"`{default[0]}-{default[-1]}`"
    return f"`{default if isinstance(default, str) else json.dumps(default)}`"
