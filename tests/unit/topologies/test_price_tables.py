"""Price tables: those that come along, a user's own, and what is said of a bad one."""

from __future__ import annotations

from pathlib import Path

import pytest

from topologies.pricing import Part, PriceError, load_table, table_names
from topologies.pricing.table import read_table

G = 1_000_000_000

GOOD = """title = "Ours"
source = "a quote"

[dollars.nic]
100G = 10
"2.5G" = 1.5
[dollars.eps_port]
any = 7
"""


def test_tables_that_come_along_have_a_source() -> None:
    assert table_names() == ("mixnet", "opus")
    for name in table_names():
        table = load_table(name)
        assert table.name == name
        assert table.source
        assert table.title


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "ours.toml"
    path.write_text(GOOD)
    table = load_table(str(path))
    assert (table.title, table.source) == ("Ours", "a quote")
    assert table.of("dollars", Part("nic", 100 * G)) == 10
    assert table.of("dollars", Part("nic", 2_500_000_000)) == 1.5
    assert table.of("dollars", Part("eps_port", 33)) == 7
    assert table.of("dollars", Part("transceiver", 100 * G)) is None
    assert table.of("watts", Part("nic", 100 * G)) is None


def test_between_rates_prices_are_on_a_line() -> None:
    table = load_table("mixnet")
    assert table.between("dollars", Part("nic", 300 * G)) == (1079 + 1499) / 2
    assert table.between("dollars", Part("nic", 200 * G)) == 1079
    assert table.between("dollars", Part("nic", 801 * G)) is None
    assert table.between("dollars", Part("nic", 99 * G)) is None
    assert table.between("dollars", Part("ocs_port", 1)) == 520
    assert table.between("watts", Part("nic", 100 * G)) is None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mixnt", "there is no price table 'mixnt'; did you mean 'mixnet'?"),
        ("zzz", "known: mixnet, opus, or the path of a .toml file"),
        ("nowhere/none.toml", "nowhere/none.toml: cannot be read: No such file or directory"),
        ("/", "/: cannot be read: Is a directory"),
    ],
)
def test_a_table_that_is_not_there(name: str, words: str) -> None:
    with pytest.raises(PriceError) as caught:
        load_table(name)
    assert words in str(caught.value)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(PriceError, match="cannot be read: it is not text"):
        load_table(str(tmp_path / "x.toml"))


@pytest.mark.parametrize(
    ("change", "line", "key", "words"),
    [
        (("100G = 10", "100G = 'x'"), 5, "dollars.nic.100G", "must be a number from 0 on, not 'x'"),
        (("100G = 10", "100G = -1"), 5, "dollars.nic.100G", "must be a number from 0 on, not -1"),
        (("100G = 10", "100G = true"), 5, "dollars.nic.100G", "must be a number"),
        (("100G = 10", "100G = nan"), 5, "dollars.nic.100G", "must be a number"),
        (("100G", "100Gbps"), 5, "dollars.nic.100Gbps", "'100Gbps' is no rate; write 400G or any"),
        (("100G", "0G"), 5, "dollars.nic.0G", "'0G' is no rate"),
        (("dollars.nic", "dollars.nix"), 4, "dollars.nix", "there is no such key; did you mean 'nic'?"),
        (("dollars.nic", "dolars.nic"), 4, "dolars", "there is no such key; did you mean 'dollars'?"),
        (("any = 7", "any = 7\n100G = 1"), 8, "dollars.eps_port.any", "leaves no room for other rates"),
        (("[dollars.eps_port]\nany = 7", "[dollars.eps_port]"), 7, "dollars.eps_port", "must be a section with lines"),
        (('"a quote"', "3"), 2, "source", "must be text, not 3"),
        (("[dollars.nic]", "notes = 'x'\n[dollars.nic]"), 4, "notes", "must be a list of texts"),
        (("source =", "source"), 2, "", "Expected '=' after a key in a key/value pair"),
    ],
)
def test_a_bad_table_is_refused_with_line_and_key(change: tuple[str, str], line: int, key: str, words: str) -> None:
    text = GOOD.replace(*change)
    assert text != GOOD
    with pytest.raises(PriceError) as caught:
        read_table(text, name="ours", file="ours.toml")
    assert (caught.value.line, ".".join(caught.value.key)) == (line, key)
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"ours.toml:{line}: ")


def test_a_table_without_prices_is_refused() -> None:
    for text in ("title = 'x'", "[watts.nic]\nany = 1"):
        with pytest.raises(PriceError, match=r"ours.toml: dollars: is required"):
            read_table(text, name="ours", file="ours.toml")
    with pytest.raises(PriceError, match=r"ours.toml:1: dollars: must be sections"):
        read_table("dollars = 3", name="ours", file="ours.toml")
