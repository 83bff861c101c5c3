"""What a change cost: the row that says so, and TCP's counters between two readings."""

from __future__ import annotations

import socket

from emu.measurement import CircuitChange
from emu.packet.tcp import Order, order
from emu.results.circuits import change_row


def test_a_row_says_what_was_lost_held_and_overtaken() -> None:
    change = CircuitChange(1, 1.0, 0.01, 1.0, 1.011, 0.0, mode="hold")
    change.lost, change.held, change.held_bytes, change.overflow, change.reordered, change.out_of_order = range(6)
    row = change_row(change, 10.0)
    names = ["lost_packets", "held_packets", "held_bytes_emulated", "held_overflow_packets"]
    assert [row[name] for name in (*names, "reordered", "out_of_order_packets")] == [0, 1, 2, 3, 4, 5]
    assert row["mode"] == "hold"


def test_what_was_not_measured_stays_empty() -> None:
    row = change_row(CircuitChange(1, 1.0, 0.01, 1.0, 1.011, 0.0), 10.0)
    assert row["mode"] == "drop"
    assert row["lost_packets"] is row["held_packets"] is row["reordered"] is None


def test_order_counts_from_a_reading_on_or_from_a_new_connection() -> None:
    assert Order(5, 9).since(Order(2, 3)) == Order(3, 6)
    assert Order(5, 9).since(None) == Order(5, 9)
    assert Order(1, 1).since(Order(2, 0)) == Order(1, 1)
    assert not Order(5, 9).since(Order(known=False)).known


def test_a_connection_that_nothing_disturbed_has_all_in_order() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    sender = socket.create_connection(listener.getsockname())
    receiver, _ = listener.accept()
    sender.sendall(b"x" * 100_000)
    received = 0
    while received < 100_000:
        received += len(receiver.recv(100_000))
    found = order(sender, receiver)
    assert found == Order(0, 0, known=True)
    for opened in (listener, sender, receiver):
        opened.close()
