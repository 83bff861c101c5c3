"""Transfers that share links, connections and NICs, held against closed forms."""

import pytest

from emu.model.conditions import Conditions
from emu.model.engine import Outcome, simulate
from tests.unit.model.fluid_pieces import GB, Script, cluster_of, star, transfer, two_tier
from topologies.fabric import Fabric, FabricError, Port
from workloads.protocol import (
    Action,
    Algorithm,
    Cancel,
    Cancelled,
    Collective,
    CollectiveKind,
    Computation,
    Done,
    Endpoint,
    Event,
    Run,
    SetTimer,
    Start,
    Timer,
    Transfer,
)


def run(fabric: Fabric, script: Script, **conditions: object) -> Outcome:
    return simulate(fabric, script, cluster_of(fabric), Conditions(**conditions))


def times(outcome: Outcome) -> dict[str, tuple[float, float]]:
    return {row.id: (row.start, row.end) for row in outcome.trace.flows}


def ends(outcome: Outcome) -> dict[str, float]:
    return {row.id: row.end for row in outcome.trace.flows}


def test_one_transfer_takes_its_bytes_by_the_rate() -> None:
    outcome = run(star(2), Script(transfer("a", 0, 1)))
    assert times(outcome)["a"] == (0.0, pytest.approx(1.0))
    assert outcome.trace.complete
    assert outcome.trace.failures == []
    assert outcome.trace.end == pytest.approx(1.0)


def test_efficiency_divides_the_rate() -> None:
    assert ends(run(star(2), Script(transfer("a", 0, 1)), efficiency=0.8))["a"] == pytest.approx(1.25)


def test_two_flows_share_a_link_until_one_ends() -> None:
    outcome = run(star(3), Script(transfer("a", 0, 2), transfer("b", 1, 2, 3 * GB)))
    assert ends(outcome) == pytest.approx({"a": 2.0, "b": 4.0})


def test_what_a_bottleneck_elsewhere_leaves_is_used() -> None:
    # a and b leave h0 at half the rate each; c shares h2's downlink with b and has the other half of it, then all.
    script = Script(transfer("a", 0, 1), transfer("b", 0, 2), transfer("c", 3, 2, 2 * GB))
    assert ends(run(star(4), script)) == pytest.approx({"a": 2.0, "b": 2.0, "c": 3.0})


def test_transfers_of_one_connection_follow_each_other() -> None:
    outcome = run(star(2), Script(transfer("a", 0, 1, channel="x"), transfer("b", 0, 1, channel="x")))
    assert times(outcome) == {"a": (0.0, pytest.approx(1.0)), "b": (pytest.approx(1.0), pytest.approx(2.0))}


def test_transfers_of_two_connections_share() -> None:
    assert ends(run(star(2), Script(transfer("a", 0, 1), transfer("b", 0, 1)))) == pytest.approx({"a": 2.0, "b": 2.0})


def test_new_connections_never_queue() -> None:
    tasks = (transfer(name, 0, 1, channel="x", connection="new") for name in "ab")
    assert ends(run(star(2), Script(*tasks))) == pytest.approx({"a": 2.0, "b": 2.0})


def whole(name: str, src: int, dst: int, size: int) -> Transfer:
    return Transfer(name, Endpoint(f"h{src}"), Endpoint(f"h{dst}"), size)


def test_a_transfer_is_striped_over_two_nics() -> None:
    outcome = run(star(2, nics=2), Script(whole("a", 0, 1, 2 * GB + 1)))
    assert ends(outcome)["a"] == pytest.approx(1.0)
    assert [outcome.carried[Port("h0", nic)] for nic in (0, 1)] == [GB + 1, GB]
    assert outcome.trace.flows[0].bytes == 2 * GB + 1


def test_stripes_meet_at_a_host_of_fewer_nics() -> None:
    assert ends(run(star(2, nics=[2, 1]), Script(whole("a", 0, 1, 2 * GB))))["a"] == pytest.approx(2.0)
    assert ends(run(star(2, nics=[1, 2]), Script(whole("a", 0, 1, 2 * GB))))["a"] == pytest.approx(2.0)


def test_a_striped_transfer_ends_with_its_last_stripe() -> None:
    tasks = (whole("a", 0, 1, 2 * GB), transfer("b", 0, 1))
    assert ends(run(star(2, nics=2), Script(*tasks))) == pytest.approx({"a": 2.0, "b": 2.0})


def test_a_stripe_shares_its_connection_with_transfers_that_name_its_nics() -> None:
    tasks = (whole("a", 0, 1, 2 * GB), transfer("b", 0, 1, channel=""))
    assert times(run(star(2, nics=2), Script(*tasks)))["b"] == pytest.approx((1.0, 2.0))


def test_no_bytes_take_no_time() -> None:
    assert times(run(star(2), Script(transfer("a", 0, 1, 0))))["a"] == (0.0, 0.0)


def test_alpha_is_paid_by_each_transfer_of_a_connection() -> None:
    script = Script(transfer("a", 0, 1, channel="x"), transfer("b", 0, 1, channel="x"))
    outcome = run(star(2), script, alpha=0.25)
    assert ends(outcome) == pytest.approx({"a": 1.25, "b": 2.5})
    assert outcome.trace.flows[1].first_byte == pytest.approx(1.5)


def test_delays_count_only_when_asked_for() -> None:
    fabric = star(2, delay=0.125)
    tasks = (transfer("a", 0, 1, channel="x"), transfer("b", 0, 1, channel="x"))
    assert ends(run(fabric, Script(*tasks))) == pytest.approx({"a": 1.0, "b": 2.0})
    delayed = run(fabric, Script(*tasks), delays=True)
    # Two cables of 0.125 s; the connection goes on while a's last byte travels.
    assert ends(delayed) == pytest.approx({"a": 1.25, "b": 2.25})
    assert [row.first_byte for row in delayed.trace.flows] == pytest.approx([0.25, 1.25])
    assert [row.start for row in delayed.trace.flows] == pytest.approx([0.0, 1.0])


def test_a_new_connection_pays_a_round_trip() -> None:
    outcome = run(star(2, delay=0.125), Script(transfer("a", 0, 1, connection="new")), delays=True)
    assert ends(outcome)["a"] == pytest.approx(0.5 + 1.0 + 0.25)


# -- collectives ------------------------------------------------------------------------------------------------------


def cct(fabric: Fabric, kind: CollectiveKind, algorithm: Algorithm, size: int = GB, chunks: int = 1) -> float:
    group = tuple(range(cluster_of(fabric).ranks))
    collective = Collective("c", kind, algorithm, group, size, chunks=chunks)
    return run(fabric, Script(collective)).trace.collectives[0].cct


@pytest.mark.parametrize("n", [2, 3, 4, 8, 16])
def test_ring_all_reduce(n: int) -> None:
    assert cct(star(n), "all-reduce", "ring", n * GB) == pytest.approx(2 * (n - 1) / n * n, rel=1e-6)


@pytest.mark.parametrize("n", [2, 4, 8, 16])
def test_halving_doubling_all_reduce(n: int) -> None:
    assert cct(star(n), "all-reduce", "halving-doubling", n * GB) == pytest.approx(2 * (n - 1), rel=1e-6)


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter"])
def test_ring_all_gather_and_reduce_scatter(kind: CollectiveKind) -> None:
    assert cct(star(5), kind, "ring", 5 * GB) == pytest.approx(4.0, rel=1e-6)


@pytest.mark.parametrize(("n", "chunks"), [(2, 1), (4, 1), (4, 8), (16, 64)])
def test_chain_broadcast(n: int, chunks: int) -> None:
    assert cct(star(n), "broadcast", "chain", GB, chunks) == pytest.approx((chunks + n - 2) / chunks, rel=1e-6)


@pytest.mark.parametrize(("n", "chunks"), [(3, 1), (7, 1), (7, 4), (15, 16)])
def test_tree_broadcast(n: int, chunks: int) -> None:
    # A full binary tree of depth d: every inner rank sends each chunk twice, so a level takes 2S/(chunks R).
    depth = (n + 1).bit_length() - 2
    assert cct(star(n), "broadcast", "tree", GB, chunks) == pytest.approx(2 * (chunks + depth - 1) / chunks, rel=1e-6)


@pytest.mark.parametrize("algorithm", ["direct", "pairwise"])
def test_all_to_all(algorithm: Algorithm) -> None:
    assert cct(star(8), "all-to-all", algorithm, 8 * GB) == pytest.approx(7.0, rel=1e-6)


@pytest.mark.parametrize("n", [2, 5, 9])
def test_incast_is_bound_by_the_receiver(n: int) -> None:
    assert cct(star(n), "incast", "direct") == pytest.approx(n - 1, rel=1e-6)


def test_a_permutation_shares_an_oversubscribed_uplink() -> None:
    # h0..h3 below t0 send to h4..h7 below t1 and back: four flows each way over one uplink of one host's rate.
    tasks = [transfer(f"f{src}", src, (src + 4) % 8) for src in range(8)]
    assert ends(run(two_tier(4), Script(*tasks))) == pytest.approx({task.id: 4.0 for task in tasks})


def test_a_permutation_inside_the_tors_is_not_oversubscribed() -> None:
    tasks = [transfer(f"f{src}", src, src // 4 * 4 + (src + 1) % 4) for src in range(8)]
    assert ends(run(two_tier(4), Script(*tasks))) == pytest.approx({task.id: 1.0 for task in tasks})


def test_simultaneous_ends_are_one_instant() -> None:
    # Odd sizes and a shared uplink give rates that no float holds exactly; still each ring step has one end.
    group = (0, 3, 1, 4, 2, 5)
    outcome = run(two_tier(3), Script(Collective("c", "all-reduce", "ring", group, 6 * 1_000_003)))
    assert len({row.end for row in outcome.trace.flows}) == 10


# -- events -----------------------------------------------------------------------------------------------------------


def test_cancelling_frees_bandwidth() -> None:
    def react(event: Event, now: float) -> list[Action]:
        match event:
            case Start():
                return [SetTimer("stop", 1.0)]
            case Timer("stop"):
                return [Cancel("a")]
        return []

    script = Script(transfer("a", 0, 2, 2 * GB), transfer("b", 1, 2, 2 * GB), react=react)
    outcome = run(star(3), script)
    assert ends(outcome) == pytest.approx({"b": 2.5})
    ((when, cancelled),) = script.of(Cancelled)
    assert when == 1.0
    assert cancelled == Cancelled(transfer("a", 0, 2, 2 * GB), progress=0.5 * GB)
    assert outcome.carried[Port("h0", 0)] == 0.5 * GB


def test_a_cancelled_transfer_lets_the_next_on_its_connection_begin() -> None:
    def react(event: Event, now: float) -> list[Action]:
        if isinstance(event, Start):
            return [SetTimer("stop", 0.5)]
        return [Cancel("a"), Cancel("b")] if isinstance(event, Timer) else []

    tasks = (transfer(name, 0, 1, channel="x") for name in "abc")
    script = Script(*tasks, react=react)
    outcome = run(star(2), script)
    assert times(outcome) == {"c": (0.5, pytest.approx(1.5))}
    assert [event.progress for _, event in script.of(Cancelled)] == [0.5 * GB, 0.0]


def test_timers_computations_and_transfers_come_in_order() -> None:
    def react(event: Event, now: float) -> list[Action]:
        match event:
            case Start():
                return [SetTimer("late", 0.75), SetTimer("early", 0.25), SetTimer("past", -1.0)]
            case Done(Computation(), _):
                return [Run(transfer("after", 0, 1))]
        return []

    script = Script(Computation("compute", 0.5, ("h0",)), transfer("a", 0, 1, GB // 10), react=react)
    outcome = run(star(2), script)
    heard = [
        event.name if isinstance(event, Timer) else event.task.id
        for _, event in script.heard
        if isinstance(event, Timer | Done)
    ]
    assert heard == ["past", "a", "early", "compute", "late", "after"]
    assert [now for now, _ in script.heard] == pytest.approx([0.0, 0.0, 0.1, 0.25, 0.5, 0.75, 1.5])
    assert outcome.trace.end == pytest.approx(1.5)


def test_a_transfer_inside_a_host_is_over_at_once() -> None:
    outcome = run(star(2, nics=2), Script(Transfer("a", Endpoint("h0", 0), Endpoint("h0", 1), GB)))
    assert [(row.how, row.end) for row in outcome.trace.flows] == [("local", 0.0)]
    assert not any(outcome.carried.values())


def test_unknown_ends_are_refused() -> None:
    with pytest.raises(FabricError, match="h7"):
        run(star(2), Script(transfer("a", 0, 7)))
    with pytest.raises(FabricError, match="NICs 0 to 0"):
        run(star(2), Script(Transfer("a", Endpoint("h0", 1), Endpoint("h1", 0), 1)))


def test_a_workload_that_waits_for_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="waits for itself"):
        run(star(2), Script(transfer("a", 0, 1, after=("a",))))
