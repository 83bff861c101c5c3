"""The scenario file: its schema, reading it with the line of every mistake, and building what it describes."""

from emu.scenario.load import load, load_plugins
from emu.scenario.schema import Scenario, json_schema

__all__ = ["Scenario", "json_schema", "load", "load_plugins"]
