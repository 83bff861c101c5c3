"""A host's own network settings: addresses, neighbours, offloads, TCP timers; none reaches past its namespace.

TCP's timers are set, never left: with the kernel's 200 ms minimum a flow would lose more to its retransmission timer
than to the dark time under test, and the ranking of fabrics would change with the dilation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyroute2 import IPRoute
from pyroute2.ethtool.ioctl import IoctlEthtool

from emu.lab.errors import LabError
from emu.lab.namespaces import NetworkNamespace
from emu.lab.network import mac_address
from emu.lab.openvswitch import run
from topologies.fabric import Fabric, Port

_SYSCTL = Path("/proc/sys/net")
_NOPREFIXROUTE, _LINK_SCOPE = 0x200, 253
_SUBNET = "10.0.0.0/8"
_TABLE = 100


@dataclass(frozen=True, slots=True)
class TransportSettings:
    """TCP in a host, in emulated time.

    congestion_control: a name that the kernel has. rto_min: seconds. initcwnd: segments.
    """

    congestion_control: str
    rto_min: float
    initcwnd: int
    slow_start_after_idle: bool


def available_congestion_controls() -> frozenset[str]:
    """What the kernel allows in this namespace."""
    return frozenset((_SYSCTL / "ipv4/tcp_available_congestion_control").read_text().split())


def quiet_ipv6() -> None:
    """Switch IPv6 off for all interfaces to come in the current namespace (its chatter would cross every link)."""
    for scope in ("all", "default"):
        path = _SYSCTL / f"ipv6/conf/{scope}/disable_ipv6"
        if path.exists():
            path.write_text("1")


def configure(
    fabric: Fabric, host: str, namespace: NetworkNamespace, transport: TransportSettings, datapath: str
) -> None:
    """Set up one host inside its namespace: TCP, offloads, addresses, routes per NIC, static neighbours.

    Raises LabError if the kernel lacks something that was asked for.
    """
    with namespace.entered():
        quiet_ipv6()
        _set_tcp(transport)
        nics = fabric.nics(host)
        with IPRoute() as netlink:
            indexes = {link.get_attr("IFLA_IFNAME"): link["index"] for link in netlink.get_links()}
            netlink.link("set", index=indexes["lo"], state="up")
            for nic in nics:
                _set_offloads(nic.interface, datapath)
                _set_nic(netlink, fabric, nic, indexes[nic.interface], transport)
        _set_neighbours(fabric, host)


def _set_tcp(transport: TransportSettings) -> None:
    if transport.congestion_control not in available_congestion_controls():
        known = ", ".join(sorted(available_congestion_controls()))
        raise LabError(f"congestion control {transport.congestion_control!r} is not in this kernel; it has: {known}")
    _write("ipv4/tcp_slow_start_after_idle", int(transport.slow_start_after_idle))
    _write("ipv4/tcp_no_metrics_save", 1)
    for name in ("all", "default"):
        _write(f"ipv4/conf/{name}/rp_filter", 0)
    if (_SYSCTL / "ipv4/tcp_rto_min_us").exists():  # Linux 6.11 and later; the route's rto_min serves the others
        _write("ipv4/tcp_rto_min_us", max(1, round(transport.rto_min * 1e6)))


def _write(name: str, value: object) -> None:
    try:
        (_SYSCTL / name).write_text(str(value))
    except OSError as error:
        raise LabError(f"cannot set net.{name.replace('/', '.')} to {value} in a host: {error.strerror}") from error


def _set_offloads(interface: str, datapath: str) -> None:
    """Segmentation off, so that a packet is a frame; checksums in software where the datapath cannot finish them.

    A frame that leaves a veth with its checksum still to be made reaches an AF_PACKET reader unfinished, and the
    receiving TCP drops it, while ping works.
    """
    off = ["tcp-segmentation-offload", "generic-segmentation-offload"]
    if datapath == "user":
        off.insert(0, "tx-checksumming")
    device = IoctlEthtool(interface)
    try:
        for name in off:
            device.set_offload_flag(name, 0)
        flags = device.get_offload_flags()
    finally:
        device.close()
    if any(flags[name] for name in off):
        raise LabError(f"{interface}: the kernel did not switch off {', '.join(off)}")


def _set_nic(netlink: IPRoute, fabric: Fabric, nic: Port, index: int, transport: TransportSettings) -> None:
    address = fabric.address(nic)
    netlink.link("set", index=index, state="up")
    netlink.addr("add", index=index, address=address, prefixlen=8, flags=_NOPREFIXROUTE)
    # The congestion control goes with the route: a namespace may not make a restricted one its default.
    metrics = {
        "initcwnd": transport.initcwnd,
        "rto_min": max(1, round(transport.rto_min * 1e3)),
        "cc_algo": transport.congestion_control,
    }
    route: dict[str, Any] = {"dst": _SUBNET, "oif": index, "scope": _LINK_SCOPE, "prefsrc": address, "metrics": metrics}
    if nic.number == 0:
        netlink.route("add", **route)
    netlink.route("add", table=_TABLE + nic.number, **route)
    netlink.rule("add", src=address, src_len=32, table=_TABLE + nic.number, priority=_TABLE + nic.number)


def _set_neighbours(fabric: Fabric, host: str) -> None:
    """In one batch of iproute2's: they are as many as hosts squared, and pyroute2 takes a millisecond for each."""
    lines = [
        f"neighbour add {fabric.address(other)} lladdr {mac_address(fabric, other)} dev {nic.interface} nud permanent"
        for nic in fabric.nics(host)
        for other in _others(fabric, host)
    ]
    run("ip", "-batch", "-", text="\n".join(lines))


def _others(fabric: Fabric, host: str) -> Iterable[Port]:
    return (nic for nic in fabric.all_nics if nic.node != host)
