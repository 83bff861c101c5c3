"""Tables with queues that hold traffic: every packet that routes send over circuits passes one."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from controllers.epochs import Epoch, duplex
from controllers.gates import Gate, message
from controllers.ofp.state import keyed
from controllers.paths import number_of
from controllers.routes import routes
from controllers.tables import INNER_PORTS, Rule
from controllers.voq import Voqs
from topologies.fabric import Port
from topologies.hybrid import hybrid

FABRIC = hybrid(pods=4, hosts_per_pod=2, uplinks=2)
"""ToR i: hosts at ports 1 and 2, uplinks 3 and 4, at the OCS ports 2 i + 1 and 2 i + 2."""
VOQS = Voqs(FABRIC)
PORTS = st.permutations(range(1, 9)).map(lambda order: [(order[n], order[n + 1]) for n in range(0, 8, 2)])


def of_switch(switch: str, site: str) -> list[int]:
    return [queue.entry for queue in VOQS.all if (queue.switch, queue.site) == (switch, site)]


def test_every_switch_has_queues_for_every_other_as_many_as_uplinks() -> None:
    assert len(VOQS.all) == 4 * 3 * 2
    for switch in ("t0", "t1", "t2", "t3"):
        ports = [port for queue in VOQS.all if queue.switch == switch for port in (queue.entry, queue.exit)]
        assert sorted(ports) == list(range(INNER_PORTS, INNER_PORTS + 12))


def test_two_parallel_circuits_take_two_queues() -> None:
    """t0's uplinks both lead to t1: its two hosts go by one each, and each queue leads on by its own uplink."""
    epoch = Epoch(0, {"o0": duplex([(1, 3), (2, 4)])})
    table = VOQS.realise(routes(FABRIC, epoch))["t0"]
    first, second = of_switch("t0", "t1")
    to = {rule.destination: rule.out_port for rule in table if rule.destination is not None}
    assert {to[number_of(FABRIC.address(Port(f"h{n}", 0)))] for n in (2, 3)} == {first, second}
    assert {(rule.in_port, rule.out_port) for rule in table if rule.in_port is not None} in (
        {(first + 1, 3), (second + 1, 4)},
        {(first + 1, 4), (second + 1, 3)},
    )


@given(PORTS, st.integers(0, 4))
def test_what_crosses_circuits_passes_a_queue_that_leads_where_routes_do(
    pairs: list[tuple[int, int]], lit: int
) -> None:
    epoch = Epoch(0, {"o0": duplex(pair for pair in pairs[:lit] if (pair[0] - 1) // 2 != (pair[1] - 1) // 2)})
    plain = routes(FABRIC, epoch)
    tables = VOQS.realise(plain)
    lit_queues = VOQS.open(tables)
    for switch in ("t0", "t1", "t2", "t3"):
        keyed(tables[switch])  # raises if two rules claim one entry
        onward = {rule.in_port: rule.out_port for rule in tables[switch] if rule.in_port is not None}
        before = {rule.destination: rule.out_port for rule in plain[switch]}
        for nic in FABRIC.all_nics:
            number = number_of(FABRIC.address(nic))
            (rule,) = [rule for rule in tables[switch] if rule.destination == number]
            if FABRIC.peer(nic).node == switch:
                assert rule in plain[switch]
                continue
            (queue,) = [one for one in VOQS.all if one.switch == switch and one.entry == rule.out_port]
            assert queue.site == FABRIC.peer(nic).node
            assert onward.get(queue.exit) == before.get(number)
            assert (queue in lit_queues) == (number in before)


def test_only_queues_whose_circuit_goes_are_closed() -> None:
    """t0-t1 moves to another port of t1, t2-t3 stays: the queues between t0 and t1 hold, the others go on."""
    old, new = (Epoch(n, {"o0": duplex([pair, (5, 7)])}) for n, pair in enumerate([(1, 3), (1, 4)]))
    closed = VOQS.darkening(old, new, VOQS.realise(routes(FABRIC, old)))
    assert {(queue.switch, queue.site) for queue in closed} == {("t0", "t1"), ("t1", "t0")}


def test_an_electrical_way_empties_the_queues_of_circuits_that_are_gone() -> None:
    fabric = hybrid(pods=2, hosts_per_pod=1, uplinks=1, electrical_rate=10**9)
    voqs = Voqs(fabric)
    table = voqs.realise(routes(fabric, Epoch()))["t0"]
    (queue,) = [queue for queue in voqs.all if queue.switch == "t0"]
    assert Rule(500, 3, in_port=queue.exit) in table  # port 3 leads to the core
    assert number_of(fabric.address(Port("h1", 0))) in {rule.destination for rule in table if rule.out_port == 3}


GATE = Gate("t0-q0", 7, 1_000_000, 9014, 24, 500_000, 900_000)


def test_a_closed_gate_reckons_every_frame_longer_than_its_bucket() -> None:
    """struct tcmsg, then the kind, then TCA_TBF_PARMS: two tc_ratespec, limit, depth in ticks of 64 ns."""
    for closed, limit in ((False, 500_000), (True, 900_000)):
        data = message(GATE, closed=closed)
        assert struct.unpack_from("=IH", data) == (len(data), 36)
        assert struct.unpack_from("=i", data, 16 + 4)[0] == 7
        at = data.index(b"tbf\0") + 4 + 8
        _, layer, overhead, _, mpu, rate = struct.unpack_from("=BBHhHI", data, at)
        found_limit, ticks, _ = struct.unpack_from("=III", data, at + 24)
        depth = ticks * 64 * rate / 1e9
        assert (layer, overhead, found_limit) == (1, 24, limit)
        assert depth >= 9014 + 24
        assert (mpu > depth) == closed
    assert struct.unpack_from("=I", message(GATE, closed=False), data.index(b"tbf\0") + 20)[0] == 1_000_000
    with_room = message(GATE, closed=False, room=60)
    assert struct.unpack_from("=I", with_room, with_room.index(b"tbf\0") + 4 + 8 + 24)[0] == 900_060
