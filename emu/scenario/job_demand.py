"""What a whole workload sends: the demand for which circuits that never change are laid."""

from __future__ import annotations

from collections import Counter

from controllers.loads import between_sites, sites
from emu.scenario.schema import Scenario
from emu.scenario.traffic import flow_list_of, steps_of
from emu.scenario.workload_spec import FlowList
from topologies.fabric import Fabric
from workloads.cluster import Cluster


def job_demand(scenario: Scenario, fabric: Fabric, cluster: Cluster) -> dict[tuple[str, str], int]:
    """Bytes from the workload's beginning to its end, by (source, destination) among the nodes wired to OCSs.

    Raises InputError, with the line, for what the cluster cannot do.
    """
    return between_sites(_between_hosts(scenario, cluster), sites(fabric))


def _between_hosts(scenario: Scenario, cluster: Cluster) -> Counter[tuple[str, str]]:
    demand: Counter[tuple[str, str]] = Counter()
    if isinstance(scenario.workload, FlowList):
        for flow in flow_list_of(scenario).flows:
            if max(flow.src, flow.dst) < cluster.ranks:  # of others the workload's own check says what is wrong
                src, dst = cluster.endpoints((flow.src, flow.dst))
                demand[src.host, dst.host] += flow.bytes
        return demand
    for step in steps_of(scenario, cluster, seed=scenario.seed):
        demand.update(step.demand(cluster))
    return demand
