"""The command line: the only part of emu that prints."""
