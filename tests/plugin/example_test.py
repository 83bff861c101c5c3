"""A policy of one's own, tested on an emulated fabric: TCP through Open vSwitch, circuits changed by OpenFlow."""

from controllers.policies.protocol import Keep, Phase, Plan


def test_the_busiest_pair_gets_a_circuit(lab):
    net = lab("hybrid", pods=4, hosts_per_pod=1, uplinks=1, rate="20Mbps", reconfiguration="50ms")

    def policy(event, view, now):
        if not isinstance(event, Phase):
            return Keep("only phases bring demand")
        busiest = max(view.site_demand, key=view.site_demand.get)
        return Plan(net.matchings({"o0": ["-".join(busiest)]}))

    sync = {"name": "sync", "collective": "broadcast", "ranks": [0, 2], "size": "500kB"}
    run = net.run({"kind": "collectives", "steps": [sync]}, policy=policy)
    assert run.complete
    assert run.changes[0].outcome == "committed"
    assert net.path("h0", "h2") == ("h0:0", "t0:2", "o0:3", "t2:1")
