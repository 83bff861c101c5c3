"""Tables followed for many pairs of NICs at once: the arithmetic of `controllers.paths.Forwarder` on arrays.

A directed link is known by the place of its transmitting port in `ports`, a NIC by its place in the fabric's
`all_nics`. For one destination a packet switch has one next hop, so tables are a matrix of next hops, and all pairs
take a hop together.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt

from controllers.paths import cross, number_of
from controllers.tables import Rule, Table, Tables
from topologies.fabric import Fabric, Kind, Port

Ints = npt.NDArray[np.int64]
Links = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
_NONE = -1
_BATCH = 1 << 18
"""Pairs that are followed at once: bounds the memory that it takes."""


class Hops:
    """The tables of one epoch as arrays.

    ports: the transmitting port of each directed link, both of each cable in the order in which they were wired.
    nics: by NIC, the number of the link on which it transmits.
    """

    def __init__(self, fabric: Fabric, tables: Tables) -> None:
        self.ports = tuple(port for link in fabric.links for port in (link.a, link.b))
        self._numbers = {port: number for number, port in enumerate(self.ports)}
        nics = fabric.all_nics
        self.nics: Ints = np.array([self._numbers[nic] for nic in nics], dtype=np.int64)
        switches = [switch.name for switch in fabric.switches]
        self._switch_at, self._nic_at = self._ends(fabric, switches)
        self._landing, self._exits = self._light(fabric, tables)
        addresses: Ints = np.array([number_of(fabric.address(nic)) for nic in nics], dtype=np.int64)
        rows = [self._row(name, tables.get(name, ()), addresses) for name in switches]
        shape = (len(switches), len(nics))
        self._next: Links = np.array([row for row, _ in rows], dtype=np.int32).reshape(shape)
        self._hairpin: Bools = np.array([row for _, row in rows], dtype=np.bool_).reshape(shape)

    def paths(self, src: Ints, dst: Ints) -> Links:
        """The links from NICs to NICs, one row for each pair, in order; short rows are filled with `len(ports)`.

        A row without any link has no path: its packets never arrive (see `controllers.routes.path`).
        """
        parts = [
            self._follow(src[start : start + _BATCH], dst[start : start + _BATCH])
            for start in range(0, len(src), _BATCH)
        ]
        width = max((part.shape[1] for part in parts), default=0)
        out = np.full((len(src), width), len(self.ports), dtype=np.int32)
        for number, part in enumerate(parts):
            out[number * _BATCH : number * _BATCH + len(part), : part.shape[1]] = part
        return out

    # -- reading tables -----------------------------------------------------------------------------------------------

    def _ends(self, fabric: Fabric, switches: Sequence[str]) -> tuple[Ints, Ints]:
        """By port: the number of its packet switch, and the number of the NIC that it is."""
        switch_numbers = {name: number for number, name in enumerate(switches)}
        switch_at = [switch_numbers.get(port.node, _NONE) for port in self.ports]
        nic_at = np.full(len(self.ports), _NONE, dtype=np.int64)
        nic_at[self.nics] = np.arange(len(self.nics))
        return np.array(switch_at, dtype=np.int64), nic_at

    def _light(self, fabric: Fabric, tables: Tables) -> tuple[Ints, Links]:
        """By link: the port where it lands, -1 if in the dark, and the OCS ports that it leaves by on the way."""
        exit_of = {
            Port(ocs.name, rule.in_port): rule.out_port
            for ocs in fabric.ocses
            for rule in tables.get(ocs.name, ())
            if rule.in_port is not None
        }
        landing = np.full(len(self.ports), _NONE, dtype=np.int64)
        exits: dict[int, tuple[Port, ...]] = {}
        for number, port in enumerate(self.ports):
            crossed = None if fabric.node(port.node).kind is Kind.OCS else cross(fabric, port, exit_of.get)
            if crossed is not None:
                landing[number] = self._numbers[crossed[0]]
                exits[number] = crossed[1]
        passed = np.full((len(self.ports), max(map(len, exits.values()), default=0)), _NONE, dtype=np.int32)
        for number, ports in exits.items():
            passed[number, : len(ports)] = [self._numbers[port] for port in ports]
        return landing, passed

    def _row(self, switch: str, table: Table, addresses: Ints) -> tuple[Links, Bools]:
        """The link to each NIC from a packet switch, and whether packets may turn back there."""
        links = np.full(len(addresses), _NONE, dtype=np.int32)
        hairpin = np.zeros(len(addresses), dtype=np.bool_)
        rules = sorted((rule for rule in table if rule.destination is not None), key=_specificity)
        for (_, mask), group in groupby(rules, key=_specificity):
            first = {rule.destination or 0: rule for rule in reversed(list(group))}  # of several equal ones
            chosen = [first[destination] for destination in sorted(first)]
            found, which = _search(np.array(sorted(first), dtype=np.int64), addresses & mask)
            out = [self._numbers[Port(switch, rule.out_port)] for rule in chosen]
            links[found] = np.array(out, dtype=np.int32)[which]
            hairpin[found] = np.array([rule.hairpin for rule in chosen], dtype=np.bool_)[which]
        return links, hairpin

    # -- following them -----------------------------------------------------------------------------------------------

    def _follow(self, src: Ints, dst: Ints) -> Links:
        columns: list[Links] = []
        at = self.nics[src]
        going = np.arange(len(src))
        arrived = np.zeros(len(src), dtype=np.bool_)
        for _ in range(len(self.ports) + 1):  # more hops than there are ports are a loop
            at, going = self._hop(at, going, dst, columns, arrived)
            if not going.size:
                break
        rows = np.stack(columns, axis=1) if columns else np.empty((len(src), 0), dtype=np.int32)
        rows[~arrived] = _NONE
        return self._packed(rows)

    def _hop(self, at: Ints, going: Ints, dst: Ints, columns: list[Links], arrived: Bools) -> tuple[Ints, Ints]:
        """Let packets that stand before links take one hop; returns those that go on, and the links before them."""
        landing = self._landing[at]
        lit = landing >= 0
        at, going, landing = at[lit], going[lit], landing[lit]
        if not going.size:
            return at, going
        for links in (at, *self._exits[at].T):
            column = np.full(len(dst), _NONE, dtype=np.int32)
            column[going] = links
            columns.append(column)
        nic = self._nic_at[landing]
        arrived[going[nic == dst[going]]] = True
        on = nic < 0
        going, landing = going[on], landing[on]
        switch = self._switch_at[landing]
        onward: Ints = self._next[switch, dst[going]].astype(np.int64)
        goes = (onward >= 0) & ((onward != landing) | self._hairpin[switch, dst[going]])
        return onward[goes], going[goes]

    def _packed(self, rows: Links) -> Links:
        """Rows with their links first, and no column that is empty."""
        empty = rows < 0
        if empty[:, :-1].any():
            order = np.argsort(empty, axis=1, kind="stable")
            rows = np.take_along_axis(rows, order, axis=1)
            empty = rows < 0
        rows = np.where(empty, np.int32(len(self.ports)), rows)
        return rows[:, ~empty.all(axis=0)]


def _specificity(rule: Rule) -> tuple[int, int]:
    """Rules that are looked up together; those that win come last."""
    return rule.priority, rule.mask


def _search(keys: Ints, values: Ints) -> tuple[Ints, Ints]:
    """Which values are among the sorted keys, and where."""
    place = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
    found = np.flatnonzero(keys[place] == values)
    return found, place[found]
