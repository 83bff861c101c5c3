"""From a collective to the transfers that carry it out, and what is known of them beforehand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

from workloads.cluster import Cluster
from workloads.collectives.registry import CollectiveError, lowering_of
from workloads.collectives.schedule import Move, Schedule
from workloads.protocol import Collective, CollectiveKind, Endpoint, Transfer


def lower(collective: Collective, cluster: Cluster) -> tuple[Transfer, ...]:
    """The transfers of a collective, each after those that it waits for; none for one rank or no bytes.

    Sizes are exact: where a tensor does not divide evenly, pieces differ by one byte, and empty ones are not sent.
    Transfers between ranks of one host are among them. Ids are "<collective>/<step>.<number within the step>".
    Channels are named after the algorithm, so collectives of one group and algorithm share their connections.

    Raises CollectiveError for what `check` refuses.
    """
    check(collective, cluster)
    moves = moves_of(collective)
    ids = _ids(collective, moves)
    ends = cluster.endpoints(collective.group)
    return tuple(_transfer(collective, move, ids[i], ends, ids) for i, move in enumerate(moves))


def moves_of(collective: Collective) -> tuple[Move, ...]:
    """The moves of a collective by position in its group. Raises CollectiveError for a collective that is not valid."""
    check(collective)
    result = Schedule()
    if _moves_anything(collective):
        lowering_of(collective.kind, collective.algorithm).build(result, collective)
    return tuple(result.moves)


def bytes_by_hosts(collective: Collective, cluster: Cluster) -> Counter[tuple[str, str]]:
    """Bytes of a collective by (source host, destination host), without what stays inside a host.

    Raises CollectiveError for what `check` refuses.
    """
    check(collective, cluster)
    hosts = [end.host for end in cluster.endpoints(collective.group)]
    total: Counter[tuple[str, str]] = Counter()
    for src, dst, size in _bytes_by_pairs(collective):
        if hosts[src] != hosts[dst]:
            total[hosts[src], hosts[dst]] += size
    return total


def _bytes_by_pairs(collective: Collective) -> Iterable[tuple[int, int, int]]:
    """(Sender, receiver, bytes) by position in the group; pairs may come several times."""
    pairs = lowering_of(collective.kind, collective.algorithm).pairs
    if pairs is not None and _moves_anything(collective):
        return ((src, dst, size) for src, dst, size in pairs(collective) if size)
    return ((move.src, move.dst, move.piece.stop - move.piece.start) for move in moves_of(collective))


def check(collective: Collective, cluster: Cluster | None = None) -> None:
    """Raise CollectiveError if a collective makes no sense, or has ranks that the cluster does not."""
    for problem in _problems(collective, cluster):
        raise CollectiveError(f"{collective.kind} {collective.id!r}: {problem}")
    lowering_of(collective.kind, collective.algorithm)


def critical_steps(collective: Collective) -> int:
    """Messages that wait for each other on the longest path, those that share a connection included.

    For tensors of at least one byte for each rank and chunk; with fewer, empty pieces may shorten the path.
    """
    check(collective)
    if not _moves_anything(collective):
        return 0
    return lowering_of(collective.kind, collective.algorithm).steps(collective)


def bytes_per_rank(collective: Collective) -> tuple[Fraction, ...]:
    """Bytes that each rank of the group sends, in the group's order.

    The textbook formulas, such as 2(N-1)/N S for a ring all-reduce; exact if the tensor divides evenly, else each
    message may differ by less than a byte.
    """
    check(collective)
    if not _moves_anything(collective):
        return (Fraction(0),) * len(collective.group)
    sent = lowering_of(collective.kind, collective.algorithm).sent(collective)
    return tuple(share * collective.bytes for share in sent)


def bus_factor(kind: CollectiveKind, ranks: int) -> Fraction:
    """busbw / algbw, where algbw is the collective's bytes by its completion time.

    As nccl-tests defines it (doc/PERFORMANCE.md): 2(n-1)/n for all-reduce, (n-1)/n for all-gather, reduce-scatter and
    all-to-all, 1 for broadcast and send-receive (a permutation). An incast, whose n-1 senders send the bytes each, has
    n-1 by the same reasoning: the factor makes busbw comparable to the rate of the busiest link. An exchange has 1/n:
    what its ranks send at on average, since its busiest link depends on the matrix.
    """
    if ranks < 2:
        return Fraction(0)
    factors: dict[CollectiveKind, Fraction] = {
        "all-reduce": Fraction(2 * (ranks - 1), ranks),
        "all-gather": Fraction(ranks - 1, ranks),
        "reduce-scatter": Fraction(ranks - 1, ranks),
        "all-to-all": Fraction(ranks - 1, ranks),
        "exchange": Fraction(1, ranks),
        "broadcast": Fraction(1),
        "permutation": Fraction(1),
        "incast": Fraction(ranks - 1),
    }
    return factors[kind]


def _moves_anything(collective: Collective) -> bool:
    return len(collective.group) > 1 and collective.bytes > 0


def _problems(collective: Collective, cluster: Cluster | None) -> Iterable[str]:
    group = collective.group
    repeated = sorted(rank for rank, times in Counter(group).items() if times > 1)
    if not group:
        yield "the group has no ranks"
    elif repeated:
        yield f"rank {repeated[0]} is in the group twice"
    elif not 0 <= collective.root < len(group):
        yield f"root {collective.root} is no index into a group of {len(group)}"
    if collective.bytes < 0:
        yield f"bytes must not be negative, not {collective.bytes}"
    if collective.chunks < 1:
        yield f"chunks must be at least 1, not {collective.chunks}"
    yield from _shape_problems(collective)
    if cluster:
        yield from (
            f"there is no rank {rank}; the cluster has ranks 0 to {cluster.ranks - 1}"
            for rank in group
            if not 0 <= rank < cluster.ranks
        )


def _shape_problems(collective: Collective) -> Iterable[str]:
    """What is wrong with a matrix or pods, where the kind or the algorithm has some."""
    ranks, pairs = len(collective.group), [(src, dst) for src, dst, _ in collective.matrix]
    if collective.kind == "exchange":
        if any(not (0 <= src < ranks and 0 <= dst < ranks) or src == dst for src, dst in pairs):
            yield f"the matrix must name two different indices into a group of {ranks} each time"
        if len(set(pairs)) < len(pairs) or any(size < 0 for _, _, size in collective.matrix):
            yield "the matrix must name every pair once at most, with 0 bytes or more"
        if (total := sum(size for _, _, size in collective.matrix)) != collective.bytes:
            yield f"the matrix adds up to {total} bytes, not {collective.bytes}"
    elif collective.matrix:
        yield "only an exchange has a matrix"
    if collective.pods and collective.algorithm != "two-level":
        yield "only a two-level algorithm has pods"
    if collective.pods and (min(collective.pods) < 1 or sum(collective.pods) != ranks):
        yield f"the pods {', '.join(map(str, collective.pods))} do not add up to a group of {ranks}"


def _ids(collective: Collective, moves: Sequence[Move]) -> list[str]:
    numbers: Counter[int] = Counter()
    ids = []
    for move in moves:
        ids.append(f"{collective.id}/{move.step}.{numbers[move.step]}")
        numbers[move.step] += 1
    return ids


def _transfer(collective: Collective, move: Move, name: str, ends: Sequence[Endpoint], ids: Sequence[str]) -> Transfer:
    return Transfer(
        id=name,
        src=ends[move.src],
        dst=ends[move.dst],
        bytes=move.piece.bytes,
        channel=move.channel,
        after=tuple(ids[index] for index in move.after),
        phase=collective.phase,
        collective=collective.id,
    )
