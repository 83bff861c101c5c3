"""emu: packet-level emulation of disaggregated RL training on reconfigurable fabrics."""
