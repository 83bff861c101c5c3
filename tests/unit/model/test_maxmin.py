"""Max-min fair rates: by hand, by the property that defines them, and against exact filling in fractions."""

from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.model.maxmin import fill, padded, rates


@st.composite
def networks(draw: st.DrawFn) -> tuple[list[list[int]], list[int]]:
    """Up to 12 flows over up to 8 links of small whole capacities, 0 included."""
    links = draw(st.integers(1, 8))
    capacities = draw(st.lists(st.integers(0, 12), min_size=links, max_size=links))
    path = st.lists(st.integers(0, links - 1), min_size=1, max_size=links, unique=True)
    return draw(st.lists(path, min_size=1, max_size=12)), capacities


def exact(paths: list[list[int]], capacities: list[int]) -> list[Fraction]:
    """One link at a time: the one whose flows get least is full first, in exact arithmetic."""
    found: dict[int, Fraction] = {}
    while len(found) < len(paths):
        shares = {}
        for link, capacity in enumerate(capacities):
            users = [flow for flow, path in enumerate(paths) if link in path]
            waiting = [flow for flow in users if flow not in found]
            if waiting:
                used = sum((found[flow] for flow in users if flow in found), Fraction(0))
                shares[link] = ((capacity - used) / len(waiting), waiting)
        share, waiting = min(shares.values(), key=lambda entry: entry[0])
        found.update(dict.fromkeys(waiting, share))
    return [found[flow] for flow in range(len(paths))]


def test_textbook_example() -> None:
    # After Bertsekas and Gallager, 6.5.2: the long flow is held by link 0, and the last one gains what it leaves.
    assert rates([[0, 1], [0], [0], [1]], [3.0, 5.0]).tolist() == pytest.approx([1, 1, 1, 4])


def test_parking_lot() -> None:
    assert rates([[0, 1, 2], [0], [1], [2]], [1.0, 1.0, 1.0]).tolist() == pytest.approx([0.5] * 4)


def test_dependent_bottlenecks_settle_one_after_the_other() -> None:
    paths = [[0], [0, 1], [1, 2], [2, 3], [3]]
    assert rates(paths, [2.0, 4.0, 8.0, 16.0]).tolist() == pytest.approx([1, 1, 3, 5, 11])


def test_a_flow_over_no_link_is_unbounded_and_a_dead_link_carries_nothing() -> None:
    assert rates([[], [0], [0, 1]], [0.0, 4.0]).tolist() == [np.inf, 0.0, 0.0]


def test_no_flows() -> None:
    assert rates([], [1.0]).shape == (0,)


def test_impossible_input_is_refused() -> None:
    with pytest.raises(ValueError, match="link 1 has the negative capacity"):
        rates([[0]], [1.0, -1.0])
    with pytest.raises(IndexError, match="flow 1 crosses"):
        rates([[0], [3]], [1.0, 1.0])
    with pytest.raises(IndexError, match="flow 0 crosses"):
        rates([[-1]], [1.0])


def test_padding_is_one_past_the_last_link() -> None:
    assert padded([[2], [0, 1], []], 3).tolist() == [[2, 3], [0, 1], [3, 3]]


@given(networks())
def test_equals_exact_filling(network: tuple[list[list[int]], list[int]]) -> None:
    paths, capacities = network
    assert rates(paths, capacities) == pytest.approx([float(rate) for rate in exact(paths, capacities)], abs=1e-9)


@given(networks())
def test_no_link_above_capacity_and_every_flow_has_a_bottleneck(network: tuple[list[list[int]], list[int]]) -> None:
    paths, capacities = network
    rate = rates(paths, capacities)
    load = [sum(rate[flow] for flow, path in enumerate(paths) if link in path) for link in range(len(capacities))]
    fastest = [
        max((rate[flow] for flow, path in enumerate(paths) if link in path), default=0.0)
        for link in range(len(capacities))
    ]
    assert all(used <= capacity + 1e-9 for used, capacity in zip(load, capacities, strict=True))
    for flow, path in enumerate(paths):
        assert any(load[link] >= capacities[link] - 1e-9 and rate[flow] >= fastest[link] - 1e-9 for link in path)


@given(networks(), st.lists(st.integers(1, 4), min_size=12, max_size=12))
def test_a_row_stands_for_equal_flows(network: tuple[list[list[int]], list[int]], times: list[int]) -> None:
    paths, capacities = network
    counts = times[: len(paths)]
    limits = np.array(capacities, dtype=np.float64)
    grouped = fill(padded(paths, len(capacities)), limits, np.array(counts, dtype=np.float64))
    one_by_one = rates([path for path, count in zip(paths, counts, strict=True) for _ in range(count)], limits)
    assert np.repeat(grouped, counts) == pytest.approx(one_by_one, abs=1e-9)


@given(networks(), st.randoms(use_true_random=False))
def test_the_order_of_flows_does_not_matter(network: tuple[list[list[int]], list[int]], random: Random) -> None:
    paths, capacities = network
    order = list(range(len(paths)))
    random.shuffle(order)
    shuffled = rates([paths[flow] for flow in order], capacities)
    assert shuffled == pytest.approx(rates(paths, capacities)[order], abs=1e-9)
