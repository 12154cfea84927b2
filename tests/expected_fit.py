#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits the constants of src/graph/expected.c to published bandwidths, and judges them where they were not fitted.

A system is a machine that somebody measured: its tables stay together. Systems are split into two halves of the same kinds (GPU
generation, one host or several). The constants fitted on one half are judged on the other, and the other way round, so that every value
is judged by constants that never saw its system. Those fitted on all belong into the table of expected.c.

    KOLO_BUILD=build/release KOLO_SHARED=../shared python3 tests/expected_fit.py
"""
import json
import math
import os
import re
import sys
from dataclasses import dataclass

import published
import tool
from releases import followed

SOURCE = "src/graph/expected.c"
SECOND_PAGE = os.path.join(os.path.dirname(tool.SHARED), "spec/published-busbw-2.md")
LIMIT = 0.15
# Values whose machine is not the one that Kolo was asked about: no model of the named machine could hit them.
ELSEWHERE = {
    "1.3": "one process with 8 threads; the same board reaches 230 GB/s elsewhere",
    "1.18": "the source does not say how many NVLinks were bridged",
    "G1": "the NICs give 9.6 GB/s: others than the named machine's",
    "N1": "NICs misplaced on purpose",
}
# Ranges of the fit: bounds of physics. Constants without a range are not fitted.
RANGES = {
    "start": (0, 25), "nvls_ramp": (0, 300), "tree_ramp": (0, 400), "ramp_size": (5, 150), "tcp_ramp": (0, 1500),
    "link_volta": (.85, 1.25), "link_ampere": (.85, 1.05), "link_hopper": (.85, 1.05), "link_blackwell": (.85, 1.05), "link_pair": (.8, 1),
    "nvls_hopper": (.6, .85), "nvls_blackwell": (.5, .8), "nvls_domain": (.4, .8),
    "net": (.92, .97), "net_tree": (.8, 1), "net_nvls": (.8, 1),
}
# Where the search begins; a half without such systems keeps these.
PRIOR = {
    "start": 6, "nvls_ramp": 100, "tree_ramp": 140, "ramp_size": 40, "tcp_ramp": 700, "link_volta": 1, "link_ampere": .97, "link_hopper": 1,
    "link_blackwell": .94, "link_pair": .89, "nvls_hopper": .72, "nvls_blackwell": .66, "nvls_domain": .55, "net": .96, "net_tree": .92,
    "net_nvls": .93,
}


@dataclass
class Value:
    row: str
    machine: str
    system: str
    options: tuple
    release: str
    collective: str
    settings: dict
    size: str
    measured: float  # GB/s
    candidate: dict | None = None  # of kolo explain
    machine_facts: dict | None = None
    half: int = 0

    @property
    def bytes(self):
        return int(self.size[:-1]) << {"K": 10, "M": 20, "G": 30}[self.size[-1]]


# ---- measurements ----

def named(options):
    return next(os.path.basename(options[i + 1]).partition(":")[0] for i, o in enumerate(options) if o in ("--machine", "--topo"))


def first_page():
    for row in published.ONE_HOST + published.SEVERAL_HOSTS:
        for size, bandwidth in row.measured.items():
            yield Value(row.number, row.ran_on, f"{row.source} {named(row.options)}", row.options, followed(row.ran),
                        row.collective, row.settings, size, bandwidth)


def second_page():
    """The tables of the shared page, which are not part of the project."""
    if not os.path.exists(SECOND_PAGE):
        return
    with open(SECOND_PAGE, encoding="utf-8") as f:
        rows = re.findall(r"^\| (\w\d) \| (.*?) \(`(.*?)`\) \| (\S+) \| (\S+) \| (\S+) \| (\S+) \|", f.read(), flags=re.M)
    for row, machine, asked, release, collective, size, bandwidth in rows:
        options, _, setting = asked.partition(" --with ")
        options = tuple(options.split())
        yield Value(row, machine, f"table {row[0]} {named(options)}", options, release, collective, dict([setting.split("=")]) if setting else {},
                    size, float(bandwidth))


# ---- Kolo's facts about each ----

def facts_of(value, cache):
    """The inputs of the model that the answer to one operation does not have."""
    key = (value.options, value.release, tuple(value.settings.items()))
    if key not in cache:
        o = json.loads(tool.good("graph", *value.options, "--nccl", value.release, "--json", **value.settings))
        gpus = [n for n in o["system"] if n["type"] == "GPU"]
        nets = [n for n in o["system"] if n["type"] == "NET"]
        cpu = next(n for n in o["system"] if n["type"] == "CPU")
        to_nets = o["paths"].get("gpu_net") or []
        cache[key] = {
            "ranks": o["ranks_total"], "nodes": o["nnodes"], "local": o["ranks_total"] // o["nnodes"], "sm": min(g["sm"] for g in gpus),
            "arm": cpu["arch"] == 3, "ring": o["graphs"]["ring"], "nvls": o["graphs"].get("nvls"), "graphs": o["graphs"],
            "links": o["total_bw"], "staged": any(not n["gdr"] for n in nets),
            "nic": min((max(p[i]["bw"] for p in to_nets) for i in range(len(nets))), default=0),
        }
    return cache[key]


def read_values():
    cache, values = {}, [*first_page(), *second_page()]
    for v in values:
        o = json.loads(tool.good("explain", v.collective, v.size, *v.options, "--nccl", v.release, "--json", **v.settings))
        v.candidate, v.machine_facts = o["choice"], facts_of(v, cache)
    return values


def read_constants():
    """{name: value} of the table in C."""
    with open(SOURCE, encoding="utf-8") as f:
        return {name: float(x) for name, x in re.findall(r'\] *= \{"(\w+)", *"\w+", *([0-9.]+),', f.read())}


# ---- the model, as in expected.c ----

def bus_factor(v):
    n = v.machine_facts["ranks"]
    return (n - 1) / n * (2 if "reduce" in v.collective and "scatter" not in v.collective else 1)


def efficiency(m, k):
    if m["ring"]["typeIntra"] != "NVL":
        return 1
    if m["sm"] < 100:
        return k["link_volta" if m["sm"] < 80 else "link_ampere" if m["sm"] < 90 else "link_hopper"]
    return k["link_pair" if m["ranks"] == 2 else "link_blackwell"]


def bandwidth(v, k):
    m, c, bus = v.machine_facts, v.candidate, bus_factor(v)
    ring, links, model = m["ring"], efficiency(m, k), c["transfer_gbs"]
    nics = max(ring["nChannels"] * ring["bwInter"], m["nic"] * m["local"] if m["arm"] else 0)
    net = k["net_staged"] if m["staged"] else k["net"]
    if c["algorithm"].startswith("NVLS"):
        part = "nvls_hopper" if m["sm"] < 100 else "nvls_domain" if m["local"] > 8 else "nvls_blackwell"
        inside = m["links"] * k[part]
        if m["nodes"] == 1:
            return inside
        return min(inside, nics / 2 * net if m["nodes"] > 2 else nics * k["net_nvls"] * (net if m["staged"] else 1))
    if m["nodes"] == 1:
        return model * links
    if c["algorithm"] == "Tree" and m["nodes"] == 2:
        reached = nics * k["net_tree"] * net * (1 if c["protocol"] == "Simple" else 120 / 128)
        return reached if m["arm"] or ring["typeIntra"] != "NVL" else min(reached, model * links)
    if c["protocol"] != "Simple":
        return model * net
    if c["algorithm"] == "Tree":
        return nics / 2 * net
    return min(nics * net, math.inf if m["arm"] else ring["nChannels"] * ring["bwIntra"] * links) / bus


def expected_us(v, k):
    m, c = v.machine_facts, v.candidate
    nvls, name = c["algorithm"].startswith("NVLS"), c["algorithm"].lower()
    latency = c["time_us"] - c["terms"]["transfer_us"]
    told = (m["graphs"].get("nvls" if nvls else name) or m["ring"])["latencyInter"] > 0
    start = k["start"] + (k["net_start"] if m["nodes"] > 1 and not told and name != "nvlstree" else 0)
    ramp = k["tcp_ramp"] * v.bytes / (v.bytes + k["tcp_size"] * 1e6) if c["expected"]["tcp_us"] else 0
    if nvls:
        ramp += (k["nvls_ramp"] * m["nvls"]["nChannels"] / 8 + k["tree_ramp"] * math.log2(m["nodes"])) * v.bytes / (v.bytes + k["ramp_size"] * 1e6)
    return latency + start + ramp + v.bytes / bandwidth(v, k) / 1e3


def measured_us(v):
    return v.bytes * bus_factor(v) / v.measured / 1e3


def error(v, k):
    """Of the bus bandwidth: 0.1 is 10 % too fast."""
    return measured_us(v) / expected_us(v, k) - 1


def predicted_error(v):
    return v.candidate["bus_gbs"] / v.measured - 1


# ---- the split ----

def split(values):
    """Every system to one of two halves: those of a kind, largest first, to the half that has fewer values."""
    systems, kinds, total = {}, {}, [0, 0]
    for v in values:
        systems.setdefault(v.system, []).append(v)
    for name, vs in systems.items():
        several = max(v.machine_facts["nodes"] for v in vs) > 1
        kinds.setdefault((min(v.machine_facts["sm"] for v in vs) // 10, several), []).append(name)
    for kind in sorted(kinds):
        here = [0, 0]
        for name in sorted(kinds[kind], key=lambda n: (-len(systems[n]), n)):
            half = int((here[0], total[0]) > (here[1], total[1]))
            here[half] += len(systems[name])
            total[half] += len(systems[name])
            for v in systems[name]:
                v.half = half


# ---- the fit ----

def loss(values, k):
    """Mostly the share of values that are off by more than the limit, smooth, so that a few hopeless ones do not pull; and no constant
    goes far from where it began without a reason."""
    x = sum((r / .13) ** 4 / (1 + (r / .13) ** 4) + .3 * math.log1p((r / .1) ** 2) for r in (math.log(1 + error(v, k)) for v in values))
    return x + 5 * sum(((k[n] - PRIOR[n]) / (hi - lo)) ** 2 for n, (lo, hi) in RANGES.items())


def fit(values, k):
    k = {**k, **PRIOR}
    best, step = loss(values, k), {n: (hi - lo) / 8 for n, (lo, hi) in RANGES.items()}
    while max(step[n] / (hi - lo) for n, (lo, hi) in RANGES.items()) > .004:
        for name, (lo, hi) in RANGES.items():
            for sign in (1, -1):
                tried = {**k, name: min(hi, max(lo, k[name] + sign * step[name]))}
                now = loss(values, tried)
                if now < best - 1e-9:
                    k, best = tried, now
                    break
            else:
                step[name] /= 1.6
    return k


def hits(values, err):
    return sum(abs(err(v)) <= LIMIT for v in values)


class Judged:
    """Each half judged by the constants of the other."""

    def __init__(self):
        every = read_values()
        self.constants = read_constants()
        self.all = every
        self.values = [v for v in every if v.row not in ELSEWHERE]
        split(self.values)
        self.halves = [[v for v in self.values if v.half == h] for h in (0, 1)]
        self.fitted = [fit(h, self.constants) for h in self.halves]

    def unseen(self, v):
        """The error by constants that were fitted without the system of this value."""
        return error(v, self.fitted[1 - v.half])

    def judged(self, half):
        return hits(self.halves[half], self.unseen)

    def table(self):
        lines = ["| half | system | values | predicted within 15 % | expected: own half's constants | expected: the other half's |",
                 "|---|---|---|---|---|---|"]
        for half in (0, 1):
            for system in sorted({v.system for v in self.halves[half]}):
                vs = [v for v in self.halves[half] if v.system == system]
                lines.append(f"| {'AB'[half]} | {system} | {len(vs)} | {hits(vs, predicted_error)} | "
                             f"{hits(vs, lambda v, h=half: error(v, self.fitted[h]))} | {hits(vs, self.unseen)} |")
        return lines


def main():
    j = Judged()
    everything = fit(j.values, j.constants)
    print("\n".join(j.table()))
    for half in (0, 1):
        vs = j.halves[half]
        print(f"{'AB'[half]}: {len(vs)} values; within 15 %: predicted {hits(vs, predicted_error)}, by its own constants "
              f"{hits(vs, lambda v, h=half: error(v, j.fitted[h]))}, by the other half's {j.judged(half)}")
    n, judged = len(j.values), j.judged(0) + j.judged(1)
    print(f"judged: {judged} of {n} ({100 * judged / n:.1f} %); predicted: {hits(j.values, predicted_error)}; by the table in C: "
          f"{hits(j.values, lambda v: error(v, j.constants))}; with the {len(j.all) - n} values of other machines: "
          f"{judged + hits([v for v in j.all if v.row in ELSEWHERE], lambda v: error(v, j.constants))} of {len(j.all)}")
    print(f"{'constant':16} {'A':>8} {'B':>8} {'all':>8} {'in C':>8}")
    for name, now in j.constants.items():
        print(f"{name:16} {j.fitted[0][name]:8.3f} {j.fitted[1][name]:8.3f} {everything[name]:8.3f} {now:8.3f}")
    if "-v" in sys.argv:
        for v in j.values:
            print(f"{v.row:5} {v.machine[:30]:30} {v.size:>5} {v.candidate['algorithm']:9} {v.measured:7.1f} predicted {predicted_error(v):+.0%} "
                  f"unseen {j.unseen(v):+.0%} in C {error(v, j.constants):+.0%}")


if __name__ == "__main__":
    main()
