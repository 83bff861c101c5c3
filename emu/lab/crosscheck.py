"""The same pair of hosts measured by iperf3 and by emu's own engine: two tools that share no code must agree."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from emu.lab.calibrate import Pair, Rates
from emu.lab.errors import LabError
from emu.lab.network import LabNet
from emu.measurement import CrossCheck

_SECONDS, _OMIT, _PORT = 2, 1, 5201
_TIMEOUT = 10.0


def cross_check(net: LabNet, pair: Pair, rates: Rates, congestion_control: str) -> CrossCheck:
    """Measure a pair with both. Raises LabError if iperf3 fails or does not end."""
    src, dst = pair
    iperf3 = iperf3_rate(net, pair, ("-C", congestion_control))
    return CrossCheck(str(src), str(dst), iperf3, rates.measure([pair])[0])


def iperf3_rate(net: LabNet, pair: Pair, options: Sequence[str] = ()) -> float:
    """Payload bit/s that iperf3's receiver saw. options: further ones for its client.

    Raises LabError if it fails or does not end.
    """
    src, dst = pair
    address, port = net.fabric.address(dst), str(_PORT)
    server = _start(net, dst.node, "iperf3", "-s", "-1", "-B", address, "-p", port, "-J")
    try:
        _wait_listening(net, dst.node)
        own = net.fabric.address(src)
        timing = ("-t", str(_SECONDS), "-O", str(_OMIT), "-J")
        client = _start(net, src.node, "iperf3", "-c", address, "-B", own, "-p", port, *timing, *options)
        return _received_rate(client)
    finally:
        server.kill()
        server.wait()


def _start(net: LabNet, host: str, *command: str) -> subprocess.Popen[bytes]:
    process: subprocess.Popen[bytes] = net.get(host).popen(*command, stdin=subprocess.DEVNULL)
    return process


def _wait_listening(net: LabNet, host: str) -> None:
    wanted = f":{_PORT:04X}"
    deadline = time.monotonic() + _TIMEOUT
    while time.monotonic() < deadline:
        with open(f"/proc/{net.get(host).pid}/net/tcp") as table:
            if any(row.split()[1].endswith(wanted) for row in list(table)[1:]):
                return
        time.sleep(0.02)
    raise LabError(f"iperf3 did not listen on {host} within {_TIMEOUT:g} s")


def _received_rate(client: subprocess.Popen[bytes]) -> float:
    try:
        out, _ = client.communicate(timeout=_TIMEOUT)
    except subprocess.TimeoutExpired as error:
        client.kill()
        client.wait()
        raise LabError(f"iperf3 did not end within {_TIMEOUT:g} s") from error
    report = _parse(out)
    if "error" in report:  # iperf3 may exit with status 0 and say only here that it failed
        raise LabError(f"iperf3: {report['error']}")
    return float(report["end"]["sum_received"]["bits_per_second"])


def _parse(out: bytes) -> dict[str, Any]:
    try:
        report = json.loads(out)
    except ValueError as error:
        raise LabError(f"iperf3 printed no JSON: {out[:200]!r}") from error
    if not isinstance(report, dict):
        raise LabError(f"iperf3 printed no report: {out[:200]!r}")
    return report
