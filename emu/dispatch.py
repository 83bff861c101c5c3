"""Between an orchestrator and an engine: which transfers may start now, and what the orchestrator then hears.

The dispatcher lowers collectives, follows dependencies, keeps timers and computations, and writes the run's rows. It
has no clock and no network: an engine moves bytes and time and calls in, in the order of modelled time.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from emu.crossing import Crossing
from emu.recorder import Recorder, local_row
from emu.records import FlowRecord
from workloads.cluster import Cluster
from workloads.collectives import check, lower
from workloads.protocol import (
    Action,
    Announce,
    Cancel,
    Cancelled,
    Collective,
    Computation,
    Done,
    Event,
    Failed,
    Orchestrator,
    Run,
    SetTimer,
    Start,
    Task,
    TaskId,
    Timer,
    Transfer,
)


@dataclass(slots=True)
class _Job:
    """A task of the orchestrator's while it runs: its transfers, how many are not over, what they showed so far."""

    task: Task
    asked: float
    left: int = 0
    transfers: tuple[TaskId, ...] = ()
    started: float | None = None
    moved: int = 0
    whole: bool = False

    @property
    def start(self) -> float:
        return self.asked if self.started is None else self.started


@dataclass(slots=True)
class _Pending:
    """A lowered transfer that is not over, the job it belongs to, and how many transfers it waits for."""

    transfer: Transfer
    job: TaskId
    waits: int
    started: bool = False
    next: list[TaskId] = field(default_factory=list)


class Dispatcher:
    """One run of one orchestrator.

    An engine calls `start` once, then repeats: take `ready` transfers and start them, take `stopped` ids and stop them,
    and report `done`, `failed`, `wake` and `tell` as time passes, never backwards, until `finished`; and last `close`.

    received: asked when a task is cancelled: how many bytes of a transfer in flight have arrived.
    crossed: asked when the first transfer of a phase is asked for and when none is left: what has crossed the fabric so
        far. It must be quick, for other transfers may be in flight.
    whole: which collectives the engine carries out itself; it takes them from `collectives`. Others are lowered.
    """

    def __init__(
        self,
        orchestrator: Orchestrator,
        cluster: Cluster,
        received: Callable[[TaskId], int] = lambda _: 0,
        crossed: Callable[[], Crossing] = Crossing,
        whole: Callable[[Collective], bool] = lambda _: False,
    ) -> None:
        self._recorder = Recorder(crossed)
        self.trace = self._recorder.trace
        self._orchestrator = orchestrator
        self._cluster = cluster
        self._received = received
        self._takes_whole = whole
        self._collectives: list[Collective] = []
        self._jobs: dict[TaskId, _Job] = {}
        self._pending: dict[TaskId, _Pending] = {}
        self._ready: deque[Transfer] = deque()
        self._stopped: list[TaskId] = []
        self._announced: list[Announce] = []
        self._wakes: list[tuple[float, int, Callable[[float], None], _Job | None]] = []
        self._order = count()
        self._in_flight = 0

    # -- what an engine takes ------------------------------------------------------------

    def start(self) -> None:
        """Tell the orchestrator that time begins."""
        self._tell(Start(), 0.0)

    def ready(self, now: float) -> list[Transfer]:
        """The transfers that must start now, in order. Those inside one host are over at once and never returned."""
        out: list[Transfer] = []
        while self._ready:
            transfer = self._ready.popleft()
            pending = self._pending.get(transfer.id)
            if pending is None:
                continue
            pending.started = True
            self._in_flight += 1
            if transfer.src.host == transfer.dst.host:
                self.done(transfer.id, local_row(transfer, now), now)
            else:
                out.append(transfer)
        return [transfer for transfer in out if transfer.id in self._pending]  # a local one's end may cancel others

    def collectives(self) -> list[Collective]:
        """The collectives that the engine must carry out itself from now on."""
        out, self._collectives = self._collectives, []
        return [collective for collective in out if collective.id in self._jobs]

    def stopped(self) -> list[TaskId]:
        """The transfers, and collectives taken whole, that were cancelled since the last call; an engine forgets them.

        Those that it was never given may be among them.
        """
        out, self._stopped = self._stopped, []
        return out

    def announced(self) -> list[Announce]:
        """What the orchestrator announced to the circuit policy since the last call."""
        out, self._announced = self._announced, []
        return out

    @property
    def next_wake(self) -> float | None:
        """When the earliest timer fires or computation ends, in modelled seconds."""
        while self._wakes and self._stale(self._wakes[0][3]):
            heapq.heappop(self._wakes)
        return self._wakes[0][0] if self._wakes else None

    @property
    def in_flight(self) -> int:
        """How many transfers were started and are not over."""
        return self._in_flight

    def outstanding(self) -> Iterator[tuple[Transfer, int]]:
        """Every transfer that was asked for and is not over, those that wait for others too, with its bytes to go."""
        for pending in self._pending.values():
            arrived = self._received(pending.transfer.id) if pending.started else 0
            yield pending.transfer, pending.transfer.bytes - arrived

    @property
    def finished(self) -> bool:
        """Nothing in flight, nothing to start, no timer and no computation left."""
        return not (self._jobs or self._ready) and self.next_wake is None

    # -- what an engine reports ------------------------------------------------------------

    def wake(self, now: float) -> None:
        """Fire every timer and end every computation that is due at `now`."""
        while (due := self.next_wake) is not None and due <= now:
            heapq.heappop(self._wakes)[2](now)

    def done(self, transfer: TaskId, row: FlowRecord, now: float) -> None:
        """A transfer's last byte was read at `now`; `row` is what was seen of it."""
        pending = self._pending.pop(transfer, None)
        if pending is None:
            return
        self._in_flight -= 1
        self._recorder.flow(row)
        self._recorder.leave(pending.transfer.phase)
        for follower in pending.next:
            self._release(follower)
        job = self._jobs[pending.job]
        job.left -= 1
        job.moved += row.bytes
        job.started = row.start if job.started is None else min(job.started, row.start)
        if job.left == 0:
            self._end(pending.job, now)

    def collective_done(self, collective: TaskId, rows: Sequence[FlowRecord], now: float) -> None:
        """A collective taken whole is over; `rows`: what it moved, in as few rows as the engine likes."""
        job = self._jobs.get(collective)
        if job is None:
            return
        for row in rows:
            self._recorder.flow(row)
        job.started = min((row.start for row in rows), default=now)
        self._recorder.leave(job.task.phase)
        self._end(collective, now)

    def failed(self, transfer: TaskId, reason: str, now: float) -> None:
        """A transfer, or a collective taken whole, cannot be finished: its task fails whole."""
        pending = self._pending.get(transfer)
        if pending is None and transfer not in self._jobs:
            return
        job = self._drop(transfer if pending is None else pending.job, now)
        self._recorder.failure(job.task.id, reason, now)
        self._tell(Failed(job.task, reason), now)

    def close(self) -> None:
        """The run is over, at its end or before: phases that still have transfers get what crossed until now."""
        self._recorder.close()

    def tell(self, event: Event, now: float) -> None:
        """Pass on an event of the fabric (an epoch, a host's failure)."""
        self._tell(event, now)

    # -- the orchestrator's actions ------------------------------------------------------------

    def _tell(self, event: Event, now: float) -> None:
        self.trace.end = max(self.trace.end, now)
        for action in self._orchestrator.on(event, now):
            self._act(action, now)

    def _act(self, action: Action, now: float) -> None:
        match action:
            case Run(task):
                self._run(task, now)
            case Cancel(task_id):
                self._cancel(task_id, now)
            case SetTimer(name, at):
                self._at(max(at, now), lambda when: self._tell(Timer(name), when))
            case Announce():
                self._announced.append(action)

    def _run(self, task: Task, now: float) -> None:
        if task.id in self._jobs:
            raise ValueError(f"task {task.id} runs already: ids are unique in a run")
        job = self._jobs[task.id] = _Job(task, now)
        if isinstance(task, Computation):
            job.started = now
            self._at(now + task.duration, lambda when: self._end(task.id, when), job)
            return
        if isinstance(task, Collective) and self._takes_whole(task):
            check(task, self._cluster)
            job.whole = True
            self._recorder.enter(task.phase)
            self._collectives.append(task)
            return
        transfers = (task,) if isinstance(task, Transfer) else lower(task, self._cluster)
        if not transfers:  # over at once, but not inside the call that asked for it: such tasks may follow each other
            self._at(now, lambda when: self._end(task.id, when), job)
            return
        job.left = len(transfers)
        job.transfers = tuple(transfer.id for transfer in transfers)
        self._enlist(task.id, transfers)

    def _enlist(self, job: TaskId, transfers: Sequence[Transfer]) -> None:
        for transfer in transfers:
            self._pending[transfer.id] = _Pending(transfer, job, len(transfer.after))
            self._recorder.enter(transfer.phase)
        for transfer in transfers:
            for before in transfer.after:
                if before not in self._pending:
                    raise ValueError(f"transfer {transfer.id} waits for {before}, which is no transfer of its task")
                self._pending[before].next.append(transfer.id)
            if not transfer.after:
                self._ready.append(transfer)

    def _release(self, follower: TaskId) -> None:
        pending = self._pending.get(follower)
        if pending is None:
            return
        pending.waits -= 1
        if pending.waits == 0:
            self._ready.append(pending.transfer)

    def _cancel(self, task_id: TaskId, now: float) -> None:
        if task_id not in self._jobs:
            return
        job = self._drop(task_id, now)
        progress = now - job.asked if isinstance(job.task, Computation) else float(job.moved)
        self._tell(Cancelled(job.task, progress), now)

    def _drop(self, task_id: TaskId, now: float) -> _Job:
        job = self._jobs.pop(task_id)
        if isinstance(job.task, Computation):
            self._recorder.computation(job.task, job.start, now)
        if job.whole:
            self._recorder.leave(job.task.phase)
            self._stopped.append(task_id)
            job.moved += self._received(task_id)
        for transfer_id in job.transfers:
            pending = self._pending.pop(transfer_id, None)
            if pending is None:
                continue
            self._recorder.leave(pending.transfer.phase)
            if pending.started:
                self._in_flight -= 1
                self._stopped.append(transfer_id)
                job.moved += self._received(transfer_id)
        return job

    def _end(self, task_id: TaskId, now: float) -> None:
        job = self._jobs.pop(task_id)
        task = job.task
        if task.phase:
            self.trace.touch_phase(task.phase, job.start, now)
        if isinstance(task, Collective):
            self._recorder.collective(task, job.start, now)
        elif isinstance(task, Computation):
            self._recorder.computation(task, job.start, now)
        self._tell(Done(task, job.start), now)

    def _at(self, when: float, action: Callable[[float], None], job: _Job | None = None) -> None:
        """Act at an instant; if it is for a job, only while that runs."""
        heapq.heappush(self._wakes, (when, next(self._order), action, job))

    def _stale(self, job: _Job | None) -> bool:
        return job is not None and self._jobs.get(job.task.id) is not job
