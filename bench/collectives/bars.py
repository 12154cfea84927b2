# SPDX-License-Identifier: Apache-2.0
"""Measurements of Kolo alone: against the memory's limit, as an emulated cluster, beside other work, and with more and more ranks."""
import os
import statistics
import subprocess
import sys

import peers
import report
import rounds

TOPOLOGY = os.path.join(peers.ROOT, "tests/data/topologies/synthetic/dgx1v-hcm-4nic.xml")
MIB = 1 << 20
BUSY_MS = 1000


class Alone:
    """Runs of coll_kolo, and their results."""

    def __init__(self, bench, ms):
        self.bench, self.ms, self.problems = bench, ms, []

    def run(self, np, words, rows, pin=False, ms=None, **env):
        command = [self.bench.kolo, str(np), words, "--name", words, "--ms", str(ms or self.ms), *(["--pin"] if pin else []), *rows]
        lines, wrong = rounds.run_program(command, 120, {**peers.environment(), "KOLO_HOST_DEVICES": "64", **env})
        if wrong:
            self.problems.append(f"kolo, {np} ranks, {words}: {wrong}")
        return lines

    def us(self, *args, key="us", **options):
        lines = [line for line in self.run(*args, **options) if key in line]
        return lines[0][key] if lines else None

    def medians(self, count, **ways):
        """Each way, a function, `count` times in turns; the medians."""
        found = {name: [] for name in ways}
        for _ in range(count):
            for name, way in ways.items():
                us = way()
                if us:
                    found[name].append(us)
        return {name: statistics.median(v) if v else None for name, v in found.items()}


def share(a, b):
    return a / b if a and b else None


def memory_floor(alone, count):
    """Threads' all-reduce of two ranks over the memory's limit."""
    found = []
    for size in (8 * MIB, 32 * MIB, 128 * MIB):
        def floor(size=size):
            lines, _ = rounds.run_program([os.path.join(alone.bench.bin, "coll_floor"), str(size)], 60, peers.environment())
            return lines[0]["us"] if lines else None
        m = alone.medians(count, floor=floor, kolo=lambda size=size: alone.us(2, "threads", [f"all_reduce:{size}"], True))
        found.append({"size": size, **m, "ratio": share(m["kolo"], m["floor"])})
    return found


def cluster(alone, count):
    """16 ranks in 8 emulated hosts, over the network and its rings, and in one host."""
    row = [f"all_reduce:{MIB}"]
    m = alone.medians(count, hosts=lambda: alone.us(16, "hosts", row, NCCL_TOPO_FILE=TOPOLOGY, KOLO_HOST_DEVICES="0"),
                      native=lambda: alone.us(16, "plain", row))
    return {**m, "ratio": share(m["hosts"], m["native"])}


def beside_other_work(alone, count):
    """Two ranks, with and without a third process that does not rest: the mean over many time slices of the scheduler."""
    def long(row):
        return alone.us(2, "sync", [row], True, ms=BUSY_MS, key="mean")

    def busy(row):
        third = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            return long(row)
        finally:
            third.kill()
            third.wait()
    found = []
    for size in (8, 64 << 10, MIB, 16 * MIB):
        row = f"all_reduce:{size}"
        m = alone.medians(count, alone=lambda row=row: long(row), busy=lambda row=row: busy(row))
        found.append({"size": size, **m, "ratio": share(m["busy"], m["alone"])})
    return found


def scaling(alone):
    """1 to 64 ranks that are threads of one process."""
    found = []
    for np in (1, 2, 4, 8, 16, 32, 64):
        lines = alone.run(np, "threads,report", ["all_reduce:8", f"all_reduce:{MIB}"])
        init = next((line for line in lines if "init_ms" in line), {})
        times = {line["size"]: line["us"] for line in lines if "us" in line}
        found.append({"np": np, "init_ms": init.get("init_ms"), "kib": init.get("kib"), "us_8": times.get(8), "us_1m": times.get(MIB)})
    return found


def measure(bench, ms, count):
    alone = Alone(bench, ms)
    return {"floor": memory_floor(alone, count), "cluster": cluster(alone, count), "busy": beside_other_work(alone, count),
            "scaling": scaling(alone), "problems": alone.problems}


def judge(ratio, bar):
    return f"{report.figure(ratio)} (wanted: {bar}){' MISSED' if ratio and ratio > bar else ''}"


def text(bars):
    f = report.figure
    lines = ["2. threads, all_reduce of 2, over the memory's floor:"]
    lines += [f"   {report.size_text(b['size']):>8}: {f(b['kolo'])} us, floor {f(b['floor'])}: {judge(b['ratio'], 1.3)}" for b in bars["floor"]]
    c = bars["cluster"]
    lines += [f"4. 8 x 2 ranks, all_reduce of 1 MiB: {f(c['hosts'])} us, in one host {f(c['native'])}: {judge(c['ratio'], 3)}"]
    lines += ["5. all_reduce of 2 processes beside a busy third one:"]
    lines += [f"   {report.size_text(b['size']):>8}: {f(b['busy'])} us, alone {f(b['alone'])}: {judge(b['ratio'], 3)}" for b in bars["busy"]]
    lines += ["6. ranks in one process: init ms, KiB of the process, all_reduce us of 8 B and of 1 MiB:"]
    lines += [f"   {b['np']:>3}: {f(b['init_ms']):>8} {f(b['kib']):>8} {f(b['us_8']):>8} {f(b['us_1m']):>8}" for b in bars["scaling"]]
    return lines
