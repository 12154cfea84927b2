# SPDX-License-Identifier: Apache-2.0
"""Every collective by every algorithm and every protocol, on two and three hosts of five kinds of machines, with all their GPUs
or one of each: where the plan has it, it runs when forced, and every element of every result is right; where the plan refuses it,
the call fails and names the possible ones, which are the plan's. Collectives made of messages likewise.

Machines come from tests/data/, and with KOLO_SHARED real ones as well. In under a minute: every way (collective, algorithm,
protocol) that some plan has runs on one cluster after the other, in turn. KOLO_MATRIX=all runs every way on every cluster, on some
with all types and operations: half an hour or more.
"""
import json
import os
import re
import sys
import tempfile

import matrix
import tool
from matrix import ALL

KINDS = {  # of tests/data/, real; GPUs
    "DGX-1V": ("dgx1v-hcm-4nic", "real/dgx1v-8xv100", 8),
    "A100": ("a100-nvsw-8nic-200g", "real/hgx-a100-8gpu-cx6-alibaba", 8),
    "H100 with rails": ("h100-rail-8nic-400g", "real/oci-bm.gpu.h100.8", 8),
    "PCIe workstation": ("pcie-2cpu-4gpu", "real/xeon-4x3090-pcie3", 4),
    "H100 whose NICs reduce": ("h100-nvsw-8nic-400g-coll", None, 8),
}
ALGORITHMS = ("Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT")
PROTOCOLS = ("LL", "LL128", "Simple")
WAYS = [(algorithm, protocol) for algorithm in ALGORITHMS for protocol in PROTOCOLS]
BUFFERS = ("4096", "65536", None)  # NCCL_BUFFSIZE: steps smaller than flagged lines, small ones, the usual
RANGE = "-b 8 -e 3M -f 61" if ALL else "-b 40 -e 300K -f 87"
TYPES = "-b 20000 -e 20000 -d all -o all"
SIZE = "20000"


class Cluster:
    def __init__(self, file, hosts, gpus, typed):
        self.file, self.hosts, self.ranks, self.typed = file, hosts, hosts * gpus, typed
        self.plan = ["--topo", file, "--hosts", str(hosts), "--constants", "host", "--gpus", ",".join(map(str, range(gpus)))]
        self.places = [f"--np {hosts} -t {gpus}", f"--np {self.ranks}"]
        self.known = {}

    def ways(self, collective, **enabled):
        """The plan's choices, one or another being forced: this selects LL128 where it is off by default."""
        key = collective, *enabled.items()
        if key not in self.known:
            settings = [word for k, v in {"NCCL_PROTO": ",".join(PROTOCOLS), **enabled}.items() for word in ("--with", f"{k}={v}")]
            out = tool.run("explain", collective, SIZE, "--json", *self.plan, *settings)
            self.known[key] = {(c["algorithm"], c["protocol"]) for c in json.loads(out.stdout)["candidates"]}
        return self.known[key]

    def has(self, collective, way):
        enabled = {k: v for k, v in matrix.settings(way).items() if k.endswith("_ENABLE")}
        return way in self.ways(collective, **enabled)

    def words(self, collective, number, sizes):
        place = self.places[number % len(self.places)]
        root = "all" if self.ranks <= 8 and collective in matrix.ROOTED else str(number % self.ranks)
        return f"{collective} {place} --hosts {self.hosts} {sizes} -r {root} -n 1 -w 0 -T 100".split() + ["--topo", self.file]


class Cell:
    """A way of a collective on a cluster."""

    def __init__(self, judge, cluster, collective, way, number):
        self.judge, self.cluster, self.collective, self.way, self.number = judge, cluster, collective, way, number
        buffer = BUFFERS[number % len(BUFFERS)]
        self.settings = {**({"NCCL_BUFFSIZE": buffer} if buffer else {}), **matrix.settings(way)}

    def run(self, sizes, number):
        words = self.cluster.words(self.collective, number, sizes)
        label = " ".join([f"{k}={v}" for k, v in self.settings.items()] + ["kolo perf", *words])
        with tempfile.TemporaryDirectory() as logs:
            out = tool.run("perf", *words, NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,NET,TUNING",
                           NCCL_DEBUG_FILE=logs + "/%h.%p", **self.settings)
            return label, out, matrix.log_of(logs)

    def check_results(self):
        for sizes in (RANGE, TYPES) if ALL and self.cluster.typed else (RANGE,):
            label, out, log = self.run(sizes, self.number)
            fault = self.judge.fault(out, log, self.collective, self.way)
            self.judge.note(label, fault or matrix.fault_of_network(log))

    def check_refusal(self):
        """The refusal names the possible choices, and they are the plan's."""
        label, out, _ = self.run(f"-b {SIZE} -e {SIZE}", 0)
        said = re.search(r"leaves? nothing that can do \w+ here; (.*) can$", out.stderr, re.M)
        there = {(name, proto) for name, protos in re.findall(r"(\w+) \(([\w, ]+)\)", said[1] if said else "")
                 for proto in protos.split(", ")}
        planned = self.cluster.ways(self.collective, **{k: v for k, v in self.settings.items() if k.endswith("_ENABLE")})
        if not out.returncode or not said:
            self.judge.note(label, f"the plan refuses it; exit {out.returncode}\n{out.stdout[-2000:]}{out.stderr[-2000:]}")
        elif there != planned:
            self.judge.note(label, f"it names {sorted(there)}, where the plan has {sorted(planned)}")
        else:
            self.judge.refused += 1

    def check(self):
        if self.way and not self.cluster.has(self.collective, self.way):
            self.check_refusal()
        else:
            self.check_results()


def clusters():
    """All kinds in turn."""
    files = [[tool.machine(ours) for ours, _, _ in KINDS.values()]]
    if os.path.isdir(tool.SHARED):
        files.append([real and f"{tool.SHARED}/{real}.xml" for _, real, _ in KINDS.values()])
    else:
        print("skipped real machines:", tool.NO_SHARED, file=sys.stderr)
    return [Cluster(file, hosts, few or gpus, hosts == 2 and kind is files[0]) for few in (None, 1) for hosts in (2, 3)
            for kind in files for file, (_, _, gpus) in zip(kind, KINDS.values()) if file]


def in_turn(cells):
    """One cell for each way that some plan has, and a refused one for each other algorithm: clusters take turns."""
    by_way = {}
    for cell in cells:
        by_way.setdefault((cell.collective, cell.way), []).append(cell)
    for turn, ((collective, way), same) in enumerate(by_way.items()):
        able = [cell for cell in same if not way or cell.cluster.has(collective, way)]
        if able or way[1] == PROTOCOLS[turn // len(PROTOCOLS) % len(PROTOCOLS)]:
            yield (able or same)[turn * 5 % len(able or same)]


def main():
    judge, everywhere = matrix.Judge(), clusters()
    cells = []
    for collective in matrix.TOLD:
        cells += [(collective, way, cluster) for way in WAYS for cluster in everywhere]
    for collective in matrix.MESSAGES:
        cells += [(collective, None, cluster) for cluster in everywhere
                  if collective != "hypercube" or cluster.ranks & (cluster.ranks - 1) == 0]
    cells = [Cell(judge, cluster, collective, way, i) for i, (collective, way, cluster) in enumerate(cells)]
    for cell in cells if ALL else in_turn(cells):
        cell.check()
    return judge.report(len(cells))


if __name__ == "__main__":
    sys.exit(main())
