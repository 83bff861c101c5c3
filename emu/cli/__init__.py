"""The command line: the only part of emu that prints."""

from emu.cli.app import main

__all__ = ["main"]
