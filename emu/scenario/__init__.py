"""The scenario file: its schema, reading it with the line of every mistake, and building what it describes."""

from emu.scenario.build import BuiltFabric, build_fabrics, cluster_of
from emu.scenario.load import load, load_data, load_plugins, load_text
from emu.scenario.schema import Scenario, json_schema
from emu.scenario.traffic import build_orchestrator, collectives_of, flow_list_of, steps_of

__all__ = [
    "BuiltFabric",
    "Scenario",
    "build_fabrics",
    "build_orchestrator",
    "cluster_of",
    "collectives_of",
    "flow_list_of",
    "json_schema",
    "load",
    "load_data",
    "load_plugins",
    "load_text",
    "steps_of",
]
