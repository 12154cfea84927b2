# SPDX-License-Identifier: Apache-2.0
"""Plans and answers, beside the tool."""
from __future__ import annotations

import json
import os
import subprocess
import threading

import pytest

import kolocc

LOG = "tests/data/logs/two-hosts-far-nic.log"
TABLE = "tests/data/logs/all-reduce-2x8h100.txt"
XML = "tests/data/topologies/synthetic/h100-rail-8nic-400g.xml"


def tool(*words):
    build = os.environ.get("KOLO_BUILD", "build/debug")
    return json.loads(subprocess.run([f"{build}/kolo", *words, "--json"], check=True, stdout=subprocess.PIPE).stdout)


def without_times(answer):
    return {k: v for k, v in answer.items() if not k.startswith("search_")}


def test_plan_is_that_of_the_tool():
    plan = kolocc.plan("dgx-h100", hosts=128)
    expected = tool("graph", "--machine", "dgx-h100", "--hosts", "128")
    assert without_times(plan.to_dict()) == without_times(expected)
    assert (plan.hosts, plan.gpus_per_host, plan.ranks, plan.topology) == (128, 8, 1024, "dgx-h100")
    assert plan.channels == expected["nchannels"] == len(plan.rings)
    assert sorted(plan.rings[0]) == list(range(1024))
    assert plan.graphs["ring"].bw_intra == expected["graphs"]["ring"]["bwIntra"]


def test_estimates():
    plan = kolocc.plan("dgx-h100", hosts=2)
    one, *more = plan.estimate("all_reduce", [1 << 20, 64 << 20], dtype="bf16")
    choice = tool("explain", "all_reduce", "1M", "--type", "bf16", "--machine", "dgx-h100", "--hosts", "2")["choice"]
    assert (one.bytes, one.time_us, one.algorithm, one.bus_gbs) == (1 << 20, choice["time_us"], choice["algorithm"], choice["bus_gbs"])
    assert len(more) == 1 and more[0].time_us > one.time_us
    assert kolocc.estimate("all_reduce", 1 << 20, "dgx-h100", hosts=2, dtype="bf16") == one
    assert plan.estimate("barrier").time_us > 0
    with pytest.raises(kolocc.InvalidUsage, match="sends and receives"):
        plan.estimate("alltoall", 1024)
    with pytest.raises(ValueError, match="no size"):
        plan.estimate("all_reduce")


def test_tuning():
    plan = kolocc.plan("dgx-h100", hosts=2)
    tuning, expected = plan.tuning(), tool("graph", "--machine", "dgx-h100", "--hosts", "2")["tuning"]["model"]
    assert (tuning.nranks, tuning.nnodes, tuning.nchannels) == (16, 2, plan.channels)
    for f in tuning.functions:
        for a in tuning.algorithms:
            for p in tuning.protocols:
                assert (tuning.bandwidths[f][a][p], tuning.latencies[f][a][p]) == (expected[f][a][p]["bw"], expected[f][a][p]["lat"])
        assert [e.bytes for e in tuning.best_by_size[f]] == list(tuning.message_sizes) == [1 << i for i in range(31)]
    best = tuning.best_by_size["AllReduce"][20]
    assert best == plan.estimate("all_reduce", 1 << 20)
    assert tuning.bandwidths["AllReduce"][best.algorithm][best.protocol] > 0


@pytest.mark.parametrize("ask, words", [
    (lambda: kolocc.explain("pair", "GPU/0", "GPU/3", machine="dgx-h100"), ("pair", "GPU/0", "GPU/3")),
    (lambda: kolocc.explain("nics", machine="dgx-h100"), ("nics",)),
    (lambda: kolocc.explain("search", "ring", machine="dgx-h100"), ("search", "ring")),
    (lambda: kolocc.explain("all_reduce", machine="dgx-h100", bytes=1 << 20), ("all_reduce", "1M")),
    (lambda: kolocc.explain("all_gather", machine="dgx-h100", bytes=1024, last=1 << 30, dtype="fp16"), ("all_gather", "1K-1G", "--type", "fp16")),
    (lambda: kolocc.explain("alltoall", machine="dgx-h100"), ("alltoall",)),
])
def test_explain(ask, words):
    answer = ask()
    assert answer.to_dict() == tool("explain", *words, "--machine", "dgx-h100")
    assert answer.schema.startswith("kolo.") and (answer.summary or "all" in words[0])


def test_order():
    order = kolocc.explain("order", "all_reduce", machine="dgx-h100", bytes=128 << 10, dtype="bf16", settings={"NCCL_ALGO": "Ring"})
    expected = tool("explain", "order", "all_reduce", "128K", "--type", "bf16", "--machine", "dgx-h100", "--with", "NCCL_ALGO=Ring")
    assert order.to_dict() == expected
    assert (order.algorithm, order.rounding, order.equal) == ("Ring", "each_addition", None)
    assert sum(r.count for r in order.ranges) == expected["count"]
    assert len(order.sums) == 1 + max(r.sum for r in order.ranges)
    assert order.invariant["counts"].verdict == "no" and order.invariant["counts"].element is not None
    assert any(s.verdict == "yes" for s in order.cheapest)
    lint = kolocc.explain("order", "all_reduce", machine="dgx-h100", bytes=128 << 10, dtype="bf16", settings={"NCCL_ALGO": "Ring"}, lint=True)
    assert lint.schema == "kolo.order_lint/1" and lint.lints == order.lints and lint.lints
    plan = kolocc.plan("dgx-h100", settings={"NCCL_ALGO": "Ring"})
    assert plan.explain("order", "all_reduce", bytes=4000, vs=4000).equal
    assert not plan.explain("order", "all_reduce", bytes=4000, vs="8000").equal
    blocks = plan.explain("order", "reduce_scatter", bytes=1 << 20)
    assert {r.block for r in blocks.ranges} == set(range(8))


def test_traffic():
    traffic = kolocc.explain("traffic", "all_reduce", machine="dgx-h100", hosts=2, bytes=64 << 20, pod=1)
    expected = tool("explain", "traffic", "all_reduce", "64M", "--machine", "dgx-h100", "--hosts", "2", "--pod", "1")
    assert traffic.to_dict() == expected
    plan = kolocc.plan("dgx-h100", hosts=4, settings={"NCCL_ALGO": "Ring"})
    mixed, sorted_ = (plan.explain("traffic", "all_reduce", bytes=64 << 20, pod=pod) for pod in ([0, 1, 0, 1], 2))
    assert sorted(mixed.best_order) == [0, 1, 2, 3] and mixed.across_pods > sorted_.across_pods
    assert mixed.to_dict()["best_order"]["across_pods"] <= sorted_.across_pods
    assert traffic.across_pods == traffic.across_hosts == sum(n.bytes_out for n in traffic.nics) > 0


def test_topologies():
    with open(XML, "rb") as f:
        text = f.read()
    assert kolocc.topo(topo=XML).to_dict() == tool("topo", "--topo", XML)
    assert kolocc.plan(topo=text).rings == kolocc.plan(topo=XML).rings
    assert kolocc.explain("path", "GPU/0", "NET/0", topo=XML).schema == "kolo.path/1"
    with pytest.raises(kolocc.InternalError, match="text in memory:1"):
        kolocc.topo(topo=b"<system")
    with pytest.raises(OSError, match="/nonexistent"):
        kolocc.topo(topo="/nonexistent.xml")


def test_diff():
    a, b = kolocc.plan("dgx-h100", hosts=2), kolocc.plan("dgx-h100", hosts=2, without=["NET/3"], settings={"NCCL_ALGO": "Ring"})
    expected = tool("explain", "diff", "--machine", "dgx-h100", "--hosts", "2", "--without", "NET/3", "--with", "NCCL_ALGO=Ring")
    assert kolocc.diff(a, b).to_dict() == expected
    assert kolocc.diff(a, b).changes and not kolocc.diff(a, a).changes
    assert kolocc.diff(a, b).cause == expected["cause"]["text"]


def test_logs():
    answer = kolocc.explain_log(LOG)
    assert answer.to_dict() == tool("explain", "log", LOG)
    assert answer.problem and answer.findings[0].text and answer.findings[0].line
    with open(LOG, "rb") as f:
        assert kolocc.explain_log(f.read()).findings[0].code == answer.findings[0].code
    assert kolocc.explain_bench(TABLE).to_dict() == tool("explain", "bench", TABLE)
    assert kolocc.explain_log(LOG, machine="dgx-h100", hosts=2).to_dict() == tool("explain", "log", LOG, "--machine", "dgx-h100", "--hosts", "2")


def test_machines():
    names = [m.name for m in kolocc.machines()]
    assert "dgx-h100" in names and len(names) == len(set(names))
    assert names == [m["name"] for m in tool("topo", "--machines")["machines"]]


@pytest.mark.parametrize("call, kind, words", [
    (lambda: kolocc.plan("dgx-nope"), kolocc.InvalidUsage, "dgx-nope"),
    (lambda: kolocc.plan("dgx-h100", nccl="9.9"), ValueError, "9.9"),
    (lambda: kolocc.plan("dgx-h100", hosts=-1), ValueError, "hosts is -1"),
    (lambda: kolocc.plan("dgx-h100", graph="star"), ValueError, "star"),
    (lambda: kolocc.plan("dgx-h100", gpus=[0, 99]), kolocc.InvalidUsage, "0,99"),
    (lambda: kolocc.plan("dgx-h100", colour=3), TypeError, "colour"),
    (lambda: kolocc.explain("pair", "GPU/0", machine="dgx-h100"), TypeError, "two nodes"),
    (lambda: kolocc.explain("pair", "GPU/0", "GPU/8", machine="dgx-h100"), kolocc.InvalidUsage, "GPU/8"),
    (lambda: kolocc.explain("order", machine="dgx-h100"), TypeError, "takes a collective"),
    (lambda: kolocc.explain("order", "all_gather", machine="dgx-h100", bytes=8), ValueError, "adds nothing"),
    (lambda: kolocc.explain("order", "all_reduce", machine="dgx-h100", bytes=8, vs="x"), ValueError, "vs x"),
    (lambda: kolocc.explain("order", "all_reduce", machine="dgx-h100", bytes=8, group=[0]), ValueError, "at least 1"),
    (lambda: kolocc.explain("traffic", "all_reduce", machine="dgx-h100", bytes=8, vs="x"), TypeError, "vs"),
    (lambda: kolocc.explain("traffic", "alltoall", machine="dgx-h100", bytes=8), ValueError, "expected all_reduce"),
    (lambda: kolocc.explain("whatever", machine="dgx-h100"), ValueError, "whatever"),
    (lambda: kolocc.explain("nics", machine="dgx-h100", bytes=3), TypeError, "takes no bytes"),
    (lambda: kolocc.explain_log(), ValueError, "n is 0"),
])
def test_bad_questions(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_threads():
    expected = {m: kolocc.plan(m).rings for m in ("dgx-h100", "dgx-a100")}
    failed = []

    def ask(machine):
        for _ in range(5):
            if kolocc.plan(machine).rings != expected[machine]:
                failed.append(machine)

    threads = [threading.Thread(target=ask, args=(m,)) for m in 2 * list(expected)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed
