# SPDX-License-Identifier: Apache-2.0
"""Shared by matrix tests: the collectives, the ways (algorithm and protocol) that each can be forced to, and judging a run of
`kolo perf` by its rows and its log."""
import os
import re

RING, TREE = ([(algorithm, proto) for proto in ("LL", "LL128", "Simple")] for algorithm in ("Ring", "Tree"))
PAT, NVLS, ONE_SHOT, FLAT = ([(algorithm, "Simple")] for algorithm in ("PAT", "NVLS", "OneShot", "Flat"))
MESSAGES = {name: [None] for name in ("alltoall", "alltoallv", "gather", "scatter", "sendrecv", "hypercube")}  # they have neither
TOLD = {"all_reduce": "AllReduce", "all_gather": "AllGather", "reduce_scatter": "ReduceScatter", "broadcast": "Broadcast",
        "reduce": "Reduce"}
ROOTED = ("broadcast", "reduce")
ALL = os.environ.get("KOLO_MATRIX") == "all"


def told(algorithm):
    """As logs have it: NVLS_TREE, COLLNET_DIRECT, ONE_SHOT."""
    return re.sub(r"(?<=.)(?=Tree|Direct|Chain|Shot)", "_", algorithm).upper()


def settings(way):
    """The settings that force a way."""
    if not way:
        return {}
    enable = {"PAT": "NCCL_PAT_ENABLE", "CollNetDirect": "NCCL_COLLNET_ENABLE", "CollNetChain": "NCCL_COLLNET_ENABLE"}.get(way[0])
    return {"NCCL_ALGO": way[0], "NCCL_PROTO": way[1], **({enable: "1"} if enable else {})}


def log_of(folder):
    """The output of all ranks there."""
    text = ""
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="utf-8") as log:
            text += log.read()
    return text


def fault_of_network(log):
    """The reason against a job of several hosts; None: there is none."""
    if " via NET/Socket/" not in log and " via COLLNET/" not in log:
        return "no connection goes through the network"
    return next(("it warns: " + line for line in log.splitlines() if " WARN " in line), None)


class Judge:
    """Counts runs and results, and returns the error of a run; None: there is none."""

    def __init__(self):
        self.runs = self.results = self.refused = self.wrong = 0

    def fault(self, out, log, collective, way):
        rows = re.findall(r"^ +\d+ +\d+ .*? +(\d+|N/A) +[\d.]+ +[\d.]+ +[\d.]+ +(\d+|N/A)$", out.stdout, re.M)
        if out.returncode or "# Out of bounds values : 0 OK" not in out.stdout or not rows:
            return f"exit {out.returncode}\n{out.stdout[-2000:]}{out.stderr[-2000:]}"
        wrong = [row for row in rows if set(row) - {"0", "N/A"}]
        if wrong:
            return f"{len(wrong)} rows with wrong elements"
        ran = set(re.findall(r"(\w+): \d+ Bytes -> Algo (\w+) proto (\w+)", log))
        if way and ran != {(TOLD[collective], told(way[0]), way[1].upper())}:
            return f"ran instead: {sorted(ran)}"
        self.runs += 1
        self.results += sum(value == "0" for row in rows for value in row)
        return None

    def note(self, label, fault):
        if fault:
            self.wrong += 1
            print(f"{label}: {fault}", flush=True)

    def report(self, ways):
        """Print it; the exit code. Of so many ways, or by collective."""
        print(f"{ways if isinstance(ways, int) else sum(map(len, ways.values()))} ways, {self.runs} runs, "
              f"{self.results} results compared, {self.refused} refused as planned, {self.wrong} runs failed")
        return 1 if self.wrong or not self.results else 0
