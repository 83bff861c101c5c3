"""What is done in a lab: find its capacity, or measure a workload. Runs inside a room and does not know which."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from controllers.circuits import with_dark
from controllers.epochs import Epoch
from controllers.paths import LitGraph
from emu.lab import system
from emu.lab.calibrate import LinkCalibrator, Rates, farthest_permutation
from emu.lab.capture import Recorder
from emu.lab.circuits import LabCircuits
from emu.lab.counters import emulated_rates
from emu.lab.crosscheck import cross_check
from emu.lab.crossings import CrossingMeter
from emu.lab.darktime import DarkTime
from emu.lab.inspection import inspect, slow_links
from emu.lab.job import Job
from emu.lab.lab import Lab
from emu.lab.rehearsal import Rehearsal, rehearse
from emu.lab.shaping import frame_bytes
from emu.lab.snapshot import Snapshot
from emu.lab.stepcost import step_cost
from emu.measurement import Capacity, Health, LabFacts, LinkCounters, Measurement, Repeat
from emu.model.conditions import Conditions
from emu.model.ideal import Prediction
from emu.packet.charging import Charging
from emu.packet.engine import PacketEngine
from emu.packet.lanes import LaneKey, Lanes
from emu.plan.rates import own_rate
from emu.progress import Progress
from emu.queues import decision_leads, emptying_time, moving_time
from emu.scale import Scale
from emu.scenario.build import build_fabrics, cluster_of
from emu.scenario.schema import Scenario
from emu.scenario.traffic import build_orchestrator
from emu.wire import payload_efficiency
from topologies.fabric import Port

ALPHA = 5e-6
"""Modelled seconds that a message too small to send is charged beside its bytes: a NIC's and a switch's latency."""
_SETTLE = 0.4
SMALLEST_BAND, LARGEST_BAND = 0.97, 1.12
"""Outside this measured/ideal the links are calibrated again after the run, to find the one to blame."""


class Session:
    """One job in one lab."""

    def __init__(self, job: Job, scenario: Scenario, directory: Path, tell: Callable[[Progress], None]) -> None:
        self._job, self._scenario = job, scenario
        self._scale = Scale(job.sigma, job.beta)
        self.built = build_fabrics(scenario)[job.fabric]
        self.fabric = self.built.fabric
        self._cluster = cluster_of(self.fabric)
        self._efficiency = payload_efficiency(scenario.emulation.mtu)
        self._frame = frame_bytes(scenario.emulation.mtu)
        self.lab = Lab(scenario, self.built, directory, tell)
        self._rehearsals: dict[int, Rehearsal] = {}
        self.measurement = Measurement(self.fabric.name, job.sigma, job.beta)
        self.recorder = Recorder(self.fabric, scenario.capture, scenario.repeat, job.beta)

    # -- capacity ----------------------------------------------------------------

    def capacity(self) -> Capacity:
        """Build the lab without limits, let every host send, and time dependent steps and barriers."""
        lab = self.lab
        lab.build(tdf=1.0)
        lab.install(self.built.epoch)
        lab.verify_wiring()
        lanes = lab.open_lanes()
        lab.say("calibrate", "what this machine can carry")
        rates = Rates(lab.loop, lanes)
        tables = lab.control.tables(self.built.epoch)
        pairs = farthest_permutation(self.fabric, tables)
        rates.measure(pairs[:1], warm_up=0.1, window=0.1)  # the first packet makes Open vSwitch open its sending socket
        lab.raise_buffers()
        per_nic = fmean(rates.measure(pairs, window=1.5)) / self._efficiency
        fastest = max(self.fabric.link(nic).rate for nic in self.fabric.all_nics)
        beta = fastest / own_rate(per_nic)
        lab.ports.shape_all(emulated_rates(self.fabric, beta), lab.queue_floor)
        cost = step_cost(lab, lanes, beta, self._efficiency)
        jitter = sorted(lab.control.barrier_times())[-1]
        return Capacity(self.fabric.name, per_nic, cost, jitter)

    # -- measuring -----------------------------------------------------------------

    def measure(self) -> Measurement:
        """Build the lab, check it, run every repeat, look at it again. `measurement` grows meanwhile."""
        lab = self.lab
        lab.build(self._scale.tdf)
        lab.install(self.built.epoch)
        lab.verify_wiring()
        queue = lab.shape(self._scale.beta, self._scale.sigma)
        self._facts(queue)
        lanes = lab.open_lanes()
        self._prepare(lanes)
        for seed in self._job.seeds:
            with self.recorder.recording(lab):
                self._repeat(lanes, seed)
        self._look_again(lanes)
        return self.measurement

    def _facts(self, queue: int) -> None:
        idle = system.CpuTimes.read()
        time.sleep(_SETTLE)
        lab = self.lab
        self.measurement.facts = LabFacts(
            room=self._job.room,
            datapath=lab.datapath,
            kernel=system.versions()["kernel"],
            versions={**system.versions(), "controller": lab.library},
            mtu=self._scenario.emulation.mtu,
            queue_bytes=queue,
            queue_floored=queue == lab.queue_floor,
            socket_buffers="raised" if lab.buffers else "left",
            idle_cpu_before=system.CpuTimes.read().idle_share_since(idle),
            stage_wall=lab.stage_wall,
            notes=lab.notes,
        )

    def _rehearse(self, seed: int) -> Rehearsal:
        if seed not in self._rehearsals:
            orchestrator = build_orchestrator(self._scenario, self._cluster, seed=seed, buckets=self._job.buckets)
            self._rehearsals[seed] = rehearse(self.fabric, orchestrator, self._cluster, self._conditions())
        return self._rehearsals[seed]

    def _conditions(self) -> Conditions:
        leads = decision_leads(self.fabric, self.built.dark, self._scenario.emulation, self._scale)
        return replace(self.built.conditions(self._scenario.seed, self._efficiency, *leads), delays=self.lab.delays)

    def _prepare(self, lanes: Lanes) -> None:
        """In each epoch: open the connections that it makes possible and calibrate the links that it lights."""
        lab = self.lab
        rates = Rates(lab.loop, lanes)
        declared = emulated_rates(self.fabric, self._scale.beta)
        self._calibrator = LinkCalibrator(self.fabric, rates, declared, self._efficiency, self._frame)
        rehearsals = [self._rehearse(seed) for seed in sorted(set(self._job.seeds))]
        wanted = {key for rehearsal in rehearsals for key in rehearsal.lanes}
        epochs = self.built.epochs(change for one in rehearsals for change in one.prediction.changes)
        for epoch in epochs:
            if epoch is not self.built.epoch:
                lab.control.install(epoch)
            lab.say("calibrate", f"epoch {epoch.number}: connections and link rates")
            self._open(lanes, wanted, epoch)
            self._calibrator.run(lab.control.tables(epoch))
            if epoch is self.built.epoch:
                self._check_with_iperf3(rates)
        for rehearsal in rehearsals:
            self._prepare_detours(rehearsal)
        if len(epochs) > 1:
            lab.control.install(self.built.epoch)
        self.measurement.calibration = self._calibrator.report(self._configured())
        self.measurement.findings += slow_links(self.lab, self._calibrator)

    def _prepare_detours(self, rehearsal: Rehearsal) -> None:
        """Work out now the tables between epochs that will be needed while traffic runs."""
        if self.built.dark.mode != "detour":
            return
        epochs = [self.built.epoch, *(change.epoch for change in rehearsal.prediction.changes)]
        for old, new in itertools.pairwise(epochs):
            self.lab.control.tables(with_dark(old, new))

    def _open(self, lanes: Lanes, wanted: set[LaneKey], epoch: Epoch) -> None:
        graph = LitGraph(self.fabric, epoch)
        ready = {key for key in wanted if graph.reaches(key.src, key.dst) and graph.reaches(key.dst, key.src)}
        lanes.open_all(sorted(ready))
        wanted -= ready
        self.lab.raise_buffers()

    def _check_with_iperf3(self, rates: Rates) -> None:
        tables = self.lab.control.tables(self.built.epoch)
        pairs = farthest_permutation(self.fabric, tables)
        if not pairs:
            return
        self.lab.say("calibrate", f"{pairs[0][0]} -> {pairs[0][1]} by iperf3 too")
        self.measurement.cross_check = cross_check(self.lab.net, pairs[0], rates, self._scenario.transport.cc)

    def _configured(self) -> dict[Port, int | None]:
        return {port: count.configured for port, count in self.lab.ports.read().items()}

    # -- one repeat -----------------------------------------------------------------

    def _repeat(self, lanes: Lanes, seed: int) -> None:
        lab, prediction = self.lab, self._rehearse(seed).prediction
        if self.fabric.ocses and self.measurement.repeats:
            lab.control.install(self.built.epoch)
        orchestrator = build_orchestrator(self._scenario, self._cluster, seed=seed, buckets=self._job.buckets)
        built = self.built
        emulation = self._scenario.emulation
        moving = moving_time(self.fabric, built.dark, emulation, self._scale)
        emptied = emptying_time(self.fabric, emulation, self._scale)
        dark = DarkTime(lab, lanes, built.epoch, self._scale.tdf, ahead=moving, tail=emptied)
        circuits = LabCircuits(
            *(lab.control, built.epoch, built.policy, built.reconfiguration, lab.loop, dark),
            dark=built.dark,
            ahead=moving,
        )
        total = max(1, len(prediction.trace.flows))
        engine = PacketEngine(
            orchestrator,
            self._cluster,
            self.fabric,
            lab.loop,
            lanes,
            self._scale,
            Charging(emulation.mtu, ALPHA, emulation.small_messages == "send"),
            circuits,
            lambda now: self._pulse(engine, total, now),
            CrossingMeter(self.fabric, self._scale.sigma).read,
        )
        self.recorder.clock = engine.clock
        before = Snapshot.take(self.lab)
        began = time.monotonic()
        try:
            engine.run()
        finally:
            circuits.stop()
            used = dark.finish(engine.dispatcher.trace.end)
            after = Snapshot.take(lab, dark.probes)
            dark.close()
            result = self._result(seed, engine, circuits, prediction, (before, after), time.monotonic() - began)
            self.measurement.repeats.append(replace(result, circuits=used))

    def _pulse(self, engine: PacketEngine, total: int, now: float) -> None:
        self.lab.check_alive()
        done = len(engine.dispatcher.trace.flows)
        self.lab.say("traffic", f"{now:.3g} s modelled, {done} of {total} transfers", min(1.0, done / total))

    def _result(
        self,
        seed: int,
        engine: PacketEngine,
        circuits: LabCircuits,
        prediction: Prediction,
        counted: tuple[Snapshot, Snapshot],
        wall: float,
    ) -> Repeat:
        (before, after), lag = counted, self.lab.loop.lag
        health = Health(
            idle_cpu=after.cpu.idle_share_since(before.cpu),
            lag_p50=lag.quantile(0.5),
            lag_p99=lag.quantile(0.99),
            lag_max=lag.quantile(1.0),
            retransmits=after.retransmits - before.retransmits,
            receive_drops=after.receive_drops - before.receive_drops,
            dark_drops=after.dark_drops - before.dark_drops,
            smallest_buffer=after.smallest_buffer,
            late_connections=engine.late_lanes,
        )
        lag.lags.clear()
        jumps = engine.clock.jumps
        return Repeat(
            seed=seed,
            trace=engine.dispatcher.trace,
            links=[self._link(port, before, after, prediction) for port in after.ports],
            changes=circuits.changes,
            decisions=circuits.decisions,
            health=health,
            wall=wall,
            jumped=sum(jump.end - jump.start for jump in jumps),
            jumps=len(jumps),
        )

    def _link(self, port: Port, before: Snapshot, after: Snapshot, prediction: Prediction) -> LinkCounters:
        old, new = before.ports[port], after.ports[port]
        return LinkCounters(
            link=str(port),
            rate=round(self.fabric.link(port).rate / self._scale.beta),
            bytes=new.bytes - old.bytes,
            packets=new.packets - old.packets,
            expected_bytes=prediction.link_bytes.get(port, 0) / self._scale.sigma,
            queue_drops=new.queue_drops - old.queue_drops,
            switch_drops=after.switch_drops.get(port, 0) - before.switch_drops.get(port, 0),
        )

    # -- afterwards --------------------------------------------------------------------

    def _look_again(self, lanes: Lanes) -> None:
        """Is everything still as it was set? And if a collective came out strange, which link is to blame?"""
        self.lab.say("check", "rules, shapers, buffers")
        self.measurement.findings += inspect(self.lab, emulated_rates(self.fabric, self._scale.beta))
        if self.measurement.findings or not self._strange():
            return
        self.lab.say("check", "a collective is out of its band: link rates again")
        declared = emulated_rates(self.fabric, self._scale.beta)
        again = LinkCalibrator(self.fabric, Rates(self.lab.loop, lanes), declared, self._efficiency, self._frame)
        self.lab.control.install(self.built.epoch)
        again.run(self.lab.control.tables(self.built.epoch))
        self.measurement.findings += slow_links(self.lab, again)

    def _strange(self) -> bool:
        for repeat in self.measurement.repeats:
            expected = self._rehearse(repeat.seed).prediction.cct
            for row in repeat.trace.collectives:
                if expected.get(row.id) and not SMALLEST_BAND <= row.cct / expected[row.id] <= LARGEST_BAND:
                    return True
        return False
