"""Collectives that run without being simulated message by message, where that is exact.

A collective whose links nobody else can fill takes as long as it does alone. That time is computed once: step by step
without any sharing if its messages never share a link (a ring on a fabric that does not block it), else by a motion of
its own; and it is remembered for all collectives of the same shape on paths of the same form. When traffic comes that
could take bandwidth from it, or its circuits change, it is put into the common motion in the state in which it is then.

A *claim* is what a message at a time could take of each link at most: what the NICs that send over it, or those that
receive over it, can carry together. As long as the claims on a link are within its capacity, nobody on it slows anybody
else down.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import numpy as np

from emu.model.maxmin import Bools, Floats, Ints, Links
from emu.model.motion import Motion, Program
from emu.model.network import Network
from emu.model.shapes import Ring, Shape

_FITS = 1 + 1e-9
"""Claims may exceed a capacity by this factor: sums in another order must not make them overbooked."""
_LARGE = 1 << 20
"""Lanes with more links in all claim those whole, and are not remembered: to sort them takes longer than they do."""

Form = tuple[Shape, bytes]


class Claim(NamedTuple):
    """Bits per second, by link; links without any are left out."""

    links: Ints
    rates: Floats


@dataclass(slots=True, eq=False)
class _Whole:
    """A program that runs by itself, from `began` to `end`."""

    program: Program
    began: float
    end: float


class Wholes:
    """The claims of all traffic, and the programs that run by themselves.

    alone: makes a motion on the same network with nothing in it.
    """

    def __init__(self, network: Network, motion: Motion, alone: Callable[[], Motion], alpha: float) -> None:
        self._network, self._motion, self._alone, self._alpha = network, motion, alone, alpha
        self._claimed = np.zeros(network.padding)
        self._claims: dict[int, Claim] = {}
        self._running: dict[int, _Whole] = {}
        self._ends: list[tuple[float, int, int]] = []
        self._order = count()
        self._known: dict[Form, float] = {}
        self.taken = 0
        """How many messages programs had that ended without being simulated here."""

    # -- programs -----------------------------------------------------------------------------------------------------

    def start(self, program: Program, owner: int, now: float) -> None:
        """Let a program run: by itself, or in the motion."""
        claim = self._claim(program)
        free = not self._disturb(claim, now)
        self._add(owner, claim)
        program.owner = owner
        if not free or not self._undisturbed(program):
            self._motion.start(program, owner, now)
            return
        whole = _Whole(program, now, now + self._duration(program))
        program.start = now
        self._running[owner] = whole
        heapq.heappush(self._ends, (whole.end, next(self._order), owner))

    def over(self, owner: int) -> None:
        """A program has ended or was stopped: nothing is claimed any more."""
        claim = self._claims.pop(owner, None)
        if claim is not None:
            self._claimed[claim.links] -= claim.rates
            np.maximum(self._claimed, 0.0, out=self._claimed)

    def __contains__(self, owner: int) -> bool:
        return owner in self._running

    # -- single messages ----------------------------------------------------------------------------------------------

    def single(self, key: int, src: int, dst: int, now: float) -> None:
        """A single message is sent; `key`: for `over`, negative."""
        row = self._motion.path_of(src, dst)
        links: Ints = row[row < self._network.padding].astype(np.int64)
        claim = Claim(links, np.full(len(links), self._network.nic_rates()[src]))
        self._disturb(claim, now)
        self._add(key, claim)

    # -- time ---------------------------------------------------------------------------------------------------------

    @property
    def next_at(self) -> float:
        """When the next program that runs by itself ends; inf if none does."""
        while self._ends and not self._current(self._ends[0]):
            heapq.heappop(self._ends)
        return self._ends[0][0] if self._ends else float("inf")

    def ended(self, due: float) -> list[Program]:
        """The programs that end until `due`, in order."""
        out: list[Program] = []
        while self.next_at <= due:
            _, _, owner = heapq.heappop(self._ends)
            program = self._running.pop(owner).program
            self._motion.streams.book(program.paths, 8.0 * program.shape.totals())  # local lanes have no links
            self._motion.connections.warm_up(program.connections)
            self.taken += program.shape.messages
            out.append(program)
        return out

    def carried(self, now: float) -> Floats:
        """Payload bits by link of what runs by itself, as if it went evenly."""
        total = np.zeros(self._network.padding + 1)
        for whole in self._running.values():
            part = (now - whole.began) / (whole.end - whole.began) if whole.end > whole.began else 1.0
            program = whole.program
            weights = np.repeat(8.0 * part * program.shape.totals(), program.paths.shape[1])
            total += np.bincount(program.paths.ravel(), weights=weights, minlength=total.size)
        return total[:-1]

    # -- being disturbed ----------------------------------------------------------------------------------------------

    def wake(self, links: Bools, now: float) -> None:
        """Something happens to these links: programs that cross them go on in the motion."""
        for owner, whole in list(self._running.items()):
            if links[whole.program.paths].any():
                self.wake_one(owner, now)

    def wake_where(self, changed: Callable[[Program], bool], now: float) -> None:
        """Programs of which that is true go on in the motion."""
        for owner, whole in list(self._running.items()):
            if changed(whole.program):
                self.wake_one(owner, now)

    def wake_one(self, owner: int, now: float) -> None:
        """Put a program that runs by itself into the motion, in the state in which it is now."""
        whole = self._running.pop(owner)
        program = whole.program
        alone = self._alone()
        twin = alone.place(program.shape, program.src, program.dst, program.local)
        alone.start(twin, owner, 0.0)
        run_alone(alone, now - whole.began)
        self._motion.adopt(alone, twin, program, whole.began, now)

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _current(self, entry: tuple[float, int, int]) -> bool:
        whole = self._running.get(entry[2])
        return whole is not None and whole.end == entry[0]

    def _disturb(self, claim: Claim, now: float) -> bool:
        """Whether a claim overbooks links that others claim; what runs by itself there goes on in the motion."""
        others = self._claimed[claim.links]
        over = (others > 0) & (others + claim.rates > self._network.capacities[claim.links] * _FITS)
        if not over.any():
            return False
        links = np.zeros(self._network.padding + 1, dtype=np.bool_)
        links[claim.links[over]] = True
        self.wake(links, now)
        return True

    def _add(self, owner: int, claim: Claim) -> None:
        self._claims[owner] = claim
        self._claimed[claim.links] += claim.rates

    def _claim(self, program: Program) -> Claim:
        outside = ~program.local
        paths = program.paths[outside]
        if paths.size > _LARGE:
            links: Ints = np.flatnonzero(np.bincount(paths.ravel(), minlength=self._network.padding + 1)[:-1])
            return Claim(links, self._network.capacities[links])
        rates = self._network.nic_rates()
        sent, received = (self._reaching(paths, nics[outside], rates) for nics in (program.src, program.dst))
        total = np.minimum(sent, received)
        links = np.flatnonzero(total)
        return Claim(links, total[links])

    def _reaching(self, paths: Links, nics: Ints, rates: Floats) -> Floats:
        """By link, what these NICs carry together, each once."""
        links = paths.ravel().astype(np.int64)
        each = np.unique(links * len(rates) + np.repeat(nics, paths.shape[1]))
        crossed, nic = np.divmod(each, len(rates))
        total = np.bincount(crossed, weights=rates[nic], minlength=self._network.padding + 1)
        return np.asarray(total[:-1], dtype=np.float64)

    def _undisturbed(self, program: Program) -> bool:
        """Whether all its lanes have paths that are lit."""
        paths = program.paths[~program.local]
        return bool((paths < self._network.padding).any(axis=1).all() and not self._network.dark[paths].any())

    def _duration(self, program: Program) -> float:
        """How long it takes alone."""
        pipelined = ring_time(program, self._network, self._alpha, self._motion.delays) if self._motion.ideal else None
        if pipelined is not None:
            return pipelined
        form = self._form(program)
        if form is None or form not in self._known:
            alone = self._alone()
            twin = alone.place(program.shape, program.src, program.dst, program.local)
            alone.start(twin, program.owner, 0.0)
            seconds = run_alone(alone, float("inf"))
            if form is None:
                return seconds
            self._known[form] = seconds
        return self._known[form]

    def _form(self, program: Program) -> Form | None:
        """What its duration depends on: two programs of one form run alike. None if that is too large to compare."""
        if program.paths.size > _LARGE:
            return None
        links, paths = _relabelled(program.paths)
        _, connections = _relabelled(program.connections)
        known = links[links < self._network.padding]
        parts = (
            program.local,
            paths,
            connections,
            links < self._network.padding,
            self._network.capacities[known],
            self._network.delays[known],
            self._motion.connections.cold(program.connections),
        )
        return program.shape, b"/".join(part.tobytes() for part in parts)


def run_alone(motion: Motion, until: float) -> float:
    """Run a motion by itself up to an instant, at most to its end; returns when the last thing happened."""
    now = 0.0
    motion.enter(now)
    while motion.programs and (then := motion.next_at(now)) <= until:
        now = max(now, then)
        motion.move(now, now * (1 + 1e-12))
        motion.enter(now)
    return now


def ring_time(program: Program, network: Network, alpha: float, delays: bool) -> float | None:
    """Seconds of a ring whose messages never share a link, None if they do or it is no ring.

    Each message then takes its bytes by the rate of its path, and begins when its connection is free and its rank has
    received what it sends on: rank after rank and step after step, exactly.
    """
    shape = program.shape
    if not isinstance(shape, Ring):
        return None
    outside = ~program.local
    paths = program.paths[outside]
    rates = np.full(shape.n, np.inf)
    rates[outside] = np.append(network.capacities, np.inf)[paths].min(axis=1, initial=np.inf)
    load = np.bincount(paths.ravel(), weights=np.repeat(rates[outside], paths.shape[1]), minlength=network.padding + 1)
    if (load[:-1] > network.capacities * _FITS).any() or len(np.unique(program.connections[outside])) < outside.sum():
        return None
    travel = np.zeros(shape.n)
    if delays:
        travel[outside] = network.travel(paths)
    wait = np.where(outside, alpha, 0.0)
    free, got = np.zeros(shape.n), np.zeros(shape.n)
    before = shape.src - 1
    second_per_byte = 8.0 / rates
    for step in range(shape.steps):
        begin = np.maximum(free, got) if outside.all() else np.where(outside, np.maximum(free, got), got)
        free = begin + wait + second_per_byte * shape.of_step(step)
        got = (free + travel)[before]
    return float(got.max())


def _relabelled(values: Links | Ints) -> tuple[Ints, Ints]:
    """Each value once, in the order in which they come first, and for each entry which of them it is."""
    found, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    label = np.empty(len(order), dtype=np.int64)
    label[order] = np.arange(len(order))
    return found[order].astype(np.int64), label[inverse.reshape(-1)]
