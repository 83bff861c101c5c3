"""Which NICs a transfer goes over, and how many bytes over each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.loads import Load
from emu.stripes import loads, stripes
from topologies.fabric import Fabric, FabricError, Kind, Port
from workloads.protocol import Endpoint, Transfer


def hosts(*nics: int) -> Fabric:
    fabric = Fabric("hosts")
    fabric.add_switch("t0", Kind.TOR)
    for number, count in enumerate(nics):
        fabric.add_host(f"h{number}")
        for nic in range(count):
            fabric.connect(Port(f"h{number}", nic), fabric.next_port("t0"), rate=1)
    return fabric.finish()


def pairs(fabric: Fabric, src: int | None, dst: int | None, size: int = 1000) -> list[tuple[int, int]]:
    transfer = Transfer("a", Endpoint("h0", src), Endpoint("h1", dst), size)
    return [(stripe.src.number, stripe.dst.number) for stripe in stripes(fabric, transfer)]


def test_named_nics_are_used_alone() -> None:
    assert pairs(hosts(2, 4), 1, 3) == [(1, 3)]


def test_nic_i_sends_to_nic_i_and_the_shorter_side_goes_around() -> None:
    assert pairs(hosts(2, 2), None, None) == [(0, 0), (1, 1)]
    assert pairs(hosts(3, 2), None, None) == [(0, 0), (1, 1), (2, 0)]
    assert pairs(hosts(1, 3), None, None) == [(0, 0), (0, 1), (0, 2)]


def test_one_named_end_meets_all_nics_of_the_other() -> None:
    assert pairs(hosts(2, 3), 1, None) == [(1, 0), (1, 1), (1, 2)]
    assert pairs(hosts(3, 2), None, 1) == [(0, 1), (1, 1), (2, 1)]


def test_bytes_that_do_not_divide_go_first() -> None:
    transfer = Transfer("a", Endpoint("h0"), Endpoint("h1"), 11)
    assert [stripe.bytes for stripe in stripes(hosts(4, 4), transfer)] == [3, 3, 3, 2]


def test_stripes_without_bytes_are_left_out_but_for_one() -> None:
    assert pairs(hosts(4, 4), None, None, 2) == [(0, 0), (1, 1)]
    assert pairs(hosts(4, 4), None, None, 0) == [(0, 0)]


@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 100))
def test_stripes_add_up_and_never_share_both_nics(sources: int, sinks: int, size: int) -> None:
    parts = stripes(hosts(sources, sinks), Transfer("a", Endpoint("h0"), Endpoint("h1"), size))
    sizes = [part.bytes for part in parts]
    assert sum(sizes) == size
    assert max(sizes) - min(sizes) <= 1
    assert len({(part.src, part.dst) for part in parts}) == len(parts)


def test_unknown_hosts_and_nics_are_refused() -> None:
    with pytest.raises(FabricError, match=r"h0\.5: host h0 has NICs 0 to 1"):
        pairs(hosts(2, 2), 5, None)
    with pytest.raises(FabricError, match="h1"):
        pairs(hosts(2), 0, 0)


def test_loads_spread_what_is_left_and_leave_out_what_is_over_or_local() -> None:
    fabric = hosts(2, 2)
    outstanding = [
        (Transfer("a", Endpoint("h0"), Endpoint("h1"), 100), 11),
        (Transfer("b", Endpoint("h0"), Endpoint("h1"), 100), 0),
        (Transfer("c", Endpoint("h0", 0), Endpoint("h0", 1), 100), 100),
    ]
    assert list(loads(fabric, outstanding)) == [
        Load(Port("h0", 0), Port("h1", 0), 6),
        Load(Port("h0", 1), Port("h1", 1), 5),
    ]
