# SPDX-License-Identifier: Apache-2.0
"""Every collective between emulated hosts, by every algorithm and protocol that it can be forced to there, on machines of
tests/data/, with processes and threads, in and out of place: every element of every result is right, the forced way ran, and
the network carried it.

Each way (collective, algorithm, protocol) runs in some of the layouts, so that all layouts have their turn, in under a minute.
KOLO_MATRIX=all runs every way in every layout, with every type and operation.
"""
import os
import sys
import tempfile

import matrix
import tool
from matrix import ALL, ONE_SHOT, PAT, RING, TREE

MACHINES = [None, "dgx1v-hcm-4nic", "a100-nvsw-8nic-200g", "h100-rail-8nic-400g", "pcie-8gpu-4nic-100g"]
PLACES = [(4, "--np 4 --hosts 2"), (6, "--np 6 --hosts 3"), (8, "--np 4 -t 2 --hosts 2"), (3, "--np 3 --hosts 3"),
          (2, "--np 2 --hosts 2"), (16, "--np 16 --hosts 2"), (12, "--np 3 -t 4 --hosts 3")]
LAYOUTS = [(ranks, words, name) for i, (ranks, words) in enumerate(PLACES)
           for name in (MACHINES[i % len(MACHINES):] + MACHINES[:i % len(MACHINES)])]
LAYOUTS = [LAYOUTS[(i * 8) % len(LAYOUTS)] for i in range(len(LAYOUTS))]  # places and machines change with every one
WAYS = {
    "all_reduce": RING + TREE + ONE_SHOT,
    "all_gather": RING + PAT,
    "reduce_scatter": RING + PAT,
    "broadcast": RING,
    "reduce": RING,
    **matrix.MESSAGES,
}
PER_WAY = 3  # layouts, unless all
BUFFERS = ("4096", "65536", None)  # NCCL_BUFFSIZE: steps smaller than flagged lines, small ones, the usual


def serves(way, collective, layout):
    ranks, words, _ = layout
    if way == PAT[0] and ranks != int(words.split("--hosts ")[1]):
        return False  # one rank per host
    return collective != "hypercube" or ranks & (ranks - 1) == 0


def settings(way, number):
    buffer = BUFFERS[number % len(BUFFERS)]
    return {**({"NCCL_BUFFSIZE": buffer} if buffer else {}), **matrix.settings(way)}


def check(judge, collective, way, layout, number):
    _, place, machine = layout
    size = "-b 8 -e 3M -f 61" if ALL else "-b 40 -e 300K -f 87"
    words = f"{collective} {place} {size} -n 1 -w 0 -T 100".split()
    words += ["--topo", tool.machine(machine)] if machine else []
    words += ["-d", "all", "-o", "all"] if ALL and layout[0] <= 4 else []
    words += ["-r", "all"] if collective in matrix.ROOTED else []
    env = settings(way, number)
    with tempfile.TemporaryDirectory() as logs:
        out = tool.run("perf", *words, NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,NET,TUNING", NCCL_DEBUG_FILE=logs + "/%h.%p",
                       **env)
        log = matrix.log_of(logs)
    label = " ".join([f"{k}={v}" for k, v in env.items()] + ["kolo perf", *words])
    judge.note(label, judge.fault(out, log, collective, way) or matrix.fault_of_network(log))


def check_namespaces(judge):
    """Two hosts with an interface each."""
    words = "all_reduce --np 4 --hosts 2 --netns -b 8 -e 1M -f 16 -n 1 -w 0".split()
    out = tool.run("perf", *words)
    if out.returncode and "namespace" in out.stderr and os.geteuid():
        print("skipped namespaces:", out.stderr.strip(), file=sys.stderr)
    else:
        judge.note("--netns", judge.fault(out, "", "all_reduce", None))


def check_shared(judge):
    """Two ranks that both send do so over one connection."""
    with tempfile.TemporaryDirectory() as logs:
        out = tool.run("perf", *"all_reduce --np 2 --hosts 2 -b 8 -e 1M -f 16 -n 1 -w 0".split(), NCCL_DEBUG="INFO",
                       NCCL_DEBUG_SUBSYS="NET", NCCL_DEBUG_FILE=logs + "/%h.%p", NCCL_NSOCKS_PERTHREAD="1", NCCL_SOCKET_NTHREADS="0",
                       NCCL_ALGO="ring")
        log = matrix.log_of(logs)
    fault = judge.fault(out, "", "all_reduce", None)
    if not fault and "sends to rank 0" not in log: fault = "rank 1 sends nothing"
    if not fault and "over the connection that goes the other way" not in log: fault = "each way has a connection of its own"
    judge.note("one connection for both ways", fault)


def main():
    judge, number = matrix.Judge(), 0
    check_namespaces(judge)
    check_shared(judge)
    for collective, ways in WAYS.items():
        for way in ways:
            able = [layout for layout in LAYOUTS if serves(way, collective, layout)]
            for i in range(len(able) if ALL else PER_WAY):
                check(judge, collective, way, able[(number + i) % len(able)], number + i)
            number += PER_WAY
    return judge.report(WAYS)


if __name__ == "__main__":
    sys.exit(main())
