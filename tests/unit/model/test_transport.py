"""Fitted transports: their formulas by hand, their effect in the model, and their files."""

from pathlib import Path

import numpy as np
import pytest

from controllers.epochs import Epoch, EpochChange, duplex
from emu.errors import InputError
from emu.model.conditions import Conditions
from emu.model.engine import simulate
from emu.model.transport import IDEAL, Transport, load_transport
from tests.unit.model.fluid_pieces import GB, Script, cluster_of, on_circuits, star, transfer

FILE = """
date = "2026-12-01"
machine = "somewhere"
efficiency = 0.5
retransmission = 0.25
"""


def lost(bits: float, rate: float, round_trip: float, window: float) -> float:
    transport = Transport(round_trip=round_trip, initial_window=window)
    return float(transport.slow_start(np.array([bits]), np.array([rate]), np.array([round_trip]))[0])


def test_slow_start_by_hand() -> None:
    # 8 kb windows at 64 kb/s and 1 s: rounds of 8, 16 and 32 kb until 64 kb fill the path; 3 s for 56 kb, not 56/64 s.
    assert lost(1e9, 64e3, 1.0, 1000) == pytest.approx(3 - 56 / 64)
    # 24 kb are over after two rounds.
    assert lost(24e3, 64e3, 1.0, 1000) == pytest.approx(2 - 24 / 64)
    # A window that fills the path at once loses nothing.
    assert lost(1e9, 8e3, 1.0, 1000) == 0


def test_recovery_by_hand() -> None:
    transport = Transport(retransmission=0.2)
    assert transport.recovery(0.0) == 0
    assert transport.recovery(0.1) == pytest.approx(0.1)  # the first timer, at 0.2
    assert transport.recovery(0.3) == pytest.approx(0.3)  # the second, 0.4 later
    assert transport.recovery(0.7) == pytest.approx(0.7)  # the third, at 1.4
    assert IDEAL.recovery(5.0) == 0
    assert IDEAL.ideal
    assert not transport.ideal


def end(transport: Transport, *sizes: int) -> list[float]:
    tasks = [transfer(f"t{number}", 0, 1, size, channel="x") for number, size in enumerate(sizes)]
    script = Script(*tasks)
    outcome = simulate(star(2), script, cluster_of(star(2)), Conditions(transport=transport))
    return [row.end for row in outcome.trace.flows]


def test_efficiency_and_messages_cost_time() -> None:
    assert end(Transport(efficiency=0.8), GB) == pytest.approx([1.25])
    assert end(Transport(message=0.1), GB, GB) == pytest.approx([1.1, 2.2])


def test_only_the_first_message_of_a_connection_starts_slowly() -> None:
    # 1 GB/s for 1 s is 8 windows of 125 MB: three rounds take 3 s and move 875 MB.
    transport = Transport(round_trip=1.0, initial_window=GB // 8)
    assert end(transport, 2 * GB, GB) == pytest.approx([2 + 3 - 0.875, 3 + 3 - 0.875])


def test_streams_go_on_when_their_timers_fire() -> None:
    fabric = on_circuits(4, 2)
    before, after = (Epoch(number, {"o0": duplex(pairs)}) for number, pairs in enumerate([[(1, 3)], [(2, 4)]]))
    # Dark from 0.5 to 0.75 s; timers of 0.1 s fire 0.1, 0.3 and 0.7 s after it went dark.
    conditions = Conditions(before, (EpochChange(0.5, after, 0.25),), transport=Transport(retransmission=0.1))
    outcome = simulate(fabric, Script(transfer("a", 0, 1)), cluster_of(fabric), conditions)
    assert outcome.trace.flows[0].end == pytest.approx(0.8 + 0.5)


def test_a_file_has_parameters_with_date_and_machine(tmp_path: Path) -> None:
    path = tmp_path / "transport.toml"
    path.write_text(FILE)
    assert load_transport(path) == Transport(
        efficiency=0.5, retransmission=0.25, date="2026-12-01", machine="somewhere"
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("efficiency = [", "transport.toml: "),
        (f"{FILE}speed = 3", "unknown key 'speed'; valid: .*efficiency"),
        (FILE.replace("0.5", "1.5"), "efficiency must be above 0 and at most 1, not 1.5"),
        (FILE.replace("0.5", '"high"'), "efficiency must be a number, not 'high'"),
        (FILE.replace("machine", "# machine"), "machine is missing"),
        (f"{FILE}round_trip = 0.1", "initial_window must be above 0"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "transport.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=problem):
        load_transport(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*none\.toml: No such file"):
        load_transport(tmp_path / "none.toml")
