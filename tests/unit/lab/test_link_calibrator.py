"""The calibrator on made-up measurements: whichever link is slow, it is the one that is named."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import cast

import pytest

from controllers.circuits import epoch
from controllers.epochs import Epoch
from controllers.paths import Forwarder
from controllers.routes import routes
from emu.lab.calibrate import GOOD, LinkCalibrator, Pair, Rates
from emu.lab.counters import emulated_rates
from topologies import registry
from topologies.fabric import Fabric, Port

RATE, EFFICIENCY = 10_000_000, 0.99
TREE = registry.build("fat-tree", k=4, rate=RATE)


class MadeUp:
    """What flows would show if some links were slow; a share `noise` of them is disturbed besides."""

    def __init__(self, fabric: Fabric, lit: Epoch, slow: Mapping[Port, float], noise: float = 0.0) -> None:
        self.rounds: list[Sequence[Pair]] = []
        self.paths = Forwarder(fabric, routes(fabric, lit))
        self._fabric, self._slow, self._noise, self._random = fabric, slow, noise, random.Random(7)

    def measure(self, pairs: Sequence[Pair], _warm_up: float, _window: float) -> list[float]:
        """As Rates.measure."""
        self.rounds.append(pairs)
        return [self._goodput(pair) for pair in pairs]

    def _goodput(self, pair: Pair) -> float:
        path = [port for port in self.paths.path(*pair) or () if port.node != "o0"]
        rate = min(self._fabric.link(port).rate * self._slow.get(port, 1.0) for port in path)
        disturbed = self._random.random() < self._noise
        return rate * EFFICIENCY * (self._random.uniform(0.8, 0.96) if disturbed else 1.0)


def calibrate(
    fabric: Fabric, slow: Mapping[Port, float], noise: float = 0.0, lit: Epoch | None = None
) -> tuple[LinkCalibrator, MadeUp]:
    """A calibrator after its rounds."""
    lit = lit or Epoch()
    made_up = MadeUp(fabric, lit, slow, noise)
    calibrator = LinkCalibrator(fabric, cast("Rates", made_up), emulated_rates(fabric, 1.0), EFFICIENCY, 9038)
    calibrator.run(routes(fabric, lit))
    return calibrator, made_up


def slow_rows(calibrator: LinkCalibrator) -> list[str]:
    """The links that the calibration's table shows as slow."""
    return [row.link for row in calibrator.report({}) if row.ratio is not None and row.ratio < GOOD]


@pytest.mark.parametrize("port", list(TREE.transmitters()), ids=str)
def test_any_slow_link_of_a_fat_tree_is_named(port: Port) -> None:
    """It alone, with its rate: links that can only be loaded through it are neither blamed nor shown as slow."""
    calibrator, made_up = calibrate(TREE, {port: 0.7})
    assert calibrator.blamed() == [{port}]
    assert slow_rows(calibrator) == [str(port)]
    assert calibrator.best[port] == pytest.approx(0.7)
    assert len(made_up.rounds) <= 8


def test_two_slow_links_are_both_named() -> None:
    """One in the core, one at a host elsewhere."""
    slow = {Port("a2", 3): 0.7, Port("h9", 0): 0.5}
    calibrator, _ = calibrate(TREE, slow)
    assert sorted(calibrator.blamed(), key=sorted) == [{Port("a2", 3)}, {Port("h9", 0)}]


def test_without_a_slow_link_few_rounds_clear_all() -> None:
    """And no two flows of a round share a link."""
    calibrator, made_up = calibrate(TREE, {})
    assert calibrator.blamed() == []
    assert calibrator.best == pytest.approx(dict.fromkeys(TREE.transmitters(), 1.0))
    assert len(made_up.rounds) <= 3
    for pairs in made_up.rounds:
        links = [port for pair in pairs for port in made_up.paths.path(*pair) or ()]
        assert len(links) == len(set(links))


def test_single_disturbed_flows_blame_nobody() -> None:
    """One flow in twenty is low by chance; the further flows over its links are not."""
    calibrator, made_up = calibrate(TREE, {}, noise=0.05)
    assert len(made_up.rounds) > 2
    assert calibrator.blamed() == []
    assert slow_rows(calibrator) == []


def test_links_that_nothing_parts_are_blamed_together() -> None:
    """Two pods of one host and one circuit: whatever crosses the one uplink crosses the other links on the way too."""
    fabric = registry.build("hybrid", pods=2, hosts_per_pod=1, uplinks=1, rate=RATE)
    slow = {Port("t0", 2): 0.7}
    calibrator, _ = calibrate(fabric, slow, lit=epoch(fabric, 0, {"o0": ["t0-t1"]}))
    assert calibrator.blamed() == [{Port("h0", 0), Port("t0", 2), Port("t1", 1)}]


def test_a_faster_link_is_not_blamed_for_a_slower_one() -> None:
    """Uplinks of twice the rate are not filled by one flow: only the links that bind can be suspected."""
    fabric = registry.build("hybrid", pods=2, hosts_per_pod=2, uplinks=1, rate=RATE, uplink_rate=2 * RATE)
    calibrator, _ = calibrate(fabric, {Port("h0", 0): 0.7}, lit=epoch(fabric, 0, {"o0": ["t0-t1"]}))
    assert calibrator.blamed() == [{Port("h0", 0)}]
    assert Port("t0", 3) not in calibrator.best
