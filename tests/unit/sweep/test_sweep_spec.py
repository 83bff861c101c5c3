"""`sweep:` in a scenario: values, ranges, keys, and what is refused with its line."""

from __future__ import annotations

import pytest

from emu.errors import InputError
from emu.model.predicting import predict_scenario
from emu.scenario import Scenario, load_text
from emu.sweep.points import points

SCENARIO = """\
name: example
seed: 5
fabrics:
  - {kind: fat-tree, k: 4, rate: 100Gbps}
  - name: optical
    kind: hybrid
    rate: 100Gbps
    reconfiguration: 10ms
    circuits: {o0: [t0-t1, t1-t2, t2-t3, t3-t0]}
    schedule: [{at: 10ms, circuits: {o0: [t0-t1, t0-t2, t1-t3]}}]
workload:
  kind: collectives
  steps:
    - {name: ring, phase: training, collective: all-reduce, algorithm: ring, size: 64MiB}
"""


def sweep(text: str) -> Scenario:
    return load_text(f"{SCENARIO}sweep: {text}\n")


def refused(text: str) -> InputError:
    with pytest.raises(InputError) as caught:
        points(sweep(text), "model")
    return caught.value


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ("[10us, 1ms]", ("10us", "1ms")),
        ("{from: 10us, to: 1s, factor: 10}", ("10us", "100us", "1ms", "10ms", "100ms", "1s")),
        ("{from: 1ms, to: 2.5ms, step: 500us}", ("1ms", "1.5ms", "2ms", "2.5ms")),
    ],
)
def test_values_of_a_duration(values: str, wanted: tuple[str, ...]) -> None:
    spec = sweep(f"{{parameters: {{fabrics.optical.reconfiguration: {values}}}}}").sweep
    assert spec is not None
    assert spec.parameters == {"fabrics.optical.reconfiguration": wanted}


@pytest.mark.parametrize(
    ("key", "values", "wanted"),
    [
        ("workload.steps.ring.size", "{from: 16MiB, to: 64MiB, factor: 2}", ("16MiB", "32MiB", "64MiB")),
        ("fabrics.*.rate", "{from: 100Gbps, to: 400Gbps, step: 100Gbps}", ("100Gbps", "200Gbps", "300Gbps", "400Gbps")),
        ("fabrics[0].k", "{from: 4, to: 8, step: 2}", (4, 6, 8)),
        ("transport.initcwnd", "{from: 1, to: 100, factor: 10}", (1, 10, 100)),
    ],
)
def test_ranges_of_other_kinds(key: str, values: str, wanted: tuple[object, ...]) -> None:
    spec = sweep(f"{{parameters: {{'{key}': {values}}}}}").sweep
    assert spec is not None
    assert spec.parameters[key] == wanted
    assert len(points(sweep(f"{{parameters: {{'{key}': {values}}}}}"), "model")) == len(wanted)


def test_every_combination_is_a_point_with_every_seed() -> None:
    found = points(
        sweep(
            "{parameters: {fabrics.optical.reconfiguration: [1ms, 2ms], 'workload.steps[0].size': [1MiB, 2MiB]}, "
            "seeds: {from: 1, to: 3, step: 1}}"
        ),
        "model",
    )
    assert [(*point.values.values(), point.seed) for point in found[:4]] == [
        ("1ms", "1MiB", 1),
        ("1ms", "1MiB", 2),
        ("1ms", "1MiB", 3),
        ("1ms", "2MiB", 1),
    ]
    assert len(found) == len({point.scenario.hash for point in found}) == 12
    last = found[-1]
    assert last.title == "reconfiguration=2ms, size=2MiB, seed 3"
    assert last.scenario.fabrics[1].reconfiguration == 0.002
    assert (last.scenario.seed, last.scenario.engine, last.scenario.sweep) == (3, "model", None)


def test_without_seeds_the_scenario_s_own_holds() -> None:
    (point,) = points(sweep("{parameters: {'fabrics[0].k': [6]}}"), "packet")
    assert (point.seed, point.scenario.engine) == (5, "packet")


def test_a_star_means_all_entries() -> None:
    (point,) = points(sweep("{parameters: {'fabrics.*.rate': [200Gbps]}}"), "model")
    assert [fabric.parameters["rate"] for fabric in point.scenario.fabrics] == [200_000_000_000] * 2


def test_a_sweep_survives_its_own_json() -> None:
    scenario = sweep("{parameters: {'fabrics[0].k': {from: 4, to: 8, step: 2}}, seeds: [1, 2]}")
    assert Scenario.from_json(scenario.to_json()) == scenario


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "{parameters: {fabrics.optcal.reconfiguration: [1ms]}}",
            "fabrics has no entry 'optcal'; did you mean 'optical'",
        ),
        (
            "{parameters: {fabrics.optical.reconfigure: [1ms]}}",
            "has no key 'reconfigure'; did you mean 'reconfiguration'",
        ),
        ("{parameters: {'fabrics[7].k': [4]}}", "fabrics has no entry 7; it has 2, counted from 0"),
        ("{parameters: {fabrics.optical.reconfiguration: [1m]}}", "1m: "),
        ("{parameters: {'fabrics[0].k': [4, 4]}}", "names a value twice"),
        ("{parameters: {'fabrics[0].k': []}}", "is no list of values"),
        ("{parameters: {'fabrics[0].k': {from: 4, to: 8}}}", "needs from, to, and one of factor and step"),
        ("{parameters: {'fabrics[0].k': {from: 8, to: 4, step: 1}}}", "to must not be smaller than from"),
        ("{parameters: {'fabrics[0].k': {from: 1, to: 4, step: 0}}}", "step must be above 0"),
        ("{parameters: {x: {from: 1ms, to: 4, step: 1ms}}}", "needs a unit"),
        ("{parameters: {x: {from: 1ms, to: 4MiB, step: 1ms}}}", "is no number of the kind that from is"),
        ("{parameters: {x: {from: 1B, to: 8B, factor: 1.5}}}", "which is not whole"),
        ("{parameters: {seed: [1, 2]}}", "seed cannot be swept; name seeds in sweep"),
        ("{parameters: {x..y: [1]}}", "is no dotted key"),
        ("{parameters: {emulation.scale.beta: [1]}}", "emulation.scale has no keys below it"),
        ("{parameters: {}}", "must have at least 1 entry"),
        ("{parameters: {'fabrics[0].k': [4]}, seeds: [a]}", "seeds are whole numbers"),
        ("{parameters: {x: {from: 1, to: 900, step: 1}, y: {from: 1, to: 900, step: 1}}}", "give 810000 points"),
    ],
)
def test_mistakes_are_named_with_their_line(text: str, words: str) -> None:
    error = refused(text)
    assert words in str(error)
    assert error.line == SCENARIO.count("\n") + 1


def test_a_point_that_the_schema_refuses_is_named_with_its_value() -> None:
    error = refused("{parameters: {emulation.mtu: [9000, 100]}}")
    assert "sweep.parameters.emulation.mtu: 100: must be at least 576" in str(error)


def test_a_scenario_without_a_sweep_has_no_points() -> None:
    with pytest.raises(InputError, match="this scenario has no sweep"):
        points(load_text(SCENARIO), "model")


def test_where_one_run_is_asked_for_a_sweep_is_refused() -> None:
    with pytest.raises(InputError, match="a sweep of 2 points; run it by emu sweep"):
        predict_scenario(sweep("{parameters: {'fabrics[0].k': [4, 6]}}"), write=False)
