"""Collectives lowered to transfers: one module for each family of algorithms."""

from workloads.collectives.lowering import (
    bus_factor,
    bytes_by_hosts,
    bytes_per_rank,
    check,
    critical_steps,
    lower,
    moves_of,
)
from workloads.collectives.registry import (
    CollectiveError,
    Lowering,
    algorithms,
    default_algorithm,
    lowering_of,
    lowerings,
)

__all__ = [
    "CollectiveError",
    "Lowering",
    "algorithms",
    "bus_factor",
    "bytes_by_hosts",
    "bytes_per_rank",
    "check",
    "critical_steps",
    "default_algorithm",
    "lower",
    "lowering_of",
    "lowerings",
    "moves_of",
]
