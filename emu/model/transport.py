"""What a transport does beside sharing links fairly: nothing, if it is ideal, or what TCP was seen to do.

A fitted transport has three effects. A connection reaches only a share of the rate that is fair. One that has sent
nothing yet begins with a small window, which doubles each round trip until the path is full (slow start, RFC 5681).
And a stream whose circuit went dark goes on when its retransmission timer fires after the light has come back; the
timer doubles each time (RFC 6298).

Parameters come from files that `load_transport` reads, each with the date and the machine that they were fitted on.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from emu.errors import InputError
from emu.model.maxmin import Floats


@dataclass(frozen=True, slots=True)
class Transport:
    """Parameters of a transport; the defaults are those of the ideal one. Times are modelled seconds.

    efficiency: payload that a flow moves, by what the ideal transport would.
    message: seconds that each message costs its connection beside its bytes.
    round_trip: of a connection on an idle path, beside the delays of its links; 0: no slow start.
    initial_window: bytes that a connection's first window has.
    retransmission: the smallest retransmission time-out; 0: streams go on as soon as their circuits are lit.
    date, machine: when and on what the parameters were fitted; empty for the ideal transport.
    """

    efficiency: float = 1.0
    message: float = 0.0
    round_trip: float = 0.0
    initial_window: float = 0.0
    retransmission: float = 0.0
    date: str = ""
    machine: str = ""

    def __post_init__(self) -> None:
        if not 0 < self.efficiency <= 1:
            raise ValueError(f"efficiency must be above 0 and at most 1, not {self.efficiency:g}")
        for name in ("message", "round_trip", "initial_window", "retransmission"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name} must be 0 or more, not {getattr(self, name):g}")
        if self.round_trip and not self.initial_window:
            raise ValueError("initial_window must be above 0 where round_trip is")

    @property
    def ideal(self) -> bool:
        """Whether it adds nothing to fair sharing."""
        return self.efficiency == 1 and not (self.message or self.round_trip or self.retransmission)

    def slow_start(self, bits: Floats, rate: Floats, round_trip: Floats) -> Floats:
        """Seconds that first messages of `bits` lose on paths of `rate` bit/s, beside the time at full rate.

        In round k a connection sends 2**k initial windows and waits for the rest of the round trip, until a window
        fills the path (rate * round trip) or the message is over: n such rounds take n round trips and move
        (2**n - 1) windows.
        """
        window = 8.0 * self.initial_window
        full = np.ceil(np.log2(np.maximum(rate * round_trip / window, 1.0)))
        needed = np.floor(np.log2(bits / window + 1.0))
        rounds = np.minimum(full, needed)
        return np.maximum(0.0, rounds * round_trip - (np.exp2(rounds) - 1.0) * window / rate)

    def recovery(self, dark: float) -> float:
        """Seconds after the light that streams still stand still when their circuit was dark for `dark` seconds.

        The timer runs from the last acknowledgement, about when the circuit went dark, and fires after 1, 3, 7, ...
        smallest time-outs.
        """
        if self.retransmission <= 0 or dark <= 0:
            return 0.0
        fired = self.retransmission
        backoff = self.retransmission
        while fired < dark:
            backoff *= 2
            fired += backoff
        return fired - dark


IDEAL = Transport()
_PARAMETERS = {field.name for field in fields(Transport)}


def load_transport(path: Path) -> Transport:
    """The transport of a parameter file.

    TOML with the fields of `Transport` as keys, `date` and `machine` among them:

        date = "2026-12-01"
        machine = "2 x EPYC 7B13, Linux 6.1"
        efficiency = 0.97
        message = 2e-6
        round_trip = 30e-6
        initial_window = 14600
        retransmission = 0.004

    A table `fit`, which says what they were fitted on, is left to whoever validates them.
    Raises InputError for a file that cannot be read, an unknown or missing key, and an impossible value.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: {error}") from error
    if isinstance(values.get("fit"), dict):
        del values["fit"]
    return _checked(path, values)


def _checked(path: Path, values: Mapping[str, Any]) -> Transport:
    valid = ", ".join(sorted(_PARAMETERS))
    for key, value in values.items():
        if key not in _PARAMETERS:
            raise InputError(f"{path}: unknown key {key!r}", hint=f"valid: {valid}")
        text = key in ("date", "machine")
        if not isinstance(value, str if text else int | float) or isinstance(value, bool):
            raise InputError(f"{path}: {key} must be {'text' if text else 'a number'}, not {value!r:.40}")
    for key in ("date", "machine", "efficiency"):
        if not values.get(key):
            raise InputError(f"{path}: {key} is missing", hint="say when and on what the parameters were fitted")
    try:
        return Transport(**values)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
