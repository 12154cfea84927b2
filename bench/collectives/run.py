#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collectives of Kolo beside other libraries, measured in turns: see ../README.md, or --help."""
import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time

import bars
import contention
import peers
import picture
import regimes
import report
import rounds

OPS = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "sendrecv"]
ALL_SIZES = "8:128M:4"


def size_of(text):
    unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:].upper(), 0)
    value = int(text[:-1]) * unit if unit else int(text)
    if not 4 <= value <= 1 << 32:
        raise ValueError(text)
    return value


def sizes_of(text):
    """"8,64K,1M", or "8:128M:4": from, to, factor."""
    try:
        if ":" not in text:
            return sorted({size_of(t) for t in text.split(",")})
        low, high, factor = text.split(":")
        sizes = [size_of(low)]
        while int(factor) > 1 and sizes[-1] * int(factor) <= size_of(high):
            sizes.append(sizes[-1] * int(factor))
        return sizes
    except ValueError as e:
        raise argparse.ArgumentTypeError(f"{text}: sizes are as 8,64K,1M or 8:128M:4") from e


def words_of(known):
    def parse(text):
        words = text.split(",")
        for word in words:
            if word not in known:
                raise argparse.ArgumentTypeError(f"no {word}: there are {', '.join(known)}")
        return words
    return parse


def ranks_of(text):
    numbers = [int(t) for t in text.split(",")]
    if any(not 1 <= n <= 64 for n in numbers):
        raise argparse.ArgumentTypeError("1 to 64 ranks")
    return numbers


def parse_arguments():
    p = argparse.ArgumentParser(prog="./dev bench collectives", description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    p.add_argument("--ops", type=words_of(OPS), default=OPS, metavar="OP,...", help="of " + ", ".join(OPS))
    p.add_argument("--np", type=ranks_of, default=[2, 4, 8], metavar="N,...", help="numbers of ranks")
    p.add_argument("--sizes", type=sizes_of, default=sizes_of(ALL_SIZES), metavar="SIZES", help="8,64K,1M or FROM:TO:FACTOR (8:128M:4)")
    p.add_argument("--rounds", type=int, default=3, metavar="N", help="how often all are measured in turns")
    p.add_argument("--minutes", type=float, default=18, metavar="M", help="begin no further round that would end later")
    p.add_argument("--ms", type=float, default=30, metavar="MS", help="time for a row of one library in one round")
    p.add_argument("--kolo", type=words_of(list(peers.KOLO)), default=peers.KOLO_DEFAULT, metavar="MODE,...", help="of " + ", ".join(peers.KOLO))
    p.add_argument("--peers", type=words_of(peers.PEERS + ["none"]), default=None, metavar="NAME,...", help="of " + ", ".join(peers.PEERS) + ", or none")
    p.add_argument("--no-fresh", dest="fresh", action="store_false", help="leave out the round of fresh inputs")
    p.add_argument("--bars", action="store_true", help="also measure Kolo alone: memory floor, clusters, other work, scaling; a run of all rows does it anyhow")
    p.add_argument("--busy", type=int, default=None, metavar="K", help="measure beside K shell loops that never rest: medians, means and 99th percentiles")
    p.add_argument("--busy-session", choices=["same", "other"], default="same", help="the loops belong to the session of the program, or each to one of its own")
    p.add_argument("--install", action="store_true", help="install the peers (Debian packages; needs root)")
    p.add_argument("--out", default=None, metavar="DIR", help="for collectives.json and collectives.svg (build/bench)")
    return p.parse_args()


def cpu_model():
    with open("/proc/cpuinfo") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())


def about(r, began):
    """Conditions of the run, for the reader."""
    others = sorted(r.foreign)
    return {"machine": f"{cpu_model()}, {peers.CPUS} CPUs, Linux {platform.release()}", "date": time.strftime("%Y-%m-%d %H:%M"),
            "minutes": round((time.monotonic() - began) / 60, 1), "load": os.getloadavg()[0], "problems": r.problems,
            "cores": r.regimes().facts(),
            "foreign": {"median": others[len(others) // 2], "most": others[-1]} if others else None}


def write(out, rows, facts, configs, alone):
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "collectives.json"), "w") as file:
        json.dump({**facts, "rows": rows, "alone": alone}, file, indent=1)
    with open(os.path.join(out, "collectives.svg"), "w") as file:
        file.write(picture.draw(rows, [c for c in picture.SHOWN if c in configs] or configs, facts["machine"]))


def show(rows, facts, configs, alone):
    print(f"# {facts['machine']}; {facts['minutes']} minutes; {regimes.text(facts['cores'])}")
    print("\n".join(report.table(rows, configs, facts["cores"])))
    print()
    gone = sum(len(r["dropped"]) for r in rows)
    if gone:
        print(f"# {gone} cells of peers that took over {regimes.HOPELESS} times the best one's time, or failed, were measured once")
    for problem in facts["problems"]:
        print("# " + problem)
    if facts["foreign"]:
        print(f"# others used {100 * facts['foreign']['median']:.0f} % of the machine (most: {100 * facts['foreign']['most']:.0f} %)")
    print("\n".join(report.summary(rows) + (bars.text(alone) if alone else [])))


def main():
    o = parse_arguments()
    build = os.environ.get("KOLO_BUILD", os.path.join(peers.ROOT, "build", "release"))
    if o.install:
        peers.install(build)
    bench = peers.Bench(build)
    others = [p for p in bench.peers() if o.peers is None or p in o.peers]
    if o.peers is None and len(others) < len(peers.PEERS):
        print("# not there: " + ", ".join(p for p in peers.PEERS if p not in others) + "; --install gets them", file=sys.stderr)
    busy = (o.busy_session, o.busy) if o.busy is not None else None
    began, scratch = time.monotonic(), tempfile.mkdtemp(prefix="kolo-bench.")
    r = rounds.Rounds(bench, scratch, o.ms, busy=busy)
    alone = None
    rows = [(op, np, size) for np in o.np for op in o.ops for size in o.sizes]
    try:
        r.run(o.rounds, rows, others + o.kolo, o.minutes, o.fresh and not busy)
        if not busy and (o.bars or len(rows) == len(OPS) * len(sizes_of(ALL_SIZES)) * 3):
            print("# Kolo alone", file=sys.stderr)
            alone = bars.measure(bench, o.ms, o.rounds)
            r.problems += alone["problems"]
    except KeyboardInterrupt:
        r.problems.append("interrupted")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if busy:
        return contention.finish(r, about(r, began), busy, o.kolo, o.out or os.path.join(peers.ROOT, "build", "bench"))
    made, facts = report.make_rows(r.times, r.failed, r.regimes()), about(r, began)
    write(o.out or os.path.join(peers.ROOT, "build", "bench"), made, facts, o.kolo, alone)
    show(made, facts, o.kolo, alone)
    return 1 if any(p.startswith("kolo") for p in r.problems) else 0


if __name__ == "__main__":
    sys.exit(main())
