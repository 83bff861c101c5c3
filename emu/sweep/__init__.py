"""Sweeps: one scenario run many times, with other values of some parameters and other seeds each time."""
