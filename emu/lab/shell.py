"""The commands of the prompt inside a lab: Mininet's own, and those for what Mininet does not know.

Every command of Mininet's works on the lab's hosts and switches. Replaced are those that would disturb the lab or hang
in it: `pingall` and its kin open TCP connections (a ping to an unlit pod would be waited for, one after the other),
`iperf` is iperf3, `link` cuts cables without making hosts forget their routes, `switch NAME start` brings back what emu
had installed, `dpctl` speaks the bridges' OpenFlow version. Added are `circuits`, `light`, `dark`, `epoch`, `routes`
and `counters`; `links` also tells rates.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from controllers.epochs import CircuitError
from emu.errors import EmuError
from emu.lab import shell_tables as tables
from emu.lab.crosscheck import iperf3_rate
from emu.lab.lab import Lab
from emu.lab.openvswitch import run
from emu.lab.reachability import Probe
from emu.lab.shell_circuits import Changed, Optics
from emu.lab.shell_prompt import LabPrompt, output
from emu.scale import Scale
from emu.scenario.build import BuiltFabric
from emu.units import format_rate
from topologies.fabric import FabricError, Kind, Port

_PATIENCE = 1.2
"""Wall seconds to wait for a connection: a SYN that was lost comes again after one."""
_ATTEMPTS = 10


class Shell(LabPrompt):
    """The prompt of one lab."""

    def __init__(self, lab: Lab, built: BuiltFabric, optics: Optics, scale: Scale) -> None:
        """Talk at once, with the standard input, until the user leaves."""
        self.lab, self.built, self.optics, self.scale = lab, built, optics, scale
        self.fabric = lab.fabric
        super().__init__(lab.net, tables.welcome(lab.fabric, optics.epoch, scale))

    # -- circuits --------------------------------------------------------------------------------------------------

    def do_circuits(self, line: str) -> None:
        """Show the circuits of every OCS, or set those of one: circuits [OCS PAIR...]

        Without pairs: what is lit, by OCS, and the epoch. With pairs: these become the only circuits of the OCS, in one
        change. A pair is t0-t1 (the next free uplinks of two nodes), t0:5-t1:6 (ports of theirs) or 3-7 (of the OCS).
        Example: circuits o0 t0-t1 t2-t3
        """
        ocs, pairs = self._ocs(line)
        if pairs:
            self._change(lambda: self.optics.replace(ocs, pairs))
        else:
            output(tables.circuits(self.fabric, self.optics.epoch, ocs))

    def do_light(self, line: str) -> None:
        """Light further circuits on ports that are dark: light [OCS] PAIR...

        Pairs are written as for `circuits`. The OCS may be left out where there is only one.
        Example: light o0 t0-t1
        """
        ocs, pairs = self._ocs(line, "which circuits? e.g. light o0 t0-t1")
        self._change(lambda: self.optics.light(ocs, pairs))

    def do_dark(self, line: str) -> None:
        """Take circuits away: dark [OCS] WHICH...

        WHICH is a pair (t0-t1, t0:5-t1:6, 3-7), an end (t0: all of its circuits), or all.
        Example: dark o0 t0-t1
        """
        ocs, ends = self._ocs(line, "which circuits? e.g. dark o0 t0-t1, or dark o0 all")
        self._change(lambda: self.optics.darken(ocs, ends))

    def do_epoch(self, line: str) -> None:
        """Show the epoch and the scenario's sets of circuits, or move to one of these: epoch [SET]

        Example: epoch 1
        """
        sets = self.built.epochs()
        if not line.strip():
            output(tables.epochs(self.fabric, self.optics.epoch, sets))
            return
        if line.strip() not in (numbers := [str(place) for place in range(len(sets))]):
            raise CircuitError(f"there is no set of circuits {line.strip()!r}; the scenario has {', '.join(numbers)}")
        wanted = sets[int(line)]
        self._change(lambda: self.optics.move_to(wanted.matchings))

    def _ocs(self, line: str, missing: str = "") -> tuple[str, list[str]]:
        """The OCS that a line names (or the only one) and the words behind it."""
        names, words = [node.name for node in self.fabric.ocses], line.split()
        if not names:
            raise CircuitError(f"the fabric {self.fabric.name} has no OCS")
        ocs = ""
        if words and words[0] in names:
            ocs, *words = words
        elif len(names) == 1:
            ocs = names[0]
        elif words or missing:
            raise CircuitError(f"at which OCS? There are {', '.join(names)}")
        if missing and not words:
            raise CircuitError(missing)
        return ocs, words

    def _change(self, change: Callable[[], Changed]) -> None:
        with _uninterrupted():
            done = change()
        output(tables.changed(done, self.scale))

    # -- what the lab is and does ----------------------------------------------------------------------------------

    def do_links(self, line: str) -> None:
        """List the links with their rates, modelled and in the lab: links [NODE...]

        Example: links t0
        """
        wanted = self._nodes(line)
        links = [link for link in self.mn.links if {link.intf1.node.name, link.intf2.node.name} & wanted]
        output(tables.links(self.fabric, links, self.scale, self.lab.delays))

    def do_routes(self, line: str) -> None:
        """Show what a switch or OCS forwards where, with the packets that each rule has met: routes NODE

        Example: routes t0
        """
        dpids = self.lab.control.dpids
        if line.strip() not in dpids:
            raise FabricError(f"routes of which switch? There are {' '.join(dpids)}")
        flows = self.lab.control.client.read_flows(dpids[line.strip()])
        output(tables.routes(self.fabric, line.strip(), flows))

    def do_counters(self, line: str) -> None:
        """Show what every port has sent and lost since the lab began: counters [NODE...]

        Example: counters t0 o0
        """
        output(tables.counters(self.fabric, self.lab.ports.read(), self._nodes(line)))

    def _nodes(self, line: str) -> set[str]:
        """The nodes that a line names, all if none. Raises FabricError for a name that is none."""
        names = line.split()
        return {self.fabric.node(name).name for name in names or (node.name for node in self.fabric.nodes)}

    # -- Mininet's, for this lab -----------------------------------------------------------------------------------

    def do_pingall(self, line: str) -> None:
        """See which hosts reach which, by opening a TCP connection between each two: pingall [SECONDS]

        SECONDS: how long to wait for those that do not answer (default 1.2).
        """
        self._probe(self.fabric.hosts, line).run(output)

    def do_pingallfull(self, line: str) -> None:
        """The same as pingall, with the time that each connection took to open."""
        self._probe(self.fabric.hosts, line).run(output, full=True)

    def do_pingpair(self, line: str) -> None:
        """See whether the first two hosts reach each other."""
        self._probe(self.fabric.hosts[:2], line).run(output)

    def do_pingpairfull(self, line: str) -> None:
        """The same as pingpair, with the time that each connection took to open."""
        self._probe(self.fabric.hosts[:2], line).run(output, full=True)

    def _probe(self, hosts: Sequence[Any], line: str) -> Probe:
        patience = float(line) if line.strip() else _PATIENCE
        return Probe(self.fabric, self.lab.net.namespaces, [host.name for host in hosts], patience)

    def do_iperf(self, line: str) -> None:
        """Measure TCP between two hosts, by default the first and the last, with iperf3: iperf [HOST HOST]"""
        self._iperf(line.split(), ("-C", self.lab.scenario.transport.cc))

    def do_iperfudp(self, line: str) -> None:
        """Measure UDP at a rate between two hosts with iperf3: iperfudp RATE [HOST HOST]

        Example: iperfudp 10M h0 h1
        """
        rate, *names = line.split() or ("10M",)
        self._iperf(names, ("-u", "-b", rate, "-l", str(min(1400, self.mn.mtu - 28))))

    def _iperf(self, names: Sequence[str], options: Sequence[str]) -> None:
        ends = names or [self.fabric.hosts[0].name, self.fabric.hosts[-1].name]
        if len(ends) != 2:
            raise FabricError("between which two hosts? e.g. iperf h0 h1")
        src, dst = (self.fabric.nics(name)[0] for name in ends)
        if not Probe(self.fabric, self.mn.namespaces, ends, _PATIENCE).reached():
            raise FabricError(f"{ends[0]} does not reach {ends[1]}")
        rate = iperf3_rate(self.mn, (src, dst), options)
        output(
            f"{ends[0]} -> {ends[1]}: {format_rate(rate)} of payload (modelled {format_rate(rate * self.scale.beta)})\n"
        )

    def do_dpctl(self, line: str) -> None:
        """Run ovs-ofctl on every switch: dpctl COMMAND [ARGUMENTS]

        Example: dpctl dump-flows
        """
        command, *arguments = line.split() or ("dump-flows",)
        for switch in self.mn.switches:
            output(f"*** {switch.name} {'-' * 72}\n")
            output(run("ovs-ofctl", "-O", "OpenFlow14", command, switch.name, *arguments))

    def do_link(self, line: str) -> None:
        """Take the cables between two nodes down, or up again: link NODE NODE up|down

        Example: link t0 c0 down
        """
        a, b, what = (line.split() + 3 * [""])[:3]
        cables = [(x, y) for x, y in self._cables(a) if y.node == b]
        if not cables or what not in ("up", "down"):
            raise FabricError(f"no cable joins {a!r} and {b!r}" if what else "which link? e.g. link t0 c0 down")
        for end in (end for ends in cables for end in ends):
            # A host that took its own end down would forget its routes; the other end is enough to cut the cable.
            if self.fabric.node(end.node).kind is not Kind.HOST:
                run("ip", "link", "set", "dev", end.interface, what)

    def _cables(self, node: str) -> list[tuple[Port, Port]]:
        return [(port, self.fabric.peer(port)) for port in self.fabric.ports(node)]

    def do_switch(self, line: str) -> None:
        """Stop a switch, or start it again with the rules of the present epoch: switch NAME start|stop"""
        name, _, what = line.strip().partition(" ")
        if name not in self.lab.control.dpids or what not in ("start", "stop"):
            raise FabricError("which switch, start or stop? e.g. switch t0 stop")
        switch = self.mn.get(name)
        if what == "stop":
            switch.stop(deleteIntfs=False)
            return
        switch.start(self.mn.controllers)
        switch.batchStartup([switch])
        self.lab.raise_buffers()
        self._install()

    def _install(self) -> None:
        """Give the switches their rules again; a new connection may still be about to take an old one's place."""
        for left in reversed(range(_ATTEMPTS)):
            try:
                self.lab.control.wait_for_switches()
                self.lab.control.install(self.optics.epoch)
            except EmuError:
                if not left:
                    raise
                time.sleep(0.3)
            else:
                return


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """An interrupt waits: halfway through a change nobody would know which circuits are lit."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
