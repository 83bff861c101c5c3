"""Which circuits traffic crosses, and who is behind which uplink."""

from __future__ import annotations

from controllers.epochs import Circuit, Epoch, OcsCircuit, duplex
from controllers.loads import CircuitLoads, Load, between_sites, circuit_rate, sites
from topologies.fabric import Fabric, Kind, Port
from topologies.fat_tree import fat_tree
from topologies.hybrid import hybrid

FABRIC = hybrid(hosts_per_pod=2)  # ToR i has OCS ports 2i+1 and 2i+2; h0, h1 in pod 0, h2, h3 in pod 1 and so on


def nic(host: int) -> Port:
    return Port(f"h{host}", 0)


def test_bytes_are_charged_to_every_circuit_on_the_way() -> None:
    loads = CircuitLoads(FABRIC, Epoch(0, {"o0": duplex([(1, 3), (4, 5)])}), seed=1)  # 0-1, 1-2
    found = loads.by_circuit([Load(nic(0), nic(2), 10), Load(nic(1), nic(4), 5), Load(nic(0), nic(1), 99)])
    assert found == {OcsCircuit("o0", Circuit(1, 3)): 15, OcsCircuit("o0", Circuit(4, 5)): 5}


def test_what_has_no_path_and_what_is_over_crosses_nothing() -> None:
    loads = CircuitLoads(FABRIC, Epoch(0, {"o0": duplex([(1, 3)])}), seed=1)
    assert loads.by_circuit([Load(nic(0), nic(7), 10), Load(nic(0), nic(2), 0)]) == {}


def test_fabrics_without_circuits_have_no_loads() -> None:
    assert CircuitLoads(fat_tree(k=4), Epoch(), seed=1).by_circuit([Load(nic(0), nic(9), 10)]) == {}


def test_a_host_belongs_to_the_nearest_node_that_is_wired_to_an_ocs() -> None:
    assert sites(FABRIC) == {f"h{host}": f"t{host // 2}" for host in range(8)}
    assert sites(fat_tree(k=4)) == {}


def test_hosts_at_the_ocs_itself_and_switches_between() -> None:
    fabric = Fabric("flat")
    fabric.add_switch("o0", Kind.OCS)
    fabric.add_switch("t0", Kind.TOR)
    fabric.add_switch("a0", Kind.EPS)
    for host in ("h0", "h1"):
        fabric.add_host(host)
    fabric.connect(Port("h0", 0), Port("o0", 1), rate=4)
    fabric.connect(Port("h1", 0), Port("t0", 1), rate=4)
    fabric.connect(Port("t0", 2), Port("a0", 1), rate=4)
    fabric.connect(Port("a0", 2), Port("o0", 2), rate=3)
    assert sites(fabric.finish()) == {"h0": "h0", "h1": "a0"}
    assert circuit_rate(fabric, "o0", Circuit(1, 2)) == 3


def test_demand_between_sites_adds_hosts_up_and_leaves_out_what_stays() -> None:
    demand = {("h0", "h2"): 1, ("h1", "h3"): 2, ("h0", "h1"): 50, ("h2", "h0"): 4, ("h9", "h0"): 7}
    assert between_sites(demand, sites(FABRIC)) == {("t0", "t1"): 3, ("t1", "t0"): 4}
