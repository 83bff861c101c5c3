"""Hosts are set up as the scenario says, by the kernel's own word and by what TCP does."""

from __future__ import annotations

import contextlib
import errno
import re
import socket
import struct
import time
from pathlib import Path

import pytest
from pyroute2 import IPRoute

from emu.lab.network import mac_address
from emu.packet.lanes import Lane, LaneKey
from emu.wire import ETHERNET_HEADER
from tests.lab.topologies.bench import MTU, Bench, nic, on_bench
from topologies.fabric import Port

pytestmark = pytest.mark.lab

IP_MTU_DISCOVER, IP_PMTUDISC_DO = 10, 2
IP_UDP_HEADERS = 28
PERMANENT = 0x80


def in_host(bench: Bench, host: str, *command: str) -> str:
    """What a command prints in a host."""
    out, error, status = bench.lab.net.get(host).pexec(*command)
    assert status == 0, error
    return str(out)


def opened(bench: Bench, src: Port, dst: Port) -> Lane:
    """A fresh connection."""
    key = LaneKey(src, dst, "settings")
    bench.lanes.open_all([key])
    lane = bench.lanes.get(key)
    assert lane is not None
    return lane


def tcp_info(lane: Lane) -> tuple[int, int]:
    """The retransmission time-out in seconds and the congestion window in segments, of struct tcp_info."""
    raw = lane.sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    return struct.unpack_from("I", raw, 8)[0] / 1e6, struct.unpack_from("I", raw, 80)[0]


def datagrams(bench: Bench, src: Port, dst: Port) -> tuple[socket.socket, socket.socket]:
    """A UDP socket that sends with DF set, connected to one that receives."""
    with bench.lab.ports.namespace_of(dst):
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind((bench.fabric.address(dst), 9))
    receiver.settimeout(2)
    with bench.lab.ports.namespace_of(src):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
    sender.connect(receiver.getsockname())
    return sender, receiver


TRANSPORT = {"cc": "reno", "rto_min": "60ms", "initcwnd": 17, "slow_start_after_idle": False}


@on_bench(kind="fat-tree", k=4, hosts=4, rate="20Mbps", transport=TRANSPORT)
def test_tcp_is_as_the_scenario_says(bench: Bench) -> None:
    """Not the kernel's defaults: congestion control, smallest time-out, first window, no restart after idling."""
    lane = opened(bench, nic(0), nic(3))
    timeout, window = tcp_info(lane)
    assert 0.06 <= timeout < 0.15  # the kernel's own smallest is 0.2 s
    assert window == 17
    assert lane.sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0") == b"reno"
    with bench.lab.ports.namespace_of(nic(0)):
        by_route = socket.socket()
        for name, value in (("tcp_slow_start_after_idle", "0"), ("tcp_no_metrics_save", "1")):
            assert Path(f"/proc/sys/net/ipv4/{name}").read_text().strip() == value
    by_route.connect((bench.fabric.address(nic(3)), 5001))
    assert by_route.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0") == b"reno"
    routes = in_host(bench, "h0", "ip", "route", "show", "table", "100")
    assert "rto_min 60ms" in routes
    assert "initcwnd 17" in routes
    assert "congctl reno" in routes


@on_bench(kind="fat-tree", k=4, hosts=8, nics=2, rate="20Mbps")
def test_hosts_are_quiet_and_know_each_other(bench: Bench) -> None:
    """No IPv6, nobody left to ask ARP for, on both NICs."""
    for host in ("h0", "h7"):
        with bench.lab.net.namespaces[host].entered(), IPRoute() as netlink:
            assert Path("/proc/thread-self/net/if_inet6").read_text() == ""
            indexes = [netlink.link_lookup(ifname=port.interface)[0] for port in bench.fabric.nics(host)]
            known = {
                (n["ifindex"], n.get_attr("NDA_DST"), n.get_attr("NDA_LLADDR"), n["state"])
                for n in netlink.get_neighbours()
            }
        others = [other for other in bench.fabric.all_nics if other.node != host]
        assert known == {
            (index, bench.fabric.address(other), mac_address(bench.fabric, other), PERMANENT)
            for index in indexes
            for other in others
        }


@on_bench(kind="fat-tree", k=4, hosts=4, rate="20Mbps")
def test_what_tcp_sends_is_what_the_wire_carries(bench: Bench) -> None:
    """Segmentation and checksums are done in the host: no frame is larger than the MTU allows, many are as large."""
    features = dict(re.findall(r"^\s*(\S+): (on|off)", in_host(bench, "h0", "ethtool", "-k", "h0-eth0"), re.MULTILINE))
    for name in ("tx-checksumming", "tx-tcp-segmentation", "generic-segmentation-offload"):
        assert features[name] == "off"
    with bench.lab.ports.namespace_of(nic(0)):
        tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
    tap.setblocking(False)
    bench.send({(nic(0), nic(3)): 300_000}, timeout=5)
    sizes = []
    with contextlib.suppress(BlockingIOError):
        while True:
            sizes.append(tap.recv_into(bytearray(1), 1, socket.MSG_TRUNC))
    assert max(sizes) == MTU + ETHERNET_HEADER
    assert sizes.count(MTU + ETHERNET_HEADER) >= 10  # the tap's buffer does not hold them all


@on_bench(kind="fat-tree", k=4, hosts=8, rate="20Mbps")
def test_a_full_packet_passes_whole_and_no_larger_one(bench: Bench) -> None:
    """9000 bytes with DF set cross all six links in one frame; one byte more is refused at the host."""
    sender, receiver = datagrams(bench, nic(0), nic(7))
    before = bench.sent()
    sender.send(bytes(MTU - IP_UDP_HEADERS))
    assert len(receiver.recv(1 << 16)) == MTU - IP_UDP_HEADERS
    time.sleep(0.1)
    after = bench.sent()
    assert [after[port] - before[port] for port in bench.path(nic(0), nic(7))] == [1] * 6
    with pytest.raises(OSError) as refused:  # noqa: PT011 - its number is looked at
        sender.send(bytes(MTU - IP_UDP_HEADERS + 1))
    assert refused.value.errno == errno.EMSGSIZE
