# SPDX-License-Identifier: Apache-2.0
"""Every collective, by every algorithm and protocol that it can be forced to, with ranks as processes, as threads and both: every
element of every result is right for every type and operation, and the forced way ran.

Each way (collective, algorithm, protocol) runs in some of the layouts, so that all layouts have their turn, in under a minute.
KOLO_MATRIX=all runs every way in every layout, with larger sizes as well: a quarter of an hour or more.
"""
import sys
import tempfile

import matrix
import tool
from matrix import ALL, FLAT, NVLS, ONE_SHOT, PAT, RING, TREE

LAYOUTS = [("processes", 2, "--np 2"), ("threads", 3, "--np 1 -t 3"), ("processes", 5, "--np 5"), ("both", 4, "--np 2 -t 2"),
           ("threads", 8, "--np 1 -t 8"), ("processes", 3, "--np 3"), ("threads", 2, "--np 1 -t 2"), ("both", 8, "--np 4 -t 2"),
           ("threads", 5, "--np 1 -t 5"), ("processes", 8, "--np 8"), ("both", 16, "--np 8 -t 2"), ("processes", 16, "--np 16"),
           ("threads", 16, "--np 1 -t 16")]
WAYS = {
    "all_reduce": RING + TREE + NVLS + ONE_SHOT + FLAT,
    "all_gather": RING + PAT + NVLS + FLAT,
    "reduce_scatter": RING + PAT + NVLS + FLAT,
    "broadcast": RING + FLAT,
    "reduce": RING + FLAT,
    **matrix.MESSAGES,
}
SWITCHED = tool.machine("h100-nvsw-0nic")  # a machine that has NVLS, for 3 to 8 ranks
ONE, SMALL, LARGE = "-b 20000 -e 20000", "-b 40 -e 120000 -f 50", "-b 8 -e 4M -f 23"
PER_WAY = 2  # layouts, unless all


def serves(way, collective, ranks):
    if way == NVLS[0]:
        return 3 <= ranks <= 8
    return collective != "hypercube" or ranks & (ranks - 1) == 0


def settings(way):
    return {**matrix.settings(way), **({"NCCL_TOPO_FILE": SWITCHED} if way == NVLS[0] else {})}


def run(judge, collective, way, words):
    """Its error; None: there is none."""
    with tempfile.TemporaryDirectory() as logs:
        debug = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "TUNING", "NCCL_DEBUG_FILE": logs + "/%p"} if way else {}
        out = tool.run("perf", collective, *words, **debug, **settings(way))
        return judge.fault(out, matrix.log_of(logs), collective, way)


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
    judge, first = matrix.Judge(), 0
    for collective, ways in WAYS.items():
        for way in ways:
            for kind, ranks, words in layouts_of(collective, way, first):
                name = f"{collective} {'/'.join(way) if way else 'messages'} {ranks} ranks, {kind}"
                for size in sizes_of(ranks):
                    root = "-r all" if collective in matrix.ROOTED else ""
                    all_words = f"{words} {size} -n 1 -w 0 -d all -o all -T 100 {root}".split()
                    judge.note(f"{name}: kolo perf {collective} {' '.join(all_words)}", run(judge, collective, way, all_words))
            first += PER_WAY
    return judge.report(WAYS)


if __name__ == "__main__":
    sys.exit(main())
