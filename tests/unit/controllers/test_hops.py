"""Hops follow tables as the forwarder does, for all pairs at once."""

import numpy as np
import pytest

from controllers.circuits import epoch
from controllers.epochs import Circuit, Epoch
from controllers.hops import Hops
from controllers.paths import Forwarder
from controllers.routes import routes
from controllers.tables import Rule, Tables
from topologies.fabric import Fabric
from topologies.fat_tree import fat_tree
from topologies.hybrid import hybrid


def assert_same(fabric: Fabric, tables: Tables) -> None:
    hops, forwarder, nics = Hops(fabric, tables), Forwarder(fabric, tables), fabric.all_nics
    pairs = [(a, b) for a in range(len(nics)) for b in range(len(nics)) if nics[a].node != nics[b].node]
    ends = np.array(pairs, dtype=np.int64)
    rows = hops.paths(ends[:, 0], ends[:, 1])
    for (src, dst), row in zip(pairs, rows.tolist(), strict=True):
        found = tuple(hops.ports[link] for link in row if link < len(hops.ports))
        assert found == (forwarder.path(nics[src], nics[dst]) or ())


def test_fat_trees() -> None:
    for fabric in (fat_tree(k=4), fat_tree(hosts=5, nics=3, oversubscription=2), fat_tree(k=4, hosts=2)):
        assert_same(fabric, routes(fabric, Epoch()))


@pytest.mark.parametrize("core", [None, 10**9])
def test_circuits(core: int | None) -> None:
    fabric = hybrid(hosts_per_pod=2, nics=2, ocses=2, electrical_rate=core)
    one_way = Epoch(0, {"o0": frozenset({Circuit(1, 2), Circuit(2, 3), Circuit(3, 1)})})
    for lit in (epoch(fabric, 0, {"o0": ["t0-t1"], "o1": ["t1-t2", "t3-t0"]}), Epoch(), one_way):
        assert_same(fabric, routes(fabric, lit))


def test_tables_that_circle_turn_back_or_miss() -> None:
    fabric = fat_tree(k=4)
    tables = dict(routes(fabric, Epoch()))
    tables["a0"] = tuple(Rule(rule.priority, 1, rule.destination, rule.mask) for rule in tables["a0"])
    tables["c3"] = ()
    tables["t5"] = (Rule(400, 3, 0, 0), *tables["t5"])
    assert_same(fabric, tables)


def test_no_pairs() -> None:
    fabric = fat_tree(k=4)
    nothing = np.empty(0, dtype=np.int64)
    assert Hops(fabric, routes(fabric, Epoch())).paths(nothing, nothing).shape == (0, 0)
