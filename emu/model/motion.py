"""Messages in motion: they wait for their connections, are sent as streams, travel, and let others begin.

Two kinds of messages move: single ones (the stripes of transfers), and programs, whose messages have a `Shape` and
start each other without anyone being asked. A motion knows nothing of orchestrators; an engine asks it for the next
instant at which something happens, moves it there, and collects what has arrived.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Literal, NamedTuple

import numpy as np

from emu.model.connections import Connections, Waiting
from emu.model.maxmin import Bools, Floats, Ints, Links
from emu.model.network import Network
from emu.model.shapes import Shape
from emu.model.streams import Batch, Drained, Streams
from emu.model.transport import Transport

SINGLE = 0
"""The owner of single messages; programs count from 1."""
_NEVER = float("inf")
_PAIR_BITS = 24
"""NICs are numbered with fewer bits than this."""


def pair_of(src: Ints, dst: Ints) -> Ints:
    """One number for each pair of NICs."""
    return src << _PAIR_BITS | dst


@dataclass(slots=True)
class Message:
    """A single message.

    extra: seconds that pass before its first bit, for its connection to be opened.
    start: when its connection turned to it. sent: all its bits have left, and travel.
    """

    src: int
    dst: int
    bits: float
    channel: str
    kept: bool
    extra: float = 0.0
    connection: int = -1
    start: float = _NEVER
    sent: bool = False


@dataclass(slots=True, eq=False)
class Program:
    """A shape on NICs, while it runs.

    src, dst: by lane, numbers of NICs. local: the lanes inside one host, which take no time.
    connections, paths: by lane; those of local ones are not used.
    over: which messages were received; left: how many were not. start: when the first message began.
    """

    shape: Shape
    src: Ints
    dst: Ints
    local: Bools
    connections: Ints
    paths: Links
    over: Bools
    waits: Ints
    left: int
    owner: int = 0
    start: float = _NEVER


class Arrival(NamedTuple):
    """A single message that was received. first: when its first bit moved, NaN if it had none that did."""

    tag: int
    first: float
    path: Links


@dataclass(order=True, slots=True)
class _Appointment:
    """Messages that enter their paths, or arrive, at an instant, however the rates change."""

    at: float
    order: int
    what: Literal["enter", "arrive", "resume"] = field(compare=False)
    owner: int = field(compare=False)
    tags: Ints = field(compare=False)
    firsts: Floats = field(compare=False)
    paths: Links = field(compare=False)


class Motion:
    """All messages that were asked for and are not received.

    alpha: seconds on the connection before each message's first bit.
    delays: whether a message is received one path delay after it was drained.
    transport: what connections do beside sharing links fairly.
    """

    def __init__(self, network: Network, alpha: float, delays: bool, transport: Transport) -> None:
        self.network, self.streams = network, Streams(network)
        self.connections = Connections()
        self.messages: dict[int, Message] = {}
        self.programs: dict[int, Program] = {}
        self.arrivals: list[Arrival] = []
        """Single messages that were received since they were collected."""
        self.finished: list[Program] = []
        """Programs that ended since they were collected."""
        self.delays, self._alpha, self._transport = delays, alpha, transport
        self._entering: list[tuple[int, Ints]] = []
        self._appointments: list[_Appointment] = []
        self._order = count()
        self._rows: dict[tuple[int, int], Links] = {}
        self.received = 0
        """How many messages were received so far."""

    @property
    def ideal(self) -> bool:
        """Whether the transport adds nothing to fair sharing."""
        return self._transport.ideal

    # -- asking -------------------------------------------------------------------------------------------------------

    def send(self, messages: Mapping[int, Message], now: float) -> None:
        """Ask for single messages, by tags that were never used before."""
        self.messages.update(messages)
        for message in messages.values():
            if message.kept:
                pair = pair_of(np.array([message.src]), np.array([message.dst]))
                message.connection = int(self.connections.numbers(pair, message.channel)[0])
        self._open(SINGLE, np.array(list(messages), dtype=np.int64), now)

    def place(self, shape: Shape, src: Ints, dst: Ints, local: Bools) -> Program:
        """A shape put on NICs, its connections and paths looked up; it does not run yet."""
        connections = np.full(len(src), -1, dtype=np.int64)
        for channel, lanes in shape.channels:
            outside = lanes[~local[lanes]]
            connections[outside] = self.connections.numbers(pair_of(src[outside], dst[outside]), channel)
        paths = self._lane_paths(src, dst, local)
        over = np.zeros(shape.messages, dtype=np.bool_)
        return Program(shape, src, dst, local, connections, paths, over, shape.waits(), shape.messages)

    def start(self, program: Program, owner: int, now: float) -> None:
        """Let a program run."""
        program.owner = owner
        self.programs[owner] = program
        self._release(program, program.shape.first(), now)

    def adopt(self, other: Motion, twin: Program, program: Program, began: float, now: float) -> None:
        """Let a program go on here as its twin is now in a motion of its own, whose time zero was at `began`."""
        program.over, program.waits, program.left = twin.over, twin.waits, twin.left
        program.start = began + twin.start
        self.received += other.received
        self.connections.warm_up(program.connections[~other.connections.cold(twin.connections) & ~program.local])
        if not program.left:
            self.finished.append(program)
            return
        self.programs[program.owner] = program
        connections = self._connections_of(program.owner, other.streams.tags())
        self.connections.occupy(connections)
        self.streams.adopt(other.streams, connections, now - began, now)
        for one in other._appointments:
            shifted = replace(one, at=began + one.at, order=next(self._order))
            heapq.heappush(self._appointments, shifted)
            if one.what == "enter":
                self.connections.occupy(self._connections_of(program.owner, one.tags))
        waiting = other.connections.waiting()
        places = self._connections_of(program.owner, np.array([one.tag for one in waiting], dtype=np.int64))
        for message, connection in zip(waiting, places.tolist(), strict=True):
            self.connections.wait(connection, message)

    def stop(self, program: Program, now: float) -> None:
        """Forget a program."""
        rows = self.streams.owned(program.owner)
        self._remove(program.owner, rows, None, now)
        del self.programs[program.owner]

    def stop_messages(self, tags: Sequence[int], now: float) -> None:
        """Forget single messages; those that have arrived already are not minded."""
        rows = self.streams.owned(SINGLE)
        rows[rows] = np.isin(self.streams.tags(rows), tags)
        self._remove(SINGLE, rows, frozenset(tags), now)
        for tag in tags:
            self.messages.pop(tag, None)

    # -- time ---------------------------------------------------------------------------------------------------------

    def next_at(self, now: float) -> float:
        """The next instant at which a message ends, enters or arrives."""
        appointed = self._appointments[0].at if self._appointments else _NEVER
        return min(self.streams.next_end(now), appointed)

    def move(self, then: float, due: float) -> None:
        """Let time pass until `then`; `due`: appointments until then are of the same instant."""
        drained = self.streams.drain(then)
        if drained is not None:
            self._begin_waiting(self.connections.free(drained.connection), then)
            self._drained(drained, then)
        while self._appointments and self._appointments[0].at <= due:
            self._keep(heapq.heappop(self._appointments), then)

    def _keep(self, appointment: _Appointment, now: float) -> None:
        match appointment.what:
            case "enter":
                self._entering.append((appointment.owner, appointment.tags))
            case "arrive":
                self._arrive(appointment.owner, appointment.tags, appointment.firsts, appointment.paths, now)
            case "resume":
                self.streams.hold(appointment.owner, appointment.tags, held=False)

    def lit(self, dark: float, now: float) -> None:
        """The network's dark links are about to shine after `dark` seconds: streams that stood there may take longer.

        Call it before the network's links change.
        """
        wait = self._transport.recovery(dark)
        if wait > 0:
            owners, tags = self.streams.crossing(self.network.dark)
            for owner in _owners(owners):
                held = tags[owners == owner]
                self.streams.hold(owner, held, held=True)
                self._appoint(now + wait, "resume", owner, held)

    def enter(self, now: float) -> None:
        """Let all messages flow that have become ready at this instant."""
        entering, self._entering = self._entering, []
        for owner, tags in entering:
            if tags.size:
                self.streams.add(self._batch(owner, tags), now)

    def reroute(self, now: float) -> None:
        """The network's routes changed."""
        self._rows.clear()
        for program in self.programs.values():
            program.paths = self._lane_paths(program.src, program.dst, program.local)
        self.streams.reroute(self._paths_of, now)

    # -- how far it is ------------------------------------------------------------------------------------------------

    def left(self, now: float) -> dict[int, float]:
        """By tag, the bits to go of the single messages that flow."""
        tags, bits = self.streams.left(self.streams.owned(SINGLE), now)
        return dict(zip(tags.tolist(), bits.tolist(), strict=True))

    def lanes_left(self, program: Program, now: float) -> Floats:
        """By lane of a program, the bytes that have not moved."""
        shape = program.shape
        moved = np.zeros(len(program.src))
        done = np.flatnonzero(program.over)
        np.add.at(moved, shape.lanes(done), shape.sizes(done))
        tags, bits = self.streams.left(self.streams.owned(program.owner), now)
        np.add.at(moved, shape.lanes(tags), shape.sizes(tags) - bits / 8)
        for one in self._appointments:
            if one.owner == program.owner and one.what == "arrive":
                np.add.at(moved, shape.lanes(one.tags), shape.sizes(one.tags))
        return shape.totals() - moved

    def path_of(self, src: int, dst: int) -> Links:
        """The path of single messages between two NICs now."""
        path: Links = self._single_paths(np.array([src]), np.array([dst]))[0]
        return path

    # -- messages -----------------------------------------------------------------------------------------------------

    def _open(self, owner: int, tags: Ints, now: float) -> None:
        """Messages are ready: those whose connections are free begin."""
        if tags.size:
            begins = self.connections.take(self._connections_of(owner, tags), owner, tags)
            self._begin(owner, tags[begins], now)

    def _begin_waiting(self, waiting: Sequence[Waiting], now: float) -> None:
        """Messages whose turn has come."""
        by_owner: dict[int, list[int]] = {}
        for one in waiting:
            by_owner.setdefault(one.owner, []).append(one.tag)
        for owner, tags in by_owner.items():
            self._begin(owner, np.array(tags, dtype=np.int64), now)

    def _begin(self, owner: int, tags: Ints, now: float) -> None:
        """Senders turn to messages: their connections are theirs."""
        if not tags.size:
            return
        wait = np.full(len(tags), self._alpha, dtype=np.float64)
        if owner == SINGLE:
            for row, tag in enumerate(tags.tolist()):
                message = self.messages[tag]
                message.start = now
                wait[row] += message.extra
        else:
            program = self.programs[owner]
            program.start = min(program.start, now)
        if not self._transport.ideal:
            wait += self._warm_up(owner, tags)
        for seconds, which in _by_value(wait):
            if seconds > 0:
                self._appoint(now + seconds, "enter", owner, tags[which])
            else:
                self._entering.append((owner, tags[which]))

    def _drained(self, drained: Drained, now: float) -> None:
        """The last bits were sent: they travel."""
        travel = self.network.travel(drained.paths) if self.delays else np.zeros(len(drained))
        for seconds, which in _by_value(travel):
            for owner in _owners(drained.owner[which]):
                rows = which[drained.owner[which] == owner]
                tags, firsts, paths = drained.tag[rows], drained.first[rows] + travel[rows], drained.paths[rows]
                if seconds > 0:
                    self._travelling(owner, tags)
                    self._appoint(now + seconds, "arrive", owner, tags, firsts, paths)
                else:
                    self._arrive(owner, tags, firsts, paths, now)

    def _travelling(self, owner: int, tags: Ints) -> None:
        for tag in tags.tolist() if owner == SINGLE else ():
            self.messages[tag].sent = True

    def _arrive(self, owner: int, tags: Ints, firsts: Floats, paths: Links, now: float) -> None:
        if owner == SINGLE:
            known = [row for row, tag in enumerate(tags.tolist()) if tag in self.messages]
            self.arrivals += [Arrival(int(tags[row]), float(firsts[row]), paths[row]) for row in known]
            self.received += len(known)
        elif owner in self.programs:
            self._received(self.programs[owner], tags, now)

    def _received(self, program: Program, tags: Ints, now: float) -> None:
        program.over[tags] = True
        program.left -= len(tags)
        self.received += len(tags)
        self._release(program, program.shape.next(tags, program.waits), now)

    def _release(self, program: Program, tags: Ints, now: float) -> None:
        """Messages of a program wait for no other any more; those inside a host are received at once."""
        while tags.size:
            local = program.local[program.shape.lanes(tags)]
            if not local.all():
                self._open(program.owner, tags[~local], now)
                tags = tags[local]
            if tags.size:
                program.start = min(program.start, now)
                program.over[tags] = True
                program.left -= len(tags)
                tags = program.shape.next(tags, program.waits)
        if program.left == 0 and self.programs.pop(program.owner, None) is not None:
            self.finished.append(program)

    def _remove(self, owner: int, rows: Bools, tags: frozenset[int] | None, now: float) -> None:
        """Take messages of an owner (all, or those of `tags`) out, wherever they are; `rows`: those that flow."""
        self.connections.forget(owner, tags)
        early = self._withdraw(owner, tags)
        freed = [self._connections_of(owner, early)] if early.size else []
        if rows.any():
            freed.append(self.streams.take(rows, now).connection)
        for connections in freed:
            self._begin_waiting(self.connections.free(connections), now)

    def _withdraw(self, owner: int, tags: frozenset[int] | None) -> Ints:
        """Take out messages that hold a connection and do not flow yet, and those that travel; returns the former."""

        def wanted(these: Ints) -> Bools:
            return np.isin(these, list(tags)) if tags is not None else np.ones(len(these), dtype=np.bool_)

        early: list[int] = []
        entering: list[tuple[int, Ints]] = []
        for other, these in self._entering:
            out = wanted(these) if other == owner else np.zeros(len(these), dtype=np.bool_)
            early += these[out].tolist()
            entering.append((other, these[~out]))
        self._entering = entering
        for one in self._appointments:
            if one.owner == owner:
                out = wanted(one.tags)
                early += one.tags[out].tolist() if one.what == "enter" else []
                one.tags, one.firsts = one.tags[~out], one.firsts[~out[: len(one.firsts)]]
                one.paths = one.paths[~out[: len(one.paths)]]
        return np.array(early, dtype=np.int64)

    def _appoint(
        self,
        at: float,
        what: Literal["enter", "arrive", "resume"],
        owner: int,
        tags: Ints,
        firsts: Floats | None = None,
        paths: Links | None = None,
    ) -> None:
        nothing = np.empty((0, 0), dtype=np.int32)
        one = _Appointment(
            at,
            next(self._order),
            what,
            owner,
            tags,
            np.empty(0) if firsts is None else firsts,
            nothing if paths is None else paths,
        )
        heapq.heappush(self._appointments, one)

    # -- looking up ---------------------------------------------------------------------------------------------------

    def _connections_of(self, owner: int, tags: Ints) -> Ints:
        if owner == SINGLE:
            return np.array([self.messages[tag].connection for tag in tags.tolist()], dtype=np.int64)
        program = self.programs[owner]
        return program.connections[program.shape.lanes(tags)]

    def _batch(self, owner: int, tags: Ints) -> Batch:
        """The streams of messages."""
        src, dst, bits, paths = self._what(owner, tags)
        owners = np.full(len(tags), owner, dtype=np.int64)
        return Batch(owners, tags, self._connections_of(owner, tags), pair_of(src, dst), bits, paths)

    def _what(self, owner: int, tags: Ints) -> tuple[Ints, Ints, Floats, Links]:
        """Of messages: sending and receiving NICs, payload bits, and paths."""
        if owner != SINGLE:
            program = self.programs[owner]
            lanes = program.shape.lanes(tags)
            bits: Floats = program.shape.sizes(tags) * np.float64(8)
            return program.src[lanes], program.dst[lanes], bits, program.paths[lanes]
        messages = [self.messages[tag] for tag in tags.tolist()]
        src = np.array([message.src for message in messages], dtype=np.int64)
        dst = np.array([message.dst for message in messages], dtype=np.int64)
        bits = np.array([message.bits for message in messages], dtype=np.float64)
        return src, dst, bits, self._single_paths(src, dst)

    def _warm_up(self, owner: int, tags: Ints) -> Floats:
        """Seconds that the transport costs messages beside their bytes."""
        wait = np.full(len(tags), self._transport.message)
        cold = self.connections.warm_up(self._connections_of(owner, tags))
        if self._transport.round_trip <= 0 or not cold.any():
            return wait
        _, _, bits, paths = self._what(owner, tags[cold])
        rate = np.append(self.network.capacities, np.inf)[paths].min(axis=1, initial=np.inf)
        around = self._transport.round_trip + (2 * self.network.travel(paths) if self.delays else 0.0)
        lost = self._transport.slow_start(bits, rate, np.broadcast_to(around, bits.shape))
        wait[cold] += np.where(np.isfinite(rate), lost, 0.0)
        return wait

    def _single_paths(self, src: Ints, dst: Ints) -> Links:
        """Paths of single messages; each pair is followed once while the routes hold."""
        pairs = list(zip(src.tolist(), dst.tolist(), strict=True))
        unknown = [pair for pair in dict.fromkeys(pairs) if pair not in self._rows]
        if unknown:
            ends = np.array(unknown, dtype=np.int64)
            self._rows.update(zip(unknown, self.network.paths(ends[:, 0], ends[:, 1]), strict=True))
        rows = [self._rows[pair] for pair in pairs]
        out = np.full((len(rows), max(map(len, rows), default=0)), self.network.padding, dtype=np.int32)
        for place, row in enumerate(rows):
            out[place, : len(row)] = row
        return out

    def _lane_paths(self, src: Ints, dst: Ints, local: Bools) -> Links:
        found = self.network.paths(src[~local], dst[~local])
        if not local.any():
            return found
        paths = np.full((len(src), found.shape[1]), self.network.padding, dtype=np.int32)
        paths[~local] = found
        return paths

    def _paths_of(self, owners: Ints, tags: Ints) -> Links:
        """The paths of messages that flow, by the routes of now."""
        found: list[tuple[Ints, Links]] = []
        for owner in _owners(owners):
            rows = np.flatnonzero(owners == owner)
            if owner == SINGLE:
                ends = np.array([(self.messages[t].src, self.messages[t].dst) for t in tags[rows].tolist()])
                found.append((rows, self._single_paths(ends[:, 0], ends[:, 1])))
            else:
                program = self.programs[owner]
                found.append((rows, program.paths[program.shape.lanes(tags[rows])]))
        width = max((paths.shape[1] for _, paths in found), default=0)
        out = np.full((len(owners), width), self.network.padding, dtype=np.int32)
        for rows, paths in found:
            out[rows, : paths.shape[1]] = paths
        return out


def _owners(owners: Ints) -> list[int]:
    """Each once, in the order in which they come first."""
    if owners.size and (owners == owners[0]).all():
        return [int(owners[0])]
    return list(dict.fromkeys(owners.tolist()))


def _by_value(values: Floats) -> list[tuple[float, Ints]]:
    """The places of each value, the smallest value first."""
    if values.size and (values == values[0]).all():
        return [(float(values[0]), np.arange(len(values)))]
    return [(float(value), np.flatnonzero(values == value)) for value in np.unique(values)]
