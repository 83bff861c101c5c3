"""The pytest plugin, as a user's tests see it."""

from __future__ import annotations

from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent / "example_test.py"
MOST_LINES = 15


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder of tests of the user's own."""
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2]))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p emu.pytest_plugin -p no:cacheprovider")
    return pytester


def test_the_example_is_short() -> None:
    code = [line for line in EXAMPLE.read_text().splitlines()[1:] if line.strip()]
    assert len(code) <= MOST_LINES


@pytest.mark.lab
def test_the_example_passes(run: pytest.Pytester) -> None:
    run.makepyfile(test_example=EXAMPLE.read_text())
    run.runpytest_subprocess().assert_outcomes(passed=1)


@pytest.mark.lab
def test_tests_of_one_fabric_share_a_lab_and_find_it_as_new(run: pytest.Pytester) -> None:
    """Circuits that the first one set are not there for the second; a third fabric option is another lab."""
    run.makepyfile("""
        HYBRID = dict(pods=2, hosts_per_pod=1, uplinks=1, rate="20Mbps", reconfiguration="20ms")

        def test_first(lab):
            net = lab("hybrid", **HYBRID)
            assert net.set_circuits({"o0": ["t0-t1"]}).outcome == "committed"
            assert net.send("h0", "h1", "10kB").bytes == 10_000

        def test_second(lab, emu_labs):
            net = lab("hybrid", **HYBRID)
            assert emu_labs.opened == 1
            assert not net.circuits.lit
            assert net.path("h0", "h1") is None

        def test_third(lab, emu_labs):
            net = lab("hybrid", circuits={"o0": ["t0-t1"]}, **HYBRID)
            assert emu_labs.opened == 2
            assert net.ping("h0", "h1") < 0.5
    """)
    run.runpytest_subprocess().assert_outcomes(passed=3)


def test_a_machine_without_what_labs_need_is_an_error_with_its_fix(run: pytest.Pytester) -> None:
    """Not a skip: nothing was tested."""
    run.makeconftest("""
        import emu.doctor
        from emu.doctor import Check

        emu.doctor.examine = lambda: [
            Check("privileges", False, "not root", "run emu with sudo"),
            Check("memory", True, "8 GB"),
            Check("Open vSwitch", False, "not found", "apt-get install openvswitch-switch"),
            Check("netem", False, "not there", "nothing", required=False),
        ]
    """)
    run.makepyfile("def test_one(lab): pass\ndef test_two(run_scenario): pass")
    done = run.runpytest_subprocess()
    done.assert_outcomes(errors=2)
    done.stdout.fnmatch_lines(
        [
            "no lab can run here: privileges: not root (fix: run emu with sudo); "
            "Open vSwitch: not found (fix: apt-get install openvswitch-switch)",
            "for all prerequisites: sudo emu doctor",
        ]
    )
    done.stdout.no_fnmatch_line("*Traceback*")
    done.stdout.no_fnmatch_line("*netem*")


def test_a_run_that_does_not_use_it_imports_nothing_of_emu(run: pytest.Pytester) -> None:
    run.makepyfile("""
        import sys

        def test_nothing():
            found = {name for name in sys.modules if name.split(".")[0] in ("emu", "controllers", "topologies")}
            assert found == {"emu", "emu.pytest_plugin"}
            assert not {"pydantic", "pandas", "scipy", "networkx"} & set(sys.modules)
    """)
    run.runpytest_subprocess().assert_outcomes(passed=1)


def test_fabrics_are_built_by_name_function_or_plugin(run: pytest.Pytester) -> None:
    builder = '''
        from topologies.fabric import Fabric, Kind, Port
        from topologies.parameters import Rate
        from topologies.registry import builder

        def NAME(*, arms: int = 3, rate: Rate = 100_000_000_000) -> Fabric:
            """Some hosts around one switch."""
            fabric = Fabric("NAME")
            fabric.add_switch("t0", Kind.TOR)
            for arm in range(arms):
                fabric.add_host(f"h{arm}")
                fabric.connect(Port(f"h{arm}", 0), fabric.next_port("t0"), rate=rate)
            return fabric.finish()
    '''
    run.makepyfile(mine=builder.replace("NAME", "wheel").replace("def ", "@builder('wheel')\n        def ", 1))
    run.makepyfile(
        test_fabric=builder.replace("NAME", "star")
        + """
        import emu
        import pytest

        def test_named(fabric):
            built = fabric("hybrid", pods=2, hosts_per_pod=3, reconfiguration="5ms", circuits={"o0": ["t0-t1"]})
            assert (len(built.fabric.hosts), built.reconfiguration, len(built.epoch.lit)) == (6, 0.005, 2)

        def test_function(fabric):
            built = fabric(star, arms=5, rate="10Gbps")
            assert {link.rate for link in built.fabric.links} == {10_000_000_000}
            assert len(fabric(star).fabric.hosts) == 3

        def test_plugin(fabric):
            assert len(fabric("wheel", plugins=["mine.py"], arms=4).fabric.hosts) == 4

        def test_mistake(fabric):
            with pytest.raises(emu.InputError, match=r"arms"):
                fabric(star, arms="many")
        """
    )
    run.runpytest_subprocess("test_fabric.py").assert_outcomes(passed=4)


def test_a_scenario_is_run_again_until_it_is_valid(run: pytest.Pytester) -> None:
    run.makeconftest("""
        import emu.api

        class Record:
            def __init__(self, out):
                self.directory, self.valid = out, out.name == "run-2"

        emu.api.run = lambda scenario, *, out, seed=None: Record(out)

        import emu.pytest_plugin, pytest

        @pytest.fixture(scope="session")
        def emu_machine():
            pass
    """)
    run.makepyfile("""
        import pytest

        def test_tries(run_scenario, tmp_path):
            record = run_scenario("x.yaml", tries=3, seed=4)
            assert (record.directory, record.valid) == (tmp_path / "run-2", True)

        def test_one(run_scenario):
            assert not run_scenario("x.yaml").valid
            assert run_scenario("x.yaml").valid

        def test_accept(run_scenario):
            assert not run_scenario("x.yaml", tries=3, accept=lambda record: True).valid

        def test_none(run_scenario):
            with pytest.raises(ValueError, match="at least once"):
                run_scenario("x.yaml", tries=0)
    """)
    run.runpytest_subprocess().assert_outcomes(passed=4)
