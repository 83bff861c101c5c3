"""From what the validation found to the one message that the user reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from emu.errors import InputError, KeyPath
from emu.scenario.fields import Refusal, nearest
from emu.scenario.source import Source
from emu.scenario.workload_spec import workload_kinds
from emu.units import UnitError

_ALTERNATIVE = re.compile(r"[<>()\[\]]|^constrained-str$")
_Explanation = tuple[str, str]
"""Problem and hint."""


def explain(error: ValidationError, source: Source) -> InputError:
    """The first of the errors, with its place and the number of the others.

    Unknown keys come first (a misspelt key is often why another is missing), then the order of the file.
    """
    found = _without_artefacts(error.errors(include_url=False))
    first = min(found, key=lambda details: (_rank(details), _line(details, source)))
    problem, hint = _explanation(first)
    return source.error(_key(first), problem, hint=hint, more=len(found) - 1)


def _without_artefacts(found: list[ErrorDetails]) -> list[ErrorDetails]:
    """A list is also reported as too short when its entries are wrong; then only the entries are."""
    places = [details["loc"] for details in found]
    return [
        details
        for details in found
        if details["type"] != "too_short"
        or not any(
            len(place) > len(details["loc"]) and place[: len(details["loc"])] == details["loc"] for place in places
        )
    ]


def _rank(details: ErrorDetails) -> int:
    return {"missing": 2}.get(details["type"], 0 if "no such key" in details["msg"] else 1)


def _line(details: ErrorDetails, source: Source) -> int:
    return source.error(_key(details), "").line or 0


def _key(details: ErrorDetails) -> KeyPath:
    """The place as the user wrote it: without the names of the alternatives that a union tried."""
    key = tuple(part for part in details["loc"] if isinstance(part, int) or not _ALTERNATIVE.search(part))
    misnamed = details["type"].startswith("union_tag") and isinstance(details["input"], dict)
    return (*key, "kind") if misnamed else key


def _explanation(details: ErrorDetails) -> _Explanation:
    context: Mapping[str, Any] = details.get("ctx", {})
    if details["type"] == "refused":
        return context["problem"], context["hint"]
    if details["type"] == "value_error":
        return _from_exception(context["error"])
    explain = _BY_TYPE.get(details["type"])
    return explain(details["input"], context) if explain else (details["msg"], "")


def _from_exception(error: Exception) -> _Explanation:
    if isinstance(error, Refusal):
        return error.problem, error.hint
    if isinstance(error, UnitError):
        problem, _, hint = str(error).partition("; ")
        return problem, hint
    return str(error), ""


# -- one phrase for each type of error --------------------------------------------------------------------------------


def shown(value: object) -> str:
    """A value as a message echoes it, in the words of YAML."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, int) and abs(value) >= 10**30:
        return "a number of over 30 digits"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _must(what: str, hint: str = "") -> Callable[[Any, Mapping[str, Any]], _Explanation]:
    return lambda value, _: (f"must be {what}, not {shown(value)}", hint)


def _bound(words: str, limit: str) -> Callable[[Any, Mapping[str, Any]], _Explanation]:
    return lambda value, context: (f"must be {words} {_number(context[limit])}, not {shown(value)}", "")


def _number(value: float) -> str:
    """A limit without the `.0` that the schema may give it."""
    return str(int(value)) if value == int(value) else str(value)


def _count(words: str, limit: str) -> Callable[[Any, Mapping[str, Any]], _Explanation]:
    def phrase(_: object, context: Mapping[str, Any]) -> _Explanation:
        count = context[limit]
        return f"must have {words} {count} {'entry' if count == 1 else 'entries'}", ""

    return phrase


def _literal(value: object, context: Mapping[str, Any]) -> _Explanation:
    valid = re.findall(r"'([^']*)'", str(context["expected"]))
    return f"{shown(value)} is not one of {', '.join(valid)}", _near(value, valid)


def _near(value: object, valid: list[str]) -> str:
    """A suggestion only: the valid words are in the message already."""
    hint = nearest(value, valid) if isinstance(value, str) else ""
    return hint if hint.startswith("did you mean") else ""


def _pattern(value: object, context: Mapping[str, Any]) -> _Explanation:
    capitals = "A-Z" in str(context["pattern"])
    allowed = "letters, digits, dots, dashes and underscores" if capitals else "lower-case letters, digits and dashes"
    return f"{shown(value)} is not a name; names are {allowed} and start with a letter or digit", ""


def _workload(value: object, _: Mapping[str, Any]) -> _Explanation:
    if not isinstance(value, dict):
        return f"must be a mapping, not {shown(value)}", "it starts with e.g. kind: collectives"
    if "kind" not in value:
        return "is required", f"write {' or '.join(workload_kinds())}"
    kind = value["kind"]
    return f"{shown(kind)} is not one of {', '.join(workload_kinds())}", _near(kind, list(workload_kinds()))


_BY_TYPE: Mapping[str, Callable[[Any, Mapping[str, Any]], _Explanation]] = {
    "missing": lambda _value, _context: ("is required", ""),
    "literal_error": _literal,
    "int_type": _must("a whole number"),
    "int_from_float": _must("a whole number"),
    "int_parsing": _must("a whole number"),
    "int_parsing_size": _must("a whole number of fewer digits"),
    "float_type": _must("a number"),
    "finite_number": _must("a finite number"),
    "bool_type": _must("true or false"),
    "string_type": _must("text"),
    "string_too_short": _must("longer"),
    "string_too_long": lambda _value, context: (f"must be at most {context['max_length']} characters", ""),
    "string_pattern_mismatch": _pattern,
    "greater_than": _bound("greater than", "gt"),
    "greater_than_equal": _bound("at least", "ge"),
    "less_than": _bound("below", "lt"),
    "less_than_equal": _bound("at most", "le"),
    "too_short": _count("at least", "min_length"),
    "too_long": _count("at most", "max_length"),
    "tuple_type": _must("a list", "write [a, b] or one - item per line"),
    "list_type": _must("a list", "write [a, b] or one - item per line"),
    "dict_type": _must("a mapping", "write key: value lines"),
    "model_type": _must("a mapping", "write key: value lines"),
    "model_attributes_type": _must("a mapping", "write key: value lines"),
    "union_tag_not_found": _workload,
    "union_tag_invalid": _workload,
}
