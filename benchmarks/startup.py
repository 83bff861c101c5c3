"""How long a lab takes to stand, beside stock Mininet building the same fat-tree with rate limits."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

_SEAL = ("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--uts", "--ipc", "--")
_ROOT = str(Path(__file__).resolve().parents[1])

_OURS = """
import subprocess, sys, time
from pathlib import Path
subprocess.run(["mount", "-t", "tmpfs", "emu", "/run"], check=True)
from emu.lab.lab import Lab
from emu.scenario.build import build_fabrics
from emu.scenario.load import load
scenario = load(Path(sys.argv[1]))
built = build_fabrics(scenario)[0]
began = time.monotonic()
lab = Lab(scenario, built, Path("/run/emu"), lambda _: None)
lab.build(20)
lab.install(built.epoch)
lab.shape(20000, 1000)
print(time.monotonic() - began)
"""
_STOCK = """
import subprocess, sys, time
from pathlib import Path
subprocess.run(["mount", "-t", "tmpfs", "emu", "/run"], check=True)
from emu.lab.openvswitch import OpenVSwitch
OpenVSwitch(Path("/run/emu")).start()
from emu.lab.network import FabricTopo
from functools import partial
from mininet.link import TCLink
from mininet.net import Mininet
from mininet.node import OVSSwitch
from topologies.fat_tree import fat_tree
Mininet.inited = True
fabric = fat_tree(k=int(sys.argv[1]))
began = time.monotonic()
switch = partial(OVSSwitch, datapath="user", failMode="secure")
net = Mininet(FabricTopo(fabric), switch=switch, controller=None, link=partial(TCLink, bw=20), autoStaticArp=True)
net.start()
print(time.monotonic() - began)
"""


def bench_startup() -> bool:
    """Print the seconds to stand for k=4 and k=6, ours with the controller and its verified rules."""
    for k, hosts in ((4, 16), (6, 54)):
        scenario = Path(f"/tmp/emu-bench-k{k}.yaml")
        text = f"emulation: {{scale: {{sigma: 1000, beta: 20000}}}}\nfabrics:\n  - {{kind: fat-tree, k: {k}}}\n"
        step = "workload:\n  kind: collectives\n  steps:\n    - {name: x, collective: permutation, size: 1GB}\n"
        scenario.write_text(text + step)
        try:
            ours, stock = _time(_OURS, str(scenario)), _time(_STOCK, str(k))
        finally:
            scenario.unlink()
        print(
            f"fat-tree k={k} ({hosts} hosts): emu {ours:.2f} s, stock Mininet {stock:.2f} s, ratio {ours / stock:.2f}"
        )
    return True


def _time(program: str, argument: str) -> float:
    command = [*_SEAL, sys.executable, "-W", "ignore", "-c", program, argument]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={"PATH": _path(), "PYTHONPATH": _ROOT}
    )
    time.sleep(1.0)
    return float(done.stdout.split()[-1])


def _path() -> str:
    return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
