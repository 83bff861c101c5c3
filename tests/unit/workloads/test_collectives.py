"""Collectives: the data ends up where it should, in any order that the dependencies allow; sizes and depths are right.

Every property is checked for every kind and algorithm there is, so a new algorithm is tested without a new test.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.cluster import Cluster, HostSpec
from workloads.collectives import (
    CollectiveError,
    algorithms,
    bus_factor,
    bytes_by_hosts,
    bytes_per_rank,
    critical_steps,
    default_algorithm,
    lower,
    lowerings,
    moves_of,
)
from workloads.collectives.schedule import Move, Piece, split
from workloads.protocol import Collective, Endpoint, Transfer

COMBINATIONS = [(kind, name) for kind, of_kind in lowerings().items() for name in of_kind]


def cluster(ranks: int) -> Cluster:
    return Cluster(tuple(HostSpec(f"h{i}") for i in range(ranks)))


def collective(kind: str, algorithm: str, ranks: int, size: int, **more: object) -> Collective:
    """An exchange gets a matrix in which every rank sends, and the next one receives, about the same."""
    if kind == "exchange" and "matrix" not in more:
        shares = split(Piece(0, size), ranks)
        more["matrix"] = tuple((i, (i + 1) % ranks, share.bytes) for i, share in enumerate(shares)) if ranks > 1 else ()
        size = size if ranks > 1 else 0
    return Collective("c", kind, algorithm, tuple(range(ranks)), size, **more)  # type: ignore[arg-type]


@st.composite
def collectives(draw: st.DrawFn, smallest: int = 0) -> Collective:
    """Any collective; `smallest` is the least number of bytes for each rank and chunk."""
    kind, algorithm = draw(st.sampled_from(COMBINATIONS))
    ranks = draw(st.integers(2, 17))
    chunks = draw(st.integers(1, 4))
    floor = smallest * ranks * chunks * 2
    pods = draw(st.lists(st.integers(1, 5), min_size=2, max_size=8)) if algorithm == "two-level" else []
    ranks = sum(pods) or ranks
    return collective(
        kind,
        algorithm,
        ranks,
        draw(st.integers(floor, floor + 100)),
        root=draw(st.integers(0, ranks - 1)),
        chunks=chunks,
        pods=tuple(pods),
    )


def predecessors(moves: tuple[Move, ...]) -> list[set[int]]:
    """What each move waits for: what it must have received, and the move before it on its connection."""
    last: dict[tuple[int, int, str], int] = {}
    result = []
    for index, move in enumerate(moves):
        connection = (move.src, move.dst, move.channel)
        result.append({*move.after, *([last[connection]] if connection in last else [])})
        last[connection] = index
    return result


def any_valid_order(moves: tuple[Move, ...], seed: int) -> list[int]:
    """A random order of delivery that the dependencies allow; fails if they allow none."""
    waiting = {index: set(before) for index, before in enumerate(predecessors(moves))}
    chance, order = random.Random(seed), []
    while waiting:
        ready = [index for index, before in waiting.items() if not before]
        assert ready, "the moves wait for each other"
        chosen = chance.choice(ready)
        order.append(chosen)
        del waiting[chosen]
        for before in waiting.values():
            before.discard(chosen)
    return order


def carry_out(task: Collective, held: list[list[Counter[int]]], seed: int) -> list[list[Counter[int]]]:
    """Move the data: `held[rank][byte]` counts whose contributions that byte contains.

    Messages arrive in a random order that the dependencies allow, so a missing dependency shows as missing data.
    """
    moves = moves_of(task)
    for index in any_valid_order(moves, seed):
        move = moves[index]
        for byte in range(*move.piece):
            content = held[move.src][byte]
            held[move.dst][byte] = held[move.dst][byte] + content if move.reduce else Counter(content)
    return held


def own_contributions(task: Collective) -> list[list[Counter[int]]]:
    return [[Counter({rank: 1}) for _ in range(task.bytes)] for rank in range(len(task.group))]


def everyone(task: Collective) -> Counter[int]:
    return Counter(range(len(task.group)))


SIZES = st.tuples(st.integers(2, 17), st.integers(0, 40), st.integers(1, 4), st.integers(0, 1000))


@pytest.mark.parametrize("algorithm", algorithms("all-reduce"))
@settings(max_examples=40, deadline=None)
@given(SIZES)
def test_all_reduce_leaves_every_contribution_once_everywhere(algorithm: str, drawn: tuple[int, int, int, int]) -> None:
    ranks, size, chunks, seed = drawn
    task = collective("all-reduce", algorithm, ranks, size, chunks=chunks)
    result = carry_out(task, own_contributions(task), seed)
    assert all(byte == everyone(task) for rank in result for byte in rank)


@pytest.mark.parametrize("algorithm", algorithms("reduce-scatter"))
@settings(max_examples=40, deadline=None)
@given(SIZES)
def test_reduce_scatter_leaves_each_rank_its_block(algorithm: str, drawn: tuple[int, int, int, int]) -> None:
    ranks, size, _, seed = drawn
    task = collective("reduce-scatter", algorithm, ranks, size)
    result = carry_out(task, own_contributions(task), seed)
    for rank, block in enumerate(split(Piece(0, size), ranks)):
        assert all(result[rank][byte] == everyone(task) for byte in range(*block))


@pytest.mark.parametrize("algorithm", algorithms("all-gather"))
@settings(max_examples=40, deadline=None)
@given(SIZES)
def test_all_gather_brings_every_block_everywhere(algorithm: str, drawn: tuple[int, int, int, int]) -> None:
    ranks, size, _, seed = drawn
    task = collective("all-gather", algorithm, ranks, size)
    blocks = split(Piece(0, size), ranks)
    start = [
        [Counter({rank: 1}) if blocks[rank].start <= byte < blocks[rank].stop else Counter() for byte in range(size)]
        for rank in range(ranks)
    ]
    whole = [Counter({owner: 1}) for owner, block in enumerate(blocks) for _ in range(block.bytes)]
    assert all(rank == whole for rank in carry_out(task, start, seed))


@pytest.mark.parametrize("algorithm", algorithms("broadcast"))
@settings(max_examples=40, deadline=None)
@given(SIZES)
def test_broadcast_brings_the_roots_bytes_once_to_every_rank(algorithm: str, drawn: tuple[int, int, int, int]) -> None:
    ranks, size, chunks, seed = drawn
    task = collective("broadcast", algorithm, ranks, size, chunks=chunks, root=seed % ranks)
    start = [[Counter({0: 1} if rank == task.root else {}) for _ in range(size)] for rank in range(ranks)]
    assert all(byte == {0: 1} for rank in carry_out(task, start, seed) for byte in rank)
    received = Counter[int]()
    for move in moves_of(task):
        received[move.dst] += move.piece.bytes
    assert all(received[rank] == (0 if rank == task.root else size) for rank in range(ranks))


@pytest.mark.parametrize("algorithm", algorithms("all-to-all"))
@given(st.integers(2, 17), st.integers(0, 60))
def test_all_to_all_delivers_each_block_once_to_its_rank(algorithm: str, ranks: int, size: int) -> None:
    blocks = split(Piece(0, size), ranks)
    delivered = sorted(
        (move.src, move.dst, move.piece) for move in moves_of(collective("all-to-all", algorithm, ranks, size))
    )
    pairs = [(src, dst) for src in range(ranks) for dst in range(ranks) if src != dst and blocks[dst].bytes]
    assert delivered == [(src, dst, blocks[dst]) for src, dst in pairs]


@given(collectives(smallest=1))
def test_the_longest_path_is_the_critical_one(task: Collective) -> None:
    moves = moves_of(task)
    depth: list[int] = []
    for before in predecessors(moves):
        depth.append(1 + max((depth[other] for other in before), default=0))
    assert max(depth) == critical_steps(task)


@given(collectives(smallest=1))
def test_what_a_move_waits_for_was_received_by_its_sender(task: Collective) -> None:
    moves = moves_of(task)
    assert all(moves[other].dst == move.src for move in moves for other in move.after)


@given(collectives())
def test_moves_come_after_those_that_they_wait_for_and_carry_something(task: Collective) -> None:
    for index, move in enumerate(moves_of(task)):
        assert all(other < index for other in move.after)
        assert move.src != move.dst
        assert 0 <= move.piece.start < move.piece.stop <= task.bytes


@pytest.mark.parametrize(("kind", "algorithm"), COMBINATIONS)
@pytest.mark.parametrize("ranks", range(2, 18))
def test_bytes_sent_equal_the_formula(kind: str, algorithm: str, ranks: int) -> None:
    size = 16 * 3 * ranks * 64  # divides by every count of pieces that occurs
    task = collective(kind, algorithm, ranks, size, chunks=3, root=ranks - 1)
    sent = Counter[int]()
    for move in moves_of(task):
        sent[move.src] += move.piece.bytes
    assert tuple(sent[rank] for rank in range(ranks)) == bytes_per_rank(task)


@given(collectives(smallest=1))
def test_bytes_sent_are_near_the_formula_for_uneven_sizes(task: Collective) -> None:
    sent, messages = Counter[int](), Counter[int]()
    for move in moves_of(task):
        sent[move.src] += move.piece.bytes
        messages[move.src] += 1
    for rank, expected in enumerate(bytes_per_rank(task)):
        assert abs(sent[rank] - expected) <= messages[rank]


@given(collectives())
def test_lowered_transfers_are_unique_exact_and_the_same_every_time(task: Collective) -> None:
    transfers = lower(task, cluster(40))
    assert len({transfer.id for transfer in transfers}) == len(transfers)
    assert [transfer.bytes for transfer in transfers] == [move.piece.bytes for move in moves_of(task)]
    assert transfers == lower(task, cluster(40))
    known: set[str] = set()
    for transfer in transfers:
        assert known.issuperset(transfer.after)
        known.add(transfer.id)


@pytest.mark.parametrize(("kind", "algorithm"), COMBINATIONS)
def test_connections_are_shared_by_collectives_of_one_group(kind: str, algorithm: str) -> None:
    def connections(name: str) -> set[tuple[Endpoint, Endpoint, str]]:
        task = replace(collective(kind, algorithm, 8, 4096, chunks=2), id=name)
        return {(transfer.src, transfer.dst, transfer.channel) for transfer in lower(task, cluster(8))}

    assert connections("first") == connections("second")


@pytest.mark.parametrize(("kind", "algorithm"), COMBINATIONS)
def test_one_rank_or_no_bytes_move_nothing(kind: str, algorithm: str) -> None:
    for task in (collective(kind, algorithm, 1, 100), collective(kind, algorithm, 4, 0)):
        assert lower(task, cluster(4)) == ()
        assert critical_steps(task) == 0
        assert sum(bytes_per_rank(task)) == 0


def test_a_ring_of_three_by_hand() -> None:
    transfers = lower(Collective("g", "all-reduce", "ring", (2, 0, 1), 10, phase="p"), cluster(3))
    assert len(transfers) == 12
    a, b, c = (Endpoint(name, 0) for name in ("h2", "h0", "h1"))
    common = {"channel": "ring", "phase": "p", "collective": "g"}
    assert transfers[0] == Transfer("g/0.0", a, b, 4, **common)  # pieces of 3, 3 and 4 bytes; the last one here
    assert transfers[1] == Transfer("g/0.1", b, c, 3, **common)
    assert transfers[3] == Transfer("g/1.0", a, b, 3, after=("g/0.2",), **common)
    assert transfers[-1] == Transfer("g/3.2", c, a, 3, after=("g/2.1",), **common)


@pytest.mark.parametrize(
    ("kind", "algorithm", "ranks", "chunks", "steps"),
    [
        ("all-reduce", "ring", 16, 1, 30),
        ("all-reduce", "halving-doubling", 16, 1, 8),
        ("all-reduce", "halving-doubling", 17, 1, 10),
        ("all-reduce", "tree", 16, 1, 8),
        ("all-reduce", "tree", 16, 8, 15),
        ("all-gather", "ring", 8, 1, 7),
        ("reduce-scatter", "halving-doubling", 8, 1, 3),
        ("all-to-all", "pairwise", 16, 1, 15),
        ("all-to-all", "direct", 16, 1, 1),
        ("broadcast", "chain", 16, 32, 46),
        ("broadcast", "tree", 16, 32, 35),
        ("broadcast", "direct", 16, 32, 1),
        ("broadcast", "two-level", 16, 32, 46),
        ("exchange", "direct", 16, 1, 1),
        ("incast", "direct", 16, 1, 1),
    ],
)
def test_critical_steps_by_hand(kind: str, algorithm: str, ranks: int, chunks: int, steps: int) -> None:
    assert critical_steps(collective(kind, algorithm, ranks, 1 << 20, chunks=chunks)) == steps


@pytest.mark.parametrize(
    ("kind", "algorithm", "expected"),
    [
        ("all-reduce", "ring", (1500,) * 4),
        ("all-reduce", "halving-doubling", (1500,) * 4),
        ("all-gather", "ring", (750,) * 4),
        ("all-to-all", "pairwise", (750,) * 4),
        ("broadcast", "chain", (1000, 1000, 1000, 0)),
        ("broadcast", "tree", (2000, 1000, 0, 0)),
        ("broadcast", "direct", (3000, 0, 0, 0)),
        ("broadcast", "two-level", (1000, 1000, 1000, 0)),
        ("exchange", "direct", (250,) * 4),
        ("all-reduce", "tree", (1000, 2000, 2000, 1000)),
        ("permutation", "direct", (1000,) * 4),
        ("incast", "direct", (0, 1000, 1000, 1000)),
    ],
)
def test_bytes_per_rank_by_hand(kind: str, algorithm: str, expected: tuple[int, ...]) -> None:
    assert bytes_per_rank(collective(kind, algorithm, 4, 1000)) == expected


@pytest.mark.parametrize("ranks", range(2, 18))
def test_the_two_trees_complement_each_other(ranks: int) -> None:
    task = collective("all-reduce", "tree", ranks, 1000)
    neighbours: dict[tuple[str, int], set[int]] = defaultdict(set)
    for move in moves_of(task):
        neighbours[move.channel, move.src].add(move.dst)
    inside_both = [rank for rank in range(ranks) if all(len(neighbours[tree, rank]) > 1 for tree in ("tree0", "tree1"))]
    assert len(inside_both) <= ranks % 2, "only an odd group has one rank that is no leaf in either tree"
    assert max(bytes_per_rank(task)) <= 2 * task.bytes


def test_ranks_of_one_host_are_transfers_within_it() -> None:
    two_hosts = Cluster((HostSpec("a", nics=2, gpus=4), HostSpec("b", nics=2, gpus=4)))
    transfers = lower(collective("all-gather", "ring", 8, 80), two_hosts)
    across = Counter((t.src, t.dst) for t in transfers if t.src.host != t.dst.host)
    assert across == {(Endpoint("a", 1), Endpoint("b", 0)): 7, (Endpoint("b", 1), Endpoint("a", 0)): 7}
    assert len(transfers) == 8 * 7


@given(collectives())
def test_bytes_by_hosts_are_those_of_the_transfers(task: Collective) -> None:
    pairs = Cluster(tuple(HostSpec(f"h{i}", gpus=2) for i in range(20)))
    total = Counter[tuple[str, str]]()
    for transfer in lower(task, pairs):
        if transfer.src.host != transfer.dst.host:
            total[transfer.src.host, transfer.dst.host] += transfer.bytes
    assert bytes_by_hosts(task, pairs) == total


def test_bus_factors_are_those_of_nccl_tests() -> None:
    assert bus_factor("all-reduce", 16) == Fraction(15, 8)
    assert bus_factor("all-gather", 4) == bus_factor("reduce-scatter", 4) == bus_factor("all-to-all", 4)
    assert bus_factor("all-to-all", 4) == Fraction(3, 4)
    assert bus_factor("broadcast", 9) == bus_factor("permutation", 9) == 1
    assert bus_factor("incast", 16) == 15
    assert bus_factor("all-reduce", 1) == 0


def test_every_kind_has_exactly_one_default() -> None:
    for kind, of_kind in lowerings().items():
        assert [name for name in of_kind if of_kind[name].default] == [default_algorithm(kind)]
        assert bus_factor(kind, 4) > 0
    assert len(lowerings()) == 8


def test_a_two_level_broadcast_feeds_each_pod_once_and_no_rank_sends_more_than_the_tensor() -> None:
    task = collective("broadcast", "two-level", 16, 1600, chunks=4, pods=(4, 4, 4, 4))
    sent, received = Counter[tuple[int, int]](), Counter[int]()
    for move in moves_of(task):
        sent[move.src, move.dst] += move.piece.bytes
        received[move.dst] += move.piece.bytes
    assert received == dict.fromkeys(range(4, 16), 1600), "the training pod holds it all"
    between = {pair for pair in sent if pair[0] // 4 != pair[1] // 4}
    assert between == {(0, 4), (2, 8), (7, 12)}
    assert {pair for pair in sent if pair[0] // 4 == 1} == {(4, 5), (5, 6), (6, 7), (7, 12)}
    assert max(bytes_per_rank(task)) == 1600
    assert critical_steps(task) == 8 + 4 - 1, "0-4-5-6-7-12-13-14-15, then three more chunks"


@given(st.lists(st.integers(1, 5), min_size=2, max_size=9), st.integers(0, 40), st.integers(1, 4), st.integers(0, 1000))
def test_a_two_level_broadcast_brings_the_first_pods_bytes_to_everyone(
    pods: list[int], size: int, chunks: int, seed: int
) -> None:
    task = collective("broadcast", "two-level", sum(pods), size, chunks=chunks, pods=tuple(pods), root=seed % sum(pods))
    holders = {(task.root + i) % sum(pods) for i in range(pods[0])}
    start = [[Counter({0: 1} if rank in holders else {}) for _ in range(size)] for rank in range(sum(pods))]
    assert all(byte == {0: 1} for rank in carry_out(task, start, seed) for byte in rank)


def test_an_exchange_sends_its_matrix() -> None:
    matrix = ((0, 1, 5), (2, 1, 7), (1, 0, 1))
    transfers = lower(collective("exchange", "direct", 3, 13, matrix=matrix), cluster(3))
    assert [(t.src.host, t.dst.host, t.bytes) for t in transfers] == [("h0", "h1", 5), ("h2", "h1", 7), ("h1", "h0", 1)]
    assert bus_factor("exchange", 4) == Fraction(1, 4)


EXCHANGE = {"kind": "exchange", "algorithm": "direct"}
TWO_LEVEL = {"kind": "broadcast", "algorithm": "two-level"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"group": ()}, "all-reduce 'c': the group has no ranks"),
        ({"group": (0, 1, 0)}, "rank 0 is in the group twice"),
        ({"group": (0, 9)}, "there is no rank 9; the cluster has ranks 0 to 3"),
        ({"root": 2}, "root 2 is no index into a group of 2"),
        ({"bytes": -1}, "bytes must not be negative, not -1"),
        ({"chunks": 0}, "chunks must be at least 1, not 0"),
        ({"algorithm": "chain"}, "no all-reduce by 'chain'; valid algorithms: halving-doubling, ring, tree"),
        ({"matrix": ((0, 1, 8),)}, "only an exchange has a matrix"),
        ({"kind": "exchange", "algorithm": "direct"}, "the matrix adds up to 0 bytes, not 8"),
        ({**EXCHANGE, "matrix": ((0, 0, 8),)}, "two different indices into a group of 2"),
        ({**EXCHANGE, "matrix": ((0, 2, 8),)}, "two different indices into a group of 2"),
        ({**EXCHANGE, "matrix": ((0, 1, 4), (0, 1, 4))}, "every pair once at most"),
        ({"pods": (1, 1)}, "only a two-level algorithm has pods"),
        ({**TWO_LEVEL, "pods": (1, 2)}, "the pods 1, 2 do not add up to a group of 2"),
        ({**TWO_LEVEL, "pods": (2, 0)}, "the pods 2, 0 do not add up to a group of 2"),
        ({"kind": "gossip"}, "no collective 'gossip'; there are: all-gather, all-reduce, .*"),
    ],
)
def test_impossible_collectives_are_refused(changes: dict[str, object], message: str) -> None:
    fields: dict[str, object] = {"id": "c", "kind": "all-reduce", "algorithm": "ring", "group": (0, 1), "bytes": 8}
    with pytest.raises(CollectiveError, match=message):
        lower(Collective(**{**fields, **changes}), cluster(4))  # type: ignore[arg-type]
