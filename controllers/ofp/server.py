"""The controller's end of the channel: a Unix socket for one engine, served by the threads of the library's hub."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from controllers.channel import Answer, ControllerError, Event, Request
from controllers.lines import LineBuffer, encode
from controllers.ryu_api import hub

_LOG = logging.getLogger(__name__)
_CHUNK = 1 << 16


class EngineServer:
    """Hands requests to `on_request(id, request)` and calls `on_gone(reason)` once when the engine has hung up.

    Events that come before the engine has connected are kept for it.
    """

    def __init__(self, path: str, on_request: Callable[[int, Request], None], on_gone: Callable[[str], None]) -> None:
        self._server = hub.StreamServer((path,), self._serve)
        self._on_request = on_request
        self._on_gone = on_gone
        self._outbox = hub.Queue()
        self._taken = False

    def start(self) -> None:
        """Accept the engine's connection; returns at once."""
        hub.spawn(self._server.serve_forever)

    def emit(self, event: Event) -> None:
        """Send an event. Never waits for the engine."""
        self._outbox.put(encode(event))

    def answer(self, number: int, answer: Answer) -> None:
        """Answer a request. Never waits for the engine."""
        self._outbox.put(encode(answer, number))

    def _serve(self, connection: Any, _address: object) -> None:  # noqa: ANN401 - a socket or eventlet's
        if self._taken:
            connection.close()
            return
        self._taken = True
        hub.spawn(self._write, connection)
        self._on_gone(self._read(connection))

    def _write(self, connection: Any) -> None:  # noqa: ANN401
        try:
            while True:
                connection.sendall(self._outbox.get())
        except OSError as error:
            _LOG.debug("the engine is gone: %s", error)

    def _read(self, connection: Any) -> str:  # noqa: ANN401
        buffer = LineBuffer()
        try:
            while data := connection.recv(_CHUNK):
                for line in buffer.feed(data):
                    if line.id is None or not isinstance(line.body, Request):
                        raise ControllerError(f"the engine sent a {type(line.body).__name__}, which is no request")
                    self._on_request(line.id, line.body)
        except (OSError, ControllerError) as error:
            return str(error)
        return "the engine hung up"
