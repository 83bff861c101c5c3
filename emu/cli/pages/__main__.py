"""Make all generated parts of a folder of documentation anew: `python -m emu.cli.pages docs`."""

from __future__ import annotations

import sys
from pathlib import Path

from emu.cli.pages import write

if __name__ == "__main__":
    write(Path(sys.argv[1]))
