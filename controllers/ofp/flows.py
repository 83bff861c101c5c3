"""Rules as OpenFlow 1.4 messages, and flow entries as rules.

Messages are built for a datapath of the library, which has no types: `Any` here means one of its objects.
"""

from __future__ import annotations

import ipaddress
from typing import Any

from controllers.channel import FlowCount
from controllers.tables import INNER_PORTS, Rule, address_number

_IPV4 = 0x0800
_ALL_ONES = 0xFFFFFFFF
_MAX_PRIORITY = 0xFFFF
_NO_PORT = 0
_ENTRY, _ALL_16_BITS = "in_port_nxm", 15
"""Nicira's field for the port of entry, which can be loaded; and how its extension writes "bits 0 to 15"."""
_MAX_PORT = 0xFFFFFF00  # OFPP_MAX: numbers above it are reserved ports such as FLOOD and CONTROLLER


def check_rule(rule: Rule) -> None:
    """Raise ValueError for a rule that no switch can hold, or that means more than sending to one port."""
    if (rule.destination is None) == (rule.in_port is None):
        raise ValueError(f"{rule}: exactly one of destination and in_port must be set")
    if not 0 <= rule.priority <= _MAX_PRIORITY:
        raise ValueError(f"{rule}: priorities are 0 to {_MAX_PRIORITY}")
    for port in (rule.out_port, rule.in_port):
        if port is not None and not 1 <= port <= _MAX_PORT:
            raise ValueError(f"{rule}: there is no port {port}")
    if rule.destination is not None:
        if not (0 <= rule.mask <= _ALL_ONES and 0 <= rule.destination <= _ALL_ONES):
            raise ValueError(f"{rule}: destination and mask are 32 bits")
        if rule.destination & ~rule.mask:
            raise ValueError(f"{rule}: the destination has bits outside its mask, so nothing would match")


def add_rule(datapath: Any, rule: Rule) -> Any:  # noqa: ANN401
    """The message that adds a rule, or replaces the one of the same match and priority."""
    parser, ofproto = datapath.ofproto_parser, datapath.ofproto
    actions = [parser.OFPActionOutput(rule.out_port)]
    if rule.hairpin:  # a switch drops what would leave by its port of entry, unless it forgets which that was
        actions.insert(0, parser.NXActionRegLoad(_ALL_16_BITS, _ENTRY, _NO_PORT))
    instructions = [parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, actions)]
    return _flow_mod(datapath, rule, ofproto.OFPFC_ADD, instructions)


def delete_rule(datapath: Any, rule: Rule) -> Any:  # noqa: ANN401
    """The message that deletes the entry of this match and priority, if there is one."""
    return _flow_mod(datapath, rule, datapath.ofproto.OFPFC_DELETE_STRICT, [])


def delete_everything(datapath: Any) -> Any:  # noqa: ANN401
    """The message that empties every table of a switch."""
    ofproto = datapath.ofproto
    return datapath.ofproto_parser.OFPFlowMod(
        datapath,
        command=ofproto.OFPFC_DELETE,
        table_id=ofproto.OFPTT_ALL,
        out_port=ofproto.OFPP_ANY,
        out_group=ofproto.OFPG_ANY,
    )


def request_flows(datapath: Any) -> Any:  # noqa: ANN401
    """The message that asks for every entry of every table."""
    ofproto, parser = datapath.ofproto, datapath.ofproto_parser
    return parser.OFPFlowStatsRequest(datapath, 0, ofproto.OFPTT_ALL, ofproto.OFPP_ANY, ofproto.OFPG_ANY)


def read_entry(entry: Any) -> FlowCount | str:  # noqa: ANN401
    """A flow entry as a rule with its counters, or its description if it is not of a Rule's shape."""
    output, hairpin = _only_output(entry)
    match = dict(entry.match.items())
    ethernet = match.pop("eth_type", None)
    port, destination = match.pop("in_port", None), match.pop("ipv4_dst", None)
    inner = port is not None and port >= INNER_PORTS
    circuit = port is not None and ethernet == (_IPV4 if inner else None) and destination is None and not hairpin
    route = port is None and ethernet == _IPV4
    if output is None or match or entry.table_id != 0 or not (circuit or route):
        return f"table {entry.table_id}, priority {entry.priority}, {entry.match}, {entry.instructions}"
    if circuit:
        rule = Rule(entry.priority, output, in_port=port)
    else:
        address, mask = _address_and_mask(destination)
        rule = Rule(entry.priority, output, destination=address, mask=mask, hairpin=hairpin)
    return FlowCount(rule, entry.packet_count, entry.byte_count)


def _match(datapath: Any, rule: Rule) -> Any:  # noqa: ANN401
    parser = datapath.ofproto_parser
    if rule.in_port is not None:
        # Behind a queue only traffic goes on, not what opens the queue.
        kind = {"eth_type": _IPV4} if rule.in_port >= INNER_PORTS else {}
        return parser.OFPMatch(in_port=rule.in_port, **kind)
    if rule.mask == 0:  # a wildcarded field is left out, not masked with zero
        return parser.OFPMatch(eth_type=_IPV4)
    address, mask = ipaddress.IPv4Address(rule.destination or 0), ipaddress.IPv4Address(rule.mask)
    return parser.OFPMatch(eth_type=_IPV4, ipv4_dst=(str(address), str(mask)))


def _flow_mod(datapath: Any, rule: Rule, command: int, instructions: list[Any]) -> Any:  # noqa: ANN401
    ofproto = datapath.ofproto
    return datapath.ofproto_parser.OFPFlowMod(
        datapath,
        command=command,
        priority=rule.priority,
        match=_match(datapath, rule),
        instructions=instructions,
        out_port=ofproto.OFPP_ANY,
        out_group=ofproto.OFPG_ANY,
    )


def _only_output(entry: Any) -> tuple[int | None, bool]:  # noqa: ANN401
    """The one port that an entry sends to, None if it does anything else; and whether it forgets that of entry."""
    if len(entry.instructions) != 1:
        return None, False
    actions = list(getattr(entry.instructions[0], "actions", []))
    hairpin = len(actions) == 2 and getattr(actions[0], "dst", "") == _ENTRY and actions[0].value == _NO_PORT
    port = getattr(actions[-1], "port", None) if len(actions) == 1 + hairpin else None
    return (port if isinstance(port, int) and port <= _MAX_PORT else None), hairpin


def _address_and_mask(destination: str | tuple[str, str] | None) -> tuple[int, int]:
    """The library gives an exact address as text, a masked one as a pair; no address at all is 0.0.0.0/0."""
    if destination is None:
        return 0, 0
    if isinstance(destination, str):
        return address_number(destination), _ALL_ONES
    address, mask = destination
    return address_number(address), address_number(mask)
