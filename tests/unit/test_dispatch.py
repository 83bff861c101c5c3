"""The dispatcher: what may start when, what the orchestrator hears, and which rows a run leaves."""

from collections.abc import Callable, Sequence

import pytest

from emu.crossing import Crossing
from emu.dispatch import Dispatcher
from emu.records import FlowRecord
from workloads.cluster import Cluster, HostSpec
from workloads.protocol import (
    Action,
    Announce,
    Cancel,
    Cancelled,
    Collective,
    Computation,
    Done,
    Endpoint,
    EpochCommitted,
    Event,
    Failed,
    Run,
    SetTimer,
    Start,
    Task,
    Timer,
    Transfer,
)

FOUR_HOSTS = Cluster(tuple(HostSpec(f"h{number}") for number in range(4)))
React = Callable[[Event], Sequence[Action]]


class Orchestrator:
    """Answers by a function of the event, and keeps what it heard."""

    def __init__(self, react: React) -> None:
        self.heard: list[tuple[float, Event]] = []
        self._react = react

    def on(self, event: Event, now: float) -> Sequence[Action]:
        """Keep the event, and answer it."""
        self.heard.append((now, event))
        return self._react(event)

    @property
    def told(self) -> list[str]:
        """Each event in a word or two."""
        return [_in_words(event) for _, event in self.heard]


def _in_words(event: Event) -> str:
    match event:
        case Done(task) | Failed(task) | Cancelled(task):
            return f"{type(event).__name__} {task.id}"
        case Timer(name):
            return f"Timer {name}"
    return type(event).__name__


class Bench:
    """A dispatcher with the engine's side played by hand."""

    def __init__(self, react: React, cluster: Cluster = FOUR_HOSTS, crossed: Callable[[], Crossing] = Crossing) -> None:
        self.received: dict[str, int] = {}
        self.orchestrator = Orchestrator(react)
        self.dispatcher = Dispatcher(self.orchestrator, cluster, lambda name: self.received.get(name, 0), crossed)
        self._running: dict[str, tuple[Transfer, float]] = {}
        self.dispatcher.start()

    def ready(self, now: float = 0.0) -> list[str]:
        """Start what is ready; returns the ids."""
        started = self.dispatcher.ready(now)
        self._running.update({transfer.id: (transfer, now) for transfer in started})
        return [transfer.id for transfer in started]

    def done(self, name: str, now: float, how: str = "packets") -> None:
        """Report a transfer that was started as received whole."""
        transfer, start = self._running[name]
        ends = str(transfer.src), str(transfer.dst)
        row = FlowRecord(
            name, transfer.collective, transfer.phase, *ends, transfer.bytes, start, (start + now) / 2, now, how=how
        )
        self.dispatcher.done(name, row, now)


def at_start(*tasks: Task) -> React:
    return lambda event: [Run(task) for task in tasks] if isinstance(event, Start) else []


def transfer(name: str, src: int = 0, dst: int = 1, size: int = 100, phase: str = "") -> Transfer:
    return Transfer(name, Endpoint(f"h{src}", 0), Endpoint(f"h{dst}", 0), size, phase=phase)


def chain(name: str = "c", ranks: int = 3, chunks: int = 1, phase: str = "", size: int = 100) -> Collective:
    return Collective(name, "broadcast", "chain", tuple(range(ranks)), size, chunks=chunks, phase=phase)


# -- order ------------------------------------------------------------------------------------------------------------


def test_transfers_start_in_the_order_in_which_they_were_asked_for() -> None:
    bench = Bench(at_start(transfer("b"), transfer("a"), transfer("c")))
    assert bench.ready() == ["b", "a", "c"]
    assert bench.ready() == []
    assert bench.dispatcher.in_flight == 3


def test_a_transfer_waits_for_those_that_it_comes_after() -> None:
    bench = Bench(at_start(chain(ranks=4)))
    assert bench.ready() == ["c/0.0"]
    bench.done("c/0.0", 1.0)
    assert bench.ready(1.0) == ["c/1.0"]
    bench.done("c/1.0", 2.0)
    assert bench.ready(2.0) == ["c/2.0"]
    assert not bench.dispatcher.finished
    bench.done("c/2.0", 3.0)
    assert bench.dispatcher.finished
    assert bench.orchestrator.told == ["Start", "Done c"]


def test_chunks_follow_each_other_through_the_chain() -> None:
    bench = Bench(at_start(chain(chunks=2)))
    first = bench.ready()
    assert len(first) == 2  # both chunks may leave the root; their connection keeps them in order
    bench.done(first[0], 1.0)
    assert len(bench.ready(1.0)) == 1


def test_what_is_asked_for_in_answer_starts_after_what_was_ready() -> None:
    def react(event: Event) -> Sequence[Action]:
        match event:
            case Start():
                return [Run(transfer("a")), Run(transfer("b"))]
            case Done(Transfer("a")):
                return [Run(transfer("c"))]
        return []

    bench = Bench(react)
    bench.ready()
    bench.done("a", 1.0)
    assert bench.ready(1.0) == ["c"]
    assert bench.orchestrator.heard[-1] == (1.0, Done(transfer("a"), 0.0))


def test_announcements_are_handed_over_once() -> None:
    announcement = Announce("train", {("h0", "h1"): 5}, slack=0.5)
    bench = Bench(lambda event: [announcement])
    assert bench.dispatcher.announced() == [announcement]
    assert bench.dispatcher.announced() == []


def test_a_running_id_cannot_be_used_again() -> None:
    with pytest.raises(ValueError, match="task a runs already"):
        Bench(at_start(transfer("a"), Computation("a", 1.0)))


def test_waiting_for_a_transfer_of_another_task_is_refused() -> None:
    stray = Transfer("a", Endpoint("h0", 0), Endpoint("h1", 0), 1, after=("b",))
    with pytest.raises(ValueError, match="a waits for b"):
        Bench(at_start(stray))


# -- inside a host ----------------------------------------------------------------------------------------------------

TWO_GPUS = Cluster((HostSpec("h0", nics=2, gpus=2), HostSpec("h1", nics=2, gpus=2)))


def test_local_transfers_are_over_at_once_and_release_their_followers() -> None:
    # Ranks 0 and 1 share h0, 2 and 3 share h1: the chain 0-1-2-3 crosses the fabric once.
    bench = Bench(at_start(chain(ranks=4, phase="sync")), TWO_GPUS)
    assert bench.ready() == ["c/1.0"]
    bench.done("c/1.0", 2.0)
    assert bench.ready(2.0) == []
    assert bench.dispatcher.finished
    rows = {row.id: (row.how, row.start, row.end) for row in bench.dispatcher.trace.flows}
    assert rows == {
        "c/0.0": ("local", 0.0, 0.0),
        "c/1.0": ("packets", 0.0, 2.0),
        "c/2.0": ("local", 2.0, 2.0),
    }
    phase = bench.dispatcher.trace.phases["sync"]
    assert (phase.local_bytes, phase.packet_bytes, phase.charged_bytes) == (200, 100, 0)


def test_what_a_local_end_cancels_is_not_handed_out() -> None:
    def react(event: Event) -> Sequence[Action]:
        match event:
            case Start():
                return [Run(transfer("a")), Run(transfer("local", 2, 2))]
            case Done(Transfer("local")):
                return [Cancel("a")]
        return []

    bench = Bench(react)
    assert bench.ready() == []
    assert bench.orchestrator.told == ["Start", "Done local", "Cancelled a"]
    assert bench.dispatcher.finished
    assert bench.dispatcher.in_flight == 0


def test_tasks_without_transfers_can_follow_each_other_without_end() -> None:
    left = iter(range(5000))

    def react(event: Event) -> Sequence[Action]:
        number = next(left, None)
        return [] if number is None else [Run(chain(f"c{number}", ranks=1))]

    bench = Bench(react)
    bench.dispatcher.wake(0.0)
    assert bench.dispatcher.finished
    assert len(bench.dispatcher.trace.collectives) == 5000
    assert bench.dispatcher.trace.end == 0.0


# -- cancel and failure -----------------------------------------------------------------------------------------------


def test_cancelling_tells_the_bytes_of_ended_and_running_transfers() -> None:
    react = at_start(chain(ranks=4, size=90, chunks=3))  # chunks of 30 bytes
    bench = Bench(lambda event: [Cancel("c")] if isinstance(event, EpochCommitted) else react(event))
    first, second, third = bench.ready()
    bench.done(first, 1.0)
    (hop,) = bench.ready(1.0)
    bench.received = {hop: 7, second: 11}
    bench.dispatcher.tell(EpochCommitted(1), 1.5)
    assert bench.orchestrator.heard[-1] == (1.5, Cancelled(chain(ranks=4, size=90, chunks=3), 30 + 7 + 11))
    assert sorted(bench.dispatcher.stopped()) == sorted([second, third, hop])
    assert bench.dispatcher.stopped() == []
    assert bench.dispatcher.finished
    assert bench.dispatcher.in_flight == 0
    assert bench.dispatcher.trace.collectives == []


def test_a_transfer_that_was_not_handed_out_is_not_stopped() -> None:
    bench = Bench(lambda event: [Run(transfer("a")), Cancel("a")] if isinstance(event, Start) else [])
    assert bench.ready() == []
    assert bench.dispatcher.stopped() == []
    assert bench.orchestrator.heard[-1] == (0.0, Cancelled(transfer("a"), 0.0))


def test_what_a_stopped_transfer_still_reports_is_ignored() -> None:
    react = at_start(transfer("a"))
    bench = Bench(lambda event: [Cancel("a")] if isinstance(event, EpochCommitted) else react(event))
    bench.ready()
    bench.dispatcher.tell(EpochCommitted(1), 1.0)
    bench.done("a", 2.0)
    bench.dispatcher.failed("a", "too late", 2.0)
    assert bench.orchestrator.told == ["Start", "EpochCommitted", "Cancelled a"]
    assert bench.dispatcher.trace.flows == []


def test_cancelling_what_ended_or_never_ran_says_nothing() -> None:
    bench = Bench(
        lambda event: [Cancel("a"), Cancel("nobody")] if isinstance(event, Done) else at_start(transfer("a"))(event)
    )
    bench.ready()
    bench.done("a", 1.0)
    assert bench.orchestrator.told == ["Start", "Done a"]


def test_a_cancelled_computation_tells_its_seconds_and_leaves_no_wake() -> None:
    react = at_start(Computation("long", 3600.0))
    bench = Bench(lambda event: [Cancel("long")] if isinstance(event, EpochCommitted) else react(event))
    assert bench.dispatcher.next_wake == 3600.0
    bench.dispatcher.tell(EpochCommitted(1), 12.5)
    assert bench.orchestrator.heard[-1] == (12.5, Cancelled(Computation("long", 3600.0), 12.5))
    assert bench.dispatcher.next_wake is None
    assert bench.dispatcher.finished


def test_a_computation_of_the_same_id_ends_at_its_own_time() -> None:
    def react(event: Event) -> Sequence[Action]:
        match event:
            case Start():
                return [Run(Computation("x", 1.0)), SetTimer("again", 0.5)]
            case Timer("again"):
                return [Cancel("x"), Run(Computation("x", 1.0))]
        return []

    bench = Bench(react)
    while (wake := bench.dispatcher.next_wake) is not None:
        bench.dispatcher.wake(wake)
    assert bench.orchestrator.heard[-1] == (1.5, Done(Computation("x", 1.0), 0.5))


def test_one_failed_transfer_fails_its_task_and_stops_the_rest() -> None:
    bench = Bench(at_start(chain(chunks=2), transfer("other", 2, 3)))
    first, second, other = bench.ready()
    bench.dispatcher.failed(first, "no path", 1.0)
    bench.dispatcher.failed(second, "no path", 1.0)
    assert bench.orchestrator.told == ["Start", "Failed c"]
    assert bench.orchestrator.heard[-1] == (1.0, Failed(chain(chunks=2), "no path"))
    assert [(row.task, row.reason, row.at) for row in bench.dispatcher.trace.failures] == [("c", "no path", 1.0)]
    assert sorted(bench.dispatcher.stopped()) == sorted([first, second])
    bench.done(other, 2.0)
    assert bench.dispatcher.finished


# -- time -------------------------------------------------------------------------------------------------------------


def test_timers_and_computations_come_by_time_then_by_order_asked() -> None:
    def react(event: Event) -> Sequence[Action]:
        if isinstance(event, Start):
            return [
                SetTimer("b", 2.0),
                SetTimer("c", 2.0),
                Run(Computation("half", 0.5)),
                SetTimer("a", 1.0),
                SetTimer("past", -5.0),
            ]
        return []

    bench = Bench(react)
    assert bench.dispatcher.next_wake == 0.0
    bench.dispatcher.wake(0.25)
    assert bench.orchestrator.told == ["Start", "Timer past"]
    assert bench.dispatcher.next_wake == 0.5
    bench.dispatcher.wake(2.0)
    assert bench.orchestrator.told[2:] == ["Done half", "Timer a", "Timer b", "Timer c"]
    assert bench.dispatcher.finished
    assert bench.dispatcher.trace.end == 2.0


def test_a_timer_set_for_now_in_answer_to_a_timer_fires_in_the_same_wake() -> None:
    bench = Bench(
        lambda event: {"Start": [SetTimer("one", 1.0)], "Timer one": [SetTimer("two", 1.0)]}.get(_in_words(event), [])
    )
    bench.dispatcher.wake(1.0)
    assert bench.orchestrator.told == ["Start", "Timer one", "Timer two"]


def test_a_computation_runs_from_when_it_was_asked_for() -> None:
    bench = Bench(at_start(Computation("x", 0.5, ("h0",), phase="train")))
    bench.dispatcher.wake(0.5)
    assert bench.orchestrator.heard[-1] == (0.5, Done(Computation("x", 0.5, ("h0",), phase="train"), 0.0))
    assert bench.dispatcher.trace.phases["train"].end == 0.5


# -- rows -------------------------------------------------------------------------------------------------------------


def test_a_collective_spans_its_first_start_to_its_last_end() -> None:
    task = Collective("c", "broadcast", "chain", (0, 1, 2), 100, label="weights", phase="sync", merged=3)
    bench = Bench(at_start(task))
    bench.ready(0.25)  # the engine got to it late
    bench.done("c/0.0", 1.0)
    bench.ready(1.0)
    bench.done("c/1.0", 2.5)
    (row,) = bench.dispatcher.trace.collectives
    assert (row.id, row.label, row.phase, row.kind, row.algorithm) == ("c", "weights", "sync", "broadcast", "chain")
    assert (row.ranks, row.bytes, row.merged, row.start, row.end, row.cct) == (3, 100, 3, 0.25, 2.5, 2.25)
    assert bench.orchestrator.heard[-1] == (2.5, Done(task, 0.25))


def test_a_phase_widens_with_everything_that_carries_its_name() -> None:
    bench = Bench(at_start(transfer("a", phase="p"), transfer("b", phase="p"), transfer("c")))
    bench.ready(1.0)
    bench.done("b", 2.0, how="charged")
    bench.done("c", 9.0)
    bench.done("a", 5.0)
    assert list(bench.dispatcher.trace.phases) == ["p"]
    phase = bench.dispatcher.trace.phases["p"]
    assert (phase.start, phase.end, phase.packet_bytes, phase.charged_bytes) == (1.0, 5.0, 100, 100)


def test_outstanding_is_all_that_was_asked_for_and_is_not_over() -> None:
    chain = Collective("c", "broadcast", "chain", (0, 1, 2), 100)
    bench = Bench(at_start(chain, transfer("a")))
    bench.ready(0.0)
    assert {one.id: left for one, left in bench.dispatcher.outstanding()} == {"c/0.0": 100, "c/1.0": 100, "a": 100}
    bench.done("c/0.0", 1.0)
    assert {one.id for one, _ in bench.dispatcher.outstanding()} == {"c/1.0", "a"}


def test_computations_leave_rows_until_they_end_or_are_cancelled() -> None:
    tasks = Computation("a", 1.0, ("h0", "h1"), phase="p"), Computation("b", 5.0)
    react = at_start(*tasks)
    bench = Bench(lambda event: [Cancel("b")] if event == Done(tasks[0], 0.0) else react(event))
    bench.dispatcher.wake(1.0)
    rows = bench.dispatcher.trace.computations
    assert [(row.id, row.phase, row.hosts, row.start, row.end) for row in rows] == [
        ("a", "p", ("h0", "h1"), 0.0, 1.0),
        ("b", "", (), 0.0, 1.0),
    ]


def test_a_phase_owns_what_crosses_while_its_transfers_are_not_over() -> None:
    seen = [Crossing(0, 0)]
    later = transfer("later", phase="p")
    react = at_start(chain(phase="p"), transfer("other", phase="q"))
    bench = Bench(lambda event: [Run(later)] if event == Timer("on") else react(event), crossed=lambda: seen[0])
    bench.ready()
    seen[0] = Crossing(100, 10)
    bench.done("c/0.0", 1.0)  # the chain's second transfer is still to come
    bench.ready(1.0)
    seen[0] = Crossing(300, 20)
    bench.done("c/1.0", 2.0)
    seen[0] = Crossing(1300, 1020)  # by q alone
    bench.dispatcher.tell(Timer("on"), 3.0)
    bench.ready(3.0)
    seen[0] = Crossing(1301, 1022)
    bench.done("later", 4.0)
    bench.done("other", 5.0)
    phases = bench.dispatcher.trace.phases
    assert (phases["p"].circuit_bytes, phases["p"].core_bytes) == (301, 22)
    assert (phases["q"].circuit_bytes, phases["q"].core_bytes) == (1301, 1022), "p's at the same time is in it"


def test_what_fails_closes_its_phase_too() -> None:
    seen = [Crossing(0, 0)]
    bench = Bench(at_start(chain(phase="p", chunks=2), transfer("a", phase="p")), crossed=lambda: seen[0])
    first, *_ = bench.ready()
    bench.done("a", 0.5)
    seen[0] = Crossing(7, 0)
    bench.dispatcher.failed(first, "no path", 1.0)
    assert bench.dispatcher.trace.phases["p"].circuit_bytes == 7


def test_a_run_that_is_cut_short_counts_what_crossed_until_then() -> None:
    seen = [Crossing(0, 0)]
    bench = Bench(at_start(chain(phase="p"), transfer("a", phase="q")), crossed=lambda: seen[0])
    bench.ready()
    bench.done("c/0.0", 0.5)
    seen[0] = Crossing(7, 3)
    bench.dispatcher.close()
    seen[0] = Crossing(99, 99)
    bench.dispatcher.close()
    bench.done("a", 1.0)
    assert bench.dispatcher.trace.phases.pop("q").circuit_bytes == 0
    assert [(row.name, row.circuit_bytes, row.core_bytes) for row in bench.dispatcher.trace.phases.values()] == [
        ("p", 7, 3)
    ]
