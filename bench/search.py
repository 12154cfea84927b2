#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time the graph search on recorded machines, against times recorded for the reference implementation.

usage: bench/search.py --golden DIR --topologies DIR [--build build/release] [--above MS] [--only GLOB] [--runs N]

For each record: milliseconds of thread CPU time that its searches took there (search_cpu_ms in the record), and here,
both the median of N runs in one process, and the ratio, worst first. The recorded times come from another run on a
like machine: the ratio is a measure of size, not a race.
"""
import argparse, fnmatch, glob, json, os, statistics, subprocess, sys


def environment(record, topologies):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "KOLO_"))}
    for k, v in (record.get("env") or {}).items():
        env[k] = os.path.join(topologies, v) if k.endswith("_FILE") else str(v)
    return env


def measure(build, topologies, record, runs):
    cmd = [os.path.join(build, "bin", "search_time"), os.path.join(topologies, record["topology"]), str(record["hosts"]), str(runs)]
    return float(subprocess.run(cmd, env=environment(record, topologies), capture_output=True, check=True).stdout)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--build", default="build/release", help="build tree to measure")
    a.add_argument("--golden", required=True, help="folder of recorded results")
    a.add_argument("--topologies", required=True, help="folder of their machines")
    a.add_argument("--above", type=float, default=0, help="only records that took the reference longer (ms)")
    a.add_argument("--only", default="*", help="only records with matching names")
    a.add_argument("--runs", type=int, default=3)
    a.add_argument("--worst", type=int, default=40, help="lines to print")
    o = a.parse_args()
    rows = []
    for path in sorted(glob.glob(os.path.join(o.golden, "**", "*.json"), recursive=True)):
        name = os.path.basename(path)[:-5]
        record = json.load(open(path))
        if record.get("search_cpu_ms", 0) <= o.above or not fnmatch.fnmatch(name, o.only):
            continue
        here = measure(o.build, o.topologies, record, o.runs)
        rows.append((record["search_cpu_ms"] / max(here, 1e-6), record["search_cpu_ms"], here, name))
    if not rows:
        print("no records match", file=sys.stderr)
        return 2
    rows.sort()
    print(f"{'record':56} {'recorded ms':>12} {'kolo ms':>10} {'ratio':>8}")
    for ratio, there, here, name in rows[: o.worst]:
        print(f"{name:56} {there:12.3f} {here:10.3f} {ratio:7.1f}x")
    ratios = [r[0] for r in rows]
    print(f"{len(rows)} records: median {statistics.median(ratios):.1f}x, worst {min(ratios):.2f}x, "
          f"recorded {sum(r[1] for r in rows):.0f} ms, kolo {sum(r[2] for r in rows):.0f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
