"""Tree algorithms: all-reduce over two complementary binary trees, broadcast over one.

The two trees (Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009;
the in-order trees are those that NCCL uses) carry half of the tensor each. A rank that is inside one tree is a leaf of
the other, so no rank sends much more than the tensor's size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from workloads.collectives.registry import Lowering
from workloads.collectives.schedule import Piece, Receipts, Schedule, split
from workloads.protocol import Collective


@dataclass(frozen=True)
class Tree:
    """A rooted tree over ranks: `edges` are (parent, child), every parent's own edge before its children's."""

    root: int
    edges: tuple[tuple[int, int], ...]
    channel: str

    @cached_property
    def depths(self) -> dict[int, int]:
        """Hops from the root, by rank."""
        depths = {self.root: 0}
        for parent, child in self.edges:
            depths[child] = depths[parent] + 1
        return depths

    @property
    def height(self) -> int:
        """Hops from the root to the farthest rank."""
        return max(self.depths.values())

    def relabelled(self, names: Sequence[int], channel: str) -> Tree:
        """The same tree with rank `names[i]` in place of i."""
        edges = tuple((names[parent], names[child]) for parent, child in self.edges)
        return Tree(names[self.root], edges, channel)


def in_order_tree(n: int) -> Tree:
    """The binary tree whose in-order walk is 1..n-1, under root 0: odd positions are leaves, depth is ceil(log2 n)."""
    parents = {position: _in_order_parent(position, n) for position in range(1, n)}

    def depth(position: int) -> int:
        return 1 + depth(parents[position]) if position else 0

    return Tree(0, tuple((parents[child], child) for child in sorted(parents, key=depth)), "tree0")


def double_tree(n: int) -> tuple[Tree, Tree]:
    """The in-order tree and its complement: mirrored if n is even, shifted by one if it is odd."""
    tree = in_order_tree(n)
    names = [n - 1 - i for i in range(n)] if n % 2 == 0 else [(i + 1) % n for i in range(n)]
    return tree, tree.relabelled(names, "tree1")


def binary_tree(n: int, root: int) -> Tree:
    """The complete binary tree in level order, starting from `root` and going around: depth floor(log2 n)."""
    edges = tuple(((child - 1) // 2, child) for child in range(1, n))
    return Tree(0, edges, "tree").relabelled([(root + i) % n for i in range(n)], "tree")


def _in_order_parent(position: int, n: int) -> int:
    """One level up: the lowest set bit moves up by one, or just falls where that would leave the tree."""
    lowest = position & -position
    up = (position ^ lowest) | (lowest << 1)
    return up if up < n else position ^ lowest


def _all_reduce(schedule: Schedule, collective: Collective) -> None:
    halves = split(Piece(0, collective.bytes), 2)
    for tree, half in zip(double_tree(len(collective.group)), halves, strict=True):
        for number, chunk in enumerate(split(half, collective.chunks)):
            reduced = _reduce_up(schedule, tree, chunk, number)
            _send_down(schedule, tree, chunk, number + tree.height, reduced)


def _broadcast(schedule: Schedule, collective: Collective) -> None:
    tree = binary_tree(len(collective.group), collective.root)
    for number, chunk in enumerate(split(Piece(0, collective.bytes), collective.chunks)):
        _send_down(schedule, tree, chunk, number, ())


def _reduce_up(schedule: Schedule, tree: Tree, chunk: Piece, first_step: int) -> Receipts:
    """Every rank adds up what its children sent and passes it on; returns what the root waits for."""
    received: dict[int, Receipts] = dict.fromkeys(tree.depths, ())
    for parent, child in reversed(tree.edges):
        step = first_step + tree.height - tree.depths[child]
        received[parent] += schedule.send(
            step, child, parent, chunk, channel=tree.channel, after=received[child], reduce=True
        )
    return received[tree.root]


def _send_down(schedule: Schedule, tree: Tree, chunk: Piece, first_step: int, at_root: Receipts) -> None:
    """Every rank passes on to its children what its parent sent."""
    received = {tree.root: at_root}
    for parent, child in tree.edges:
        step = first_step + tree.depths[parent]
        received[child] = schedule.send(step, parent, child, chunk, channel=tree.channel, after=received[parent])


def _all_reduce_steps(collective: Collective) -> int:
    """Up and down, plus one step for each further chunk that follows in the pipeline."""
    depth = (len(collective.group) - 1).bit_length()
    return 2 * depth + min(collective.chunks, (collective.bytes + 1) // 2) - 1


def _all_reduce_sent(collective: Collective) -> Sequence[Fraction]:
    """Half of the tensor over each edge that a rank has in either tree."""
    trees = double_tree(len(collective.group))
    ends = Counter(end for tree in trees for edge in tree.edges for end in edge)
    return [Fraction(ends[rank], 2) for rank in range(len(collective.group))]


def _broadcast_steps(collective: Collective) -> int:
    depth = len(collective.group).bit_length() - 1
    return depth + min(collective.chunks, collective.bytes) - 1


def _broadcast_sent(collective: Collective) -> Sequence[Fraction]:
    n = len(collective.group)
    children = Counter(parent for parent, _ in binary_tree(n, collective.root).edges)
    return [Fraction(children[rank]) for rank in range(n)]


LOWERINGS = (
    Lowering(
        "all-reduce",
        "tree",
        "double binary tree, each carrying half, pipelined in chunks: about 2 log2 N + chunks steps",
        _all_reduce,
        _all_reduce_steps,
        _all_reduce_sent,
    ),
    Lowering(
        "broadcast",
        "tree",
        "binary tree, pipelined in chunks: log2 N + chunks - 1 steps, inner ranks send 2S",
        _broadcast,
        _broadcast_steps,
        _broadcast_sent,
    ),
)
