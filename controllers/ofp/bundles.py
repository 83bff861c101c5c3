"""Bundles: changes to one switch that are filled and closed ahead, and take effect together at one COMMIT.

Atomic and ordered, so a packet sees all of a bundle or nothing of it, and deletes come before adds. Open vSwitch drops
a bundle that was left alone for `other_config:bundle-idle-timeout` seconds (10 by default), so one that waits longer
than `REFILL_AFTER` is filled anew by `refresh`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from controllers.channel import RuleChange
from controllers.ofp.flows import add_rule, delete_everything, delete_rule
from controllers.ofp.switch import Arrival, Inbox, Switch, SwitchError
from controllers.tables import Table

REFILL_AFTER = 4.0
"""Seconds after which a waiting bundle is filled anew: under half of the switch's default patience."""

Modifications = Callable[[Any], Sequence[Any]]
"""Makes the flow modifications of a bundle for a datapath. Fresh ones at each call: a message is sent once."""


def replacing(table: Table) -> Modifications:
    """Empty the switch, then add a table."""
    return lambda datapath: [delete_everything(datapath), *(add_rule(datapath, rule) for rule in table)]


def changing(change: RuleChange) -> Modifications:
    """Delete some rules, then add others."""
    return lambda datapath: [
        *(delete_rule(datapath, rule) for rule in change.delete),
        *(add_rule(datapath, rule) for rule in change.add),
    ]


class Bundle:
    """One bundle at one switch. Call begin_fill, end_fill, then begin_commit, end_commit; or discard.

    `begin` sends and `end` waits, so that many switches can be sent to before the first is waited for. Every method
    raises SwitchError.
    """

    def __init__(self, switch: Switch, modifications: Modifications) -> None:
        self.switch = switch
        self._modifications = modifications
        self._filled_ns = 0
        self._id = 0
        self._commit = b""
        self._inbox: Inbox | None = None

    # -- filling ------------------------------------------------------------------------------------------------------

    def begin_fill(self) -> None:
        """Send OPEN, the modifications and CLOSE; encode the COMMIT and a barrier behind it for later."""
        switch, datapath = self.switch, self.switch.datapath
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        self._id = next(switch.bundle_ids)
        flags = ofproto.OFPBF_ATOMIC | ofproto.OFPBF_ORDERED
        adds = [parser.OFPBundleAddMsg(datapath, self._id, flags, each, []) for each in self._modifications(datapath)]
        content = [self._control(ofproto.OFPBCT_OPEN_REQUEST), *adds, self._control(ofproto.OFPBCT_CLOSE_REQUEST)]
        data, xids = switch.encode(content)
        commit = [self._control(ofproto.OFPBCT_COMMIT_REQUEST), parser.OFPBarrierRequest(datapath)]
        self._commit, commit_xids = switch.encode(commit)
        self._inbox = switch.inbox([*xids, *commit_xids])
        self._filled_ns = switch.send(data)

    def end_fill(self, deadline_ns: int) -> None:
        """Wait until the switch has accepted and closed the bundle."""
        self._await_control(self.switch.datapath.ofproto.OFPBCT_CLOSE_REPLY, deadline_ns, "close of a bundle")

    @property
    def stale(self) -> bool:
        """True if the switch may soon lose patience."""
        return time.monotonic_ns() - self._filled_ns > REFILL_AFTER * 1e9

    # -- ending -------------------------------------------------------------------------------------------------------

    def begin_commit(self) -> int:
        """Send COMMIT and a barrier; returns when (ns)."""
        return self.switch.send_at_once(self._commit)

    def end_commit(self, deadline_ns: int) -> int:
        """Wait for the replies; returns when the barrier's came (ns)."""
        inbox, datapath = self._open_inbox(), self.switch.datapath
        self._await_control(datapath.ofproto.OFPBCT_COMMIT_REPLY, deadline_ns, "commit of a bundle")
        arrival = inbox.take(deadline_ns, "barrier reply after a commit")
        self.close()
        return arrival.at_ns

    def discard(self) -> None:
        """Have the switch drop the bundle, if it still has it. Neither waits nor raises: there is nothing to save."""
        if self._inbox is not None:
            self.close()
            data, xids = self.switch.encode([self._control(self.switch.datapath.ofproto.OFPBCT_DISCARD_REQUEST)])
            with contextlib.suppress(SwitchError):
                self.switch.send(data, ignore=xids)

    def close(self) -> None:
        """Stop listening for the switch's replies."""
        if self._inbox is not None:
            self._inbox.close()
            self._inbox = None

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _control(self, kind: int) -> Any:  # noqa: ANN401
        datapath = self.switch.datapath
        flags = datapath.ofproto.OFPBF_ATOMIC | datapath.ofproto.OFPBF_ORDERED
        return datapath.ofproto_parser.OFPBundleCtrlMsg(datapath, self._id, kind, flags, [])

    def _open_inbox(self) -> Inbox:
        if self._inbox is None:
            raise SwitchError(self.switch.dpid, "a bundle was used that is not filled")
        return self._inbox

    def _await_control(self, kind: int, deadline_ns: int, what: str) -> Arrival:
        inbox = self._open_inbox()
        while True:
            arrival = inbox.take(deadline_ns, what)
            if getattr(arrival.message, "type", None) == kind:
                return arrival


def fill(bundles: Iterable[Bundle], deadline_ns: int) -> None:
    """Fill bundles of many switches side by side. Raises SwitchError for the first that fails."""
    bundles = list(bundles)
    for bundle in bundles:
        bundle.begin_fill()
    for bundle in bundles:
        bundle.end_fill(deadline_ns)


def refresh(bundles: Iterable[Bundle], deadline_ns: int) -> None:
    """Fill anew those that have waited long."""
    stale = [bundle for bundle in bundles if bundle.stale]
    for bundle in stale:
        bundle.discard()
    fill(stale, deadline_ns)
