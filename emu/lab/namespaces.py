"""Entering network namespaces from one process, so that it can open sockets as any host."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def _setns(fd: int) -> None:
    if _libc.setns(fd, CLONE_NEWNET) != 0:  # os.setns comes with Python 3.12
        error = ctypes.get_errno()
        raise OSError(error, f"setns: {os.strerror(error)}")


class NetworkNamespace:
    """A handle on the network namespace of a process; it outlives the process until `close`."""

    def __init__(self, pid: int | None = None) -> None:
        """Take the namespace of process `pid`, or of the calling thread. Raises OSError if there is no such process."""
        # /proc/self is the main thread's view; thread-self is right in every thread.
        who = "thread-self" if pid is None else str(pid)
        self._fd = os.open(f"/proc/{who}/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Inside the block the calling thread is in this namespace; sockets opened there stay there."""
        back = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            _setns(self._fd)
            try:
                yield
            finally:
                _setns(back)
        finally:
            os.close(back)

    @property
    def fd(self) -> int:
        """The open namespace file, as netlink's NET_NS_FD takes it."""
        return self._fd

    def close(self) -> None:
        """Let go of the namespace."""
        os.close(self._fd)
