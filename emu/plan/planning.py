"""Choosing the one scale for everything that a scenario compares, or checking the one that it asks for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from emu.errors import InputError
from emu.measurement import Capacity
from emu.plan.limits import GOOD_MESSAGE, STEP_SHARE, Limit, charged_shares, frames, small
from emu.plan.outline import Plan, seconds
from emu.plan.rates import HEADROOM, clean_tdf, clean_tdf_below, fastest_nic, nominal_capacity, own_beta
from emu.plan.situation import Situation
from emu.plan.work import bucket_floor, work_of
from emu.scale import Scale
from emu.scenario.build import BuiltFabric
from emu.scenario.schema import Scale as GivenScale
from emu.scenario.schema import Scenario
from emu.units import format_duration, format_rate

FEWEST_BUCKETS = 2
"""Layer gradients are merged into no fewer collectives, so that there still are some, one after the other. Each more
costs its dependent steps, and on a busy machine of two processors a step was seen to take 11 ms."""
WISH_SHARE = 0.5
"""Of the budget: up to here a scenario may be made longer, so that its messages are measured better than need be."""


def plan(scenario: Scenario, built: Sequence[BuiltFabric], capacities: Sequence[Capacity], seed: int) -> Plan:
    """The scale of a scenario, its merged buckets, and the wall time to expect.

    built: the scenario's fabrics, as `build_fabrics` makes them.
    capacities: of as many fabrics as were calibrated, found by name; nominal ones stand in for the others.
    seed: of random rank orders.

    `scale: auto` takes the largest sigma that every limit allows, and then the most buckets that still fit. A scale
    that the scenario gives is taken as it is, and what speaks against it is noted.
    Raises InputError for a workload that can never end, for links too slow to emulate, and, whoever chose the scale,
    if the scenario would take longer than its budget; then with the limit that stands against a shorter run.
    """
    floor = bucket_floor(scenario, FEWEST_BUCKETS)
    works = tuple(work_of(scenario, one, seed, floor) for one in built)
    known = {capacity.fabric: capacity for capacity in capacities}
    found = tuple(known.get(work.name) or nominal_capacity(work.built.fabric) for work in works)
    situation = Situation(scenario, works, found, floor, nominal=any(work.name not in known for work in works))
    asked = scenario.emulation.scale
    return _automatic(situation) if asked == "auto" else _given(situation, asked)


def _automatic(situation: Situation) -> Plan:
    beta, carried = _beta(situation)
    situation.check_rates(beta, "scale")
    hard = situation.limits(beta, situation.floor)
    least = _least_tdf(situation, beta, hard)
    tdf = _with_wishes(situation, beta, least)
    return _plan(situation, Scale(beta / tdf, beta), (carried, *_why(situation, hard, tdf, beta)))


def _given(situation: Situation, asked: GivenScale) -> Plan:
    scale, key = Scale(asked.sigma, asked.beta), ("emulation", "scale")
    situation.check_rates(scale.beta, "scale", "beta")
    total, budget = situation.total(scale), situation.scenario.emulation.budget
    if total > budget:
        problem = (
            f"the scenario takes about {seconds(total)} with it, more than its budget of {format_duration(budget)}"
        )
        hint = f"write emulation.budget: {_enough(total)}, or raise sigma"
        raise situation.scenario.error(key, problem, hint=hint)
    limits = situation.limits(scale.beta, situation.buckets(scale))
    missed = [_asks(limit) for limit in limits if limit.over(scale.tdf)]
    return _plan(situation, scale, ("the scenario gives the scale",), (*_overloads(situation, scale), *missed))


# -- the choice -------------------------------------------------------------------------------------------------------


def _beta(situation: Situation) -> tuple[float, str]:
    """beta, and why that one."""
    fabrics = [work.built.fabric for work in situation.works]
    beta, slowest, capacity = own_beta(tuple(zip(fabrics, situation.capacities, strict=True)))
    return beta, (
        f"beta {beta:g}: {slowest.name} carries {format_rate(capacity.host_rate)} per NIC with all hosts sending; "
        f"{HEADROOM:.0%} of that, down to a round number, is {format_rate(fastest_nic(slowest) / beta)}"
    )


def _least_tdf(situation: Situation, beta: float, hard: Sequence[Limit]) -> int:
    """The smallest TDF that every limit allows, round if the budget has room for that. Raises InputError."""
    least = hard[0].tdf if hard else 1.0
    if not least <= beta:
        problem = f"sigma would be {beta / least:.2g}, below 1"
        raise _refusal(situation, hard, problem, "")
    for tdf in (clean_tdf(least), math.ceil(least * (1 - 1e-9))):
        total = situation.total(Scale(beta / max(1, tdf), beta))
        if tdf <= beta and total <= situation.scenario.emulation.budget:
            return max(1, tdf)
    budget = format_duration(situation.scenario.emulation.budget)
    problem = f"it takes about {seconds(total)}, more than the budget of {budget}"
    raise _refusal(situation, hard, problem, f"write emulation.budget: {_enough(total)}, or ")


def _refusal(situation: Situation, hard: Sequence[Limit], problem: str, way_out: str) -> InputError:
    against, advice = "", "run fewer fabrics or repeats"
    if hard and hard[0].tdf > 1:
        against, advice = f", and {_asks(hard[0])}", hard[0].advice
    key = ("emulation", "budget")
    return situation.scenario.error(key, f"no scale fits: {problem}{against}", hint=f"{way_out}{advice}")


def _with_wishes(situation: Situation, beta: float, least: int) -> int:
    """`least`, or a larger TDF by which more is measured well and the scenario still is short."""
    asked = {clean_tdf(wish.tdf) for wish in situation.wishes(beta)}
    room = WISH_SHARE * situation.scenario.emulation.budget
    return max([least, *(tdf for tdf in asked if tdf <= beta and situation.total(Scale(beta / tdf, beta)) <= room)])


def _why(situation: Situation, hard: Sequence[Limit], tdf: int, beta: float) -> Iterator[str]:
    """The limits without which the next smaller TDF would do; for people, so the strictest three."""
    below = clean_tdf_below(tdf - 0.5)
    binding = [limit for limit in hard if limit.over(below)]
    wished = [wish for wish in situation.wishes(beta) if wish.over(below) and not wish.over(tdf)]
    if tdf == 1 or not (binding or wished):
        yield f"TDF {tdf}: nothing asks for more, and time never runs faster than real"
    elif binding:
        yield from (f"TDF {tdf}: {_asks(limit)}" for limit in binding[:3])
    else:
        yield f"TDF {tdf}: there is time for more than it takes: {_asks(wished[0])}"


def _asks(limit: Limit) -> str:
    return f"{limit.text} (a TDF of at least {limit.tdf:.4g})"


# -- what is said -----------------------------------------------------------------------------------------------------


def _plan(situation: Situation, scale: Scale, binding: tuple[str, ...], notes: tuple[str, ...] = ()) -> Plan:
    buckets = situation.buckets(scale)
    return Plan(
        scale=scale,
        buckets=buckets,
        rate=max(fastest_nic(work.built.fabric) for work in situation.works) / scale.beta,
        estimates=situation.estimates(scale),
        budget=situation.scenario.emulation.budget,
        binding=binding,
        merged=_merged(situation, buckets),
        nominal=situation.nominal,
        notes=tuple(dict.fromkeys((*notes, *_notes(situation, scale, buckets)))),
    )


def _merged(situation: Situation, buckets: int | None) -> str:
    if buckets is None:
        return ""
    counts = {item.name: item.buckets[0] for item in situation.works[0].items if item.buckets}
    return "; ".join(
        f"{name}: {count} layer buckets into {buckets}" for name, count in counts.items() if count > buckets
    )


def _notes(situation: Situation, scale: Scale, buckets: int | None) -> Iterator[str]:
    tiny = {name for work, terms in situation.terms(scale.beta, buckets) for name in small(work, terms)}
    if tiny:
        yield f"{_listed(tiny)}: too small to be measured at any scale; expect charged or inflated times"
    missed = {wish.subject for wish in situation.step_wishes(scale.beta) if wish.over(scale.tdf)} - tiny
    if missed:
        yield f"{_listed(missed)}: dependent steps cost over {STEP_SHARE:.0%} of the ideal; expect higher ratios"
    yield from _message_notes(situation, scale, tiny)


def _message_notes(situation: Situation, scale: Scale, tiny: set[str]) -> Iterator[str]:
    mtu = situation.scenario.emulation.mtu
    every = {item.name: frames(item, scale.sigma, mtu) for work in situation.works for item in work.items}
    short = {name: length for name, length in every.items() if length < GOOD_MESSAGE and name not in tiny}
    if short:
        least = f"of {min(short.values()):.3g} full frames and more"
        yield f"{_listed(set(short))}: messages {least}; under {GOOD_MESSAGE}, TCP's start shows in the times"
    for work in situation.works if situation.smallest_sent else ():
        for phase, share in charged_shares(work, scale.sigma, mtu).items():
            if share > STEP_SHARE:
                yield f"{phase}: {share:.0%} of its bytes are in messages too small to send, and are charged"


def _overloads(situation: Situation, scale: Scale) -> Iterator[str]:
    for work, capacity in zip(situation.works, situation.capacities, strict=True):
        rate, carried = fastest_nic(work.built.fabric) / scale.beta, format_rate(capacity.host_rate)
        if rate > capacity.host_rate:
            yield f"{work.name}: NICs at {format_rate(rate)} cannot work: with all hosts sending they reach {carried}"
        elif rate > HEADROOM * capacity.host_rate * (1 + 1e-9):
            yield f"{work.name}: NICs at {format_rate(rate)} are over {HEADROOM:.0%} of the {carried} that they reach"


def _listed(names: set[str], most: int = 3) -> str:
    ordered = sorted(names)
    rest = f" and {len(ordered) - most} more" if len(ordered) > most else ""
    return ", ".join(ordered[:most]) + rest


def _enough(total: float) -> str:
    """A budget that is enough, as a scenario writes it."""
    return f"{math.ceil(total / 10) * 10}s"
