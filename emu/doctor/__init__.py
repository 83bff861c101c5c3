"""What a lab needs of the machine: every prerequisite probed, each failure with a fix. Nothing is changed."""

from emu.doctor.checks import Check, examine

__all__ = ["Check", "examine"]
