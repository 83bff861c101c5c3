"""The packet engine: real TCP through the lab, driven from one process."""
