"""The vocabulary of builder parameters: quantities that carry their unit in their type.

A builder annotates a parameter with one of these, so that a scenario may write `400Gbps` or `5us` for it while the
builder only ever sees a plain number in the base unit.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from topologies.fabric import MAX_NICS, FabricError


class Unit(StrEnum):
    """The base unit in which a parameter reaches its builder; found in the metadata of its annotation."""

    RATE = "bit/s"
    DURATION = "s"
    SIZE = "B"


Rate = Annotated[int, Unit.RATE]
"""bit/s on the wire."""

Duration = Annotated[float, Unit.DURATION]
"""Seconds."""

Size = Annotated[int, Unit.SIZE]
"""Bytes."""


def at_least(minimum: int, **values: int) -> None:
    """Refuse parameters below `minimum`. Raises FabricError naming the parameter and its value."""
    for name, value in values.items():
        if value < minimum:
            raise FabricError(f"{name} must be at least {minimum}, not {value}")


def check_hosts(nics: int, gpus: int | None) -> int:
    """Check what a builder was told of its hosts and return GPUs per host (one per NIC unless given).

    Raises FabricError for a number of NICs or GPUs that a host cannot have.
    """
    if not 1 <= nics <= MAX_NICS:
        raise FabricError(f"nics must be 1 to {MAX_NICS}, not {nics}")
    if gpus is None:
        return nics
    at_least(1, gpus=gpus)
    return gpus
