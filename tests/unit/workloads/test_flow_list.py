"""Flow lists: both formats, their errors, and when each flow starts."""

from __future__ import annotations

import heapq
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.cluster import Cluster, HostSpec
from workloads.flow_list import (
    Flow,
    FlowList,
    FlowListError,
    FlowListFormat,
    FlowListOrchestrator,
    Trigger,
    parse_flow_list,
    read_flow_list,
)
from workloads.protocol import Announce, Done, Endpoint, Event, Failed, Run, SetTimer, Start, Timer, Transfer

DATA = Path(__file__).parents[2] / "data" / "htsim"
HEAD = "Nodes 4\nConnections {}\nTriggers {}\n"


def cluster(hosts: int) -> Cluster:
    return Cluster(tuple(HostSpec(f"h{i}") for i in range(hosts)))


def play(flow_list: FlowList, seconds: float = 1.0, failing: str = "") -> list[tuple[float, str]]:
    """When each flow is started if every flow takes `seconds`; `failing` fails at once."""
    orchestrator = FlowListOrchestrator(flow_list, cluster(4))
    queue: list[tuple[float, int, Event]] = [(0.0, 0, Start())]
    started: list[tuple[float, str]] = []
    count = 0
    while queue:
        now, _, event = heapq.heappop(queue)
        for action in orchestrator.on(event, now):
            count += 1
            match action:
                case Run(task):
                    started.append((now, task.id))
                    failed = task.id == failing
                    end: Event = Failed(task, "gone") if failed else Done(task, now)
                    heapq.heappush(queue, (now + (0 if failed else seconds), count, end))
                case SetTimer(name, at):
                    heapq.heappush(queue, (at, count, Timer(name)))
    return started


# -- htsim ------------------------------------------------------------------------------------------------------------


def test_the_permutation_of_htsim() -> None:
    flow_list = read_flow_list(DATA / "perm_16n_16c_2MB.cm")
    assert flow_list.nodes == 16
    assert flow_list.flows[0] == Flow(id=1, src=7, dst=5, bytes=2_000_000, start=0.0)
    assert flow_list.flows[0].line == 3
    assert {flow.src for flow in flow_list.flows} == {flow.dst for flow in flow_list.flows} == set(range(16))


def test_the_incast_of_htsim_has_no_ids_and_gets_them() -> None:
    flow_list = read_flow_list(DATA / "incast.cm")
    assert [(flow.id, flow.src, flow.dst) for flow in flow_list.flows] == [(i + 1, i, 15) for i in range(15)]


def test_blank_lines_at_the_end_are_nothing() -> None:
    assert read_flow_list(DATA / "one.cm").flows == (Flow(1, 0, 13, 2_000_000, 0.0),)


def test_triggers_starts_and_priorities_are_read() -> None:
    text = HEAD.format(4, 3) + (
        "# a comment\n"
        "0->1 id 7 start 2500000000.5 size 10 send_done_trigger 1 recv_done_trigger 2\n"
        "1->2 trigger 1 size 20 prio 3\n"
        "2->3 id 1 trigger 2 size 30\n"
        "3->0 id 9 start 1e6 size 5 send_done_trigger 3\n"
        "trigger id 1 oneshot\n"
        "trigger multishot id 2\n"
        "trigger id 3 barrier count 1\n"
    )
    flow_list = parse_flow_list(text, "x.cm")
    assert flow_list.flows == (
        Flow(7, 0, 1, 10, 0.0025000000005, fires=(1, 2)),
        Flow(2, 1, 2, 20, None, trigger=1),
        Flow(1, 2, 3, 30, None, trigger=2),
        Flow(9, 3, 0, 5, 1e-6, fires=(3,)),
    )
    assert flow_list.triggers == (Trigger(1, "oneshot"), Trigger(2, "multishot"), Trigger(3, "barrier", 1))
    assert flow_list.notes == ("prio is read but not applied: all flows have the same priority",)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0->1 start 0", "x.cm:4: a connection needs a size in bytes, e.g. size 2000000"),
        ("0->1 start 0 size 0", "x.cm:4: size must be a whole number of at least 1, not '0'"),
        ("0->1 start 0 size 2MB", "size must be a whole number of at least 1, not '2MB'"),
        ("0->1 size 10", "needs either a start in picoseconds or a trigger, not both"),
        ("0->1 size 10 start 0 trigger 1", "needs either a start in picoseconds or a trigger, not both"),
        ("0->1 start -1 size 10", "start must be a number of picoseconds of at least 0, not '-1'"),
        ("0->1 start nan size 10", "not 'nan'"),
        ("0->1 start 1_0 size 10", "not '1_0'"),
        ("0->1 strat 0 size 10", "unknown word 'strat'; did you mean 'start'?"),
        ("0->1 zzz 0 size 10", "unknown word 'zzz'; valid: id, start, size, "),
        ("0->1 start 0 size", "size needs a value"),
        ("0->1 start 0 start 1 size 8", "start is given twice"),
        ("0->1 id 0 start 0 size 8", "id must be a whole number of at least 1, not '0'"),
        ("0->1 addon trigger 1 size 8", "addon connections are not supported"),
        ("0->4 start 0 size 10", "x.cm:4: there is no node 4; nodes are 0 to 3"),
        ("2->2 start 0 size 10", "x.cm:4: node 2 sends to itself"),
        ("0->1 trigger 5 size 10", "trigger 5 is not defined; write a line such as: trigger id 5 oneshot"),
        ("0-1 start 0 size 10", "'0-1' begins no line"),
        ("failure switch_type TOR", "link failures do not belong"),
    ],
)
def test_a_bad_connection_is_named_by_line(line: str, message: str) -> None:
    with pytest.raises(FlowListError) as caught:
        parse_flow_list(HEAD.format(1, 0) + line, "x.cm")
    assert message in str(caught.value)
    assert caught.value.line == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x.cm: there is no line 'Nodes N' before the connections"),
        ("Nodes\n", "x.cm:1: expected: Nodes NUMBER"),
        ("Nodes 2\n", "x.cm: there are no flows"),
        ("Nodes 2\nConnections 2\n0->1 start 0 size 1\n", "x.cm: the header says Connections 2, but 1 follow"),
        ("Nodes 2\nConnections 1\n0->1 start 0 size 1\nNodes 3\n", "x.cm:4: 'Nodes' begins no line"),
        ("Nodes 2\nFailures 1\n", "link failures do not belong"),
        (HEAD.format(0, 1) + "trigger oneshot", "x.cm:4: expected: trigger id N oneshot, trigger id N multishot"),
        (HEAD.format(0, 1) + "trigger id 1 barrier", "barrier count N"),
        (HEAD.format(0, 1) + "trigger id 1 barrier 4", "x.cm:4: unknown word '4' in a trigger"),
        (HEAD.format(0, 2) + "trigger id 1 oneshot\ntrigger id 1 oneshot", "x.cm:5: trigger 1 is defined twice"),
        (
            HEAD.format(2, 0) + "0->1 id 3 start 0 size 1\n1->2 id 3 start 0 size 1",
            "x.cm:5: another flow has id 3; ids must be unique",
        ),
        (
            HEAD.format(1, 1) + "0->1 trigger 1 size 1 send_done_trigger 1\ntrigger id 1 oneshot",
            "x.cm:4: flow 1 never starts: trigger 1 is not fired often enough",
        ),
        (
            HEAD.format(2, 1)
            + "0->1 start 0 size 1 send_done_trigger 1\n1->2 start 0 size 1 send_done_trigger 1\ntrigger id 1 oneshot",
            "x.cm: trigger 1 (oneshot) is fired 2 times, but acts at 1",
        ),
    ],
)
def test_a_bad_matrix_is_refused(text: str, message: str) -> None:
    with pytest.raises(FlowListError) as caught:
        parse_flow_list(text, "x.cm")
    assert message in str(caught.value)


# -- CSV --------------------------------------------------------------------------------------------------------------


def test_csv_with_units_comments_and_columns_in_any_order() -> None:
    text = "\ufeff# by hand\nstart, src ,dst,bytes\n0,0,1,100\n\n1.5ms,1,3,200\n2 us,3,0,300\n,2,0,400\n"
    flow_list = parse_flow_list(text, "flows.csv")
    assert flow_list.nodes == 4
    assert flow_list.flows == (
        Flow(1, 0, 1, 100, 0.0),
        Flow(2, 1, 3, 200, 0.0015),
        Flow(3, 3, 0, 300, 2e-6),
        Flow(4, 2, 0, 400, 0.0),
    )
    assert [flow.line for flow in flow_list.flows] == [3, 5, 6, 7]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f.csv: the first row must name the columns; missing: src, dst, bytes"),
        ("src,dst,size\n", "f.csv:1: the first row must name the columns; missing: bytes"),
        ("src,dst,bytes,prio\n", "f.csv:1: column 'prio' is unknown or there twice; valid: src, dst, bytes, start, id"),
        ("src,dst,bytes\n0,1\n", "f.csv:2: expected 3 fields (src, dst, bytes), not 2"),
        ("src,dst,bytes\n0,1,2.5\n", "f.csv:2: bytes must be a whole number, not '2.5'"),
        ("src,dst,bytes\n0,1,0\n", "f.csv:2: a flow has at least 1 byte, not 0"),
        ("src,dst,bytes,start\n0,1,5,3h\n", "f.csv:2: start '3h' is no time; write seconds such as 0.25"),
        ("src,dst,bytes,start\n0,1,5,-3\n", "f.csv:2: start '-3' is no time"),
        ('src,dst,bytes\n0,1,"5\n', "f.csv:2: not CSV: "),
        ("src,dst,bytes\n", "f.csv: there are no flows"),
        ("src,dst,bytes,id\n0,1,5,1\n0,2,5,1\n", "f.csv:3: another flow has id 1"),
    ],
)
def test_a_bad_csv_is_refused_by_line(text: str, message: str) -> None:
    with pytest.raises(FlowListError) as caught:
        parse_flow_list(text, "f.csv")
    assert message in str(caught.value)


# -- reading ----------------------------------------------------------------------------------------------------------


def test_the_format_is_guessed_from_the_text_if_the_name_says_nothing() -> None:
    assert parse_flow_list("Nodes 2\nConnections 1\n0->1 start 0 size 5", "a.txt").nodes == 2
    assert parse_flow_list("src,dst,bytes\n0,2,5", "a.txt").nodes == 3
    assert parse_flow_list("src,dst,bytes\n0,2,5", "a.cm", "csv").nodes == 3
    with pytest.raises(FlowListError, match=r"a\.txt: neither a connection matrix .* nor CSV"):
        parse_flow_list("hello", "a.txt")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FlowListError, match=r"none\.cm: cannot be read: No such file or directory"):
        read_flow_list(tmp_path / "none.cm")
    (tmp_path / "binary.cm").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FlowListError, match="is not a text file in UTF-8"):
        read_flow_list(tmp_path / "binary.cm")


KEYWORDS = ("Nodes", "Connections", "Triggers", "0->1", "1->0", "trigger", "id", "start", "size", "barrier", "oneshot")
ODDITIES = ("0", "1", "2", "\n", "\n ", ",", "src,dst,bytes", '"', "\x00", "9" * 5000, "1e999", "send_done_trigger")
WORDS = st.sampled_from(KEYWORDS + ODDITIES)


@given(st.lists(WORDS, max_size=25).map(" ".join), st.sampled_from(["x.cm", "x.csv", "x"]))
def test_any_text_gives_flows_or_one_clean_error(text: str, source: str) -> None:
    message = ""
    try:
        assert parse_flow_list(text, source).flows
    except FlowListError as error:
        message = str(error)
    assert not message or message.startswith(source)
    assert "\n" not in message
    assert len(message) < 300


@given(
    st.lists(
        st.tuples(st.integers(0, 7), st.integers(1, 7), st.integers(1, 10**15), st.integers(0, 10**15)), min_size=1
    )
)
def test_what_is_written_is_what_is_read(rows: list[tuple[int, int, int, int]]) -> None:
    lines = [f"{src}->{(src + hop) % 8} start {start} size {size}" for src, hop, size, start in rows]
    flow_list = parse_flow_list("\n".join(["Nodes 8", f"Connections {len(rows)}", *lines]), "x.cm")
    assert [(flow.src, flow.dst, flow.bytes, flow.start) for flow in flow_list.flows] == [
        (src, (src + hop) % 8, size, start / 1e12) for src, hop, size, start in rows
    ]


# -- orchestrating ----------------------------------------------------------------------------------------------------


def test_each_flow_is_a_transfer_with_a_connection_of_its_own() -> None:
    flow_list = FlowList(3, (Flow(1, 0, 2, 50), Flow(5, 0, 2, 60)))
    orchestrator = FlowListOrchestrator(flow_list, cluster(4), "new")
    announce, *runs = orchestrator.on(Start(), 0.0)
    assert announce == Announce("flows", {("h0", "h2"): 110}, 0.0)
    ends = (Endpoint("h0", 0), Endpoint("h2", 0))
    assert runs == [
        Run(Transfer("flow1", *ends, 50, channel="flow1", connection="new", phase="flows")),
        Run(Transfer("flow5", *ends, 60, channel="flow5", connection="new", phase="flows")),
    ]


def test_nodes_are_ranks_and_ranks_of_one_host_demand_nothing() -> None:
    gpus = Cluster((HostSpec("a", nics=2, gpus=2), HostSpec("b", nics=2, gpus=2)))
    flow_list = FlowList(4, (Flow(1, 0, 1, 50), Flow(2, 1, 3, 60)))
    announce, first, second = FlowListOrchestrator(flow_list, gpus).on(Start(), 0.0)
    assert announce == Announce("flows", {("a", "b"): 60}, 0.0)
    assert isinstance(first, Run)
    assert isinstance(second, Run)
    assert second.task == Transfer("flow2", Endpoint("a", 1), Endpoint("b", 1), 60, channel="flow2", phase="flows")


def test_flows_start_at_their_times_whatever_their_order() -> None:
    flows = (Flow(1, 0, 1, 1, 3.0), Flow(2, 1, 2, 1, 0.0), Flow(3, 2, 3, 1, 3.0), Flow(4, 3, 0, 1, 0.5))
    assert play(FlowList(4, flows)) == [(0, "flow2"), (0.5, "flow4"), (3, "flow1"), (3, "flow3")]


def test_slack_lasts_until_the_first_start() -> None:
    flow_list = FlowList(2, (Flow(1, 0, 1, 9, 2.5), Flow(2, 1, 0, 9, 4.0)))
    announce, timer = FlowListOrchestrator(flow_list, cluster(4)).on(Start(), 0.0)
    assert announce == Announce("flows", {("h0", "h1"): 9, ("h1", "h0"): 9}, 2.5)
    assert isinstance(timer, SetTimer)
    assert timer.at == 2.5


def triggered(kind: str, count: int = 1) -> FlowList:
    flows = (
        Flow(1, 0, 1, 1, 0.0, fires=(1,)),
        Flow(2, 0, 2, 1, 5.0, fires=(1,)),
        Flow(3, 1, 2, 1, None, trigger=1),
        Flow(4, 1, 3, 1, None, trigger=1),
    )
    return FlowList(4, flows, (Trigger(1, kind, count),))  # type: ignore[arg-type]


def test_a_multishot_starts_one_flow_each_time_and_a_barrier_all_at_the_last() -> None:
    assert play(triggered("multishot")) == [(0, "flow1"), (1, "flow3"), (5, "flow2"), (6, "flow4")]
    assert play(triggered("barrier", 2)) == [(0, "flow1"), (5, "flow2"), (6, "flow3"), (6, "flow4")]


def test_a_oneshot_starts_all_flows_and_chains_go_on() -> None:
    flows = (
        Flow(1, 0, 1, 1, 0.0, fires=(1,)),
        Flow(2, 1, 2, 1, None, trigger=1, fires=(2,)),
        Flow(3, 1, 3, 1, None, trigger=1),
        Flow(4, 2, 3, 1, None, trigger=2),
    )
    flow_list = FlowList(4, flows, (Trigger(1, "oneshot"), Trigger(2, "oneshot")))
    flow_list.check()
    assert play(flow_list) == [(0, "flow1"), (1, "flow2"), (1, "flow3"), (2, "flow4")]
    assert play(flow_list, failing="flow2") == [(0, "flow1"), (1, "flow2"), (1, "flow3")]


def test_more_nodes_than_ranks_are_refused() -> None:
    flow_list = read_flow_list(DATA / "incast.cm")
    with pytest.raises(FlowListError, match=r"incast\.cm: 16 nodes need as many ranks, but the cluster has 4"):
        FlowListOrchestrator(flow_list, cluster(4))


@pytest.mark.parametrize("format", ["auto", "htsim", "csv"])
@pytest.mark.parametrize(
    "content",
    [
        "root:$y$j9T$secretsecret:19000:0:99999:7:::\n",
        "hunter2secret\n",
        "secret,secret,secret\n",
        "secret->secret\n",
        "Nodes secret\n",
        "trigger secret\n",
        "0->1 secret\n",
    ],
)
def test_a_file_that_is_no_flow_list_is_not_shown(tmp_path: Path, content: str, format: FlowListFormat) -> None:
    """A scenario may be another's, and emulations run as root: no word of a password file may be in the error."""
    path = tmp_path / "shadow"
    path.write_text(content)
    with pytest.raises(FlowListError) as caught:
        read_flow_list(path, format)
    assert "secret" not in str(caught.value)
    assert str(caught.value).startswith(str(path))
