"""Reader of htsim's connection matrices (.cm), as its `ConnectionMatrix::load` understands them.

    Nodes 16
    Connections 2
    Triggers 1
    0->1 id 1 start 0 size 2000000 send_done_trigger 1
    1->2 id 2 trigger 1 size 2000000
    trigger id 1 oneshot

The header's lines come first; starts are picoseconds, sizes bytes; a barrier is written `trigger id 2 barrier count 4`;
`#` begins a comment line. Senders here know that they are done when the receiver is: `send_done_trigger` and
`recv_done_trigger` fire at the same moment.
"""

from __future__ import annotations

import difflib
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

from workloads.flows import Flow, FlowList, FlowListError, Trigger, TriggerKind

PICOSECONDS = 1e12
_HEADER = ("Nodes", "Connections", "Triggers", "Failures")
_FLOW_KEYS = ("id", "start", "size", "trigger", "send_done_trigger", "recv_done_trigger", "prio")
_ENDS = re.compile(r"([0-9]{1,9})->([0-9]{1,9})\Z")
_LONGEST = 20
_WHOLE = re.compile(r"[0-9]{1,18}\Z")


@dataclass
class _Matrix:
    """A file while it is read."""

    file: str
    line: int = 0
    header: dict[str, int] = field(default_factory=dict)
    flows: list[tuple[int, re.Match[str], Mapping[str, str]]] = field(default_factory=list)
    triggers: dict[int, Trigger] = field(default_factory=dict)

    def error(self, problem: str) -> FlowListError:
        """What is wrong with the present line."""
        return FlowListError(self.file, self.line, problem)

    def excerpt(self, word: str) -> str:
        """A word of the file, to be shown; not of a file that has not shown yet that it is a connection matrix.

        Emulations run as root: a scenario that names some other file must not make it known.
        """
        return repr(word[:_LONGEST]) if "Nodes" in self.header else "what stands there"

    def whole(self, text: str, what: str, least: int = 0) -> int:
        """A whole number that is not below `least`."""
        if not _WHOLE.match(text) or int(text) < least:
            raise self.error(f"{what} must be a whole number of at least {least}, not {self.excerpt(text)}")
        return int(text)


def parse_connection_matrix(text: str, file: str) -> FlowList:
    """The flows and triggers of a connection matrix, checked. Raises FlowListError with file and line."""
    matrix = _Matrix(file)
    for matrix.line, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if words and not words[0].startswith("#"):
            _read_line(matrix, words)
    _check_header(matrix)
    used = {int(given["id"]) for _, _, given in matrix.flows if "id" in given}
    free = (number for number in itertools.count(1) if number not in used)
    flows = tuple(_flow(matrix, *entry, free) for entry in matrix.flows)
    ignored = any("prio" in given for _, _, given in matrix.flows)
    notes = ("prio is read but not applied: all flows have the same priority",) if ignored else ()
    result = FlowList(matrix.header["Nodes"], flows, tuple(matrix.triggers.values()), file, notes)
    result.check()
    return result


def _read_line(matrix: _Matrix, words: Sequence[str]) -> None:
    ends = _ENDS.match(words[0])
    if ends:
        matrix.flows.append((matrix.line, ends, _flow_fields(matrix, words[1:])))
    elif words[0] == "trigger":
        _read_trigger(matrix, words[1:])
    elif words[0] == "failure":
        raise matrix.error("link failures do not belong in a flow list here; remove the failure line")
    elif words[0] in _HEADER and not matrix.flows:
        if len(words) != 2:
            raise matrix.error(f"expected: {words[0]} NUMBER")
        matrix.header[words[0]] = matrix.whole(words[1], words[0])
    else:
        what = matrix.excerpt(words[0])
        raise matrix.error(f"{what} begins no line; valid are the header's {', '.join(_HEADER)}, SRC->DST, and trigger")


def _flow_fields(matrix: _Matrix, words: Sequence[str]) -> Mapping[str, str]:
    """The words after SRC->DST as key and value."""
    given: dict[str, str] = {}
    rest = iter(words)
    for key in rest:
        if key == "addon":
            raise matrix.error("addon connections are not supported; write a flow of its own for the added bytes")
        if key not in _FLOW_KEYS:
            near = difflib.get_close_matches(key, _FLOW_KEYS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"valid: {', '.join(_FLOW_KEYS)}"
            raise matrix.error(f"unknown word {matrix.excerpt(key)}; {hint}")
        value = next(rest, None)
        if value is None:
            raise matrix.error(f"{key} needs a value")
        if key in given:
            raise matrix.error(f"{key} is given twice")
        if key != "start":
            matrix.whole(value, key, least=0 if key == "prio" else 1)
        given[key] = value
    if "size" not in given:
        raise matrix.error("a connection needs a size in bytes, e.g. size 2000000")
    if ("start" in given) == ("trigger" in given):
        raise matrix.error("a connection needs either a start in picoseconds or a trigger, not both")
    return given


def _read_trigger(matrix: _Matrix, words: Sequence[str]) -> None:
    """`id N`, a kind, and for a barrier `count N`, in any order."""
    numbers: dict[str, int] = {}
    kinds: list[TriggerKind] = []
    rest = iter(words)
    for word in rest:
        if word in ("id", "count"):
            numbers[word] = matrix.whole(next(rest, ""), word, least=1)
        elif word in get_args(TriggerKind):
            kinds += [kind for kind in get_args(TriggerKind) if kind == word]
        else:
            raise matrix.error(f"unknown word {matrix.excerpt(word)} in a trigger; {_TRIGGER_FORM}")
    if "id" not in numbers or len(kinds) != 1 or (kinds[0] == "barrier") != ("count" in numbers):
        raise matrix.error(_TRIGGER_FORM)
    if numbers["id"] in matrix.triggers:
        raise matrix.error(f"trigger {numbers['id']} is defined twice")
    matrix.triggers[numbers["id"]] = Trigger(numbers["id"], kinds[0], numbers.get("count", 1))


_TRIGGER_FORM = "expected: trigger id N oneshot, trigger id N multishot, or trigger id N barrier count N"


def _check_header(matrix: _Matrix) -> None:
    """The counts that the header promises are those that follow."""
    matrix.line = 0
    if "Nodes" not in matrix.header:
        raise matrix.error("there is no line 'Nodes N' before the connections")
    if matrix.header.get("Failures"):
        raise matrix.error("link failures do not belong in a flow list here; remove them")
    for key, count in (("Connections", len(matrix.flows)), ("Triggers", len(matrix.triggers))):
        if matrix.header.get(key, 0) != count:
            raise matrix.error(f"the header says {key} {matrix.header.get(key, 0)}, but {count} follow")


def _flow(matrix: _Matrix, line: int, ends: re.Match[str], given: Mapping[str, str], free_ids: Iterator[int]) -> Flow:
    matrix.line = line
    return Flow(
        id=int(given["id"]) if "id" in given else next(free_ids),
        src=int(ends[1]),
        dst=int(ends[2]),
        bytes=int(given["size"]),
        start=_seconds(matrix, given["start"]) if "start" in given else None,
        trigger=int(given["trigger"]) if "trigger" in given else None,
        fires=tuple(int(given[key]) for key in ("send_done_trigger", "recv_done_trigger") if key in given),
        line=line,
    )


def _seconds(matrix: _Matrix, text: str) -> float:
    """A start in picoseconds, as seconds."""
    try:
        picoseconds = float(text)
    except ValueError:
        picoseconds = math.nan
    if not (0 <= picoseconds < math.inf) or "_" in text:
        raise matrix.error(f"start must be a number of picoseconds of at least 0, not {matrix.excerpt(text)}")
    return picoseconds / PICOSECONDS
