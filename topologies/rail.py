"""Rail-optimised: NIC i of every host at the switches of rail i, the rails joined by spines or not at all."""

from __future__ import annotations

from dataclasses import dataclass

from topologies.clos import Spines, add_leaf, add_spines, attach
from topologies.fabric import Fabric, FabricError, Port
from topologies.parameters import Duration, Rate, at_least, check_hosts
from topologies.registry import builder


@builder("rail")
def rail(
    *,
    hosts: int = 16,
    nics: int = 8,
    gpus: int | None = None,
    radix: int = 64,
    spine: bool = True,
    oversubscription: int = 1,
    spines: int | None = None,
    rate: Rate = 400_000_000_000,
    delay: Duration = 0.0,
    name: str = "rail",
) -> Fabric:
    """Rail-optimised fabric: NIC i of every host at a switch of rail i, and spines above the rail switches.

    The wiring of NVIDIA's DGX SuperPOD reference architecture, which the baselines of MixNet (SIGCOMM 2025) and of
    OrchestrRL (arXiv 2601.01209) name; their port counts beyond that are not published. Without spines it is the
    rail-only network of Wang et al. (arXiv 2307.12169).

    Args:
        hosts: how many.
        nics: NICs of each host, which is the number of rails, 1 to 8.
        gpus: GPUs of each host; default: one per NIC.
        radix: ports of every switch. With r:1, r of r+1 ports of a rail switch are for NICs.
        spine: whether spines join the rails. If not, a rail is one switch, all of its ports are for NICs, and NICs
            of different rails cannot reach each other: what must cross rails goes inside the hosts.
        oversubscription: r, for r:1 at a full rail switch.
        spines: how many; default: as few as their radix allows, with as many parallel links as that gives.
        rate: of every link, bit/s.
        delay: of every link and direction, seconds.
        name: how reports call it.

    Hosts fill groups (pods) of as many as a rail switch has NIC ports. Nodes: switch t(g * nics + i) for group g and
    rail i, spines s0... Ports of a rail switch: NICs in the order of the hosts, then uplinks; uplink u goes to spine
    u mod spines. A full rail switch has a spine port for each r NICs; if there is only one group, its rail switches
    have no more uplinks than their hosts need. Addresses as on a leaf-spine fabric.

    Raises FabricError for impossible numbers, and for more hosts than two tiers of this radix hold.
    """
    gpus = check_hosts(nics, gpus)
    at_least(1, hosts=hosts, oversubscription=oversubscription)
    at_least(2, radix=radix)
    shape = _Shape(hosts, nics, radix, oversubscription, spine)
    shape.check()
    spines = shape.fewest_spines() if spines is None else spines
    shape.check_spines(spines)
    sizes = {"hosts": hosts, "nics": nics, "gpus": gpus, "radix": radix, "spine": spine}
    rates = {"oversubscription": oversubscription, "spines": spines, "rate": rate, "delay": delay}
    fabric = Fabric(name, routing="two-level", parameters={**sizes, **rates})
    for leaf in range(shape.leaves):
        add_leaf(fabric, leaf, pod=leaf // nics)
    for host in range(hosts):
        group = host // shape.below
        fabric.add_host(f"h{host}", gpus=gpus, pod=group)
        for nic in range(nics):
            attach(fabric, Port(f"h{host}", nic), group * nics + nic, rate=rate, delay=delay)
    if spine:
        add_spines(fabric, shape.leaves, Spines(shape.uplinks, spines, rate, delay))
    fabric.notes = shape.notes()
    return fabric.finish()


@dataclass(frozen=True, slots=True)
class _Shape:
    """The sizes that follow from the parameters."""

    hosts: int
    nics: int
    radix: int
    oversubscription: int
    spine: bool

    @property
    def below(self) -> int:
        """NIC ports of a full rail switch, so hosts of a group."""
        room = self.oversubscription * (self.radix // (self.oversubscription + 1)) if self.spine else self.radix
        # With one group nothing is gained by a spine port for each port that stays empty.
        return min(room, -(-self.hosts // self.oversubscription) * self.oversubscription)

    @property
    def uplinks(self) -> int:
        """Of each rail switch."""
        return self.below // self.oversubscription

    @property
    def groups(self) -> int:
        return -(-self.hosts // self.below)

    @property
    def leaves(self) -> int:
        return self.groups * self.nics

    def check(self) -> None:
        """Raise FabricError if two tiers of this radix, or one switch a rail, do not hold the hosts."""
        if self.oversubscription + 1 > self.radix:
            raise FabricError(f"radix {self.radix} leaves no uplink with oversubscription {self.oversubscription}")
        if not self.spine and self.groups > 1:
            raise FabricError(f"radix {self.radix} holds {self.radix} hosts without a spine, not {self.hosts}")
        if self.spine and self.leaves > self.radix:
            room = self.radix // self.nics * self.below
            raise FabricError(
                f"radix {self.radix} holds {room} hosts of {self.nics} NICs in two tiers, not {self.hosts}; "
                f"{self._radix_that_fits()} would do"
            )

    def check_spines(self, spines: int) -> None:
        """Raise FabricError if so many spines do not have the ports."""
        at_least(1, spines=spines)
        ports = self.leaves * self.uplinks // spines
        if self.spine and self.leaves > 1 and ports > self.radix:
            raise FabricError(f"spines {spines} would have {ports} ports each, but the radix is {self.radix}")

    def fewest_spines(self) -> int:
        """The smallest number that divides a rail switch's uplinks and has the ports."""
        fitting = (n for n in range(1, self.uplinks + 1) if self.uplinks % n == 0)
        return next((n for n in fitting if self.leaves * self.uplinks // n <= self.radix), self.uplinks)

    def notes(self) -> tuple[str, ...]:
        """What results should say."""
        if not self.spine and self.nics > 1:
            return ("no spine: NICs of different rails cannot reach each other",)
        return ()

    def _radix_that_fits(self) -> int:
        radix = self.radix + 2
        while (other := _Shape(self.hosts, self.nics, radix, self.oversubscription, True)).leaves > radix:
            radix += 2
        return other.radix
