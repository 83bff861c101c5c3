"""The Ryu applications: they hold the rules they are given, and change them at the instants they are given.

No learning, no packet-in, no link discovery: what a switch forwards is exactly what the engine asked for.
"""
