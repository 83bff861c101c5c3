"""Reader of flows in CSV.

    src,dst,bytes,start
    0,1,2000000,0
    1,2,2000000,1.5ms

Columns in any order; `start` (seconds, or with a unit s, ms, us, ns, ps; default 0) and `id` may be missing. Nodes
count from 0 to the highest that occurs. Lines that begin with `#` are comments.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence

from workloads.flows import Flow, FlowList, FlowListError

_REQUIRED = ("src", "dst", "bytes")
_COLUMNS = (*_REQUIRED, "start", "id")
_UNITS = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12}
_START = re.compile(r"([0-9]{1,18}(?:\.[0-9]{0,18})?(?:[eE][+-]?[0-9]{1,2})?)\s*([a-z]{0,2})\Z")
_WHOLE = re.compile(r"[0-9]{1,18}\Z")


def parse_flow_csv(text: str, file: str) -> FlowList:
    """The flows of a CSV text, checked. Raises FlowListError with file and line."""
    rows = _rows(text, file)
    line, columns = next(rows, (0, []))
    _check_columns(columns, file, line)
    flows = tuple(
        _flow(dict(zip(columns, _same_length(row, columns, file, number), strict=True)), index, file, number)
        for index, (number, row) in enumerate(rows, 1)
    )
    nodes = max((node for flow in flows for node in (flow.src, flow.dst)), default=0) + 1
    result = FlowList(nodes, flows, source=file)
    result.check()
    return result


def _rows(text: str, file: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of every row that is neither blank nor a comment."""
    reader = csv.reader(text.splitlines(), strict=True)
    try:
        for row in reader:
            fields = [item.strip() for item in row]
            if any(fields) and not fields[0].startswith("#"):
                yield reader.line_num, fields
    except csv.Error as error:
        raise FlowListError(file, reader.line_num, f"not CSV: {error}") from None


def _check_columns(columns: Sequence[str], file: str, line: int) -> None:
    missing = [name for name in _REQUIRED if name not in columns]
    if missing:
        raise FlowListError(file, line, f"the first row must name the columns; missing: {', '.join(missing)}")
    for name in columns:
        if name not in _COLUMNS or columns.count(name) > 1:
            raise FlowListError(
                file, line, f"column {name[:20]!r} is unknown or there twice; valid: {', '.join(_COLUMNS)}"
            )


def _same_length(row: Sequence[str], columns: Sequence[str], file: str, line: int) -> Sequence[str]:
    if len(row) != len(columns):
        raise FlowListError(file, line, f"expected {len(columns)} fields ({', '.join(columns)}), not {len(row)}")
    return row


def _flow(given: Mapping[str, str], index: int, file: str, line: int) -> Flow:
    def whole(column: str) -> int:
        if not _WHOLE.match(given[column]):
            raise FlowListError(file, line, f"{column} must be a whole number, not {given[column][:20]!r}")
        return int(given[column])

    return Flow(
        id=whole("id") if "id" in given else index,
        src=whole("src"),
        dst=whole("dst"),
        bytes=whole("bytes"),
        start=_seconds(given.get("start") or "0", file, line),
        line=line,
    )


def _seconds(text: str, file: str, line: int) -> float:
    match = _START.match(text)
    if not match or match[2] not in _UNITS:
        valid = "seconds such as 0.25, or with a unit: " + ", ".join(unit for unit in _UNITS if unit)
        raise FlowListError(file, line, f"start {text[:20]!r} is no time; write {valid}")
    return float(match[1]) * _UNITS[match[2]]
