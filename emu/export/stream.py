"""Writing text to a stream of bytes."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import BinaryIO


def write_text(stream: BinaryIO, lines: Iterable[str]) -> None:
    """Write lines in UTF-8, a line feed after each. The stream stays open."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n", write_through=False)
    try:
        for line in lines:
            text.write(line)
            text.write("\n")
        text.flush()
    finally:
        text.detach()
