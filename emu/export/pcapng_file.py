"""One pcapng file, written with python-pcapng: an interface for each link, frames, comments, and statistics at the end.

The format: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-03.html.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from pcapng import FileWriter
from pcapng.blocks import EnhancedPacket, InterfaceDescription, InterfaceStatistics, SectionHeader

_ETHERNET: Final = 1
_NANOSECONDS: Final = bytes([9])
"""The option if_tsresol: stamps count in units of 10^-9 s."""
_OUTBOUND: Final = 2
"""The option epb_flags: the port sent the frame."""
LONGEST_COMMENT: Final = 60_000
"""Bytes; an option's length has 16 bits."""


@dataclass(frozen=True, slots=True)
class Interface:
    """A link. rate: bit/s. snaplen: bytes kept of each frame. lost: frames that the capture missed."""

    name: str
    description: str
    rate: int
    snaplen: int
    lost: int


@dataclass(frozen=True, slots=True)
class Frame:
    """A captured frame: when (ns since 1970), on which interface, how long it was, and its first bytes."""

    at_ns: int
    interface: str
    length: int
    data: bytes


class PcapngFile:
    """A file of one section. Frames must come in the order of their stamps."""

    def __init__(self, stream: BinaryIO, application: str, comment: str, interfaces: Iterable[Interface]) -> None:
        """Write what comes before the frames."""
        self._section = SectionHeader(options={"shb_userappl": application, "opt_comment": _bounded(comment)})
        self._about = {interface.name: interface for interface in interfaces}
        self._interfaces = {name: self._describe(interface) for name, interface in self._about.items()}
        self._count = dict.fromkeys(self._about, 0)
        self._last = 0
        self._writer = FileWriter(stream, self._section)

    def add(self, frame: Frame, comments: Sequence[str] = ()) -> None:
        """Write a frame."""
        options: dict[str, Any] = {"epb_flags": _OUTBOUND}
        if comments:
            options["opt_comment"] = [_bounded(comment) for comment in comments]
        self._put(
            EnhancedPacket,
            frame.interface,
            frame.at_ns,
            packet_len=frame.length,
            packet_data=frame.data,
            options=options,
        )
        self._count[frame.interface] += 1
        self._last = frame.at_ns

    def finish(self) -> None:
        """Write each interface's statistics."""
        for name, about in self._about.items():
            received = self._count[name] + about.lost
            self._put(InterfaceStatistics, name, self._last, options={"isb_ifrecv": received, "isb_osdrop": about.lost})

    def _describe(self, interface: Interface) -> Any:  # noqa: ANN401 - python-pcapng is untyped
        options = {
            "if_name": interface.name,
            "if_description": interface.description,
            "if_speed": interface.rate,
            "if_tsresol": _NANOSECONDS,
        }
        return self._section.new_member(
            InterfaceDescription, link_type=_ETHERNET, snaplen=interface.snaplen, options=options
        )

    def _put(self, kind: type[Any], interface: str, at_ns: int, **fields: Any) -> None:  # noqa: ANN401
        block = self._section.new_member(
            kind,
            interface_id=self._interfaces[interface].interface_id,
            timestamp_high=at_ns >> 32,
            timestamp_low=at_ns & 0xFFFFFFFF,
            **fields,
        )
        self._writer.write_block(block)


def _bounded(comment: str) -> str:
    """A comment that an option can hold; of a longer one the whole lines that fit."""
    encoded = comment.encode()
    if len(encoded) <= LONGEST_COMMENT:
        return comment
    kept = encoded[:LONGEST_COMMENT].decode(errors="ignore").rpartition("\n")[0]
    return f"{kept}\n... and {comment.count(chr(10)) - kept.count(chr(10))} more lines"
