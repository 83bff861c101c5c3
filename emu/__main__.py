"""`python -m emu`: the same as `emu`."""

from emu.cli import main

main()
