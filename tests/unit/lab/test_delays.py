"""Link delays: who may ask for them, where a lab makes them, and the netlink requests that do."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from emu import api
from emu.errors import InputError
from emu.lab import delays, shaping
from emu.lab.delays import can_delay, emulated_delays
from emu.lab.errors import LabError
from emu.lab.shaping import Shape
from topologies import registry
from topologies.fabric import Fabric, Kind, Port

SCENARIO = """\
emulation: {{scale: {{sigma: 400, beta: 20000}}{more}}}
fabrics:
  - kind: fat-tree
    k: 2
  - kind: fat-tree
    name: far
    k: 2
    delay: 5us
workload:
  kind: collectives
  steps:
    - {{name: ring, collective: all-reduce, size: 64MiB}}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Callable[[str], Path]:
    def write(more: str = "") -> Path:
        path = tmp_path / "far.yaml"
        path.write_text(SCENARIO.format(more=more))
        return path

    return write


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool | None], None]:
    """Make this a machine with netem, without it, or one where that cannot be found out."""
    return lambda able: monkeypatch.setattr(delays, "can_delay", lambda: able)


def test_without_netem_a_delay_is_refused_with_its_line(scenario: Any, machine: Any) -> None:  # noqa: ANN401
    machine(False)
    with pytest.raises(InputError, match="delay: best-effort") as refused:
        api.check(scenario())
    assert (refused.value.line, refused.value.key) == (8, ("fabrics", 1, "delay"))
    assert "has a delay of 5 us, and this kernel has no netem" in refused.value.problem


@pytest.mark.parametrize("able", [True, None])
def test_with_netem_or_where_none_can_say_it_is_not_refused(scenario: Any, machine: Any, able: bool | None) -> None:  # noqa: ANN401
    machine(able)
    assert len(api.check(scenario()).fabrics) == 2


def test_best_effort_is_never_refused(scenario: Any, machine: Any) -> None:  # noqa: ANN401
    machine(False)
    assert len(api.check(scenario(", delay: best-effort")).fabrics) == 2


def test_a_scenario_without_delays_asks_nothing_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "near.yaml"
    path.write_text(SCENARIO.format(more="").replace("    delay: 5us\n", ""))
    monkeypatch.setattr(delays, "can_delay", lambda: pytest.fail("the machine was asked"))
    assert len(api.check(path).fabrics) == 2


def optical(*cables: float) -> Fabric:
    """Two ToRs with a host each and one OCS between them, its cables with these delays."""
    fabric = Fabric("optical")
    fabric.add_switch("o0", Kind.OCS)
    for number, delay in enumerate(cables):
        fabric.add_switch(f"t{number}", Kind.TOR)
        fabric.add_host(f"h{number}")
        fabric.connect(Port(f"h{number}", 0), Port(f"t{number}", 1), rate=10**9, delay=1e-6)
        fabric.connect(Port(f"t{number}", 2), Port("o0", number + 1), rate=10**9, delay=delay)
    return fabric.finish()


def test_delays_are_dilated_and_those_behind_an_ocs_made_in_front_of_it() -> None:
    assert emulated_delays(optical(2e-6, 2e-6), tdf=10) == {
        Port("h0", 0): pytest.approx(10e-6),
        Port("t0", 1): pytest.approx(10e-6),
        Port("t0", 2): pytest.approx(40e-6),
        Port("h1", 0): pytest.approx(10e-6),
        Port("t1", 1): pytest.approx(10e-6),
        Port("t1", 2): pytest.approx(40e-6),
    }


def test_a_fabric_without_delays_has_none() -> None:
    assert emulated_delays(registry.build("fat-tree", k=2), tdf=10) == {}


def test_an_ocs_with_cables_of_two_delays_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    machine: Any,  # noqa: ANN401
) -> None:
    machine(True)
    (tmp_path / "uneven.py").write_text(
        "from topologies.registry import builder\nfrom topologies.fabric import Fabric, Kind, Port\n"
        '@builder("uneven")\ndef uneven(*, far: float = 2e-6) -> Fabric:\n    "Two ToRs, unequally far from an OCS."\n'
        '    fabric = Fabric("uneven")\n    fabric.add_switch("o0", Kind.OCS)\n    for n in (0, 1):\n'
        '        fabric.add_switch(f"t{n}", Kind.TOR)\n        fabric.add_host(f"h{n}")\n'
        '        fabric.connect(Port(f"h{n}", 0), Port(f"t{n}", 1), rate=10**9)\n'
        '        fabric.connect(Port(f"t{n}", 2), Port("o0", n + 1), rate=10**9, delay=n * far)\n'
        "    return fabric.finish()\n"
    )
    path = tmp_path / "uneven.yaml"
    path.write_text(
        "emulation: {scale: {sigma: 400, beta: 2000}}\n"
        "fabrics:\n  - {kind: uneven, reconfiguration: 1ms, circuits: {o0: [t0-t1]}}\n"
        "workload: {kind: collectives, steps: [{name: s, collective: broadcast, size: 64MiB}]}\n"
    )
    with pytest.raises(InputError, match=r"o0 have different delays \(0 ns at o0:1 and 2 us at o0:2\)") as refused:
        api.check(path, plugins=[tmp_path / "uneven.py"])
    assert refused.value.line == 3


@pytest.fixture
def fresh() -> Iterator[None]:
    can_delay.cache_clear()
    yield
    can_delay.cache_clear()


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    ("status", "words", "able"),
    [
        (0, "", True),
        (2, "Error: Specified qdisc kind is unknown.", False),
        (2, "RTNETLINK answers: No such file or directory", False),
        (1, "unshare: unshare failed: Operation not permitted", None),
    ],
)
def test_what_the_kernel_says_of_netem(
    monkeypatch: pytest.MonkeyPatch, status: int, words: str, able: bool | None
) -> None:
    def run(command: tuple[str, ...], **_: Any) -> subprocess.CompletedProcess[str]:  # noqa: ANN401
        return subprocess.CompletedProcess(command, status, "", words)

    monkeypatch.setattr(subprocess, "run", run)
    assert can_delay() is able


@pytest.mark.usefixtures("fresh")
def test_a_machine_without_unshare_cannot_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert can_delay() is None


# -- the requests ----------------------------------------------------------------------------------------------------


class Netlink:
    """Remembers the requests of traffic control."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def tc(self, *what: Any, **options: Any) -> None:  # noqa: ANN401
        """One request."""
        self.asked.append((*what, {name: options[name] for name in options if name in ("parent", "delay", "limit")}))


def requests(shape: Shape) -> list[tuple[Any, ...]]:
    netlink = Netlink()
    shaping.apply(netlink, 7, "t0-eth1", shape, 9000)  # type: ignore[arg-type]
    return netlink.asked


def test_a_delay_is_netem_below_the_class_and_the_queue_below_netem() -> None:
    # 20 Mb/s for 10 ms are 25 kB; sixteen times that and the queue, in frames of 64 bytes, and 1000 more.
    assert requests(Shape(20_000_000, 100_000, 0.010)) == [
        ("add", "htb", 7, 0x10000, {}),
        ("add-class", "htb", 7, 0x10001, {"parent": 0x10000}),
        ("add", "netem", 7, 0x100000, {"parent": 0x10001, "delay": 10_000.0, "limit": 1000 + 7812}),
        ("add", "bfifo", 7, 0x200000, {"parent": 0x100001, "limit": 100_000}),
    ]


def test_without_a_delay_the_queue_is_below_the_class() -> None:
    assert requests(Shape(20_000_000, 100_000))[2:] == [
        ("add", "bfifo", 7, 0x100000, {"parent": 0x10001, "limit": 100_000})
    ]


def test_a_delay_that_netem_cannot_hold_is_refused() -> None:
    with pytest.raises(LabError, match="t0-eth1: a delay of 300 s"):
        requests(Shape(20_000_000, 100_000, 300.0))


def test_netem_is_given_microseconds_in_its_own_ticks() -> None:
    """The kernel's tick is 64 ns, so 10 ms are 156250 of them, in the first 32 bits of netem's options."""
    from pyroute2.netlink.rtnl.tcmsg import plugins  # noqa: PLC0415
    from pyroute2.netlink.rtnl.tcmsg.common import tick_in_usec  # noqa: PLC0415

    assert tick_in_usec == pytest.approx(15.625)
    options = plugins["netem"].get_parameters({"delay": 10_000.0, "limit": 8812})
    assert (options["delay"], options["limit"], options["loss"]) == (156_250, 8812, 0)


class Message(dict[str, Any]):
    """As pyroute2 gives messages: items, and attributes by name."""

    def get_attr(self, name: str) -> Any:  # noqa: ANN401
        """An attribute."""
        return self["attrs"][name]


def statistics(drops: int) -> Message:
    basic, queue = Message(bytes=1000, packets=10), Message(drops=drops, backlog=500)
    return Message(attrs={"TCA_STATS_BASIC": basic, "TCA_STATS_QUEUE": queue})


class Reading:
    """A shaper whose class counted 1 drop and whose netem counted 4."""

    def get_classes(self, index: int) -> list[Message]:
        """The one class."""
        parameters = Message(attrs={"TCA_HTB_RATE64": 2_500_000})
        return [Message(handle=0x10001, attrs={"TCA_OPTIONS": parameters, "TCA_STATS2": statistics(1)})]

    def get_qdiscs(self, index: int) -> list[Message]:
        """netem."""
        drops = {0x10000: 0, 0x100000: 4, 0x200000: 3}
        return [Message(handle=handle, attrs={"TCA_STATS2": statistics(drops[handle])}) for handle in drops]


@pytest.mark.parametrize(("delayed", "drops"), [(False, 1), (True, 4)])
def test_losses_behind_a_delay_are_netems(delayed: bool, drops: int) -> None:
    state = shaping.read(Reading(), 7, delayed=delayed)  # type: ignore[arg-type]
    assert state is not None
    assert (state.rate, state.drops, state.backlog) == (20_000_000, drops, 500)
