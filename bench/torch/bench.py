# SPDX-License-Identifier: Apache-2.0
"""bench.py - PyTorch's collectives and steps of small models over several backends, in turn: times per call, and how many times faster kolo is.

Backends: kolo, gloo; kolocc (Kolo without torch.distributed), fake (torch.distributed without a backend: its own cost), shm-kernel (shm_kernel.c, an
all-reduce as inference stacks for CPUs have it), mpi4py (over Open MPI; left out where it is missing).
"""

import argparse
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

CORES_APART = "cores apart"  # as rank.py
OPS = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_recv", "batch"]
SIZES = [1 << 10 << 2 * i for i in range(9)]  # 1 KiB to 64 MiB
MODES = ["sync", "async", "flight"]
BACKENDS = ["kolo", "gloo", "shm-kernel", "kolocc", "fake", "mpi4py"]
ROUND_S = 1800  # a round that takes longer hangs


def rows_of(args):
    """All operations synchronous with fp32; all_reduce in all modes and types, which --all asks for of each operation."""
    return [
        {"op": op, "dtype": dtype, "mode": mode, "bytes": size}
        for op in args.ops
        for dtype in args.dtypes
        for mode in args.modes
        for size in args.sizes
        if (op == "all_reduce" or (dtype == args.dtypes[0] and mode == args.modes[0]) or args.all) and not (op in ("send_recv", "batch") and mode != "sync")
    ]


# ---- one round: fresh processes of one backend ----


def _rank(job, rank, results):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(job["ranks"]))
    if job["bind"]:
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank % len(os.sched_getaffinity(0))]})
    import rank as measurement

    figures = measurement.measure(job, rank)
    if rank == 0:
        results.put(figures)


def _spawned(job):
    """Ranks are started as Python starts processes; each imports PyTorch by itself, so that no threads and no memory are inherited."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    ranks = [context.Process(target=_rank, args=(job, r, results)) for r in range(1 if job["backend"] == "fake" else job["ranks"])]
    for p in ranks:
        p.start()
    try:
        for p in ranks:
            p.join(ROUND_S)
            if p.exitcode != 0:
                raise SystemExit(f"bench/torch: {job['backend']} with {job['ranks']} ranks: a rank ended with {p.exitcode}")
        return results.get(timeout=10)
    finally:
        for p in ranks:
            p.kill()


def _under_mpirun(job):
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(job["ranks"]), "--bind-to", "none", sys.executable, __file__, "--job", json.dumps(job)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=ROUND_S)
    if done.returncode:
        raise SystemExit(f"bench/torch: mpirun: {done.stderr[-500:]}")
    return json.loads(done.stdout.splitlines()[-1])


def one_round(args, backend, ranks):
    job = {"backend": backend, "ranks": ranks, "rows": rows_of(args), "steps": args.steps, "overlap": args.overlap, "threads": args.threads, "shm": args.shm,
           "bind": args.bind}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(dir="/dev/shm") as shared:
        job.update(folder=folder, shared=shared)
        return _under_mpirun(job) if backend == "mpi4py" else _spawned(job)


def mpi_rank(job):
    import rank as measurement
    from mpi4py import MPI

    figures = measurement.measure(job, MPI.COMM_WORLD.rank)
    if MPI.COMM_WORLD.rank == 0:
        print(json.dumps(figures))


# ---- tables ----


def text_of(values):
    if not values or min(values) < 0:
        return f"{'-':>18}"
    median = statistics.median(values)
    return f"{median * 1e6:9.1f} ({(max(values) - min(values)) / median * 100:4.0f} %)"


def ratio_of(figures, peer):
    """By how much kolo is faster than `peer`; None where one of them has no such row."""
    own, other = figures.get("kolo"), figures.get(peer)
    if not own or not other or min(own) <= 0 or min(other) <= 0:
        return None
    return statistics.median(other) / statistics.median(own)


def print_table(args, found, ranks):
    print(f"\n{ranks} ranks, {args.threads or 'default'} threads each: us per call, median of {args.rounds} rounds (spread)")
    print(f"{'':44}" + "".join(f"{b:>18}" for b in args.backends) + "   gloo/kolo")
    ratios = []
    names = dict.fromkeys(name for rounds in found.values() for figures in rounds for name in figures if name != CORES_APART)
    for name in names:
        of_backends = {b: [r[name] for r in rounds if name in r] for b, rounds in found.items()}
        ratio = ratio_of(of_backends, "gloo")
        ratios += [ratio] if ratio else []
        print(f"{name:44}" + "".join(text_of(of_backends[b]) for b in args.backends) + (f"{ratio:12.2f}" if ratio else ""))
    if ratios:
        print(f"gloo/kolo: median {statistics.median(ratios):.2f}, least {min(ratios):.2f}, below 1 in {sum(r < 1 for r in ratios)} of {len(ratios)} rows")


def hidden(figures):
    """The part of the shorter of both that took no time of its own when both were under way; below 0: both at once took longer than one after the other."""
    compute, communicate, both = (figures[name] for name in ("compute", "communicate", "both"))
    return (compute + communicate - both) / min(compute, communicate)


def print_overlap(found):
    for backend, rounds in found.items():
        parts = [hidden(figures) for figures in rounds if "both" in figures]
        if parts:
            print(f"{backend}: {statistics.median(parts) * 100:.0f} % hidden by overlapping ({min(parts) * 100:.0f} to {max(parts) * 100:.0f})")


def present(backends, args):
    """Without those that this machine lacks, which are named."""
    left = []
    for b in backends:
        if b == "mpi4py" and not (shutil.which("mpirun") and subprocess.run([sys.executable, "-c", "import mpi4py"], capture_output=True).returncode == 0):
            print("mpi4py: left out: mpi4py or mpirun is not installed")
        elif b == "shm-kernel" and not args.shm:
            print("shm-kernel: left out: it was not compiled (bench/torch.sh does that)")
        else:
            left.append(b)
    return left


def fits(backend, ranks):
    """The kernel spins without ever yielding: with more ranks than cores the scheduler decides its times."""
    return backend != "shm-kernel" or ranks <= os.cpu_count()


def print_cores(found):
    """Times compare only where the host of a virtual machine did not move its cores."""
    known = [ns for rounds in found.values() for figures in rounds if (ns := figures.get(CORES_APART))]
    print(f"a cache line between cores 0 and 1: {min(known):.0f} to {max(known):.0f} ns" if known else "the distance of the cores is not known")


def measure_all(args, ranks):
    backends = [b for b in args.backends if fits(b, ranks)]
    found = {b: [] for b in args.backends}
    for number in range(args.rounds):
        for b in backends[number % len(backends):] + backends[: number % len(backends)]:
            found[b].append(one_round(args, b, ranks))
            print(f"round {number + 1} of {args.rounds}, {ranks} ranks: {b}", file=sys.stderr, flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="*", default=[2, 4], help="numbers of processes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="bytes of the larger buffer")
    parser.add_argument("--ops", nargs="*", default=OPS, choices=OPS)
    parser.add_argument("--dtypes", nargs="+", default=["fp32", "bf16"], choices=["fp32", "bf16"])
    parser.add_argument("--modes", nargs="+", default=MODES, choices=MODES, help="wait in the call; start and wait; start eight, then wait")
    parser.add_argument("--all", action="store_true", help="all types and modes for each operation, not for all_reduce alone")
    parser.add_argument("--threads", type=int, default=1, help="torch.set_num_threads in each rank; 0: PyTorch's default")
    parser.add_argument("--backends", nargs="*", default=BACKENDS, choices=BACKENDS)
    parser.add_argument("--bind", action="store_true", help="each rank to a core, in turn")
    parser.add_argument("--no-steps", dest="steps", action="store_false", help="without steps of models")
    parser.add_argument("--overlap", action="store_true", help="also progress beside products on all threads")
    parser.add_argument("--json", metavar="FILE", help="all figures, in seconds")
    parser.add_argument("--shm", help=argparse.SUPPRESS)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        return mpi_rank(json.loads(args.job))
    args.backends = present(args.backends, args)
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}; backends in turn, ranks in fresh processes")
    everything = {}
    for ranks in args.ranks:
        everything[ranks] = measure_all(args, ranks)
        print_table(args, everything[ranks], ranks)
        print_overlap(everything[ranks])
        print_cores(everything[ranks])
        if args.json:
            with open(args.json, "w") as file:
                json.dump({"cpus": os.cpu_count(), "load": os.getloadavg(), "threads": args.threads, "found": everything}, file)


if __name__ == "__main__":
    main()
