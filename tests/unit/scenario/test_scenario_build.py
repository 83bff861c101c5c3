"""Fabrics, circuits and workloads come out as written, and what does not fit is refused at its line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from controllers.epochs import duplex
from emu.errors import InputError, dotted
from emu.scenario import (
    Scenario,
    build_fabrics,
    build_orchestrator,
    cluster_of,
    collectives_of,
    flow_list_of,
    json_schema,
    load,
    steps_of,
)
from tests.unit.scenario.conftest import VALID
from topologies import registry
from workloads.cluster import Cluster, HostSpec
from workloads.protocol import Collective, Computation, Run, Start, Transfer

SCENARIOS = Path(__file__).parents[3] / "scenarios"
Write = Callable[[str], Path]
QWEN3_8B_BYTES = 16_381_470_720
"""bf16: 2 (36 (2 4096 (32 + 8) 128 + 3 4096 12288 + 2 4096 + 2 128) + 2 151936 4096 + 4096)."""


def hosts(count: int, gpus: int = 1) -> Cluster:
    return Cluster(tuple(HostSpec(f"h{number}", gpus, gpus) for number in range(count)))


# -- fabrics ----------------------------------------------------------------------------------------------------------


def test_fabrics_are_wired_as_written(example: Scenario) -> None:
    fat_tree, optical = build_fabrics(example)
    assert (fat_tree.fabric.name, len(fat_tree.fabric.hosts), len(fat_tree.fabric.switches)) == ("fat-tree", 16, 20)
    assert {(link.rate, link.delay) for link in fat_tree.fabric.links} == {(100_000_000_000, 1.5e-6)}
    assert (fat_tree.epoch.number, fat_tree.epoch.matchings, fat_tree.schedule) == (0, {}, ())
    assert (optical.fabric.name, [node.name for node in optical.fabric.ocses]) == ("optical", ["o0"])


def test_circuits_and_schedule_become_epochs(example: Scenario) -> None:
    optical = build_fabrics(example)[1]
    # ToR i has OCS ports 2i + 1 and 2i + 2; a bare name takes the next free one of them.
    ring = duplex([(1, 3), (4, 5), (6, 7), (8, 2)])
    tree = duplex([(1, 3), (2, 5), (4, 7)])
    assert (optical.epoch.number, optical.epoch.matchings) == (0, {"o0": ring})
    assert [(c.at, c.epoch.number, c.epoch.matchings["o0"]) for c in optical.schedule] == [
        (0.7, 1, tree),
        (0.8, 2, ring),
    ]
    assert {change.reconfiguration for change in optical.schedule} == {0.01} == {optical.reconfiguration}


def test_a_cluster_has_the_fabrics_hosts(write: Write) -> None:
    text = VALID.replace("    k: 4\n", "    k: 4\n    hosts: 8\n    nics: 2\n    gpus: 4\n")
    text = text.replace("sweep: {", "sweep: {").replace("size: layer-gradients", "size: layer-gradients, ranks: 0-15")
    text = text.replace("size: weights", "size: weights, ranks: 0-15")
    cluster = cluster_of(build_fabrics(load(write(text)))[0].fabric)
    assert cluster.ranks == 32
    assert cluster.hosts[3] == HostSpec("h3", nics=2, gpus=4)


@pytest.mark.parametrize(
    ("old", "new", "key", "says"),
    [
        ("    k: 4", "    k: 5", "fabrics[0].k", "must be an even number from 2 on, not 5"),
        ("    k: 4", "    nics: 9", "fabrics[0].nics", "must be 1 to 8, not 9"),
        ("    k: 4", "    hosts: 17\n    k: 4", "fabrics[0].k", "has room for 16 NICs"),
        (
            "    k: 4",
            "    k: 4\n    reconfiguration: 1ms",
            "fabrics[0].reconfiguration",
            "a fat-tree fabric has no OCS",
        ),
        ("    k: 4", "    k: 4\n    circuits: {o0: [1-2]}", "fabrics[0].circuits", "a fat-tree fabric has no OCS"),
        ("t0-t1, t1-t2", "t0-t9, t1-t2", "fabrics[1].circuits.o0[0]", "'t9' is not wired to it; t0, t1, t2, t3 are"),
        ("t0-t1, t1-t2", "t0~t1, t1-t2", "fabrics[1].circuits.o0[0]", "is not a circuit; write t0-t1"),
        ("t3-t0]", "t3-t0, t0-t2]", "fabrics[1].circuits.o0[4]", "more circuits name t0 than the 2 uplinks"),
        ("t0-t2, t1-t3", "t0-t2, t0-t3", "fabrics[1].schedule[0].circuits.o0[2]", "more circuits name t0"),
        ("{at: 800ms, circuits: {o0:", "{at: 800ms, circuits: {o1:", "fabrics[1].schedule[1].circuits.o1", "valid: o0"),
        ("ranks: 0-7,12", "ranks: 0-7,16", "workload.steps[3].ranks", "no rank 16: the fabric has ranks 0 to 15"),
        ("root: 0", "root: 16", "workload.steps[2].root", "no rank 16: the fabric has ranks 0 to 15"),
        ("pods: 4", "pods: 1000000", "fabrics[1]", "it has more than 100000 nodes"),
        ("pods: 4", "pods: 1", "fabrics[1].pods", "must be at least 2, not 1"),
    ],
)
def test_what_does_not_fit_is_refused_at_its_line(write: Write, old: str, new: str, key: str, says: str) -> None:
    assert old in VALID
    scenario = load(write(VALID.replace(old, new, 1)))
    with pytest.raises(InputError) as caught:
        build_fabrics(scenario)
    assert dotted(caught.value.key) == key
    assert says in str(caught.value)
    first = VALID[: VALID.index(old)].count("\n") + 1
    if key != "fabrics[1]":  # the fabric as a whole
        assert caught.value.line in range(first, first + new.count("\n") + 1)


def test_an_ocs_needs_a_reconfiguration_time(write: Write) -> None:
    text = "fabrics:\n- {kind: hybrid}\nworkload: {kind: collectives, steps: [{name: x, compute: 1s}]}\n"
    with pytest.raises(InputError, match=r":2: fabrics\[0\].reconfiguration: is required: the fabric has the OCS o0"):
        build_fabrics(load(write(text)))


def test_fabrics_that_are_compared_run_the_same_workload(write: Write) -> None:
    scenario = load(write(VALID.replace("    k: 4", "    k: 6")))
    with pytest.raises(InputError) as caught:
        build_fabrics(scenario)
    assert "means other ranks on each fabric (fat-tree 54, optical 16); name them, e.g. ranks: 0-15" in str(
        caught.value
    )
    assert dotted(caught.value.key) == "workload.steps[0].ranks"


PLUGIN = '''
from topologies.fabric import Fabric, Kind, Port
from topologies.parameters import Duration, Rate
from topologies.registry import builder

@builder("pair")
def pair(
    *, rate: Rate = 1_000_000_000, wait: Duration | None = None, speeds: list[Rate] = [], fast: bool = False
) -> Fabric:
    """Two hosts on one ToR."""
    fabric = Fabric("pair", parameters={"wait": wait, "speeds": speeds, "fast": fast})
    fabric.add_switch("t0", Kind.TOR)
    for host in ("h0", "h1"):
        fabric.add_host(host)
        fabric.connect(Port(host, 0), fabric.next_port("t0"), rate=rate)
    return fabric.finish()
'''
PAIR = """\
fabrics:
  - kind: pair
    rate: 5Gbps
    wait: 2ms
    speeds: [1Gbps, 2Gbps]
    fast: true
workload: {kind: collectives, steps: [{name: x, compute: 1s}]}
"""


@pytest.fixture
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten after it."""
    monkeypatch.setattr(registry, "_builders", {name: registry.find(name) for name in registry.names()})


@pytest.mark.usefixtures("own_registry")
def test_a_users_builder_is_a_kind_with_its_own_keys(write: Write, tmp_path: Path) -> None:
    plugin = tmp_path / "pair.py"
    plugin.write_text(PLUGIN)
    scenario = load(write(PAIR), plugins=[plugin])
    built = build_fabrics(scenario)[0].fabric
    assert built.parameters == {"wait": 0.002, "speeds": (10**9, 2 * 10**9), "fast": True}
    assert built.links[0].rate == 5 * 10**9
    assert Scenario.from_json(scenario.to_json()) == scenario
    for old, new, says in (
        ("rate: 5Gbps", "rate: 5", "fabrics[0].rate: 5 needs a unit"),
        ("fast: true", "fat: true", "fabrics[0].fat: there is no such key; did you mean 'fast'?"),
        ("1Gbps,", "1,", "fabrics[0].speeds[0]: 1 needs a unit"),
    ):
        with pytest.raises(InputError) as caught:
            load(write(PAIR.replace(old, new)), plugins=[plugin])
        assert says in str(caught.value)


@pytest.mark.usefixtures("own_registry")
def test_plugins_that_cannot_be_used(write: Write, tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("1 / 0\n")
    with pytest.raises(InputError, match=r"broken.py: ZeroDivisionError"):
        load(write(PAIR), plugins=[broken])
    clash = tmp_path / "clash.py"
    clash.write_text(PLUGIN.replace('"pair"', '"clash"', 1).replace("wait", "schedule"))
    with pytest.raises(InputError, match="schedule is a key of every fabric; rename it"):
        load(write(PAIR.replace("kind: pair", "kind: clash")), plugins=[clash])
    assert "fabric clash" not in json_schema()["$defs"], "it leaves the other kinds usable"


# -- workloads --------------------------------------------------------------------------------------------------------


def test_layer_gradients_are_merged_up_to_the_bound(example: Scenario) -> None:
    for bound, expected in ((None, 4), (3, 3), (100, 4)):
        found = collectives_of(example, hosts(16), seed=1, buckets=bound)
        gradients = [collective for collective in found if collective.label == "gradients"]
        assert len(gradients) == expected
        assert sum(collective.bytes for collective in gradients) == QWEN3_8B_BYTES
        assert sum(collective.merged for collective in gradients) == 38


def test_unmerged_gradients_are_one_per_layer(write: Write) -> None:
    scenario = load(write(VALID.replace(", buckets: 4", "")))
    gradients = [c for c in collectives_of(scenario, hosts(16), seed=1) if c.label == "gradients"]
    assert [collective.merged for collective in gradients] == [1] * 38


def test_collectives_are_those_of_the_steps(example: Scenario) -> None:
    found = collectives_of(example, hosts(16), seed=1)
    weights = next(collective for collective in found if collective.label == "weights")
    assert weights == Collective(
        "weights", "broadcast", "chain", tuple(range(16)), QWEN3_8B_BYTES, phase="weight-sync", label="weights"
    )
    sweep = [collective for collective in found if collective.label == "sweep"]
    assert [collective.bytes >> 20 for collective in sweep] == [1, 4, 16] * 3
    assert {collective.algorithm for collective in sweep} == {"ring"}
    assert [collective.bytes for collective in found if collective.label == "sizes"] == [1 << 20, 3_000_000]
    assert {collective.group for collective in found if collective.label == "sizes"} == {(3, 1, 2)}


def test_random_order_follows_the_seed(example: Scenario) -> None:
    def group(seed: int) -> tuple[int, ...]:
        return next(c.group for c in collectives_of(example, hosts(16), seed=seed) if c.label == "sweep")

    assert group(1) == group(1)
    assert sorted(group(1)) == [0, 1, 2, 3, 4, 5, 6, 7, 12]
    assert len({group(seed) for seed in range(8)}) > 1


def test_the_root_is_a_rank_wherever_the_order_puts_it(write: Write) -> None:
    text = VALID.replace("root: 0", "root: 9, ranks: 8-15, order: random")
    weights = next(c for c in collectives_of(load(write(text)), hosts(16), seed=5) if c.label == "weights")
    assert weights.group[weights.root] == 9
    text = VALID.replace("root: 0", "ranks: [12, 3, 4], order: random")
    weights = next(c for c in collectives_of(load(write(text)), hosts(16), seed=5) if c.label == "weights")
    assert weights.group[weights.root] == 12


def test_pods_of_a_two_level_broadcast_are_checked_against_the_group(write: Write) -> None:
    text = VALID.replace("algorithm: chain", "algorithm: two-level, pods: [4, 12]")
    weights = next(c for c in collectives_of(load(write(text)), hosts(16), seed=1) if c.label == "weights")
    assert weights.pods == (4, 12)
    with pytest.raises(InputError, match=r"workload.steps\[2\]: .*the pods 4, 4 do not add up to a group of 16"):
        steps_of(load(write(text.replace("12]", "4]"))), hosts(16), seed=1)


def test_steps_keep_their_times_and_order(example: Scenario) -> None:
    gradients, pause, weights, sweep, _ = steps_of(example, hosts(16), seed=1)
    assert (gradients.at, gradients.after, weights.at, pause.duration) == (0.0, None, 0.75, 0.1)
    assert (sweep.after, sweep.repeat, sweep.rounds) == (("gradients", "pause"), 3, 9)


def test_the_orchestrator_starts_with_the_first_step(example: Scenario) -> None:
    actions = build_orchestrator(example, hosts(16), seed=1, buckets=2).on(Start(), 0.0)
    tasks = [action.task for action in actions if isinstance(action, Run)]
    assert len(tasks) == 1
    assert isinstance(tasks[0], Collective)
    assert tasks[0].kind == "all-reduce"


def test_a_computation_is_for_all_hosts(write: Write) -> None:
    text = "fabrics: [{kind: fat-tree}]\nworkload: {kind: collectives, steps: [{name: x, compute: 1.5s}]}\n"
    actions = build_orchestrator(load(write(text)), hosts(2), seed=1).on(Start(), 0.0)
    tasks = [action.task for action in actions if isinstance(action, Run)]
    assert tasks == [Computation("x", 1.5, ("h0", "h1"), "x")]


# -- flow lists -------------------------------------------------------------------------------------------------------


FLOWS = "fabrics: [{kind: fat-tree}]\nworkload:\n  kind: flow-list\n  connections: new\n  flows: |\n    Nodes 2\n    "


def test_flows_written_in_the_scenario(write: Write) -> None:
    scenario = load(write(FLOWS + "Connections 1\n    0->1 start 0 size 5\n"))
    assert len(build_fabrics(scenario)) == 1
    assert [(flow.src, flow.dst, flow.bytes) for flow in flow_list_of(scenario).flows] == [(0, 1, 5)]
    actions = build_orchestrator(scenario, hosts(2), seed=1).on(Start(), 0.0)
    (transfer,) = [action.task for action in actions if isinstance(action, Run)]
    assert isinstance(transfer, Transfer)
    assert (transfer.bytes, transfer.connection) == (5, "new")
    assert collectives_of(scenario, hosts(2), seed=1) == ()


def test_a_wrong_flow_list_names_both_lines(write: Write, tmp_path: Path) -> None:
    (tmp_path / "a.cm").write_text("Nodes 2\nConnections 1\n0->7 start 0 size 5\n")
    text = "fabrics: [{kind: fat-tree}]\nworkload:\n  kind: flow-list\n  file: a.cm\n"
    with pytest.raises(InputError, match=r"scenario.yaml:4: workload.file: a.cm:3: there is no node 7"):
        build_fabrics(load(write(text)))


def test_a_flow_list_with_more_nodes_than_ranks(write: Write) -> None:
    text = (FLOWS + "Connections 1\n    0->1 start 0 size 5\n").replace("Nodes 2", "Nodes 17")
    with pytest.raises(InputError, match=r"scenario.yaml:5: workload.flows: .*17 nodes need as many ranks"):
        build_fabrics(load(write(text)))


# -- the scenarios that come with emu ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_scenarios_load_and_build(path: Path) -> None:
    scenario = load(path)
    assert scenario.name == path.stem
    assert path.read_text().startswith("# "), "a comment says what it shows"
    for built in build_fabrics(scenario):
        assert len(built.fabric.hosts) == 16 or scenario.engine == "model"
        build_orchestrator(scenario, cluster_of(built.fabric), seed=1)


def test_the_quickstart_compares_fabrics_of_equal_nics() -> None:
    fat, hybrid = build_fabrics(load(SCENARIOS / "quickstart.yaml"))
    assert {fabric.link(nic).rate for fabric in (fat.fabric, hybrid.fabric) for nic in fabric.all_nics} == {
        400_000_000_000
    }
    assert (fat.fabric.ocses, hybrid.reconfiguration, hybrid.policy.name) == ((), 0.01, "templates")


def test_two_collectives_are_rewired_between() -> None:
    """At line rate the ring all-reduce takes 2 15/16 S / 50 GB/s, and a quarter more is left."""
    scenario = load(SCENARIOS / "two-collectives.yaml")
    hybrid = build_fabrics(scenario)[1]
    (change,) = hybrid.schedule
    all_reduce = 2 * 15 / 16 * QWEN3_8B_BYTES / 50e9
    assert all_reduce == pytest.approx(0.614, abs=0.001)
    assert change.at >= 1.25 * all_reduce
    weights = steps_of(scenario, cluster_of(hybrid.fabric), seed=1)[-1]
    assert weights.at >= change.at + change.reconfiguration
    kept = hybrid.epoch.circuits("o0") & change.epoch.circuits("o0")
    assert len(kept) == 4, "two circuits, both ways, stay lit"
