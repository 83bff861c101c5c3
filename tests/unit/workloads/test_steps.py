"""Static steps: what runs when, what is announced, what a failure stops."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

import pytest

from workloads.cluster import Cluster, HostSpec
from workloads.protocol import (
    Announce,
    Cancelled,
    Collective,
    Computation,
    Done,
    Endpoint,
    Event,
    Failed,
    Run,
    SetTimer,
    Start,
    Task,
    Timer,
    Transfer,
)
from workloads.steps import CollectiveStep, ComputationStep, Step, StepError, StepsOrchestrator, TransferStep

CLUSTER = Cluster(tuple(HostSpec(f"h{i}") for i in range(4)))
GROUP = (0, 1, 2, 3)


def one_second(task: Task) -> Event | float:
    return task.duration if isinstance(task, Computation) else 1.0


class Journal:
    """Plays an engine: every task takes as long as `outcome` says, or ends with the event that it returns.

    ran: (time, task) in the order of asking; announced: (time, announcement).
    """

    def __init__(self, steps: Sequence[Step], outcome: Callable[[Task], Event | float] = one_second) -> None:
        self.ran: list[tuple[float, Task]] = []
        self.announced: list[tuple[float, Announce]] = []
        self._outcome = outcome
        self._queue: list[tuple[float, int, Event]] = [(0.0, 0, Start())]
        self._count = 0
        orchestrator = StepsOrchestrator(steps, CLUSTER)
        while self._queue:
            now, _, event = heapq.heappop(self._queue)
            for action in orchestrator.on(event, now):
                self._act(action, now)

    def _act(self, action: object, now: float) -> None:
        match action:
            case Run(task):
                self.ran.append((now, task))
                outcome = self._outcome(task)
                if isinstance(outcome, float):
                    self._push(now + outcome, Done(task, now))
                else:
                    self._push(now, outcome)
            case SetTimer(name, at):
                self._push(at, Timer(name))
            case Announce():
                self.announced.append((now, action))

    def _push(self, when: float, event: Event) -> None:
        self._count += 1
        heapq.heappush(self._queue, (when, self._count, event))

    @property
    def times(self) -> list[tuple[float, str]]:
        """When each task was asked for."""
        return [(when, task.id) for when, task in self.ran]


def all_reduce(name: str, *sizes: int, **more: object) -> CollectiveStep:
    return CollectiveStep(name=name, kind="all-reduce", group=GROUP, sizes=sizes or (400,), **more)  # type: ignore[arg-type]


def test_steps_follow_each_other_and_sizes_too() -> None:
    journal = Journal(
        [
            ComputationStep(name="forward", seconds=3.0, repeat=2),
            all_reduce("grads", 100, 200, merged=(1, 5)),
            CollectiveStep(name="sync", kind="broadcast", group=(1, 0), sizes=(7,), root=1, chunks=4, label="weights"),
        ]
    )
    assert journal.times == [(0, "forward#0"), (3, "forward#1"), (6, "grads#0"), (7, "grads#1"), (8, "sync")]
    tasks = [task for _, task in journal.ran]
    assert tasks[0] == Computation("forward#0", 3.0, ("h0", "h1", "h2", "h3"), "forward")
    assert tasks[3] == Collective("grads#1", "all-reduce", "ring", GROUP, 200, phase="grads", label="grads", merged=5)
    assert tasks[4] == Collective(
        "sync", "broadcast", "chain", (1, 0), 7, root=1, chunks=4, phase="sync", label="weights"
    )


def test_a_repeated_sweep_goes_through_all_sizes_each_time() -> None:
    journal = Journal([all_reduce("sweep", 8, 16, repeat=2)])
    assert [task.bytes for _, task in journal.ran if isinstance(task, Collective)] == [8, 16, 8, 16]


def test_named_predecessors_let_steps_run_side_by_side() -> None:
    journal = Journal(
        [
            ComputationStep(name="a", seconds=5.0),
            ComputationStep(name="b", seconds=2.0, after=()),
            all_reduce("c"),
            ComputationStep(name="d", seconds=1.0, after=("a", "c")),
        ]
    )
    assert journal.times == [(0, "a"), (0, "b"), (2, "c"), (5, "d")]


def test_a_step_waits_for_its_time_and_for_its_predecessors() -> None:
    journal = Journal(
        [all_reduce("first", at=4.0), all_reduce("late", at=10.0), all_reduce("overdue", at=2.0)],
    )
    assert journal.times == [(4, "first"), (10, "late"), (11, "overdue")]


def test_phases_are_announced_with_demand_and_slack() -> None:
    journal = Journal(
        [
            ComputationStep(name="backward", seconds=2.5, phase="training"),
            all_reduce("grads", 400, 400, phase="training"),
            CollectiveStep(name="sync", kind="broadcast", group=(0, 2), sizes=(50,), phase="sync", at=6.0, repeat=3),
            ComputationStep(name="generate", seconds=9.0, phase="generation"),
        ]
    )
    ring = {(f"h{i}", f"h{(i + 1) % 4}"): 2 * 600 for i in range(4)}
    assert journal.announced == [
        (0, Announce("training", ring, slack=2.5)),
        (4.5, Announce("sync", {("h0", "h2"): 150}, slack=1.5)),
        (9, Announce("generation", {}, slack=9.0)),
    ]


def test_a_phase_that_comes_back_is_announced_again() -> None:
    journal = Journal([all_reduce("a", phase="x"), all_reduce("b", phase="y"), all_reduce("c", phase="x")])
    assert [announce.phase for _, announce in journal.announced] == ["x", "y", "x"]
    assert [task.phase for _, task in journal.ran] == ["x", "y", "x"]


def test_slack_counts_a_computation_that_runs_already() -> None:
    journal = Journal(
        [
            ComputationStep(name="long", seconds=5.0, phase="other"),
            ComputationStep(name="short", seconds=1.0, after=(), phase="other"),
            ComputationStep(name="join", seconds=2.0, after=("short",), phase="sending"),
            all_reduce("both", after=("long", "join"), phase="sending"),
        ]
    )
    assert [(when, announce.phase, announce.slack) for when, announce in journal.announced] == [
        (0, "other", 5.0),
        (0, "sending", 5.0),  # `short` runs, so it is certain; `join` will be over at 3, but `long` only at 5
    ]


def test_a_phase_is_announced_as_soon_as_only_computations_keep_it_from_starting() -> None:
    journal = Journal(
        [
            all_reduce("grads", phase="training"),
            ComputationStep(name="optimizer", seconds=3.0, phase="training"),
            ComputationStep(name="rollout", seconds=2.0, phase="generation", after=()),
            CollectiveStep(
                name="sync", kind="broadcast", group=(0, 2), sizes=(50,), phase="sync", after=("optimizer", "rollout")
            ),
            all_reduce("again", phase="next"),
        ]
    )
    assert [(when, announce.phase, announce.slack) for when, announce in journal.announced] == [
        (0, "training", 0.0),
        (0, "generation", 2.0),
        (1, "sync", 3.0),  # the gradients are there: the optimizer runs until 4
        (5, "next", 0.0),
    ]


def test_what_ends_while_a_computation_runs_lets_the_phase_be_announced() -> None:
    journal = Journal(
        [
            ComputationStep(name="optimizer", seconds=3.0, phase="training"),
            all_reduce("rollout", phase="generation", after=()),
            all_reduce("sync", phase="sync", after=("optimizer", "rollout")),
        ]
    )
    assert [(when, announce.phase, announce.slack) for when, announce in journal.announced] == [
        (0, "training", 3.0),
        (0, "generation", 0.0),
        (1, "sync", 2.0),
    ]


def transfer(name: str, src: int, dst: int, size: int, *after: str) -> Transfer:
    return Transfer(name, Endpoint(f"h{src}"), Endpoint(f"h{dst}"), size, after=after, connection="new")


def test_transfers_follow_the_ones_that_they_name() -> None:
    journal = Journal(
        [
            TransferStep(
                name="kv",
                phase="generation",
                transfers=(
                    transfer("a", 0, 1, 10),
                    transfer("b", 0, 2, 20),
                    transfer("c", 1, 3, 5, "a", "b"),
                    transfer("local", 3, 3, 99, "c"),
                ),
            )
        ],
        outcome=lambda task: 3.0 if task.id == "kv/b" else 1.0,
    )
    assert journal.times == [(0, "kv/a"), (0, "kv/b"), (3, "kv/c"), (4, "kv/local")]
    asked = journal.ran[2][1]
    assert asked == Transfer("kv/c", Endpoint("h1"), Endpoint("h3"), 5, connection="new", phase="generation")
    assert journal.announced[0][1].demand == {("h0", "h1"): 10, ("h0", "h2"): 20, ("h1", "h3"): 5}


def test_repeated_transfers_have_ids_of_their_own() -> None:
    journal = Journal([TransferStep(name="t", transfers=(transfer("x", 0, 1, 1), transfer("y", 1, 2, 1)), repeat=2)])
    assert journal.times == [(0, "t#0/x"), (0, "t#0/y"), (1, "t#1/x"), (1, "t#1/y")]
    assert journal.announced[0][1].demand == {("h0", "h1"): 2, ("h1", "h2"): 2}


@pytest.mark.parametrize("end", [Failed, Cancelled])
def test_what_waits_for_a_failure_never_starts(end: type) -> None:
    steps = [
        all_reduce("bad", 1, 2),
        all_reduce("next"),
        ComputationStep(name="beside", seconds=1.0, after=()),
        ComputationStep(name="beside-2", seconds=1.0),
    ]
    journal = Journal(steps, lambda task: end(task, 0) if task.id == "bad#0" else one_second(task))
    assert journal.times == [(0, "bad#0"), (0, "beside"), (1, "beside-2")]


def test_a_failed_transfer_holds_its_step() -> None:
    steps = [
        TransferStep(name="t", transfers=(transfer("a", 0, 1, 1), transfer("b", 1, 2, 1), transfer("c", 1, 2, 1, "a"))),
        all_reduce("next"),
    ]
    journal = Journal(steps, lambda task: Failed(task, "host h1 is gone") if task.id == "t/a" else 1.0)
    assert journal.times == [(0, "t/a"), (0, "t/b")]


def test_events_of_others_change_nothing() -> None:
    orchestrator = StepsOrchestrator([all_reduce("a")], CLUSTER)
    orchestrator.on(Start(), 0.0)
    stranger = Computation("stranger", 1.0)
    assert orchestrator.on(Done(stranger, 0.0), 1.0) == []
    assert orchestrator.on(Failed(stranger, "?"), 1.0) == []
    assert orchestrator.on(Timer("stranger"), 1.0) == []


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([all_reduce("a"), all_reduce("a")], "two steps are called 'a'"),
        ([all_reduce("a", after=("b",)), all_reduce("b")], "step 'a': after names 'b', which is no earlier step"),
        ([all_reduce("a", root=7)], "step 'a': all-reduce 'a': root 7 is no index into a group of 4"),
        ([all_reduce("a", algorithm="chain")], "step 'a': no all-reduce by 'chain'; valid algorithms: "),
        ([all_reduce("a", 4, -1)], "bytes must not be negative, not -1"),
        ([all_reduce("a", 1, merged=(1, 2))], "merged has 2 entries for 1 sizes"),
        ([all_reduce("a", at=-1.0)], "at must not be negative"),
        ([all_reduce("a", repeat=0)], "repeat must be at least 1, not 0"),
        ([all_reduce("a#1")], "without '#' and '/'"),
        (
            [CollectiveStep(name="a", kind="incast", group=(0, 9), sizes=(1,))],
            "no rank 9; the cluster has ranks 0 to 3",
        ),
        ([CollectiveStep(name="a", kind="incast", group=(0, 1), sizes=())], "there are no sizes"),
        ([ComputationStep(name="a", seconds=-2)], "seconds must not be negative"),
        ([ComputationStep(name="a", seconds=2, hosts=("h1", "x"))], "the cluster has no host 'x'"),
        ([TransferStep(name="a", transfers=())], "there are no transfers"),
        ([TransferStep(name="a", transfers=(transfer("t", 0, 9, 1),))], "'t': the cluster has no host 'h9'"),
        ([TransferStep(name="a", transfers=(transfer("t", 0, 1, 1, "u"),))], "'u', which is no earlier transfer"),
        ([TransferStep(name="a", transfers=(transfer("t", 0, 1, 1),) * 2)], "two transfers are called 't'"),
    ],
)
def test_impossible_steps_are_refused(steps: list[Step], message: str) -> None:
    with pytest.raises(StepError) as caught:
        StepsOrchestrator(steps, CLUSTER)
    assert message in str(caught.value)
