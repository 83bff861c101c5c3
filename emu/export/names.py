"""The formats' names, apart from what writes them: a command line shows them without loading any of that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MEANINGS: Final[Mapping[str, str]] = {
    "nccl-tests": "table of collectives in the shape of nccl-tests' output",
    "nccl-json": "the same in the shape of nccl-tests' JSON",
    "hpcc-fct": "flow completion times in the shape of HPCC's fct.txt",
    "chrome-trace": "timeline for Perfetto or chrome://tracing (JSON)",
    "pcapng": "packets of the links that the run captured, for Wireshark",
    "prometheus": "metrics in Prometheus' text format",
}
"""By name, what a format is."""
