"""A lab that stays open and does what another process asks: for tests, notebooks and trying things out.

    with emu.open_lab("hybrid", pods=2, rate="20Mbps", reconfiguration="100ms", circuits={"o0": ["t0-t1"]}) as lab:
        flow = lab.send("h0", "h4", "1MB")

The lab is the one that `emu run` builds, sealed in namespaces of its own; `emu.live.client` is the side that a program
holds, `emu.live.inside` the first process of the namespaces, `emu.live.bench` what that does. Between them is one
socket. A user's own policy or orchestrator stays in the user's process and is asked over it, so that it can be
debugged, and can be anything that Python has.
"""
