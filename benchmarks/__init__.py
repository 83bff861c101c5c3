"""Benchmarks: what the lab measures against its ideals, printed with the machine's name. Not part of the tests."""
