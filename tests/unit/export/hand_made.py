"""Small run directories whose every number was chosen by hand, written by emu's own writer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import PcapWriter

from controllers.decisions import Decision
from controllers.epochs import Epoch, EpochChange
from emu.captures import FOLDER, CapturedLink, CapturedRepeat, Captures
from emu.measurement import (
    CircuitChange,
    CircuitUse,
    DataPlane,
    Health,
    LinkCounters,
    Measurement,
    Repeat,
    Service,
)
from emu.model.ideal import Prediction
from emu.outcome import FabricOutcome, Outcome
from emu.records import CollectiveRecord, FlowRecord, PhaseRecord, Trace
from emu.results import write_run
from emu.scale import Scale
from emu.scenario import load
from emu.scenario.build import BuiltFabric, build_fabrics
from emu.verdict import Reason, Verdict

SCALE = Scale(sigma=1000.0, beta=10000.0)
MB = 10**6
BEGAN = 1_700_000_000.0
"""2023-11-14 22:13:20 UTC."""

SCENARIO = """\
name: hand-made
seed: 3
repeat: 2
emulation: {scale: {sigma: 1000, beta: 10000}}
fabrics:
  - {name: optical, kind: hybrid, pods: 2, hosts_per_pod: 2, uplinks: 1, rate: 100Gbps, reconfiguration: 10ms,
     circuits: {o0: [t0-t1]}}
  - {name: electrical, kind: fat-tree, k: 4, rate: 100Gbps}
workload:
  kind: collectives
  steps: [{name: gradients, collective: all-reduce, size: 100MB, ranks: 0-3}]
"""


def collective(
    name: str, size: int, start: float, took: float, *, kind: str = "all-reduce", label: str = "gradients"
) -> CollectiveRecord:
    """A collective of four ranks."""
    return CollectiveRecord(name, label, "training", kind, "ring", 4, size, 1, start, start + took)


def flow(name: str, ends: str, size: int, start: float, took: float, *, how: str = "packets") -> FlowRecord:
    """A flow; ends: `h0.0 h1.0`. Its first byte is read a tenth of a millisecond after its start."""
    src, dst = ends.split()
    return FlowRecord(name, "", "training", src, dst, size, start, start + 1e-4, start + took, 2, 1e-5, how)


def trace(longer: float = 1.0) -> Trace:
    """Two sizes of an all-reduce (the smaller twice), an all-gather, and a few flows. longer: stretches collectives."""
    return Trace(
        flows=[
            flow("f0", "h0.0 h1.0", 100 * MB, 0.0, 0.01),
            flow("f1", "h0.0 h2.0", 50 * MB, 0.005, 0.01),
            flow("f2", "h3.0 h0.0", 25 * MB, 0.02, 0.0025),
            flow("small", "h2.0 h3.0", 10, 0.03, 5e-6, how="charged"),
        ],
        collectives=[
            collective("gradients.0", 100 * MB, 0.0, 0.010 * longer),
            collective("gradients.1", 200 * MB, 0.02, 0.040 * longer),
            collective("gradients.2", 100 * MB, 0.07, 0.020 * longer),
            collective("weights.0", 400 * MB, 0.1, 0.050 * longer, kind="all-gather", label="weights"),
        ],
        phases={"training": PhaseRecord("training", 0.0, 0.2, packet_bytes=175 * MB, charged_bytes=10)},
        end=0.2,
        complete=True,
    )


def change() -> CircuitChange:
    """Circuits dark from 60 to 70 ms."""
    return CircuitChange(
        epoch=1,
        asked_at=0.06,
        asked_dark=0.01,
        dark_at=0.06,
        lit_at=0.07,
        late_wall=1e-5,
        data_plane=[DataPlane("o0", 0.0099, 1e-3, 1e-4, 2e-4)],
        service=[Service("f0", 0.012)],
    )


def repeat(longer: float, *, circuits: bool) -> Repeat:
    """One run; `circuits`: with a change of them."""
    uses = [CircuitUse(0, "o0", 1, 2, 0.06, 0.3, 66_000, 100, 0), CircuitUse(1, "o0", 1, 2, 0.13, 0.65, 0, 0, 3)]
    return Repeat(
        seed=3,
        trace=trace(longer),
        links=[
            LinkCounters("h0:0", 10_000_000, 166_000, 100, 150_000.0, queue_drops=1),
            LinkCounters("t0:1", 10_000_000, 0, 0, 0.0, switch_drops=2),
        ],
        changes=[change()] if circuits else [],
        health=Health(0.5, 0.0003, 0.0012, 0.004, 6, 0, 0, 128 << 20),
        wall=3.0,
        decisions=[Decision(0.055, "phase training", 0.02, "keep", 0, "lit already")] if circuits else [],
        circuits=uses if circuits else [],
    )


def prediction(built: BuiltFabric, *, circuits: bool) -> Prediction:
    """An ideal in which every collective takes 9 ms and every flow 8 ms."""
    rows = trace()
    ideals = [replace(row, end=row.start + 0.009) for row in rows.collectives]
    phases = {name: replace(row, end=0.16) for name, row in rows.phases.items()}
    changes = (EpochChange(0.06, Epoch(1, built.epoch.matchings), 0.01),) if circuits else ()
    alone = {row.id: 0.008 for row in rows.flows}
    return Prediction(Trace(rows.flows, ideals, phases, end=0.16, complete=True), {}, alone, changes)


def outcome(folder: Path, directory: Path) -> Outcome:
    """Two fabrics, two repeats each; the second repeat's collectives take half as long again."""
    path = folder / "hand-made.yaml"
    path.write_text(SCENARIO)
    scenario = load(path)
    optical, electrical = build_fabrics(scenario)
    slow = Verdict.of([Reason("DEGRADED", "t0:1", "the link was slow", "rate_ratio")])
    return Outcome(
        directory,
        scenario,
        SCALE,
        [_fabric(optical, Verdict("VALID"), circuits=True), _fabric(electrical, slow, circuits=False)],
        began=BEGAN,
        wall=40.0,
    )


def _fabric(built: BuiltFabric, verdict: Verdict, *, circuits: bool) -> FabricOutcome:
    measured = Measurement(built.fabric.name, SCALE.sigma, SCALE.beta)
    measured.repeats = [repeat(longer, circuits=circuits) for longer in (1.0, 1.5)]
    return FabricOutcome(built, prediction(built, circuits=circuits), measured, verdict)


def write(folder: Path, made: Outcome) -> Path:
    """Write a run directory, as version 1.2.3 of emu would; returns it."""
    made.directory.mkdir()
    with patch("emu.results.manifest.emu_version", lambda: "1.2.3"):
        write_run(made)
    return made.directory


def written(folder: Path) -> Path:
    """The run of `outcome`, in its directory."""
    return write(folder, outcome(folder, folder / "run"))


# -- captures ----------------------------------------------------------------------------------------------------------

ZERO_NS = 1_700_000_001_000_000_000
"""Time zero of the first repeat; the second's is ten seconds later."""
SNAPLEN = 68
MS = 1_000_000
JUMP = (0.02, 0.05)
"""Skipped, so circuits that go dark at 60 ms do so 300 ms of wall time after time zero (TDF 10), lit at 400."""
SENT = {"h0:0": (1, 299, 305, 410), "o0:2": (2, 300, 411)}
"""By port, when frames left it: wall milliseconds after time zero."""


def captured(directory: Path, *, repeats: int = 2, full: bool = False, lost: int = 0) -> Path:
    """Add captures of two links of the optical fabric to a run directory. full, lost: of the first link."""
    folder = directory / FOLDER / "optical"
    folder.mkdir(parents=True)
    made = Captures(SNAPLEN)
    for number in range(1, repeats + 1):
        zero = ZERO_NS + (number - 1) * 10_000 * MS
        links = [
            CapturedLink("h0:0", "t0:1", 10**11, 10**7, f"{number}-h0-eth0.pcap", 4, full=full, lost=lost),
            CapturedLink("o0:2", "t1:2", 10**11, 10**7, f"{number}-o0-eth2.pcap", 4),
        ]
        for link in links:
            write_pcap(folder / link.file, [zero + at * MS for at in SENT[link.link]])
        made.repeats.append(CapturedRepeat(number, zero, 10.0, [JUMP], links))
    made.write(folder)
    return directory


def write_pcap(path: Path, stamps: list[int]) -> None:
    """Frames of 1014 bytes from h0 to h1, of which SNAPLEN were kept, as tcpdump writes them."""
    with PcapWriter(str(path), linktype=1, nano=True) as writer:
        writer.write_header(None)
        for number, stamp in enumerate(stamps):
            frame = bytes(_frame(number))
            seconds, rest = divmod(stamp, 1000 * MS)
            writer.write_packet(frame[:SNAPLEN], sec=seconds, usec=rest, caplen=SNAPLEN, wirelen=len(frame))


def _frame(number: int) -> Ether:
    ends = Ether(src="02:00:0a:00:00:01", dst="02:00:0a:00:00:02") / IP(src="10.0.0.1", dst="10.0.0.2", id=number)
    return ends / TCP(sport=5000, dport=6000, seq=1 + 960 * number, ack=1, flags="A") / Raw(b"x" * 960)
