# SPDX-License-Identifier: Apache-2.0
"""Every collective between emulated hosts, by every algorithm and protocol that it can be forced to there, on machines of
tests/data/, with processes and threads, in and out of place: every element of every result is right, what ran is what was forced, and
the network carried it.

Each way (collective, algorithm, protocol) runs in some of the layouts, so that all layouts have their turn, in under a minute.
KOLO_MATRIX=all runs every way in every layout, with every type and operation.
"""
import os
import re
import sys
import tempfile

import tool

MACHINES = [None, "dgx1v-hcm-4nic", "a100-nvsw-8nic-200g", "h100-rail-8nic-400g", "pcie-8gpu-4nic-100g"]
PLACES = [(4, "--np 4 --hosts 2"), (6, "--np 6 --hosts 3"), (8, "--np 4 -t 2 --hosts 2"), (3, "--np 3 --hosts 3"),
          (2, "--np 2 --hosts 2"), (16, "--np 16 --hosts 2"), (12, "--np 3 -t 4 --hosts 3")]
LAYOUTS = [(ranks, words, name) for i, (ranks, words) in enumerate(PLACES)
           for name in (MACHINES[i % len(MACHINES):] + MACHINES[:i % len(MACHINES)])]
LAYOUTS = [LAYOUTS[(i * 8) % len(LAYOUTS)] for i in range(len(LAYOUTS))]  # places and machines change with every one
PROTOS = ("LL", "LL128", "Simple")
RING = [("Ring", proto) for proto in PROTOS]
TREE = [("Tree", proto) for proto in PROTOS]
PAT = [("PAT", "Simple")]
WAYS = {
    "all_reduce": RING + TREE,
    "all_gather": RING + PAT,
    "reduce_scatter": RING + PAT,
    "broadcast": RING,
    "reduce": RING,
    # of messages, which have neither
    "alltoall": [None], "alltoallv": [None], "gather": [None], "scatter": [None], "sendrecv": [None], "hypercube": [None],
}
TOLD = {"all_reduce": "AllReduce", "all_gather": "AllGather", "reduce_scatter": "ReduceScatter", "broadcast": "Broadcast",
        "reduce": "Reduce"}
ALL = os.environ.get("KOLO_MATRIX") == "all"
PER_WAY = 3  # layouts, unless all
BUFFERS = ("4096", "65536", None)  # NCCL_BUFFSIZE: steps smaller than flagged lines, small ones, the usual


def serves(way, collective, layout):
    ranks, words, _ = layout
    if way == PAT[0] and ranks != int(words.split("--hosts ")[1]):
        return False  # one rank per host
    return collective != "hypercube" or ranks & (ranks - 1) == 0


def settings(way, number):
    found = {}
    if BUFFERS[number % len(BUFFERS)]:
        found["NCCL_BUFFSIZE"] = BUFFERS[number % len(BUFFERS)]
    if way:
        found.update(NCCL_ALGO=way[0], NCCL_PROTO=way[1])
        if way[0] == "PAT":
            found["NCCL_PAT_ENABLE"] = "1"
    return found


def read(folder):
    text = ""
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="utf-8") as log:
            text += log.read()
    return text


class Count:
    runs = results = 0


def wrong_with(out, log, collective, way):
    """What is wrong with a run; None: nothing."""
    rows = re.findall(r"^ +\d+ +\d+ .*? +(\d+|N/A) +[\d.]+ +[\d.]+ +[\d.]+ +(\d+|N/A)$", out.stdout, re.M)
    if out.returncode or "# Out of bounds values : 0 OK" not in out.stdout or not rows:
        return f"exit {out.returncode}\n{out.stdout[-2000:]}{out.stderr[-2000:]}"
    wrong = [row for row in rows if set(row) - {"0", "N/A"}]
    if wrong:
        return f"{len(wrong)} rows with wrong elements"
    ran = set(re.findall(r"(\w+): \d+ Bytes -> Algo (\w+) proto (\w+)", log))
    if way and ran != {(TOLD[collective], way[0].upper(), way[1].upper())}:
        return f"what ran is {sorted(ran)}"
    if " via NET/Socket/" not in log:
        return "no connection goes through the network"
    if " WARN " in log:
        return "it warns: " + next(line for line in log.splitlines() if " WARN " in line)
    Count.runs += 1
    Count.results += sum(value == "0" for row in rows for value in row)
    return None


def check(collective, way, layout, number):
    _, place, machine = layout
    size = "-b 8 -e 3M -f 61" if ALL else "-b 40 -e 300K -f 87"
    words = f"{collective} {place} {size} -n 1 -w 0 -T 100".split()
    words += ["--topo", tool.machine(machine)] if machine else []
    words += ["-d", "all", "-o", "all"] if ALL and layout[0] <= 4 else []
    words += ["-r", "all"] if collective in ("broadcast", "reduce") else []
    env = settings(way, number)
    with tempfile.TemporaryDirectory() as logs:
        out = tool.run("perf", *words, NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,NET,TUNING", NCCL_DEBUG_FILE=logs + "/%h.%p",
                       **env)
        wrong = wrong_with(out, read(logs), collective, way)
    return wrong and " ".join([f"{k}={v}" for k, v in env.items()] + ["kolo perf", *words]) + ": " + wrong


def check_namespaces():
    """Two hosts with an interface each."""
    out = tool.run("perf", "all_reduce", "--np", "4", "--hosts", "2", "--netns", "-b", "8", "-e", "1M", "-f", "16", "-n", "1", "-w", "0")
    if out.returncode and "namespace" in out.stderr and os.geteuid():
        print("skipped namespaces:", out.stderr.strip(), file=sys.stderr)
        return None
    if out.returncode or "# Out of bounds values : 0 OK" not in out.stdout:
        return f"--netns: exit {out.returncode}\n{out.stdout}{out.stderr}"
    Count.runs += 1
    return None


def main():
    bad, number = [check_namespaces()], 0
    for collective, ways in WAYS.items():
        for way in ways:
            able = [layout for layout in LAYOUTS if serves(way, collective, layout)]
            for i in range(len(able) if ALL else PER_WAY):
                bad.append(check(collective, way, able[(number + i) % len(able)], number + i))
            number += PER_WAY
    bad = [text for text in bad if text]
    print("\n".join(bad))
    print(f"{sum(map(len, WAYS.values()))} ways, {Count.runs} runs, {Count.results} results compared, {len(bad)} runs failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
