"""Run directories, and the summary of a run."""

from emu.results.directory import StoredRun, create_directory, read_run, write_run
from emu.results.manifest import Manifest, manifest_schema
from emu.results.phase_summary import CounterfactualSummary, ModelledPhase, PhaseSummary
from emu.results.stored_summary import read_summary
from emu.results.summary import CollectiveSummary, FabricSummary, FlowSummary, RunSummary, summarise
from emu.versions import emu_version

__all__ = [
    "CollectiveSummary",
    "CounterfactualSummary",
    "FabricSummary",
    "FlowSummary",
    "Manifest",
    "ModelledPhase",
    "PhaseSummary",
    "RunSummary",
    "StoredRun",
    "create_directory",
    "emu_version",
    "manifest_schema",
    "read_run",
    "read_summary",
    "summarise",
    "write_run",
]
