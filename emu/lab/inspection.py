"""Looking at a lab after a run: is it still what was set up, and which link is to blame if it was slow?"""

from __future__ import annotations

from collections.abc import Mapping

from emu.lab.calibrate import GOOD, LinkCalibrator
from emu.lab.lab import Lab
from emu.lab.openvswitch import BUFFER_BYTES
from emu.measurement import Finding
from emu.units import format_rate
from topologies.fabric import Port


def inspect(lab: Lab, declared: Mapping[Port, int]) -> list[Finding]:
    """Rules that emu did not install, shapers and buffers that are no longer what was set."""
    return [*_rules(lab), *_shapers(lab, declared), *_buffers(lab)]


def slow_links(lab: Lab, calibrator: LinkCalibrator) -> list[Finding]:
    """What a calibration says about slow links: each one by name, or that the machine carries too little altogether."""
    blamed = calibrator.blamed()
    everywhere = len(set().union(*blamed)) > len(calibrator.declared) / 2 if blamed else False
    if everywhere:
        best = max(calibrator.best.values())
        text = f"most links fall short of their rate (the best flow came to {best:.0%}): the {lab.datapath} datapath"
        return [Finding("datapath", lab.fabric.name, f"{text} cannot carry this scale on this machine")]
    return [Finding("link", lab.names(links), _shortfall(calibrator, links)) for links in blamed]


def _shortfall(calibrator: LinkCalibrator, links: set[Port]) -> str:
    share = min(calibrator.best[port] for port in links)
    declared = min(calibrator.declared[port] for port in links)
    which = "it carries" if len(links) == 1 else "one of them carries"
    return f"{which} {share:.0%} of the declared {format_rate(declared)} (at least {GOOD:.0%} is expected)"


def _rules(lab: Lab) -> list[Finding]:
    return [Finding("rule", switch, reason) for switch, reason in lab.control.foreign_rules()]


def _shapers(lab: Lab, declared: Mapping[Port, int]) -> list[Finding]:
    counts = lab.ports.read()
    found = []
    for port, rate in declared.items():
        configured = counts[port].configured
        # HTB keeps bytes a second: up to 8 bit/s are lost in rounding.
        if configured is None or abs(configured - rate) > 8:
            now = "gone" if configured is None else f"set to {format_rate(configured)}"
            text = f"its shaper is {now}, declared was {format_rate(rate)}"
            found.append(Finding("shaper", lab.names([port]), text))
    return found


def _buffers(lab: Lab) -> list[Finding]:
    if lab.buffers is None:
        return []
    smallest = min((min(s.send_buffer, s.receive_buffer) for s in lab.buffers.states()), default=BUFFER_BYTES)
    if smallest >= BUFFER_BYTES:
        return []
    text = f"a buffer of its AF_PACKET sockets is {smallest} bytes, set were {BUFFER_BYTES}"
    return [Finding("buffer", "ovs-vswitchd", text)]
