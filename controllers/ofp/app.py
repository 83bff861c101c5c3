"""The Ryu application for all switches of a fabric, packet switches and OCSs alike.

The library's event loop runs the handlers, which only hand on what arrives. The thread that reads the channel takes
requests one after the other; what has to wait for a switch goes on in a thread of the hub.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from functools import partial, reduce
from typing import Any, TypeVar

from controllers.channel import (
    Abort,
    AbortOutcome,
    Barriers,
    Echo,
    EchoReply,
    Event,
    Fault,
    Hello,
    Install,
    Installed,
    MeasureBarriers,
    Outcome,
    Prepare,
    ReadFlows,
    Refused,
    Request,
    RuleChange,
    SwitchConnected,
    SwitchLost,
    Verify,
)
from controllers.gates import Gates
from controllers.ofp.bundles import Bundle, fill, replacing
from controllers.ofp.change import Change, Reply, StopNote
from controllers.ofp.flows import check_rule
from controllers.ofp.server import EngineServer
from controllers.ofp.state import applied, difference, keyed, undoing
from controllers.ofp.switch import Arrival, Switch, SwitchError, deadline_in
from controllers.ryu_api import (
    CONFIG_DISPATCHER,
    DEAD_DISPATCHER,
    HANDSHAKE_DISPATCHER,
    MAIN_DISPATCHER,
    VERSION,
    App,
    hub,
    ofp_event,
    ofproto_v1_4,
    set_ev_cls,
)
from controllers.tables import Table

_Asked = TypeVar("_Asked", bound=Request)
_LOG = logging.getLogger(__name__)
ANSWER_TIMEOUT = 2.0
"""Seconds that a switch has to answer a request that names no time-out."""


class FabricApp(App):
    """Installs tables, fires epoch changes and reports, over the channel at `socket`.

    on_gone: called with the reason when the engine has hung up.
    """

    OFP_VERSIONS = (ofproto_v1_4.OFP_VERSION,)

    def __init__(self, *args: object, socket: str, on_gone: Callable[[str], None], **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self._switches: dict[int, Switch] = {}
        self._tables: dict[int, Table] = {}
        self._changes: dict[str, Change] = {}
        self._gates = Gates()
        self._committed: set[str] = set()
        self._server = EngineServer(socket, self._on_request, on_gone)
        self._server.emit(Hello(VERSION))

    def start(self) -> object:
        """Called by the library once every application is there."""
        started = super().start()
        self._server.start()
        return started

    # -- what switches say --------------------------------------------------------------------------------------------

    @set_ev_cls(ofp_event.EventOFPStateChange, (MAIN_DISPATCHER, DEAD_DISPATCHER))
    def on_state(self, event: Any) -> None:  # noqa: ANN401
        """A switch finished its handshake, or its connection is gone."""
        datapath = event.datapath
        known = self._switches.get(datapath.id)
        if event.state == MAIN_DISPATCHER:
            if known is not None:
                self._lose(known, "its connection was replaced by a new one")
            self._switches[datapath.id] = Switch(datapath)
            self._server.emit(SwitchConnected(datapath.id))
        elif known is not None and known.datapath is datapath:
            self._lose(known, "its OpenFlow connection is lost")

    @set_ev_cls(ofp_event.EventOFPBarrierReply, MAIN_DISPATCHER)
    def on_barrier(self, event: Any) -> None:  # noqa: ANN401
        """A barrier was passed."""
        self._deliver(event.msg)

    @set_ev_cls(ofp_event.EventOFPBundleCtrlMsg, MAIN_DISPATCHER)
    def on_bundle(self, event: Any) -> None:  # noqa: ANN401
        """A bundle was opened, closed, committed or discarded."""
        self._deliver(event.msg)

    @set_ev_cls(ofp_event.EventOFPFlowStatsReply, MAIN_DISPATCHER)
    def on_flows(self, event: Any) -> None:  # noqa: ANN401
        """A part of a flow dump."""
        self._deliver(event.msg)

    @set_ev_cls(ofp_event.EventOFPErrorMsg, (HANDSHAKE_DISPATCHER, CONFIG_DISPATCHER, MAIN_DISPATCHER))
    def on_error(self, event: Any) -> None:  # noqa: ANN401
        """A switch refused something: tell who waits for it, or the engine."""
        message = event.msg
        reason = f"OpenFlow error: {error_name(message)}"
        switch = self._switches.get(message.datapath.id)
        arrival = Arrival(time.monotonic_ns(), None, reason)
        if switch is None or not switch.deliver(message.xid, arrival):
            self._server.emit(Fault(reason, message.datapath.id))

    def _deliver(self, message: Any) -> None:  # noqa: ANN401
        at_ns = time.monotonic_ns()
        switch = self._switches.get(message.datapath.id)
        if switch is not None and switch.datapath is message.datapath:
            switch.deliver(message.xid, Arrival(at_ns, message))

    def _lose(self, switch: Switch, reason: str) -> None:
        del self._switches[switch.dpid]
        switch.lose(reason)
        self._server.emit(SwitchLost(switch.dpid, reason))
        for change in list(self._changes.values()):
            if switch.dpid in change.dpids:
                change.stop(StopNote(reason, switch.dpid))

    # -- what the engine asks -----------------------------------------------------------------------------------------

    def _on_request(self, number: int, request: Request) -> None:
        """Answer at once, or start a thread that will."""
        reply = partial(self._server.answer, number)
        match request:
            case Echo():
                reply(EchoReply(time.monotonic_ns()))
            case Prepare():
                self._guarded(request, reply, self._prepare)
            case Abort():
                self._guarded(request, reply, self._abort)
            case _:
                hub.spawn(self._guarded, request, reply, self._ask_switches)

    def _guarded(self, request: _Asked, reply: Reply, work: Callable[[_Asked, Reply], None]) -> None:
        """Answer every request, whatever happens: nobody may wait for an answer that never comes."""
        try:
            work(request, reply)
        except SwitchError as error:
            reply(Refused(error.reason, error.dpid))
        except ValueError as error:
            reply(Refused(str(error)))
        except Exception as error:
            _LOG.exception("%s failed", type(request).__name__)
            reply(Refused(f"internal error: {error!r}"))

    def _ask_switches(self, request: Request, reply: Reply) -> None:
        deadline_ns = deadline_in(ANSWER_TIMEOUT)
        match request:
            case Install():
                reply(self._install(request))
            case Verify():
                reply(self._verify(request.dpids, deadline_ns))
            case MeasureBarriers():
                switch = self._switch(request.dpid)
                reply(Barriers(tuple(switch.barrier(deadline_in(ANSWER_TIMEOUT)) for _ in range(request.count))))
            case ReadFlows():
                reply(self._switch(request.dpid).flows(deadline_ns))

    def _install(self, request: Install) -> Installed:
        """Replace whole tables, all switches side by side, then read them back."""
        deadline_ns = deadline_in(request.timeout)
        self._refuse_if_changing(request.tables)
        for dpid, table in request.tables.items():
            _check(dpid, table)
        bundles = [Bundle(self._switch(dpid), replacing(table)) for dpid, table in request.tables.items()]
        try:
            fill(bundles, deadline_ns)
            for bundle in bundles:
                bundle.begin_commit()
            for bundle in bundles:
                bundle.end_commit(deadline_ns)
        finally:
            for bundle in bundles:
                bundle.discard()
        self._tables.update(request.tables)
        return self._verify(request.tables, deadline_ns)

    def _verify(self, dpids: Iterable[int], deadline_ns: int) -> Installed:
        """Raise SwitchError for the first switch that does not hold exactly its table."""
        rules = 0
        for dpid in dpids:
            table = self._tables.get(dpid, ())
            wrong = difference(table, self._switch(dpid).flows(deadline_ns))
            if wrong:
                raise SwitchError(dpid, f"it does not hold the table it should: {wrong}")
            rules += len(table)
        return Installed(rules)

    def _prepare(self, request: Prepare, reply: Reply) -> None:
        """Check a change and start its thread, which answers."""
        dpids = sorted({*request.detour, *request.dark, *request.light})
        if request.change in self._changes or request.change in self._committed:
            raise ValueError(f"there has been a change {request.change!r} already")
        self._refuse_if_changing(dpids)
        switches = {dpid: self._switch(dpid) for dpid in dpids}
        restore = {dpid: self._restoring(request, dpid) for dpid in dpids}
        change = Change(request, switches, restore, self, self._gates)
        self._changes[request.change] = change
        hub.spawn(change.run, reply)

    def _abort(self, request: Abort, reply: Reply) -> None:
        change = self._changes.get(request.change)
        if change is not None:
            change.stop(StopNote("the engine asked for it", reply=reply))
        elif request.change in self._committed:
            reply(AbortOutcome(request.change, "committed"))
        else:
            raise ValueError(f"there is no change {request.change!r} to abort")

    # -- what a change reports ----------------------------------------------------------------------------------------

    def emit(self, event: Event) -> None:
        """Send an event of a change to the engine."""
        self._server.emit(event)

    def apply(self, dpid: int, change: RuleChange) -> None:
        """Note a change that a switch acknowledged. Going back may delete rules that never came: those are skipped."""
        table = self._tables.get(dpid, ())
        held = tuple(rule for rule in change.delete if rule in table)
        self._tables[dpid] = applied(table, RuleChange(held, change.add))

    def over(self, change: Change, outcome: Outcome) -> None:
        """Free the change's switches for the next one."""
        if outcome == "committed":
            self._committed.add(change.request.change)
        del self._changes[change.request.change]

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _restoring(self, request: Prepare, dpid: int) -> RuleChange:
        """What brings one switch back. Raises SwitchError if the change does not fit what the switch holds."""
        stages = [stage[dpid] for stage in (request.detour, request.dark, request.light) if dpid in stage]
        table = self._tables.get(dpid, ())
        try:
            for rule in (rule for stage in stages for rule in stage.add):
                check_rule(rule)
            reduce(applied, stages, table)
        except ValueError as error:
            raise SwitchError(dpid, str(error)) from None
        return undoing(table, *stages)

    def _refuse_if_changing(self, dpids: Iterable[int]) -> None:
        """One change at a time a switch: a restore is computed from what the switch held when it was prepared."""
        for change in list(self._changes.values()):
            if both := change.dpids & set(dpids):
                raise SwitchError(min(both), f"it is part of the change {change.request.change!r}, which is not over")

    def _switch(self, dpid: int) -> Switch:
        if dpid not in self._switches:
            raise SwitchError(dpid, "it is not connected")
        return self._switches[dpid]


def _check(dpid: int, table: Table) -> None:
    """Raise SwitchError for a table that a switch cannot hold."""
    try:
        for rule in table:
            check_rule(rule)
        keyed(table)
    except ValueError as error:
        raise SwitchError(dpid, str(error)) from None


def error_name(message: Any) -> str:  # noqa: ANN401
    """The specification's names for an error message's type and code."""
    ofproto = message.datapath.ofproto
    code = getattr(message, "code", None)
    if code is None:
        return str(ofproto.ofp_error_type_to_str(message.type))
    return f"{ofproto.ofp_error_type_to_str(message.type)}, {ofproto.ofp_error_code_to_str(message.type, code)}"
