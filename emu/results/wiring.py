"""How every fabric of a run was wired, as a file beside its tables.

Tables name ports; what stands behind them (kinds of nodes, cables, addresses, the circuits of epoch 0) is the
builder's, and a builder may be a plugin that a later reader has not. With this file a run can be drawn, and its routes
computed again, wherever it is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from controllers.epochs import Circuit, Epoch
from emu.errors import InputError
from emu.outcome import Outcome
from emu.scenario.build import BuiltFabric
from topologies.fabric import Fabric, FabricError, Kind, Link, Node, Port, Routing

FABRICS_FILE: Final = "fabrics.json"


@dataclass(frozen=True, slots=True)
class StoredFabric:
    """One fabric as it was wired.

    nodes, links: in the order in which they were added. addresses: by NIC, as in `h0:0`.
    circuits: by OCS, those of epoch 0, each from the port where light enters to the one where it leaves.
    """

    name: str
    routing: Routing
    nodes: list[Node]
    links: list[Link]
    addresses: dict[str, str]
    circuits: dict[str, list[Circuit]] = field(default_factory=dict)

    @classmethod
    def of(cls, built: BuiltFabric) -> StoredFabric:
        """What is to be kept of a fabric."""
        fabric = built.fabric
        return cls(
            name=fabric.name,
            routing=fabric.routing,
            nodes=list(fabric.nodes),
            links=list(fabric.links),
            addresses={str(nic): fabric.address(nic) for nic in fabric.all_nics},
            circuits={ocs: sorted(circuits) for ocs, circuits in built.epoch.matchings.items()},
        )

    def rebuild(self) -> Fabric:
        """The fabric, wired as it was. Raises FabricError for what no builder could have made."""
        fabric = Fabric(self.name, routing=self.routing)
        for node in self.nodes:
            if node.kind is Kind.HOST:
                fabric.add_host(node.name, gpus=node.gpus, pod=node.pod)
            else:
                fabric.add_switch(**_said(node, without=("gpus",)))
        for link in self.links:
            fabric.connect(**_said(link))
        for nic, address in self.addresses.items():
            node_name, _, number = nic.rpartition(":")
            fabric.set_address(Port(node_name, int(number)), address)
        return fabric.finish()

    @property
    def epoch(self) -> Epoch:
        """Epoch 0."""
        return Epoch(0, {ocs: frozenset(circuits) for ocs, circuits in self.circuits.items()})


def wiring_text(outcome: Outcome) -> str:
    """Every fabric of a run as JSON, in the scenario's order."""
    return _FABRICS.dump_json([StoredFabric.of(fabric.built) for fabric in outcome.fabrics]).decode() + "\n"


def read_wiring(directory: Path) -> list[StoredFabric] | None:
    """The fabrics of a run directory; None if it keeps none, as those of earlier versions.

    Raises InputError for a file that is malformed.
    """
    path = directory / FABRICS_FILE
    try:
        found = _FABRICS.validate_json(path.read_bytes())
        for stored in found:
            stored.rebuild()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{path}: {where}: {first['msg']}", hint="another version of emu wrote it") from error
    except (FabricError, ValueError) as error:
        raise InputError(f"{path}: {error}", hint="another version of emu wrote it") from error
    return found


def _said(part: Node | Link, without: Iterable[str] = ()) -> dict[str, Any]:
    """Everything that a node or link says of itself, so that what is added to them later is kept too."""
    return {item.name: getattr(part, item.name) for item in fields(part) if item.name not in without}


_FABRICS: TypeAdapter[list[StoredFabric]] = TypeAdapter(list[StoredFabric])
