"""How long flows stand still, from made-up reads."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest

from emu.lab.service import ServiceWatch
from emu.packet.lanes import Lane, LaneKey, Part
from topologies.fabric import Port

DARK, LIT = 10.0, 10.3
"""Wall seconds: when circuits are asked to go dark, and when the new ones were acknowledged."""


class Followed:
    """Stands for the lanes of a run: reads come when the test says so."""

    def __init__(self, *lanes: Lane) -> None:
        self.lanes = lanes

    def __iter__(self) -> Iterator[Lane]:
        return iter(self.lanes)

    def follow(self, lane: Lane, follower: Callable[[float], None] | None) -> None:
        """See Lanes."""
        lane.follower = follower


@pytest.fixture
def lane() -> Iterator[Lane]:
    """A lane with a transfer on it that is half received; its last read was long ago."""
    with socket.socket() as sender:
        made = Lane(LaneKey(Port("h0", 0), Port("h1", 0), ""), sender)
        part = Part(1000, lambda part: None)
        part.first_byte = 9.0
        made.reading.append(part)
        made.last_read = 9.9
        yield made


def watch(lane: Lane) -> ServiceWatch:
    service = ServiceWatch(Followed(lane))  # type: ignore[arg-type]
    service.begin(lambda key: True, DARK)
    return service


def read(lane: Lane, *instants: float) -> None:
    for instant in instants:
        if lane.follower is not None:
            lane.follower(instant)


def gaps(lane: Lane, before: tuple[float, ...], after: tuple[float, ...], tdf: float = 1.0) -> list[float]:
    """The gaps for these reads before and after the acknowledgement of the new circuits."""
    service = watch(lane)
    read(lane, *before)
    service.darkened()
    service.lit(LIT)
    read(lane, *after)
    return [found.gap for found in service.end(tdf)]


def test_the_gap_is_between_the_last_read_before_and_the_first_after(lane: Lane) -> None:
    assert gaps(lane, (9.98, 9.999), (10.35, 10.36)) == pytest.approx([0.351])
    assert lane.follower is None


def test_it_is_in_modelled_seconds(lane: Lane) -> None:
    assert gaps(lane, (9.99,), (10.39,), tdf=20.0) == pytest.approx([0.02])


def test_what_a_queue_behind_the_circuit_still_gives_makes_it_shorter(lane: Lane) -> None:
    assert gaps(lane, (9.99, 10.05, 10.08), (10.4,)) == pytest.approx([0.32])


def test_without_a_read_in_the_window_the_last_one_before_it_counts(lane: Lane) -> None:
    assert gaps(lane, (), (10.4,)) == pytest.approx([0.5])


def test_reads_after_the_first_that_came_back_count_no_more(lane: Lane) -> None:
    """A later pause has other reasons."""
    assert gaps(lane, (9.99,), (10.31, 11.9)) == pytest.approx([0.32])


def test_a_gap_that_begins_and_ends_before_the_change_is_none_of_it(lane: Lane) -> None:
    lane.last_read = 9.0
    assert gaps(lane, (9.99, 10.0), (10.35,)) == pytest.approx([0.35])


def test_a_flow_that_never_comes_back_has_no_figure(lane: Lane) -> None:
    assert gaps(lane, (9.99,), ()) == []


def test_a_lane_without_a_transfer_is_not_affected(lane: Lane) -> None:
    lane.reading.clear()
    assert gaps(lane, (9.99,), (10.35,)) == []


def test_a_transfer_that_was_yet_to_begin_is_not_affected(lane: Lane) -> None:
    lane.reading[0].first_byte = 0.0
    assert gaps(lane, (9.99,), (10.35,)) == []


def test_a_transfer_whose_rest_was_past_the_dark_is_not_affected(lane: Lane) -> None:
    """It ended before the new circuits; what came afterwards is another's."""
    lane.reading[0].end = 10.1
    assert gaps(lane, (9.99,), (10.35,)) == []


def test_lanes_on_other_ways_are_left_alone(lane: Lane) -> None:
    service = ServiceWatch(Followed(lane))  # type: ignore[arg-type]
    service.begin(lambda key: key.dst == Port("h9", 0), DARK)
    assert lane.follower is None
    service.darkened()
    assert service.end(1.0) == []
