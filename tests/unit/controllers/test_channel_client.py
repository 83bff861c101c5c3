"""The engine's client against a scripted controller on a socket pair: order, time-outs, refusals and losses."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controllers.channel import (
    Abort,
    AbortOutcome,
    Committed,
    ControllerError,
    ControllerLost,
    Echo,
    EchoReply,
    Fault,
    Hello,
    Installed,
    Refused,
    Staged,
    SwitchConnected,
    SwitchLost,
)
from controllers.client import Answered, ControllerClient
from controllers.lines import LineBuffer, encode
from controllers.tables import Rule

Ends = tuple[ControllerClient, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """A client, and the controller's end of its connection."""
    ours, theirs = socket.socketpair()
    client = ControllerClient(ours)
    theirs.settimeout(5)
    yield client, theirs
    client.close()
    theirs.close()


def replying(theirs: socket.socket, reply: Callable[[int], bytes]) -> threading.Thread:
    """A controller that answers one request with what `reply` makes of its number."""

    def serve() -> None:
        buffer, lines = LineBuffer(), []
        while not lines:
            lines = buffer.feed(theirs.recv(1 << 16))
        number = lines[0].id
        assert number is not None
        theirs.sendall(reply(number))

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


def test_events_come_in_order_and_once(ends: Ends) -> None:
    """`poll` never waits, keeps the order, and the set of connected switches follows."""
    client, theirs = ends
    assert client.poll() == []
    said = [Hello("os_ken 4.2.2"), SwitchConnected(1), SwitchConnected(2), SwitchLost(1, "gone")]
    theirs.sendall(b"".join(encode(event) for event in said))
    assert client.poll() == said
    assert client.poll() == []
    assert client.connected == {2}
    assert client.library == "os_ken 4.2.2"


def test_events_during_a_call_are_kept(ends: Ends) -> None:
    """A blocking call returns its own answer; what came before it waits for `poll`."""
    client, theirs = ends
    thread = replying(theirs, lambda number: encode(SwitchConnected(4)) + encode(Installed(7), number))
    assert client.install({4: (Rule(1, 2, in_port=1),)}, 2) == Installed(7)
    thread.join()
    assert client.poll() == [SwitchConnected(4)]


def test_submitted_requests_are_answered_by_poll(ends: Ends) -> None:
    """For event loops: the request's number comes back with the answer, and the descriptor is the socket's."""
    client, theirs = ends
    first, second = client.submit(Echo()), client.submit(Abort("c"))
    theirs.sendall(encode(AbortOutcome("c", "committed"), second) + encode(EchoReply(5), first))
    assert client.poll() == [Answered(second, AbortOutcome("c", "committed")), Answered(first, EchoReply(5))]
    assert client.fileno() > 0


def test_a_refusal_is_an_error_with_its_switch(ends: Ends) -> None:
    """What the controller refuses raises, and the client can be used on."""
    client, theirs = ends
    thread = replying(theirs, lambda number: encode(Refused("it is not connected", 9), number))
    with pytest.raises(ControllerError, match="switch 9: it is not connected") as caught:
        client.verify([9], 2)
    thread.join()
    assert caught.value.dpid == 9
    assert client.poll() == []


def test_silence_is_not_waited_for(ends: Ends) -> None:
    """Every blocking call has a time-out; switches that are missing are named."""
    client, _ = ends
    with pytest.raises(ControllerLost, match=r"did not answer Echo within 0\.05 s"):
        client.echo(0.05)
    with pytest.raises(ControllerError, match="without a connection: switches 1, 2;"):
        client.wait_connected([2, 1], 0.05)
    with pytest.raises(ControllerLost, match="did not end the change c"):
        client.wait_change("c", 0.05)


def test_the_end_of_a_change_is_taken_out(ends: Ends) -> None:
    """`wait_change` takes the end of that change alone, whatever came before it."""
    client, theirs = ends
    stage = Staged("c", "dark", 1)
    end, other = Committed("c", stage, stage), Committed("d", stage, stage)
    theirs.sendall(b"".join(encode(event) for event in (other, stage, end, Fault("x"))))
    assert client.wait_change("c", 1) == end
    assert client.poll() == [other, stage, Fault("x")]


def test_a_dead_controller_is_lost_after_its_last_words(ends: Ends) -> None:
    """What it said before is still heard; then, and for every other call, ControllerLost."""
    client, theirs = ends
    theirs.sendall(encode(Fault("dying")))
    theirs.close()
    assert client.poll() == [Fault("dying")]
    for use in (client.poll, client.echo, lambda: client.submit(Echo()), lambda: client.wait_change("c", 1)):
        with pytest.raises(ControllerLost, match="the controller process has ended"):
            use()


def test_no_controller_at_all(tmp_path: Path) -> None:
    """Connecting to nothing says where nobody listens."""
    with pytest.raises(ControllerLost, match=r"no controller listens at .*/none\.sock"):
        ControllerClient.connect(tmp_path / "none.sock", 1)
