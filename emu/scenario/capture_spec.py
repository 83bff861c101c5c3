"""`capture:` - links whose frames the lab keeps, and which of a fabric's links are meant by it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from emu.scenario.fields import PositiveSize, Refusal, Size, Strict, as_list
from topologies.fabric import Fabric, Port

MOST_LINKS = 64
"""Of one fabric: each link has a process of its own that reads its frames."""
FEWEST_FRAMES = 100
"""That the limit must leave for each link in each repeat; fewer would hardly show anything."""
RECORD_BYTES = 16
"""What a capture file holds of each frame beside its bytes."""
_NAMED = 6
_SHAPE = re.compile(r"[^\s>]+( *-> *[^\s>]+)?")


def _read_pattern(value: Any) -> Any:  # noqa: ANN401 - a validator's input
    if not isinstance(value, str) or not _SHAPE.fullmatch(value.strip()):
        hint = "write the port that transmits, and where it goes if you like: h0:0 -> t0"
        raise Refusal(f"{value!r:.60} names no link", hint)
    return " -> ".join(part.strip() for part in value.split("->"))


LinkPattern = Annotated[str, BeforeValidator(_read_pattern)]


class Capture(Strict):
    """Links whose frames the lab keeps, to be looked into with Wireshark. It costs processor time.

    links: a direction each, by the port that transmits (`h0:0`), or with where it goes (`h0:0 -> t0`); node names stand
    for all their ports, and `*`, `?` and `[...]` mean what they mean for files.
    snaplen: how much is kept of each frame.
    limit: how much the captures of one fabric may take on the disk, all links and repeats together.
    """

    links: Annotated[tuple[LinkPattern, ...], BeforeValidator(as_list), Field(min_length=1, max_length=100)]
    snaplen: Annotated[Size, Field(ge=64, le=65_535)] = 128
    limit: PositiveSize = 64 << 20

    def frames(self, links: int, repeats: int) -> int:
        """How many frames the limit leaves for each link in each repeat."""
        return self.limit // (links * repeats) // (self.snaplen + RECORD_BYTES)


def captured(fabric: Fabric, patterns: Iterable[str]) -> list[Port]:
    """The ports of a fabric whose egress is captured, each once, in the fabric's order."""
    wanted = list(patterns)
    return [port for port in _ports(fabric) if any(_matches(fabric, port, pattern) for pattern in wanted)]


def link_name(fabric: Fabric, port: Port) -> str:
    """A link's direction as results name it: from which port to which."""
    return f"{port} -> {fabric.peer(port)}"


def problem(capture: Capture, place: int, fabrics: Sequence[Fabric]) -> tuple[str, str] | None:
    """What is wrong with one of the patterns, and a hint: it may fit some of the fabrics, but not none."""
    pattern = capture.links[place]
    if any(captured(fabric, [pattern]) for fabric in fabrics):
        return None
    names = list(dict.fromkeys(link_name(fabric, port) for fabric in fabrics for port in _ports(fabric)))
    return f"no fabric has a link {pattern!r}", _hint(pattern, names)


def excess(capture: Capture, fabric: Fabric, repeats: int) -> tuple[str, str, str] | None:
    """Why all captures of a fabric together cannot be made: the key to blame, what is wrong, and a hint."""
    count = len(captured(fabric, capture.links))
    if count > MOST_LINKS:
        what = f"captures {count} links of {fabric.name}; {MOST_LINKS} is the most, for each takes processor time"
        return "links", what, "name those that you want to look into"
    if count and capture.frames(count, repeats) < FEWEST_FRAMES:
        what = f"leaves {capture.frames(count, repeats)} frames for each of {count} links in {repeats} repeats"
        return "limit", what, f"it must leave at least {FEWEST_FRAMES}"
    return None


def _ports(fabric: Fabric) -> list[Port]:
    return [port for link in fabric.links for port in (link.a, link.b)]


def _matches(fabric: Fabric, port: Port, pattern: str) -> bool:
    source, _, target = pattern.partition(" -> ")
    return _is(port, source) and (not target or _is(fabric.peer(port), target))


def _is(port: Port, pattern: str) -> bool:
    return fnmatchcase(str(port), pattern) or fnmatchcase(port.node, pattern)


def _hint(pattern: str, names: Sequence[str]) -> str:
    """The links that are written most like a pattern, else the first few."""
    near = difflib.get_close_matches(pattern, [*names, *(name.partition(" -> ")[0] for name in names)], n=3)
    if near:
        return f"did you mean {' or '.join(repr(name) for name in near)}?"
    shown = ", ".join(names[:_NAMED])
    rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"valid: {shown}{rest}"
