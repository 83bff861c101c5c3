"""Each rule: a good measurement is VALID, and each spoil is found and named."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest

from emu.measurement import CircuitChange, CrossCheck, DataPlane, Finding, Measurement
from emu.model.ideal import Prediction
from emu.records import CollectiveRecord, FailureRecord, FlowRecord
from emu.verdict import Level, Verdict, judge
from tests.unit.results.synthetic import COLLECTIVES, FLOWS, MIB, fabric_outcome

Spoil = Callable[[Measurement], None]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scenario")


@pytest.fixture
def spoiled(folder: Path) -> Callable[..., Verdict]:
    """The verdict on a good measurement after a spoil."""

    def spoiled(spoil: Spoil, *, flows: bool = False, number: int = 0) -> Verdict:
        outcome = fabric_outcome(folder, FLOWS if flows else COLLECTIVES, number)
        assert outcome.verdict.level == "VALID", outcome.verdict
        spoil(outcome.measurement)
        return judge(outcome.measurement, outcome.prediction)

    return spoiled


def expect(verdict: Verdict, level: Level, place: str, *words: str) -> None:
    """The verdict's first reason has this level and place, and its text these words."""
    assert verdict.level == level, verdict
    first = verdict.reasons[0]
    assert (first.level, first.place) == (level, place), verdict
    for word in words:
        assert word in first.text


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("steps", [COLLECTIVES, FLOWS])
def test_a_good_measurement_is_valid(folder: Path, steps: tuple, number: int) -> None:
    assert fabric_outcome(folder, steps, number).verdict == Verdict("VALID", ())


# -- the lab ---------------------------------------------------------------------------------------------------------


def test_an_error_is_invalid_and_told(spoiled: Callable[..., Verdict]) -> None:
    def spoil(m: Measurement) -> None:
        m.error, m.repeats = "ovs-vswitchd died", []

    expect(spoiled(spoil), "INVALID", "lab", "ovs-vswitchd died")


def test_no_repeat_is_invalid(spoiled: Callable[..., Verdict]) -> None:
    expect(spoiled(lambda m: m.repeats.clear()), "INVALID", "run", "nothing was measured")


def test_a_partial_run_is_invalid(spoiled: Callable[..., Verdict]) -> None:
    def spoil(m: Measurement) -> None:
        m.partial, m.repeats[1].trace.complete = True, False
        m.repeats[1].trace.collectives.clear()

    verdict = spoiled(spoil)
    expect(verdict, "INVALID", "run", "partial")
    assert len(verdict.reasons) == 1


def test_a_workload_that_did_not_end_is_invalid(spoiled: Callable[..., Verdict]) -> None:
    def spoil(m: Measurement) -> None:
        m.repeats[1].trace.complete = False

    expect(spoiled(spoil), "INVALID", "repeat 2", "did not come to its end")


def test_failures_are_invalid_and_name_the_task(spoiled: Callable[..., Verdict]) -> None:
    def spoil(m: Measurement) -> None:
        m.repeats[0].trace.failures.append(FailureRecord("sweep#0/3", "h1 -> h2: no byte for 10 s", 0.2))
        m.repeats[0].trace.complete = False

    expect(spoiled(spoil), "INVALID", "sweep#0/3", "h1 -> h2: no byte")


@pytest.mark.parametrize(
    ("subject", "place"), [("rule", "t0"), ("shaper", "t0:1"), ("buffer", "ovs-vswitchd"), ("link", "e0p0:1")]
)
def test_every_finding_is_invalid_and_names_the_place(
    spoiled: Callable[..., Verdict], subject: str, place: str
) -> None:
    verdict = spoiled(lambda m: m.findings.append(Finding(subject, place, "is not what it was")))
    expect(verdict, "INVALID", place, subject, "is not what it was")


def set_rate(share: float) -> Spoil:
    def spoil(m: Measurement) -> None:
        m.calibration[5].measured = share * m.calibration[5].declared

    return spoil


@pytest.mark.parametrize(
    ("share", "level"),
    [
        (0.7, "INVALID"),
        (0.949, "INVALID"),
        (0.951, "DEGRADED"),
        (0.969, "DEGRADED"),
        (1.04, "DEGRADED"),
        (2, "INVALID"),
    ],
)
def test_a_link_of_another_rate_is_named(
    folder: Path, spoiled: Callable[..., Verdict], share: float, level: Level
) -> None:
    link = fabric_outcome(folder).measurement.calibration[5].link
    verdict = spoiled(set_rate(share))
    expect(verdict, level, link, "50 Mb/s were declared")
    assert len(verdict.reasons) == 1


@pytest.mark.parametrize("share", [0.97, 1.0, 1.03])
def test_a_link_close_to_its_rate_is_valid(spoiled: Callable[..., Verdict], share: float) -> None:
    assert spoiled(set_rate(share)).level == "VALID"


def test_a_shaper_of_another_rate_is_invalid_even_if_unmeasured(spoiled: Callable[..., Verdict]) -> None:
    def spoil(m: Measurement) -> None:
        m.calibration[2].configured, m.calibration[2].measured = 35_000_000, None

    verdict = spoiled(spoil)
    expect(verdict, "INVALID", verdict.reasons[0].place, "shaper says 35 Mb/s where 50 Mb/s")


def test_an_unshaped_unmeasured_link_is_no_reason(spoiled: Callable[..., Verdict]) -> None:
    def spoil(m: Measurement) -> None:
        m.calibration[2].configured = m.calibration[2].measured = None

    assert spoiled(spoil).level == "VALID"


@pytest.mark.parametrize(("own", "level"), [(90e6, "DEGRADED"), (110e6, "DEGRADED"), (80e6, "INVALID")])
def test_the_cross_check_names_both_rates(spoiled: Callable[..., Verdict], own: float, level: Level) -> None:
    def spoil(m: Measurement) -> None:
        m.cross_check = CrossCheck("h0", "h9", 100e6, own)

    expect(spoiled(spoil), level, "h0 -> h9", "iperf3 reached 100 Mb/s")


def test_a_cross_check_that_moved_nothing_is_invalid(spoiled: Callable[..., Verdict]) -> None:
    def spoil(m: Measurement) -> None:
        m.cross_check = CrossCheck("h0", "h9", 0.0, 0.0)

    expect(spoiled(spoil), "INVALID", "h0 -> h9")


# -- the machine -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("idle", "level"), [(0.25, "DEGRADED"), (0.0, "INVALID")])
def test_a_busy_machine_before_the_run_is_named(spoiled: Callable[..., Verdict], idle: float, level: Level) -> None:
    def spoil(m: Measurement) -> None:
        assert m.facts
        m.facts.idle_cpu_before = idle

    expect(spoiled(spoil), level, "machine", "processors were busy", f"{100 * idle:.0f} % idle")


@pytest.mark.parametrize(("idle", "level"), [(0.09, "DEGRADED"), (0.02, "INVALID")])
def test_a_busy_machine_during_the_run_is_named(spoiled: Callable[..., Verdict], idle: float, level: Level) -> None:
    def spoil(m: Measurement) -> None:
        m.repeats[1].health.idle_cpu = idle

    expect(spoiled(spoil), level, "repeat 2", "processors were busy", f"{100 * idle:.0f} % idle")


@pytest.mark.parametrize(("lag", "level"), [(0.006, "DEGRADED"), (0.021, "INVALID")])
def test_a_late_event_loop_is_named(spoiled: Callable[..., Verdict], lag: float, level: Level) -> None:
    def spoil(m: Measurement) -> None:
        m.repeats[0].health.lag_p99 = lag

    expect(spoiled(spoil), level, "repeat 1", "event loop", f"{1000 * lag:g} ms")


# -- drops and retransmits -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("buffer", "level"), [(212_992, "DEGRADED"), (131_072, "INVALID")])
def test_small_socket_buffers_are_named(spoiled: Callable[..., Verdict], buffer: int, level: Level) -> None:
    def spoil(m: Measurement) -> None:
        m.repeats[0].health.smallest_buffer = buffer

    expect(spoiled(spoil), level, "repeat 1", "AF_PACKET", "KiB")


def test_a_datapath_without_sockets_has_no_buffers_to_judge(spoiled: Callable[..., Verdict]) -> None:
    def spoil(m: Measurement) -> None:
        m.repeats[0].health.smallest_buffer = 0

    assert spoiled(spoil).level == "VALID"


@pytest.mark.parametrize(("drops", "level"), [(1, "DEGRADED"), (10_000, "INVALID")])
def test_drops_at_the_sockets_are_named_with_their_buffer(
    spoiled: Callable[..., Verdict], drops: int, level: Level
) -> None:
    def spoil(m: Measurement) -> None:
        m.repeats[0].health.receive_drops = drops

    expect(spoiled(spoil), level, "repeat 1", f"lost {drops}", "AF_PACKET", "128 MiB")


@pytest.mark.parametrize(("drops", "level"), [(1, "DEGRADED"), (9_000, "INVALID")])
def test_drops_where_the_switch_sends_name_the_link(
    folder: Path, spoiled: Callable[..., Verdict], drops: int, level: Level
) -> None:
    name = fabric_outcome(folder).measurement.repeats[0].links[9].link

    def spoil(m: Measurement) -> None:
        m.repeats[0].links[9].switch_drops = drops

    expect(spoiled(spoil), level, name, f"lost {drops} frames", "repeat 1")


def test_unexplained_retransmits_are_degraded(spoiled: Callable[..., Verdict]) -> None:
    def spoil(m: Measurement) -> None:
        m.repeats[0].health.retransmits = 5000

    expect(spoiled(spoil), "DEGRADED", "repeat 1", "5000 segments were sent again", "only 0 drops")


def test_explained_retransmits_are_valid(spoiled: Callable[..., Verdict]) -> None:
    def spoil(m: Measurement) -> None:
        m.repeats[0].health.retransmits = 5000
        m.repeats[0].health.dark_drops = 2000
        m.repeats[0].links[0].queue_drops = m.repeats[0].links[1].queue_drops = 1490

    assert spoiled(spoil).level == "VALID"


def test_twenty_unexplained_retransmits_are_a_tail(spoiled: Callable[..., Verdict]) -> None:
    def shrink(m: Measurement) -> None:
        m.repeats[0].trace.flows = m.repeats[0].trace.flows[:1]  # so that 0.5 % of the segments is below 20
        m.repeats[0].health.retransmits = 20

    def more(m: Measurement) -> None:
        shrink(m)
        m.repeats[0].health.retransmits = 21

    assert spoiled(shrink).level == "VALID"
    assert spoiled(more).level == "DEGRADED"


def test_late_connections_are_degraded(spoiled: Callable[..., Verdict]) -> None:
    def spoil(m: Measurement) -> None:
        m.repeats[0].health.late_connections = 4

    expect(spoiled(spoil), "DEGRADED", "repeat 1", "4 connections")


# -- paths -----------------------------------------------------------------------------------------------------------


def move_flow(m: Measurement, size: int) -> tuple[str, str]:
    """Take `size` payload bytes off a used link and put them on one that should carry nothing; both names."""
    links = m.repeats[0].links
    used = next(link for link in links if link.expected_bytes >= size)
    unused = next(link for link in links if link.expected_bytes == 0)
    frames = size // 8948
    for link, sign in ((used, -1), (unused, 1)):
        link.bytes += sign * (size + 66 * frames)
        link.packets += sign * frames
    return used.link, unused.link


def test_a_flow_on_a_wrong_path_names_both_links(spoiled: Callable[..., Verdict]) -> None:
    names: list[str] = []
    verdict = spoiled(lambda m: names.extend(move_flow(m, 2 * MIB)))
    assert verdict.level == "INVALID"
    assert {reason.place for reason in verdict.reasons} == set(names)
    unused = next(reason for reason in verdict.reasons if reason.place == names[1])
    assert "wrong path" in unused.text
    assert "2 MiB of payload where 0 B were expected" in unused.text


def test_acknowledgements_on_an_unused_link_are_no_traffic(spoiled: Callable[..., Verdict]) -> None:
    def spoil(m: Measurement) -> None:
        link = next(link for link in m.repeats[0].links if link.expected_bytes == 0)
        link.packets += 100_000
        link.bytes += 66 * 100_000

    assert spoiled(spoil).level == "VALID"


def test_retransmitted_bytes_are_allowed_where_traffic_goes(spoiled: Callable[..., Verdict]) -> None:
    def carry_more(m: Measurement) -> None:
        link = max(m.repeats[0].links, key=lambda link: link.expected_bytes)
        link.bytes += round(0.08 * link.expected_bytes)

    def retransmit(m: Measurement) -> None:
        carry_more(m)
        m.repeats[0].health.retransmits = m.repeats[0].health.dark_drops = 1000

    assert spoiled(carry_more).level == "INVALID"
    assert spoiled(retransmit).level == "VALID"


def test_charged_bytes_never_reach_a_link(spoiled: Callable[..., Verdict]) -> None:
    def spoil(m: Measurement) -> None:
        used = next(link for link in m.repeats[0].links if link.expected_bytes > 0)
        missing = used.expected_bytes / 2
        used.bytes -= round(missing)
        m.repeats[0].trace.flows.append(
            FlowRecord("x", "", "", "h0", "h1", round(missing * m.sigma), 0, 0, 0, how="charged")
        )

    assert spoiled(spoil).level == "VALID"


def test_a_partial_repeat_is_not_held_against_the_whole_workloads_bytes(spoiled: Callable[..., Verdict]) -> None:
    def spoil(m: Measurement) -> None:
        m.partial, m.repeats[0].trace.complete = True, False
        for link in m.repeats[0].links:
            link.bytes = link.packets = 0

    assert [reason.rule for reason in spoiled(spoil).reasons] == ["completeness"]


def test_a_change_under_traffic_shifts_a_few_bytes(spoiled: Callable[..., Verdict]) -> None:
    def shift(m: Measurement) -> None:
        move_flow(m, 600_000)  # over 1 % of the busiest link, under 10 %

    def change(m: Measurement) -> None:
        shift(m)
        m.repeats[0].changes[0] = CircuitChange(1, 0.02, 0.01, 0.02, 0.03, 0.0)

    assert spoiled(shift, number=1).level == "INVALID"
    assert spoiled(change, number=1).level == "VALID"


# -- times -----------------------------------------------------------------------------------------------------------


def stretch(name: str, factor: float) -> Spoil:
    """The named collective takes `factor` of its ideal in every repeat of a measurement that took 1.03, 1.04 of it."""

    def spoil(m: Measurement) -> None:
        for number, repeat in enumerate(m.repeats):
            row = next(row for row in repeat.trace.collectives if row.id == name)
            row.end = row.start + row.cct * factor / (1.03 + 0.01 * number)

    return spoil


@pytest.mark.parametrize(
    ("factor", "level"), [(1.2, "DEGRADED"), (0.96, "DEGRADED"), (1.4, "INVALID"), (0.9, "INVALID")]
)
def test_a_collective_off_its_ideal_is_named_with_both_times(
    folder: Path, spoiled: Callable[..., Verdict], factor: float, level: Level
) -> None:
    verdict = spoiled(stretch("gradients#1", factor))
    expect(verdict, level, "gradients#1", "81.34 ms are ideal", f"ratio {factor:.3f}")
    assert len(verdict.reasons) == 1


def test_of_several_repeats_the_median_counts(folder: Path) -> None:
    outcome = fabric_outcome(folder)
    outcome.measurement.repeats.append(copy.deepcopy(outcome.measurement.repeats[0]))
    row = outcome.measurement.repeats[0].trace.collectives[0]
    row.end = row.start + 3 * row.cct
    assert judge(outcome.measurement, outcome.prediction).level == "VALID"


def test_a_collective_that_is_missing_is_invalid(spoiled: Callable[..., Verdict]) -> None:
    def spoil(m: Measurement) -> None:
        for repeat in m.repeats:
            repeat.trace.collectives = [row for row in repeat.trace.collectives if row.id != "sweep#1"]

    expect(spoiled(spoil), "INVALID", "sweep#1", "was not measured")


def test_a_collective_that_nobody_predicted_is_invalid(spoiled: Callable[..., Verdict]) -> None:
    extra = CollectiveRecord("extra", "extra", "", "broadcast", "chain", 4, 1, 1, 0.0, 1.0)
    expect(spoiled(lambda m: m.repeats[0].trace.collectives.append(extra)), "INVALID", "extra")


@pytest.mark.parametrize(("factor", "level"), [(1.2, "DEGRADED"), (1.5, "INVALID")])
def test_a_run_of_flows_is_judged_by_phase_and_end(
    spoiled: Callable[..., Verdict], factor: float, level: Level
) -> None:
    def spoil(m: Measurement) -> None:
        for repeat in m.repeats:
            repeat.trace.phases["flows"].end *= factor / 1.035
            for row in repeat.trace.flows:
                row.end *= factor / 1.035

    verdict = spoiled(spoil, flows=True)
    assert verdict.level == level
    assert [reason.place for reason in verdict.reasons] == ["phase flows", "run"]


def test_charged_bytes_over_a_twentieth_of_a_phase_are_degraded(spoiled: Callable[..., Verdict]) -> None:
    def charge(share: float) -> Spoil:
        def spoil(m: Measurement) -> None:
            phase = m.repeats[1].trace.phases["sweep"]
            total = phase.packet_bytes
            phase.charged_bytes = round(total * share)
            phase.packet_bytes = total - phase.charged_bytes

        return spoil

    expect(spoiled(charge(0.06)), "DEGRADED", "sweep", "6 %", "charged")
    assert spoiled(charge(0.05)).level == "VALID"


# -- circuits --------------------------------------------------------------------------------------------------------


def test_a_late_change_is_degraded(spoiled: Callable[..., Verdict]) -> None:
    def late(wall: float) -> Spoil:
        def spoil(m: Measurement) -> None:
            m.repeats[0].changes[0].late_wall = wall

        return spoil

    # The dark time is 10 ms, 200 ms in the lab.
    expect(spoiled(late(0.021), number=1), "DEGRADED", "epoch 1, repeat 1", "21 ms late", "200 ms")
    assert spoiled(late(0.019), number=1).level == "VALID"
    # Later than its whole dark time: whatever was meant to happen in it happened elsewhere.
    expect(spoiled(late(0.3), number=1), "INVALID", "epoch 1, repeat 1", "300 ms late")


def test_a_dark_time_of_another_length_is_degraded(spoiled: Callable[..., Verdict]) -> None:
    def spoil(m: Measurement) -> None:
        m.repeats[1].changes[0].lit_at = m.repeats[1].changes[0].dark_at + 0.013

    expect(spoiled(spoil, number=1), "DEGRADED", "epoch 1, repeat 2", "dark for 13 ms", "10 ms were asked for")


def probed(*planes: DataPlane) -> Spoil:
    """The first repeat's change was probed, and this is what probes say. Asked were 10 ms, 200 ms in the lab."""

    def spoil(m: Measurement) -> None:
        m.repeats[0].changes[0].data_plane = list(planes)

    return spoil


@pytest.mark.parametrize(
    ("dark", "resolution", "level"),
    [
        (0.0124, 0.0, "VALID"),
        (0.0126, 0.0, "DEGRADED"),
        (0.0076, 0.0, "VALID"),
        (0.0074, 0.0, "DEGRADED"),
        (0.0126, 0.004, "VALID"),  # 0.2 ms of modelled time may be the probes' own
        (0.0140, 0.004, "DEGRADED"),
        (-0.001, 0.002, "DEGRADED"),
    ],
)
def test_the_data_planes_dark_time_is_held_against_the_asked_one(
    spoiled: Callable[..., Verdict], dark: float, resolution: float, level: Level
) -> None:
    verdict = spoiled(probed(DataPlane("o0", dark, resolution, 0.001, 0.002)), number=1)
    if level == "VALID":
        assert verdict.level == "VALID"
        return
    expect(verdict, level, "o0, epoch 1, repeat 1", "10 ms were asked for", "by probe frames")
    assert [reason.rule for reason in verdict.reasons] == ["data_plane_error"]


def test_one_ocs_of_several_is_named(spoiled: Callable[..., Verdict]) -> None:
    verdict = spoiled(probed(DataPlane("o0", 0.0101), DataPlane("o1", 0.02), DataPlane("o2")), number=1)
    assert [reason.place for reason in verdict.reasons] == ["o1, epoch 1, repeat 1"]


def test_a_circuit_that_did_not_do_what_it_should_is_invalid(spoiled: Callable[..., Verdict]) -> None:
    verdict = spoiled(probed(DataPlane("o0", problem="no probe passed the new circuit o0:1 -> o0:4")), number=1)
    expect(verdict, "INVALID", "o0, epoch 1, repeat 1", "o0:1 -> o0:4")


def test_what_was_not_measured_is_not_judged(spoiled: Callable[..., Verdict]) -> None:
    assert spoiled(probed(DataPlane("o0")), number=1).level == "VALID"


def test_an_aborted_change_is_invalid(spoiled: Callable[..., Verdict]) -> None:
    def spoil(m: Measurement) -> None:
        m.repeats[0].changes[0].outcome = "aborted: o0 did not answer"

    expect(spoiled(spoil, number=1), "INVALID", "epoch 1, repeat 1", "o0 did not answer")


# -- the verdict as a whole ------------------------------------------------------------------------------------------


def test_the_machine_comes_before_the_lab_and_the_lab_before_its_links(spoiled: Callable[..., Verdict]) -> None:
    def spoil(m: Measurement) -> None:
        stretch("gradients#0", 1.4)(m)
        set_rate(0.7)(m)
        m.findings.append(Finding("rule", "t0", "is not what it was"))
        m.repeats[0].health.smallest_buffer = 1 << 19
        m.repeats[0].health.idle_cpu = 0.05

    verdict = spoiled(spoil)
    assert verdict.level == "INVALID"
    assert [(reason.level, reason.rule) for reason in verdict.reasons] == [
        ("DEGRADED", "idle_during"),
        ("INVALID", "findings"),
        ("DEGRADED", "socket_buffer"),
        ("INVALID", "rate_ratio"),
        ("INVALID", "completion"),
    ]


def test_causes_come_before_effects_and_invalid_ones_before_degraded_ones(spoiled: Callable[..., Verdict]) -> None:
    def spoil(m: Measurement) -> None:
        stretch("gradients#0", 1.2)(m)
        stretch("gradients#1", 1.4)(m)
        m.repeats[0].health.idle_cpu = 0.01

    verdict = spoiled(spoil)
    assert [(reason.level, reason.rule) for reason in verdict.reasons] == [
        ("INVALID", "idle_during"),
        ("INVALID", "completion"),
        ("DEGRADED", "completion"),
    ]


def test_an_empty_measurement_is_judged_not_raised(folder: Path) -> None:
    prediction: Prediction = fabric_outcome(folder).prediction
    assert judge(Measurement("x", 1.0, 1.0), prediction).level == "INVALID"
