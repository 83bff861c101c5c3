"""Ctrl-C, SIGTERM and SIGHUP end a run alike, and not in the midst of what must be finished."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from emu.interrupts import SIGNALS, Interrupts


@pytest.mark.parametrize("number", SIGNALS)
def test_each_signal_is_an_interrupt_and_handlers_are_given_back(number: signal.Signals) -> None:
    before = [signal.getsignal(one) for one in SIGNALS]
    interrupts = Interrupts()
    with pytest.raises(KeyboardInterrupt), interrupts:
        signal.raise_signal(number)
    assert interrupts.heard
    assert [signal.getsignal(one) for one in SIGNALS] == before


def test_the_first_signal_waits_for_what_must_be_finished_and_the_second_does_not() -> None:
    done = []
    with Interrupts() as interrupts:
        with interrupts.held():
            signal.raise_signal(signal.SIGTERM)
            done.append("finished")
        assert interrupts.heard
        with interrupts.held():
            signal.raise_signal(signal.SIGTERM)
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
    assert done == ["finished"]


def test_ignored_signals_stay_ignored_and_a_programs_own_handlers_its_own() -> None:
    """nohup ignores SIGHUP, and whoever embeds emu may have plans of its own for SIGTERM."""
    came = []
    old = signal.signal(signal.SIGHUP, signal.SIG_IGN), signal.signal(signal.SIGTERM, lambda *_: came.append("own"))
    try:
        with Interrupts() as interrupts:
            signal.raise_signal(signal.SIGHUP)
            signal.raise_signal(signal.SIGTERM)
        assert (came, interrupts.heard) == (["own"], False)
    finally:
        signal.signal(signal.SIGHUP, old[0])
        signal.signal(signal.SIGTERM, old[1])


def test_another_thread_can_enter_it_without_handlers() -> None:
    heard = []

    def enter() -> None:
        with Interrupts() as interrupts:
            heard.append(interrupts.heard)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert heard == [False]


def test_a_signal_that_nobody_handles_still_ends_a_process() -> None:
    code = "import signal\nfrom emu.interrupts import Interrupts\nwith Interrupts(): pass\nsignal.raise_signal(15)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGTERM
