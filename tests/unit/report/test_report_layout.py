"""Fabrics on a drawing: layers in order, nothing over anything else, and boxes for many hosts."""

from __future__ import annotations

from itertools import pairwise

import pytest

from emu.report.layout import Layout, TooLargeError, arrange
from topologies import registry
from topologies.fabric import Fabric, Kind, Port


def drawn(kind: str, **values: object) -> tuple[Fabric, Layout]:
    fabric = registry.build(kind, **values)
    return fabric, arrange(fabric)


@pytest.mark.parametrize("kind", registry.names())
def test_nothing_overlaps_and_all_is_inside(kind: str) -> None:
    fabric, layout = drawn(kind)
    rows: dict[float, list[tuple[float, float]]] = {}
    for box in layout.boxes.values():
        rows.setdefault(box.y, []).append((box.x - box.width / 2, box.x + box.width / 2))
        assert 0 < box.y < layout.height
    for spans in rows.values():
        assert all(right < left for (_, right), (left, _) in pairwise(sorted(spans)))
        assert min(left for left, _ in spans) >= 0
        assert max(right for _, right in spans) <= layout.width
    assert set(layout.boxes) == {node.name for node in fabric.nodes} or len(fabric.hosts) > 96


def test_hosts_are_at_the_bottom_and_ocss_on_top() -> None:
    fabric, layout = drawn("hybrid", pods=4, electrical_rate=10**11)
    height = {kind: {layout.boxes[node.name].y for node in fabric.of_kind(kind)} for kind in Kind}
    (hosts,), (tors,), (core,), (optics,) = (height[kind] for kind in (Kind.HOST, Kind.TOR, Kind.EPS, Kind.OCS))
    assert hosts > tors > core > optics
    assert [title for title, _ in layout.layers] == ["hosts", "ToRs", "EPSs", "OCSs"]


def test_an_ocs_has_its_ports_side_by_side_in_order() -> None:
    _, layout = drawn("hybrid", pods=4, uplinks=2)
    ports = layout.boxes["o0"].ports
    assert ports is not None
    assert list(ports) == list(range(1, 9))
    assert list(ports.values()) == sorted(ports.values())
    assert len(set(ports.values())) == 8


def test_pods_stand_apart() -> None:
    _, layout = drawn("fat-tree", k=4)
    places = [layout.boxes[f"h{number}"].x for number in range(16)]
    gaps = [right - left for left, right in pairwise(places)]
    assert min(gaps[3::4]) > max(gap for at, gap in enumerate(gaps) if at % 4 != 3)


def test_many_hosts_are_one_box_at_each_switch() -> None:
    fabric, layout = drawn("fat-tree", k=8)
    assert "h0" not in layout.boxes
    assert layout.stands_for["h0"] == "t0.hosts"
    boxes = [box for box in layout.boxes.values() if box.kind == "hosts"]
    assert sum(box.count for box in boxes) == len(fabric.hosts) == 128
    assert layout.boxes["t0.hosts"].x == pytest.approx(layout.boxes["t0"].x, abs=30)


def test_a_fabric_without_tiers_is_layered_by_hops() -> None:
    fabric = Fabric("plain")
    for name in ("t0", "t1", "core"):
        fabric.add_switch(name, Kind.EPS if name == "core" else Kind.TOR)
    for number in range(4):
        fabric.add_host(f"h{number}")
        fabric.connect(Port(f"h{number}", 0), Port(f"t{number // 2}", number % 2 + 1), rate=10**9)
    for number in range(2):
        fabric.connect(Port(f"t{number}", 3), Port("core", number + 1), rate=10**9)
    layout = arrange(fabric.finish())
    assert layout.boxes["h0"].y > layout.boxes["t0"].y == layout.boxes["t1"].y > layout.boxes["core"].y


def test_what_no_page_can_show_is_refused_with_its_size() -> None:
    with pytest.raises(TooLargeError, match=r"\d+ nodes are too many to draw"):
        drawn("fat-tree", k=22)
