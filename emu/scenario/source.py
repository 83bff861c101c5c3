"""YAML as plain data that remembers where everything stands.

Only the syntax is left to the YAML library; values are made here from its node tree, so no tag can ever construct
anything but text, numbers, booleans, nothing, lists and mappings, and every one of them keeps its line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from emu.errors import InputError, KeyPath

MAX_BYTES: Final = 1 << 18
"""Far above any scenario; large flow lists are files of their own."""
MAX_VALUES: Final = 50_000
"""Bounds what aliases can blow up to."""
MAX_DEPTH: Final = 30

_TAG = "tag:yaml.org,2002:"
_PLAIN: Final = frozenset({"str", "timestamp", "value"})
_TYPED: Final = frozenset({"int", "float", "bool", "null"})


class Position(NamedTuple):
    """Line and column, from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Source:
    """Where a scenario came from. All sources are equal: where it was written makes no scenario another one.

    file: as the user gave it, "" if from no file.
    positions: of every key (mappings) and item (lists), by key path.
    overridden: top-level keys and dotted paths that came from the command line.
    """

    file: str = field(default="", compare=False)
    positions: Mapping[KeyPath, Position] = field(default_factory=dict, compare=False, repr=False)
    overridden: frozenset[KeyPath] = field(default=frozenset(), compare=False)

    def error(self, key: KeyPath, problem: str, *, hint: str = "", more: int = 0) -> InputError:
        """The error to raise for what stands at `key`, with the line of it or of the nearest key above."""
        if any(key[: len(option)] == option for option in self.overridden):
            return InputError(problem, file="command line", key=key, hint=hint, more=more)
        place = next((self.positions[key[:n]] for n in range(len(key), -1, -1) if key[:n] in self.positions), None)
        line, column = place or (None, None)
        return InputError(problem, file=self.file, line=line, column=column, key=key, hint=hint, more=more)


def read_bytes(path: Path, most: int, what: str) -> bytes:
    """The content of a regular file of at most `most` bytes. Raises InputError."""
    try:
        if not path.is_file():
            raise InputError("there is no such file" if not path.exists() else "this is not a file", file=str(path))
        with path.open("rb") as file:
            content = file.read(most + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"cannot be read ({reason})", file=str(path)) from None
    if len(content) > most:
        raise InputError(f"is larger than {most >> 10} KiB, so hardly {what}", file=str(path))
    return content


def decode(content: bytes, file: str) -> str:
    """UTF-8 text, a byte order mark taken off. Raises InputError with the line of the first wrong byte."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError("is not UTF-8 text", file=file, line=line, hint="save it as UTF-8") from None


def parse(text: str, file: str) -> tuple[dict[str, Any], Source]:
    """The mapping that a YAML text holds, with positions. Raises InputError."""
    root = _compose(text, file)
    if root is None or str(root.tag) == f"{_TAG}null":
        raise InputError("is empty", file=file, hint="a scenario needs at least fabrics: and workload:")
    reader = _Reader(file)
    data = reader.value(root, ())
    if not isinstance(data, dict):
        raise InputError(
            "is not a mapping of keys to values", file=file, line=1, hint="it starts with e.g. fabrics:, workload:"
        )
    return data, Source(file, reader.positions)


def _compose(text: str, file: str) -> Node | None:
    for place, char in enumerate(text):
        if not (char.isprintable() or char in "\t\n\r\u0085\ufeff"):
            line = text.count("\n", 0, place) + 1
            raise InputError(f"holds the character {char!r}, which YAML does not allow", file=file, line=line)
    try:
        node: Node | None = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        raise _syntax_error(error, text, file) from None
    except RecursionError:
        raise InputError(f"is nested deeper than {MAX_DEPTH} levels", file=file) from None
    except Exception as error:  # the library lets other exceptions escape for some malformed texts
        raise InputError(f"is not valid YAML ({type(error).__name__}: {error})", file=file) from None
    return node


def _syntax_error(error: MarkedYAMLError, text: str, file: str) -> InputError:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else None
    lines = text.splitlines()
    hint = "YAML indents with spaces, not tabs" if line and "\t" in "".join(lines[line - 1 : line]) else ""
    what = ", ".join(part for part in (error.context, error.problem) if part)
    return InputError(
        f"is not valid YAML: {what}", file=file, line=line, column=mark.column + 1 if mark else None, hint=hint
    )


class _Reader:
    """Turns one node tree into plain data; counts what it makes, and knows the place of all of it."""

    def __init__(self, file: str) -> None:
        self.positions: dict[KeyPath, Position] = {}
        self._source = Source(file, self.positions)
        self._made = 0
        self._depth = 0
        self._yaml = YAML(typ="safe", pure=True)

    def value(self, node: Node, key: KeyPath) -> Any:  # noqa: ANN401 - plain data of any shape
        self._made += 1
        self.positions.setdefault(key, _position(node))
        if self._made > MAX_VALUES:
            raise self._source.error(key, f"the file holds more than {MAX_VALUES} values, aliases counted each time")
        if self._depth > MAX_DEPTH:
            raise self._source.error(key[:3], f"is nested deeper than {MAX_DEPTH} levels")
        if isinstance(node, ScalarNode):
            return self._scalar(node, key)
        self._check_tag(node, key)
        self._depth += 1
        try:
            if isinstance(node, SequenceNode):
                return [self.value(item, (*key, place)) for place, item in enumerate(node.value)]
            return self._mapping(node, key) if isinstance(node, MappingNode) else None
        finally:
            self._depth -= 1

    def _scalar(self, node: ScalarNode, key: KeyPath) -> Any:  # noqa: ANN401
        kind = str(node.tag).removeprefix(_TAG)
        if kind in _PLAIN:
            return str(node.value)
        if kind not in _TYPED:
            raise self._tag_error(node, key)
        try:
            return self._yaml.constructor.construct_object(node)
        except (ValueError, KeyError, MarkedYAMLError):
            raise self._source.error(key, f"{str(node.value)[:40]!r} is not a value of type {kind}") from None

    def _mapping(self, node: MappingNode, key: KeyPath) -> dict[str, Any]:
        data = self._merged(node, key)
        own: dict[str, Position] = {}
        for name_node, value_node in node.value:
            if _is_merge(name_node):
                continue
            name = self._name(name_node, key)
            self.positions[(*key, name)] = _position(name_node)
            if name in own:
                raise self._source.error((*key, name), f"is given twice, first on line {own[name].line}")
            own[name] = _position(name_node)
            data[name] = self.value(value_node, (*key, name))
        return data

    def _merged(self, node: MappingNode, key: KeyPath) -> dict[str, Any]:
        """What `<<: *defaults`, or a list of such, brings in; earlier ones win."""
        merged: dict[str, Any] = {}
        for place in (value for name, value in node.value if _is_merge(name)):
            for part in reversed(place.value) if isinstance(place, SequenceNode) else [place]:
                value = self.value(part, key)
                if not isinstance(value, dict):
                    raise self._source.error(key, "'<<' merges a mapping or a list of mappings, nothing else")
                merged |= value
        return merged

    def _name(self, node: Node, key: KeyPath) -> str:
        if not isinstance(node, ScalarNode) or str(node.tag).removeprefix(_TAG) not in _PLAIN:
            self.positions[(*key, "?")] = _position(node)
            shown = f"{str(node.value)[:40]!r}" if isinstance(node, ScalarNode) else "a list or mapping"
            raise self._source.error((*key, "?"), f"the key {shown} is not text", hint="quote it if it is meant so")
        return str(node.value)

    def _check_tag(self, node: Node, key: KeyPath) -> None:
        if str(node.tag) not in (f"{_TAG}seq", f"{_TAG}map"):
            raise self._tag_error(node, key)

    def _tag_error(self, node: Node, key: KeyPath) -> InputError:
        tag = str(node.tag).replace(_TAG, "!!")
        return self._source.error(key, f"has the tag {tag[:60]!r}; a scenario holds plain values only")


def _position(node: Node) -> Position:
    return Position(node.start_mark.line + 1, node.start_mark.column + 1)


def _is_merge(node: Node) -> bool:
    return str(node.tag) == f"{_TAG}merge"
