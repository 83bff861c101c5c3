"""What can go wrong while a lab is built or used."""

from emu.errors import EmuError


class LabError(EmuError):
    """The lab cannot be built as asked, or broke; the message says what and what to do."""
