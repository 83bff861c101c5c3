"""The command line: the only part of emu that prints."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """The entry point: run the command line and exit with its status."""
    try:
        # Imports take most of a second, and a Ctrl-C meanwhile is no reason for a traceback.
        from emu.cli.app import run_command  # noqa: PLC0415
    except KeyboardInterrupt:
        sys.stderr.write("emu: error: interrupted\n")
        sys.exit(130)
    sys.exit(run_command(sys.argv[1:]))
