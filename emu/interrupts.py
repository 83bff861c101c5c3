"""Ctrl-C, SIGTERM and SIGHUP as one thing: the wish that a run end, with what was measured kept.

Whoever closes a terminal, stops a service or lets a batch system's time run out means the same as who types Ctrl-C.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Final, Self

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_Handler = Callable[[int, FrameType | None], Any] | int | None


class Interrupts:
    """While it is entered, in the main thread, each of the signals raises KeyboardInterrupt.

    Signals that are ignored (under nohup), or that the embedding program handles itself, are left as they are.
    """

    def __init__(self) -> None:
        self.heard = False
        """Whether one has come."""
        self._held = False
        self._before: dict[signal.Signals, _Handler] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                before = signal.getsignal(number)
                if before in (signal.SIG_DFL, signal.default_int_handler):
                    self._before[number] = before
                    signal.signal(number, self._come)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._before:
            number, before = self._before.popitem()
            signal.signal(number, before)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Finish what is done inside: the first signal is only noted in `heard`, a second one is not held back."""
        self._held = True
        try:
            yield
        finally:
            self._held = False

    def _come(self, number: int, frame: FrameType | None) -> None:
        self.heard = True
        if self._held:
            self._held = False
            return
        raise KeyboardInterrupt
