"""The channel's lines: what is written is read back, and what is not a line is refused with a reason."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.channel import (
    Abort,
    Aborted,
    Committed,
    ControllerError,
    Fault,
    Install,
    Message,
    Prepare,
    RuleChange,
    Staged,
    Stamps,
)
from controllers.lines import PROTOCOL, Line, LineBuffer, decode, encode
from controllers.tables import Rule

ports = st.integers(1, 0xFFFFFF00)
masks = st.integers(0, 0xFFFFFFFF)
circuits = st.builds(Rule, st.integers(0, 0xFFFF), ports, in_port=ports)
routes = st.builds(
    lambda priority, port, address, mask: Rule(priority, port, destination=address & mask, mask=mask),
    st.integers(0, 0xFFFF),
    ports,
    masks,
    masks,
)
tables = st.lists(circuits | routes, max_size=4).map(tuple)
dpids = st.integers(1, 2**64 - 1)
changes = st.dictionaries(dpids, st.builds(RuleChange, tables, tables), max_size=3)
stamps = st.builds(Stamps, st.integers(), st.integers(), st.booleans())
staged = st.builds(
    Staged, st.text(), st.sampled_from(["dark", "light", "restore"]), st.integers(), st.dictionaries(dpids, stamps)
)
messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(Install, st.dictionaries(dpids, tables, max_size=3), st.floats(0, 1e6)),
    st.builds(Prepare, st.text(), changes, changes, st.none() | st.integers(0, 2**63), st.integers(0, 2**63)),
    st.builds(Committed, st.text(), staged, staged),
    st.builds(Aborted, st.text(), st.sampled_from(["discarded", "restored", "failed"]), st.text(), st.none() | dpids),
    st.builds(Fault, st.text(), st.none() | dpids),
    st.builds(Abort, st.text()),
)


@given(messages, st.none() | st.integers(1))
def test_messages_survive_the_channel(message: Message, number: int | None) -> None:
    """Whatever is said arrives equal, in one line."""
    line = encode(message, number)
    assert line.count(b"\n") == 1
    assert decode(line) == Line(number, message)


@settings(max_examples=25)
@given(st.lists(messages, max_size=3), st.data())
def test_lines_survive_being_cut(said: list[Message], data: st.DataObject) -> None:
    """However the socket cuts the stream, the same messages come out in order."""
    stream = b"".join(encode(message) for message in said)
    buffer, heard = LineBuffer(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        heard += [line.body for line in buffer.feed(stream[:size])]
        stream = stream[size:]
    assert heard == said


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"hello", "not a line of the controller's channel"),
        (b"[1]", "not a line of the controller's channel"),
        (b'{"v":1,"kind":"Echo"}', "not a line of the controller's channel"),
        (json.dumps({"v": PROTOCOL + 1, "id": 1, "kind": "Echo", "body": {}}).encode(), "this line version 2"),
        (b'{"v":1,"id":1,"kind":"Reboot","body":{}}', "no message 'Reboot'"),
        (b'{"v":1,"id":"x","kind":"Echo","body":{}}', "with id 'x'"),
        (b'{"v":1,"id":1,"kind":"Abort","body":{}}', "malformed Abort"),
        (b'{"v":1,"id":1,"kind":"Install","body":{"tables":{"one":[]},"timeout":1}}', "malformed Install"),
    ],
)
def test_what_is_no_message_is_refused(line: bytes, reason: str) -> None:
    """With a reason that says what is wrong, never a KeyError or the like."""
    with pytest.raises(ControllerError, match=reason):
        decode(line)


def test_a_stage_s_figures() -> None:
    """Lateness counts to the first COMMIT, skew over OCSs only, control time from the last delete to the last reply."""
    dark = Staged("c", "dark", 1_000, {1: Stamps(1_500, 2_000, True), 2: Stamps(1_700, 2_600, True)})
    light = Staged("c", "light", 9_000, {1: Stamps(9_100, 9_900, True), 3: Stamps(10_000, 11_000, False)})
    assert (dark.sent_ns, dark.replied_ns) == (1_500, 2_600)
    assert dark.lateness == pytest.approx(500e-9)
    assert dark.skew == pytest.approx(600e-9)
    assert light.skew == 0
    assert Committed("c", dark, light).control_dark == pytest.approx((9_900 - 1_700) / 1e9)
    assert Staged("c", "dark", 5).lateness == 0


def test_an_error_names_its_switch() -> None:
    """The message carries the switch once, the attributes carry both parts."""
    error = ControllerError("no barrier reply in time", 3)
    assert str(error) == "switch 3: no barrier reply in time"
    assert (error.reason, error.dpid) == ("no barrier reply in time", 3)
    assert str(ControllerError("no")) == "no"


def test_optical_changes_are_told_by_their_rules() -> None:
    """A rule that matches the port of entry makes a change one of circuits, wherever it stands."""
    assert RuleChange(delete=(Rule(1, 2, in_port=1),)).optical
    assert RuleChange(add=(Rule(1, 2, in_port=1),)).optical
    assert not RuleChange(add=(Rule(1, 2, destination=1),)).optical
    assert not RuleChange().optical
