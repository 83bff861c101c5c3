"""The fabrics of the papers out of a scenario file: what can be said, and what is said of mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from controllers.checks import check
from controllers.circuits import check_epoch
from controllers.routes import isolated_pairs, routes
from emu.errors import InputError
from emu.scenario import BuiltFabric, Scenario, build_fabrics, load, load_text
from topologies.fabric import Kind

WORK = "workload: {kind: collectives, steps: [{name: a, collective: all-reduce, size: 1GB}]}\n"


def built(fabric: str, work: str = WORK) -> BuiltFabric:
    (one,) = build_fabrics(load_text(f"fabrics:\n  - {fabric}\n{work}"))
    return one


@pytest.mark.parametrize(
    ("fabric", "nics"),
    [
        ("{kind: leaf-spine}", 16),
        ("{kind: leaf-spine, leaves: 2, hosts_per_leaf: 12, oversubscription: 3, spines: 2, rate: 100Gbps}", 24),
        ("{kind: rail, hosts: 16, nics: 2}", 32),
        ("{kind: rail, hosts: 8, spine: false}", 64),
        ("{kind: fat-tree, k: 4, oversubscription: 3}", 48),
        ("{kind: topoopt, reconfiguration: 10ms, policy: one-shot}", 64),
        ("{kind: topoopt, hosts: 8, nics: 1, degree: 4, reconfiguration: 10ms, policy: {kind: one-shot, rings: 2}}", 8),
        ("{kind: rfabric, reconfiguration: 10ms, policy: {kind: templates, phases: {a: mesh}}}", 16),
        ("{kind: rfabric, reconfiguration: 10ms, electrical: false, policy: one-shot}", 16),
        ("{kind: rfabric, electrical_rate: 100Gbps, reconfiguration: 10ms}", 16),
    ],
)
def test_each_fabric_is_built_and_routed(fabric: str, nics: int) -> None:
    one = built(fabric)
    assert len(one.fabric.all_nics) == nics
    check_epoch(one.fabric, one.epoch)
    assert check(one.fabric, one.epoch, routes(one.fabric, one.epoch)) == []


@pytest.mark.parametrize(
    ("fabric", "line", "key", "words"),
    [
        ("{kind: leaf-spine, spines: 3}", 2, "fabrics[0].spines", "3 does not divide the 4 uplinks of a leaf"),
        ("{kind: leaf-spine, oversubscription: 3}", 2, "fabrics[0].oversubscription", "takes 1.33333 uplinks"),
        ("kind: leaf-spine\n    hosts: 9\n    leaves: 2", 3, "fabrics[0].hosts", "9 do not fit below 2 leaves of 4"),
        ("{kind: leaf-spine, leafs: 2}", 2, "fabrics[0].leafs", "there is no such key; did you mean 'leaves'?"),
        ("kind: rail\n    hosts: 300", 2, "fabrics[0].radix", "64 holds 256 hosts of 8 NICs in two tiers, not 300; 72"),
        ("{kind: rail, nics: 9}", 2, "fabrics[0].nics", "must be 1 to 8, not 9"),
        ("{kind: rail, spine: yes please}", 2, "fabrics[0].spine", "yes please"),
        ("{kind: rails}", 2, "fabrics[0].kind", "there is no fabric 'rails'; did you mean 'rail'?"),
        ("{kind: rfabric}", 2, "fabrics[0].reconfiguration", "is required"),
        ("{kind: rfabric, reconfiguration: 1ms, planes: 3}", 2, "fabrics[0].planes", "3 does not divide the 2 uplinks"),
        ("{kind: rfabric, reconfiguration: 1ms, ocs_radix: 4}", 2, "fabrics[0].ocs_radix", "4 is too small"),
        ("{kind: topoopt, reconfiguration: 1ms, hosts: 1}", 2, "fabrics[0].hosts", "must be at least 2"),
        ("{kind: topoopt, reconfiguration: 1ms, rate: 1bps, degree: 3}", 2, "fabrics[0].degree", "3 does not divide"),
        ("{kind: topoopt, reconfiguration: 1ms, policy: oneshot}", 2, "fabrics[0].policy", "did you mean 'one-shot'?"),
        (
            "{kind: topoopt, reconfiguration: 1ms, policy: {kind: one-shot, rings: 0}}",
            2,
            "fabrics[0].policy.rings",
            "must be at least 1, not 0",
        ),
        (
            "{kind: topoopt, reconfiguration: 1ms, policy: one-shot, circuits: {o0: [f0-f1]}}",
            2,
            "fabrics[0].circuits",
            "are chosen by the policy one-shot; leave one of them out",
        ),
        ("{kind: rail, policy: one-shot}", 2, "fabrics[0].policy", "does not fit: a rail fabric has no OCS"),
    ],
)
def test_mistakes_are_named_with_line_and_key(tmp_path: Path, fabric: str, line: int, key: str, words: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(f"fabrics:\n  - {fabric}\n{WORK}")
    with pytest.raises(InputError) as caught:
        build_fabrics(load(path))
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: {key}: "), message
    assert words in message


def test_one_shot_lays_circuits_for_the_whole_job() -> None:
    """Ranks 0 and 2 exchange 3 GB a phase later than 0 and 1 exchange 1 GB: the second plane takes the larger one."""
    steps = """workload:
  kind: collectives
  steps:
    - {name: a, collective: all-reduce, size: 1GB, ranks: [0, 1]}
    - {name: b, collective: all-reduce, size: 3GB, ranks: [0, 2]}
"""
    one = built("{kind: topoopt, hosts: 4, nics: 1, degree: 2, reconfiguration: 10ms, policy: one-shot}", steps)
    assert {(1, 3), (3, 1)} <= {tuple(circuit) for circuit in one.epoch.circuits("o1")}
    assert {tuple(circuit) for circuit in one.epoch.circuits("o0")} == {(1, 2), (2, 3), (3, 4), (4, 1)}
    assert one.policy.name == "one-shot"
    assert one.policy.known() == ()
    assert not list(isolated_pairs(one.fabric, one.epoch))


def test_one_shot_reads_a_flow_list(tmp_path: Path) -> None:
    (tmp_path / "flows.csv").write_text("src,dst,bytes,start\n0,3,5000000,0\n3,0,5000000,0\n")
    path = tmp_path / "flows.yaml"
    path.write_text(
        "fabrics:\n  - {kind: topoopt, hosts: 5, nics: 1, degree: 2, reconfiguration: 1ms, policy: one-shot}\n"
        "workload: {kind: flow-list, file: flows.csv}\n"
    )
    (one,) = build_fabrics(load(path))
    assert {(1, 4), (4, 1)} <= {tuple(circuit) for circuit in one.epoch.circuits("o1")}


def test_the_policy_survives_a_trip_through_json() -> None:
    scenario = load_text("fabrics:\n  - {kind: topoopt, reconfiguration: 10ms, policy: one-shot}\n" + WORK)
    again = Scenario.from_json(scenario.to_json())
    assert again == scenario
    assert build_fabrics(again)[0].epoch == build_fabrics(scenario)[0].epoch


def test_2048_gpus_fit_a_scenario() -> None:
    """256 hosts of 8 NICs on each fabric that RLSim's comparison names."""
    fabrics = """fabrics:
  - {kind: fat-tree, hosts: 256, nics: 8}
  - {name: thin, kind: fat-tree, hosts: 256, nics: 8, oversubscription: 3}
  - {kind: rail, hosts: 256}
  - {kind: topoopt, hosts: 256, nics: 8, reconfiguration: 10ms}
  - {kind: rfabric, training_pods: 4, generation_pods: 4, tors_per_pod: 8, hosts_per_tor: 4, nics: 8,
     reconfiguration: 10ms}
"""
    for one in build_fabrics(load_text(fabrics + WORK)):
        assert (len(one.fabric.hosts), len(one.fabric.all_nics)) == (256, 2048)
        assert {one.fabric.link(nic).rate for nic in one.fabric.all_nics} == {400_000_000_000}
        assert one.fabric.of_kind(Kind.TOR)
