"""`dark:` in scenarios: modes, options, and what is refused, with file, line and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from controllers.dark import DROP, Dark
from emu.errors import InputError
from emu.scenario.build import BuiltFabric, build_fabrics
from emu.scenario.load import load

HEAD = """fabrics:
  - kind: hybrid
    hosts_per_pod: 1
    uplinks: 1
    reconfiguration: 10ms
"""
TAIL = """workload: {kind: flow-list, flows: "src,dst,bytes\\n0,1,1\\n"}
"""


def built(directory: Path, *lines: str) -> BuiltFabric:
    path = directory / "scenario.yaml"
    path.write_text(HEAD + "".join(f"    {line}\n" for line in ("circuits: {o0: [t0-t1]}", *lines)) + TAIL)
    return build_fabrics(load(path))[0]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("dark: drop", DROP),
        ("dark: hold", Dark("hold")),
        ("dark: {mode: hold, buffer: 2MB}", Dark("hold", buffer=2_000_000)),
        ("dark: drain", Dark("drain", deadline=0.01)),
        ("dark: {mode: drain, deadline: 3ms}", Dark("drain", deadline=0.003)),
    ],
)
def test_a_mode_is_a_word_or_has_options(tmp_path: Path, written: str, meant: Dark) -> None:
    assert built(tmp_path, written).dark == meant


def test_nothing_said_is_drop(tmp_path: Path) -> None:
    assert built(tmp_path).dark == DROP


def test_detour_is_taken_where_every_pair_has_an_electrical_path(tmp_path: Path) -> None:
    assert built(tmp_path, "electrical_rate: 10Gbps", "dark: detour").dark == Dark("detour")


@pytest.mark.parametrize(
    ("written", "key", "message"),
    [
        ("dark: detour", "dark", r"detour needs electrical paths: from h\d:0 to h\d:0 there is none"),
        ("dark: {mode: detour}", "dark.mode", "detour needs electrical paths"),
        ("dark: detuor", "dark", r"there is no dark mode 'detuor'; did you mean 'detour'\?"),
        ("dark: {buffer: 1MB}", "dark", "a dark mode is required"),
        ("dark: {mode: hold, deadline: 1ms}", "dark.deadline", "is no option of hold"),
        ("dark: {mode: drain, buffer: 1MB}", "dark.buffer", "is no option of drain"),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_line(tmp_path: Path, written: str, key: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        built(tmp_path, written)
    assert str(caught.value).startswith(f"{tmp_path}/scenario.yaml:7: fabrics[0].{key}: ")


def test_a_fabric_without_an_ocs_is_never_dark(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(f"fabrics:\n  - kind: fat-tree\n    k: 4\n    dark: hold\n{TAIL}")
    with pytest.raises(InputError, match=r":4: fabrics\[0\].dark: does not fit: a fat-tree fabric has no OCS"):
        build_fabrics(load(path))


def test_hold_needs_a_switch_before_every_circuit(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    plugin = tmp_path / "direct.py"
    plugin.write_text(
        "from topologies.fabric import Fabric, Kind, Port\n"
        "from topologies.registry import builder\n"
        "@builder('direct')\n"
        "def direct(*, name: str = 'direct') -> Fabric:\n"
        '    """Two hosts at an OCS."""\n'
        "    fabric = Fabric(name)\n"
        "    fabric.add_switch('o0', Kind.OCS)\n"
        "    for host in range(2):\n"
        "        fabric.add_host(f'h{host}')\n"
        "        fabric.connect(Port(f'h{host}', 0), Port('o0', host + 1), rate=10**9)\n"
        "    return fabric.finish()\n"
    )
    path.write_text(
        "fabrics:\n  - kind: direct\n    reconfiguration: 1ms\n    circuits: {o0: [1-2]}\n    dark: hold\n" + TAIL
    )
    with pytest.raises(InputError, match=r":5: fabrics\[0\].dark: hold needs a switch before each OCS port: h0:0 is"):
        build_fabrics(load(path, plugins=[plugin]))
