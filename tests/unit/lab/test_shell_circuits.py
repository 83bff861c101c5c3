"""Circuits set by hand: what is asked of the controller, and how it is told."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.channel import Aborted, Committed, Prepare, Staged, Stamps
from controllers.circuits import epoch
from controllers.epochs import Circuit, CircuitError, Epoch
from controllers.routes import routes
from emu.lab.counters import PortCount
from emu.lab.errors import LabError
from emu.lab.shell_circuits import Changed, Optics, described, named
from emu.lab.shell_tables import changed, circuits, counters, epochs
from emu.scale import Scale
from topologies import registry
from topologies.fabric import Fabric, Port

DARK = 0.5
SCALE = Scale(sigma=400, beta=20_000)


@pytest.fixture
def fabric() -> Fabric:
    """Four pods of one host, two uplinks each into o0: t0 has its ports 1 and 2, t1 3 and 4, and so on."""
    return registry.build("hybrid", pods=4, hosts_per_pod=1, uplinks=2)


class Controller:
    """Stands for controller and client: remembers what it was asked to change and says that it was done."""

    def __init__(self, fabric: Fabric, end: str = "") -> None:
        self.fabric, self.client, self.end = fabric, self, end
        self.asked: list[Prepare] = []
        self.holding = None
        self.dpids = {name: number for number, name in enumerate(("t0", "t1", "t2", "t3", "o0"), start=1)}

    def tables(self, wanted: Epoch) -> Any:  # noqa: ANN401 - Tables
        """As Control."""
        return routes(self.fabric, wanted, 1)

    def realised(self, wanted: Epoch) -> Any:  # noqa: ANN401 - Tables
        """As Control, for a fabric without queues."""
        return self.tables(wanted)

    def name_of(self, change: Any) -> str:  # noqa: ANN401 - EpochChange
        """As Control."""
        return f"{change.epoch.number}#1"

    def blame(self, reason: str, dpid: int | None) -> str:
        """As Control."""
        return f"{dpid}: {reason}"

    def prepare(self, change: str, **what: Any) -> None:  # noqa: ANN401 - as ControllerClient
        """As ControllerClient."""
        self.asked.append(Prepare(change, **what))

    def wait_change(self, change: str, timeout: float) -> Committed | Aborted:
        """As ControllerClient; a change goes dark after 1 ms, and is lit 502 ms after its start."""
        assert timeout > DARK
        if self.end:
            return Aborted(change, "restored", self.end, 5)
        dark = {5: Stamps(1_000_000, 2_000_000, True)} if self.asked[-1].dark else {}
        light = {5: Stamps(501_000_000, 503_000_000, True)} if self.asked[-1].light else {}
        return Committed(change, Staged(change, "dark", 1_000_000, dark), Staged(change, "light", 501_000_000, light))


def optics(fabric: Fabric, *pairs: str, end: str = "") -> tuple[Optics, Controller]:
    controller = Controller(fabric, end)
    return Optics(controller, epoch(fabric, 0, {"o0": pairs}), DARK), controller  # type: ignore[arg-type]


def lit(one: Optics, fabric: Fabric) -> list[str]:
    return described(fabric, "o0", one.epoch.circuits("o0"))


def test_lighting_takes_the_next_ports_that_are_dark(fabric: Fabric) -> None:
    one, controller = optics(fabric, "t0-t1")
    done = one.light("o0", ["t0-t2"])
    assert lit(one, fabric) == ["t0:2-t1:2", "t0:3-t2:2"]
    assert (done.epoch.number, done.lit, done.gone, done.dark) == (1, 2, 0, None)
    assert done.took == pytest.approx(0.502)
    (asked,) = controller.asked
    assert (asked.change, asked.at_ns, asked.reconfiguration_ns, asked.dark) == ("1#1", None, 500_000_000, {})
    assert {(rule.in_port, rule.out_port) for rule in asked.light[5].add} == {(2, 5), (5, 2)}


def test_lighting_refuses_ports_in_use_and_changes_nothing(fabric: Fabric) -> None:
    one, controller = optics(fabric, "t0-t1", "t0-t2")
    with pytest.raises(CircuitError, match="more circuits name t0 than the 2 uplinks"):
        one.light("o0", ["t0-t3"])
    with pytest.raises(CircuitError, match="port 1 is used more than one circuit"):
        one.light("o0", ["1-8"])
    assert (one.epoch.number, controller.asked) == (0, [])


def test_replacing_changes_everything_in_one_epoch_with_its_dark_time(fabric: Fabric) -> None:
    one, controller = optics(fabric, "t0-t1")
    done = one.replace("o0", ["t0-t2", "t1-t3"])
    assert lit(one, fabric) == ["t0:2-t2:2", "t1:2-t3:2"]
    assert (done.lit, done.gone) == (4, 2)
    assert done.dark == pytest.approx(0.502)
    assert {(rule.in_port, rule.out_port) for rule in controller.asked[0].dark[5].delete} == {(1, 3), (3, 1)}


@pytest.mark.parametrize(
    ("which", "left"),
    [
        ("t0-t1", ["t0:3-t2:2"]),
        ("t1-t0", ["t0:3-t2:2"]),
        ("t0:2-t1:2", ["t0:3-t2:2"]),
        ("1-3", ["t0:3-t2:2"]),
        ("t0:3", ["t0:2-t1:2"]),
        ("t2", ["t0:2-t1:2"]),
        ("t0", []),
        ("all", []),
    ],
)
def test_darkening_takes_what_is_named(fabric: Fabric, which: str, left: list[str]) -> None:
    one, _ = optics(fabric, "t0-t1", "t0-t2")
    done = one.darken("o0", [which])
    assert lit(one, fabric) == left
    assert (done.lit, done.dark) == (0, None)
    assert done.took == pytest.approx(0.001)


def test_darkening_what_is_not_lit_is_refused_with_what_is(fabric: Fabric) -> None:
    one, _ = optics(fabric, "t0-t1")
    with pytest.raises(CircuitError, match=r"'t2-t3' names; lit are t0:2-t1:2"):
        one.darken("o0", ["t2-t3"])
    one.darken("o0", ["all"])
    with pytest.raises(CircuitError, match="it is all dark"):
        one.darken("o0", ["all"])


def test_a_change_that_changes_nothing_is_refused(fabric: Fabric) -> None:
    one, _ = optics(fabric, "t0-t1")
    with pytest.raises(CircuitError, match="no circuit changes"):
        one.replace("o0", ["t1-t0"])


def test_moving_to_a_set_darkens_what_it_does_not_name(fabric: Fabric) -> None:
    one, _ = optics(fabric, "t0-t1", "t0-t2")
    one.move_to(epoch(fabric, 7, {"o0": ["t2-t3"]}).matchings)
    assert lit(one, fabric) == ["t2:2-t3:2"]
    one.move_to({})
    assert (lit(one, fabric), one.epoch.number) == ([], 2)


def test_circuits_of_one_way_are_kept_and_shown_as_such(fabric: Fabric) -> None:
    one, _ = optics(fabric, "t0-t1")
    one.epoch = Epoch(0, {"o0": one.epoch.circuits("o0") | {Circuit(5, 7)}})
    assert lit(one, fabric) == ["t0:2-t1:2", "t2:2>t3:2"]
    one.light("o0", ["2-4"])
    assert lit(one, fabric) == ["t0:2-t1:2", "t0:3-t1:3", "t2:2>t3:2"]
    assert named(fabric, "o0", one.epoch.circuits("o0"), "t2-t3") == {Circuit(5, 7)}


def test_an_abort_leaves_the_old_epoch_and_names_who_is_to_blame(fabric: Fabric) -> None:
    one, _ = optics(fabric, "t0-t1", end="no reply")
    with pytest.raises(LabError, match=r"aborted \(restored\): 5: no reply"):
        one.light("o0", ["t2-t3"])
    assert one.epoch.number == 0


# -- how it is shown -------------------------------------------------------------------------------------------------


def test_a_change_is_told_as_modelled_and_as_it_was_here() -> None:
    both = Changed(Epoch(3), 4, 2, 0.5, 0.502, 0.503)
    assert changed(both, SCALE) == (
        "epoch 3: 4 lit, 2 gone (one-way); control plane: dark for 10.04 ms (here 502 ms), asked 10 ms (here 500 ms)\n"
    )
    assert changed(Changed(Epoch(3), 0, 2, 0.5, None, 0.001), SCALE).endswith(
        "control plane: done after 20 us (here 1 ms)\n"
    )


def test_circuits_and_sets_are_shown_by_ocs(fabric: Fabric) -> None:
    first, second = epoch(fabric, 0, {"o0": ["t0-t1"]}), epoch(fabric, 1, {})
    assert circuits(fabric, first) == "epoch 0\no0: t0:2-t1:2\n"
    assert epochs(fabric, Epoch(5, first.matchings), [first, second]) == (
        "epoch 5\n  set 0 (lit now): o0: t0:2-t1:2\n  set 1: o0: all dark\n"
    )


def test_counters_are_columns_of_the_ports_that_are_asked_for(fabric: Fabric) -> None:
    counts = {Port("h0", 0): PortCount(90_000, 10, 3, 20_000_000), Port("o0", 1): PortCount(5, 1)}
    assert counters(fabric, counts, {"h0", "o0"}).splitlines() == [
        "port  to    bytes  frames  queue drops  rate here",
        "h0:0  t0:1  90000      10            3  20 Mb/s",
        "o0:1  t0:2      5       1            0  not shaped",
    ]
    assert len(counters(fabric, counts, {"h0"}).splitlines()) == 2
