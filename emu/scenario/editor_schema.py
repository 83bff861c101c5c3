"""The JSON Schema of a scenario for editors: what the loader accepts, with a description at every key.

Pydantic's schema of the models is the base (`emu.scenario.schema.json_schema`). Added here is what their validators
accept or refuse beyond the types, and the line that a model's docstring has on each key.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from controllers.policies import BUILT_IN
from emu import plugins
from emu.scenario.fabric_spec import FabricSpec
from emu.scenario.schema import json_schema
from emu.scenario.workload_spec import CollectiveStep, ComputeStep
from topologies import registry
from topologies.fabric import FabricError

_KEY: Final = re.compile(r"(?:^\s*|(?<=\. ))(\w+(?:, \w+)*): ", re.MULTILINE)

Schema = dict[str, Any]


def editor_schema() -> Schema:
    """The schema, with one form for each fabric that can be built now (plug-ins that were loaded included)."""
    schema = json_schema()
    definitions: dict[str, Schema] = schema["$defs"]
    for part in [schema, *definitions.values()]:
        _describe(part, part.get("description", ""))
    schema["title"] = "emu scenario"
    for step in (ComputeStep, CollectiveStep):
        _describe(definitions[step.__name__], inspect.getdoc(step.__base__) or "")
    for kind in registry.names():
        if form := definitions.get(f"fabric {kind}"):
            _describe(form, inspect.getdoc(FabricSpec) or "")
            _describe_builder(kind, form)
            _allow_policies(form)
    _require_alternatives(definitions)
    return _renamed(schema)


def _describe(schema: Schema, docstring: str) -> None:
    """Give the properties of an object the descriptions that its docstring has for them, and drop made-up titles."""
    properties: dict[str, Schema] = schema.get("properties", {})
    texts = dict(_keys(inspect.cleandoc(docstring), properties))
    for name, value in properties.items():
        value.pop("title", None)
        if name in texts:
            value["description"] = texts[name]


def _keys(docstring: str, known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Each of the known keys that a docstring explains: `key: what it is`, up to the next key or an empty line."""
    for paragraph in docstring.split("\n\n"):
        found = [match for match in _KEY.finditer(paragraph) if set(match[1].split(", ")) <= set(known)]
        ends = [*(match.start() for match in found[1:]), len(paragraph)][: len(found)]
        for match, end in zip(found, ends, strict=True):
            text = " ".join(paragraph[match.end() : end].split())
            yield from ((name, text) for name in match[1].split(", "))


def _describe_builder(kind: str, form: Schema) -> None:
    try:
        text = inspect.getdoc(registry.find(kind)) or ""
    except FabricError:
        return
    form["description"] = text.partition("\n")[0]
    _describe(form, text)


def _allow_policies(form: Schema) -> None:
    """A policy that needs nothing more may be a word, or a mapping with its kind alone."""
    words = {"enum": [kind for kind in BUILT_IN if kind != "templates"] + [*plugins.names("policy")]}
    mapping = {"type": "object", "properties": {"kind": words}, "required": ["kind"], "additionalProperties": False}
    form["properties"]["policy"].setdefault("anyOf", []).extend([words, mapping])


def _require_alternatives(definitions: Mapping[str, Schema]) -> None:
    """What must stand there in one of two forms; the models' validators ask for it."""
    for name, one, other in (("CollectiveStep", "size", "sweep"), ("FlowList", "file", "flows")):
        if name in definitions:
            definitions[name]["oneOf"] = [{"required": [one]}, {"required": [other]}]


def _renamed(schema: Schema) -> Schema:
    """The same with definitions whose names need no quoting in a reference."""
    names = {name: re.sub(r"[^A-Za-z0-9_.-]+", "-", name) for name in schema["$defs"]}
    schema["$defs"] = {names[name]: value for name, value in schema["$defs"].items()}
    references = {f"#/$defs/{name}": f"#/$defs/{fresh}" for name, fresh in names.items()}
    return _with_references(schema, references)  # type: ignore[no-any-return]


def _with_references(value: Any, references: Mapping[str, str]) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return {
            key: references.get(inner, inner) if key == "$ref" else _with_references(inner, references)
            for key, inner in value.items()
        }
    return [_with_references(inner, references) for inner in value] if isinstance(value, list) else value
