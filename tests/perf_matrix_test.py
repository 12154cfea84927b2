# SPDX-License-Identifier: Apache-2.0
"""Every collective, by every algorithm and protocol that it can be forced to, with ranks as processes, as threads and both: every
element of every result is right for every type and operation, and what ran is what was forced.

Each way (collective, algorithm, protocol) runs in some of the layouts, so that all layouts have their turn, in about a minute.
KOLO_MATRIX=all runs every way in every layout, with larger sizes as well: a quarter of an hour or more.
"""
import os
import re
import sys
import tempfile

import tool

LAYOUTS = [("processes", 2, "--np 2"), ("threads", 3, "--np 1 -t 3"), ("processes", 5, "--np 5"), ("both", 4, "--np 2 -t 2"),
           ("threads", 8, "--np 1 -t 8"), ("processes", 3, "--np 3"), ("threads", 2, "--np 1 -t 2"), ("both", 8, "--np 4 -t 2"),
           ("threads", 5, "--np 1 -t 5"), ("processes", 8, "--np 8"), ("both", 16, "--np 8 -t 2"), ("processes", 16, "--np 16"),
           ("threads", 16, "--np 1 -t 16")]
PROTOS = ("LL", "LL128", "Simple")
RING = [("Ring", proto) for proto in PROTOS]
TREE = [("Tree", proto) for proto in PROTOS]
PAT, NVLS = [("PAT", "Simple")], [("NVLS", "Simple")]
WAYS = {
    "all_reduce": RING + TREE + NVLS,
    "all_gather": RING + PAT + NVLS,
    "reduce_scatter": RING + PAT + NVLS,
    "broadcast": RING,
    "reduce": RING,
    # of messages, which have neither
    "alltoall": [None], "alltoallv": [None], "gather": [None], "scatter": [None], "sendrecv": [None], "hypercube": [None],
}
TOLD = {"all_reduce": "AllReduce", "all_gather": "AllGather", "reduce_scatter": "ReduceScatter", "broadcast": "Broadcast",
        "reduce": "Reduce"}
SWITCHED = tool.machine("h100-nvsw-0nic")  # a machine that has NVLS, for 3 to 8 ranks
ONE, SMALL, LARGE = "-b 20000 -e 20000", "-b 40 -e 120000 -f 50", "-b 8 -e 4M -f 23"
ALL = os.environ.get("KOLO_MATRIX") == "all"
PER_WAY = 3  # layouts, unless all


def serves(way, collective, ranks):
    if way == NVLS[0]:
        return 3 <= ranks <= 8
    return collective != "hypercube" or ranks & (ranks - 1) == 0


def settings(way):
    if not way:
        return {}
    found = {"NCCL_ALGO": way[0], "NCCL_PROTO": way[1]}
    if way[0] == "PAT":
        found["NCCL_PAT_ENABLE"] = "1"
    if way[0] == "NVLS":
        found["NCCL_TOPO_FILE"] = SWITCHED
    return found


def choices(folder):
    """What rank 0 says of its calls: (function, algorithm, protocol)."""
    found = set()
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="utf-8") as log:
            found |= set(re.findall(r"(\w+): \d+ Bytes -> Algo (\w+) proto (\w+)", log.read()))
    return found


class Count:
    runs = results = 0


def check(label, collective, way, words):
    """Run it; the results that were compared."""
    with tempfile.TemporaryDirectory() as logs:
        debug = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "TUNING", "NCCL_DEBUG_FILE": logs + "/%p"} if way else {}
        out = tool.run("perf", collective, *words, **debug, **settings(way))
        ran = choices(logs)
    rows = re.findall(r"^ +\d+ +\d+ .*? +(\d+|N/A) +[\d.]+ +[\d.]+ +[\d.]+ +(\d+|N/A)$", out.stdout, re.M)
    if out.returncode or "# Out of bounds values : 0 OK" not in out.stdout or not rows:
        return f"{label}: exit {out.returncode}\n{out.stdout[-2000:]}{out.stderr[-2000:]}"
    wrong = [row for row in rows if set(row) - {"0", "N/A"}]
    if wrong:
        return f"{label}: {len(wrong)} rows with wrong elements"
    if way and ran != {(TOLD[collective], way[0].upper(), way[1].upper())}:
        return f"{label}: what ran is {sorted(ran)}"
    Count.runs += 1
    Count.results += sum(value == "0" for row in rows for value in row)
    return None


def sizes_of(ranks):
    if ALL:
        return [SMALL, LARGE] if ranks <= 5 else [SMALL]
    return [SMALL] if ranks <= 5 else [ONE]


def layouts_of(collective, way, first):
    able = [layout for layout in LAYOUTS if serves(way, collective, layout[1])]
    if ALL:
        return able
    return [able[(first + i) % len(able)] for i in range(PER_WAY)]


def main():
    bad, first = [], 0
    for collective, ways in WAYS.items():
        for way in ways:
            for kind, ranks, words in layouts_of(collective, way, first):
                name = f"{collective} {'/'.join(way) if way else 'messages'} {ranks} ranks, {kind}"
                for size in sizes_of(ranks):
                    root = "-r all" if collective in ("broadcast", "reduce") else ""
                    all_words = f"{words} {size} -n 1 -w 0 -d all -o all -T 100 {root}".split()
                    bad.append(check(f"{name}: kolo perf {collective} {' '.join(all_words)}", collective, way, all_words))
            first += PER_WAY
    bad = [text for text in bad if text]
    print("\n".join(bad))
    print(f"{sum(map(len, WAYS.values()))} ways, {Count.runs} runs, {Count.results} results compared, {len(bad)} runs failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
