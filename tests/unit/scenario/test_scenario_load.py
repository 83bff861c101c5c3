"""Every mistake is refused with its line, its key and what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from emu.errors import InputError, dotted
from emu.scenario import Scenario, load
from emu.scenario.workload_spec import Collectives, CollectiveStep, ComputeStep, FlowList
from tests.unit.scenario.conftest import VALID, Spoil

MINIMAL = """\
fabrics: [{kind: fat-tree}]
workload:
  kind: collectives
  steps: [{name: one, collective: all-reduce, size: 1MiB}]
"""


def line_of(text: str) -> int:
    """The line of the valid scenario in which `text` first stands, from 1."""
    return VALID[: VALID.index(text)].count("\n") + 1


def test_everything_is_read_in_base_units(example: Scenario) -> None:
    assert (example.name, example.seed, example.repeat) == ("example", 7, 2)
    assert example.emulation.scale != "auto"
    assert example.emulation.scale.tdf == 20.0
    assert (example.emulation.budget, example.emulation.queue, example.emulation.mtu) == (90.0, 16 << 20, 1500)
    assert (example.transport.cc, example.transport.rto_min, example.transport.initcwnd) == ("reno", 0.002, 4)
    fat_tree, optical = example.fabrics
    assert (fat_tree.name, fat_tree.kind, optical.name, optical.kind) == ("fat-tree", "fat-tree", "optical", "hybrid")
    assert fat_tree.parameters["rate"] == 100_000_000_000
    assert fat_tree.parameters["delay"] == 1.5e-6
    assert optical.reconfiguration == 0.01
    assert optical.circuits == {"o0": ("t0-t1", "t1-t2", "t2-t3", "t3-t0")}
    assert [change.at for change in optical.schedule] == [0.7, 0.8]


def test_steps_are_read_in_base_units(example: Scenario) -> None:
    assert isinstance(example.workload, Collectives)
    gradients, pause, weights, sweep, sizes = example.workload.steps
    assert isinstance(pause, ComputeStep)
    assert pause.compute == 0.1
    assert isinstance(gradients, CollectiveStep)
    assert (gradients.size, gradients.buckets, gradients.ranks) == ("layer-gradients", 4, "all")
    assert isinstance(weights, CollectiveStep)
    assert (weights.at, weights.root, weights.after) == (0.75, 0, None)
    assert isinstance(sweep, CollectiveStep)
    assert sweep.sweep is not None
    assert sweep.sweep.sizes == (1 << 20, 4 << 20, 16 << 20)
    assert sweep.ranks == (0, 1, 2, 3, 4, 5, 6, 7, 12)
    assert (sweep.order, sweep.repeat, sweep.after) == ("random", 3, ("gradients", "pause"))
    assert isinstance(sizes, CollectiveStep)
    assert (sizes.size, sizes.ranks, sizes.after) == ((1 << 20, 3_000_000), (3, 1, 2), ("sweep",))


def test_defaults_are_the_documented_ones(write: Callable[[str], Path]) -> None:
    scenario = load(write(MINIMAL))
    assert (scenario.name, scenario.seed, scenario.repeat) == ("scenario", 1, 1)
    assert (scenario.engine, scenario.traffic) == ("packet", "flows")
    emulation = scenario.emulation
    assert (emulation.scale, emulation.budget, emulation.mtu, emulation.queue) == ("auto", 120.0, 9000, 16 << 20)
    assert (emulation.delay, emulation.datapath, emulation.small_messages) == ("strict", "auto", "charge")
    transport = scenario.transport
    assert (transport.cc, transport.rto_min, transport.slow_start_after_idle) == ("cubic", 0.004, False)
    assert transport.initcwnd == 10


SPOILED = [
    # place in the valid scenario, what stands there instead, key of the error, what its message says
    ("seed: 7", "sede: 7", "sede", "there is no such key; did you mean 'seed'?"),
    ("seed: 7", "seed: -1", "seed", "must be at least 0, not -1"),
    ("seed: 7", "seed: 9223372036854775808", "seed", "must be at most 9223372036854775807"),
    ("seed: 7", "seed: '7'", "seed", "must be a whole number, not '7'"),
    ("seed: 7", "seed: 7.5", "seed", "must be a whole number, not 7.5"),
    ("seed: 7", "seed: true", "seed", "must be a whole number, not true"),
    ("seed: 7", "seed:", "seed", "must be a whole number, not nothing"),
    ("repeat: 2", "repeat: 101", "repeat", "must be at most 100, not 101"),
    ("name: example", "name: My Run", "name", "'My Run' is not a name"),
    ("name: example", "name: ../../etc", "name", "is not a name"),
    ("engine: packet", "engine: packets", "engine", "not one of packet, model; did you mean 'packet'?"),
    ("traffic: flows", "traffic: iperf", "traffic", "'iperf' is not one of flows"),
    ("scale: {sigma: 400, beta: 8000}", "scale: fast", "emulation.scale", "write auto or {sigma: 400, beta: 8000}"),
    ("{sigma: 400, beta: 8000}", "{sigma: 400, beta: 399}", "emulation.scale.beta", "beta/sigma must be at least 1"),
    ("{sigma: 400, beta: 8000}", "{sigma: 0.5, beta: 8000}", "emulation.scale.sigma", "must be at least 1, not 0.5"),
    ("{sigma: 400, beta: 8000}", "{sigma: .nan, beta: 8000}", "emulation.scale.sigma", "must be a finite number"),
    ("{sigma: 400, beta: 8000}", "{sigma: 400, beta: .inf}", "emulation.scale.beta", "must be a finite number"),
    ("{sigma: 400, beta: 8000}", "{sigma: 400}", "emulation.scale.beta", "is required"),
    ("budget: 90s", "budget: 90", "emulation.budget", "90 needs a unit, e.g. 10ms"),
    ("budget: 90s", "budget: 0", "emulation.budget", "must be greater than 0"),
    ("mtu: 1500", "mtu: 9217", "emulation.mtu", "must be at most 9216, not 9217"),
    ("mtu: 1500", "mtu: 575", "emulation.mtu", "must be at least 576, not 575"),
    ("queue: 16MiB", "queue: 16Mib", "emulation.queue", "is in bits, and sizes are in bytes"),
    ("delay: best-effort", "delay: best_effort", "emulation.delay", "did you mean 'best-effort'?"),
    ("datapath: user", "datapath: netdev", "emulation.datapath", "not one of auto, kernel, user"),
    ("room: host", "room: vm", "emulation.room", "not one of auto, host"),
    ("cc: reno", "cc: dctcp", "transport.cc", "not one of cubic, reno, bbr"),
    ("rto_min: 2ms", "rto_min: -2ms", "transport.rto_min", "must not be negative"),
    ("slow_start_after_idle: true", "slow_start_after_idle: off", "transport.slow_start_after_idle", "true or false"),
    ("initcwnd: 4", "initcwnd: 0", "transport.initcwnd", "must be at least 1"),
    ("initcwnd: 4", "initcwd: 4", "transport.initcwd", "did you mean 'initcwnd'?"),
    ("kind: fat-tree", "kind: fattree", "fabrics[0].kind", "there is no fabric 'fattree'; did you mean 'fat-tree'?"),
    ("kind: fat-tree", "kind: [3]", "fabrics[0].kind", "there is no fabric [3]"),
    ("    k: 4", "    kk: 4", "fabrics[0].kk", "there is no such key; did you mean 'k'?"),
    ("    k: 4", "    k: 4Gbps", "fabrics[0].k", "must be a whole number"),
    ("    k: 4", "    pods: 4", "fabrics[0].pods", "there is no such key"),
    ("rate: 100Gbps", "rate: 100gbps", "fabrics[0].rate", "did you mean 100Gbps or 100GBps?"),
    ("rate: 100Gbps", "rate: 0", "fabrics[0].rate", "must be greater than 0"),
    ("delay: 1.5us", "delay: 1.5", "fabrics[0].delay", "1.5 needs a unit"),
    ("name: optical", "name: fat-tree", "fabrics[1].name", "another fabric is called 'fat-tree'"),
    ("reconfiguration: 10ms", "reconfigure: 10ms", "fabrics[1].reconfigure", "did you mean 'reconfiguration'?"),
    ("reconfiguration: 10ms", "reconfiguration: 0ms", "fabrics[1].reconfiguration", "must be greater than 0"),
    ("[t0-t1, t1-t2", "[7, t1-t2", "fabrics[1].circuits.o0[0]", "must be text, not 7"),
    ("circuits: {o0: [t0-t1", "circuits: {o0: t0-t1}\n#", "fabrics[1].circuits.o0", "must be a list, not 't0-t1'"),
    ("{at: 700ms,", "{at: 700,", "fabrics[1].schedule[0].at", "700 needs a unit"),
    ("{at: 800ms,", "{at: 700ms,", "fabrics[1].schedule[1].at", "does not come after the change at 700 ms"),
    ("{at: 800ms,", "{at: 710ms,", "fabrics[1].schedule[1].at", "before the end of the change at 700 ms, which takes"),
    ("{at: 800ms,", "{on: 800ms,", "fabrics[1].schedule[1].on", "there is no such key"),
    ("kind: collectives", "kind: collective", "workload.kind", "did you mean 'collectives'?"),
    ("model: Qwen3-8B", "model: Qwen3-9B", "workload.model", "did you mean 'Qwen3-8B'?"),
    ("dtype: bf16", "dtype: int4", "workload.dtype", "not one of bf16, fp16, fp32, fp8"),
    ("phase: training", "phase: a b", "workload.steps[0].phase", "'a b' is not a name"),
    ("name: pause", "name: gradients", "workload.steps[1].name", "another step is called 'gradients'"),
    ("name: pause", "nam: pause", "workload.steps[1].nam", "did you mean 'name'?"),
    ("compute: 100ms", "compute: 100", "workload.steps[1].compute", "100 needs a unit"),
    ("compute: 100ms", "compute: 1s, size: 1MB", "workload.steps[1].size", "there is no such key"),
    ("all-reduce", "allreduce", "workload.steps[0].collective", "did you mean 'all-reduce'?"),
    ("algorithm: ring", "algorithm: rings", "workload.steps[0].algorithm", "did you mean 'ring'?"),
    (
        "algorithm: ring",
        "algorithm: pairwise",
        "workload.steps[0].algorithm",
        "there is no all-reduce by pairwise; valid:",
    ),
    ("all-reduce, algorithm: ring", "exchange", "workload.steps[0].collective", "is not one of all-reduce, "),
    ("algorithm: chain", "algorithm: two-level", "workload.steps[2].pods", "is required: how many ranks each pod has"),
    ("root: 0", "pods: [2, 2]", "workload.steps[2].pods", "only means something with algorithm: two-level"),
    ("size: weights", "size: wights", "workload.steps[2].size", "did you mean 'weights'?"),
    ("size: weights", "size: 0", "workload.steps[2].size", "must be more than 0 bytes"),
    ("size: weights", "size: 16G", "workload.steps[2].size", "did you mean 16GB or 16GiB?"),
    ("size: weights", "size: []", "workload.steps[2].size", "must have at least 1 entry"),
    (", size: weights", "", "workload.steps[2].size", "is required, unless there is a sweep"),
    (
        "size: weights",
        "size: weights, buckets: 2",
        "workload.steps[2].buckets",
        "only means something with size: layer",
    ),
    ("at: 750ms", "at: -1ms", "workload.steps[2].at", "must not be negative"),
    ("root: 0", "root: -1", "workload.steps[2].root", "must be at least 0"),
    ("root: 0", "root: 0, ranks: 1-4", "workload.steps[2].root", "rank 0 is not in ranks"),
    ("root: 0", "chunks: 0", "workload.steps[2].chunks", "must be at least 1"),
    ("{from: 1MiB,", "{from: 17MiB,", "workload.steps[3].sweep.to", "must not be smaller than from"),
    ("factor: 4", "factor: 1", "workload.steps[3].sweep.factor", "must be at least 2"),
    ("ranks: 0-7,12", "ranks: 0-7,7", "workload.steps[3].ranks", "rank 7 is in the group twice"),
    ("ranks: 0-7,12", "ranks: 7-0", "workload.steps[3].ranks", "'7-0' is not a range of ranks"),
    ("ranks: 0-7,12", "ranks: 0-999999", "workload.steps[3].ranks", "is not a range of ranks"),
    ("ranks: 0-7,12", "ranks: " + ",".join(["0-65535"] * 500), "workload.steps[3].ranks", "more than 65536 ranks"),
    ("ranks: 0-7,12", "ranks: [0]", "workload.steps[3].ranks", "at least 2 ranks"),
    ("ranks: 0-7,12", "ranks: [0, x]", "workload.steps[3].ranks", "is not a group of ranks; write all"),
    ("order: random", "order: shuffled", "workload.steps[3].order", "not one of sequence, random"),
    ("[gradients, pause]", "[gradients, paus]", "workload.steps[3].after[1]", "did you mean 'pause'?"),
    ("[gradients, pause]", "[sizes]", "workload.steps[3].after[0]", "only earlier steps can be waited for"),
    ("repeat: 3", "repeat: 0", "workload.steps[3].repeat", "must be at least 1"),
    ("[1MiB, 3MB]", "[1MiB, 3]", "workload.steps[4].size[1]", "3 needs a unit"),
]


@pytest.mark.parametrize(("old", "new", "key", "says"), SPOILED)
def test_a_mistake_is_named_with_line_and_key(spoil: Spoil, old: str, new: str, key: str, says: str) -> None:
    error = spoil(old, new)
    place = old.lstrip("\n ")
    assert dotted(error.key) == key
    assert says in str(error)
    assert error.line == line_of(place)
    assert error.exit_status == 2
    assert "\n" not in str(error)
    assert str(error).startswith(f"{error.file}:{error.line}: {key}: ")


def test_the_column_is_that_of_the_key(spoil: Spoil) -> None:
    assert spoil("initcwnd: 4", "initcwnd: 0").column == 1 + VALID.splitlines()[14].index("initcwnd")


def test_missing_keys_name_the_line_of_their_mapping(spoil: Spoil) -> None:
    error = spoil("    reconfiguration: 10ms\n", "")
    assert (dotted(error.key), error.line) == ("fabrics[1].reconfiguration", line_of("- name: optical"))
    assert "is required where there is a schedule" in str(error)
    error = spoil("  model: Qwen3-8B\n", "")
    assert (dotted(error.key), error.line) == ("workload.model", line_of("workload:"))
    assert "is required where a step has size: layer-gradients" in str(error)
    error = spoil("workload:", "workload: 3\nx-y:")
    assert dotted(error.key) == "x-y"


@pytest.mark.parametrize(
    ("text", "key", "says"),
    [
        ("fabrics: [{kind: fat-tree}]", "workload", "is required"),
        (MINIMAL.replace("[{kind: fat-tree}]", "[]"), "fabrics", "must have at least 1 entry"),
        (MINIMAL.replace("[{kind: fat-tree}]", "fat-tree"), "fabrics", "must be a list, not 'fat-tree'"),
        (MINIMAL.replace("[{kind: fat-tree}]", "[fat-tree]"), "fabrics[0]", "must be a mapping, not 'fat-tree'"),
        (MINIMAL.replace("[{kind: fat-tree}]", "[{k: 4}]"), "fabrics[0].kind", "is required"),
        ("fabrics: [{kind: fat-tree}]\nworkload: all-reduce", "workload", "must be a mapping, not 'all-reduce'"),
        (
            "fabrics: [{kind: fat-tree}]\nworkload: {steps: []}",
            "workload.kind",
            "write collectives or rl-iteration or flow-list",
        ),
        ("fabrics: [{kind: fat-tree}]\nworkload: {kind: flow-list}", "workload.file", "name a flow list"),
        ("fabrics: [{kind: fat-tree}]\nworkload: {kind: collectives, steps: []}", "workload.steps", "at least 1 entry"),
        (MINIMAL + "emulation: 3\n", "emulation", "must be a mapping, not 3"),
    ],
)
def test_shapes_that_do_not_fit(write: Callable[[str], Path], text: str, key: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        load(write(text))
    assert dotted(caught.value.key) == key
    assert says in str(caught.value)


def test_further_errors_are_counted(write: Callable[[str], Path]) -> None:
    with pytest.raises(InputError) as caught:
        load(write(MINIMAL + "seed: x\nrepeat: 0\n"))
    assert str(caught.value).endswith("seed: must be a whole number, not 'x' (and 1 more)")


def test_an_unknown_key_comes_before_what_it_leaves_missing(write: Callable[[str], Path]) -> None:
    with pytest.raises(InputError) as caught:
        load(write(MINIMAL.replace("name: one", "nmae: one") + "seed: x\n"))
    assert dotted(caught.value.key) == "workload.steps[0].nmae"
    assert caught.value.line == 4


# -- overrides, names, flow lists -------------------------------------------------------------------------------------


def test_overrides_replace_what_the_file_says(write: Callable[[str], Path]) -> None:
    scenario = load(write(VALID), overrides={"seed": 3, "emulation.budget": "5s", "transport.cc": "bbr"})
    assert (scenario.seed, scenario.emulation.budget, scenario.transport.cc) == (3, 5.0, "bbr")
    assert scenario.emulation.mtu == 1500


def test_a_wrong_override_is_blamed_on_the_command_line(write: Callable[[str], Path]) -> None:
    with pytest.raises(InputError) as caught:
        load(write(VALID), overrides={"repeat": 0})
    assert str(caught.value) == "command line: repeat: must be at least 1, not 0"
    assert caught.value.line is None


def test_the_name_comes_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "My Run_2.yaml"
    path.write_text(MINIMAL)
    assert load(path).name == "my-run-2"
    path.rename(tmp_path / "\u00fc.yaml")
    assert load(tmp_path / "\u00fc.yaml").name == "scenario"


FLOW_LIST = "fabrics: [{kind: fat-tree}]\nworkload:\n  kind: flow-list\n  file: lists/a.cm\n"


def test_a_flow_list_is_read_beside_the_scenario(write: Callable[[str], Path], tmp_path: Path) -> None:
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "a.cm").write_text("Nodes 2\n")
    workload = load(write(FLOW_LIST)).workload
    assert isinstance(workload, FlowList)
    assert (workload.file, workload.flows, workload.connections) == ("lists/a.cm", "Nodes 2\n", "kept")


@pytest.mark.parametrize(
    ("spoilt", "says"),
    [
        (FLOW_LIST, "lists/a.cm: there is no such file"),
        (FLOW_LIST.replace("lists/a.cm", "."), ".: this is not a file"),
        (FLOW_LIST.replace("lists/a.cm", "/dev/zero"), "/dev/zero: this is not a file"),
        (FLOW_LIST.replace("lists/a.cm", '"a\\0b"'), "there is no such file"),
        (FLOW_LIST + "  flows: x\n", "a flow list has one of them"),
    ],
)
def test_a_flow_list_that_cannot_be_read(write: Callable[[str], Path], spoilt: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        load(write(spoilt))
    assert says in str(caught.value)
    assert caught.value.line in (4, 5)
