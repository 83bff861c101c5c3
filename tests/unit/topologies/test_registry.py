"""Builders by name: built in, installed, and from a user's file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from topologies import registry
from topologies.fabric import Fabric, FabricError
from topologies.parameters import Rate, Unit

PAIR = '''
from topologies.fabric import Fabric, Kind, Port
from topologies.parameters import Rate
from topologies.registry import builder

@builder("{name}")
def pair(*, rate: Rate = 1000, twice: bool = False) -> Fabric:
    """Two hosts on one ToR.

    More text.
    """
    fabric = Fabric("pair")
    fabric.add_switch("t0", Kind.TOR)
    for host in ("h0", "h1"):
        fabric.add_host(host)
        fabric.connect(Port(host, 0), fabric.next_port("t0"), rate=rate)
    return fabric.finish()
'''


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    registry.names()
    monkeypatch.setattr(registry, "_builders", dict(registry._builders))


def plugin(tmp_path: Path, text: str, name: str = "fabrics.py") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, files: dict[str, str]) -> None:
    """Put a distribution with one entry point `ringlet = value` on the import path."""
    info = tmp_path / "site" / "userfabrics-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: userfabrics\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[emu.topologies]\nringlet = {value}\n")
    for name, text in files.items():
        (tmp_path / "site" / name).write_text(text)
        monkeypatch.delitem(sys.modules, name.removesuffix(".py"), raising=False)
    monkeypatch.syspath_prepend(tmp_path / "site")


def test_built_ins_are_known() -> None:
    assert {"fat-tree", "hybrid"} <= set(registry.names())
    assert len(registry.find("fat-tree")(k=4).hosts) == 16


def test_unknown_name_names_the_nearest_and_all() -> None:
    with pytest.raises(FabricError, match=r"'fat-tee' \(did you mean 'fat-tree'\?\); valid: .*fat-tree, .*hybrid"):
        registry.find("fat-tee")


def test_unknown_name_far_from_all() -> None:
    with pytest.raises(FabricError, match=r"'zzz'; valid:"):
        registry.find("zzz")


def test_build_fills_in_parameters(tmp_path: Path) -> None:
    registry.load_plugin(plugin(tmp_path, PAIR.format(name="pair")))
    fabric = registry.build("pair", rate=5)
    assert fabric.parameters == {"rate": 5, "twice": False}
    assert registry.build("fat-tree", hosts=3).parameters["k"] == 4


def test_build_names_the_nearest_parameter() -> None:
    with pytest.raises(FabricError, match=r"fabric hybrid: there is no parameter 'uplink' \(did you mean 'uplinks'"):
        registry.build("hybrid", uplink=3)


def test_build_wraps_what_a_builder_raises(tmp_path: Path) -> None:
    text = PAIR.format(name="pair").replace("return fabric.finish()", "return {}['x']")
    registry.load_plugin(plugin(tmp_path, text))
    with pytest.raises(FabricError, match=r"fabric pair: its builder failed: KeyError: 'x'"):
        registry.build("pair")


def test_build_wraps_a_builder_that_would_end_the_program(tmp_path: Path) -> None:
    text = PAIR.format(name="pair").replace("return fabric.finish()", "raise SystemExit(3)")
    registry.load_plugin(plugin(tmp_path, text))
    with pytest.raises(FabricError, match=r"fabric pair: its builder failed: SystemExit: 3"):
        registry.build("pair")


def test_an_annotation_that_names_nothing_is_the_builders_fault(tmp_path: Path) -> None:
    registry.load_plugin(plugin(tmp_path, PAIR.format(name="pair").replace("twice: bool", "twice: 'Bol'")))
    with pytest.raises(FabricError, match=r"builder pair: its annotations: NameError: name 'Bol' is not defined"):
        registry.parameters(registry.find("pair"))


def test_build_refuses_what_is_no_fabric(tmp_path: Path) -> None:
    text = PAIR.format(name="pair").replace("return fabric.finish()", "return None")
    registry.load_plugin(plugin(tmp_path, text))
    with pytest.raises(FabricError, match="returned NoneType, not a Fabric"):
        registry.build("pair")


def test_plugin_by_path(tmp_path: Path) -> None:
    assert registry.load_plugin(plugin(tmp_path, PAIR.format(name="pair"))) == ("pair",)
    assert "pair" in registry.names()
    assert [host.name for host in registry.build("pair").hosts] == ["h0", "h1"]


def test_plugin_loaded_again_replaces_its_builders(tmp_path: Path) -> None:
    path = plugin(tmp_path, PAIR.format(name="pair"))
    registry.load_plugin(path)
    path.write_text(PAIR.format(name="couple") + "# changed\n")
    assert registry.load_plugin(path) == ("couple",)
    assert "pair" not in registry.names()


def test_two_plugins_of_one_file_name(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        registry.load_plugin(plugin(tmp_path / name, PAIR.format(name=name)))
    assert registry.find("one").__module__ != registry.find("two").__module__


def test_plugin_may_not_take_a_built_in_name(tmp_path: Path) -> None:
    with pytest.raises(FabricError, match=r"fabrics\.py: fabric hybrid: pair in .* and hybrid in .* both build it"):
        registry.load_plugin(plugin(tmp_path, PAIR.format(name="hybrid")))
    assert registry.find("hybrid").__module__ == "topologies.hybrid"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import nothing_of_this_name", r"fabrics\.py: ModuleNotFoundError: .*nothing_of_this_name"),
        ("def broken(:", r"fabrics\.py: SyntaxError"),
        ("raise SystemExit(3)", r"fabrics\.py: SystemExit: 3"),
        (PAIR.format(name="pair") + "1 / 0", r"fabrics\.py: ZeroDivisionError"),
    ],
)
def test_plugin_that_fails_leaves_nothing(tmp_path: Path, text: str, words: str) -> None:
    before, modules = registry.names(), set(sys.modules)
    with pytest.raises(FabricError, match=words):
        registry.load_plugin(plugin(tmp_path, text))
    assert registry.names() == before
    assert not [name for name in set(sys.modules) - modules if name.startswith("emu_plugin")]


def test_plugin_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FabricError, match=r"missing\.py: there is no such file"):
        registry.load_plugin(tmp_path / "missing.py")


def test_plugin_that_is_a_directory(tmp_path: Path) -> None:
    with pytest.raises(FabricError, match=r"this is not a file"):
        registry.load_plugin(tmp_path)


def test_plugin_that_is_not_python(tmp_path: Path) -> None:
    with pytest.raises(FabricError, match=r"not a Python file"):
        registry.load_plugin(plugin(tmp_path, "x", "fabrics.txt"))


def test_installed_builder_by_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "user_fabrics:pair", {"user_fabrics.py": PAIR.format(name="ringlet")})
    assert "ringlet" in registry.names()
    assert "user_fabrics" not in sys.modules  # a list of names imports nobody's code
    assert registry.summary("ringlet").text == "Two hosts on one ToR."
    assert registry.build("ringlet", rate=9).links[0].rate == 9


def test_installed_builder_that_cannot_be_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "user_fabrics:gone", {"user_fabrics.py": "x = 1"})
    with pytest.raises(FabricError, match=r"ringlet \(user_fabrics:gone of userfabrics\): AttributeError"):
        registry.find("ringlet")


def test_entry_point_that_is_no_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "user_fabrics:x", {"user_fabrics.py": "x = 1"})
    with pytest.raises(FabricError, match="not a function"):
        registry.find("ringlet")


def test_signature_must_be_a_schema() -> None:
    def positional(rate: int = 1) -> Fabric:
        """Text."""
        raise AssertionError

    def untyped(*, rate=1) -> Fabric:  # type: ignore[no-untyped-def]  # noqa: ANN001
        """Text."""
        raise AssertionError

    def required(*, rate: int) -> Fabric:
        """Text."""
        raise AssertionError

    def silent(*, rate: int = 1) -> Fabric:
        raise AssertionError

    cases: list[tuple[registry.Builder, str]] = [
        (positional, "rate must be keyword-only"),
        (untyped, "rate needs a type annotation"),
        (required, "rate needs a default"),
        (silent, "needs a docstring"),
    ]
    for function, words in cases:
        with pytest.raises(FabricError, match=words):
            registry.builder("mine")(function)
    assert "mine" not in registry.names()


def test_summary_resolves_units() -> None:
    summary = registry.summary("hybrid")
    found = {parameter.name: parameter for parameter in summary.parameters}
    assert summary.text.startswith("Pods of one electrical ToR each")
    assert found["rate"].type == Rate
    assert found["rate"].default == 400_000_000_000
    units = {name: found[name].unit for name in ("rate", "uplink_rate", "delay", "pods")}
    assert units == {"rate": Unit.RATE, "uplink_rate": Unit.RATE, "delay": Unit.DURATION, "pods": None}
