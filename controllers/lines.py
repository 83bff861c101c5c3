"""How requests, answers and events are written on the controller's Unix socket.

One JSON object a line: `{"v": 1, "id": 7, "kind": "Install", "body": {…}}`. Each request has an id of its own, which
its answer repeats; the `id` of an event is null.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import get_args

from pydantic import TypeAdapter, ValidationError

from controllers.channel import ControllerError, Message

PROTOCOL = 1
"""The version of this protocol; a line of another version is refused."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the channel; `id` None marks an event."""

    id: int | None
    body: Message


_ADAPTERS: dict[str, TypeAdapter[Message]] = {kind.__name__: TypeAdapter(kind) for kind in get_args(Message)}


def encode(body: Message, line_id: int | None = None) -> bytes:
    """One message as a line."""
    kind = type(body).__name__
    data = _ADAPTERS[kind].dump_python(body, mode="json")
    envelope = {"v": PROTOCOL, "id": line_id, "kind": kind, "body": data}
    return json.dumps(envelope, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> Line:
    """The message of a line. Raises ControllerError for what is no message of this version of the protocol."""
    try:
        envelope = json.loads(line)
        version, line_id, kind, body = (envelope[key] for key in ("v", "id", "kind", "body"))
    except (ValueError, KeyError, TypeError) as error:
        raise ControllerError(f"not a line of the controller's channel: {line[:80]!r} ({error!r})") from None
    if version != PROTOCOL:
        raise ControllerError(f"the channel speaks version {PROTOCOL}, this line version {version}")
    if kind not in _ADAPTERS or not (line_id is None or isinstance(line_id, int)):
        raise ControllerError(f"the channel has no message {kind!r} with id {line_id!r}")
    try:
        return Line(line_id, _ADAPTERS[kind].validate_python(body))
    except ValidationError as error:
        raise ControllerError(f"malformed {kind}: {error.errors()[0]['msg']} at {error.errors()[0]['loc']}") from None


class LineBuffer:
    """Puts the pieces that a socket delivers together to lines."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Line]:
        """The lines that are complete with `data`. Raises ControllerError for a malformed one."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [decode(line) for line in lines]
