"""The sealed lab: rooms, Open vSwitch, Mininet, shaping, and what is checked before time zero."""
