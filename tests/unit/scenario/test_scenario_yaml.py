"""Files that are no scenario at all, or try to be more than one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from emu.errors import InputError
from emu.scenario import load
from emu.scenario.source import MAX_BYTES, parse

Write = Callable[[str | bytes], Path]

BOMB = "a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        (b"", None, "is empty"),
        (b"# only a comment\n---\n", None, "is empty"),
        (b"\n\n- a list\n", 1, "is not a mapping"),
        (b"just text", 1, "is not a mapping"),
        (b"seed: 1\nname: \xff\xfe\n", 2, "is not UTF-8 text"),
        (b"seed: 1\nname: \x00\n", 2, "which YAML does not allow"),
        (b"\x89PNG\r\n\x1a\n\x00", 1, "is not UTF-8 text"),
        (b"seed: 1\n\tname: x\n", 2, "YAML indents with spaces, not tabs"),
        (b"seed: [1\n", 2, "is not valid YAML"),
        (b"seed: 1\n nest: 2\n", 2, "is not valid YAML"),
        (b"seed: 1\nseed: 2\n", 2, "seed: is given twice, first on line 1"),
        (b"emulation:\n  mtu: 1\n  mtu: 2\n", 3, "emulation.mtu: is given twice, first on line 2"),
        (b"1: 2\n", 1, "the key '1' is not text"),
        (b"[a, b]: 2\n", 1, "is not text"),
        (b"seed: !!python/object/apply:os.system [id]\n", 1, "has the tag '!!python/object/apply:os.system'"),
        (b"seed: !custom 1\n", 1, "has the tag '!custom'"),
        (b"seed: !!binary aGk=\n", 1, "has the tag '!!binary'"),
        (b"seed: !!int x\n", 1, "'x' is not a value of type int"),
        (b"seed: *nobody\n", 1, "is not valid YAML"),
        (b"a: &a [*a]\n", 1, "is nested deeper than"),
        (b"a: &a {b: *a}\n", 1, "is nested deeper than"),
        (b"a: &a {<<: *a}\n", 1, "is nested deeper than"),
        (b"<<: [1]\n", None, "merges a mapping or a list of mappings"),
        (b"a: " + b"[" * 400 + b"]" * 400, 1, "is nested deeper than"),
        (b"a: " + b"[" * 600, None, "is nested deeper than"),
        (BOMB.encode(), None, "holds more than 50000 values"),
        (b"seed: 1\n---\nseed: 2\n", 2, "is not valid YAML"),
        (b"seed: " + b"1" * 5000, 1, "is not a value of type int"),
        (b"fabrics: [{kind: fat-tree}]\nseed: 2001-01-01\n", 2, "must be a whole number, not '2001-01-01'"),
    ],
)
def test_one_message_with_the_line(write: Write, content: bytes, line: int | None, says: str) -> None:
    with pytest.raises(InputError) as caught:
        load(write(content))
    assert says in str(caught.value)
    if line is not None:
        assert caught.value.line == line


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, says in (("none.yaml", "no such file"), (".", "not a file"), ("pipe", "not a file")):
        with pytest.raises(InputError, match=says):
            load(tmp_path / name)


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "huge.yaml"
    with path.open("wb") as file:
        file.truncate(10 << 30)
    started = time.monotonic()
    with pytest.raises(InputError, match=f"is larger than {MAX_BYTES >> 10} KiB"):
        load(path)
    assert time.monotonic() - started < 1.0


def test_anchors_and_merges_work_and_keep_their_lines() -> None:
    text = "base: &base\n  k: 4\n  rate: 1Gbps\nmore: &more {rate: 2Gbps, x: 1}\n"
    text += "f:\n  <<: [*base, *more]\n  k: 6\ng: *base\n"
    data, source = parse(text, "file")
    assert data["f"] == {"k": 6, "rate": "1Gbps", "x": 1}
    assert data["g"] == {"k": 4, "rate": "1Gbps"}
    assert source.positions[("f", "k")].line == 7
    assert source.positions[("f", "rate")].line == 3
    assert source.positions[("f", "x")].line == 4
    assert source.positions[("g",)].line == 8


def test_a_byte_order_mark_is_no_content(write: Write) -> None:
    with pytest.raises(InputError, match="sede: there is no such key"):
        load(write(b"\xef\xbb\xbfsede: 1\nfabrics: []\n"))


def test_values_keep_their_yaml_types() -> None:
    data, _ = parse("a: 0x10\nb: 1.5\nc: true\nd: ~\ne: 'x'\nf: 400Gbps\ng: 2001-01-01\nh: yes\ni: 1_000\n", "file")
    assert list(data.values()) == [16, 1.5, True, None, "x", "400Gbps", "2001-01-01", "yes", 1000]
